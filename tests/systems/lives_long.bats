#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Random lives of training jobs with the real programs (tests/support/lives): agents and trainers killed and
# stopped, notices, claims, a store that goes away. The plans follow from the seeds, which are the same
# each time; for others: tests/support/lives --help.
# takes: 900
# asan: no (KILL leaves nothing to look at, and it takes minutes)
# mounts: private
# soak (takes long)

bats_require_minimum_version 1.5.0

lives() {
	unset "${!PREEMPT_@}" "${!SLURM_@}"
	run -0 env TMPDIR="$BATS_TEST_TMPDIR" "$BATS_TEST_DIRNAME/../support/lives" --jobs 4 "$@"
	echo "$output" | grep '^#' >&3
}

@test "500 random lives, the store on a local disk" {
	lives --lives 500 --seed 1000
}

@test "40 random lives, the store on filesystems that are unmounted and mounted again" {
	if ! command -v bindfs >/dev/null || [ ! -c /dev/fuse ] || [ "$(id -u)" != 0 ]; then
		skip "needs root, FUSE and bindfs"
	fi
	lives --lives 40 --seed 200 --mounts
}
