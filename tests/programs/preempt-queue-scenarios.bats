#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-queue: the scenarios of the coordinator that it stands for, through the real programs.
# takes: 40
# asan: no (the same programs run with sanitizers in queue_worker.bats and queue_storm.bats)
# shellcheck disable=SC1010,SC2016,SC2094,SC2119,SC2120 # "done" is a word, text for another shell; scenarios take options

bats_require_minimum_version 1.5.0
load ../support/queue

# ---- Scenarios that run once as they are, and once with workers that start staggered ----

take_and_give_back() {
	local id
	schedule id -- ./gated go
	worker a "$@"
	eventually begun "$id" 1
	kill -TERM "${workers[a]}"
	worker_ends a 42
	is "$id" waiting
	[ "$(what "$id" starts)" = 1 ]
	worker b "$@"
	eventually begun "$id" 2
	: >go
	expect 0 preempt-queue join
	is "$id" succeeded
	[ "$(what "$id" worker)" = b ]
	[ "$(what "$id" starts) $(what "$id" preempted) $(what "$id" attempts)" = "2 1 0" ]
	ran_once "$id"
}

each_gives_its_first_back() {
	local ids id starts=0
	# The first that a worker gets says "run me again"; so no worker has run it.
	schedule_many 5 -- bash -c 'mkdir "first.$PREEMPT_WORKER" 2>/dev/null && exit 42
		until [ -d first.a ] && [ -d first.b ]; do sleep 0.02; done; exec ./item'
	worker a "$@"
	worker b "$@"
	eventually test -d first.a
	eventually test -d first.b
	expect 0 preempt-queue join
	are succeeded "${ids[@]}"
	ran_once "${ids[@]}"
	for id in "${ids[@]}"; do starts=$((starts + $(what "$id" starts))); done
	[ "$starts" = 7 ]
}

# An item fails, ones behind it wait; HOW... tells it.
an_item_fails() {
	local how=$1 ids bad later
	shift
	schedule bad --priority 10 -- bash -c 'until [ -e fail ]; do sleep 0.02; done; echo so it is >&2; exit 3'
	schedule_many 4 -- ./item
	worker a "$@"
	eventually is "$bad" running
	: >fail
	eventually is "$bad" failed
	case $how in
	schedule) expect 44 preempt-queue schedule -- ./item ;;
	*) expect 44 preempt-queue "$how" ;;
	esac
	says "command $bad"
	says 'exit code 3\|code 3\|exit 3'
	are cancelled "${ids[@]}"
	expect 1 preempt-queue fetch "${ids[0]}"
	counts waiting 0
	# The queue goes on; who joins is told until that is forgotten.
	schedule later -- ./item
	expect 0 preempt-queue join "$later"
	ran_once "$later"
	expect 44 preempt-queue join
	says "command $bad"
	expect 44 preempt-queue done
	[ "$(preempt-queue list --json | wc -l)" = 6 ]
}

killed_inside() {
	local ids
	schedule_many 10 -- ./gated go
	worker a "$@"
	eventually begun "${ids[0]}" 1
	worker_killed a
	# What it ran is gone with it.
	eventually gone "$(<"begun.${ids[0]}")"
	: >go
	worker b "$@"
	expect 0 preempt-queue join --timeout 200s
	are succeeded "${ids[@]}"
	ran_once "${ids[@]}"
	[ "$(what "${ids[0]}" starts) $(what "${ids[0]}" lost)" = "2 1" ]
}

# ---- As they are ----

@test "WQ-1: take, give back, take, finish" {
	take_and_give_back
}

@test "WQ-2: five items, two workers, each gives its first one back: each item runs once" {
	each_gives_its_first_back
}

@test "WQ-3: join with nothing scheduled, and three joins at once" {
	worker a
	eventually eval 'preempt-store list >/dev/null'
	expect 1 preempt-queue join
	expect 1 preempt-queue done

	local ids i
	schedule_many 5 -- ./gated go
	for i in 1 2 3; do aside "join$i" preempt-queue join; done
	eventually begun "${ids[0]}"
	expect 1 preempt-queue done
	[ ! -e join1.code ] && [ ! -e join2.code ] && [ ! -e join3.code ]
	: >go
	for i in 1 2 3; do aside_ends "join$i" 0; done
	are succeeded "${ids[@]}"
	ran_once "${ids[@]}"
}

