#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-run --restarts: run again after a failure, all agents alike, within budgets by cause. (The rows of the
# budgets: tests/unit/budget.c.)
# takes: 130
# shellcheck disable=SC2016,SC2034 # text for other shells; what agents.bash uses

load ../support/agents

setup() {
	agents
	quick=(--kill-after 1s)
	# Saves every 5 steps; fails at the steps in fail.TASK ("now": at any), one line used up each time,
	# or always. Until all have started no task fails. FIRST: the steps of the first attempt.
	cat >trainer <<-'TRAINER'
		#!/bin/bash
		. "$CLIENTS/preempt.sh"
		t=$PREEMPT_TASK
		start=$(cat "ck.$t" 2>/dev/null || echo 0)
		echo "$PREEMPT_ATTEMPT $start" >>"starts.$t"
		[ "$PREEMPT_ATTEMPT" != 1 ] || STEPS=${FIRST:-${STEPS:-20}}
		fails() {
			for ((i = 0; i < PREEMPT_TASKS; i++)); do
				until grep -qs "^$PREEMPT_ATTEMPT " "starts.$i"; do sleep 0.02; done
			done
			echo "$1 at $s" >&2
			exit 7
		}
		for ((s = start; s < ${STEPS:-20}; s++)); do
			preempt_step $s || { echo $s >"ck.$t" && preempt_saved $s; } || exit
			if ((s && s % 5 == 0 && s != start)); then
				echo $s >"ck.$t"
				preempt_saved $s || exit
			fi
			case $(head -n 1 "fail.$t" 2>/dev/null) in
			$s | now)
				sed -i 1d "fail.$t"
				fails broken
				;;
			esac
			[ "${ALWAYS-}" != "$t:$s" ] || fails always
			sleep "${STEP:-0.01}"
		done
		echo done >"done.$t.$PREEMPT_ATTEMPT"
	TRAINER
	chmod +x trainer
	# One that knows no steps, and ends with 0 when it is told.
	echo 'echo "$PREEMPT_ATTEMPT" >>"starts.$PREEMPT_TASK"; until [ -e end ]; do sleep 0.02; done' >until_end
}

teardown() {
	end_agents
	! mountpoint -q other || umount -l other
}

# trains I [OPTION...]: task I of two, with --restarts; what it says is in err.I.
trains() { agent "$1" 2 --restarts "${@:2}" -- ./trainer; }

both_started() { eventually test -s starts.0 -a -s starts.1; }

closed_by() { [[ $(attempt=$1 key CLOSED) == *"\"cause\":\"$2\""* ]]; }

# decided ATTEMPT AGAIN PAUSE_MS WHY: as if the first agent had decided so.
decided() { preempt-store put "run/$PREEMPT_RUN/00000$1/NEXT" "{\"again\":$2,\"pause_ms\":$3,\"why\":\"$4\"}"; }

@test "a command that fails twice is run again twice, and finishes" {
	printf '7\n12\n' >fail.1
	run -0 --separate-stderr preempt-run -n 2 --restarts -- ./trainer
	[ "$(cat starts.1)" = $'1 0\n2 5\n3 10' ]
	[ "$(wc -l <starts.0)" = 3 ]
	closed_by 1 crashed && closed_by 2 crashed && closed_by 3 completed
	[[ $(key CLOSED) == *'"code":7,'*'broken at 7'* ]]
	[[ $stderr == *'attempt 2 crashed, 2 of 3: task 1 failed on '*' with 7: broken at 12; running again in '* ]]
}

@test "one that fails at the same step each time: 93 after three restarts; who starts it then begins again" {
	ALWAYS=0:3 run -93 --separate-stderr preempt-run -n 2 --restarts -- ./trainer
	[ "$(cut -d' ' -f1 starts.0)" = $'1\n2\n3\n4' ]
	[[ $stderr == *'not run again (93): 4 crashes, 3 allowed (--max-crashes): task 0 failed'*'always at 3; 4 attempts in '* ]]
	ALWAYS=0:3 run -93 preempt-run -n 2 --restarts --max-crashes 0 -- ./trainer
	[ "$(wc -l <starts.0)" = 5 ]
	run -0 preempt-run -n 2 --restarts -- ./trainer
}

