#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-run as a process: signals, children and grandchildren, process 1, ranks, exit codes, bad usage.
# takes: 60
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
	# Long enough that no task is left out for being slow; where one has to be, the test says less.
	quick=(--report-timeout 20s --save-timeout 1m --join-timeout 2m --kill-after 1s)
}

teardown() { agents_teardown; }

# TERM is kept or caught.
listens() {
	# Bash has a handler for TERM until it has become the program.
	[ "$(<"/proc/$1/comm")" = preempt-run ] &&
		grep -qs "^Sig\(Blk\|Cgt\):.*[4-7c-f][0-9a-f][0-9a-f][0-9a-f]\$" "/proc/$1/status"
}

@test "exit codes: the command's own, 127, 126, 128+n, and --exit-code" {
	unset PREEMPT_RUN
	run -0 preempt-run -- true
	run -7 preempt-run -- sh -c 'exit 7'
	run -137 preempt-run -- sh -c 'kill -KILL $$'
	run -127 preempt-run -- ./absent
	[[ $output == *"preempt-run: cannot run ./absent: No such file or directory"* ]]
	touch plain
	run -126 preempt-run -- ./plain
	[[ $output == *"preempt-run: cannot run ./plain: Permission denied"* ]]
	run -126 preempt-run -- "$PWD"
	export PREEMPT_RUN=job
	options=(--exit-code 9)
	count_agents 2 --steps 100000 --step-ms 5
	until_true 10 all_begun 2 3
	kill -TERM "${pids[0]}"
	all_ended 9
	saved_together 2
	# 43 and 44 stay what they are.
	attempt=2
	count_agents 2 --steps 100000 --step-ms 5 --save-fails all
	until_true 10 all_begun 2 $((saved_step + 1))
	kill -TERM "${pids[0]}"
	all_ended 43
	nothing_left
}

@test "exit codes: a command that cannot be run on one of two tasks: the other one is told" {
	agent 0 2 -- "$COUNT" --dir job --steps 100000 --step-ms 5
	agent 1 2 -- ./absent
	ended 1 127
	ended 0 44
	grep -q "task 1 failed on $HOSTNAME with 127" err.0
	nothing_left
}

@test "bad usage: refused with 2, one message, and nothing is made" {
	refused() {
		run -2 --separate-stderr preempt-run "$@"
		[ -z "$output" ]
		[ "$(wc -l <<<"$stderr")" -le 2 ]
		[[ $stderr == preempt-run:* ]]
		[ -z "$(ls -A store; ls -A boards)" ]
	}
	refused
	refused --
	refused --no-such -- true
	refused -n 0 -- true
	refused -n 2x -- true
	refused -n -1 -- true
	refused -n 99999999999999999999 -- true
	refused -n 2 --ranks 2 -- true
	refused --task 2 --tasks 2 -- true
	refused --task 1 -- true
	refused --tasks 0 -- true
	refused --task 0 --tasks 2 --grace 5parsecs -- true
	refused --task 0 --tasks 2 --grace -5 -- true
	refused --savers some -- true
	refused --complete none -- true
	refused --on-store-loss panic -- true
	refused --exit-code 0 -- true
	refused --exit-code 256 -- true
	refused --run a/b -- true
	unset PREEMPT_RUN
	refused --task 0 --tasks 2 -- true
	[[ $stderr == *--run* ]]
	export PREEMPT_RUN=job
	SLURM_JOB_ID=7 SLURM_PROCID=0 SLURM_NTASKS=4 refused -- true
	[[ $stderr == *srun* ]]
}

@test "bad usage: a source or signal that does not exist is refused with 2" {
	for bad in "--notice signal:NOPE" "--notice signal:KILL" "--notice nothing:x" "--shield NOPE" \
		"--notice file:x --notice command:"; do
		# shellcheck disable=SC2086 # two words
		run -2 --separate-stderr preempt-run $bad -- true
		[[ $stderr == preempt-run:* ]]
	done
	nothing_left
}

@test "INT is passed on and gives 130; so does Ctrl-C on all agents of a terminal" {
	count_agents 2 --steps 100000 --step-ms 5
	until_true 10 all_begun 2 3
	kill -INT "${pids[0]}" "${pids[1]}"
	ended 0 "130|44"
	ended 1 "130|44"
	attempt=2
	one_agent 1 --steps 100000 --step-ms 5
	until_true 10 begun 0 3
	kill -INT "${pids[0]}"
	ended 0 130
	! has TERMINATED_WORKER || false
	nothing_left
}

