#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-queue work: preemption told apart from failure, attempts, time limits, cancel, and what
# happens to commands when their worker, its store or its machine misbehaves.
# takes: 55
# shellcheck disable=SC1010,SC2016 # text for another shell

bats_require_minimum_version 1.5.0
load ../support/queue

# ---- Preempted ----

@test "a notice: commands get --term-signal and the grace, and go back without using an attempt; 42" {
	local one two
	cat >resumes <<-'ITEM'
		#!/bin/bash
		echo "$PREEMPT_ITEM_ATTEMPT $PREEMPT_ITEM_DIR" >>"starts.$PREEMPT_ITEM_ID"
		[ ! -e "$PREEMPT_ITEM_DIR/saved" ] || { cat "$PREEMPT_ITEM_DIR/saved"; exec ./item; }
		# To save takes longer than to be killed would.
		trap 'sleep 0.5; echo "saved in $PREEMPT_ITEM_ATTEMPT" >"$PREEMPT_ITEM_DIR/saved"; exit 9' USR2
		: >"begun.$PREEMPT_ITEM_ID"
		while :; do sleep 0.05; done
	ITEM
	chmod +x resumes
	schedule one --max-attempts 1 -- ./resumes
	schedule two --max-attempts 1 -- ./resumes
	worker a --slots 2 --term-signal USR2 --grace 30s --kill-after 100ms
	eventually [ -e "begun.$one" ]
	eventually [ -e "begun.$two" ]
	kill -TERM "${workers[a]}"
	worker_ends a 42
	grep -q 'notice: signal:TERM' a.err
	are waiting "$one" "$two"
	worker b
	expect 0 preempt-queue join
	for id in "$one" "$two"; do
		is "$id" succeeded
		[ "$(preempt-queue fetch "$id")" = "saved in 1" ]
		[ "$(what "$id" starts) $(what "$id" preempted) $(what "$id" attempts)" = "2 1 0" ]
		# The number of the start, and the same directory.
		diff <(cut -d' ' -f1 "starts.$id") <(printf '1\n2\n')
		[ "$(cut -d' ' -f2 "starts.$id" | sort -u | wc -l)" = 1 ]
	done
	[ "$(cut -d' ' -f2 "starts.$one" "starts.$two" | sort -u | wc -l)" = 2 ]
}

@test "a notice: a command that ignores the signal is killed at the deadline, and goes back" {
	local id pid began
	local grace code
	for grace in 1 2 4 8 16; do
		schedule id -- bash -c 'trap "" TERM; [ "$PREEMPT_ITEM_ATTEMPT" = 1 ] || exec ./item; exec ./gated go'
		worker a --grace "${grace}s"
		eventually begun "$id"
		pid=$(<"begun.$id")
		began=$EPOCHREALTIME
		code=0
		kill -TERM "${workers[a]}"
		eventually gone "${workers[a]}"
		wait "${workers[a]}" || code=$?
		unset "workers[a]"
		# Not before.
		awk -v from="$began" -v to="$EPOCHREALTIME" 'BEGIN { exit !(to - from >= 0.2) }'
		eventually gone "$pid"
		# A quarter of it is for handing in, and the machine may have stood still for that.
		[ "$code" = 75 ] || break
		grep -q 'no time is left' a.err
		preempt-queue cancel "$id"
	done
	[ "$code" = 42 ]
	is "$id" waiting
	[ "$(what "$id" attempts) $(what "$id" preempted)" = "0 1" ]
	worker b
	expect 0 preempt-queue join
	ran_once "$id"
}

@test "a notice: a command that ends with 0 in the grace is done, one that says 93 has failed" {
	local good failed
	schedule good --keep-going -- bash -c 'trap "./item; exit 0" TERM; : >begun.1; while :; do sleep 0.02; done'
	schedule failed --keep-going -- bash -c 'trap "exit 93" TERM; : >begun.2; while :; do sleep 0.02; done'
	worker a --slots 2 --grace 30s
	eventually [ -e begun.1 ]
	eventually [ -e begun.2 ]
	kill -TERM "${workers[a]}"
	worker_ends a 42
	is "$good" succeeded
	is "$failed" failed
	[ "$(what "$failed" exit)" = 93 ]
	ran_once "$good"
}