@test "a command that cannot be started: the reason for 93 is printed and goes to --on-event, too" {
	run -93 --separate-stderr preempt-run --restarts --max-crashes 0 --on-event 'echo $PREEMPT_EVENT >>events' -- ./absent
	[[ $stderr == *'cannot run ./absent'*'not run again (93): 1 crashes, 0 allowed (--max-crashes): task 0 failed'*'; 1 attempt in '* ]]
	[ "$(tail -n 1 events)" = end ]
}

@test "with --checkpoints progress shows by itself" {
	cat >saver <<-'SAVER'
		n=$(cat "$PREEMPT_RESUME/n" 2>/dev/null || echo 0)
		echo "$n" >>starts.0
		[ "$n" = 2 ] || { dir=$(ckpt-rotate begin ck $((n + 1))) && echo $((n + 1)) >"$dir/n" && ckpt-rotate commit ck $((n + 1)); }
		exit 5
	SAVER
	run -93 --separate-stderr preempt-run --restarts --max-crashes 100 --max-no-progress 0 --checkpoints ck -- bash saver
	[ "$(cat starts.0)" = $'0\n1\n2' ]
	[[ $stderr == *'the newest saved step is still 2'* ]]
}

@test "--restarts N: so many in all; a number that is none is refused" {
	ALWAYS=0:3 run -93 --separate-stderr preempt-run --restarts=1 -- ./trainer
	[ "$(wc -l <starts.0)" = 2 ]
	[[ $stderr == *'2 failures, 1 restarts allowed (--restarts)'* ]]
	ALWAYS=0:3 run -93 preempt-run --restarts 1 -- ./trainer
	for bad in --restarts=x "--restarts -1"; do
		# shellcheck disable=SC2086 # two words
		run -2 preempt-run $bad -- true
	done
}

@test "what the first has decided binds the others, whatever they would have decided" {
	export STEPS=100000
	for i in 0 1; do trains $i --max-crashes 0; done
	eventually test -s starts.1
	decided 1 true 1 "said before"
	echo now >fail.1
	eventually grep -q '^2 ' starts.1
	decided 2 false 0 "said before, too"
	echo now >fail.1
	all_ended 93
	grep -q 'said before; running again in 0.0 s' err.0
	grep -q 'not run again (93): said before, too' err.0
}

# ---- Who has finished waits for the others ----

# finished_first [OPTION...]: task 1 trains on, task 0 has finished and waits for it.
finished_first() {
	FIRST=100000 trains 1 "$@"
	eventually has TASK/1
	STEPS=3 trains 0 "$@"
	eventually grep -q 'finished; ' err.0
}

@test "an agent that has finished stays for the others, and runs again with them; without --restarts it goes at once" {
	finished_first
	echo now >fail.1
	all_ended 0
	[ -e done.0.1 ]
	[ -e done.0.2 ]
	[ -e done.1.2 ]
	STEPS=100000 agent 1 2 -- ./trainer
	STEPS=3 agent 0 2 -- ./trainer
	ended 0 0
	run ! grep 'finished; ' err.0
	kill -TERM "${pids[1]}"
	ended 1 43 # what it saved is not complete without the other
}

@test "the last of the others is lost while an agent that has finished waits for it: 0, after --join-timeout" {
	# Only a stopped task is silent for that long.
	finished_first -v --period 250ms --limit 26 --join-timeout 4s
	stopped "${pids[1]}" # as its whole machine would
	# What it has done is done; the launcher of task 1 sees how that one ends.
	ended 0 0
	grep -q 'task 1 .*no heartbeat since' err.0
	grep -q 'no other task has run again' err.0
	grep -q 'has missed two heartbeats' err.0
	closed_by 1 lost
	[ "$(wc -l <starts.0)" = 1 ]
	kill -CONT "${pids[1]}"
	ended 1 44
}

