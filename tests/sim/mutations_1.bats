#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The simulator is tried by faults (tests/support/mutations.bash): a part of them.
# asan: no (it builds for itself)
# takes: 200
# limit: 1800

load ../support/mutations

@test "the simulator notices every fault that is put into what it runs: part 1" {
	all_noticed
}

# bats test_tags=smoke
@test "every fault can still be put into the source" {
	run tests/sim/mutations --put-in
	echo "$output"
	[ "$status" = 0 ]
	[[ $output != *"not ok"* ]]
	[ "$(grep -c '^ok' <<<"$output")" -ge 60 ]
}
