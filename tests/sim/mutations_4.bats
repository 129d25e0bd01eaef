#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The simulator is tried by faults (tests/support/mutations.bash): a part of them.
# asan: no (it builds for itself)
# takes: 200
# limit: 1800

load ../support/mutations

@test "the simulator notices every fault that is put into what it runs: part 4" {
	all_noticed
}
