#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# kill -9 of any agent, any training process and every task, at every stage of the protocol. After each
# (docs/design.md has I1 to I8): at most one claim (I1), one step per round (I2), no step after the final one
# (I3), every task gone in time (I4), what was acknowledged is still there (I5), the next attempt starts from
# the newest complete checkpoint and counts right (I6, I7), no process and no board is left.
# takes: 50
# alone
# asan: no (KILL leaves nothing to look at, and it takes minutes)
# shellcheck disable=SC2030,SC2031,SC2034,SC2154 # each test is a subshell with its own variables
# shellcheck disable=SC2012,SC2086 # numbers
# soak (takes long)

bats_require_minimum_version 1.5.0

setup_file() {
	load ../support/trainers/agents
	agents_setup_file
}

setup() {
	load ../support/trainers/agents
	agents_setup
	# Nothing here waits for one of the first three: whichever task is killed is seen to be gone.
	quick=(--report-timeout 20s --save-timeout 30s --join-timeout 2m --kill-after 500ms)
}

teardown() { agents_teardown; }

stages=(joined training claim round report decision hold ack saving save_done left)

# Wait until the protocol has come so far.
at_stage() {
	case $1 in
	joined) until_true 10 has TASK/1 ;;
	training) until_true 10 all_begun 3 $((base + 5)) ;;
	claim) until_true 10 has TERMINATED_WORKER ;;
	round) until_true 10 has ROUND/1 ;;
	report) until_true 10 has STEP/1/1 ;;
	hold) until_true 10 held ;;
	decision) until_true 10 has RUN_TO_CHECKPOINT ;;
	ack) until_true 10 has RECEIVED_SIGNAL_RUN_TO_CHECKPOINT_1 ;;
	saving) until_true 10 grep -qs "^save " job/log/$attempt.1 ;;
	save_done) until_true 10 has SAVED/1/1 ;;
	left) until_true 10 has LEFT/1 ;;
	esac
}

# A board goes with its agent: who is late to look sees it in the store that there was one.
held() { cat boards/*/hold 2>/dev/null | grep -q . || has LEFT/1; }

complete_steps() {
	local s
	for s in job/ckpt/*; do
		s=${s##*/}
		[ "$s" = "*" ] || [ ! -e "job/ckpt/$s/0" ] || [ ! -e "job/ckpt/$s/1" ] || [ ! -e "job/ckpt/$s/2" ] || echo "$s"
	done
}

# is_member TASK: the decision is for it, too; it had neither died nor failed before.
is_member() {
	key RUN_TO_CHECKPOINT | python3 -c 'import json, sys
ranges = [one.split("-") for one in json.load(sys.stdin)["members"].split(",") if one]
sys.exit(not any(int(one[0]) <= int(sys.argv[1]) <= int(one[-1]) for one in ranges))' "$1"
}

holds_true() {
	local i round step key
	[ "$(count_keys TERMINATED_WORKER)" -le 1 ]
	for key in $(keys SAVED/); do
		round=${key%/*} round=${round##*/}
		if [ "$round" = 1 ]; then step=$(field RUN_TO_CHECKPOINT step); else step=$(field "LAST_RUN_TO_CHECKPOINT/$round" step); fi
		# What is said to be saved is the agreed step, and is there.
		[ "$(field "SAVED/$round/${key##*/}" step)" = "$step" ]
		[ -e "job/ckpt/$step/${key##*/}" ]
	done
	step=$(agreed)
	if [ -n "$step" ] && [ "$(field RUN_TO_CHECKPOINT kind)" = exit ]; then
		for i in 0 1 2; do
			# One that died, or whose command did, may have been further.
			[ ! -e job/log/$attempt.$i ] || has DEAD/$i || ! is_member $i || never_after $i "$step" ||
				{ tell_all; return 1; }
		done
	fi
	# No task says that it is complete when it is not.
	for i in 0 1 2; do
		[ "$(field LEFT/$i reason)" != saved ] || complete_steps | grep -qx "$step"
	done
}

# One attempt: TERM to task 0 in the middle, KILL to WHOM at STAGE.
attempt_with_kill() {
	local whom=$1 stage=$2 victim i code
	echo "attempt $attempt: $whom at $stage, from step $base"
	count_agents 3 --steps 1000000 --step-ms 3 --save-ms 100
	[ "$stage" != joined ] || at_stage joined
	if [ "$stage" != joined ]; then
		at_stage training
		[ "$stage" = training ] || kill -TERM "${pids[0]}"
	fi
	at_stage "$stage"
	case $whom in
	agent*) kill -KILL "${pids[${whom#agent}]}" 2>/dev/null || : ;;
	child*)
		victim=$(command_of "${whom#child}" || :)
		[ -z "$victim" ] || kill -KILL "$victim" 2>/dev/null || :
		;;
	all)
		kill -KILL "${pids[@]}" 2>/dev/null || :
		;;
	esac
	# Where no notice came the others may train on: one comes now.
	case $stage in
	joined | training) for i in 0 1 2; do kill -TERM "${pids[i]}" 2>/dev/null || :; done ;;
	esac
	for i in 0 1 2; do ended $i "42|43|44|137|143" 12; done
	until_true 3 none_left
	if [ "$whom" = all ]; then rm -rf boards/*; fi
	[ -z "$(ls boards)" ] || { ls boards; false; }
	holds_true
	base=$(complete_steps | sort -n | tail -n 1)
	base=${base:-0}
	next_attempt
}

# Who is slow to start may find the attempt closed, and open one of its own.
next_attempt() {
	attempt=$(($(preempt-store get run/job/LAST | tr -dc 0-9) + 1))
}

# The next attempt begins at the newest complete checkpoint, and nothing was lost or done twice.
finish_up() {
	local i steps=$((base + 20))
	rm -f job/end/*
	count_agents 3 --steps $steps
	all_ended 0
	for i in 0 1 2; do grep -qx "start $base" job/log/$attempt.$i; done
	counted 3 $steps
	nothing_left
}

sweep() {
	local stage
	base=0
	for stage in "${stages[@]}"; do attempt_with_kill "$1" "$stage"; done
	finish_up
}

@test "KILL of the noticed agent at every stage" { sweep agent0; }
@test "KILL of another agent at every stage" { sweep agent1; }
@test "KILL of the noticed training process at every stage" { sweep child0; }
@test "KILL of another training process at every stage" { sweep child1; }
@test "CS-4: KILL of all agents at every stage" { sweep all; }
