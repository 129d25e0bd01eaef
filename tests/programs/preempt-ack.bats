#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-ack in all its forms; preempt-store join, leave and close.
# takes: 50
# shellcheck disable=SC2016,SC2030,SC2031,SC2154 # text for another shell; a test is a subshell of its own

bats_require_minimum_version 1.5.0
load ../support/group

# No task is silent, however long a call takes to start: no decision without one that is on its way.
patient=(--report-timeout 60s)

# acks [OPTION...]: all tasks call preempt-ack with these at once: answer.I and code.I.
acks() {
	local task pids=()
	for ((task = 0; task < tasks; task++)); do
		as "$task" preempt-ack "${patient[@]}" "$@" >"answer.$task" 2>"err.$task" 3>&- &
		pids[task]=$!
	done
	for ((task = 0; task < tasks; task++)); do
		code_of "${pids[task]}"
		echo "$code" >"code.$task"
	done
}

all_say() { # FILE TEXT
	local task
	for ((task = 0; task < tasks; task++)); do
		[ "$(cat "$1.$task")" = "$2" ] || { tail -n +1 "$1."* err.* >&2; return 1; }
	done
}

@test "nothing is claimed: 1, and the board stays as it was" {
	join 2
	as 0 run -1 --separate-stderr preempt-ack
	[ -z "$output" ]
	as 0 run -1 --separate-stderr preempt-ack --saved --wait
	[ ! -e "${boards[0]}/hold" ]
}

@test "the board form: hold, the largest next boundary, exit; saved, all saved, leave with 42" {
	join 3
	at 0 4
	at 1 7
	at 2 2
	as 2 preempt-claim
	acks
	all_say code 0
	all_say answer "8 exit"
	[ "$(cat "${boards[0]}/hold")" = "exit 8 ${agents[0]}" ]
	acks # again: the same answer
	all_say answer "8 exit"
	for task in 0 1 2; do
		at "$task" 8
		saves "$task" 8
	done
	acks --saved
	all_say code 0
	acks --saved --wait
	all_say code 0
	[ "$(cat "${boards[1]}/hold")" = "leave 42" ]
	acks --saved --wait
	all_say code 0
	[ "$(cat "${boards[1]}/hold")" = "leave 42" ]
	has_key SAVED/1/2
	has_key RECEIVED_SIGNAL_RUN_TO_CHECKPOINT_0
}

@test "a checkpoint on demand: save and run on, as often as asked; --json" {
	join 2
	for step in 7 20; do
		preempt-claim --then continue
		at 0 $((step - 1))
		at 1 $((step - 3))
		acks --json
		all_say code 0
		all_say answer "{\"kind\":\"save\",\"step\":$step}"
		for task in 0 1; do
			at "$task" "$step"
			saves "$task" "$step"
		done
		acks --saved --wait
		all_say code 0
		acks
		all_say answer "$step save"
	done
	[ ! -e "${boards[0]}/hold" ]
}

@test "one has not called yet: it constrains no task; no task has: nothing to save, 42" {
	join 2
	at 0 4
	as 0 preempt-claim
	(
		eventually has_key RUN_TO_CHECKPOINT
		at 1 0 # its first call, held at once
	) 3>&- &
	acks
	all_say answer "5 exit"
	as 0 preempt-store leave --code 42 3>&- & # stays until the other one has left, too
	as 1 preempt-store leave --code 42
	wait $!
	join 2
	as 0 preempt-claim
	acks
	all_say code 42
	all_say answer ""
	grep -q "no task has begun to train" err.0
}

@test "--wait without the others' saves ends with --timeout, 124; a task without a save: 1 and leave 43" {
	join 2
	at 0 4
	at 1 4
	as 0 preempt-claim
	acks
	at 0 5
	saves 0 5
	in_vain as 0 preempt-ack --saved --wait
	as 1 preempt-store leave --code 43
	as 0 run -1 --separate-stderr preempt-ack --saved --wait
	[[ $stderr = *"not all tasks have saved"* ]]
	[ "$(cat "${boards[0]}/hold")" = "leave 43" ]
}

