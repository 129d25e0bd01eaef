#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# More random lives, as lives.bats has.
# takes: 900
# asan: no (KILL leaves nothing to look at, and it takes minutes)
# soak (takes long)

bats_require_minimum_version 1.5.0

@test "500 random lives" {
	unset "${!PREEMPT_@}" "${!SLURM_@}"
	run -0 env TMPDIR="$BATS_TEST_TMPDIR" "$BATS_TEST_DIRNAME/../support/lives" --lives "${LIVES:-500}" --seed 1000
	echo "$output" | grep '^#' >&3
}