@test "join --timeout: 124, also while the store does not answer" {
	local id seconds
	needs_store_file
	schedule id -- ./item
	for seconds in 4 8 16 32; do
		aside away preempt-queue join --watchdog 100ms --timeout "${seconds}s"
		eventually eval 'grep -q watchdog away.err || [ -e away.code ]'
		mv store away
		aside_ends away 124
		mv away store
		# On a machine that stood still its time may have been over before the store was unreachable.
		! grep -q 'not over after the --timeout: .*store/q.db' away.err || return 0
		rm away.code
	done
	false
}

# client N: twenty actions in an order of its own. What it scheduled is in scheduled.N.
client() {
	local i code id
	RANDOM=$1
	for ((i = 0; i < 20; i++)); do
		code=0
		case $((RANDOM % 8)) in
		[0-4]) preempt-queue schedule -- ./item >>"scheduled.$1" || return 10 ;;
		5)
			preempt-queue done || code=$?
			[ "$code" -le 1 ] || return 11
			;;
		6)
			# 1: nothing was scheduled yet
			preempt-queue join --timeout 200s || code=$?
			[ "$code" -le 1 ] || return 12
			;;
		7)
			id=$(tail -n 1 "scheduled.$1" 2>/dev/null) || :
			[ -n "$id" ] || continue
			preempt-queue cancel "$id" || code=$?
			[ "$code" -le 1 ] || return 13
			;;
		esac
	done
}

@test "WQ-3: ten clients of twenty actions each at once" {
	local i id all
	worker a --slots 2
	worker b --slots 2
	for i in {1..10}; do
		: >"scheduled.$i"
		aside "client$i" client "$i"
	done
	for i in {1..10}; do aside_ends "client$i" 0; done
	expect 0 preempt-queue join --timeout 200s
	mapfile -t all < <(cat scheduled.*)
	# Every id is one command's, none is lost, each is over, and the successful ones ran once.
	[ "$(preempt-queue list --json | wc -l)" = "${#all[@]}" ]
	[ "$(sort -u scheduled.* | wc -l)" = "${#all[@]}" ]
	[ "$(($(count succeeded) + $(count cancelled)))" = "${#all[@]}" ]
	[ -z "$(sort ran | uniq -d)" ]
	preempt-queue list --json | sed -n 's/.*"id":\([0-9]*\),"state":"succeeded".*/\1/p' | sort >succeeded
	[ -s succeeded ]
	[ -z "$(sort ran | comm -23 succeeded -)" ]
}

@test "WQ-4: an item fails: join says it, what waits is cancelled, and the queue goes on" {
	an_item_fails join
}

@test "WQ-5: an item fails: schedule says it, what waits is cancelled, and the queue goes on" {
	an_item_fails schedule
}

@test "WQ-6: an item fails: done says it, what waits is cancelled, and the queue goes on" {
	an_item_fails done
}

@test "WQ-8: an error while long items run: they are told to end, what waits is cancelled" {
	local long stubborn bad ids later
	schedule long -- bash -c 'trap "exit 0" TERM; : >begun.long; while :; do sleep 0.02; done'
	schedule stubborn -- bash -c 'trap "" TERM; : >begun.stubborn; while :; do sleep 0.02; done'
	schedule bad -- bash -c 'until [ -e fail ]; do sleep 0.02; done; exit 3'
	worker a --slots 2 --kill-after 300ms
	worker b --slots 1
	eventually test -e begun.long -a -e begun.stubborn
	eventually is "$bad" running
	# Workers that contend choose among more than the first ones: these come when no slot is free.
	schedule_many 4 -- ./item
	: >fail
	expect 44 preempt-queue join
	are cancelled "$long" "$stubborn" "${ids[@]}"
	# Who waits for one of those is told why it is not done.
	expect 44 preempt-queue join "$long"
	expect 44 preempt-queue join "$stubborn"
	preempt-queue retry --cancelled
	preempt-queue forget "$bad"
	preempt-queue cancel "$stubborn" "$long"
	schedule later -- ./item
	expect 0 preempt-queue join "$later" "${ids[@]}"
	ran_once "$later" "${ids[@]}"
}

