#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Random lives (lives.bash).
# takes: 45
# asan: no (KILL leaves nothing to look at, and it takes minutes)

bats_require_minimum_version 1.5.0
load lives

@test "CS-4: 20 random lives, the store on a local disk" {
	lives --lives 20 --seed 100
}