@test "--wait shows progress on a terminal, and only there" {
	join 2
	at 0 4
	at 1 4
	as 0 preempt-claim
	acks
	at 0 5
	saves 0 5
	# shellcheck disable=SC2016 # for the shell in the terminal
	as 0 script -qefc 'preempt-ack --saved --wait & echo $! >pid; wait $!' terminal >/dev/null \
		</dev/null 3>&- &
	wait=$!
	started+=("$wait")
	eventually grep -q "1 of 2 saved" terminal
	# It reads next when all is done: the summary then stands before the records of the tasks.
	started+=("$(<pid)")
	kill -STOP "$(<pid)"
	saves 1 5
	at 1 5
	as 1 preempt-ack --saved --wait 2>err
	kill -CONT "$(<pid)"
	code_of "$wait"
	[ "$code" = 0 ]
	grep -q $'\r2 of 2 saved' terminal
	run ! grep "of 2 saved" err
}

@test "a long grace period: --wait stays after the first save, and opens the final round in time" {
	join 2
	at 0 4
	at 1 4
	as 0 preempt-claim --grace 10m
	acks
	all_say answer "5 save"
	# Their steps take so long that the final round is due 3 s after the claim, and its save has time.
	for task in 0 1; do
		preempt-store put "run/r/000001/STEP/1/$task" '{"step":4,"next":5,"step_ms":298000}'
	done
	for task in 0 1; do
		at "$task" 5
		saves "$task" 5
		as "$task" preempt-ack "${patient[@]}" --saved --wait 2>"err.$task" 3>&- &
		started[task]=$!
	done
	eventually has_key ROUND/2
	eventually grep -q exit "${boards[0]}/hold"
	for task in 0 1; do
		at "$task" 6
		saves "$task" 6
	done
	for task in 0 1; do
		code_of "${started[task]}"
		[ "$code" = 0 ]
	done
	[ "$(cat "${boards[0]}/hold")" = "leave 42" ]
}

