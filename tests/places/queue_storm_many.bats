#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Storms over a queue (queue_storm.bats) with more commands: 10,000 over sixteen workers on one machine, and 1,000
# over eight on filesystems with two mounts. Needs root and FUSE for the latter.
# takes: 170
# asan: no (the same with fewer commands runs with sanitizers in queue_storm.bats)
# mounts: private
# soak (takes long)

bats_require_minimum_version 1.5.0
load storm

@test "10,000 commands over 16 workers in a storm: each has exactly one accepted result, none is lost" {
	storm --store "$store/q.db" --commands 10000 --workers 16 --every 300 --deadline 900
	[[ $output =~ ' killed '[1-9] && $output =~ 'noticed '[1-9] && $output =~ 'longer than the lease '[1-9] ]]
}

@test "GlusterFS, two mounts: 1,000 commands over 8 workers in a storm, each with one result" {
	storm_on gluster --commands 1000 --workers 8 --every 1000 --period 500 --deadline 900
}

@test "bindfs, two mounts: 1,000 commands over 8 workers in a storm, each with one result" {
	storm_on bindfs --commands 1000 --workers 8 --every 1000 --period 500 --deadline 900
}
