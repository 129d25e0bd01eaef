#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The tests of runs: agreement, kills, signals, heartbeats, with their
# stores in a real etcd of three members. Needs etcd.
# takes: 260
# limit: 1800
# asan: no (each of these files runs with sanitizers, too, and with a store of its own)
# shellcheck disable=SC2034,SC2154 # the rig reads and sets etcd_*

bats_require_minimum_version 1.5.0
load rig/etcd

setup_file() {
	etcd_needed
	etcd_options=()
	etcd_start 3
	export etcd_endpoints
}

teardown_file() { BATS_TEST_COMPLETED=1 etcd_stop; }

@test "run_agree.bats" {
	etcd_runs run_agree
}

@test "run_kill.bats" {
	etcd_runs run_kill
}

@test "run_heart.bats" {
	etcd_runs run_heart
}

@test "run_signals.bats" {
	etcd_runs run_signals
}

@test "run_restart.bats" {
	etcd_runs run_restart
}
