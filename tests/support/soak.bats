#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# tests/support/soak itself, with small rounds on GlusterFS: for hours it is run by hand (make soak).
# takes: 60
# asan: no (KILL leaves nothing to look at)
# mounts: private
# soak (takes long)

bats_require_minimum_version 1.5.0

load ../support/programs

setup() {
	soak=$REPO/tests/support/soak BIN=${BIN:-$REPO/bin}
	local why
	why=$("$REPO/tests/support/mounts" usable gluster 2>&1) || skip "$why"
}

# round CODE OPTION...: one small round ends with this code.
round() {
	run -"$1" env TMPDIR="$BATS_TEST_TMPDIR" "$soak" --places gluster --small --rounds 1 "${@:2}"
	echo "$output"
}

@test "a small round on GlusterFS has no fault, and leaves nothing" {
	round 0 --seed 500
	[[ $output == *'1 rounds on gluster, 0 on nfs, 0 faults'* ]]
	[ -z "$(ls "$BATS_TEST_TMPDIR")" ]
}

@test "a gc that removes nothing is a fault: exit code 1, with the seed and what was kept" {
	mkdir "$BATS_TEST_TMPDIR/bin"
	ln -s "$(realpath "$BIN")"/* "$BATS_TEST_TMPDIR/bin/"
	rm "$BATS_TEST_TMPDIR/bin/preempt-store"
	# shellcheck disable=SC2016 # for another shell
	printf '%s\n' '#!/bin/sh' '[ "$1" = gc ] || exec "'"$(realpath "$BIN")"'/preempt-store" "$@"' \
		>"$BATS_TEST_TMPDIR/bin/preempt-store"
	chmod +x "$BATS_TEST_TMPDIR/bin/preempt-store"
	BIN=$BATS_TEST_TMPDIR/bin round 1 --seed 500
	[[ $output == *'FAULT on gluster: tests/support/soak --places gluster --seed 500 --rounds 1, kept in '* ]]
	[[ $output == *'keys are left in the store'* ]]
	[ -s "$(sed -n 's/.*--rounds 1, kept in //p' <<<"$output")/lives/output" ]
}
