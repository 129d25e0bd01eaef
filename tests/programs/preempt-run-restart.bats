#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-run --restarts: run again after a failure, all agents alike, within budgets by cause.
# takes: 125
# shellcheck disable=SC2016,SC2030,SC2031,SC2154 # a test is a subshell of its own; text for other shells

bats_require_minimum_version 1.5.0
load ../support/programs

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	PATH=${BIN:-$BATS_TEST_DIRNAME/../../bin}:$PATH
	mkdir -m 700 job
	store_for_test "$PWD/job/s.db"
	export PREEMPT_RUN=job CLIENT=$BATS_TEST_DIRNAME/../../lib/client
	# Saves every 5 steps; fails at the steps in fail.TASK ("now": at any), one line used up each time,
	# or always. Until all have started no task fails. FIRST: the steps of the first attempt.
	cat >trainer <<-'TRAINER'
		#!/bin/bash
		. "$CLIENT/preempt.sh"
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
	agents=()
}

teardown() {
	[ -n "${BATS_TEST_COMPLETED:-}" ] || tail -n 100 err* starts.* >&2 || :
	[ -n "${BATS_TEST_COMPLETED:-}" ] || preempt-store list --values run/ >&2 || :
	local pid
	for pid in "${agents[@]}"; do
		kill -KILL "$pid" 2>/dev/null || :
		wait "$pid" 2>/dev/null || :
	done
	! mountpoint -q other || umount -l other
}

# agent I OPTION...: one of two, as on two machines; what it says is in err.I.
agent() {
	local i=$1
	shift
	preempt-run --task "$i" --tasks 2 --kill-after 1s "$@" 2>>"err.$i" 3>&- &
	agents[i]=$!
}

code() { # of agent I: CODE, or one of CODE|CODE
	local code=0
	wait "${agents[$1]}" || code=$?
	[[ "|$2|" == *"|$code|"* ]] || { echo "agent $1: code $code" >&2; return 1; }
}

key() { preempt-store get "run/job/$(printf %06d "$1")/$2" 2>/dev/null; }
closed_by() { [[ $(key "$1" CLOSED) == *"\"cause\":\"$2\""* ]]; }

