#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# examples/sweep.sh: a sweep by workers that are preempted, also all at once. fan-out.sh needs Slurm:
# slurm_queue.bats.
# asan: no (shells and sleeping; the programs' own tests do that)
# shellcheck disable=SC2030,SC2031

bats_require_minimum_version 1.5.0
load ../support/programs

setup() {
	root=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	export PATH=${BIN:-$root/bin}:$PATH
	cd "$BATS_TEST_TMPDIR" || return
	mkdir -m 700 s
	export PREEMPT_STORE=$PWD/s/sweep.db PREEMPT_QUEUE=sweep
	unset PREEMPT_PLATFORM "${!SLURM_@}"
	export WIDTHS="8 32" RATES="30 300" STEPS=100 STEP_SECONDS=0.01
	sweep=
}

teardown() {
	[ -z "$sweep" ] || kill -TERM "$sweep" 2>/dev/null || :
	wait
	if [ -z "${BATS_TEST_COMPLETED:-}" ]; then
		head -n 100 out err >&2 || :
		preempt-queue list >&2 || :
	fi
}

start() {
	"$root/examples/sweep.sh" >>out 2>>err 3>&- &
	sweep=$!
}
# ends_with CODE
ends_with() {
	local code=0
	wait "$sweep" || code=$?
	sweep=
	[ "$code" = "$1" ] || { echo "it ended with $code, not $1" >&2; return 1; }
}
# Trainings that have a checkpoint wait until the file "go" is there, lest they are over too soon.
hold_trainings() {
	mkdir held
	# shellcheck disable=SC2016 # for sh
	printf '#!/bin/sh\nwhile [ -e "${PREEMPT_ITEM_DIR:-.}/checkpoint" ] && [ ! -e go ]; do command -p sleep 0.05; done\n' >held/sleep
	chmod +x held/sleep
	export PATH=$PWD/held:$PATH
}
# A checkpoint of two commands that are not over.
trained() { [ "$(find s -name checkpoint | wc -l)" -ge 2 ]; }
worker_pids() { preempt-queue workers --json | sed -n 's/.*"pid": *\([0-9]*\).*/\1/p'; }
workers_are() { [ "$(worker_pids | wc -l)" = "$1" ]; }

# All four combinations have one result each, none was given up, and the best is said.
all_is_well() {
	[ "$(preempt-queue list --json --state succeeded | wc -l)" = 4 ]
	[ "$(preempt-queue list --json | wc -l)" = 4 ]
	grep -q '^31253 width 32 rate 300 (command 4)$' out
	[ "$(wc -l <out)" = 1 ]
	# Nothing is left in the directories of commands that have succeeded.
	[ -z "$(find s -name checkpoint)" ]
}

@test "examples/sweep.sh: each combination once, and the best of them; again, nothing is done again" {
	start
	ends_with 0
	all_is_well
	rm out
	start
	ends_with 0
	all_is_well
}

@test "examples/sweep.sh: one of its workers is preempted: the other goes on from its checkpoints" {
	hold_trainings
	start
	eventually trained
	kill -TERM "$(worker_pids | head -n 1)"
	eventually workers_are 1
	: >go
	ends_with 0
	all_is_well
	preempted=0
	for id in 1 2 3 4; do
		preempt-queue fetch "$id" --stderr >"stderr.$id"
		! grep -q 'resumed at step [1-9]' "stderr.$id" || preempted=$((preempted + 1))
	done
	[ "$preempted" = 1 ]
}

@test "examples/sweep.sh is preempted: 42, and started again it goes on from its checkpoints" {
	hold_trainings
	start
	eventually trained
	kill -TERM "$sweep"
	ends_with 42
	[ ! -s out ]
	run -0 preempt-queue list --json --state running
	[ -z "$output" ]
	: >go
	start
	ends_with 0
	all_is_well
	resumed=0
	for id in 1 2 3 4; do
		preempt-queue fetch "$id" --stderr >"stderr.$id"
		! grep -q 'resumed at step [1-9]' "stderr.$id" || resumed=$((resumed + 1))
	done
	[ "$resumed" = 2 ]
}

@test "examples/sweep.sh: a trainer that fails for one combination: the others have results, and 1" {
	# shellcheck disable=SC2016 # for sh
	printf '#!/bin/sh\n[ "$2 $4" != "8 30" ] || { echo diverged >&2; exit 9; }\necho "$4 width $2"\n' >trainer
	chmod +x trainer
	code=0
	"$root/examples/sweep.sh" ./trainer >out 2>err 3>&- || code=$?
	[ "$code" = 1 ]
	grep -q '^30 width 32 (command 3)$' out
	[ "$(preempt-queue list --json --state failed | wc -l)" = 1 ]
}