@test "WQ-8: an error while a long item's worker is dead, or gives it back: it does not wait again, and says why" {
	local dying leaving bad
	schedule dying --priority 3 -- ./gated never
	worker a
	eventually begun "$dying"
	schedule leaving --priority 2 -- bash -c 'trap ": >told; until [ -e go ]; do sleep 0.02; done; exit 9" TERM
		: >begun.leaving; while :; do sleep 0.02; done'
	worker b --grace 200s
	eventually test -e begun.leaving
	schedule bad -- false
	worker c
	eventually is "$bad" failed
	stopped "${workers[a]}"
	kill -TERM "${workers[b]}"
	eventually test -e told
	# This tells both to end, and does not wait for them.
	expect 1 preempt-queue done
	worker_killed a
	: >go
	worker_ends b 42
	expect 44 preempt-queue join
	are cancelled "$dying" "$leaving"
	expect 44 preempt-queue join "$dying"
	says "because command $bad failed"
	expect 44 preempt-queue join "$leaving"
	says "because command $bad failed"
}

@test "WQ-8: --halt soon: an error while a long item runs: that one is waited for, what waits is cancelled" {
	local long bad ids later
	schedule long --priority 2 -- bash -c './gated go; echo long >>order'
	schedule bad --halt soon --priority 1 -- bash -c 'until [ -e fail ]; do sleep 0.02; done; exit 3'
	schedule_many 4 -- ./item
	worker a --slots 2
	eventually begun "$long"
	eventually is "$bad" running
	aside join bash -c 'code=0; preempt-queue join || code=$?; echo join >>order; exit $code'
	: >fail
	eventually is "$bad" failed
	# No worker is told while it runs, and nothing more is started.
	expect 1 preempt-queue done
	expect 124 preempt-queue schedule --wait 200ms -- ./item
	are waiting "${ids[@]}"
	is "$long" running
	: >go
	aside_ends join 44
	diff order <(printf '%s\n' long join)
	is "$long" succeeded
	are cancelled "${ids[@]}"
	schedule later -- ./item
	expect 0 preempt-queue join "$later"
	ran_once "$long" "$later"
}

@test "WQ-9: an error while schedule waits for room: it tells it, when the long item has ended" {
	local long bad ids later
	schedule long --priority 2 -- bash -c './gated go; echo long >>order'
	schedule bad --halt soon --priority 1 -- bash -c 'until [ -e fail ]; do sleep 0.02; done; exit 3'
	worker a --slots 2
	eventually begun "$long"
	eventually is "$bad" running
	schedule_many 2 --limit 2 -- ./item
	expect 124 preempt-queue schedule --limit 2 --wait 200ms -- ./item
	aside full bash -c 'code=0; preempt-queue schedule --limit 2 -- ./item || code=$?; echo schedule >>order; exit $code'
	: >fail
	eventually is "$bad" failed
	are waiting "${ids[@]}"
	[ ! -e full.code ]
	: >go
	aside_ends full 44
	diff order <(printf '%s\n' long schedule)
	is "$long" succeeded
	are cancelled "${ids[@]}"
	# What waited for room was not scheduled.
	[ "$(preempt-queue list --json | wc -l)" = 4 ]
	schedule later --limit 2 -- ./item
	expect 0 preempt-queue join "$later"
	ran_once "$long" "$later"
}

@test "WQ-9: schedule waits while the queue is full, and goes on when there is room" {
	local ids
	schedule_many 2 --limit 2 -- ./item
	aside full preempt-queue schedule --limit 2 -- ./item
	expect 124 preempt-queue schedule --limit 2 --wait 200ms -- ./item
	[ ! -e full.code ]
	worker a
	aside_ends full 0
	expect 0 preempt-queue join
	ran_once "${ids[@]}" "$(<full.out)"
}

@test "WQ-10: a worker is killed between items: 10 of 10 are done" {
	local ids first
	schedule_many 5 -- ./item
	first=("${ids[@]}")
	worker a
	expect 0 preempt-queue join
	worker_killed a
	schedule_many 5 -- ./item
	worker b
	expect 0 preempt-queue join --timeout 200s
	ran_once "${first[@]}" "${ids[@]}"
}

@test "WQ-10: a worker is killed inside an item: 10 of 10 are done" {
	killed_inside
}

@test "WQ-10: two workers are killed at once: 10 of 10 are done" {
	local ids
	schedule_many 10 -- ./gated go
	worker a
	worker b
	worker c
	eventually have_begun 3
	worker_killed a b
	: >go
	# The third one sees it.
	expect 0 preempt-queue join --timeout 200s
	are succeeded "${ids[@]}"
	ran_once "${ids[@]}"
	[ "$(preempt-queue list --json | grep -c '"lost":1')" = 2 ]
}

