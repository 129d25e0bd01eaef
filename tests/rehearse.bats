#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-run --rehearse: a notice to oneself, and a word on how it went.
# shellcheck disable=SC2030,SC2031,SC2034,SC2154 # each test is a subshell with its own variables

bats_require_minimum_version 1.5.0

setup_file() {
	load trainers/agents
	agents_setup_file
}

setup() {
	load trainers/agents
	agents_setup
	quick=(--report-timeout 20s --save-timeout 1m --join-timeout 2m --kill-after 1s)
}

teardown() { agents_teardown; }

# rehearses TEXT CODE OPTION...: says TEXT, and leaves with CODE. Where the command has not begun in time,
# it is rehearsed again, later after the start.
rehearses() {
	local text=$1 code=$2 after how
	shift 2
	for after in 2s 10s 60s; do
		rm -rf job/ckpt
		how=("${@/@AFTER/@$after}")
		run --separate-stderr preempt-run "${quick[@]}" "${how[@]}"
		[[ $stderr != *"$text"* || $status != "$code" ]] || break
	done
	[[ $stderr == *"$text"* ]]
	[ "$status" = "$code" ]
}

# bats test_tags=smoke
@test "--rehearse: saved, and it is reported what each process would do with the signal" {
	cat >train <<-'EOT'
		#!/bin/sh
		sleep 1000 & # a child that knows nothing of signals
		exec "$COUNT" --dir job --steps 100000 --step-ms 5
	EOT
	chmod +x train
	rehearses " (sleep) would die of TERM" 0 --rehearse TERM@AFTER -- ./train
	[[ $stderr == *"rehearsal: TERM at 20"*"Z to preempt-run, process "* ]]
	[[ $stderr == *" (sleep) would die of TERM"* ]]
	[[ $stderr == *" (count) would ignore TERM"* || $stderr == *" (count) would handle TERM"* ]]
	step=$(ls job/ckpt)
	[[ $stderr =~ "rehearsal: passed: saved step $step, and left "[0-9.]+" s after the signal" ]]
	nothing_left
}

@test "--rehearse with tree: every process gets the signal" {
	cat >train <<-'EOT'
		#!/bin/sh
		sleep 1000 &
		exec "$COUNT" --dir job --steps 100000 --step-ms 5
	EOT
	chmod +x train
	rehearses " (sleep) gets and dies of TERM" 0 --rehearse TERM@AFTER,tree -- ./train
	[[ $stderr == *" (sleep) gets and dies of TERM"* ]]
	[[ $stderr == *"rehearsal: passed: "* ]]
}

@test "--rehearse fails where the program never asks, saves nothing, is over before, or no task watches the signal" {
	run --separate-stderr preempt-run "${quick[@]}" --rehearse TERM@300ms -- sleep 1000
	[ "$status" = 1 ]
	[[ $stderr == *"rehearsal: FAILED: a task has never called preempt_step"* ]]
	rehearses "rehearsal: FAILED: no complete checkpoint was saved (43)" 1 --run r2 --rehearse TERM@AFTER -- \
		"$COUNT" --dir job --steps 100000 --step-ms 5 --save-fails all
	run -1 --separate-stderr preempt-run "${quick[@]}" --run r3 --rehearse TERM@1h -- true
	[[ $stderr == *"rehearsal: FAILED: the run was over before it began"* ]]
	code=0
	timeout 120 preempt-run "${quick[@]}" --run r4 --rehearse USR2@100ms -- \
		sh -c 'until grep -q "watches USR2" said; do sleep 0.02; done' 2>said || code=$?
	[ "$code" = 1 ]
	stderr=$(<said)
	[[ $stderr == *"rehearsal: no source of notices watches USR2"* ]]
	[[ $stderr == *"rehearsal: FAILED: the signal was no notice"* ]]
}

# solver: saves on USR1, if $SAVES, and ends; it knows nothing of boards.
solver() {
	cat >solver <<-'EOT'
		#!/bin/bash
		trap 'if [ -n "$SAVES" ]; then d=$(ckpt-rotate begin ck 7) && echo 7 >"$d/n" && ckpt-rotate commit ck 7; fi; exit 0' USR1
		touch runs
		while :; do sleep 0.02; done
	EOT
	chmod +x solver
}

@test "--rehearse of a program that saves on a signal: passed where it saved, or obeyed; 0, else 1" {
	solver
	export SAVES=1
	rehearses "rehearsal: passed: saved step 7, " 0 \
		--on-notice signal:USR1 --checkpoints ck --rehearse TERM@AFTER -- ./solver
	[[ $stderr == *"step 7 is saved and complete: run me again (42)"* ]]
	SAVES='' rehearses "rehearsal: FAILED: no complete checkpoint was saved (43)" 1 --run r2 \
		--on-notice signal:USR1 --checkpoints ck --rehearse TERM@AFTER -- ./solver
	rehearses "rehearsal: passed: " 0 --run r3 --on-notice signal:USR1 --rehearse TERM@AFTER -- ./solver
	[[ $stderr == *"rehearsal: passed: the command was told, and ended by itself "*"(exit code in earnest: 43)"* ]]
	run -1 --separate-stderr preempt-run "${quick[@]}" --run r4 --on-notice signal:USR1 --rehearse TERM@2s -- sleep 1000
	[[ $stderr == *"rehearsal: FAILED: the command died of the signal of --on-notice"* ]]
}

@test "--rehearse: what it does not understand is refused" {
	for word in TERM TERM@ @30s TERM@soon NOSUCH@1s TERM@1s,all TERM@1s,tree,x; do
		run -2 --separate-stderr preempt-run "${quick[@]}" --rehearse "$word" -- true
		[[ $stderr == *--rehearse* ]]
	done
}
