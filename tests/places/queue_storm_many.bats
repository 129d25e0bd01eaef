#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Storms over a queue (queue_storm.bats) with more commands: 10,000 over sixteen workers on one machine, and 1,000
# over eight on filesystems with two mounts. Needs root and FUSE for the latter.
# takes: 170
# asan: no (the same with fewer commands runs with sanitizers in queue_storm.bats)
# mounts: private
# soak (takes long)

bats_require_minimum_version 1.5.0
load ../support/mounts

setup() {
	programs
	# So many transactions are not about how fast a disk syncs.
	[ ! -w /dev/shm ] || fast=/dev/shm
	store=$(mktemp -d "${fast:-$PWD}/storm.XXXXXX")
}
teardown() {
	"$REPO/tests/support/forget-stores" "$store"
	rm -rf "$store"
	mounts_dump_logs
	mounts_stop
}

storm() {
	run -0 "$REPO/tests/support/storm" "$@" --deadline 900
	echo "$output" | grep '^#' >&3
}

@test "10,000 commands over 16 workers in a storm: each has exactly one accepted result, none is lost" {
	storm --store "$store/q.db" --commands 10000 --workers 16 --every 300
	[[ $output =~ ' killed '[1-9] && $output =~ 'noticed '[1-9] && $output =~ 'longer than the lease '[1-9] ]]
}

# storm_on KIND: on a filesystem with two mounts, half of the workers on each.
storm_on() {
	local a b
	mounts_start "$1"
	mounts_store "$1"
	storm --store "$a" --store "$b" --commands 1000 --workers 8 --every 1000 --period 500
}

@test "GlusterFS, two mounts: 1,000 commands over 8 workers in a storm, each with one result" {
	storm_on gluster
}

@test "bindfs, two mounts: 1,000 commands over 8 workers in a storm, each with one result" {
	storm_on bindfs
}