@test "INT while parked or saving: 130, and the others do not wait for ever" {
	# Task 1 saves for longer than any task waits for it here.
	options=(--save-timeout 10m)
	agent 0 2 "${options[@]}" -- "$COUNT" --dir job --steps 100000 --step-ms 5
	agent 1 2 "${options[@]}" -- "$COUNT" --dir job --steps 100000 --step-ms 5 --save-ms 600000
	until_true 10 all_begun 2 3
	kill -TERM "${pids[0]}"
	until_true 10 grep -qs "^save " job/log/1.1
	kill -INT "${pids[1]}"
	ended 1 "130|43"
	ended 0 43
	nothing_left
}

@test "signals: TERM to the child only (Slurm with cgroups, without a client): the machine's notice" {
	cat >deaf <<-'EOT'
		#!/bin/sh
		echo $$ >"job/$PREEMPT_TASK"
		exec sleep 1000
	EOT
	chmod +x deaf
	for i in 0 1; do agent $i 2 -- ./deaf; done
	until_true 10 test -s job/0 -a -s job/1
	kill -TERM "$(cat job/1)"
	ended 1 "43|42"
	ended 0 "43|42"
	! has ERROR || false
	[ "$(field TERMINATED_WORKER task)" = 1 ]
	nothing_left
}

@test "signals: to the whole process group, and to the whole tree: one checkpoint, 42" {
	for shape in group tree; do
		one_agent 3 --steps 100000 --step-ms 5 --child 1
		until_true 10 all_begun 3 10
		case $shape in
		group) for pid in ${pids[0]} $(pgrep -P "${pids[0]}"); do kill -TERM "$pid" 2>/dev/null || :; done ;;
		tree) for pid in $(ours); do kill -TERM "$pid" 2>/dev/null || :; done ;;
		esac
		all_ended 42
		saved_together 3
		rm -r job/ckpt job/child.*
		attempt=$((attempt + 1))
		nothing_left
	done
}

@test "signals: TERM to a real session's process group, shells and all" {
	cat >job-script <<-'EOT'
		#!/bin/bash
		trap : TERM
		preempt-run -n 2 --report-timeout 20s --save-timeout 1m -- bash "$TRAINERS/count.sh" job 100000 0.005 &
		code=143 # what a trap makes of wait
		while [ $code = 143 ]; do code=0; wait $! || code=$?; done
		exit $code
	EOT
	setsid bash job-script >out.0 2>err.0 3>&- &
	pids=($!)
	until_true 10 all_begun 2 10
	kill -TERM -- "-${pids[0]}"
	all_ended 42
	saved_together 2
	nothing_left
}

@test "signals: a notice while the agent starts is kept: 42, unstarted" {
	# Ten times, at any moment of the start after the first few milliseconds.
	for ((k = 1; k <= 10; k++)); do
		one_agent 1 --steps 100000 --step-ms 5
		until_true 15 listens "${pids[0]}"
		kill -TERM "${pids[0]}"
		ended 0 42
	done
	nothing_left
}

@test "--shield: a command that installs no handler survives TERM to the whole tree" {
	cat >hardy <<-'EOT'
		#!/bin/bash
		echo $$ >job/pid
		grep SigIgn /proc/self/status >job/ignored
		while sleep 0.05; do :; done
	EOT
	chmod +x hardy
	preempt-run --shield TERM,USR1 "${quick[@]}" --save-timeout 60s -- ./hardy 2>err.0 3>&- &
	pids=($!)
	until_true 10 test -s job/ignored
	(((0x$(awk '{print $2}' job/ignored) & (1 << 14 | 1 << 9)) == (1 << 14 | 1 << 9)))
	kill -TERM "$(cat job/pid)"
	kill -USR1 "$(cat job/pid)"
	kill -0 "$(cat job/pid)"
	kill -KILL "${pids[0]}"
	ended 0 137
	nothing_left
}

