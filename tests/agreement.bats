#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The agreement in its simulator: see tests/sim/sim.h. A failure prints its seed, and the commands
# that replay it and shrink it.
bats_require_minimum_version 1.5.0

setup() {
	sim="${BATS_TEST_DIRNAME}/../${PREEMPT_BUILD:-build/plain}/tests/sim/agreement_sim"
}

scenario() {
	run -0 "$sim" --scenario "$1"
	[[ "$output" == *"ok $1"* ]]
}

@test "100,000 random schedules with faults keep I1 to I8" {
	run -0 "$sim" --schedules "${AGREEMENT_SCHEDULES:-100000}" -j 2
	echo "$output"
	[[ "$output" == *" 0 failed"* ]]
}

@test "a reporter paused for exactly the report timeout while its peer publishes" {
	scenario reporter-paused
	scenario runner-paused
}

@test "the deadline moved between two agents' reading of it" { scenario deadline-moved; }
@test "the claimer and the next two dead" { scenario three-dead; }
@test "a task that fails after its save: the checkpoint stands" { scenario fails-after-save; }
@test "a task restarted by its launcher while others save" { scenario restarted-while-saving; }
@test "an agent killed right after hold = wait" { scenario killed-after-wait; }
@test "an outage longer than the report timeout, and one longer than everything" {
	scenario long-outage
	scenario outage-no-silence
	scenario endless-outage
}
@test "64 tasks, three notices at once: one step, 64 acks" {
	scenario 64-agents
	scenario 64-in-one-agent
	scenario 8-by-8
}
@test "every other named scenario: PH-4, 10, 11, 12, 15, 20, 21; SY-1, 2, 6 to 11" {
	run -0 "$sim" --scenario all
	[[ "$output" == *" 0 failed"* ]]
}
@test "bad usage is refused" {
	run -2 "$sim" --schedules 12x
	run -2 "$sim" --scenario nonsense
	run -2 "$sim" rubbish
}
