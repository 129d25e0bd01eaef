#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The store on filesystems with two mounts, which are two machines for it: what was acknowledged is
# there, and one claimer wins. Needs root and FUSE.
# takes: 110
# asan: no (it is the filesystems that are tested; sanitizers only make fewer come together)
# mounts: private
# shellcheck disable=SC2030,SC2031

bats_require_minimum_version 1.5.0
load ../support/mounts

setup_file() { mounts_start gluster bindfs sshfs; }
teardown_file() { mounts_stop; }

setup() {
	BIN=${BIN:-$BATS_TEST_DIRNAME/../../bin} OUT=${OUT:-$BATS_TEST_DIRNAME/../../build/plain}
	PATH=$BIN:$OUT/tests/support:$PATH
	unset "${!PREEMPT_@}"
}
teardown() { mounts_dump_logs; }

# figure NAME: of the line that contend prints.
figure() { sed -n "s/.*\b$1 \([^ ]*\).*/\1/p" <<<"$output"; }

# all_there ARGUMENT...: contend finds nothing wrong, and every process was answered.
all_there() {
	run --separate-stderr contend "$@"
	echo "$stderr"$'\n'"$output" >&2
	[ "$status" = 0 ]
	[ "$(figure lost) $(figure split) $(figure integrity)" = "0 0 ok" ]
}
everybody_answered() {
	all_there "$@"
	[ "$(figure acknowledged)" = "$(figure transactions)" ]
	[ "$(figure present)" = "$(figure transactions)" ]
}

@test "GlusterFS: what was looked at without the lock is not believed under it" {
	local i
	for i in 1 2 3; do
		mounts_store gluster
		preempt-store put --store "$b" first x
		stat "$a" >/dev/null
		preempt-store put --store "$b" second y
		# Its client could answer with the file as it was at that look.
		[ "$(preempt-store get --store "$a" second)" = y ]
		preempt-store put --store "$a" third z
		[ "$(preempt-store get --store "$b" third)" = z ]
		[ "$(preempt-store list --store "$b" "" | wc -l)" = 3 ]
	done
}

@test "GlusterFS: 8 processes on two mounts, 400 transactions, five times: all there, one winner each" {
	local i
	for i in 1 2 3 4 5; do
		mounts_store gluster
		everybody_answered -k 50 "$a" "$b"
	done
}

@test "GlusterFS: the same with 1,600 transactions, while others look without the lock" {
	mounts_store gluster
	everybody_answered -k 200 --look "$a" "$b"
}

@test "bindfs: 8 processes on two mounts, 400 transactions five times, 1,600 once, lock=auto" {
	local i
	for i in 1 2 3 4 5; do
		mounts_store bindfs
		everybody_answered -k 50 "$a" "$b"
	done
	mounts_store bindfs
	everybody_answered -k 200 --look "$a" "$b"
	grep -q '^mode link$' "${a%\?*}.lock"
}

@test "sshfs: 8 processes on two mounts, 400 transactions twice: all there, one winner each" {
	local i
	for i in 1 2; do
		mounts_store sshfs
		everybody_answered -k 50 "$a" "$b"
	done
	grep -q '^mode link$' "$a.lock"
}

@test "bindfs: the same test sees rows lost where byte-range locks are treated as shared" {
	local i
	# It may be found damaged at once, and be refused from then on: then there is little to lose.
	for ((i = 0; i < 10; i++)); do
		mounts_store bindfs "assume=shared&lock=fcntl"
		run --separate-stderr contend -t 30000 -k 200 "$a" "$b"
		echo "$output" >&2
		[ "$status" = 1 ] && [ "$(figure lost)" -gt 0 ] && return 0
	done
	false
}

@test "plain SQLite loses rows on both: the test sees that" {
	local kind i
	for kind in gluster bindfs; do
		# It may be found damaged at once, and be refused from then on: then there is little to lose.
		for ((i = 0; i < 10; i++)); do
			mounts_store $kind
			run --separate-stderr contend --plain -t 30000 -k 100 "$a" "$b"
			echo "$output" >&2
			[ "$status" = 1 ] && [ "$(figure lost)" -gt 0 ] && continue 2
		done
		false
	done
}

@test "kill -9 of contenders in the middle, on both: nothing acknowledged is lost, nothing half there" {
	local kind
	for kind in gluster bindfs; do
		mounts_store $kind
		all_there -k 50 --kill 8 "$a" "$b"
		[ "$(figure unknown)" -le 8 ]
		[ "$(figure refused)" = 0 ]
	done
}

@test "contenders stopped for seconds, then continued, on both: nothing acknowledged is lost" {
	local kind
	for kind in gluster bindfs; do
		mounts_store $kind
		everybody_answered -k 50 --stop 2 --for 1500 "$a" "$b"
	done
}