@test "a notice: nothing more is taken, and what was never started stays" {
	local ids
	schedule_many 5 -- ./gated go
	worker a --grace 30s
	eventually begun "${ids[0]}"
	kill -TERM "${workers[a]}"
	worker_ends a 42
	are waiting "${ids[@]}"
	[ "$(what "${ids[1]}" starts)" = 0 ]
	[ ! -e "begun.${ids[1]}" ]
}

# ---- Failed ----

@test "--max-attempts: so many failures are tried again, one more is a failure" {
	local good bad
	schedule good --max-attempts 3 -- ./often 1 2
	schedule bad --max-attempts 2 --keep-going -- ./often 1 2
	worker a --slots 2
	expect 1 preempt-queue join
	is "$good" succeeded
	is "$bad" failed
	[ "$(what "$good" starts) $(what "$good" attempts)" = "3 2" ]
	[ "$(what "$bad" starts) $(what "$bad" attempts)" = "2 2" ]
}

@test "a command that kills its worker fails after the third, and not for ever" {
	local id name
	schedule id -- bash -c 'kill -KILL $PPID; sleep 100'
	for name in a b c; do
		worker "$name"
		worker_ends "$name" 137
	done
	worker d
	expect 44 preempt-queue join --timeout 200s
	says "command $id"
	is "$id" failed
	[ "$(what "$id" starts) $(what "$id" lost) $(what "$id" ending)" = "3 3 lost" ]
	kill -0 "${workers[d]}"
}

@test "--max-attempts counts lost workers" {
	local id
	schedule id --max-attempts 1 -- ./gated go
	worker a
	eventually begun "$id"
	worker_killed a
	worker b
	expect 44 preempt-queue join --timeout 200s
	[ "$(what "$id" starts) $(what "$id" ending)" = "1 lost" ]
}

@test "--timeout of a command: it is ended, 124; one that ignores TERM is killed" {
	local polite rude
	schedule polite --keep-going --timeout 500ms -- ./gated never
	schedule rude --keep-going --timeout 500ms -- bash -c 'trap "" TERM; exec ./gated never'
	worker a --slots 2 --kill-after 500ms
	expect 1 preempt-queue join
	are failed "$polite" "$rude"
	[ "$(what "$polite" ending) $(what "$polite" exit)" = "timed-out 124" ]
	[ "$(what "$rude" ending) $(what "$rude" exit)" = "timed-out 124" ]
	gone "$(<"begun.$rude")"
	expect 124 preempt-queue fetch --exit-status "$polite"
}

@test "a command that does not exist, cannot be run, or whose directory is gone, fails and says why" {
	local missing forbidden homeless
	: >forbidden
	mkdir gone
	schedule missing --keep-going -- ./there-is-none
	schedule forbidden --keep-going -- ./forbidden
	schedule homeless --keep-going --directory gone -- pwd
	rmdir gone
	worker a
	expect 1 preempt-queue join
	are failed "$missing" "$forbidden" "$homeless"
	[ "$(what "$missing" exit) $(what "$forbidden" exit)" = "127 126" ]
	what "$missing" text | grep there-is-none
	what "$homeless" text | grep gone
	expect 127 preempt-queue fetch --exit-status "$missing"
}

@test "cancel: a command that runs is ended, one that waits is never started, and no worker is told" {
	local runs waits
	schedule runs -- ./gated go
	schedule waits -- ./item
	worker a
	eventually begun "$runs"
	expect 0 preempt-queue cancel "$runs" "$waits"
	eventually is "$runs" cancelled
	eventually gone "$(<"begun.$runs")"
	is "$waits" cancelled
	expect 0 preempt-queue join
	expect 1 preempt-queue fetch "$runs"
	expect 1 preempt-queue cancel "$runs"
	ran_once
}