@test "a training process never outlives its agent, nor do its children, in sessions of their own either" {
	for child in 1 2; do
		one_agent 2 --steps 100000 --step-ms 5 --child $child
		until_true 10 all_begun 2 3
		until_true 5 test -s job/child.0 -a -s job/child.1
		# Agent, guard, 2 commands, 2 children.
		mapfile -t all < <(ours)
		[ ${#all[@]} = 6 ]
		kill -KILL "${pids[0]}"
		ended 0 137
		nothing_left
		rm job/child.*
		attempt=$((attempt + 1))
	done
	# And what outlives its command is swept up at the end.
	one_agent 1 --steps 10 --child 2
	all_ended 0
	nothing_left
}

# The guards, in the order of their numbers.
guards() {
	local pid
	for pid in $(ours); do
		[ "$(cat "/proc/$pid/comm" 2>/dev/null)" != preempt-guard ] || echo "$pid"
	done
}
other_guards() { [ "$(guards | wc -l)" = "$1" ] && ! guards | grep -qxF "$2"; }

@test "a killed guard is replaced, and the new one knows all" {
	count_agents 2 --steps 100000 --step-ms 5 --child 2
	until_true 10 all_begun 2 3
	until_true 5 test -s job/child.0 -a -s job/child.1
	old=$(guards)
	# shellcheck disable=SC2086 # numbers
	kill -KILL $old
	until_true 10 other_guards 2 "$old"
	until_true 10 grep -q "a new one was started" err.0
	# Its agent is killed: what the command has left in sessions of their own goes, and the board.
	kill -KILL "${pids[0]}"
	ended 0 137
	ended 1 44
	nothing_left
}

@test "a guard that was killed at the very end of its agent is no harm" {
	preempt-run "${quick[@]}" -- sh -c 'setsid sleep 1000 & echo here >begun; until [ -e go ]; do sleep 0.05; done' \
		2>err.0 3>&- &
	pids=($!)
	until_true 10 test -s begun
	stop_agent 0
	kill -KILL "$(guards)"
	touch go
	kill -CONT "${pids[0]}"
	all_ended 0
	nothing_left
}

@test "pkill -9 -f of an agent's command line does not hit its guard" {
	count_agents 1 --steps 100000 --step-ms 5 --child 2
	until_true 10 all_begun 1 3
	until_true 5 test -s job/child.0
	# All of ours that have the agent's own option in their command lines, at once.
	hit=()
	for pid in $(ours); do
		! tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -q -e "preempt-run.*--task 0" || hit+=("$pid")
	done
	kill -KILL "${hit[@]}"
	ended 0 137
	nothing_left
}

@test "kill -9 of an agent: its board goes, also where its path is long" {
	local parent=$PWD/boards
	while ((${#parent} < 1000)); do parent+=/a-directory-with-a-name-that-is-rather-long; done
	mkdir -p "$parent"
	options=(--board "$parent")
	count_agents 1 --steps 100000 --step-ms 5
	until_true 10 begun 0 3
	[ -n "$(find "$parent" -mindepth 1 -maxdepth 1 -name 'preempt-board-*')" ]
	kill -KILL "${pids[0]}"
	cleaned() { [ -z "$(ls "$parent")" ]; }
	until_true 10 cleaned
}

@test "agent and guard are killed at once: the command's group goes, and ranks in sessions of their own" {
	cat >launch-c <<-'EOT'
		#!/bin/bash
		for r in 0 1; do LOCAL_RANK=$r setsid "$COUNT" --dir job --steps 100000 --step-ms 5 & done
		sleep 1000 &
		wait
	EOT
	cat >launch-python <<-'EOT'
		#!/bin/bash
		for r in 0 1; do
			LOCAL_RANK=$r setsid python3 -B -c 'import os, subprocess, sys, time
		sys.path.insert(0, os.environ["CLIENTS"])
		import preempt
		preempt.step(0)
		loader = subprocess.Popen(["sleep", "1000"])
		open("job/rank." + os.environ["LOCAL_RANK"], "w").write("here")
		time.sleep(1000)' &
		done
		wait
	EOT
	chmod +x launch-c launch-python
	for launch in c python; do
		preempt-run --ranks 2 "${quick[@]}" -- ./launch-$launch 2>err.0 3>&- &
		pids=($!)
		if [ $launch = c ]; then
			until_true 10 all_begun 2 3
		else
			until_true 30 test -s job/rank.0 -a -s job/rank.1
		fi
		# A stopped agent cannot replace it.
		kill -STOP "${pids[0]}"
		kill -KILL "$(guards)"
		kill -KILL "${pids[0]}"
		ended 0 137
		until_true 10 none_left
		rm -rf boards/*
	done
}

@test "SIGSTOP of an agent: training goes on; the others decide; it leaves when continued" {
	options=(--report-timeout 1s --save-timeout 3s)
	count_agents 3 --steps 100000 --step-ms 2
	until_true 10 all_begun 3 10
	stop_agent 1
	at=$(tail -n 1 job/log/1.1)
	until_true 5 begun 1 $((${at#* } + 20))
	kill -TERM "${pids[0]}"
	ended 0 "42|43" 12
	ended 2 "42|43" 12
	kill -CONT "${pids[1]}"
	ended 1 "42|43" 12
	nothing_left
}

@test "a board that vanishes: that task ends with 43 or an error, and no task hangs" {
	count_agents 2 --steps 100000 --step-ms 2
	until_true 10 all_begun 2 10
	rm -r boards/"$(ls boards | head -n 1)"
	for i in 0 1; do ended $i "43|44" 10; done
	nothing_left
}

@test "process 1 of a container: reaps what is orphaned, passes INT on, stops with 42" {
	unshare -p true 2>/dev/null || skip "needs root, for a PID namespace"
	cat >messy <<-'EOT'
		#!/bin/bash
		# Orphans: their parent, a subshell, is gone at once.
		for ((i = 0; i < 20; i++)); do (true & true &) ; done
		for ((i = 0; i < 1000; i++)); do
			ps -eo ppid,stat | awk '$1 == 1 && $2 ~ /Z/ { z = 1 } END { exit z }' && break
			sleep 0.05
		done
		((i < 1000)) && touch job/reaped
		. "$TRAINERS/count.sh"
	EOT
	unshare -pf --mount-proc preempt-run "${quick[@]}" -- bash messy job 100000 0.01 2>err.0 3>&- &
	pids=($!)
	until_true 15 begun 0 5
	[ -e job/reaped ]
	first=$(pgrep -P "${pids[0]}")
	kill -TERM "$first"
	ended 0 42
	[ -n "$(ls job/ckpt)" ]
	nothing_left
}

@test "--ranks: a launcher that starts its ranks itself, in sessions of their own" {
	cat >fake-torchrun <<-'EOT'
		#!/bin/bash
		children=()
		for ((r = 0; r < 3; r++)); do
			LOCAL_RANK=$r setsid "$COUNT" --dir job --steps 100000 --step-ms 5 &
			children+=($!)
		done
		trap : TERM
		code=0
		for child in "${children[@]}"; do
			c=143 # what a trap makes of wait
			while ((c == 143)); do c=0; wait "$child" || c=$?; done
			((c == 0)) || code=$c
		done
		exit $code
	EOT
	chmod +x fake-torchrun
	preempt-run --ranks 3 "${quick[@]}" -- ./fake-torchrun 2>err.0 3>&- &
	pids=($!)
	until_true 10 all_begun 3 5
	kill -TERM "${pids[0]}"
	all_ended 42
	saved_together 3
	nothing_left
	# And killed: the ranks go with it.
	attempt=2
	preempt-run --ranks 3 "${quick[@]}" -- ./fake-torchrun 2>err.0 3>&- &
	pids=($!)
	until_true 10 all_begun 3 $((saved_step + 1))
	kill -KILL "${pids[0]}"
	ended 0 137
	nothing_left
}

@test "--ranks: a launcher that starts its ranks again: they go back, and still stop together" {
	cat >fake-torchrun <<-'EOT'
		#!/bin/bash
		trap : TERM
		life() {
			ranks=()
			for r in 0 1; do
				LOCAL_RANK=$r "$COUNT" --dir job --steps 100000 --step-ms 5 "$@" &
				ranks+=($!)
			done
		}
		life --fail 1:200:3
		wait -n
		kill -KILL "${ranks[@]}"
		wait
		rm job/log/*
		touch again
		life
		code=143 # what a trap makes of wait
		for rank in "${ranks[@]}"; do
			while ((code == 143)); do code=0; wait "$rank" || code=$?; done
		done
		exit $code
	EOT
	chmod +x fake-torchrun
	preempt-run --ranks 2 "${quick[@]}" -- ./fake-torchrun 2>err.0 3>&- &
	pids=($!)
	until_true 10 test -e again
	until_true 10 all_begun 2 3
	kill -TERM "${pids[0]}"
	all_ended 42
	saved_together 2
	run ! grep "never falls" err.0
	nothing_left
}

@test "--ranks: a rank's ckpt-rotate writes its own shard" {
	cat >fake-torchrun <<-'EOT'
		#!/bin/bash
		set -e
		for r in 1 0; do
			export LOCAL_RANK=$r
			d=$(ckpt-rotate begin ckpt 10 --sharded)
			echo "$r" >"$d/part"
			ckpt-rotate commit ckpt 10 --sharded
		done
		unset LOCAL_RANK
		code=0
		ckpt-rotate begin ckpt 20 --sharded || code=$?
		[ $code = 2 ]
		ckpt-rotate begin ckpt 20 --sharded --task 1
	EOT
	chmod +x fake-torchrun
	preempt-run --ranks 2 "${quick[@]}" -- ./fake-torchrun >out.0 2>err.0 3>&- &
	pids=($!)
	ended 0 0
	grep -q "LOCAL_RANK" err.0
	[ "$(cat ckpt/step-00000010/task-*/part)" = $'0\n1' ]
	[[ $(tail -n 1 out.0) == ckpt/.tmp-step-00000020-*/task-1 ]]
}

@test "--ranks: one rank fails, the launcher ends with its code: an error once" {
	cat >fake-torchrun <<-'EOT'
		#!/bin/bash
		for ((r = 0; r < 2; r++)); do
			LOCAL_RANK=$r "$COUNT" --dir job --steps 100000 --step-ms 5 --fail 1:20:3 &
		done
		wait -n
		code=$?
		kill $(jobs -p)
		exit $code
	EOT
	chmod +x fake-torchrun
	preempt-run --ranks 2 "${quick[@]}" -- ./fake-torchrun 2>err.0 3>&- &
	pids=($!)
	ended 0 3
	nothing_left
}

@test "--ranks: each rank is told on its board to leave when the other machine's command fails" {
	cat >rank <<-'EOT'
		#!/bin/bash
		. "$CLIENT/preempt.sh"
		trap '' TERM
		trap 'echo $? >job/left.$LOCAL_RANK' EXIT
		for ((s = 0; ; s++)); do
			preempt_step $s || exit
			touch job/trains.$LOCAL_RANK
			sleep 0.02
		done
	EOT
	cat >fake-torchrun <<-'EOT'
		#!/bin/bash
		trap '' TERM
		for r in 0 1; do LOCAL_RANK=$r ./rank & done
		wait
	EOT
	chmod +x rank fake-torchrun
	export CLIENT=$BATS_TEST_DIRNAME/../../lib/client
	agent 0 2 --ranks 2 --kill-after 1m -- ./fake-torchrun
	agent 1 2 --ranks 2 -- sh -c 'until [ -e job/trains.0 ] && [ -e job/trains.1 ]; do sleep 0.02; done; exit 5'
	ended 1 5
	ended 0 44
	[ "$(cat job/left.0 job/left.1)" = $'44\n44' ]
	nothing_left
}

@test "a command that ignores TERM is killed after --kill-after, when its peer fails" {
	options=(--kill-after 300ms)
	agent 0 2 --kill-after 300ms -- sh -c 'trap "" TERM; touch job/ignores; while :; do sleep 0.1; done'
	agent 1 2 -- sh -c 'until [ -e job/ignores ]; do sleep 0.02; done; exit 5'
	ended 1 5
	ended 0 44
	nothing_left
}

@test "what the command writes goes where it should: stdout and stderr as they are" {
	preempt-run -- sh -c 'echo out; echo err >&2; printf "no newline" >&2' >out.0 2>err.0
	[ "$(cat out.0)" = out ]
	[ "$(head -n 1 err.0)" = err ]
	grep -q "no newline" err.0
	# Stdin is its own.
	[ "$(echo hello | preempt-run -- cat)" = hello ]
}

@test "stderr that a neighbour has made non-blocking: all that the command writes there arrives" {
	local log
	mkfifo full
	# The command makes it so: it has the same pipe as its stdout. Nothing is read before it has written all.
	exec {log}<>full
	preempt-run -- python3 -c 'import os
os.set_blocking(1, False)
os.write(2, b"x" * 99999 + b"\n")
open("written", "w")' >full 2>&1 3>&- {log}>&- &
	pids[0]=$!
	until_true 10 test -e written
	[ "$(timeout 60 head -c 100000 <&"$log" | wc -c)" = 100000 ]
	ended 0 0
}

@test "a reader of stderr that takes nothing: the notice is heeded, and the agent ends" {
	local name=$PREEMPT_RUN log
	mkfifo stalled
	exec {log}<>stalled
	# What is written at the end reaches a reader that is only slow.
	unset PREEMPT_RUN
	preempt-run -- sh -c 'head -c 100000 /dev/zero >&2; touch written' 2>stalled 3>&- {log}>&- &
	pids[0]=$!
	until_true 10 test -e written
	shell_ended() { ! pgrep -P "${pids[0]}" -x sh; }
	until_true 10 shell_ended
	[ "$(timeout 60 head -c 100000 <&"$log" | wc -c)" = 100000 ]
	ended 0 0
	# More than the pipe takes, and no more than it and the one of the agent take together.
	preempt-run -- sh -c 'head -c 100000 /dev/zero >&2; exit 7' 2>stalled 3>&- {log}>&- &
	pids[0]=$!
	ended 0 7 60
	# It is full.
	PREEMPT_RUN=$name preempt-run -- "$COUNT" --dir job --steps 100000 --step-ms 5 2>stalled 3>&- {log}>&- &
	pids[0]=$!
	until_true 10 begun 0 3
	kill -TERM "${pids[0]}"
	ended 0 42 60
}

@test "a launcher that kills all others when the first has left does not spoil their saves" {
	for ((k = 0; k < 3; k++)); do
		count_agents 4 --steps 100000 --step-ms 5 --save-ms 20
		until_true 10 all_begun 4 $((k * 50 + 5))
		kill -TERM "${pids[k]}"
		code=0
		wait -n "${pids[@]}" || code=$?
		[ $code = 42 ]
		for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null || :; done
		for pid in "${pids[@]}"; do wait "$pid" || :; done 2>/dev/null
		step=$(field RUN_TO_CHECKPOINT step)
		for i in 0 1 2 3; do
			[ -e "job/ckpt/$step/$i" ]
			[ "$(field SAVED/1/$i step)" = "$step" ]
		done
		until_true 3 none_left
		attempt=$((attempt + 1))
	done
}

@test "--notice without a signal: TERM is a notice as well; --platform none: only what is named" {
	options=(--notice file:nothing)
	count_agents 1 --steps 100000 --step-ms 5
	until_true 10 all_begun 1 10
	kill -TERM "${pids[0]}"
	ended 0 42
	attempt=2 options=(--notice file:nothing --platform none)
	count_agents 1 --steps 100000 --step-ms 5
	until_true 10 all_begun 1 10
	kill -TERM "${pids[0]}"
	ended 0 143
	run -2 preempt-run --platform none -- true
	[[ $output = *"--platform none needs --notice"* ]]
}

@test "a command that dies of a signal: a notice where a source watches that very signal, however it is written" {
	unset PREEMPT_RUN
	run -142 preempt-run --platform none --notice signal:VTALRM -- sh -c 'kill -ALRM $$'
	for name in ALRM SIGALRM 14; do
		run -43 preempt-run --platform none --notice "signal:USR1,$name" -- sh -c 'kill -ALRM $$'
		[[ $output == *"notice: signal:ALRM: the command died of it"* ]]
	done
}

@test "no task has begun: 42, and nothing is said to be saved; a command's own 42 is a failure, 1" {
	agent 0 1 -- sleep 1000
	until_true 10 has TASK/0
	until_true 10 pgrep -P "${pids[0]}" -x sleep
	kill -TERM "${pids[0]}"
	ended 0 42
	grep -q "no task had begun to train: nothing was saved" err.0
	run ! grep -q "complete" err.0
	attempt=2
	agent 0 1 -- sh -c 'exit 42'
	ended 0 1
	grep -q "its command exited with 42" err.0
	attempt=3
	agent 0 1 --exit-code 99 -- sh -c 'exit 99'
	ended 0 1
	run ! grep -q "run me again" err.0
	attempt=4
	agent 0 1 --exit-code 1 -- false
	ended 0 1
	run ! grep -q "run me again" err.0
}

@test "SIGCHLD is ignored by the caller: the exit code of a command is known all the same" {
	run -0 env --ignore-signal=CHLD preempt-run --task 0 --tasks 1 --run chld -- true
	run -7 env --ignore-signal=CHLD preempt-run --task 0 --tasks 1 --run chld -- sh -c 'exit 7'
	: >notice
	run -5 env --ignore-signal=CHLD preempt-watch --source file:notice --exec 'exit 5'
}
