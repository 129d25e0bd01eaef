#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-run as a process: bad usage, exit codes, signals, output; children and grandchildren, ranks, process 1.
# takes: 45
# shellcheck disable=SC2012,SC2016,SC2034,SC2086 # numbers; text for other shells; what agents.bash uses; words

load ../support/agents

@test "bad usage: refused with 2, one message, and nothing is made" {
	refused() {
		run -2 --separate-stderr preempt-run "$@"
		[ -z "$output" ]
		[[ $stderr == preempt-run:* ]]
		[ "$(wc -l <<<"$stderr")" -le 2 ]
		[ -z "$(ls -A store; ls -A boards)" ] || { echo "made: $*"; return 1; }
	}
	while read -r line; do refused $line; done <<-'EOT'

		--
		--no-such -- true
		-n 0 -- true
		-n 2x -- true
		-n -1 -- true
		-n 99999999999999999999 -- true
		-n 2 --ranks 2 -- true
		--task 2 --tasks 2 -- true
		--task 1 -- true
		--tasks 0 -- true
		--task 0 --tasks 2 --grace 5parsecs -- true
		--task 0 --tasks 2 --grace -5 -- true
		--savers some -- true
		--complete none -- true
		--on-store-loss panic -- true
		--exit-code 0 -- true
		--exit-code 256 -- true
		--run a/b -- true
		--on-notice USR1 -- true
		--on-notice signal:NONE -- true
		--on-notice command: -- true
		--signal-to all -- true
		--max-bad-restarts 1 -- true
		--max-bad-restarts 0 --checkpoints ck -- true
	EOT
	unset PREEMPT_RUN
	refused --task 0 --tasks 2 -- true
	[[ $stderr == *--run* ]]
	refused --platform none -- true
	[[ $stderr = *"--platform none needs --notice"* ]]
	export PREEMPT_RUN=job SLURM_JOB_ID=7 SLURM_PROCID=0 SLURM_NTASKS=4
	refused -- true
	[[ $stderr == *srun* ]]
}

# ---- Exit codes ----

# Each row: options, the command, the exit code, and what is said.
@test "exit codes: the command's own, 127, 126, 128+n; 1 for a 42 of its own; one that dies of a watched signal: 43" {
	local with command code says
	touch plain
	while IFS='|' read -r with command code says; do
		PREEMPT_RUN='' eval "run -$code preempt-run $with -- $command"
		[[ $output == *"$says"* ]] || { echo "$with $command: $output"; return 1; }
		[[ $code = 43 || $output != *"run me again"* ]]
	done <<-'END'
		|true|0|
		|sh -c 'exit 7'|7|
		|sh -c 'kill -KILL $$'|137|
		|./absent|127|preempt-run: cannot run ./absent: No such file or directory
		|./plain|126|preempt-run: cannot run ./plain: Permission denied
		|"$PWD"|126|
		|sh -c 'exit 42'|1|its command exited with 42
		--exit-code 42|sh -c 'exit 42'|1|
		--exit-code 99|sh -c 'exit 99'|1|
		--exit-code 1|false|1|
		--platform none --notice signal:VTALRM|sh -c 'kill -ALRM $$'|142|
		--platform none --notice signal:USR1,ALRM|sh -c 'kill -ALRM $$'|43|notice: signal:ALRM: the command died of it
		--platform none --notice signal:USR1,SIGALRM|sh -c 'kill -ALRM $$'|43|notice: signal:ALRM: the command died of it
		--platform none --notice signal:USR1,14|sh -c 'kill -ALRM $$'|43|notice: signal:ALRM: the command died of it
	END
	options=(--exit-code 9)
	count_agents 2 --steps 100000 --step-ms 5
	eventually all_begun 2 3
	kill -TERM "${pids[0]}"
	all_ended 9
	saved_together 2
	nothing_left
}

@test "no task has begun: 42, and nothing is said to be saved" {
	agent 0 1 --notice 'command:test -e job/here' -- sh -c 'touch job/here; exec sleep 1000'
	ended 0 42
	[ "$(field TERMINATED_WORKER source)" = 'command:test -e job/here' ]
	grep -q "no task had begun to train: nothing was saved" err.0
	run ! grep -q "complete" err.0
}