@test "PH-7: TERM while it waits for the others after it has finished: 0" {
	finished_first
	kill -TERM "${pids[0]}"
	ended 0 0
	kill -TERM "${pids[1]}"
	ended 1 43 # what it saved is not complete without the other
}

# Task 1 reaches the store by a mount of its own, which goes away before both have finished;
# task 0 finds it dead.
one_node_away() {
	needs_store_file
	mkdir other
	mount --bind store other 2>/dev/null || skip "needs root, for a mount"
	options=(--restarts --period 250ms --limit 26 --save-timeout 1s)
	agent 0 2 -- bash until_end
	PREEMPT_STORE=$PWD/other/db agent 1 2 -- bash until_end
	both_started
	umount -l other
	touch end
	eventually grep -q 'the tasks here have finished: running again only together with a task that has not' err.0
	eventually grep -q 'finished; waiting for the store' err.1
}

@test "one node has lost the store when all finish, and finds it again: finished, nothing is run again" {
	one_node_away
	mount --bind store other
	all_ended 0
	closed_by 1 completed
	[ "$(cat starts.0 starts.1 | wc -l)" = 2 ]
}

# ---- Preempted, stopped, closed ----

@test "preempted: saved, 42; asked to stop permanently: 93; neither is run again here" {
	export STEPS=100000
	for cause in preempted:42 stopped:93; do
		export PREEMPT_RUN=$cause
		rm -f starts.? ck.?
		for i in 0 1; do trains $i; done
		eventually test -s ck.0 -a -s ck.1
		case $cause in
		preempted:*) kill -TERM "${pids[0]}" ;;
		stopped:*) preempt-claim --then stop --outside ;;
		esac
		all_ended "${cause#*:}"
		[ "$(wc -l <starts.0)" = 1 ]
		closed_by 1 "${cause%:*}"
	done
}

@test "close while agents run: refused, also where only their beats are seen; with --force they end, 44" {
	export STEPS=100000
	for i in 0 1; do agent $i 2 --period 2s -- ./trainer; done
	both_started
	run -1 --separate-stderr preempt-store close
	[[ $stderr = *"attempt 1 runs: task 0-1 (process ${pids[0]} on $HOSTNAME); end it first, or close it with --force"* ]]
	# Processes of another PID namespace cannot be looked at, as those of another machine.
	if unshare --pid --fork true 2>/dev/null; then
		run -1 --separate-stderr unshare --pid --fork preempt-store close
		[[ $stderr = *"attempt 1 runs: task "* ]]
	fi
	run -1 key CLOSED
	preempt-store close --force
	all_ended 44
	grep -q "run job attempt 1 is broken: it was closed by preempt-store close" err.0
	closed_by 1 lost
}

# ---- Between two attempts ----

# pausing SECONDS [OPTION...]: the only agent waits between two attempts, for so long.
pausing() {
	rm -f starts.0 ck.0
	FIRST=100000 agent 0 1 --restarts "${@:2}" -- ./trainer
	eventually test -s starts.0
	decided 1 true "${1}000" crashed
	echo now >fail.0
	eventually grep -q "running again in $1.0 s" err.0
}

@test "TERM between two attempts: 44, at once: nothing new was saved; INT: 130" {
	pausing 100
	kill -TERM "${pids[0]}"
	ended 0 44
	grep -q 'stopped between two attempts' err.0
	export PREEMPT_RUN=interrupted
	pausing 100
	kill -INT "${pids[0]}"
	ended 0 130
}

