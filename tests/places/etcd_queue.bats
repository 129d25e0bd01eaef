#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The tests of queues: scenarios, workers, results, commands after others, with their
# stores in a real etcd of three members. Needs etcd.
# takes: 110
# limit: 1800
# asan: no (each of these files runs with sanitizers, too, and with a store of its own)

bats_require_minimum_version 1.5.0
load ../support/etcd

setup_file() { etcd_setup_file; }
teardown_file() { etcd_teardown_file; }

@test "queue_scenarios.bats" {
	etcd_runs queue_scenarios
}

@test "queue_worker.bats" {
	etcd_runs queue_worker
}

@test "queue_results.bats" {
	etcd_runs queue_results
}

@test "queue_after.bats" {
	etcd_runs queue_after
}
