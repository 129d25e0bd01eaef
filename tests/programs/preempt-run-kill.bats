#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# kill -9 of any agent, any training process and every task, at every stage of the protocol. After each
# (docs/design.md has I1 to I8): at most one claim (I1), one step per round (I2), no step after the final one
# (I3), every task gone in time (I4), what was acknowledged is still there (I5), the next attempt starts from
# the newest complete checkpoint and counts right (I6, I7), no process and no board is left.
# soak (takes long)
# takes: 160
# asan: no (KILL leaves nothing to look at, and it takes minutes)
# shellcheck disable=SC2034 # what agents.bash uses

load ../support/agents

setup() {
	agents
	# Nothing here waits for one of the first three: whichever task is killed is seen to be gone.
	quick=(--report-timeout 20s --save-timeout 30s --join-timeout 2m --kill-after 500ms)
}

# When a stage is reached. (A board goes with its agent: who is late to look sees in the store that there was one.)
held() { cat boards/*/hold 2>/dev/null | grep -q . || has LEFT/1; }
begun_anew() { all_begun 3 $((base + 5)); }
saving() { grep -qs "^save " "job/log/$attempt.1"; }
stages=("has TASK/1" begun_anew "has TERMINATED_WORKER" "has ROUND/1" "has STEP/1/1" "has RUN_TO_CHECKPOINT" held
	"has RECEIVED_SIGNAL_RUN_TO_CHECKPOINT_1" saving "has SAVED/1/1" "has LEFT/1")

complete_steps() {
	local s
	for s in job/ckpt/[0-9]*; do
		[ ! -e "$s/0" ] || [ ! -e "$s/1" ] || [ ! -e "$s/2" ] || echo "${s##*/}"
	done | sort -n
}

# is_member TASK: the decision is for it, too; it had neither died nor failed before.
is_member() {
	key RUN_TO_CHECKPOINT | python3 -c 'import json, sys
ranges = [one.split("-") for one in json.load(sys.stdin)["members"].split(",") if one]
sys.exit(not any(int(one[0]) <= int(sys.argv[1]) <= int(one[-1]) for one in ranges))' "$1"
}

holds_true() {
	local i of step
	[ "$(count_keys TERMINATED_WORKER)" -le 1 ]
	# What is said to be saved is the agreed step, and is there.
	for of in $(keys SAVED/ | sed 's|.*/SAVED/||'); do
		step=$(step_of "${of%/*}")
		[ "$(field "SAVED/$of" step)" = "$step" ]
		[ -e "job/ckpt/$step/${of#*/}" ]
	done
	step=$(step_of "$(newest_round)")
	for i in 0 1 2; do
		# No task says that it is complete when it is not.
		[ "$(field LEFT/$i reason)" != saved ] || complete_steps | grep -qx "$step"
		# One that died, or whose command did, may have been further.
		[ -z "$step" ] || [ "$(field RUN_TO_CHECKPOINT kind)" != exit ] || [ ! -e "job/log/$attempt.$i" ] ||
			has DEAD/$i || ! is_member $i || never_after $i "$step"
	done
}

# One attempt: TERM to task 0 in the middle, KILL to WHOM at STAGE.
attempt_with_kill() {
	local whom=$1 stage=$2 i
	echo "attempt $attempt: $whom at $stage, from step $base"
	count_agents 3 --steps 1000000 --step-ms 3 --save-ms 100
	case $stage in
	"has TASK/1" | begun_anew) ;;
	*)
		eventually begun_anew
		kill -TERM "${pids[0]}"
		;;
	esac
	# shellcheck disable=SC2086 # words
	eventually $stage
	case $whom in
	agent*) kill -KILL "${pids[${whom#agent}]}" ;;
	child*) kill -KILL "$(command_of "${whom#child}")" ;;
	all) kill -KILL "${pids[@]}" ;;
	esac 2>/dev/null || :
	# Where no notice came the others may train on: one comes now.
	case $stage in
	"has TASK/1" | begun_anew) kill -TERM "${pids[@]}" 2>/dev/null || : ;;
	esac
	all_ended "42|43|44|137|143"
	eventually none_left
	[ "$whom" != all ] || rm -rf boards/*
	[ -z "$(ls boards)" ]
	holds_true
	base=$(complete_steps | tail -n 1)
	base=${base:-0}
	# Who is slow to start may find the attempt closed, and open one of its own.
	attempt=$(($(preempt-store get run/job/LAST | tr -dc 0-9) + 1))
}

# At each stage; then the next attempt begins at the newest complete checkpoint, and nothing was lost or done twice.
sweep() {
	local stage i
	base=0
	for stage in "${stages[@]}"; do attempt_with_kill "$1" "$stage"; done
	rm -f job/end/*
	count_agents 3 --steps $((base + 20))
	all_ended 0
	for i in 0 1 2; do grep -qx "start $base" "job/log/$attempt.$i"; done
	counted 3 $((base + 20))
	nothing_left
}

@test "KILL of the noticed agent at every stage" { sweep agent0; }
@test "KILL of another agent at every stage" { sweep agent1; }
@test "KILL of the noticed training process at every stage" { sweep child0; }
@test "KILL of another training process at every stage" { sweep child1; }
@test "CS-4: KILL of all agents at every stage" { sweep all; }
