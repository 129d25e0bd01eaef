#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Random lives of training jobs with the real programs (tests/support/lives): agents and trainers killed and
# stopped, notices, claims, a store that goes away. The plans follow from the seeds, which are the same
# each time; for others: tests/support/lives --help. More of them: lives_long.bats.
# takes: 45
# asan: no (KILL leaves nothing to look at, and it takes minutes)

bats_require_minimum_version 1.5.0

@test "CS-4: 20 random lives" {
	unset "${!PREEMPT_@}" "${!SLURM_@}"
	run -0 env TMPDIR="$BATS_TEST_TMPDIR" "$BATS_TEST_DIRNAME/../support/lives" --lives 20 --seed 100
	echo "$output" | grep '^#' >&3
}
