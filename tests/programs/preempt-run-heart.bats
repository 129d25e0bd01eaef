#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-run's heartbeats: a task that is killed or stopped ends the group, named, in bounded time, with 44, and the
# next attempt goes on as if nothing had been. Further silences, hangs, stalls and clocks are in the simulator
# (tests/sim/group/scenarios.c).
# takes: 25
# asan: no (trainers are timed)
# shellcheck disable=SC2034 # what agents.bash uses

load ../support/agents

training=(--hidden 16 --batch 40 --steps 120 --save-every 20)

setup_file() {
	# What an undisturbed training ends with.
	cd "$BATS_FILE_TMPDIR" || return
	mkdir reference boards
	PATH=$(realpath "${BIN:-$REPO/bin}"):$PATH XDG_RUNTIME_DIR=$PWD/boards preempt-run -q --store "$PWD/s.db" --run reference \
		-n 4 -- "${OUT:-$REPO/build/plain}/examples/train" --dir reference "${training[@]}" --done-model reference.model >&2
}

setup() {
	agents
	# Ten seconds of silence: no task that is only slow is called dead. Where a task is to die of silence, the test
	# says how soon.
	quick+=(--period 500ms --limit 20)
}

train_agents() { agents_of 4 "$OUT/examples/train" --dir job "${training[@]}" --done-model model "$@"; }

saved_step() { ckpt-rotate latest job/ckpt --step --or 0 2>/dev/null || echo 0; }
has_saved() { (($(saved_step) >= $1)); }

# The next attempt starts where a checkpoint was, and ends with the same bits.
goes_on() {
	local at
	at=$(saved_step)
	attempt=$((attempt + 1)) options=()
	train_agents
	all_ended 0
	grep -q "^resumed at step $at" out.0
	cmp model "$BATS_FILE_TMPDIR/reference.model"
	nothing_left
}

@test "HB-2: of 4 training tasks an agent is KILLed: all others leave with 44, name it, and go on later" {
	train_agents --step-ms 60
	eventually has_saved 20
	kill -KILL "${pids[2]}"
	for i in 0 1 3; do ended $i 44; done
	ended 2 137
	grep -q "task 2 on $(hostname) is gone; last seen 20" err.0
	eventually none_left
	rm -rf boards/*
	goes_on
}

@test "HB-3: of 4 training tasks an agent is stopped: all leave with 44, it too when it runs again" {
	options=(--limit 13 -v)
	train_agents --step-ms 150
	eventually has_saved 40 # its step has travelled with its beats
	stopped "${pids[1]}"
	for i in 0 2 3; do ended $i 44; done
	grep "task 1 on $(hostname) is dead: no heartbeat since 20.*, last step [0-9]" err.0
	grep -q 'task 1 has missed two heartbeats: none for [1-9]' err.0
	kill -CONT "${pids[1]}"
	ended 1 44
	grep -q "task 1 on .* is dead" err.1
	[ "$(field SEAL by)" = death ]
	goes_on
}

@test "--no-heartbeat: no task beats, no task is missed" {
	quick=(--no-heartbeat --kill-after 1s)
	count_agents 2 --steps 60 --step-ms 5
	all_ended 0
	run ! grep -q '[0-9a-f]' store/db.beats/job/000001/[0-9]*
}
