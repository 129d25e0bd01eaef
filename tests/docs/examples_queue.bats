#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# examples/sweep.sh: a sweep by workers that are preempted. fan-out.sh needs Slurm: systems/slurm_queue.bats.
# takes: 15
# asan: no (shells and sleeping; the programs' own tests do that)
# shellcheck disable=SC2016 # for sh

bats_require_minimum_version 1.5.0
load ../support/programs

setup() {
	programs "$BATS_TEST_TMPDIR/s/sweep.db"
	mkdir -m 700 s
	export PREEMPT_QUEUE=sweep WIDTHS="8 32" RATES="30 300" STEPS=100 STEP_SECONDS=0.01
	sweep=
}

teardown() {
	# It ends its workers.
	[ -z "$sweep" ] || kill -TERM "$sweep" 2>/dev/null || :
	wait
	[ -n "${BATS_TEST_COMPLETED:-}" ] || { head -n 100 out err; preempt-queue list; } >&2 || :
}

# start [TRAINER]: a sweep in the background.
start() {
	"$REPO/examples/sweep.sh" "$@" >out 2>>err 3>&- &
	sweep=$!
}

# ends_with CODE: the sweep does.
ends_with() {
	code=0
	wait "$sweep" || code=$?
	sweep=
	[ "$code" = "$1" ] || { echo "it ended with $code, not $1" >&2; return 1; }
}

# All four combinations have one result each, none was given up, and the best is said.
all_is_well() {
	[ "$(preempt-queue list --json --state succeeded | wc -l)" = 4 ]
	[ "$(preempt-queue list --json | wc -l)" = 4 ]
	[ "$(<out)" = '31253 width 32 rate 300 (command 4)' ]
	# Nothing is left in the directories of commands that have succeeded.
	[ -z "$(find s -name checkpoint)" ]
}

# A checkpoint of two commands that are not over.
trained() { [ "$(find s -name checkpoint | wc -l)" -ge 2 ]; }

@test "examples/sweep.sh: each combination once, and the best of them; again, nothing is done again" {
	for _ in first again; do
		start
		ends_with 0
		all_is_well
	done
}

@test "examples/sweep.sh is preempted: 42, and started again it goes on from its checkpoints" {
	# Trainings that have a checkpoint wait until the file "go" is there, lest they are over too soon.
	mkdir held
	printf '#!/bin/sh\nwhile [ -e "${PREEMPT_ITEM_DIR:-.}/checkpoint" ] && [ ! -e go ]; do command -p sleep 0.05; done\n' >held/sleep
	chmod +x held/sleep
	export PATH=$PWD/held:$PATH
	start
	eventually trained
	kill -TERM "$sweep"
	ends_with 42
	[ ! -s out ]
	[ -z "$(preempt-queue list --json --state running)" ]
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

@test "examples/sweep.sh: a trainer that fails for one combination: the others have results, and 44" {
	printf '#!/bin/sh\n[ "$2 $4" != "8 30" ] || { echo diverged >&2; exit 9; }\necho "$4 width $2"\n' >trainer
	chmod +x trainer
	start ./trainer
	ends_with 44
	grep -q '^30 width 32 (command 3)$' out
	[ "$(preempt-queue list --json --state failed | wc -l)" = 1 ]
}
