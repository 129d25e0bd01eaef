#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-run: the agreed step is a floor, and a checkpoint is complete only by what was saved; with real
# processes. All interleavings are in the simulator (tests/sim/group/scenarios.txt).
# shellcheck disable=SC2030,SC2031,SC2034,SC2154 # each test is a subshell with its own variables
# shellcheck disable=SC2012,SC2016 # numbers; what loop.sh evaluates
# takes: 60

bats_require_minimum_version 1.5.0

setup_file() {
	load ../support/trainers/agents
	agents_setup_file
}

setup() {
	load ../support/trainers/agents
	agents_setup
	quick=(--report-timeout 60s --save-timeout 120s --join-timeout 120s --kill-after 1s --limit 100)
	mkdir ckpt
	# A loop over the boundaries that $BOUNDARIES prints, one a line. The first save of a task waits while
	# there is a file slow.TASK, any other while there is slow2.TASK.
	cat >loop.sh <<-'X'
		. "$CLIENTS/preempt.sh"
		slow=slow
		mapfile -t at < <(eval "$BOUNDARIES")
		save() {
			while [ -e $slow.$PREEMPT_TASK ]; do sleep 0.02; done
			slow=slow2
			mkdir -p ckpt/$1 && echo $1 >ckpt/$1/$PREEMPT_TASK
		}
		for ((i = 0; i + 1 < ${#at[@]}; i++)); do
			preempt_step ${at[i]} ${NEXT:+${at[i + 1]}} || { echo ${at[i]} >asked.$PREEMPT_TASK; save ${at[i]} && preempt_saved ${at[i]}; } || exit
			echo ${at[i]} >step.$PREEMPT_TASK
			sleep 0.02
		done
	X
	export NEXT=yes BOUNDARIES='seq 0 100000'
}

teardown() { agents_teardown; }

loops() {
	local i n=$1
	for ((i = 0; i < n; i++)); do agent "$i" "$n" "${options[@]}" -- bash loop.sh; done
	for ((i = 0; i < n; i++)); do until_true 20 came_to "$i" 20; done
}
came_to() { local s; read -r s 2>/dev/null <"step.$1" && ((s >= $2)); }
saved_at() { basename "$(dirname "$(ls -t ckpt/*/"$1" | head -n 1)")"; }
rounds() { preempt-store list "run/job/000001/ROUND/" | wc -l; }

@test "boundaries that never coincide: a few rounds, then each saves where it stands, and none is complete" {
	export BOUNDARIES='seq $PREEMPT_TASK 2 100000'
	loops 2
	kill -TERM "${pids[1]}"
	all_ended 43
	(($(rounds) <= 5))
	(($(saved_at 0) % 2 == 0 && $(saved_at 1) % 2 == 1))
	nothing_left
}

@test "the same with --per-task: each one's own checkpoint is complete" {
	export BOUNDARIES='seq $PREEMPT_TASK 2 100000'
	options=(--per-task)
	loops 2
	kill -TERM "${pids[1]}"
	all_ended 42
	nothing_left
}

@test "boundaries every 4 and every 6 steps: both save at one that they share" {
	export BOUNDARIES='seq 0 $((4 + 2 * PREEMPT_TASK)) 100000'
	loops 2
	kill -TERM "${pids[0]}"
	all_ended 42
	[ "$(saved_at 0)" = "$(saved_at 1)" ]
	(($(saved_at 0) % 12 == 0))
	nothing_left
}

@test "irregular boundaries that both share: one round" {
	export BOUNDARIES='s=0; for ((k = 0; k < 3000; k++)); do echo $s; s=$((s + 1 + k * k % 13)); done'
	loops 2
	kill -TERM "${pids[0]}"
	all_ended 42
	[ "$(saved_at 0)" = "$(saved_at 1)" ]
	[ "$(rounds)" = 1 ]
	nothing_left
}

@test "a loop that asks every ten steps without NEXT: all save at the same multiple of ten" {
	export BOUNDARIES='seq 0 10 100000' NEXT=''
	loops 2
	kill -TERM "${pids[0]}"
	all_ended 42
	[ "$(saved_at 0)" = "$(saved_at 1)" ]
	(($(saved_at 0) % 10 == 0))
	nothing_left
}

@test "a checkpoint on demand with unequal boundaries: both save it at one step, and train on" {
	export BOUNDARIES='seq 0 $((2 + PREEMPT_TASK)) 100000'
	loops 2
	preempt-claim --then continue
	both_saved_one() { for s in ckpt/*; do [ -e "$s/0" ] && [ -e "$s/1" ] && return; done; return 1; }
	until_true 20 both_saved_one
	until_true 20 came_to 0 $(($(saved_at 0) + 10))
	kill -TERM "${pids[0]}"
	all_ended 42
	nothing_left
}

@test "PH-15: a task has finished and the others are preempted: what they save of a sharded checkpoint is not complete" {
	cat >sharded.sh <<-'X'
		. "$CLIENTS/preempt.sh"
		save() { d=$(ckpt-rotate begin ckpt $1 --sharded) && echo x >"$d/w" && ckpt-rotate commit ckpt $1 --sharded >/dev/null; }
		for ((s = 0; PREEMPT_TASK || s < 5; s++)); do
			preempt_step $s || { save $s && preempt_saved $s; } || exit
			echo $s >step.$PREEMPT_TASK
			sleep 0.02
		done
	X
	for i in 0 1; do agent $i 2 -- bash sharded.sh; done
	ended 0 0
	until_true 20 came_to 1 10
	kill -TERM "${pids[1]}"
	ended 1 43
	run -1 ckpt-rotate latest ckpt
	[ "$(preempt-store get run/job/000001/CLOSED | grep -c '"saved":')" = 0 ]
	nothing_left
}

@test "the chief must save and finishes without it, and another task fails: nothing is called complete" {
	cat >chief.sh <<-'X'
		. "$CLIENTS/preempt.sh"
		[ $PREEMPT_TASK = 0 ] || { until [ -e fail ]; do sleep 0.02; done; exit 9; }
		for s in 0 5 10; do
			preempt_step $s $((s + 50)) || exit
			echo $s >step.0
			until [ -e finish ] || [ $s -lt 10 ]; do sleep 0.02; done
		done
	X
	options=(--savers chief)
	for i in 0 1; do agent $i 2 "${options[@]}" -- bash chief.sh; done
	until_true 20 came_to 0 10
	kill -TERM "${pids[0]}"
	until_true 20 has RUN_TO_CHECKPOINT
	touch finish
	until_true 20 has LEFT/0
	touch fail
	ended 0 0
	ended 1 43
	run ! grep -h complete.*42 err.0 err.1
	run -43 preempt-status --run job --exit-code -q
	nothing_left
}

@test "the first save ends after the final round was opened: it counts, and all leave with 42" {
	preempt-store put run/job/MEASURE '{"save_ms": 2000}' >/dev/null
	options=(--grace 12s)
	touch slow.1 slow2.1 # nothing but the first save becomes complete
	loops 2
	kill -TERM "${pids[0]}"
	until_true 20 has ROUND/2
	rm slow.1
	until_true 20 has SAVED/1/1
	ended 0 42 40
	ended 1 42
	[ "$(field CLOSED saved)" = "$(field RUN_TO_CHECKPOINT step)" ]
	nothing_left
}

@test "one agent has all tasks, and the store is lost after the decision: the saves are enough for 42" {
	needs_store_file
	touch slow.0 slow.1
	"${interruptible[@]}" preempt-run -n 2 "${quick[@]}" -- bash loop.sh >out.0 2>err.0 3>&- &
	pids=($!)
	for i in 0 1; do until_true 20 came_to $i 20; done
	kill -TERM "${pids[0]}"
	asked() { [ -e asked.0 ] && [ -e asked.1 ]; }
	until_true 20 asked
	mv store away
	rm slow.0 slow.1
	ended 0 42 60
	grep -q "saved and complete: run me again (42)" err.0
	mv away store
}

@test "a step that one task saved alone is no progress, and no record calls it saved" {
	touch slow.1
	options=(--grace 3s)
	loops 2
	kill -TERM "${pids[0]}"
	ended 0 43
	ended 1 43
	rm slow.1
	[ -n "$(ls ckpt/*/0)" ]
	run ! grep -E '"(saved|step)":' <(preempt-store get run/job/000001/CLOSED)
	run -43 preempt-status --run job --exit-code -q
}

@test "a claim that cannot be read, or of another version: all save and leave, and preempt-run says so" {
	local claim
	for claim in '[]' '{"then":"pause"}'; do
		loops 2
		preempt-store put "run/job/00000$attempt/TERMINATED_WORKER" "$claim" >/dev/null
		kill -TERM "${pids[0]}"
		all_ended 42
		[ "$(saved_at 0)" = "$(saved_at 1)" ]
		grep -hq "the claim cannot be read" err.0 err.1
		attempt=$((attempt + 1))
		rm step.*
	done
	nothing_left
}