@test "cancel: a command whose output cannot be kept is cancelled, and its slot is free again" {
	local id next
	# Its files cannot be made in there.
	export PREEMPT_QUEUE_FILES=$PWD/files
	mkdir -m 700 files
	: >files/out
	schedule id -- head -c 40000 /dev/zero
	schedule next -- ./item
	worker a
	eventually grep -q 'cannot be kept' a.err
	is "$id" running
	expect 0 preempt-queue cancel "$id"
	expect 0 preempt-queue join
	is "$id" cancelled
	ran_once "$next"
}

@test "cancel: a command whose worker dies before it could end it does not run again" {
	local id
	schedule id -- ./gated go
	worker a
	eventually begun "$id"
	stopped "${workers[a]}"
	expect 0 preempt-queue cancel "$id"
	worker_killed a
	: >go
	worker b
	expect 0 preempt-queue join --timeout 200s
	is "$id" cancelled
	[ "$(what "$id" starts)" = 1 ]
	ran_once
}

@test "cancel: a command that is on its way back because of a notice does not wait again" {
	local id
	schedule id -- bash -c 'trap ": >told; until [ -e go ]; do sleep 0.02; done; exit 9" TERM
		: >begun.1; while :; do sleep 0.02; done'
	worker a --grace 60s
	eventually [ -e begun.1 ]
	kill -TERM "${workers[a]}"
	eventually [ -e told ]
	expect 0 preempt-queue cancel "$id"
	: >go
	worker_ends a 42
	is "$id" cancelled
	expect 0 preempt-queue join
}

@test "retry: what failed and what was cancelled because of it run again; starts go on, attempts begin again" {
	local bad ids
	schedule bad --priority 1 -- bash -c '[ -e good ] && exec ./item; exit 1'
	schedule_many 3 -- ./item
	worker a
	expect 44 preempt-queue join
	is "$bad" failed
	are cancelled "${ids[@]}"
	: >good
	expect 0 preempt-queue retry --failed
	expect 0 preempt-queue retry --cancelled
	expect 0 preempt-queue join
	are succeeded "$bad" "${ids[@]}"
	[ "$(what "$bad" starts) $(what "$bad" attempts)" = "2 0" ]
	ran_once "$bad" "${ids[@]}"
}

@test "--keep-going: a failure cancels nothing, and join says 1 when all is over" {
	local bad ids
	schedule bad --keep-going --priority 1 -- sh -c 'exit 3'
	schedule_many 5 -- ./item
	worker a
	expect 1 preempt-queue join
	says "$bad"
	is "$bad" failed
	are succeeded "${ids[@]}"
}

# ---- Workers ----

@test "priorities: the highest first, then the oldest" {
	local low first second high
	schedule low --priority -5 -- ./item
	schedule first -- ./item
	schedule second -- ./item
	schedule high --priority 7 -- ./item
	worker a --idle-exit 0
	worker_ends a 0
	diff ran <(printf '%s\n' "$high" "$first" "$second" "$low")
}

@test "{worker} and {per-worker:a,b,c} are the worker's own" {
	local ids
	# One each: every worker waits for the others.
	schedule_many 3 -- bash -c 'echo "$1 $2 $PREEMPT_WORKER_INDEX" >>words; until [ "$(wc -l <words)" = 3 ]; do sleep 0.02; done' \
		sh '{worker}' '{per-worker:red,green,blue}'
	worker 0
	worker 1
	worker 5
	expect 0 preempt-queue join --timeout 200s
	diff <(sort words) <(printf '%s\n' '0 red 0' '1 green 1' '5 blue 5')
	expect 2 preempt-queue schedule -- echo "{per-worker:a,b"
}

@test "--idle-exit: a drained queue ends the workers with 0, one where others still run does not" {
	local id
	schedule id -- ./gated go
	worker a --idle-exit 100ms
	eventually begun "$id"
	worker b --idle-exit 100ms
	# Twice the time of b.
	worker c --idle-exit 0
	sleep 0.5
	kill -0 "${workers[b]}"
	: >go
	worker_ends a 0
	worker_ends b 0
	worker_ends c 0
	is "$id" succeeded
}

