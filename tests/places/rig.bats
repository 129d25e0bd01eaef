#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What the other files of this folder rest on: two mounts are two machines, and nothing of a rig stays.
# asan: no (nothing of ours runs here)
# takes: 10
# mounts: private

bats_require_minimum_version 1.5.0
load ../support/mounts

setup_file() { mounts_start gluster bindfs; }
teardown_file() { mounts_stop; }
teardown() {
	end_started
	mounts_dump_logs
}

# holds FILE SECONDS: take a byte-range lock, say so, keep it.
holds() {
	python3 -c 'import fcntl, sys, time
f = open(sys.argv[1], "r+b")
try:
    fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    print("refused"); sys.exit(1)
print("held", flush=True)
time.sleep(float(sys.argv[2]))' "$@" 3>&-
}

@test "what one mount writes the other reads, and each is a device of its own" {
	local kind
	for kind in gluster bindfs; do
		echo hello >"$MOUNTS/$kind/a/hello"
		[ "$(cat "$MOUNTS/$kind/b/hello")" = hello ]
		[ "$(stat -c %d "$MOUNTS/$kind/a")" != "$(stat -c %d "$MOUNTS/$kind/b")" ]
		[ "$(stat -c %i "$MOUNTS/$kind/a/hello")" = "$(stat -c %i "$MOUNTS/$kind/b/hello")" ] || [ $kind = bindfs ]
	done
}

@test "a byte-range lock excludes the other mount on GlusterFS, and does not on bindfs" {
	local kind other
	for kind in gluster:refused bindfs:held; do
		other=${kind#*:} kind=${kind%:*}
		: >"$MOUNTS/$kind/a/lock"
		holds "$MOUNTS/$kind/a/lock" 100 >"$BATS_TEST_TMPDIR/$kind" &
		started+=($!)
		eventually grep -q held "$BATS_TEST_TMPDIR/$kind"
		run holds "$MOUNTS/$kind/a/lock" 0
		[ "$output" = refused ]
		run holds "$MOUNTS/$kind/b/lock" 0
		[ "$output" = "$other" ]
		pkill -KILL -P "${started[-1]}"
	done
}

@test "a rig ends by itself when its owner is killed" {
	local dir=$BATS_TEST_TMPDIR/rig owner
	sleep 1000 3>&- &
	owner=$!
	"$REPO/tests/support/mounts" start "$dir" --owner $owner gluster bindfs
	kill -KILL $owner
	eventually [ ! -e "$dir" ]
	run ! grep -F " $dir/" /proc/self/mountinfo
	run ! pgrep -af "$dir/(gluster|bindfs)|(guard|gluster-server) $dir"
}
