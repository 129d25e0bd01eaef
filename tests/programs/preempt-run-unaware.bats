#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-run around programs that know no board, but save on a signal.
# takes: 30
# shellcheck disable=SC2016,SC2030,SC2031,SC2154 # a test is a subshell of its own; text for other shells

bats_require_minimum_version 1.5.0
load ../support/programs

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	PATH=${BIN:-$BATS_TEST_DIRNAME/../../bin}:$PATH
	unset "${!PREEMPT_@}" "${!SLURM_@}"
	mkdir -m 700 job
	export PREEMPT_STORE=$PWD/job/s.db PREEMPT_RUN=job
	cat >solver <<'SOLVER'
#!/bin/bash
# Counts in a checkpoint of its own; saves and ends on USR1.
n=0
[ -z "${PREEMPT_RESUME-}" ] || n=$(cat "$PREEMPT_RESUME/n")
echo "$n" >>"starts.$PREEMPT_TASK"
save() {
	dir=$(ckpt-rotate begin ck "$n" 2>/dev/null) && echo "$n" >"$dir/n" && ckpt-rotate commit ck "$n" >/dev/null
}
trap 'n=$((n + 1)); [ "$PREEMPT_TASK" != 0 ] || save; exit 0' USR1
trap '' TERM
touch "ready.$PREEMPT_TASK"
[ -z "${FINISH-}" ] || { touch finished; exit 0; }
while :; do sleep 0.05; done
SOLVER
	chmod +x solver
	agent='' agents=()
}

teardown() {
	kill -KILL ${agent:+"$agent"} "${agents[@]}" 2>/dev/null || :
}

ready() {
	local end=$((SECONDS + 60))
	until [ -e ready.0 ] && [ -e ready.1 ]; do
		((SECONDS < end)) || return
		sleep 0.02
	done
}

start() {
	rm -f ready.*
	preempt-run -n 2 --kill-after 1s "$@" 2>err 3>&- &
	agent=$!
}

code() {
	local code=0
	wait "$agent" || code=$?
	agent=
	[ "$code" = "$1" ] || { cat err >&2; echo "code $code" >&2; return 1; }
}

@test "--on-notice signal: every task is told; a newer checkpoint means 42, and the next start resumes from it" {
	start --on-notice signal:USR1 --checkpoints ck -- ./solver
	ready
	kill -TERM "$agent"
	code 42
	[ "$(ckpt-rotate latest ck --step)" = 1 ]
	[ "$(cat starts.0 starts.1)" = $'0\n0' ]
	[[ $(preempt-store get run/job/000001/CLOSED) == *'"cause":"preempted"'*'"saved":1,'* ]]
	start --on-notice signal:USR1 --checkpoints ck -- ./solver
	ready
	kill -TERM "$agent"
	code 42
	[ "$(ckpt-rotate latest ck --step)" = 2 ]
	[ "$(tail -n 1 starts.0) $(tail -n 1 starts.1)" = "1 1" ]
	[ "$(grep -cE 'preempt-run: attempt 2: 2 tasks, from step 1 in .*ck$' err)" = 1 ]
}

@test "what was agreed on for a program without steps is what --on-notice does" {
	start --on-notice signal:USR1 -- sh -c 'trap : USR1; touch ready.$PREEMPT_TASK; until [ -e go ]; do sleep 0.05; done'
	ready
	kill -TERM "$agent"
	until_true 20 grep -q 'agreed: no task calls preempt_step; --on-notice sends USR1 to the commands' err
	touch go
	code 43
	run ! grep -q 'nothing to save' err
}

@test "no newer checkpoint appeared: 43" {
	start --on-notice 'command:touch told' --checkpoints ck --save-timeout 6s -- ./solver
	ready
	kill -TERM "$agent"
	code 43
	[ -e told ]
}

