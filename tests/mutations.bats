#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The simulator is tried by faults: each is put into a copy of the source, and has to be noticed.
# asan: no (it builds for itself)
# takes: 600
# limit: 3600

@test "the simulator notices every fault that is put into what it runs" {
	run tests/sim/mutations
	echo "$output"
	[ "$status" = 0 ]
	[[ $output != *"not ok"* ]]
	[ "$(grep -c '^ok' <<<"$output")" -ge 20 ]
}
