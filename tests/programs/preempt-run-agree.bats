#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-run: agreeing and joining under bad conditions, as far as real processes, signals and clocks
# are needed; the rest is in the simulator (tests/sim/group/scenarios.txt).
# shellcheck disable=SC2030,SC2031,SC2034,SC2154 # each test is a subshell with its own variables
# shellcheck disable=SC2012,SC2086 # numbers

bats_require_minimum_version 1.5.0

setup_file() {
	load ../support/trainers/agents
	agents_setup_file
}

setup() {
	load ../support/trainers/agents
	agents_setup
	# No task is given up, or called dead, who is only slow. Where a task is to be missing, the test says so.
	quick=(--report-timeout 60s --save-timeout 120s --join-timeout 120s --kill-after 1s --limit 100)
}

teardown() { agents_teardown; }

# What a save took in earlier attempts, ms.
put_measure() { preempt-store put run/job/MEASURE "{\"save_ms\": $1}" >/dev/null; }
later_than() { (($(date +%s%3N) > $1)); }

@test "SY-10: a training process stopped during the agreement and continued: all save at one step" {
	count_agents 3 --steps 100000 --step-ms 5
	until_true 20 all_begun 3 10
	child=$(command_of 1)
	kill -STOP "$child"
	kill -TERM "${pids[0]}"
	until_true 10 has RUN_TO_CHECKPOINT
	# The others are parked at the step and wait for it.
	until_true 10 has SAVED/1/0
	until_true 10 has SAVED/1/2
	! has SAVED/1/1 || false
	kill -0 "${pids[0]}" && kill -0 "${pids[2]}"
	kill -CONT "$child"
	all_ended 42
	saved_together 3
	nothing_left
}

@test "SY-12: the notice carries the time at which the signal came, and the deadline counts from it" {
	# So long that a final round would begin at once; and there is time for one on a machine that stalls.
	options=(--grace 40s)
	put_measure 18000
	count_agents 1 --steps 100000 --step-ms 5
	until_true 20 all_begun 1 10
	needs_store_file
	mv store away
	at=$(date +%s%3N)
	kill -TERM "${pids[0]}"
	until_true 10 grep -q "preempt-run: notice:" err.0
	heard=$(date +%s%3N)
	until_true 10 grep -q "trying again" err.0
	until_true 10 later_than $((heard + 300))
	mv away store
	all_ended 42
	utc=$(field TERMINATED_WORKER utc)
	((utc >= at - 1 && utc <= heard + 1))
	late=$(($(field TERMINATED_WORKER deadline_utc) - utc - 40000))
	((late > -50 && late < 50))
	nothing_left
}

@test "CS-4: the store outlives all processes: a claim survives KILL of every task, and the next start goes on" {
	count_agents 3 --steps 100000 --step-ms 5 --save-ms 100000
	until_true 20 all_begun 3 10
	kill -TERM "${pids[0]}"
	until_true 10 grep -qs '^save ' job/log/1.1
	kill -KILL "${pids[@]}"
	for i in 0 1 2; do ended $i 137; done
	until_true 10 none_left
	[ "$(field TERMINATED_WORKER task)" = 0 ]
	[ -n "$(field RUN_TO_CHECKPOINT step)" ]
	[ -z "$(ls job/ckpt)" ]
	attempt=2
	count_agents 3 --steps 400
	all_ended 0
	counted 3 400
	attempt=1
	has CLOSED
	nothing_left
}

@test "joining: the missing are named, and who came leaves with 44: run me again" {
	agent 0 5 -- "$COUNT" --dir job
	until_true 20 has TASK/0
	agent 3 5 --join-timeout 3s -- "$COUNT" --dir job
	all_ended 44
	told_by 0 "2 of 5 tasks have joined; missing: 1-2,4 (--join-timeout)"
	[ ! -e job/log ]
	nothing_left
}

@test "joining: a notice before all have joined: that launch leaves with 42, unstarted; latecomers too" {
	for i in 0 1; do agent $i 3 -- "$COUNT" --dir job --steps 10; done
	until_true 10 has TASK/0
	until_true 10 has TASK/1
	kill -TERM "${pids[1]}"
	ended 0 42
	ended 1 42
	[ ! -e job/log ]
	nothing_left
}

@test "joining: INT before all have joined ends that one with 130" {
	for i in 0 1; do agent $i 3 -- "$COUNT" --dir job --steps 10; done
	for i in 0 1; do until_true 10 has TASK/$i; done
	kill -INT "${pids[1]}"
	ended 1 130
	ended 0 44
	grep -q "interrupted before the start" err.0
	nothing_left
}

