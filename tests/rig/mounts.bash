# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# For bats files that need shared filesystems, a full one or a read-only one (tests/rig/mounts):
#
#   # mounts: private                         a line of its own, for tests/run
#   load rig/mounts
#   setup_file()    { mounts_start gluster bindfs small; }   skips the file where no rig can run
#   teardown_file() { mounts_stop; }
#   teardown()      { mounts_dump_logs; }                    says something only after a failure
#
# $MOUNTS is the rig's directory: $MOUNTS/gluster/a and b, $MOUNTS/bindfs/a and b (each pair is one
# filesystem seen by two machines), $MOUNTS/small/rw and ro (one tmpfs of 1 MiB). Tests of one file
# share them: each makes directories of its own there. It all ends with the file, however that ends.

mounts_rig_script=$(realpath "$(dirname "${BASH_SOURCE[0]}")/mounts")

# mounts_start KIND...
mounts_start() {
	local why parent=${TMPDIR:-/tmp}
	why=$("$mounts_rig_script" usable "$@" 2>&1) || skip "$why"
	MOUNTS=$(mktemp -d "$parent/mounts.XXXXXX")
	export MOUNTS
	"$mounts_rig_script" start "$MOUNTS" --owner $$ "$@"
}

# What this machine remembers of the stores there in /dev/shm goes, too.
mounts_stop() {
	[ -n "${MOUNTS:-}" ] && [ -d "$MOUNTS" ] || return 0
	"$(dirname "$mounts_rig_script")/forget-stores" "$MOUNTS" || :
	"$mounts_rig_script" stop "$MOUNTS"
}

# mounts_store KIND [PARAMETERS]: $a and $b are the URLs of one new store, through each mount of the pair.
# shellcheck disable=SC2034 # for those that load this
mounts_store() {
	local new
	new=$(mktemp -d "$MOUNTS/$1/a/XXXXXX")
	a=$new/s.db${2:+?$2} b=$MOUNTS/$1/b/${new##*/}/s.db${2:+?$2}
}

# mounts_fill DIRECTORY: until nothing more fits; mounts_drain undoes it.
mounts_fill() {
	cat /dev/zero >"$1/filler" 2>/dev/null || :
	# What is left of the last page, and room for names.
	while printf x >>"$1/filler"; do :; done 2>/dev/null
}
mounts_drain() { rm -f "$1/filler"; }

# mounts_read_only DIRECTORY, mounts_writable DIRECTORY: what is mounted there, for every process; fails
# while a process writes.
mounts_read_only() { mount -o remount,ro "$1"; }
mounts_writable() { mount -o remount,rw "$1"; }

mounts_dump_logs() {
	[ -z "${BATS_TEST_COMPLETED:-}" ] && [ -d "${MOUNTS:-/nonexistent}" ] || return 0
	"$mounts_rig_script" logs "$MOUNTS" >&2
}

# wait_for SECONDS COMMAND...: until COMMAND succeeds; fails when the time is over. What takes so long on
# a machine that has time for us is given four times as long, and at least a minute.
wait_for() {
	local end=$((SECONDS + (4 * $1 > 60 ? 4 * $1 : 60)))
	shift
	until "$@"; do
		((SECONDS < end)) || { echo "not in time: $*"; return 1; }
		sleep 0.02
	done
}
