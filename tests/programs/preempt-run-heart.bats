#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-run's heartbeats: a task that is killed, stopped or hangs ends the group, named, in bounded
# time, with 44, and the next attempt goes on as if nothing had been. Further silences, hangs, stalls and
# clocks are in the simulator (tests/sim/group/scenarios.txt).
# takes: 35
# asan: no (trainers are timed)
# shellcheck disable=SC2030,SC2031,SC2034,SC2154 # each test is a subshell with its own variables
# shellcheck disable=SC2016 # other shells expand it

bats_require_minimum_version 1.5.0

setup_file() {
	load ../support/trainers/agents
	agents_setup_file
	export TRAIN=$OUT/examples/train
	[ -x "$TRAIN" ] || make -s -C "$REPO" "${TRAIN#"$REPO/"}" >&2
	# What an undisturbed training ends with.
	cd "$BATS_FILE_TMPDIR" || return
	mkdir -p reference store boards
	XDG_RUNTIME_DIR=$PWD/boards preempt-run -q --store store/db --run reference -n 4 -- \
		"$TRAIN" --dir reference "${training[@]}" --done-model reference.model >&2
}

training=(--hidden 16 --batch 40 --steps 300 --save-every 20)

setup() {
	load ../support/trainers/agents
	agents_setup
	# Ten seconds of silence: no task that is only slow is called dead. Where a task is to die of
	# silence, the test says how soon.
	patient=(--period 500ms --limit 20 --kill-after 1s --join-timeout 120s --report-timeout 60s --save-timeout 120s)
	quick=("${patient[@]}")
}

teardown() { agents_teardown; }

# train_agent I [OPTION...]: task I of 4 of the demo's training; agent options in $options.
train_agent() {
	local i=$1
	shift
	agent "$i" 4 "${options[@]}" -- "$TRAIN" --dir job "${training[@]}" --done-model model "$@"
}

train_agents() {
	local i
	for i in 0 1 2 3; do train_agent "$i" "$@"; done
}

saved_step() { ckpt-rotate latest job/ckpt --step --or 0 2>/dev/null || echo 0; }
has_saved() { (($(saved_step) >= $1)); }

# These leave with 44. They have (limit + 3) periods, the ending of the commands, and what a loaded
# machine takes.
all_broken() {
	local i
	for i in "$@"; do ended "$i" 44 20; done
}

# The next attempt starts where a checkpoint was, and ends with the same bits.
goes_on() {
	local at
	at=$(saved_step)
	attempt=$((attempt + 1))
	options=() quick=("${patient[@]}")
	train_agents
	all_ended 0 60
	grep -q "^resumed at step $at" out.0
	cmp model "$BATS_FILE_TMPDIR/reference.model"
	nothing_left
}

# Slow enough that something can happen in the middle: it takes 18 s in all.
slowly=(--step-ms 60)

@test "HB-2: of 4 training tasks an agent is KILLed: all others leave with 44, name it, and go on later" {
	train_agents "${slowly[@]}"
	until_true 30 has_saved 20
	kill -KILL "${pids[2]}"
	all_broken 0 1 3
	wait "${pids[2]}" || :
	grep -q "task 2 on $(hostname) is gone; last seen 20" err.0
	until_true 5 none_left
	rm -rf boards/*
	goes_on
}

@test "HB-3: of 4 training tasks an agent is stopped: all leave with 44, it too when it runs again" {
	quick+=(--limit 13 -v)
	train_agents --step-ms 80
	until_true 30 has_saved 40 # its step has travelled with its beats
	stop_agent 1
	all_broken 0 2 3
	grep "task 1 on $(hostname) is dead: no heartbeat since 20.*, last step [0-9]" err.0 || { cat err.*; false; }
	grep -q 'task 1 has missed two heartbeats: none for [1-9]' err.0
	kill -CONT "${pids[1]}"
	ended 1 44
	grep -q "task 1 on .* is dead" err.1
	[ "$(field SEAL by)" = death ]
	goes_on
}

@test "PH-2: one fails while heartbeats run: its error is every task's, not a death" {
	count_agents 3 --steps 100000 --step-ms 5 --fail 1:40:7
	ended 1 7
	ended 0 44
	ended 2 44
	grep -q "loss is not a number" err.0
	[ "$(count_keys DEAD)" = 0 ]
	nothing_left
}

# Both tasks beat, and are past their third step.
both_advance() {
	preempt-status --json | python3 -c 'import json, sys
tasks = json.load(sys.stdin)["tasks"]
sys.exit(not (len(tasks) == 2 and all(t["state"] == "running" and t.get("step", 0) > 3 for t in tasks)))'
}
@test "-n 2, with no task to watch them: preempt-status says that they run, and how far they are" {
	quick=(--period 200ms)
	one_agent 2 --steps 100000 --step-ms 5
	until_true 10 both_advance
	kill -TERM "${pids[0]}"
	ended 0 42
}

@test "--no-heartbeat: no task beats, no task is missed" {
	quick=(--no-heartbeat --kill-after 1s)
	count_agents 2 --steps 60 --step-ms 5
	all_ended 0
	run ! grep -q '[0-9a-f]' store/db.beats/job/000001/[0-9]*
}

@test "sections: a long evaluation with a limit of its own is no hang; the same without is" {
	options=(--progress-timeout 4s --section eval=5m)
	for section in eval step; do
		agent 0 1 "${options[@]}" -- bash -c '
			. "$CLIENTS/preempt.sh"
			preempt_section '$section'; preempt_step 1
			if [ '$section' = eval ]; then sleep 7; else sleep 1000; fi
			preempt_step 2'
		if [ $section = eval ]; then ended 0 0; else ended 0 44; fi
	done
	grep -q "task 0 .*is hung: no progress since .*, last step 1" err.0
}
