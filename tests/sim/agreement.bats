#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The simulator of the agreement as a program; tests/sim/simulate runs its schedules and scenarios.
bats_require_minimum_version 1.5.0

setup() {
	sim=${OUT:-$BATS_TEST_DIRNAME/../../build/plain}/tests/sim/agreement_sim
}

@test "a seed is replayed the same, event by event" {
	run -0 "$sim" --seed 7
	first=$output
	run -0 "$sim" --seed 7
	[ -n "$first" ]
	[ "$output" = "$first" ]
}

@test "bad usage of the simulator is refused" {
	run -2 "$sim" --schedules 12x
	run -2 "$sim" --scenario nonsense
	run -2 "$sim" garbage
}
