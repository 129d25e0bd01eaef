#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The tests of runs: agreement, kills, signals, heartbeats, with their
# stores in a real etcd of three members. Needs etcd.
# takes: 260
# limit: 1800
# asan: no (each of these files runs with sanitizers, too, and with a store of its own)

bats_require_minimum_version 1.5.0
load ../support/etcd

setup_file() { etcd_setup_file; }
teardown_file() { etcd_teardown_file; }

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

@test "run_many.bats" {
	etcd_runs run_many
}
