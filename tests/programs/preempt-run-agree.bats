#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-run: joining and agreeing under bad conditions, as far as real processes, signals and clocks are needed;
# the rest is in the simulator (tests/sim/group/scenarios.txt).
# takes: 45
# shellcheck disable=SC2012,SC2016,SC2034 # numbers; what loop.sh evaluates; what agents.bash uses

load ../support/agents

setup() {
	agents
	# None is called dead, either.
	quick+=(--limit 100)
}

@test "joining: the missing are named, and who came leaves with 44: run me again" {
	agent 0 5 -- "$COUNT" --dir job
	eventually has TASK/0
	agent 3 5 --join-timeout 3s -- "$COUNT" --dir job
	all_ended 44
	told_by 0 "2 of 5 tasks have joined; missing: 1-2,4 (--join-timeout)"
	[ ! -e job/log ]
	nothing_left
}

@test "joining: INT before all have joined ends that one with 130" {
	for i in 0 1; do agent $i 3 -- "$COUNT" --dir job --steps 50; done
	for i in 0 1; do eventually has TASK/$i; done
	kill -INT "${pids[1]}"
	ended 1 130
	ended 0 44
	grep -q "interrupted before the start" err.0
	nothing_left
}

# searching FAULT [OPTION...]: an agent that searches the checkpoint to resume from; FAULT of strace at its first call,
# after it has joined.
searching() {
	# Leak checks do not work under strace.
	export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
	strace -o /dev/null true 2>/dev/null || skip "strace may not trace here"
	mkdir ck
	echo weights >"$(ckpt-rotate begin ck 5)/model"
	ckpt-rotate commit ck 5
	touch trace
	"${interruptible[@]}" strace -D -f -o trace -P "$PWD/ck" -e trace=openat -e "inject=openat:$1:when=1" \
		preempt-run --checkpoints "$PWD/ck" "${@:2}" -- touch started >out.0 2>err.0 3>&- &
	pids=($!)
}

@test "joining: a notice while the search for a checkpoint hangs: it leaves with 42 before the machine goes" {
	searching delay_enter=600000000 --notice signal:TERM --grace 2s
	eventually has TASK/0
	eventually grep -q openat trace
	tracer=$(sed -n 's/^TracerPid:\s*//p' "/proc/${pids[0]}/status")
	kill -TERM "${pids[0]}"
	eventually grep -q 'leaves without telling the other tasks' err.0
	# A thread that the tracer delays cannot end before the tracer does.
	eventually grep -q 'exited with 42' trace
	kill -KILL "$tracer"
	ended 0 42
	[ ! -e started ]
}

@test "joining: HUP of one that was started with nohup changes nothing" {
	(trap '' HUP && exec preempt-run --task 0 --tasks 2 -- true) 2>err.0 3>&- &
	pids=($!)
	eventually has TASK/0
	kill -HUP "${pids[0]}"
	preempt-run --task 1 --tasks 2 -- true
	ended 0 0
}

@test "two jobs under one name: the second is refused, and says whose it is" {
	count_agents 2 --steps 100000 --step-ms 5
	eventually all_begun 2 2
	run -2 preempt-run --task 0 --tasks 2 -- true
	[[ $output == *"run job: task 0 of attempt 1 is running (pid ${pids[0]} on $HOSTNAME)"*"--run"* ]]
	run -2 preempt-run --task 2 --tasks 4 -- true
	[[ $output == *"--run"* ]]
	kill -TERM "${pids[1]}"
	all_ended 42
	saved_together 2
	nothing_left
}

@test "--savers chief: its save alone makes a checkpoint complete" {
	cat >loop.sh <<-'X'
		. "$CLIENTS/preempt.sh"
		for ((s = 0; ; s++)); do
			preempt_step $s || { [ $PREEMPT_TASK = 0 ] || exit 0; preempt_saved $s; } || exit
			touch trains.$PREEMPT_TASK
			sleep 0.02
		done
	X
	options=(--savers chief)
	agents_of 2 bash loop.sh
	eventually test -e trains.0 -a -e trains.1
	kill -TERM "${pids[1]}"
	ended 0 42
	ended 1 "0|42"
}