@test "SIGCHLD is ignored by the caller: the exit code of a command is known all the same" {
	run -0 env --ignore-signal=CHLD preempt-run --task 0 --tasks 1 --run chld -- true
	run -7 env --ignore-signal=CHLD preempt-run --task 0 --tasks 1 --run chld -- sh -c 'exit 7'
	: >notice
	run -5 env --ignore-signal=CHLD preempt-watch --source file:notice --exec 'exit 5'
}

@test "--notice without a signal: TERM is a notice as well; --platform none: only what is named" {
	for platform in auto none; do
		agent 0 1 --notice file:nothing --platform $platform -- "$COUNT" --dir job --steps 100000 --step-ms 5
		eventually all_begun 1 10
		kill -TERM "${pids[0]}"
		if [ $platform = auto ]; then ended 0 42; else ended 0 143; fi
		attempt=$((attempt + 1))
	done
}

# ---- Signals ----

@test "INT is passed on and gives 130, as Ctrl-C on all agents of a terminal: it is no notice" {
	count_agents 2 --steps 100000 --step-ms 5
	eventually all_begun 2 3
	kill -INT "${pids[0]}" "${pids[1]}"
	all_ended "130|44"
	run ! has TERMINATED_WORKER
	nothing_left
}

@test "INT while parked or saving: 130, and the others do not wait for ever" {
	# Task 1 saves for longer than any task waits for it here.
	options=(--save-timeout 10m)
	agent 0 2 -- "$COUNT" --dir job --steps 100000 --step-ms 5
	agent 1 2 -- "$COUNT" --dir job --steps 100000 --step-ms 5 --save-ms 600000
	eventually all_begun 2 3
	kill -TERM "${pids[0]}"
	eventually grep -qs "^save " job/log/1.1
	kill -INT "${pids[1]}"
	ended 1 "130|43"
	ended 0 43
	nothing_left
}

@test "signals: TERM to the child only (Slurm with cgroups, without a client): the machine's notice" {
	agents_of 2 sh -c 'echo $$ >"job/$PREEMPT_TASK"; exec sleep 1000'
	eventually test -s job/0 -a -s job/1
	kill -TERM "$(cat job/1)"
	all_ended "43|42"
	run ! has ERROR
	[ "$(field TERMINATED_WORKER task)" = 1 ]
	nothing_left
}

@test "signals: to agent and commands, to the whole tree of a batch script: one checkpoint, 42" {
	cat >job-script <<-'EOT'
		trap : TERM
		preempt-run -n 3 --report-timeout 20s --save-timeout 1m -- "$COUNT" --dir job --steps 100000 --step-ms 5 --child 1 &
		code=143 # what a trap makes of wait
		while [ $code = 143 ]; do code=0; wait $! || code=$?; done
		exit $code
	EOT
	for shape in commands group tree; do
		setsid bash job-script >out.0 2>err.0 3>&- &
		pids=($!)
		eventually all_begun 3 10
		local agent to
		agent=$(pgrep -P "${pids[0]}" -x preempt-run)
		case $shape in
		commands) to="$agent $(pgrep -P "$agent")" ;;
		group) to=-${pids[0]} ;;
		tree) to=$(ours) ;;
		esac
		kill -TERM -- $to 2>/dev/null || :
		all_ended 42
		saved_together 3
		rm -r job/ckpt job/child.*
		attempt=$((attempt + 1))
		nothing_left
	done
}

@test "signals: a notice while the agent starts is kept: 42, unstarted" {
	# TERM is kept or caught. (Bash has a handler for TERM until it has become the program.)
	listens() {
		[ "$(<"/proc/$1/comm")" = preempt-run ] &&
			grep -qs "^Sig\(Blk\|Cgt\):.*[4-7c-f][0-9a-f][0-9a-f][0-9a-f]\$" "/proc/$1/status"
	}
	# Five times, at any moment of the start after the first few milliseconds.
	for k in 1 2 3 4 5; do
		one_agent 1 --steps 100000 --step-ms 5
		eventually listens "${pids[0]}"
		kill -TERM "${pids[0]}"
		ended 0 42
	done
	nothing_left
}