@test "two workers of one name: both work, and neither ends what the other runs" {
	local ids
	schedule_many 2 -- ./gated go
	worker a
	started+=("${workers[a]}")
	local first=${workers[a]}
	worker a
	eventually begun "${ids[0]}"
	eventually begun "${ids[1]}"
	[ "$(preempt-queue workers | grep -cw a)" = 2 ]
	kill -KILL "$first"
	: >go
	expect 0 preempt-queue join --timeout 200s
	are succeeded "${ids[@]}"
	kill -0 "${workers[a]}"
}

@test "a worker stopped for longer than its lease: its late result is discarded" {
	local id
	schedule id -- bash -c 'echo "$PREEMPT_WORKER"; exec ./gated "go.$PREEMPT_WORKER"'
	worker a --limit 6
	eventually begun "$id" 1
	stopped "${workers[a]}"
	# Its command ends while it is stopped.
	: >go.a
	worker b
	eventually begun "$id" 2
	kill -CONT "${workers[a]}"
	# It has seen that it was treated as dead.
	eventually [ -s a.err ]
	is "$id" running
	[ "$(what "$id" worker)" = b ]
	: >go.b
	expect 0 preempt-queue join
	[ "$(preempt-queue fetch "$id")" = b ]
	[ "$(what "$id" worker)" = b ]
	# And it works on.
	worker_killed b
	schedule id -- ./item
	expect 0 preempt-queue join
	[ "$(what "$id" worker)" = a ]
}

# numbered N: so many workers are registered; their numbers are in $numbers.
numbered() {
	numbers=$(preempt-queue workers --json | grep -o '"index":[0-9]*')
	[ "$(grep -c . <<<"$numbers")" = "$1" ]
}

@test "a worker that registers again does not keep a number that is another worker's now" {
	local numbers
	worker a --limit 6
	eventually numbered 1
	worker b
	eventually numbered 2
	stopped "${workers[a]}"
	eventually numbered 1
	worker c
	eventually numbered 2
	kill -CONT "${workers[a]}"
	eventually numbered 3
	[ -z "$(sort <<<"$numbers" | uniq -d)" ]
}

# ---- The store ----

# Exactly this worker is registered.
here() {
	local workers
	workers=$(preempt-queue workers --json) && [[ $workers = '{"worker":"'"$1"'",'* && $workers != *$'\n'* ]]
}

@test "the store was unreachable when a worker was treated as dead: it begins again all the same" {
	needs_store_file
	local id
	worker a --limit 6
	eventually here a
	stopped "${workers[a]}"
	worker b
	eventually here b
	worker_killed b
	mv store away
	kill -CONT "${workers[a]}"
	eventually grep -q 'cannot ask the store' a.err
	mv away store
	eventually grep -q 'declared dead' a.err
	schedule id -- ./item
	expect 0 preempt-queue join --timeout 200s
	[ "$(what "$id" worker)" = a ]
}

@test "the store is unreachable for a while: the command runs on, and its result is handed in" {
	needs_store_file
	local id
	schedule id -- bash -c './gated go; echo said'
	worker a --joblog log
	eventually begun "$id"
	mv store away
	: >go
	eventually test -s ran
	eventually grep -q 'cannot ask the store' a.err
	# No worker says "all is done", nor "no".
	expect 75 preempt-queue join --timeout 1s
	expect 75 preempt-queue done
	mv away store
	expect 0 preempt-queue join --timeout 200s
	is "$id" succeeded
	[ "$(preempt-queue fetch "$id")" = said ]
	ran_once "$id"
	kill -0 "${workers[a]}"
	eventually grep -q 'answers again' a.err
	[ "$(grep -c 'cannot ask the store' a.err) $(grep -c 'answers again' a.err)" = "1 1" ]
	eventually eval '[ "$(wc -l <log)" = 2 ]'
}

@test "a command that waits is damaged: results are handed in, and the worker does not say that the store answers" {
	local first second waits key
	schedule first -- ./gated go.1
	schedule second -- ./gated go.2
	worker a --slots 2
	eventually begun "$first"
	eventually begun "$second"
	schedule waits -- ./item
	key=$(preempt-store list queue/default/wait/ | grep -o "queue/default/wait/[^ ]*")
	[[ $key = *"$waits" ]]
	preempt-store put "$key" '[]'
	: >go.1
	eventually grep -q 'cannot ask the store' a.err
	: >go.2
	worker_ends a 65
	are succeeded "$first" "$second"
	[ "$(grep -c 'cannot ask the store' a.err) $(grep -c 'answers again' a.err)" = "1 0" ]
	grep -qF "$key" a.err
}

