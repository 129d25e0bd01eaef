# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# shellcheck disable=SC2154 # bats sets output
# A queue under workers that are killed, stopped and given notices at random (tests/support/storm), for the files
# queue_storm*.bats. $store is a directory for a store on this machine.

. "$(dirname "${BASH_SOURCE[0]}")/../support/mounts.bash"

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

# storm OPTION...: all was right; says under which seed, and what happened.
storm() {
	run -0 "$REPO/tests/support/storm" "$@"
	echo "$output" | grep '^#' >&3
}

# storm_on KIND OPTION...: on a filesystem with two mounts, half of the workers on each.
storm_on() {
	local a b kind=$1
	shift
	mounts_start "$kind"
	mounts_store "$kind"
	storm --store "$a" --store "$b" "$@"
}