@test "a command that fails twice is run again twice, and finishes" {
	printf '7\n12\n' >fail.1
	run -0 --separate-stderr preempt-run -n 2 --restarts -- ./trainer
	[ "$(cat starts.1)" = $'1 0\n2 5\n3 10' ]
	[ "$(wc -l <starts.0)" = 3 ]
	closed_by 1 crashed && closed_by 2 crashed && closed_by 3 completed
	[[ $(key 1 CLOSED) == *'"code":7,'*'broken at 7'* ]]
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

@test "crashes count across processes, also without --restarts" {
	for i in 1 2 3; do ALWAYS=0:3 run -7 preempt-run -- ./trainer; done
	ALWAYS=0:3 run -93 preempt-run --restarts -- ./trainer
	[ "$(wc -l <starts.0)" = 4 ]
}

@test "no newer step is saved: 93, long before the crashes are used up; with progress it goes on" {
	ALWAYS=0:7 run -93 --separate-stderr preempt-run --restarts --max-crashes 100 --max-no-progress 1 -- ./trainer
	# The first saved step 5, the second and third no more.
	[ "$(cat starts.0)" = $'1 0\n2 5\n3 5' ]
	[[ $stderr == *'no progress in 2 attempts, 1 allowed (--max-no-progress): the newest saved step is still 5'* ]]
	printf '11\n16\n' >fail.0
	run -0 preempt-run --restarts --max-crashes 100 --max-no-progress 0 -- ./trainer
	[ "$(tail -n 3 starts.0 | cut -d' ' -f2)" = $'5\n10\n15' ]
}

@test "with --checkpoints progress shows by itself" {
	cat >saver <<-'SAVER'
		#!/bin/bash
		n=$(cat "$PREEMPT_RESUME/n" 2>/dev/null || echo 0)
		echo "$n" >>starts.0
		[ "$n" = 3 ] || { dir=$(ckpt-rotate begin ck $((n + 1))) && echo $((n + 1)) >"$dir/n" && ckpt-rotate commit ck $((n + 1)); }
		exit 5
	SAVER
	chmod +x saver
	run -93 --separate-stderr preempt-run --restarts --max-crashes 100 --max-no-progress 0 --checkpoints ck -- ./saver
	[ "$(cat starts.0)" = $'0\n1\n2\n3' ]
	[[ $stderr == *'the newest saved step is still 3'* ]]
}

@test "--restarts N: so many in all; a number that is none is refused" {
	for form in "--restarts 1" "--restarts=1"; do
		rm -f starts.0
		# shellcheck disable=SC2086 # two words
		ALWAYS=0:3 run -93 --separate-stderr preempt-run $form -- ./trainer
		[ "$(wc -l <starts.0)" = 2 ]
		[[ $stderr == *'2 failures, 1 restarts allowed (--restarts)'* ]]
	done
	run -2 preempt-run --restarts=x -- true
	run -2 preempt-run --restarts -1 -- true
	run -0 preempt-run --restarts -- true
}

# reason_of I: why the agent of task I says that nothing is run again.
reason_of() { sed -n 's/.*\(not run again.*\); [0-9]* attempts\? in .*/\1/p' "err.$1" | grep .; }

@test "two agents: both run again, in the same attempts, and both give up for the same reason" {
	export ALWAYS=1:3
	agent 0 --restarts -- ./trainer
	agent 1 --restarts -- ./trainer
	code 0 93
	code 1 93
	[ "$(cut -d' ' -f1 starts.0)" = $'1\n2\n3\n4' ]
	[ "$(cut -d' ' -f1 starts.1)" = $'1\n2\n3\n4' ]
	[ "$(reason_of 0)" = "$(reason_of 1)" ]
}

@test "agents that would decide differently follow the first" {
	export ALWAYS=1:3
	local limits
	for limits in "1 0" "0 1"; do
		export PREEMPT_RUN=job${limits% *}
		agent 0 --restarts --join-timeout 1m --max-crashes "${limits% *}" -- ./trainer
		agent 1 --restarts --join-timeout 1m --max-crashes "${limits#* }" -- ./trainer
		code 0 93
		code 1 93
		[ "$(wc -l <starts.0)" = "$(wc -l <starts.1)" ]
		[ "$(reason_of 0)" = "$(reason_of 1)" ]
		rm err.? starts.?
	done
}

@test "what the first has decided binds the others, whatever they would have decided" {
	export STEPS=100000
	agent 0 --restarts --max-crashes 0 -- ./trainer
	agent 1 --restarts --max-crashes 0 -- ./trainer
	until_true 20 test -s starts.1
	preempt-store put run/job/000001/NEXT '{"again":true,"pause_ms":1,"why":"said before"}'
	echo now >fail.1
	until_true 20 grep -q '^2 ' starts.1
	preempt-store put run/job/000002/NEXT '{"again":false,"why":"said before, too"}'
	echo now >fail.1
	code 0 93
	code 1 93
	grep -q 'said before; running again in 0.0 s' err.0
	grep -q 'not run again (93): said before, too' err.0
}

@test "an agent that has finished stays for the others, and runs again with them" {
	STEPS=3 agent 0 --restarts -- ./trainer
	FIRST=100000 agent 1 --restarts -- ./trainer
	until_true 20 grep -q 'finished; ' err.0
	echo now >fail.1
	code 0 0
	code 1 0
	[ -e done.0.1 ] && [ -e done.0.2 ] && [ -e done.1.2 ]
	local said
	said=$(grep -c 'finished;' err.0)
	# Without it, it goes at once.
	STEPS=100000 agent 1 -- ./trainer
	STEPS=3 agent 0 -- ./trainer
	code 0 0
	kill -TERM "${agents[1]}"
	code 1 43 # what it saved is not complete without the other
	[ "$(grep -c 'finished;' err.0)" = "$said" ]
}

@test "an agent that has finished waits for the next attempt also if the pause is longer than --join-timeout" {
	FIRST=100000 agent 1 --restarts --join-timeout 30s -- ./trainer
	until_true 20 preempt-store get run/job/000001/TASK/1
	STEPS=3 agent 0 --restarts --join-timeout 15s -- ./trainer
	until_true 20 grep -q 'finished; ' err.0
	preempt-store put run/job/000001/NEXT '{"again":true,"pause_ms":16000,"why":"said before"}'
	echo now >fail.1
	code 0 0
	code 1 0
	[ -e done.0.2 ] && [ -e done.1.2 ]
}

@test "the last of the others is lost while an agent that has finished waits for it: 0, after --join-timeout" {
	# Only a stopped task is silent for that long.
	STEP=100 agent 1 --restarts --period 250ms --limit 26 -- ./trainer
	until_true 20 preempt-store get run/job/000001/TASK/1
	STEPS=3 agent 0 --restarts --period 250ms --limit 26 --join-timeout 6s -- ./trainer
	until_true 20 grep -q 'finished; ' err.0
	stopped "${agents[1]}" # as its whole machine would
	# What it has done is done; the launcher of task 1 sees how that one ends.
	code 0 0
	grep -q 'task 1 .*no heartbeat since' err.0
	grep -q 'no other task has run again' err.0
	closed_by 1 lost
	[ "$(wc -l <starts.0)" = 1 ]
}

@test "the store is unreachable when the training ends: each says goodbye when it is back, 0" {
	local i
	needs_store_file
	echo 'echo 1 >>"starts.$PREEMPT_TASK"; until [ -e end ]; do sleep 0.02; done' >until_end
	for i in 0 1; do agent $i --restarts --save-timeout 1s -- bash until_end; done
	until_true 20 test -s starts.0
	until_true 20 test -s starts.1
	mv job away
	touch end
	# They have given up to say it at the end, and wait for the store.
	for i in 0 1; do until_true 20 grep -q 'finished; waiting for the store' err.$i; done
	mv away job
	code 0 0
	code 1 0
	closed_by 1 completed
	run -1 grep 'running again' err.0
}

# one_node_away: task 1 reaches the store by a mount of its own, which goes away before both have finished;
# task 0 finds it dead.
one_node_away() { # OPTION...
	needs_store_file
	local live=(--period 250ms --limit 26 --save-timeout 1s)
	echo 'echo 1 >>"starts.$PREEMPT_TASK"; until [ -e end ]; do sleep 0.02; done' >until_end
	mkdir other
	mount --bind job other 2>/dev/null || skip "needs root, for a mount"
	agent 0 --restarts "${live[@]}" "$@" -- bash until_end
	PREEMPT_STORE=$PWD/other/s.db agent 1 --restarts "${live[@]}" "$@" -- bash until_end
	until_true 20 test -s starts.0
	until_true 20 test -s starts.1
	umount -l other
	touch end
	until_true 30 grep -q 'the tasks here have finished: running again only together with a task that has not' err.0
	until_true 30 grep -q 'finished; waiting for the store' err.1
}

@test "one node has lost the store when all finish, and finds it again: finished, nothing is run again" {
	one_node_away
	mount --bind job other
	code 0 0
	code 1 0
	closed_by 1 completed
	[ "$(cat starts.0 starts.1 | wc -l)" = 2 ]
}

@test "one node has lost the store when all finish, permanently: 0, after --join-timeout, nothing is run again" {
	one_node_away --join-timeout 8s
	code 0 0
	code 1 0
	[ "$(cat starts.0 starts.1 | wc -l)" = 2 ]
}

# Closed: both agents see it, and end.
ended_by_closing() {
	code 0 44
	code 1 44
	grep -q "run job attempt 1 is broken: it was closed by preempt-store close" err.0
	closed_by 1 lost
}

@test "close while agents run: refused, also where only their beats are seen; with --force they end, 44" {
	export STEPS=100000
	agent 0 --period 2s -- ./trainer
	agent 1 --period 2s -- ./trainer
	until_true 20 test -s starts.0
	until_true 20 test -s starts.1
	run -1 --separate-stderr preempt-store close
	[[ $stderr = *"attempt 1 runs: task 0-1 (process ${agents[0]} on $HOSTNAME); end it first, or close it with --force"* ]]
	# Processes of another PID namespace cannot be looked at, as those of another machine.
	if unshare --pid --fork true 2>/dev/null; then
		run -1 --separate-stderr unshare --pid --fork preempt-store close
		[[ $stderr = *"attempt 1 runs: task "* ]]
	fi
	run -1 key 1 CLOSED
	preempt-store close --force
	ended_by_closing
}

@test "close while agents are stopped on another machine: it cannot see them, and they end when they go on, 44" {
	unshare --pid --fork true 2>/dev/null || skip "needs root, for a PID namespace"
	export STEPS=100000
	agent 0 --period 500ms --limit 100 -- ./trainer
	agent 1 --period 500ms --limit 100 -- ./trainer
	until_true 20 test -s starts.0
	until_true 20 test -s starts.1
	stopped "${agents[0]}"
	stopped "${agents[1]}"
	unshare --pid --fork preempt-store close
	kill -CONT "${agents[@]}"
	ended_by_closing
}

@test "asked to stop, and a task that has left waits for no task: 93, and 43, also with a further TERM" {
	local how expected
	for how in stop:93 exit:43; do
		expected=${how#*:} how=${how%:*}
		export PREEMPT_RUN=$how STEPS=100000
		rm -f starts.?
		agent 0 --restarts --no-heartbeat --report-timeout 1s --save-timeout 3s -- ./trainer
		agent 1 --restarts --no-heartbeat --report-timeout 1s --save-timeout 3s -- ./trainer
		until_true 20 test -s starts.0
		until_true 20 test -s starts.1
		stopped "${agents[1]}" # it cannot leave
		preempt-claim --then "$how" --outside --grace 4s
		while kill -TERM "${agents[0]}" 2>/dev/null; do sleep 0.1; done
		code 0 "$expected"
		kill -CONT "${agents[1]}"
		code 1 "$expected"
	done
}

@test "TERM while it waits for the others after it has finished: 0" {
	STEPS=3 agent 0 --restarts -- ./trainer
	STEPS=100000 agent 1 --restarts -- ./trainer
	until_true 20 grep -q 'finished; ' err.0
	kill -TERM "${agents[0]}"
	code 0 0
	kill -TERM "${agents[1]}"
	code 1 43 # what it saved is not complete without the other
}

@test "TERM that no source watches ends an agent between two attempts, too, as while its command runs" {
	STEPS=3 agent 0 --restarts --notice signal:USR1 --platform none -- ./trainer
	STEPS=100000 agent 1 --restarts -- ./trainer
	until_true 20 grep -q 'finished; ' err.0
	kill -TERM "${agents[0]}"
	kill -TERM "${agents[1]}"
	code 0 143
	code 1 43 # what it saved is not complete without the other
}

@test "preempted: saved, 42, and not run again here" {
	STEPS=100000 agent 0 --restarts -- ./trainer
	STEPS=100000 agent 1 --restarts -- ./trainer
	until_true 20 test -s ck.0
	until_true 20 test -s ck.1
	kill -TERM "${agents[0]}"
	code 0 42
	code 1 42
	[ "$(wc -l <starts.0)" = 1 ]
	closed_by 1 preempted
}

# Six crashes in a row make a pause of up to 32 s, each one more up to twice that: one of at least 10 s.
pausing() {
	for i in 1 2 3 4 5 6; do ALWAYS=0:0 run -7 preempt-run --task 0 --tasks 1 -- ./trainer; done
	for i in 1 2 3 4 5; do
		# A shell lets what it runs in the background ignore INT.
		ALWAYS=0:0 env --default-signal=INT preempt-run --task 0 --tasks 1 --restarts --max-crashes 100 --max-no-progress 100 -- ./trainer 2>err 3>&- &
		agents[0]=$!
		until_true 20 grep -q 'running again in [0-9.]* s' err
		[[ $(sed -n 's/.*running again in //p' err) == [0-9].* ]] || return 0
		kill -KILL "${agents[0]}"
		wait "${agents[0]}" || :
	done
	return 1
}

@test "TERM between two attempts: 44, at once: nothing new was saved; INT: 130" {
	pausing
	kill -TERM "${agents[0]}"
	code 0 44
	grep -q 'stopped between two attempts' err
	pausing
	kill -INT "${agents[0]}"
	code 0 130
}

# Slurm sends its TERM to the command as well, and squeue needs its time to tell the deadline.
@test "TERM while Slurm is asked for the deadline: no crash of the command, whatever it ends with" {
	mkdir fake
	printf '#!/bin/sh\ntouch asked\nexec sleep 100\n' >fake/squeue
	chmod +x fake/squeue
	export SLURM_JOB_ID=9 SLURM_JOB_END_TIME=$(($(date +%s) + 3600)) PATH=$PWD/fake:$PATH
	cat >fails <<-'FAILS'
		#!/bin/bash
		touch started
		until [ -e fail ]; do sleep 0.02; done
		exit 3
	FAILS
	chmod +x fails
	preempt-run --task 0 --tasks 1 --restarts --notice slurm -- ./fails 2>err 3>&- &
	agents[0]=$!
	until_true 20 test -e started
	kill -TERM "${agents[0]}"
	until_true 20 test -e asked
	touch fail
	code 0 "43|42" # 42: on a slow machine the answer was given up before it ended, and it had never begun
	grep -q 'notice: signal:TERM' err
	run -1 grep 'crashed' err
	closed_by 1 unsaved || closed_by 1 preempted
}

@test "--notice deadline:+D counts from the start, not again in each attempt" {
	local end
	echo 'if [ "$PREEMPT_ATTEMPT" = 1 ]; then date +%s%3N >began; sleep 2; exit 7; fi; exec ./trainer' >late
	STEPS=100000 preempt-run --task 0 --tasks 1 --restarts --notice deadline:+4s --grace 1s -- bash late 2>err 3>&- &
	agents[0]=$!
	code 0 "42|43|44" # 44: on a slow machine the time is up before attempt 2 begins
	[ -e began ] || return 0 # not even attempt 1 has begun
	end=$(sed -n 's/.*notice: deadline:+4s: the time is up at //p' err)
	end=$(date -d "$end" +%s%3N)
	# It counted before the first command began; else from 2 s after that, at the earliest.
	((end < $(<began) + 5500))
}

@test "asked to stop permanently: 93, not run again" {
	STEPS=100000 agent 0 --restarts -- ./trainer
	STEPS=100000 agent 1 --restarts -- ./trainer
	until_true 20 test -s ck.0
	until_true 20 test -s ck.1
	preempt-claim --then stop --outside
	code 0 93
	code 1 93
	closed_by 1 stopped
	[ "$(wc -l <starts.0)" = 1 ]
}

@test "a peer that is killed and not brought back: 44, for the launcher that started us" {
	STEP=100 agent 1 --restarts -- ./trainer
	until_true 20 preempt-store get run/job/000001/TASK/1
	FIRST=100000 agent 0 --restarts --join-timeout 5s -- ./trainer
	until_true 20 test -s starts.1
	kill -KILL "${agents[1]}"
	echo now >fail.0
	code 0 44
	grep -q 'not all tasks have come back' err.0
	closed_by 1 crashed || closed_by 1 lost # whichever is seen first
	closed_by 2 unjoined
}

@test "a peer that is killed and brought back: the others run again with it" {
	FIRST=100000 agent 0 --restarts -- ./trainer
	STEP=100 agent 1 --restarts -- ./trainer
	until_true 20 test -s starts.1
	kill -KILL "${agents[1]}"
	echo now >fail.0
	until_true 20 grep -q 'running again' err.0
	agent 1 --restarts -- ./trainer
	code 0 0
	code 1 0
	[ "$(tail -n 1 starts.0 | cut -d' ' -f1)" = 2 ]
}

@test "long after the start a peer is killed and brought back while another is awaited: the rest join the next attempt" {
	local seconds command='until [ -e crash ]; do sleep 0.02; done; exit 7'
	came_again() { grep -q 'have come back' err.0 || preempt-store get "run/$PREEMPT_RUN/000002/TASK/$1"; }
	# On a machine that stalls, agent 0 gives up before it has seen all: once more, with a longer --join-timeout.
	for seconds in 2 10 40; do
		export PREEMPT_RUN=job$seconds
		rm -f crash err.0
		for i in 1 2; do agent $i --tasks 3 --restarts -- sh -c "$command"; done
		for i in 1 2; do until_true 20 preempt-store get "run/$PREEMPT_RUN/000001/TASK/$i"; done
		agent 0 --tasks 3 --restarts --join-timeout ${seconds}s -- sh -c "$command"
		until_true 20 preempt-store get "run/$PREEMPT_RUN/000001/TASK/0"
		sleep $seconds
		kill -KILL "${agents[2]}"
		touch crash
		for i in 0 1; do until_true 20 came_again $i; done
		kill -KILL "${agents[1]}"
		agent 1 --tasks 3 --restarts -- true
		until_true 20 eval 'grep -qE "joining the next|have come back" err.0 || ! kill -0 "${agents[0]}"'
		if grep 'joining the next attempt' err.0; then break; fi
		kill -KILL "${agents[@]}" || :
		grep 'have come back' err.0
	done
	grep 'joining the next attempt' err.0
}

# paused OPTION...: the command has crashed, is run again after a pause of 2 s, and the store's directory has
# been moved away when that is over. On a machine that stalls the pause has to be longer.
paused() {
	local seconds
	needs_store_file
	for seconds in 2 10 40; do
		preempt-run --restarts --max-crashes 1 "$@" -- bash -c 'echo $PREEMPT_ATTEMPT >>starts.0
			[ $PREEMPT_ATTEMPT = 2 ] || { until [ -e crash ]; do sleep 0.02; done; exit 7; }' 2>err 3>&- &
		agents[0]=$!
		until_true 20 test -s starts.0
		preempt-store put run/job/000001/NEXT "{\"again\":true,\"pause_ms\":${seconds}000,\"why\":\"crashed\"}"
		touch crash
		until_true 20 grep -q "running again in $seconds.0 s" err
		mv job away
		[ -n "$(preempt-store list --store away/s.db run/job/000002)" ] || return 0
		# Too late: all again.
		mv away job
		code 0 0
		rm -r starts.0 crash job
		mkdir -m 700 job
	done
	return 1
}

@test "the store's directory is unreachable when it is time to run again, and comes back: run again" {
	paused
	until_true 20 grep -q 'trying again' err
	mv away job
	code 0 0
	[ "$(cat starts.0)" = $'1\n2' ]
	grep -q 'the store answers again' err
}

@test "the store's directory is unreachable when it is time to run again, permanently: 75, after --join-timeout" {
	paused --join-timeout 2s
	code 0 75
	[ "$(cat starts.0)" = 1 ]
	[ "$(grep -c 'trying again' err)" = 1 ]
	[[ $(tail -n 1 err) == *"$PWD/job"* ]]
	[[ $(tail -n 1 err) != *'trying again' ]]
}

@test "an empty directory is in the place of the store's when it is time to run again: none is made, 75" {
	needs_store_file
	paused --join-timeout 2s
	mkdir -m 700 job
	code 0 75
	[ "$(cat starts.0)" = 1 ]
	[ -z "$(ls -A job)" ]
	[[ $(tail -n 1 err) == *'does not exist any more; put it back'* ]]
}

@test "the store cannot be asked between two attempts: 44, not a decision" {
	needs_store_file
	echo 7 >fail.0
	cat >breaks <<-'BREAKS'
		#!/bin/bash
		./trainer || { chmod 600 job/s.db; echo garbage >job/s.db; exit 7; }
	BREAKS
	chmod +x breaks
	run -44 --separate-stderr timeout 200 preempt-run --restarts --save-timeout 1s -- ./breaks
	[[ $stderr == *'cannot run again here: start this run again'* ]]
}

@test "a task that hangs: ended, run again with the others; hangs have their own budget" {
	preempt-run --help | grep -q -- --progress-timeout || skip "this build finds no hangs"
	cat >hangs <<-'HANGS'
		#!/bin/bash
		if [ "$PREEMPT_TASK:$PREEMPT_ATTEMPT" = 1:1 ] || [ "${ALWAYS-}" = "$PREEMPT_TASK" ]; then
			. "$CLIENT/preempt.sh"
			preempt_step 0
			preempt_section stuck
			sleep 1000
		fi
		# Until the other has hung, task 0 trains.
		[ "$PREEMPT_TASK:$PREEMPT_ATTEMPT" != 0:1 ] && [ -z "${ALWAYS-}" ] || exec sleep 1000
		exec ./trainer
	HANGS
	chmod +x hangs
	# Who is only slow does not hang.
	local limits=(--period 250ms --limit 40 --progress-timeout 1m --section stuck=1s)
	agent 0 --restarts "${limits[@]}" --max-crashes 0 -- ./hangs
	agent 1 --restarts "${limits[@]}" --max-crashes 0 -- ./hangs
	code 0 0
	code 1 0
	closed_by 1 hung && closed_by 2 completed
	grep -q 'attempt 1 hung, 1 of 3: .*; running again in' err.0
	rm -f ck.*
	export ALWAYS=1
	agent 0 --restarts "${limits[@]}" --max-hangs 0 -- ./hangs
	agent 1 --restarts "${limits[@]}" --max-hangs 0 -- ./hangs
	code 0 93
	code 1 93
	grep -q 'not run again (93): 1 hangs, 0 allowed (--max-hangs)' err.0
}

@test "an agent that is killed while it trains: the other runs again when it is brought back" {
	preempt-run --help | grep -q -- --period || skip "this build has no heartbeats"
	export FIRST=100000
	agent 0 --restarts --period 250ms --limit 40 -- ./trainer
	agent 1 --restarts --period 250ms --limit 40 -- ./trainer
	until_true 20 test -s ck.0
	kill -KILL "${agents[1]}"
	until_true 20 grep -q 'running again' err.0
	closed_by 1 lost
	agent 1 --restarts --period 250ms --limit 40 -- ./trainer
	code 0 0
	code 1 0
}
