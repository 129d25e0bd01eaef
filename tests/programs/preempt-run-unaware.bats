#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-run around programs that know no board, but save on a signal.
# takes: 25
# shellcheck disable=SC2016,SC2034 # text for other shells; what agents.bash uses

load ../support/agents

setup() {
	agents
	quick=(--kill-after 1s)
	# Counts in a checkpoint of its own; saves and ends on USR1.
	cat >solver <<-'SOLVER'
		#!/bin/bash
		n=0
		[ -z "${PREEMPT_RESUME-}" ] || n=$(cat "$PREEMPT_RESUME/n")
		echo "$n" >>"starts.$PREEMPT_TASK"
		save() {
			dir=$(ckpt-rotate begin ck "$n" 2>/dev/null) && echo "$n" >"$dir/n" && ckpt-rotate commit ck "$n" >/dev/null
		}
		trap 'n=$((n + 1)); [ "$PREEMPT_TASK" != 0 ] || save; exit 0' USR1
		trap '' TERM
		touch "ready.$PREEMPT_TASK"
		while :; do sleep 0.05; done
	SOLVER
	chmod +x solver
	# Others: one that runs until it is to stop, and one that ends at once or never.
	until_stop='touch ready.$PREEMPT_TASK; until [ -e stop ]; do sleep 0.02; done'
	never='trap "" TERM; touch ready.$PREEMPT_TASK; while :; do sleep 0.05; done'
}

ready() { eventually test -e ready.0 -a -e ready.1; }

# two [OPTION...] -- COMMAND...: two tasks under one agent, which are ready.
two() {
	rm -f ready.*
	alone -n 2 "$@"
	ready
}

preempted() { kill -TERM "${pids[0]}"; }

# children_ended NAME: all whose number is in a file NAME.NUMBER have ended.
children_ended() {
	for file in "$1".*; do eventually gone "$(<"$file")"; done
}

@test "--on-notice signal: every task is told; a newer checkpoint means 42, and the next start resumes from it" {
	options=(--on-notice signal:USR1 --checkpoints ck)
	two -- ./solver
	preempted
	ended 0 42
	[ "$(ckpt-rotate latest ck --step)" = 1 ]
	[ "$(cat starts.0 starts.1)" = $'0\n0' ]
	[[ $(key CLOSED) == *'"cause":"preempted"'*'"saved":1,'* ]]
	grep -q 'agreed: no task calls preempt_step; --on-notice sends USR1 to the commands' err.0
	two -- ./solver
	preempted
	ended 0 42
	[ "$(ckpt-rotate latest ck --step)" = 2 ]
	[ "$(tail -n 1 starts.0) $(tail -n 1 starts.1)" = "1 1" ]
	[ "$(grep -cE 'preempt-run: attempt 2: 2 tasks, from step 1 in .*ck$' err.0)" = 1 ]
}

@test "asked to stop: 93, whether the program ends before or after the decision, and its checkpoint is named" {
	options=(--on-notice signal:USR1 --checkpoints ck)
	two -- ./solver
	preempt-claim --then stop
	ended 0 93
	grep -q 'step 1 is saved and complete; asked to stop: do not run me again (93)' err.0
	rm -f ready.*
	agents_of 2 ./solver
	ready
	# Without task 1 nothing is decided before task 0 has ended.
	stopped "${pids[1]}"
	preempt-claim --then stop
	attempt=2
	eventually has LEFT/0
	kill -CONT "${pids[1]}"
	all_ended 93
	grep -q 'step 2 is saved and complete; asked to stop: do not run me again (93)' err.0 err.1
}

@test "--done-if tells finished from stopped" {
	run -0 preempt-run -n 2 --checkpoints ck --done-if 'test -e finished' -- touch finished
	rm finished
	two --on-notice signal:USR1 --done-if 'test -e finished' -- ./solver
	preempted
	ended 0 43
}

@test "--ranks: --done-if runs once for the command, and its answer counts for all tasks" {
	preempt-run --ranks 3 --done-if 'echo asked >>asked' -- true
	run -43 preempt-run --ranks 3 --done-if 'echo asked >>asked; exit 1' -- true
	[ "$(cat asked)" = $'asked\nasked' ]
}

@test "--done-if: a program that uses the board and has saved the agreed step leaves with 42" {
	options=(--done-if false)
	one_agent 2 --steps 100000 --step-ms 20
	eventually all_begun 2 1
	preempted
	ended 0 42
	grep -q 'is saved and complete: run me again (42)' err.0
}

@test "the agent goes on while --done-if runs: a notice that comes then is heard, and the answer counts" {
	two --startup 0s --done-if 'echo $$ >asked; while [ ! -e answer ]; do sleep 0.02; done' -- \
		sh -c 'touch ready.$PREEMPT_TASK; [ "$PREEMPT_TASK" = 0 ] || exec sleep 100'
	eventually test -s asked
	preempted
	eventually grep -q 'claimed by' err.0
	kill -0 "$(<asked)"
	touch answer
	ended 0 43 # of task 1: task 0 has finished
	grep -q 'stopped without' err.0
}

@test "a --done-if that hangs is ended after --save-timeout, and before a deadline, and is no yes" {
	alone -n 2 --save-timeout 1s --done-if 'echo $$ >asked.$$; exec sleep 100' -- true
	ended 0 43
	[ "$(grep -c 'done-if: the command has not ended in time' err.0)" = 2 ]
	children_ended asked
	# One that becomes known while it runs, and one that was known before.
	options=(--save-timeout 600s --done-if 'touch asked; exec sleep 1000')
	two -- sh -c 'touch ready.$PREEMPT_TASK'
	eventually test -e asked
	preempt-claim --grace 3s
	ended 0 43
	grep -q 'done-if: the command has not ended in time' err.0
	rm asked
	two --grace 3s --kill-after 1m -- sh -c 'trap "exit 0" TERM; touch ready.$PREEMPT_TASK; while :; do sleep 0.02; done'
	preempted
	eventually grep -q 'run me again (' err.0
	[ -e asked ]
	grep -q 'done-if: the command has not ended in time' err.0
}

@test "an --on-notice command that hangs is ended at the limit, with what it has started" {
	two --save-timeout 1s --on-notice 'command:touch stop; sleep 100 & echo $! >child.$!; wait' -- sh -c "$until_stop"
	preempted
	ended 0 43
	grep -q 'on-notice: the command has not ended in time' err.0
	children_ended child
}

@test "an earlier deadline that becomes known later ends the program, and what --on-notice runs" {
	two --save-timeout 600s --on-notice 'command:touch told; exec sleep 1000' -- sh -c "$never"
	preempt-claim
	eventually test -e told
	preempt-claim --grace 2s || [ $? = 1 ]
	ended 0 43
}

@test "kill -9 of the agent takes --done-if and --on-notice with it" {
	two --done-if 'echo $$ >asked.$$; exec sleep 100' -- sh -c 'touch ready.$PREEMPT_TASK'
	both_asked() { [ "$(cat asked.* | wc -l)" = 2 ]; }
	eventually both_asked
	kill -KILL "${pids[0]}"
	ended 0 137
	children_ended asked
}