@test "WQ-10: the same worker is killed twice inside the same item: 10 of 10 are done" {
	local ids
	schedule_many 10 -- ./gated go
	for start in 1 2; do
		worker a
		eventually begun "${ids[0]}" "$start"
		worker_killed a
	done
	: >go
	worker a
	expect 0 preempt-queue join --timeout 200s
	are succeeded "${ids[@]}"
	ran_once "${ids[@]}"
	[ "$(what "${ids[0]}" starts) $(what "${ids[0]}" lost)" = "3 2" ]
}

@test "WQ-13: one, two, three transient failures are forgiven, the fourth is a failure" {
	local one two three four
	schedule one -- ./often 75 1
	schedule two -- ./often 75 2
	schedule three -- ./often 75 3
	# Lest it cancels the others, which wait between their starts.
	schedule four --keep-going -- ./often 75 4
	worker a --slots 4
	expect 1 preempt-queue join
	are succeeded "$one" "$two" "$three"
	[ "$(what "$one" starts) $(what "$two" starts) $(what "$three" starts)" = "2 3 4" ]
	is "$four" failed
	[ "$(what "$four" starts) $(what "$four" exit)" = "4 75" ]
}

@test "WQ-13: what counts is transient failures in a row" {
	local id
	# Transient, "run me again", transient, done.
	schedule id --max-transient 1 -- bash -c 'case $PREEMPT_ITEM_ATTEMPT in
		2) exit 42 ;; 1 | 3) exit 75 ;; *) exec ./item ;; esac'
	worker a
	expect 0 preempt-queue join
	is "$id" succeeded
}

resource_data='echo built >>builds; echo "of $PREEMPT_WORKER, $(wc -l <builds)" >"$PREEMPT_RESOURCE_DIR/x"'

@test "WQ-14: a resource is built once for a worker, and again when it comes back" {
	local i
	preempt-queue resource data -- sh -c "$resource_data"
	for i in 1 2 3; do preempt-queue schedule --resource data --shell -- 'cat "$PREEMPT_RESOURCE_data/x" >>seen'; done
	worker a
	expect 0 preempt-queue join
	[ "$(sort -u seen)" = "of a, 1" ]
	kill -TERM "${workers[a]}"
	worker_ends a 42
	worker a
	preempt-queue schedule --resource data --shell -- 'cat "$PREEMPT_RESOURCE_data/x" >>seen'
	expect 0 preempt-queue join
	[ "$(tail -n 1 seen)" = "of a, 2" ]
	[ "$(wc -l <builds)" = 2 ]
}

@test "WQ-14: a worker dies while it builds a resource: it is built when it comes back" {
	local id
	preempt-queue resource data -- sh -c 'echo build >>builds; until [ -e go ]; do sleep 0.02; done; echo x >"$PREEMPT_RESOURCE_DIR/x"'
	schedule id --resource data --shell -- 'cat "$PREEMPT_RESOURCE_data/x" && ./item'
	worker a
	eventually [ -s builds ]
	worker_killed a
	: >go
	worker a
	expect 0 preempt-queue join --timeout 200s
	is "$id" succeeded
	ran_once "$id"
	[ "$(wc -l <builds)" = 2 ]
}

@test "WQ-14: a worker is treated as dead while it builds a resource: it does not start what another has done" {
	local id
	preempt-queue resource data -- sh -c '[ "$PREEMPT_WORKER" = b ] || { echo $$ >building; until [ -e go ]; do sleep 0.02; done; }'
	schedule id --resource data --stdout out -- sh -c 'echo "of $PREEMPT_WORKER"; ./item'
	worker a --limit 6
	eventually [ -s building ]
	stopped "${workers[a]}"
	# All is built when it goes on.
	: >go
	eventually gone "$(<building)"
	worker b
	eventually is "$id" succeeded
	kill -CONT "${workers[a]}"
	eventually grep -q 'declared dead' a.err
	[ "$(<out)" = "of b" ]
	ran_once "$id"
}

