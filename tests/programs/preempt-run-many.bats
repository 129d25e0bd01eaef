#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-run with 64 tasks on one machine: one claim, one step, 64 acknowledgements, all 42.
# alone
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
	quick=(--report-timeout 1m --save-timeout 3m --join-timeout 5m)
}

teardown() { agents_teardown; }

# all_left CODE: as all_ended, but starts no process: while many agents leave, one may get
# the number of an agent that has left, and its code would be forgotten.
all_left() {
	local i code
	for i in "${!pids[@]}"; do
		code=0
		wait "${pids[i]}" || code=$?
		[ $code = "$1" ] || { echo "agent $i: exit code $code, expected $1"; tell_all; return 1; }
	done
}

# Notices to three agents at once, then everything as it must be.
stopped_together() {
	until_true 60 all_begun 64 3
	kill -TERM "${pids[@]:0:3}"
	all_left 42
	[ "$(count_keys TERMINATED_WORKER)" = 1 ]
	[ "$(count_keys ROUND/)" = 1 ] || { tell_all; false; }
	[ "$(count_keys RUN_TO_CHECKPOINT)" = 1 ]
	[ "$(count_keys LAST_RUN_TO_CHECKPOINT)" = 0 ]
	[ "$(count_keys RECEIVED_SIGNAL_RUN_TO_CHECKPOINT_)" = 64 ]
	[ "$(count_keys SAVED/1/)" = 64 ]
	[ "$(field RUN_TO_CHECKPOINT members)" = 0-63 ]
	saved_step=$(field RUN_TO_CHECKPOINT step)
	[ "$(ls job/ckpt)" = "$saved_step" ]
	[ "$(find "job/ckpt/$saved_step"/* -maxdepth 0 | wc -l)" = 64 ]
	[ "$(preempt-store list --values "run/job/000001/SAVED/" | grep -c "\"step\":$saved_step,")" = 64 ]
	for ((i = 0; i < 64; i++)); do never_after $i "$saved_step"; done
	nothing_left
}

@test "64 tasks as 64 agents, TERM to three of them at once" {
	count_agents 64 --steps 100000 --step-ms 50
	stopped_together
}

@test "64 tasks as 8 agents with -n 8 each, TERM to three of them at once" {
	for ((a = 0; a < 8; a++)); do agent $a 8 -n 8 -- "$COUNT" --dir job --steps 100000 --step-ms 50; done
	stopped_together
	[ "$(field TASK/8 pid)" = "${pids[1]}" ]
}

# More tasks than one transaction takes deaths, and beats of all of them in one record on a server.
@test "of two agents with 70 tasks each one is killed: the other leaves with 44, and both go on" {
	quick+=(--period 500ms --limit 20 --kill-after 1s)
	for a in 0 1; do agent $a 2 -n 70 -- "$COUNT" --dir job --steps 100000 --step-ms 200; done
	until_true 60 all_begun 140 1
	kill -KILL "${pids[0]}"
	ended 1 44 60
	wait "${pids[0]}" || :
	[ "$(field SEAL by)" = death ]
	[ "$(count_keys DEAD/)" -ge 1 ]
	until_true 30 none_left
	rm -rf boards/* job/*
	attempt=2
	for a in 0 1; do agent $a 2 -n 70 -- "$COUNT" --dir job --steps 3 --step-ms 10; done
	all_ended 0 60
	[ "$(field CLOSED state)" = completed ]
	nothing_left
}