@test "--notice deadline:+D counts from the start, not again in each attempt" {
	echo '[ ! -e began ] || exec sleep 1000; date +%s%3N >began; exit 7' >late
	agent 0 1 --restarts --notice deadline:+4s --grace 1s -- bash late
	ended 0 "42|43|44" # 44: on a slow machine the time is up before attempt 2 begins
	[ -e began ] || return 0 # not even attempt 1 has begun
	local end
	end=$(sed -n 's/.*notice: deadline:+4s: the time is up at //p' err.0)
	[ -n "$end" ]
	(($(date -d "$end" +%s%3N) <= $(<began) + 4000))
}

@test "a peer that is killed and not brought back: 44, for the launcher that started us" {
	STEP=100 trains 1
	eventually has TASK/1
	FIRST=100000 trains 0 --join-timeout 5s
	eventually test -s starts.1
	kill -KILL "${pids[1]}"
	echo now >fail.0
	ended 0 44
	grep -q 'not all tasks have come back' err.0
	closed_by 1 crashed || closed_by 1 lost # whichever is seen first
	closed_by 2 unjoined
}

@test "an agent that is killed while it trains: the other runs again when it is brought back" {
	export FIRST=100000
	for i in 0 1; do trains $i --period 250ms --limit 40; done
	eventually test -s ck.0
	kill -KILL "${pids[1]}"
	eventually grep -q 'running again' err.0
	closed_by 1 lost
	trains 1 --period 250ms --limit 40
	all_ended 0
	[ "$(tail -n 1 starts.0 | cut -d' ' -f1)" = 2 ]
}

@test "the store's directory is unreachable when it is time to run again, and comes back: run again" {
	needs_store_file
	pausing 3 --max-crashes 1
	mv store away
	eventually grep -q 'trying again' err.0
	mv away store
	ended 0 0
	[ "$(cut -d' ' -f1 starts.0)" = $'1\n2' ]
	grep -q 'the store answers again' err.0
}

@test "the store's directory is away permanently when it is time to run again: 75, also if an empty one is in its place" {
	needs_store_file
	pausing 3 --max-crashes 1 --join-timeout 2s
	mv store away
	ended 0 75
	[ "$(wc -l <starts.0)" = 1 ]
	[ "$(grep -c 'trying again' err.0)" = 1 ]
	[[ $(tail -n 1 err.0) == *"$PWD/store"* && $(tail -n 1 err.0) != *'trying again' ]]
	mv away store
	export PREEMPT_RUN=replaced
	pausing 3 --max-crashes 1 --join-timeout 2s
	mv store away
	mkdir -m 700 store
	ended 0 75
	[ "$(wc -l <starts.0)" = 1 ]
	[ -z "$(ls -A store)" ]
	[[ $(tail -n 1 err.0) == *'does not exist any more; put it back'* ]]
}

@test "the store cannot be asked between two attempts: 44, not a decision" {
	needs_store_file
	echo 7 >fail.0
	agent 0 1 --restarts --save-timeout 1s -- bash -c './trainer || { echo garbage >store/db; exit 7; }'
	ended 0 44
	grep -q 'cannot run again here: start this run again' err.0
}

@test "a task that hangs: ended, run again with the others; hangs have their own budget" {
	cat >hangs <<-'HANGS'
		. "$CLIENTS/preempt.sh"
		case $PREEMPT_TASK:$PREEMPT_ATTEMPT in
		1:1)
			for _ in {1..12}; do preempt_step 0; sleep 0.5; done
			touch asked
			exec sleep 1000
			;;
		0:1) exec sleep 1000 ;; # until the other has hung
		*) exec ./trainer ;;
		esac
	HANGS
	options=(--restarts --period 250ms --limit 40 --progress-timeout 3s --max-crashes 0)
	agents_of 2 bash hangs
	all_ended 0
	[ -e asked ] # to ask again at the same step is progress
	closed_by 1 hung
	closed_by 2 completed
	grep -q 'attempt 1 hung, 1 of 3: .*; running again in' err.0
}