@test "a worker whose store is slower than its period starts what it takes" {
	needs_store_file
	local id
	schedule id -- ./item
	# A turn of three requests takes longer than two periods.
	strace -D -f -o trace -P "$PREEMPT_STORE" -e trace=openat -e inject=openat:delay_enter=150000 \
		preempt-queue work --worker a "${pace[@]}" --period 100ms 2>a.err 3>&- &
	workers[a]=$!
	eventually is "$id" succeeded
	ran_once "$id"
}

@test "WQ-14: a failed resource is no error while no worker uses it, and one for who does" {
	local other user
	preempt-queue resource broken -- sh -c 'echo no such data >&2; exit 5'
	schedule other -- ./item
	worker a
	expect 0 preempt-queue join
	is "$other" succeeded
	schedule user --resource broken -- ./item
	expect 44 preempt-queue join
	says "command $user"
	is "$user" failed
	what "$user" text | grep broken
	ran_once "$other"
}

@test "WQ-15: with a staggered start: take and give back, items given back, an error, a worker killed" {
	local scenario
	for scenario in take_and_give_back each_gives_its_first_back "an_item_fails join" killed_inside; do
		mkdir -p "staggered/${scenario%% *}/store"
		chmod 700 "staggered/${scenario%% *}/store"
		(
			cd "staggered/${scenario%% *}" || exit
			export PREEMPT_STORE=$PWD/store/q.db
			write_items
			trap teardown EXIT
			$scenario --start-delay 300ms
		)
	done
}

@test "WQ-15: workers start staggered by their index, and the delay is capped" {
	local began=$EPOCHREALTIME ids
	schedule_many 3 -- bash -c 'echo "$PREEMPT_WORKER $EPOCHREALTIME" >>began; until [ -e go ]; do sleep 0.02; done'
	# A name that is a number is the index; the first one's delay would be 1000 s.
	worker 1000 --start-delay 1s --start-delay-max 2s
	worker 1 --start-delay 1s --start-delay-max 2s
	worker 0 --start-delay 1s --start-delay-max 2s
	eventually eval '[ "$(wc -l <began)" = 3 ]'
	: >go
	expect 0 preempt-queue join
	awk -v from="$began" '{ delay[$1] = $2 - from }
		END { exit !(delay[1] >= 1 && delay[1000] >= 2) }' began
}

@test "WQ-16: the watchdog reports what runs while nothing ends, and nothing after that" {
	local id reports
	schedule id -- ./gated go
	worker a --watchdog 500ms --idle-exit 2s
	eventually grep "command $id" a.err
	: >go
	expect 0 preempt-queue join
	reports=$(grep -c watchdog a.err)
	# Idle for four times the watchdog's time.
	worker_ends a 0
	[ "$(grep -c watchdog a.err)" = "$reports" ]
}

@test "WQ-17: a worker joins in the middle and gets work" {
	local ids
	schedule_many 10 -- bash -c '[ "$PREEMPT_WORKER" = b ] || exec ./gated go; exec ./item'
	worker a
	eventually begun "${ids[0]}"
	worker b
	# All but the one that the first has.
	eventually eval '[ "$(wc -l <ran)" = 9 ]'
	is "${ids[0]}" running
	: >go
	expect 0 preempt-queue join
	ran_once "${ids[@]}"
	[ "$(preempt-queue list --json | grep -c '"worker":"b"')" = 9 ]
}

@test "WQ-18: a fetched result survives everything" {
	local short long ids
	schedule short -- printf 'a\0b\n'
	schedule long -- bash -c 'yes "line of long" | head -c 100000; echo err >&2'
	worker a
	schedule_many 20 --tag others -- ./item
	expect 0 preempt-queue join
	preempt-queue fetch "$short" >short
	preempt-queue fetch "$long" >long
	cmp short <(printf 'a\0b\n')
	cmp long <(yes "line of long" | head -c 100000)
	same() {
		preempt-queue fetch "$short" | cmp short
		preempt-queue fetch "$long" | cmp long
		[ "$(preempt-queue fetch --stderr "$long")" = err ]
	}
	worker_killed a
	same
	preempt-queue forget --finished --tag others
	[ "$(preempt-queue list --json | wc -l)" = 2 ]
	same
	preempt-store gc --older-than 0s
	same
	# A failure cancels and forgets nothing that is over.
	worker b
	preempt-queue schedule -- false
	expect 44 preempt-queue join
	same
	kill -TERM "${workers[b]}"
	worker_ends b 42
	needs_store_file
	mv store elsewhere
	PREEMPT_STORE=$PWD/elsewhere/q.db same
}
