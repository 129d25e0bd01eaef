# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# For bats files that need filesystems that are shared, full or read-only (tests/support/mounts):
#
#   # mounts: private                         on a line of its own: tests/run reads it
#   load ../support/mounts
#   setup_file()    { mounts_start gluster bindfs small; }   skips the file if no rig can run here
#   teardown_file() { mounts_stop; }
#   teardown()      { mounts_dump_logs; }                    prints logs, only after a failure
#
# $MOUNTS is the rig's directory: $MOUNTS/gluster/a and b, $MOUNTS/bindfs/a and b (each pair is one
# filesystem seen by two machines), $MOUNTS/small/rw and ro (one tmpfs of 8 MiB). Tests of one file
# share them, so each makes directories of its own there. All of it is removed after the file, however it ends.

. "$(dirname "${BASH_SOURCE[0]}")/programs.bash"

mounts_rig_script=$(realpath "$(dirname "${BASH_SOURCE[0]}")/mounts")

# mounts_start KIND...
mounts_start() {
	local why parent=${TMPDIR:-/tmp}
	why=$("$mounts_rig_script" usable "$@" 2>&1) || skip "$why"
	MOUNTS=$(mktemp -d "$parent/mounts.XXXXXX")
	export MOUNTS
	"$mounts_rig_script" start "$MOUNTS" --owner $$ "$@"
}

# Also removes what this machine keeps in /dev/shm for stores on these mounts.
mounts_stop() {
	[ -n "${MOUNTS:-}" ] && [ -d "$MOUNTS" ] || return 0
	"$(dirname "$mounts_rig_script")/forget-stores" "$MOUNTS" || :
	"$mounts_rig_script" stop "$MOUNTS"
}

# mounts_store KIND [PARAMETERS]: set $a and $b to the URLs of a new store, one through each mount of the pair.
# shellcheck disable=SC2034 # files that load this use them
mounts_store() {
	local new
	new=$(mktemp -d "$MOUNTS/$1/a/XXXXXX")
	a=$new/s.db${2:+?$2} b=$MOUNTS/$1/b/${new##*/}/s.db${2:+?$2}
}

# mounts_fill DIRECTORY: fill its filesystem; mounts_drain undoes it.
mounts_fill() {
	cat /dev/zero >"$1/filler" 2>/dev/null || :
	# Fill the rest of the last page, and the room for names.
	while printf x >>"$1/filler"; do :; done 2>/dev/null
}
mounts_drain() { rm -f "$1/filler"; }

mounts_dump_logs() {
	[ -z "${BATS_TEST_COMPLETED:-}" ] && [ -d "${MOUNTS:-/nonexistent}" ] || return 0
	"$mounts_rig_script" logs "$MOUNTS" >&2
}