@test "asked to stop: 93, whether the program ends before or after the decision, and its checkpoint is named" {
	local i
	start --on-notice signal:USR1 --checkpoints ck -- ./solver
	ready
	preempt-claim --then stop
	code 93
	grep -q 'step 1 is saved and complete; asked to stop: do not run me again (93)' err
	rm -f ready.*
	for i in 0 1; do
		preempt-run --task $i --tasks 2 --on-notice signal:USR1 --checkpoints ck -- ./solver 2>err.$i 3>&- &
		agents[i]=$!
	done
	ready
	# Without task 1 nothing is decided before task 0 has ended.
	stopped "${agents[1]}"
	preempt-claim --then stop
	until_true 10 preempt-store get run/job/000002/LEFT/0
	kill -CONT "${agents[1]}"
	for i in 0 1; do
		agent=${agents[i]}
		code 93
	done
	agents=()
	grep -q 'step 2 is saved and complete; asked to stop: do not run me again (93)' err.0 err.1
}

@test "--done-if tells finished from stopped" {
	start --checkpoints ck --done-if 'test -e finished' -- env FINISH=1 ./solver
	code 0
	rm finished
	start --on-notice signal:USR1 --done-if 'test -e finished' -- ./solver
	ready
	kill -TERM "$agent"
	code 43
}

@test "--ranks: --done-if runs once for the command, and its answer counts for all tasks" {
	preempt-run --ranks 3 --done-if 'echo asked >>asked' -- true
	run -43 preempt-run --ranks 3 --done-if 'echo asked >>asked; exit 1' -- true
	[ "$(cat asked)" = $'asked\nasked' ]
}

@test "--ranks: one search for a newer checkpoint serves all tasks of the command" {
	# Leak checks do not work under strace.
	export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
	strace -o /dev/null true 2>/dev/null || skip "strace may not trace here"
	mkdir ck
	local count
	for count in 1 3; do
		run -43 strace -f -o "trace.$count" -e trace=openat \
			preempt-run --ranks $count --checkpoints ck --done-if false -- true
	done
	[ "$(grep -c '"ck"' trace.1)" -ge 2 ] # also before the command
	[ "$(grep -c '"ck"' trace.1)" = "$(grep -c '"ck"' trace.3)" ]
}

@test "--done-if: a program that uses the board and has saved the agreed step leaves with 42" {
	export CLIENT=$BATS_TEST_DIRNAME/../../lib/client
	cat >trainer <<-'TRAINER'
		#!/bin/bash
		. "$CLIENT/preempt.sh"
		for ((s = 0; ; s++)); do
			preempt_step $s || preempt_saved $s || exit
			touch "ready.$PREEMPT_TASK"
			sleep 0.02
		done
	TRAINER
	chmod +x trainer
	start --done-if false -- ./trainer
	ready
	kill -TERM "$agent"
	code 42
	grep -q 'is saved and complete: run me again (42)' err
}

gone() { ! kill -0 "$(<"$1")" 2>/dev/null; }

@test "the agent goes on while --done-if runs: a notice that comes then is heard, and the answer counts" {
	start --startup 0s --done-if 'echo $$ >asked; while [ ! -e answer ]; do sleep 0.02; done' -- \
		sh -c 'touch ready.$PREEMPT_TASK; [ "$PREEMPT_TASK" = 0 ] || exec sleep 100'
	ready
	until_true 10 test -s asked
	kill -TERM "$agent"
	until_true 10 grep -q 'claimed by' err
	kill -0 "$(<asked)"
	touch answer
	code 43 # of task 1: task 0 has finished
	grep -q 'stopped without' err
}

@test "a --done-if that hangs is ended after --save-timeout, and is no yes" {
	start --save-timeout 1s --done-if 'echo $$ >asked.$$; exec sleep 100' -- true
	code 43
	[ "$(grep -c 'done-if: the command has not ended in time' err)" = 2 ]
	for file in asked.*; do until_true 5 gone "$file"; done
}

@test "a --done-if that hangs is ended before a deadline, also one that becomes known while it runs" {
	start --save-timeout 600s --done-if 'touch asked; exec sleep 1000' -- sh -c 'touch ready.$PREEMPT_TASK'
	until_true 10 test -e asked
	preempt-claim --grace 3s
	until_true 10 grep -q '(43)' err
	code 43
	grep -q 'done-if: the command has not ended in time' err
	rm asked
	start --save-timeout 600s --grace 3s --kill-after 1m --done-if 'touch asked; exec sleep 1000' -- \
		sh -c 'trap "exit 0" TERM; touch ready.$PREEMPT_TASK; while :; do sleep 0.02; done'
	ready
	kill -TERM "$agent"
	until_true 10 grep -q 'run me again (' err
	[ -e asked ]
	grep -q 'done-if: the command has not ended in time' err
}

