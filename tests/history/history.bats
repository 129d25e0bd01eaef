#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What many processes ask of one store at once, some of them killed in the middle, and what they are
# answered, is what one key store can answer to one after the other: linearizable (tests/history).
# Two mounts are two machines for the store. Needs root and FUSE.
#
# The same with 100,000 operations on each filesystem, for about an hour:
#   HISTORY_OPERATIONS=100000 HISTORY_KILLS=40 BIN=$PWD/bin OUT=$PWD/build/plain \
#     bats -T tests/history/disk.bats tests/history/history.bats -f linearizable
# asan: no (it is the filesystems that are tested; the checker itself is in unit/history_check.c)
# mounts: private

bats_require_minimum_version 1.5.0
load ../support/mounts
load ../support/history

setup_file() { mounts_start gluster bindfs; }
teardown_file() { mounts_stop; }

setup() {
	OUT=${OUT:-$BATS_TEST_DIRNAME/../../build/plain}
	history_setup
}
teardown() {
	history_teardown
	mounts_dump_logs
}

# violated KIND PARAMETERS WITHOUT: with so much contention some change is lost. Each time it is most
# likely, and ten times it does not fail to happen. A time in which a slow machine answered little of the
# 320 operations is not counted, and the next one has more patience.
violated() {
	local try times=0
	for ((try = 0; try < 20 && times < 10; try++)); do
		mounts_store "$1" "$2"
		rm -rf "$logs"
		mkdir "$logs"
		run env WITHOUT="$3" LD_PRELOAD="$OUT/tests/crash/without.so" \
			store_history record -n 40 -t $((500 << (try < 5 ? try : 5))) -s $((try + 1)) "$logs" "$a" "$b"
		run store_history check --answered 80 "$logs"
		echo "$output" >&2
		# Both operations are named.
		[ "$status" != 1 ] || { [[ $output == *operation*asked:*answered:* ]] && return; }
		# 2: nothing was recorded; 4: too little.
		times=$((times + (status != 2 && status != 4)))
	done
	false
}

@test "GlusterFS, two mounts: 2,400 operations of 8 processes, some killed, are linearizable" {
	mounts_store gluster
	linearizable 2400 "$a" "$b"
}

@test "bindfs, two mounts, lock=link: 2,400 operations of 8 processes, some killed, are linearizable" {
	mounts_store bindfs "lock=link"
	linearizable 2400 "$a" "$b"
}

@test "GlusterFS without the lock between machines: the checker finds the loss" {
	violated gluster "" lock
}

@test "GlusterFS without letting go of what is cached: the checker finds the loss" {
	violated gluster "" drop
}

@test "bindfs with byte-range locks, which do not reach the other mount: the checker finds the loss" {
	violated bindfs "assume=shared&lock=fcntl" nothing
}
