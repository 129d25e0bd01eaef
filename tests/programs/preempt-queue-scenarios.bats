#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-queue: the scenarios of the coordinator that it stands for, through the real programs.
# takes: 35
# shellcheck disable=SC2016,SC2094 # text for another shell

bats_require_minimum_version 1.5.0
load ../support/queue

# An item fails, ones behind it wait; HOW tells it.
an_item_fails() {
	local how=$1 ids bad later
	schedule bad --halt now --priority 10 -- bash -c 'until [ -e fail ]; do sleep 0.02; done; exit 3'
	schedule_many 4 -- ./item
	worker a
	eventually is "$bad" running
	: >fail
	eventually is "$bad" failed
	case $how in
	schedule) expect 44 preempt-queue schedule -- ./item ;;
	*) expect 44 preempt-queue "$how" ;;
	esac
	says "command $bad .*exit code 3"
	are cancelled "${ids[@]}"
	expect 1 preempt-queue fetch "${ids[0]}"
	counts waiting 0
	# The queue goes on; who joins is told until that is forgotten.
	schedule later -- ./item
	expect 0 preempt-queue join "$later"
	ran_once "$later"
	expect 44 preempt-queue join
	says "command $bad"
	expect 44 preempt-queue 'done'
	[ "$(preempt-queue list --json | wc -l)" = 6 ]
}

@test "WQ-5, WQ-6: an item fails: schedule or done says it, what waits is cancelled, and the queue goes on" {
	an_item_fails schedule
	PREEMPT_STORE=$PWD/store/other.db
	rm fail
	: >ran
	an_item_fails 'done'
}

@test "WQ-3: three joins at once" {
	local ids i
	worker a
	schedule_many 5 -- ./gated go
	for i in 1 2 3; do aside "join$i" preempt-queue join; done
	eventually begun "${ids[0]}"
	expect 1 preempt-queue 'done'
	for i in 1 2 3; do runs "join$i"; done
	: >go
	for i in 1 2 3; do aside_ends "join$i" 0; done
	ran_once "${ids[@]}"
}

@test "WQ-8: an error while long items run: they are told to end, what waits is cancelled" {
	local long stubborn bad ids later
	schedule long -- bash -c 'trap "exit 0" TERM; : >begun.long; while :; do sleep 0.02; done'
	schedule stubborn -- ./stubborn
	schedule bad --halt now -- bash -c 'until [ -e fail ]; do sleep 0.02; done; exit 3'
	worker a --slots 2 --kill-after 300ms
	worker b --slots 1
	eventually test -e begun.long -a -e "begun.$stubborn"
	eventually is "$bad" running
	# Workers that contend choose among more than the first ones: these come when no slot is free.
	schedule_many 4 -- ./item
	: >fail
	expect 44 preempt-queue join
	are cancelled "$long" "$stubborn" "${ids[@]}"
	# Who waits for one of those is told why it is not done.
	for id in "$long" "$stubborn"; do
		expect 44 preempt-queue join "$id"
		says "because of command $bad "
	done
	preempt-queue retry --cancelled
	preempt-queue forget "$bad"
	preempt-queue cancel "$stubborn" "$long"
	schedule later -- ./item
	expect 0 preempt-queue join "$later" "${ids[@]}"
	ran_once "$later" "${ids[@]}"
}

@test "WQ-8, WQ-9: --halt soon: an error while a long item runs: join, and schedule that waits for room, wait for that one" {
	local long bad ids later
	schedule long --priority 2 -- bash -c './gated go; echo long >>order'
	schedule bad --halt soon --priority 1 -- bash -c 'until [ -e fail ]; do sleep 0.02; done; exit 3'
	worker a --slots 2
	eventually begun "$long"
	eventually is "$bad" running
	schedule_many 2 --limit 2 -- ./item
	expect 124 preempt-queue schedule --limit 2 --wait 200ms -- ./item
	aside full bash -c 'code=0; preempt-queue schedule --limit 2 -- ./item || code=$?; echo told >>order; exit $code'
	: >fail
	eventually is "$bad" failed
	# No client is told while it runs, and nothing more is started.
	expect 1 preempt-queue 'done'
	expect 124 preempt-queue join --timeout 300ms
	expect 124 preempt-queue schedule --wait 200ms -- ./item
	are waiting "${ids[@]}"
	runs full
	: >go
	aside_ends full 44
	diff order <(printf '%s\n' long told)
	is "$long" succeeded
	are cancelled "${ids[@]}"
	# What waited for room was not scheduled.
	[ "$(preempt-queue list --json | wc -l)" = 4 ]
	schedule later --limit 2 -- ./item
	expect 0 preempt-queue join "$later"
	ran_once "$long" "$later"
}

@test "WQ-14: a resource is built once for a worker, again when it comes back, and as it was defined last" {
	local i
	preempt-queue resource data -- sh -c 'exit 9'
	preempt-queue resource data -- sh -c 'echo built >>builds; echo "of $PREEMPT_WORKER, $(wc -l <builds)" >"$PREEMPT_RESOURCE_DIR/x"'
	for i in 1 2 3; do preempt-queue schedule --resource data --shell -- 'cat "$PREEMPT_RESOURCE_data/x" >>seen'; done
	worker a
	expect 0 preempt-queue join
	[ "$(sort -u seen)" = "of a, 1" ]
	noticed a
	worker a
	preempt-queue schedule --resource data --shell -- 'cat "$PREEMPT_RESOURCE_data/x" >>seen'
	expect 0 preempt-queue join
	[ "$(tail -n 1 seen)" = "of a, 2" ]
	[ "$(wc -l <builds)" = 2 ]
}

@test "WQ-18: output comes back byte for byte, and survives everything" {
	local binary long empty
	head -c 5000 /dev/urandom >binary
	head -c 1048576 /dev/urandom >long
	schedule binary -- bash -c 'cat binary; tac binary >&2'
	schedule long -- bash -c 'cat long; cat long long >&2'
	schedule empty -- true
	worker a
	schedule_many 5 --tag others -- ./item
	expect 0 preempt-queue join
	[ -z "$(preempt-queue fetch "$empty")" ]
	[ "$(what "$long" stdout_bytes stderr_bytes)" = "1048576 2097152" ]
	same() {
		preempt-queue fetch "$binary" | cmp binary
		preempt-queue fetch --stderr "$binary" | cmp <(tac binary)
		preempt-queue fetch "$long" | cmp long
		preempt-queue fetch --stderr "$long" | cmp <(cat long long)
	}
	same
	worker_killed a
	same
	preempt-queue forget --finished --tag others
	[ "$(preempt-queue list --json | wc -l)" = 3 ]
	preempt-store gc --older-than 0s
	same
	# A failure cancels and forgets nothing that is over.
	worker b
	preempt-queue schedule --halt now -- false
	expect 44 preempt-queue join
	noticed b
	same
	needs_store_file
	mv store elsewhere
	export PREEMPT_STORE=$PWD/elsewhere/q.db
	same
	# The long one is a file, and goes with its command.
	[ -n "$(find elsewhere -size +1000k -name '*.out')" ]
	preempt-queue forget "$long"
	[ -z "$(find elsewhere -size +1000k -name '*.out')" ]
}