@test "a command that ignores TERM is killed after --kill-after, when its peer fails" {
	agent 0 2 --kill-after 300ms -- sh -c 'trap "" TERM; touch job/ignores; while :; do sleep 0.1; done'
	agent 1 2 -- sh -c 'until [ -e job/ignores ]; do sleep 0.02; done; exit 5'
	ended 1 5
	ended 0 44
	nothing_left
}

# ---- Output ----

@test "what the command writes goes where it should: stdout and stderr as they are" {
	preempt-run -- sh -c 'echo out; echo err >&2; printf "no newline" >&2' >out.0 2>err.0
	[ "$(cat out.0)" = out ]
	[ "$(head -n 1 err.0)" = err ]
	grep -q "no newline" err.0
	# Stdin is its own.
	[ "$(echo hello | preempt-run -- cat)" = hello ]
}

@test "stderr that a neighbour has made non-blocking: all that the command writes there arrives" {
	mkfifo full
	# The command makes it so: it has the same pipe as its stdout. Nothing is read before it has written all.
	exec {log}<>full
	preempt-run -- python3 -c 'import os
os.set_blocking(1, False)
os.write(2, b"x" * 99999 + b"\n")
open("written", "w")' >full 2>&1 3>&- {log}>&- &
	pids=($!)
	eventually test -e written
	[ "$(timeout 60 head -c 100000 <&"$log" | wc -c)" = 100000 ]
	ended 0 0
}

@test "a reader of stderr that takes nothing: the notice is heeded, and the agent ends" {
	local log
	mkfifo stalled
	exec {log}<>stalled
	into_it() {
		preempt-run "$@" 2>stalled 3>&- {log}>&- &
		pids[0]=$!
	}
	# What is written at the end reaches a reader that is only slow.
	into_it --run slow -- sh -c 'head -c 100000 /dev/zero >&2; touch written'
	eventually test -e written
	shell_ended() { ! pgrep -P "${pids[0]}" -x sh; }
	eventually shell_ended
	[ "$(timeout 60 head -c 100000 <&"$log" | wc -c)" = 100000 ]
	ended 0 0
	# More than the pipe takes, and no more than it and the one of the agent take together.
	into_it --run full -- sh -c 'head -c 100000 /dev/zero >&2; exit 7'
	ended 0 7
	# It is full.
	into_it -- "$COUNT" --dir job --steps 100000 --step-ms 5
	eventually begun 0 3
	kill -TERM "${pids[0]}"
	ended 0 42
}

# ---- No command outlives its agent ----

