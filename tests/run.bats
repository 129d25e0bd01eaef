#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-run: tasks that stop together at one step, each under an agent of its own.
# shellcheck disable=SC2030,SC2031,SC2034,SC2154 # each test is a subshell with its own variables

bats_require_minimum_version 1.5.0

setup_file() {
	load trainers/agents
	agents_setup_file
}

setup() {
	load trainers/agents
	agents_setup
}

teardown() { agents_teardown; }

# PH-1 for any trainer: COMMAND is started with "job STEPS SECONDS".
preempted_and_finished() {
	local i victim=$((RANDOM % 4))
	for ((i = 0; i < 4; i++)); do agent $i 4 -- "$@" job 200 0.005; done
	until_true 20 all_begun 4 20
	kill -TERM "${pids[victim]}"
	all_ended 42
	saved_together 4
	[ "$(ls job/ckpt)" = "$saved_step" ]
	grep -q "preemption claimed by task $victim on $HOSTNAME (signal:TERM: sent by process" err.*
	for ((i = 0; i < 4; i++)); do
		[ "$(field "LEFT/$i" reason)" = saved ]
		grep -q "saved and complete: run me again (42)" "err.$i"
	done
	[ "$(field CLOSED state) $(field CLOSED step)" = "preempted $saved_step" ]

	attempt=2
	for ((i = 0; i < 4; i++)); do agent $i 4 -- "$@" job 200 0.001; done
	all_ended 0
	for ((i = 0; i < 4; i++)); do grep -qx "start $saved_step" "job/log/2.$i"; done
	counted 4 200
	[ "$(ls job/ckpt)" = "$saved_step" ]
	[ "$(field CLOSED state)" = completed ]
	nothing_left
}

@test "PH-1: TERM to one of 4 agents: all save once at one step and leave with 42; restarted, nothing is lost (C)" {
	count_c() { "$COUNT" --dir "$1" --steps "$2"; }
	cat >trainer <<-'EOT'
		#!/bin/sh
		exec "$COUNT" --dir "$1" --steps "$2" --step-ms "$(echo "$3" | sed 's/^0\.00//')"
	EOT
	chmod +x trainer
	preempted_and_finished ./trainer
}

@test "PH-1: the same with a trainer in bash" {
	preempted_and_finished bash "$TRAINERS/count.sh"
}

@test "PH-1: the same with a trainer in Python" {
	preempted_and_finished python3 "$TRAINERS/count.py"
}

@test "PH-1: one task alone leaves with 42" {
	unset PREEMPT_RUN
	preempt-run -- "$COUNT" --dir job --steps 1000 --step-ms 5 2>err.0 &
	pids=($!)
	until_true 10 begun 0 5
	kill -TERM "${pids[0]}"
	all_ended 42
	[ "$(ls job/ckpt | wc -l)" = 1 ]
	nothing_left
}