@test "the time that saves take is remembered, and a grace period that it fills is not trained in" {
	join 2
	at 0 4
	at 1 4
	as 0 preempt-claim --then continue
	acks
	all_say answer "5 save"
	for task in 0 1; do
		at "$task" 5
		touch -d '36 seconds ago' "${boards[task]}/step" "${boards[task]}/hold"
		saves "$task" 5
	done
	acks --saved
	all_say code 0
	[[ $(preempt-store get run/r/MEASURE) =~ \"save_ms\":[3-9][0-9]{4}, ]]
	at 0 6
	at 1 6
	as 0 preempt-claim --grace 60s
	acks
	all_say answer "7 exit"
}

@test "PH-2 a broken group is 44 with its reason, also for a task that waits for the saves" {
	join 3
	at 0 4
	as 2 preempt-store leave --code 9
	as 0 run -44 --separate-stderr preempt-ack
	[[ $stderr = *"task 2 failed"* ]]
	as 0 run -44 --separate-stderr preempt-ack --saved --wait
}

@test "wrong board, no board, a board that goes away, an agent that goes away" {
	join 2
	run -2 --separate-stderr preempt-ack --task 0 --tasks 2
	[[ $stderr = *"PREEMPT_DIR"* ]]
	as 0 run -2 --separate-stderr preempt-ack --board /nowhere
	as 0 run -2 --separate-stderr preempt-ack --board "$PWD"
	[[ $stderr = *"is not a board"* ]]
	as 0 preempt-claim
	at 0 4
	at 1 4
	as 0 preempt-ack --report-timeout 1h 2>err 3>&- &
	ack=$!
	started+=("$ack")
	eventually has_key STEP/1/0
	kill "${agents[0]}"
	code_of "$ack"
	[ "$code" = 43 ]
	as 1 preempt-ack --report-timeout 1h --saved 2>err 3>&- &
	ack=$!
	started+=("$ack")
	eventually test -e "${boards[1]}/hold"
	eventually rm -rf "${boards[1]}" # it may be at work in it
	code_of "$ack"
	[ "$code" = 1 ]
}

@test "all inotify instances of the user are taken: the save on the board is seen all the same" {
	needs_store_file
	join 1
	at 0 4
	as 0 preempt-claim
	# (Leak checks do not work under strace.)
	ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 as 0 strace -f -o trace -e trace=inotify_init1 \
		-e inject=inotify_init1:error=EMFILE preempt-ack --saved --wait 2>err 3>&- &
	ack=$!
	started+=("$ack")
	eventually grep -qs exit "${boards[0]}/hold"
	at 0 5
	saves 0 5
	code_of "$ack"
	[ "$code" = 0 ]
	[ "$(cat "${boards[0]}/hold")" = "leave 42" ]
	grep -q INJECTED trace
}

@test "task >= tasks, garbage numbers and senseless options are refused" {
	join 2
	as 0 run -2 --separate-stderr preempt-ack --task 2
	as 0 run -2 --separate-stderr preempt-ack --task 2 --tasks 3
	[[ $stderr = *"has 2 tasks"* ]]
	as 0 run -2 --separate-stderr preempt-ack --report-timeout forever
	as 0 run -1 --separate-stderr preempt-ack --attempt 9
	as 0 run -75 --separate-stderr preempt-ack --store "$PWD/not/mounted/s.db"
	PREEMPT_AGENT=0x7 run -2 --separate-stderr preempt-ack --board "${boards[0]}" --task 0 --tasks 2
}

@test "SY-11 a board with garbage is damage (65), and garbage in the store passes" {
	join 1
	preempt-store put run/r/000001/STEP/1/0 garbage
	preempt-store put run/r/000001/SAVED/1/0 garbage
	as 0 preempt-claim
	at 0 4
	as 0 run -75 --separate-stderr timeout --preserve-status 60 preempt-ack --timeout 500ms ||
		[[ $status = 124 || $status = 0 ]]
	echo garbage >"${boards[0]}/hold"
	as 0 run -65 --separate-stderr preempt-ack
}

# ---- join, leave, close ----

@test "join prints export lines that eval understands, whatever is in the names, and TaskProlog where they are plain" {
	mkdir "a b'c\"d \$(touch bad)"
	export PREEMPT_STORE="$PWD/a b'c\"d \$(touch bad)/s.db"
	XDG_RUNTIME_DIR="$PWD/a b'c\"d \$(touch bad)" preempt-store join --task 0 --tasks 1 --pid $$ >lines
	run ! grep -v '^export PREEMPT_[A-Z]*=' lines
	store=$PREEMPT_STORE
	unset PREEMPT_STORE
	eval "$(cat lines)"
	[ "$PREEMPT_STORE" = "$store" ]
	[ -d "$PREEMPT_DIR" ]
	[ ! -e bad ]
	[ "$PREEMPT_ATTEMPT" = 1 ]
	[ "$PREEMPT_AGENT" = $$ ]
	run -0 --separate-stderr preempt-store leave
	[ "$output" = 0 ]
	[ ! -d "$PREEMPT_DIR" ]
	unset "${!PREEMPT_@}"
	export PREEMPT_STORE=$PWD/s.db PREEMPT_RUN=r
	preempt-store join --task 0 --tasks 1 --pid $$ >lines
	run ! grep "[\"']" lines # Slurm takes what follows = as it is
}

@test "joining again by the same process is the same place; another one is refused with the first one's number" {
	join 1
	as 0 run -0 --separate-stderr preempt-store join --pid "${agents[0]}"
	[[ $output = *PREEMPT_ATTEMPT=1* ]]
	[[ $output =~ PREEMPT_LIFE=[0-9a-f]{24} ]]
	as 0 run -2 --separate-stderr preempt-store join --pid $$
	[[ $stderr = *"task 0 of attempt 1 is running (pid ${agents[0]}"* ]]
}

@test "two jobs under one name: another number of tasks, or another launch, is refused and the cure named" {
	stand_for 0
	PREEMPT_LAUNCH=slurm:1:0 PREEMPT_TASKS=2 join_one 0 --timeout 10m >joined.0 2>err.0 3>&- &
	started+=($!)
	eventually has_key TASK/0
	PREEMPT_TASKS=3 run -2 --separate-stderr join_one 1 --timeout 60s
	[[ $stderr = *"--run"* ]]
	PREEMPT_LAUNCH=slurm:2:0 PREEMPT_TASKS=2 run -2 --separate-stderr join_one 1 --timeout 60s
	[[ $stderr = *"two jobs, launch slurm:1:0"* || $stderr = *"launch slurm:1:0"* ]]
	[[ $stderr = *"--run"* ]]
	run -1 has_key TASK/1
}

@test "a lingering script of an older start is refused and cannot claim" {
	stand_for 0
	PREEMPT_LAUNCH=slurm:1:1 PREEMPT_TASKS=1 join_one 0 >joined.0
	agents=("$$")
	PREEMPT_LAUNCH=slurm:1:0 PREEMPT_TASKS=1 run -2 --separate-stderr join_one 0 --timeout 60s
	[[ $stderr = *"older; end this process"* ]]
	agents=()
}

@test "a dead predecessor is buried: the others are told, and the next attempt begins without waiting for it" {
	join 2
	kill -KILL "${agents[0]}"
	wait "${agents[0]}" || :
	stand_for 0
	PREEMPT_TASKS=2 join_one 0 --timeout 5m >joined.0 2>err.0 3>&- &
	again=$!
	started+=("$again")
	eventually has_key DEAD/0
	as 1 run -44 --separate-stderr preempt-ack --attempt 1
	[[ $stderr = *"task 0 was restarted"* ]]
	as 1 run -0 --separate-stderr preempt-store leave --attempt 1 --code 44
	PREEMPT_TASKS=2 join_one 1 --timeout 5m >joined.1
	code_of "$again"
	[ "$code" = 0 ]
	grep -q PREEMPT_ATTEMPT=2 joined.0
	grep -q PREEMPT_ATTEMPT=2 joined.1
}

@test "a dead attempt of fewer tasks is buried by a task that it never had" {
	join 1
	kill -KILL "${agents[0]}"
	wait "${agents[0]}" || :
	stand_for 8
	PREEMPT_TASKS=9 join_one 8 --timeout 5m >joined.8 2>err.8 3>&- &
	started+=("$!")
	eventually has_key SEAL
	[ "$(preempt-store get run/r/000001/SEAL | field text)" = "a new launch has taken over" ]
}

@test "a task that died while the others joined and is back: they join the next attempt with it" {
	local first second task
	for task in 0 1 2; do
		stand_for "$task"
	done
	PREEMPT_TASKS=3 join_one 0 --timeout 5m >joined.0 2>err.0 3>&- &
	first=$!
	PREEMPT_TASKS=3 join_one 1 --timeout 5m >joined.1 2>err.1 3>&- &
	second=$!
	started+=("$first" "$second")
	eventually has_key TASK/0
	eventually has_key TASK/1
	# The shell that stands for task 1 dies, and another comes in its place.
	kill -KILL "${agents[1]}" "$second"
	wait "${agents[1]}" "$second" || :
	stand_for 1
	PREEMPT_TASKS=3 join_one 1 --timeout 5m >joined.1 2>err.1 3>&- &
	second=$!
	started+=("$second")
	eventually preempt-store get -q run/r/000002/TASK/0
	PREEMPT_TASKS=3 join_one 2 --timeout 5m >joined.2
	code_of "$first"
	[ "$code" = 0 ]
	code_of "$second"
	[ "$code" = 0 ]
	grep -q PREEMPT_ATTEMPT=2 joined.0
}

@test "a join ends with the process that it is for, and does not join again for it" {
	sleep 1000 3>&- &
	agents[0]=$!
	PREEMPT_TASKS=2 preempt-store join --task 0 --pid "${agents[0]}" --timeout 10m 2>err.0 3>&- &
	first=$!
	started+=("$first")
	eventually has_key TASK/0
	kill -KILL "${agents[0]}"
	wait "${agents[0]}" || :
	code_of "$first"
	[ "$code" = 1 ]
	grep -q "process ${agents[0]}, for which this would join, is gone" err.0
	run -1 has_key LEFT/0
}

@test "the newest attempt is missing from the store: that is reported, and not that the process is gone" {
	join 1
	preempt-store rm run/r/000001/OPEN
	PREEMPT_TASKS=1 run -1 --separate-stderr join_one 0
	[[ $stderr = *"run r has no attempt 1"* ]]
	[[ $stderr != *"is gone"* ]]
}

# join_waits TIMEOUT: task 0, one of two, waits as process $first in a store that can be moved away.
join_waits() {
	mkdir -m 700 store
	export PREEMPT_STORE=$PWD/store/s.db
	PREEMPT_TASKS=2 join_one 0 --timeout "$1" >joined.0 2>err.0 3>&- &
	first=$!
	started+=("$first")
	eventually has_key TASK/0
}

@test "the store is unreachable while a task waits for the others to join: it waits on, and joins with them" {
	join_waits 10m
	mv store away
	eventually grep -q "; trying again" err.0
	mv away store
	PREEMPT_TASKS=2 join_one 1 --timeout 5m >joined.1
	code_of "$first"
	[ "$code" = 0 ]
	grep -q PREEMPT_ATTEMPT=1 joined.0
	grep -q "the store answers again" err.0
}

@test "the store is unreachable while a task waits for the others to join, until --timeout: 75, and why" {
	# Where the store went away only after that time, once more with a longer one.
	for limit in 3s 20s 60s; do
		rm -rf store away
		join_waits $limit
		mv store away
		code_of "$first"
		[ "$code" = 124 ] || break
	done
	[ "$code" = 75 ]
	[[ $(tail -n 1 err.0) == *"$PWD/store disappeared while it was in use"* ]]
	[[ $(tail -n 1 err.0) != *"trying again"* ]]
}

@test "the process is gone while the store is unreachable: its join ends" {
	sleep 1000 3>&- &
	agents[0]=$!
	join_waits 10m
	mv store away
	eventually grep -q "; trying again" err.0
	kill -KILL "${agents[0]}"
	wait "${agents[0]}" || :
	code_of "$first"
	[ "$code" = 1 ]
	grep -q "process ${agents[0]}, for which this would join, is gone" err.0
}

@test "a task whose board cannot be made leaves with an error, which ends the others" {
	tasks=2
	touch file
	stand_for 0
	stand_for 1
	PREEMPT_TASKS=2 join_one 1 --timeout 10m >joined.1 2>err.1 3>&- &
	started+=($!)
	PREEMPT_TASKS=2 run -75 --separate-stderr join_one 0 --timeout 10m --board "$PWD/file"
	[[ $stderr = *"make a board in $PWD/file"* ]]
	[ "$(preempt-store get run/r/000001/LEFT/0 | field reason)" = failed ]
	code_of "${started[-1]}"
	if [ "$code" != 44 ]; then # all had joined before it learned of that
		as 1 run -44 --separate-stderr preempt-heartbeat --period 100ms -- sleep 1000
		echo "$stderr" >>err.1
	fi
	grep -q "task 0 failed" err.1
	[[ $(preempt-store get run/r/000001/ERROR | field line) = *"make a board in $PWD/file"* ]]
}

@test "joining gives up after --timeout and names the missing" {
	PREEMPT_TASKS=5 run -124 --separate-stderr preempt-store join --task 2 --pid $$ --timeout 300ms
	[[ $stderr = *"1 of 5 tasks have joined; missing: 0-1,3-4"* ]]
	[ -z "$output" ]
}

@test "leave: what each code means, the code to leave with, and the last one closes" {
	local row code reason state left
	for row in "0 completed completed 0" "42 saved failed 42" "43 preempted failed 43" "44 peer failed 44" "9 failed failed 9"; do
		read -r code reason state left <<<"$row"
		another_store
		join 2
		as 0 run -0 --separate-stderr preempt-store leave --code "$code"
		[ "$output" = "$left" ]
		as 0 run -0 --separate-stderr preempt-store leave --code 7 # what was said first stands
		[ "$(preempt-store get run/r/000001/LEFT/0 | field reason)" = "$reason" ]
		run -1 has_key CLOSED
		as 1 preempt-store leave --code 0 2>/dev/null
		[ "$(preempt-store get run/r/000001/CLOSED | field state)" = "$state" ]
	done
}

@test "leave after a claim: a training that failed was preempted, 43; without a claim its failure is an error for all" {
	join 2
	as 0 preempt-claim
	as 0 preempt-store leave --code 42 3>&- & # stays until the other one has left, too
	as 1 run -0 --separate-stderr preempt-store leave --code 137
	[ "$output" = 43 ]
	run -1 has_key ERROR
	wait $!
	another_store
	join 2
	as 1 run -0 --separate-stderr preempt-store leave --code 3
	[ "$(preempt-store get run/r/000001/ERROR | field code)" = 3 ]
	as 0 run -0 --separate-stderr preempt-store leave --code 137
	[ "$output" = 44 ]
}

@test "leave by a task that never joined, that does not exist, of a run that does not: no, and nothing is written" {
	PREEMPT_TASKS=2 run -124 --separate-stderr preempt-store join --task 0 --pid $$ --timeout 200ms
	run -1 --separate-stderr preempt-store leave --task 1 --tasks 2
	[[ $stderr = *"has not joined"* ]]
	run -2 --separate-stderr preempt-store leave --task 5 --tasks 9
	run -1 --separate-stderr preempt-store leave --run other --task 0 --tasks 1
	run -2 --separate-stderr preempt-store leave --task 0 --tasks 2 --code 256
	run -1 has_key LEFT/1
}

@test "close ends an attempt of which nothing runs any more, twice is fine, and the next one can begin" {
	join 2
	run -1 --separate-stderr preempt-store close
	[[ $stderr = *"attempt 1 runs: task 0-1 (process ${agents[0]} on "* ]]
	run -1 has_key CLOSED
	as 1 preempt-store leave --code 0 >/dev/null &
	kill -KILL "${agents[0]}"
	until ! kill -0 "${agents[0]}" 2>/dev/null; do sleep 0.02; done
	wait $!
	run -0 --separate-stderr preempt-store close
	[ "$(preempt-store get run/r/000001/CLOSED | field state)" = failed ]
	run -0 --separate-stderr preempt-store close
	join 1
	[ "$(preempt-store get run/r/LAST)" = '{"attempt":2}' ]
	# A preemption is under way: its task saves, also with --force; another one has ended unseen.
	as 0 preempt-claim
	run -1 --separate-stderr preempt-store close --force
	[[ $stderr = *"attempt 2 is being preempted: task 0 (process ${agents[0]} on "*"); wait until it has ended"* ]]
	kill -KILL "${agents[0]}"
	until ! kill -0 "${agents[0]}" 2>/dev/null; do sleep 0.02; done
	preempt-store close
	# A script that only beats sees a close by force, too.
	join 1
	PREEMPT_ATTEMPT=3 as 0 preempt-heartbeat -v --period 100ms --pid "${agents[0]}" 2>beats 3>&- &
	started+=("$!")
	eventually grep -q timeout beats
	preempt-store close --force
	code_of "${started[-1]}"
	[ "$code" = 44 ]
	grep -q "it was closed by preempt-store close" beats
	run -1 --separate-stderr preempt-store close --run other
}

# It ignores TERM, the last of the notices, by now.
serves() {
	(( 0x$(sed -n "s/^SigIgn:[[:space:]]*//p" "/proc/$served/status") & 1 << 14 ))
}

@test "--serve: refused beside other work, and where nothing was joined; TERM does not end it, leaving does" {
	join 1
	run -2 --separate-stderr as 0 preempt-ack --serve --saved
	[[ $stderr = *"--serve goes with none of"* ]]
	run -2 --separate-stderr as 0 preempt-ack --serve
	[[ $stderr = *"PREEMPT_ATTEMPT"* ]]
	PREEMPT_TASK=0 PREEMPT_TASKS=1 PREEMPT_ATTEMPT=1 PREEMPT_DIR=${boards[0]} PREEMPT_AGENT=${agents[0]} \
		preempt-ack --serve 2>err 3>&- &
	served=$!
	started+=("$served")
	eventually serves
	at 0 2
	as 0 preempt-claim >/dev/null
	kill -TERM "$served"
	at 0 3
	eventually has_key RECEIVED_SIGNAL_RUN_TO_CHECKPOINT_0
	kill -TERM "$served"
	saves 0 "$(preempt-store get run/r/000001/RUN_TO_CHECKPOINT | field step)"
	eventually has_key SAVED/1/0
	eventually grep -q "leave 42" "${boards[0]}/hold"
	as 0 preempt-store leave --code 42 >/dev/null
	code_of "$served"
	[ "$code" = 0 ]
}

@test "the process of PREEMPT_AGENT must exist; below preempt-run (PID.START) our parent has the board" {
	join 2
	agents[0]=2147483647
	run -1 --separate-stderr as 0 preempt-ack --serve --attempt 1
	[[ $stderr = *"process 2147483647 (PREEMPT_AGENT) does not exist: unset PREEMPT_AGENT, or join again"* ]]
	as 0 preempt-claim >/dev/null
	at 0 4 # without task 1 nothing is decided yet
	run -43 as 0 preempt-ack --report-timeout 10m
	agents[0]=2147483647.1
	in_vain as 0 preempt-ack --report-timeout 10m
	agents[0]=''
	in_vain as 0 preempt-ack --report-timeout 10m
}

@test "--serve: when the agent is killed its task is declared dead, and the others need not wait" {
	join 2
	PREEMPT_TASK=0 PREEMPT_TASKS=2 PREEMPT_ATTEMPT=1 PREEMPT_DIR=${boards[0]} PREEMPT_AGENT=${agents[0]} \
		preempt-ack --serve 2>err 3>&- &
	served=$!
	started+=("$served")
	eventually serves
	kill -KILL "${agents[0]}"
	code_of "$served"
	[ "$code" = 0 ]
	has_key DEAD/0
}
