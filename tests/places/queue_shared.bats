#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A queue on filesystems with two mounts, half of the workers on each, in a storm: see
# tests/support/storm. Needs root and FUSE.
# takes: 90
# asan: no (the same programs run with sanitizers in queue_storm.bats; here it is the filesystems)
# mounts: private
# soak (takes long)

bats_require_minimum_version 1.5.0
load ../support/mounts

setup_file() { mounts_start gluster bindfs; }
teardown_file() { mounts_stop; }

setup() {
	PATH=${BIN:-$BATS_TEST_DIRNAME/../../bin}:$PATH
	unset "${!PREEMPT_@}" "${!SLURM_@}"
	cd "$BATS_TEST_TMPDIR" || return
}
teardown() { mounts_dump_logs; }

# storm_on KIND
storm_on() {
	local a
	a=$(mktemp -d "$MOUNTS/$1/a/XXXXXX")
	run -0 "$BATS_TEST_DIRNAME/../support/storm" --store "$a/q.db" --store "$MOUNTS/$1/b/${a##*/}/q.db" \
		--commands 1000 --workers 8 --every 1000 --period 500 --deadline 600
	echo "$output" | grep '^#' >&3
}

@test "GlusterFS, two mounts: 1,000 commands over 8 workers in a storm, each with one result" {
	storm_on gluster
}

@test "bindfs, two mounts: 1,000 commands over 8 workers in a storm, each with one result" {
	storm_on bindfs
}