@test "the store is unreachable at a notice and comes back: the result is kept and handed in" {
	needs_store_file
	local id
	schedule id -- bash -c 'trap "./item; exit 0" TERM; : >begun.1; while :; do sleep 0.02; done'
	worker a --grace 60s
	eventually [ -e begun.1 ]
	mv store away
	kill -TERM "${workers[a]}"
	eventually test -s ran
	mv away store
	worker_ends a 42
	is "$id" succeeded
	[ "$(what "$id" starts)" = 1 ]
	ran_once "$id"
}

@test "the store is unreachable at a notice and stays away: the worker says so, and another runs the command" {
	needs_store_file
	local id
	schedule id -- ./gated go
	worker a --grace 2s
	eventually begun "$id"
	mv store away
	kill -TERM "${workers[a]}"
	worker_ends a 75
	[ -s a.err ]
	eventually gone "$(<"begun.$id")"
	mv away store
	: >go
	worker b
	expect 0 preempt-queue join --timeout 200s
	is "$id" succeeded
	ran_once "$id"
}

@test "join --recovery: with no worker to wait for it says so, 75; and a worker that comes is found" {
	local id
	schedule id -- ./item
	expect 75 preempt-queue join --recovery 500ms
	says worker
	is "$id" waiting
	aside join preempt-queue join --recovery 60s
	worker a
	aside_ends join 0
	schedule id -- ./gated go
	eventually begun "$id"
	worker_killed a
	expect 75 preempt-queue join --recovery 500ms
	says worker
}

@test "join --recovery 0: waits while a worker is alive, and gives up at once when the store cannot be reached" {
	needs_store_file
	local id
	schedule id -- ./gated go
	worker a
	eventually begun "$id"
	aside join preempt-queue join --recovery 0 --watchdog 1500ms
	# It has looked at the workers.
	eventually grep -q watchdog join.err
	mv store away
	aside_ends join 75
	! grep -q -e 'trying again' -e 'no worker was alive' join.err || return 1
	mv away store
	: >go
	expect 0 preempt-queue join
}

@test "join --follow of some commands prints each that ends, also the last ones" {
	local ids
	schedule_many 30 -- ./item
	aside join preempt-queue join --follow --watchdog 100ms "${ids[@]}"
	# It has looked once.
	eventually grep -q watchdog join.err
	worker a --slots 4
	aside_ends join 0
	diff <(awk '{ print $1, $2 }' join.out | sort -n) <(printf '%s succeeded\n' "${ids[@]}" | sort -n)
}

@test "join --follow: a full disk ends it with 75, without another try" {
	local id code=0
	worker a
	schedule id -- ./gated go
	preempt-queue join --follow --watchdog 100ms >/dev/full 2>err 3>&- &
	eventually grep -q watchdog err
	touch go
	wait $! || code=$?
	[ "$code" = 75 ]
	grep -q 'cannot write to stdout' err
	! grep -q 'trying again' err || return 1
}

@test "a machine on which nothing can be started is no sink: others run what it could not" {
	# Forgiven more often than it may be tried there before the other one comes.
	schedule_many 100 --keep-going --max-transient 10 -- bash -c 'sleep 0.05; exec ./item'
	TMPDIR=$PWD/nowhere worker broken
	eventually grep -q 'cannot be started here now' broken.err
	worker sound
	expect 0 preempt-queue join
	are succeeded "${ids[@]}"
	ran_once "${ids[@]}"
	# Said once, and it goes on when it can.
	[ "$(grep -c 'cannot be started here now' broken.err)" = 1 ]
	mkdir nowhere
	schedule id -- ./item
	kill -TERM "${workers[sound]}"
	worker_ends sound 42
	expect 0 preempt-queue join
	is "$id" succeeded
}

