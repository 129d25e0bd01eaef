#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The rig of shared filesystems itself: two mounts are two machines, and nothing of it stays.
# asan: no (nothing of ours runs here)
# mounts: private
# shellcheck disable=SC2016,SC2030,SC2031

bats_require_minimum_version 1.5.0
load ../support/mounts

setup_file() { mounts_start gluster bindfs small; }
teardown_file() { mounts_stop; }

setup() {
	rig=$BATS_TEST_DIRNAME/../support/mounts
	sleeper=
}
teardown() {
	# What is there of the one of this test, for the reader of a failure.
	[ -n "${BATS_TEST_COMPLETED:-}" ] || [ -z "${dir:-}" ] ||
		{ of_rig "$dir"; left_in_network "$network"; mounts_below "$dir"; cat "$dir/log/guard"; } || :
	# One that leads a group, with that.
	[ -z "$sleeper" ] || kill -KILL -- "-$sleeper" 2>/dev/null || kill -KILL "$sleeper" 2>/dev/null || :
	[ ! -d "$BATS_TEST_TMPDIR/rig" ] || "$rig" stop "$BATS_TEST_TMPDIR/rig"
	mounts_dump_logs
}

# holds FILE SECONDS: takes a byte-range lock, says so, keeps it.
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

# Who lives in the network of this rig's servers, as far as we can see.
network_of() {
	local pid
	pid=$(pgrep -f "glusterfs .*$1/gluster/a\$")
	readlink "/proc/$pid/ns/net"
}
in_network() { find /proc/[0-9]*/ns/net -lname "${1/[/\\[}" 2>/dev/null || :; }
# Of those that lived there; a network of another process may get the number of one that is gone.
left_in_network() {
	local one
	for one in $servers; do [ "$(readlink "$one")" != "$1" ] || echo "$one"; done
}
of_rig() { pgrep -af "$1/(gluster|bindfs)|(guard|gluster-server) $1" || :; }
none() { [ -z "$("$@")" ]; }
mounts_below() { grep -F " $1/" /proc/self/mountinfo || :; }
gone() { none of_rig "$1" && none left_in_network "$2" && none mounts_below "$1" && [ ! -e "$1" ]; }

start_rig() {
	dir=$BATS_TEST_TMPDIR/rig
	sleep 1000 3>&- &
	sleeper=$!
	"$rig" start "$dir" --owner $sleeper gluster bindfs small
	network=$(network_of "$dir")
	servers=$(in_network "$network")
	[ -n "$network" ]
	[ -n "$servers" ]
	[ -n "$(of_rig "$dir")" ]
	[ "$(mounts_below "$dir" | wc -l)" = 6 ]
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
	local kind
	for kind in gluster bindfs; do
		: >"$MOUNTS/$kind/a/lock"
		holds "$MOUNTS/$kind/a/lock" 100 >"$BATS_TEST_TMPDIR/$kind" &
		sleeper=$!
		until_true 10 grep -q held "$BATS_TEST_TMPDIR/$kind"
		run holds "$MOUNTS/$kind/a/lock" 0
		[ "$output" = refused ]
		run holds "$MOUNTS/$kind/b/lock" 0
		if [ $kind = gluster ]; then [ "$output" = refused ]; else [ "$output" = held ]; fi
		pkill -KILL -P $sleeper
		wait $sleeper || :
		sleeper=
	done
}

@test "the small one fills up, drains, and can be read-only" {
	run dd if=/dev/zero of="$MOUNTS/small/rw/file" bs=512k count=1
	[ "$status" = 0 ]
	mounts_fill "$MOUNTS/small/rw"
	run -1 bash -c 'echo x >"$1"' bash "$MOUNTS/small/rw/more"
	[[ $output = *"No space left"* ]]
	mounts_drain "$MOUNTS/small/rw"
	echo x >"$MOUNTS/small/rw/more"
	run -1 bash -c 'echo x >"$1"' bash "$MOUNTS/small/ro/more"
	[[ $output = *"Read-only"* ]]
	[ "$(cat "$MOUNTS/small/ro/more")" = x ]
	mounts_read_only "$MOUNTS/small/rw"
	run -1 bash -c 'echo x >"$1"' bash "$MOUNTS/small/rw/more"
	[[ $output = *"Read-only"* ]]
	mounts_writable "$MOUNTS/small/rw"
	echo x >"$MOUNTS/small/rw/more"
}

