#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The tests of composed programs: preempt-claim, preempt-ack, preempt-heartbeat, preempt-requeue, with their
# stores in a real etcd of three members. Needs etcd.
# takes: 340
# limit: 1800
# asan: no (each of these files runs with sanitizers, too, and with a store of its own)

bats_require_minimum_version 1.5.0
load ../support/etcd

setup_file() { etcd_setup_file; }
teardown_file() { etcd_teardown_file; }

@test "join.bats" {
	etcd_runs join
}

@test "claim.bats" {
	etcd_runs claim
}

@test "ack.bats" {
	etcd_runs ack
}

@test "heartbeat.bats" {
	etcd_runs heartbeat
}

@test "composed.bats" {
	etcd_runs composed
}

@test "requeue.bats" {
	etcd_runs requeue
}
