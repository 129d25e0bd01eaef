#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The tests of programs, unchanged, with their stores in a real etcd of three members. Needs etcd.
# takes: 700
# soak (places/etcd.bats has what only a server does)
# asan: no (each of these files runs with sanitizers, too, and with a store of its own)

bats_require_minimum_version 1.5.0
load ../support/etcd

setup_file() { etcd_setup_file; }
teardown_file() { etcd_teardown_file; }

@test "composed programs" {
	etcd_runs tests/programs/preempt-{store-join,claim,watch,ack,heartbeat,requeue}.bats tests/docs/composed.bats
}

@test "runs" {
	etcd_runs tests/programs/preempt-run-{agree,kill,heart,signals,restart}.bats
}