@test "one more mount is one more machine; nothing can be made where it was unmounted" {
	local more=$MOUNTS/more/one
	"$rig" attach "$MOUNTS" "$more"
	echo hello >"$more/hello"
	[ "$(cat "$MOUNTS/gluster/b/hello")" = hello ]
	[ "$(stat -c %d "$more")" != "$(stat -c %d "$MOUNTS/gluster/b")" ]
	umount -l "$more"
	run ! touch "$more/hello"
	"$rig" attach "$MOUNTS" "$more"
	[ "$(cat "$more/hello")" = hello ]
	"$rig" detach "$MOUNTS" "$more"
	[ ! -e "$more" ]
	until_true 10 none pgrep -f "^glusterfs .*$more\$"
}

@test "who asks servers that are frozen waits until they go on" {
	server_is() { grep -q "^State:	$1" "/proc/$(cat "$MOUNTS/gluster/server")/status"; }
	"$rig" freeze "$MOUNTS" 4 3>&- &
	until_true 60 server_is T
	cat "$MOUNTS/gluster/a/frozen" >"$BATS_TEST_TMPDIR/answer" 2>&1 3>&- &
	sleeper=$!
	run ! timeout -s KILL 1 tail --pid=$sleeper -f /dev/null
	run cat "$BATS_TEST_TMPDIR/answer"
	# On a machine that is too busy it may have been longer.
	server_is T && [ -z "$output" ] || skip "it went on too early"
	wait %?freeze
	until_true 60 grep -q 'No such file' "$BATS_TEST_TMPDIR/answer"
	sleeper=
}

@test "nothing listens on this machine: the servers have a network of their own" {
	[ "$(network_of "$MOUNTS")" != "$(readlink /proc/self/ns/net)" ]
}

@test "stop removes all of it, beside another rig, with a file open in it, and twice" {
	start_rig
	exec 8>"$dir/gluster/a/open" 7>"$dir/bindfs/b/open"
	"$rig" stop "$dir"
	until_true 5 gone "$dir" "$network"
	exec 7>&- 8>&-
	"$rig" stop "$dir"
	[ -e "$MOUNTS/gluster/a" ] && [ -n "$(of_rig "$MOUNTS")" ]
}

@test "it ends by itself when its owner is killed" {
	start_rig
	kill -KILL $sleeper
	until_true 10 gone "$dir" "$network"
}

@test "it ends by itself when bats is killed in the middle of a test" {
	mkdir "$BATS_TEST_TMPDIR/tmp"
	# Not as it stands: bats would take it for a test of this file.
	sed "s|^ATtest|@test|" >"$BATS_TEST_TMPDIR/hangs.bats" <<-EOT
		load $BATS_TEST_DIRNAME/../support/mounts
		setup_file() { mounts_start gluster bindfs small; }
		teardown_file() { mounts_stop; }
		ATtest "hangs" {
			echo "\$MOUNTS" >$BATS_TEST_TMPDIR/where
			cd "\$MOUNTS/gluster/a" && sleep 1000
		}
	EOT
	# shellcheck disable=SC2046 # several words
	env $(printf -- '-u %s ' "${!BATS_@}") TMPDIR="$BATS_TEST_TMPDIR/tmp" setsid bats "$BATS_TEST_TMPDIR/hangs.bats" >/dev/null 2>&1 3>&- &
	sleeper=$!
	until_true 60 test -s "$BATS_TEST_TMPDIR/where"
	dir=$(cat "$BATS_TEST_TMPDIR/where")
	network=$(network_of "$dir")
	servers=$(in_network "$network")
	[ "$(mounts_below "$dir" | wc -l)" = 6 ]
	kill -KILL -- -$sleeper
	until_true 10 gone "$dir" "$network"
}

@test "it ends when the guard gets a TERM; when it is killed, all daemons end, and stop does the rest" {
	local guard
	start_rig
	read -r guard _ <"$dir/guard"
	kill -TERM "$guard"
	until_true 10 gone "$dir" "$network"
	kill -KILL $sleeper
	start_rig
	read -r guard _ <"$dir/guard"
	kill -KILL "$guard"
	until_true 10 none of_rig "$dir"
	until_true 10 none left_in_network "$network"
	"$rig" stop "$dir"
	gone "$dir" "$network"
}

@test "a user who is not root gets 77" {
	run -77 setpriv --reuid 65534 --clear-groups "$rig" usable gluster
	[[ $output = *"needs root"* ]]
}
