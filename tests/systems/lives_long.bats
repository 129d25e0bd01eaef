#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# More random lives (lives.bash), also on filesystems that come and go.
# takes: 900
# asan: no (KILL leaves nothing to look at, and it takes minutes)
# mounts: private
# soak (takes long)

bats_require_minimum_version 1.5.0
load lives
load ../support/mounts

setup() { programs; }
teardown() { [ -z "${MOUNTS-}" ] || mounts_stop; }

@test "500 random lives, the store on a local disk" {
	lives --lives "${LIVES:-500}" --seed 1000
}

@test "40 random lives, the store on filesystems that are unmounted and mounted again" {
	if ! command -v bindfs >/dev/null || [ ! -c /dev/fuse ] || [ "$(id -u)" != 0 ]; then
		skip "needs root, FUSE and bindfs"
	fi
	lives --lives 40 --seed 200 --mounts
}

@test "20 random lives on two mounts of GlusterFS, with one store: gc leaves nothing in it" {
	mounts_start gluster
	lives --lives 20 --seed 300 --gluster "$MOUNTS" --patience 600
	preempt-store gc --store "$MOUNTS/gluster/a/runs.db" --older-than 1ms
	[ -z "$(preempt-store list --store "$MOUNTS/gluster/b/runs.db")" ]
}
