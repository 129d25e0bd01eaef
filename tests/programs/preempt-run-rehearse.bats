#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-run --rehearse: a notice to oneself, and a word on how it went.
# shellcheck disable=SC2030,SC2031,SC2034,SC2154 # each test is a subshell with its own variables

bats_require_minimum_version 1.5.0

setup_file() {
	load ../support/trainers/agents
	agents_setup_file
}

setup() {
	load ../support/trainers/agents
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
	[[ $stderr == *"$text"* ]] || { echo "$stderr"; return 1; }
	[ "$status" = "$code" ]
}

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

@test "--rehearse fails where the program never asks, saves nothing, is over before, or no task watches the signal" {
	run --separate-stderr preempt-run "${quick[@]}" --rehearse TERM@300ms -- sleep 1000
	[ "$status" = 1 ]
	[[ $stderr == *"rehearsal: FAILED: a task has never called preempt_step"* ]]
	rehearses "rehearsal: FAILED: no complete checkpoint was saved after the signal (43)" 1 --run r2 --rehearse TERM@AFTER -- \
		"$COUNT" --dir job --steps 100000 --step-ms 5 --save-fails all
	run -1 --separate-stderr preempt-run "${quick[@]}" --run r3 --rehearse TERM@1h -- true
	[[ $stderr == *"rehearsal: FAILED: the run was over before it began"* ]]
	run -2 --separate-stderr preempt-run "${quick[@]}" --run r4 --rehearse HUP@100ms -- touch started
	[[ $stderr == *"--rehearse: no source of notices watches HUP"* ]]
	[ ! -e started ]
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

@test "--rehearse of a program that saves on a signal: passed only where a checkpoint appeared after it" {
	solver
	export SAVES=1
	rehearses "rehearsal: passed: saved step 7, " 0 \
		--on-notice signal:USR1 --checkpoints ck --rehearse TERM@AFTER -- ./solver
	[[ $stderr == *"step 7 is saved and complete: run me again (42)"* ]]
	[[ $stderr == *" (solver) would handle USR1"* && $stderr == *" (solver) would die of TERM"* ]]
	SAVES='' rehearses "rehearsal: FAILED: no complete checkpoint was saved after the signal (43)" 1 --run r2 \
		--on-notice signal:USR1 --checkpoints ck --rehearse TERM@AFTER -- ./solver
	rehearses "rehearsal: FAILED: whether it saved is not known: name its directory with --checkpoints (43)" 1 \
		--run r3 --on-notice signal:USR1 --rehearse TERM@AFTER -- ./solver
	run -1 --separate-stderr preempt-run "${quick[@]}" --run r4 --on-notice signal:USR1 --rehearse TERM@2s -- sleep 1000
	[[ $stderr == *" (sleep) would die of USR1"* ]]
	[[ $stderr == *"rehearsal: FAILED: the command died of the signal of --on-notice"* ]]
}

@test "--rehearse with several agents: the first claim begins the rehearsal of all" {
	options=(--save-timeout 1m --rehearse TERM@1h)
	count_agents 2 --steps 1000000 --step-ms 5
	until_true 10 all_begun 2 3
	kill -TERM "${pids[0]}"
	ended 0 0 60
	ended 1 0 60
	grep -q 'rehearsal: TERM at' err.1
	grep -q 'rehearsal: passed: saved step' err.1
}

@test "--rehearse: a checkpoint from before the signal proves nothing, nor does one of a program that was ended" {
	cat >periodic <<-'EOT'
		#!/bin/bash
		[ -z "$IGNORES" ] || trap '' USR1
		mkdir -p job/ckpt
		for ((s = 1; s <= 3 || IGNORES; s++)); do
			d=$(ckpt-rotate begin job/ckpt "$s") && echo "$s" >"$d/n" && ckpt-rotate commit job/ckpt "$s" >/dev/null
		done
		until [ -e stop ]; do sleep 0.02; done
	EOT
	chmod +x periodic
	local told=(--on-notice signal:USR1 --checkpoints job/ckpt --rehearse TERM@AFTER)
	rehearses "rehearsal: FAILED: the command died of the signal of --on-notice" 1 "${told[@]}" -- ./periodic
	[[ $stderr == *" (periodic) would die of USR1"* ]]
	rehearses "rehearsal: FAILED: no complete checkpoint was saved after the signal (42)" 1 --run r2 \
		--on-notice 'command:touch stop' --checkpoints job/ckpt --rehearse TERM@AFTER -- ./periodic
	rm stop
	IGNORES=1 rehearses "rehearsal: FAILED: the command was told to save, but did not end in time (42)" 1 --run r3 \
		--save-timeout 2s "${told[@]}" -- ./periodic
	[[ $stderr == *" (periodic) would ignore USR1"* ]]
}

# launches: like torchrun, it starts a rank in a session of its own; on TERM it tells the rank, and kills it later.
# The rank imports, until there is a file "imported"; then it saves on USR1, which takes longer than that on TERM.
launches() {
	cat >rank <<-'EOT'
		#!/usr/bin/env python3
		import os, signal, subprocess, sys, time
		def save(number, frame):
		    if number == signal.SIGTERM:
		        time.sleep(1000)
		    step = subprocess.run(["ckpt-rotate", "begin", "ck", "7"], stdout=subprocess.PIPE, text=True, check=True)
		    print(7, file=open(step.stdout.strip() + "/n", "w"), flush=True)
		    subprocess.run(["ckpt-rotate", "commit", "ck", "7"], check=True)
		    print("saved", file=open("saved", "a"))
		    sys.exit(0)
		open("importing", "w").close()
		while not os.path.exists("imported"):
		    time.sleep(0.01)
		for number in sys.argv[1:]:
		    signal.signal(getattr(signal, "SIG" + number), save)
		while True:
		    time.sleep(0.01)
	EOT
	cat >launcher <<-'EOT'
		#!/usr/bin/env python3
		import signal, subprocess, sys, time
		rank = subprocess.Popen(["./rank"] + sys.argv[1:], start_new_session=True)
		def end(number, frame):
		    rank.terminate()
		    time.sleep(0.5)
		    rank.kill()
		    sys.exit(1)
		signal.signal(signal.SIGTERM, end)
		sys.exit(rank.wait())
	EOT
	# By its own name, as torchrun has it.
	sed -i "1s|.*|#!$(python3 -c 'import sys; print(sys.executable)')|" rank launcher
	chmod +x rank launcher
	mkdir ck
}

@test "--rehearse names a launcher that killed its ranks; --signal-to ranks with --shield does not make it do so" {
	launches
	touch imported
	rehearses "rehearsal: FAILED: launcher (process " 1 \
		--on-notice signal:TERM --checkpoints ck --rehearse TERM@AFTER -- ./launcher TERM
	[[ $stderr == *"--on-notice signal:USR1 --signal-to ranks --shield USR1"* ]]
	rehearses "rehearsal: passed: saved step 7, " 0 --run r2 --on-notice signal:USR1 --signal-to ranks --shield USR1 \
		--checkpoints ck --rehearse TERM@AFTER -- ./launcher USR1
	[[ $stderr == *" (launcher) would ignore USR1"* && $stderr == *" (rank) would handle USR1"* ]]
	nothing_left
}

@test "--signal-to ranks: a rank that ignored the signal while it imported gets it, once, when it handles it" {
	launches
	preempt-run "${quick[@]}" --save-timeout 1m --on-notice signal:USR1 --signal-to ranks --shield USR1 --checkpoints ck \
		-- ./launcher USR1 2>err.0 3>&- &
	pids=($!)
	until_true 20 test -e importing
	kill -TERM "${pids[0]}"
	until_true 20 grep -q ': claimed by' err.0
	touch imported
	ended 0 42 60
	[ "$(grep -c saved saved)" = 1 ]
}

@test "--rehearse: what it does not understand is refused" {
	for word in TERM TERM@ @30s TERM@soon NOSUCH@1s TERM@1s,tree; do
		run -2 --separate-stderr preempt-run "${quick[@]}" --rehearse "$word" -- true
		[[ $stderr == *--rehearse* ]]
	done
}