@test "an --on-notice command that is still at it when the program has ended has until the limit" {
	start --save-timeout 120s --checkpoints ck --on-notice \
		'command:touch stop; mkdir first 2>/dev/null || { until ckpt-rotate latest ck; do sleep 0.05; done; exit; }; sleep 0.5; dir=$(ckpt-rotate begin ck 7) && echo 7 >"$dir/n" && ckpt-rotate commit ck 7' -- \
		sh -c 'touch ready.$PREEMPT_TASK; until [ -e stop ]; do sleep 0.02; done; exit 0'
	ready
	kill -TERM "$agent"
	code 42
	[ "$(ckpt-rotate latest ck --step)" = 7 ]
}

@test "an --on-notice command that hangs is ended at the limit, with what it has started" {
	start --save-timeout 1s --on-notice 'command:touch stop; sleep 100 & echo $! >child.$!; wait' -- \
		sh -c 'touch ready.$PREEMPT_TASK; until [ -e stop ]; do sleep 0.02; done; exit 0'
	ready
	kill -TERM "$agent"
	code 43
	grep -q 'on-notice: the command has not ended in time' err
	for file in child.*; do until_true 5 gone "$file"; done
}

@test "an earlier deadline that becomes known later ends the program, and what --on-notice runs" {
	start --save-timeout 600s --on-notice 'command:touch told; exec sleep 1000' -- \
		sh -c 'trap "" TERM; touch ready.$PREEMPT_TASK; while :; do sleep 0.05; done'
	ready
	preempt-claim
	until_true 10 test -e told
	preempt-claim --grace 2s || [ $? = 1 ]
	until_true 10 grep -q '(43)' err
	code 43
}

@test "the grace line counts the save of a program that saves on a signal as saving, not as left" {
	start --grace 1m --on-notice signal:USR1 --checkpoints ck -- \
		sh -c 'trap "touch told.$PREEMPT_TASK; until [ -e go ]; do sleep 0.02; done; exit 0" USR1; touch ready.$PREEMPT_TASK; while :; do sleep 0.02; done'
	ready
	kill -TERM "$agent"
	until_true 10 test -e told.0 -a -e told.1
	sleep 1 # its save lasts as long, at least
	touch go
	code 43
	grep -qE 's of training, [1-9][0-9]*\.[0-9] s to agree and save, ' err
}

@test "kill -9 of the agent takes --done-if and --on-notice with it" {
	start --done-if 'echo $$ >asked.$$; exec sleep 100' -- sh -c 'touch ready.$PREEMPT_TASK'
	until_true 10 ready
	until_true 10 eval '[ $(cat asked.* 2>/dev/null | wc -l) = 2 ]'
	kill -KILL "$agent"
	code 137
	for file in asked.*; do until_true 5 gone "$file"; done
}

@test "what a command leaves behind is killed before its number can go to another task" {
	# Leak checks do not work under strace.
	export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
	strace -o /dev/null true 2>/dev/null || skip "strace may not trace here"
	strace -o trace -e trace=kill,wait4,clone,clone3,vfork,fork \
		preempt-run --done-if 'exit 0' -- sh -c 'sleep 100 & echo $$ >leader' 2>err
	leader=$(<leader)
	cat trace
	# The number is the leader's until wait4 answers with it.
	awk -v killed="kill(-$leader, SIGKILL)" -v reaped="= $leader" '
		index($0, killed) && !done { before = 1 }
		/^wait4/ && substr($0, length($0) - length(reaped) + 1) == reaped { done = 1; good = before; next }
		index($0, killed) && done { good = 0 }
		END { exit !(done && good) }' trace
}

@test "a way to tell that is none is refused" {
	run -2 preempt-run --on-notice USR1 -- true
	run -2 preempt-run --on-notice signal:NONE -- true
	run -2 preempt-run --on-notice command: -- true
	run -2 preempt-run --signal-to all -- true
}