@test "joining: INT while the checkpoint to resume from is searched: 130, and the command is not started" {
	# Leak checks do not work under strace.
	export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
	strace -o /dev/null true 2>/dev/null || skip "strace may not trace here"
	mkdir ck
	# The first two calls are also made before it joins, by another thread.
	"${interruptible[@]}" strace -D -f -o trace -P "$PWD/ck" -e trace=openat -e inject=openat:signal=STOP:when=3 \
		preempt-run --checkpoints "$PWD/ck" -- touch started >out.0 2>err.0 3>&- &
	pids=($!)
	until_true 10 grep -q 'stopped by SIGSTOP' trace
	has TASK/0
	kill -INT "${pids[0]}"
	kill -CONT "${pids[0]}"
	ended 0 130
	[ ! -e started ]
	[[ $(preempt-store get run/job/000001/ERROR) == *"interrupted before the start"* ]]
	nothing_left
}

@test "joining: a notice while the search for a checkpoint hangs: it leaves with 42 before the machine goes" {
	# Leak checks do not work under strace.
	export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
	strace -o /dev/null true 2>/dev/null || skip "strace may not trace here"
	mkdir ck
	echo weights >"$(ckpt-rotate begin ck 5)/model"
	ckpt-rotate commit ck 5
	touch trace
	# The first thread makes two calls before it joins.
	strace -D -f -o trace -P "$PWD/ck" -e trace=openat -e inject=openat:delay_enter=600000000:when=3 \
		preempt-run --checkpoints "$PWD/ck" --notice signal:TERM --grace 2s -- touch started >out.0 2>err.0 3>&- &
	pids=($!)
	opened() { (($(grep -c openat trace) >= $1)); }
	until_true 10 opened 5
	tracer=$(sed -n 's/^TracerPid:\s*//p' "/proc/${pids[0]}/status")
	kill -TERM "${pids[0]}"
	until_true 60 grep -q 'leaves without telling the other tasks' err.0
	# A thread that the tracer delays cannot end before the tracer does.
	until_true 10 grep -q 'exited with 42' trace
	kill -KILL "$tracer"
	ended 0 42
	[ ! -e started ]
}

@test "joining: HUP of one that was started with nohup changes nothing" {
	(trap '' HUP && exec preempt-run --task 0 --tasks 2 -- true) 2>err.nohup 3>&- &
	local pid=$!
	until_true 10 has TASK/0
	kill -HUP "$pid"
	preempt-run --task 1 --tasks 2 -- true
	wait "$pid"
	nothing_left
}

@test "two jobs under one name: the second is refused, and says whose it is" {
	count_agents 2 --steps 100000 --step-ms 5
	until_true 20 all_begun 2 2
	run -2 preempt-run --task 0 --tasks 2 -- true
	[[ $output == *"run job: task 0 of attempt 1 is running (pid ${pids[0]} on $HOSTNAME)"*"--run"* ]]
	run -2 preempt-run --task 2 --tasks 4 -- true
	[[ $output == *"--run"* ]]
	kill -TERM "${pids[1]}"
	all_ended 42
	saved_together 2
	nothing_left
}

@test "a killed agent that is started again while its peers still train: they leave, all join the next attempt" {
	# Not their heartbeats find out that it is gone.
	options=(--period 60s)
	count_agents 3 --steps 100000 --step-ms 5 --sync
	until_true 20 all_begun 3 10
	kill -KILL "${pids[1]}"
	ended 1 137
	agent 1 3 -- "$COUNT" --dir job --steps 600 --sync
	ended 0 44
	ended 2 44
	grep -q "task 1 was restarted" err.0
	[[ $(preempt-store get run/job/000001/DEAD/1) == *'"by":"restarted"'* ]]
	attempt=2
	for i in 0 2; do agent $i 3 -- "$COUNT" --dir job --steps 600 --sync; done
	all_ended 0
	counted 3 600
	nothing_left
}

@test "a task killed while the others still wait for all, and started again: all join the next attempt, by themselves" {
	# Task 2 is not there yet, so nothing has been started.
	for i in 0 1; do agent $i 3 -- "$COUNT" --dir job --steps 50; done
	until_true 20 has TASK/0
	until_true 20 has TASK/1
	kill -KILL "${pids[1]}"
	ended 1 137
	agent 1 3 -- "$COUNT" --dir job --steps 50
	attempt=2
	until_true 20 has TASK/0
	agent 2 3 -- "$COUNT" --dir job --steps 50
	all_ended 0
	grep -q "task 1 was restarted" err.0
	[ ! -e job/log/1.0 ]
	counted 3 50
	nothing_left
}