@test "a worker with a long grace still watches the others: the command of a dead one runs in that time" {
	local long id
	schedule long -- bash -c 'trap "" TERM; exec ./gated slow'
	worker monitor --grace 600s
	eventually begun "$long"
	schedule id -- bash -c '[ "$PREEMPT_ITEM_ATTEMPT" = 1 ] || exec ./item; exec ./gated never'
	worker dead
	eventually begun "$id"
	# Later than both: it leaves the judging to the lowest that beats.
	worker other
	kill -TERM "${workers[monitor]}"
	eventually grep -q notice monitor.err
	# As a machine that is gone: its process can be seen, its beats are missed.
	stopped "${workers[dead]}"
	eventually is "$id" succeeded
	is "$long" running
	: >slow
	worker_ends monitor 42
	expect 0 preempt-queue join
	ran_once "$long" "$id"
}

# ---- GPUs ----

@test "--gpus-per-slot: no two commands that run at once see the same GPU; too few are refused" {
	local ids=() id
	mkdir smi
	printf '#!/bin/sh\n[ "$1" = -L ] && printf "GPU %%d: fake (UUID: GPU-x)\\n" 0 1 2 3\n' >smi/nvidia-smi
	chmod +x smi/nvidia-smi
	for _ in 0 1; do
		schedule id --shell -- \
			': >"begun.$PREEMPT_ITEM_ID"; while [ ! -e go ]; do sleep 0.05; done; echo "$CUDA_VISIBLE_DEVICES"'
		ids+=("$id")
	done
	CUDA_VISIBLE_DEVICES=7,GPU-ab,3 expect 2 preempt-queue work --slots 2 --gpus-per-slot 2 --idle-exit 0
	PATH=$PWD/smi:$PATH worker a --slots 2 --gpus-per-slot 2 --idle-exit 0
	for id in "${ids[@]}"; do
		eventually [ -e "begun.$id" ]
	done
	: >go
	worker_ends a 0
	[ "$(preempt-queue fetch "${ids[@]}" | sort)" = $'0,1\n2,3' ]
	schedule id --shell -- 'echo "$CUDA_VISIBLE_DEVICES"'
	CUDA_VISIBLE_DEVICES=7,GPU-ab,3 worker b --gpus-per-slot 2 --idle-exit 0
	worker_ends b 0
	[ "$(preempt-queue fetch "$id")" = 7,GPU-ab ]
}

# ---- Output while it is written ----

# shows FILE TEXT: whether the file has exactly this
shows() {
	[ "$(cat "$1" 2>/dev/null)" = "$2" ]
}

@test "fetch --follow: prints what a command writes as it writes it, over a preemption, to its end" {
	local id follower
	cat >writes <<-'ITEM'
		#!/bin/bash
		trap 'exit 42' TERM
		echo "start $PREEMPT_ITEM_ATTEMPT"
		echo err >&2
		until [ -e "go.$PREEMPT_ITEM_ATTEMPT" ]; do sleep 0.02; done
		echo end
		exit 3
	ITEM
	chmod +x writes
	schedule id -- ./writes
	preempt-queue fetch --follow --exit-status "$id" >out 2>said &
	follower=$!
	started+=("$follower")
	worker a
	eventually shows out 'start 1'
	expect 124 preempt-queue fetch --follow --stderr --timeout 1s "$id"
	kill -TERM "${workers[a]}"
	worker_ends a 42
	worker b
	eventually shows out $'start 1\nstart 2'
	[ ! -s said ]
	: >go.2
	code=0
	wait "$follower" || code=$?
	[ "$code" = 3 ]
	shows out $'start 1\nstart 2\nend'
	grep -q "command $id has failed" said
	[ "$(preempt-queue fetch --follow --stderr "$id")" = err ]
	expect 1 preempt-queue fetch --follow 99
}

@test "fetch --follow in another container than the worker: 75, and why" {
	local id inside=(unshare --map-root-user --pid --fork --mount-proc)
	"${inside[@]}" true 2>/dev/null || skip "no container can be made here (unshare)"
	schedule id -- ./gated go
	worker a
	eventually [ -e "begun.$id" ]
	expect 75 "${inside[@]}" preempt-queue fetch --follow "$id"
	says "command $id runs on .*in another container.*fetch --wait"
	: >go
	expect 0 preempt-queue join
}
