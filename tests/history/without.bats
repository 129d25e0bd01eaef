#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The checker of histories finds what a store loses: in a store without a part of what keeps it right.
# (That the store itself loses nothing: places/suite.bats. Examples for the checker: check_test.py.)
# takes: 60
# soak (a test of a test)
# asan: no (a preloaded library)
# mounts: private

bats_require_minimum_version 1.5.0
load ../support/mounts

setup_file() { mounts_start gluster bindfs; }
teardown_file() { mounts_stop; }

setup() {
	programs
	unset PREEMPT_STORE
	PATH=$OUT/tests/history:$PATH
	logs=$PWD/logs
}
teardown() { mounts_dump_logs; }

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
		run "$BATS_TEST_DIRNAME/check" --answered 80 "$logs"
		echo "$output" >&2
		# Both operations are named.
		[ "$status" != 1 ] || { [[ $output == *operation*asked:*answered:* ]] && return; }
		# 2: nothing was recorded; 4: too little.
		times=$((times + (status != 2 && status != 4)))
	done
	false
}

@test "GlusterFS without the lock between machines: the checker finds the loss" {
	violated gluster "" lock
}

@test "GlusterFS without letting go of what is cached: the checker finds the loss" {
	violated gluster "" drop
}

@test "bindfs, where processes of one machine do not exclude each other: the checker finds the loss" {
	violated bindfs "" lock
}

@test "bindfs with byte-range locks, which do not reach the other mount: the checker finds the loss" {
	violated bindfs "assume=shared" nothing
}