@test "a training process never outlives its agent, nor do its children, in sessions of their own either" {
	for child in 1 2; do
		one_agent 2 --steps 100000 --step-ms 5 --child $child
		eventually all_begun 2 3
		eventually test -s job/child.0 -a -s job/child.1
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

@test "a killed guard is replaced, and the new one knows all" {
	other_guards() { [ "$(guards | wc -l)" = 2 ] && ! guards | grep -qxF "$old"; }
	options=(--period 500ms --limit 100)
	count_agents 2 --steps 100000 --step-ms 5 --child 2
	eventually all_begun 2 3
	eventually test -s job/child.0 -a -s job/child.1
	old=$(guards)
	kill -KILL $old
	eventually other_guards
	eventually grep -q "a new one was started" err.0
	# Its agent is killed: what the command has left in sessions of their own goes, and the board.
	kill -KILL "${pids[0]}"
	ended 0 137
	ended 1 44
	nothing_left
}

# A launcher like torchrun: fake-torchrun N COMMAND... runs COMMAND as N ranks, each in a session of its own, and ends
# with the code of one that has failed. With $FAILS the ranks have these options, too; the first that fails makes it
# kill the others, and end, or with $AGAIN start all once more without those options.
launcher() {
	cat >fake-torchrun <<-'EOT'
		#!/bin/bash
		trap : TERM
		n=$1
		shift
		start() {
			ranks=()
			for ((r = 0; r < n; r++)); do
				LOCAL_RANK=$r setsid "$@" &
				ranks+=($!)
			done
		}
		start "$@" ${FAILS-}
		if [ -n "${FAILS-}" ]; then
			wait -n
			code=$?
			kill -KILL "${ranks[@]}"
			[ -n "${AGAIN-}" ] || exit $code
			wait
			rm job/log/*
			touch again
			start "$@"
		fi
		code=0
		for rank in "${ranks[@]}"; do
			c=143 # what a trap makes of wait
			while ((c == 143)); do c=0; wait "$rank" || c=$?; done
			((c == 0)) || code=$c
		done
		exit $code
	EOT
	chmod +x fake-torchrun
	counting=("$COUNT" --dir job --steps 100000 --step-ms 5)
}

@test "agent and guard are killed at once: the command's group goes, and ranks in sessions of their own" {
	launcher
	cat >rank.py <<-'EOT'
		import os, subprocess, sys, time
		sys.path.insert(0, os.environ["CLIENTS"])
		import preempt
		preempt.step(0)
		loader = subprocess.Popen(["sleep", "1000"])
		open("job/rank." + os.environ["LOCAL_RANK"], "w").write("here")
		time.sleep(1000)
	EOT
	for rank in c python; do
		if [ $rank = c ]; then
			# The group has one more process, which nothing tells that its agent is gone.
			alone --ranks 2 -- sh -c 'sleep 1000 & exec "$@"' sh ./fake-torchrun 2 "${counting[@]}"
			eventually all_begun 2 3
		else
			alone --ranks 2 -- ./fake-torchrun 2 python3 -B rank.py
			eventually test -s job/rank.0 -a -s job/rank.1
		fi
		# A stopped agent cannot replace it.
		kill -STOP "${pids[0]}"
		kill -KILL "$(guards)"
		kill -KILL "${pids[0]}"
		ended 0 137
		eventually none_left
		rm -rf boards/*
	done
}

@test "--ranks: a launcher starts its ranks itself, in sessions of their own, and once more: they go back, and stop together" {
	launcher
	FAILS="--fail 1:200:3" AGAIN=yes alone --ranks 2 -- ./fake-torchrun 2 "${counting[@]}"
	eventually test -e again
	eventually all_begun 2 3
	kill -TERM "${pids[0]}"
	all_ended 42
	saved_together 2
	run ! grep "never falls" err.0
	nothing_left
}

@test "--ranks: one rank fails, the launcher ends with its code: an error once" {
	launcher
	FAILS="--fail 1:20:3" alone --ranks 2 -- ./fake-torchrun 2 "${counting[@]}"
	ended 0 3
	nothing_left
}

@test "--ranks: a rank's ckpt-rotate writes its own shard" {
	cat >shards <<-'EOT'
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
	alone --ranks 2 -- bash shards
	ended 0 0
	grep -q "LOCAL_RANK" err.0
	[ "$(cat ckpt/step-00000010/task-*/part)" = $'0\n1' ]
	[[ $(tail -n 1 out.0) == ckpt/.tmp-step-00000020-*/task-1 ]]
}

@test "--ranks: each rank is told on its board to leave when the other machine's command fails" {
	launcher
	cat >rank <<-'EOT'
		. "$CLIENTS/preempt.sh"
		trap '' TERM
		trap 'echo $? >job/left.$LOCAL_RANK' EXIT
		for ((s = 0; ; s++)); do
			preempt_step $s || exit
			touch job/trains.$LOCAL_RANK
			sleep 0.02
		done
	EOT
	agent 0 2 --ranks 2 --kill-after 1m -- ./fake-torchrun 2 bash rank
	agent 1 2 --ranks 2 -- sh -c 'until [ -e job/trains.0 ] && [ -e job/trains.1 ]; do sleep 0.02; done; exit 5'
	ended 1 5
	ended 0 44
	[ "$(cat job/left.0 job/left.1)" = $'44\n44' ]
	nothing_left
}

@test "process 1 of a container: reaps what is orphaned, passes INT on, stops with 42" {
	unshare -p true 2>/dev/null || skip "needs root, for a PID namespace"
	cat >messy <<-'EOT'
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
	eventually begun 0 5
	[ -e job/reaped ]
	kill -TERM "$(pgrep -P "${pids[0]}")"
	ended 0 42
	[ -n "$(ls job/ckpt)" ]
	nothing_left
}
