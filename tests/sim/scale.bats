#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# takes: 10
# asan: no (its time is the size of the job)
# What one agent asks the store for in a preemption does not grow with the job: counted in the simulator
# of large jobs (tests/sim/scale_sim.c), which runs the agents as they are. Counts only, no times.
bats_require_minimum_version 1.5.0

setup() {
	sim=${OUT:-$BATS_TEST_DIRNAME/../../build/plain}/tests/sim/scale_sim
}

# count AGENTS: sets writes (in all) and mean (transactions of one agent, in hundredths) of a preemption.
count() {
	run -0 "$sim" --agents "$1" --lock 1
	echo "$output"
	read -r writes mean < <(awk '$1 == "preemption" { print $5, int(($3 + $7) * 100 + 0.5) }' <<<"$output")
	[ -n "$mean" ]
}

@test "a preemption costs an agent the same in a large job as in a small one" {
	count 16
	small=$mean
	[ "$small" -le 1000 ]
	# Four for each agent, and a few in all: the claim, the decision, all saved, closed.
	[ "$writes" -le $((4 * 16 + 8)) ]
	count 256
	[ "$mean" -le 1000 ]
	[ "$mean" -le $((small + 100)) ]
	[ "$writes" -le $((4 * 256 + 8)) ]
}

# The machines of the tasks that act for all, and of the one that watches the beats.
@test "the first machines die at the notice: the rest save the same step soon, and none of them reads the whole job" {
	run -0 "$sim" --agents 256 --per-agent 8 --lock 1 --dead 3
	echo "$output"
	read -r bytes decided < <(awk '$1 == "preemption" { bytes = $15 } $1 == "seconds" { print int(bytes), int($5) }' <<<"$output")
	# All records together are 700 KB.
	[ "$bytes" -le 50000 ]
	# Ten seconds of silence, and the turns of those that stand in.
	[ "$decided" -le 18 ]
}

@test "the first machines are cut off from the store at the notice: the rest agree on a step without waiting twice" {
	run -0 "$sim" --agents 100 --per-agent 8 --lock 1 --cut 4 --deadline 60000 --save 2000
	echo "$output"
	read -r decided < <(awk '$1 == "seconds" { print int($5) }' <<<"$output")
	[ "$decided" -le 18 ]
}

@test "a normal end costs an agent one transaction, and one agent a few more" {
	run -0 "$sim" --agents 64 --notice none
	echo "$output"
	transactions=$(awk '$1 == "end" { print $5 + $9 }' <<<"$output")
	[ "$transactions" -ge 64 ]
	[ "$transactions" -le $((64 + 4)) ]
}
