#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-run --rehearse: a notice to oneself, and a word on how it went.
# takes: 30
# shellcheck disable=SC2016,SC2034 # text for other shells; what agents.bash uses

load ../support/agents

# rehearses TEXT CODE OPTION...: says TEXT, and leaves with CODE. Where the command has not begun in time, it is
# rehearsed again in a new run, later after the start.
rehearses() {
	local text=$1 code=$2 after
	shift 2
	for after in 2s 10s 60s; do
		rm -rf job/ckpt stop
		run --separate-stderr preempt-run "${quick[@]}" --run "r$((++runs))" --rehearse TERM@$after "$@"
		[[ $stderr != *"$text"* || $status != "$code" ]] || return 0
	done
	echo "$stderr"
	return 1
}

runs=0
failed="rehearsal: FAILED:"
nothing_saved="$failed no complete checkpoint was saved after the signal"

@test "--rehearse: saved, and it is reported what each process would do with the signal" {
	# Its child knows nothing of signals.
	echo 'sleep 1000 & exec "$COUNT" --dir job --steps 100000 --step-ms 5' >train
	rehearses " (sleep) would die of TERM" 0 -- sh train
	[[ $stderr == *"rehearsal: TERM at 20"*"Z to preempt-run, process "* ]]
	[[ $stderr == *" (count) would ignore TERM"* || $stderr == *" (count) would handle TERM"* ]]
	[[ $stderr =~ "rehearsal: passed: saved step $(ls job/ckpt), and left "[0-9.]+" s after the signal" ]]
	nothing_left
}

@test "--rehearse fails where the program never asks, saves nothing, or is over before; what it does not understand is refused" {
	run -1 --separate-stderr preempt-run "${quick[@]}" --rehearse TERM@300ms -- sleep 1000
	[[ $stderr == *"$failed a task has never called preempt_step"* ]]
	rehearses "$nothing_saved (43)" 1 -- "$COUNT" --dir job --steps 100000 --step-ms 5 --save-fails all
	run -1 --separate-stderr preempt-run --run over --rehearse TERM@1h -- true
	[[ $stderr == *"$failed the run was over before it began"* ]]
	run -2 --separate-stderr preempt-run --run other --rehearse HUP@100ms -- touch started
	[[ $stderr == *"--rehearse: no source of notices watches HUP"* ]]
	for word in TERM TERM@ @30s TERM@soon NOSUCH@1s TERM@1s,tree; do
		run -2 --separate-stderr preempt-run --rehearse "$word" -- touch started
		[[ $stderr == *--rehearse* ]]
	done
	[ ! -e started ]
}

@test "--rehearse of a program that saves on a signal: passed only where a checkpoint appeared after it" {
	# Saves on USR1, if $SAVES, and ends; it knows nothing of boards.
	cat >solver <<-'EOT'
		#!/bin/bash
		trap 'if [ -n "$SAVES" ]; then d=$(ckpt-rotate begin ck 7) && echo 7 >"$d/n" && ckpt-rotate commit ck 7; fi; exit 0' USR1
		while :; do sleep 0.02; done
	EOT
	chmod +x solver
	SAVES=1 rehearses "rehearsal: passed: saved step 7, " 0 --on-notice signal:USR1 --checkpoints ck -- ./solver
	[[ $stderr == *"step 7 is saved and complete: run me again (42)"* ]]
	[[ $stderr == *" (solver) would handle USR1"* && $stderr == *" (solver) would die of TERM"* ]]
	export SAVES=''
	rehearses "$nothing_saved (43)" 1 --on-notice signal:USR1 --checkpoints ck -- ./solver
	rehearses "$failed whether it saved is not known: name its directory with --checkpoints (43)" 1 \
		--on-notice signal:USR1 -- ./solver
	rehearses "$failed the command died of the signal of --on-notice" 1 --on-notice signal:USR1 -- sleep 1000
	[[ $stderr == *" (sleep) would die of USR1"* ]]
}

@test "--rehearse with several agents: the first claim begins the rehearsal of all" {
	options=(--rehearse TERM@1h)
	count_agents 2 --steps 1000000 --step-ms 5
	eventually all_begun 2 3
	kill -TERM "${pids[0]}"
	all_ended 0
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
	local told=(--on-notice signal:USR1 --checkpoints job/ckpt)
	rehearses "$failed the command died of the signal of --on-notice" 1 "${told[@]}" -- ./periodic
	[[ $stderr == *" (periodic) would die of USR1"* ]]
	rehearses "$nothing_saved (42)" 1 --on-notice 'command:touch stop' --checkpoints job/ckpt -- ./periodic
	IGNORES=1 rehearses "$failed the command was told to save, but did not end in time (42)" 1 \
		--save-timeout 2s "${told[@]}" -- ./periodic
	[[ $stderr == *" (periodic) would ignore USR1"* ]]
}

# launches: like torchrun, "launcher" starts "rank" in a session of its own; on TERM it tells the rank, and kills it
# later. The rank imports, until there is a file "imported"; then it saves on the signal that the launcher is given,
# which takes longer than that on TERM.
launches() {
	cat >launcher <<-EOT
		#!$(python3 -c 'import sys; print(sys.executable)')
		import os, signal, subprocess, sys, time
		if len(sys.argv) == 2: # By its own name, as torchrun has it.
		    rank = subprocess.Popen(["./rank", sys.argv[1], "rank"], start_new_session=True)
		    def end(number, frame):
		        rank.terminate()
		        time.sleep(0.5)
		        rank.kill()
		        sys.exit(1)
		    signal.signal(signal.SIGTERM, end)
		    sys.exit(rank.wait())
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
		signal.signal(getattr(signal, "SIG" + sys.argv[1]), save)
		while True:
		    time.sleep(0.01)
	EOT
	chmod +x launcher
	cp launcher rank
	mkdir ck
	to_ranks=(--on-notice signal:USR1 --signal-to ranks --shield USR1 --checkpoints ck)
}

@test "--rehearse names a launcher that killed its ranks; --signal-to ranks with --shield does not make it do so" {
	launches
	touch imported
	rehearses "$failed launcher (process " 1 --on-notice signal:TERM --checkpoints ck -- ./launcher TERM
	[[ $stderr == *"--on-notice signal:USR1 --signal-to ranks --shield USR1"* ]]
	rehearses "rehearsal: passed: saved step 7, " 0 "${to_ranks[@]}" -- ./launcher USR1
	[[ $stderr == *" (launcher) would ignore USR1"* && $stderr == *" (rank) would handle USR1"* ]]
	nothing_left
}
