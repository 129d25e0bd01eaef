#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# More random lives (lives.bash), also on filesystems that come and go.
# takes: 900
# asan: no (KILL leaves nothing to look at, and it takes minutes)
# mounts: private
# soak (takes long)

bats_require_minimum_version 1.5.0
load lives

@test "500 random lives, the store on a local disk" {
	lives --lives 500 --seed 1000
}

@test "40 random lives, the store on filesystems that are unmounted and mounted again" {
	if ! command -v bindfs >/dev/null || [ ! -c /dev/fuse ] || [ "$(id -u)" != 0 ]; then
		skip "needs root, FUSE and bindfs"
	fi
	lives --lives 40 --seed 200 --mounts
}
