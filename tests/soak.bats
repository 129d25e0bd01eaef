#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# tests/soak itself, with small rounds on GlusterFS: for hours it is run by hand (make soak).
# takes: 90
# asan: no (KILL leaves nothing to look at)
# mounts: private
# limit: 1800

bats_require_minimum_version 1.5.0

load eventually

setup() {
	soak=$BATS_TEST_DIRNAME/soak
	BIN=${BIN:-$BATS_TEST_DIRNAME/../bin}
	local why
	why=$("$BATS_TEST_DIRNAME/rig/mounts" usable gluster 2>&1) || skip "$why"
}

# round CODE OPTION...: one small round ends with this code.
round() {
	run -"$1" env TMPDIR="$BATS_TEST_TMPDIR" "$soak" --places gluster --small --rounds 1 "${@:2}"
	echo "$output"
}

@test "a small round on GlusterFS has no fault, and leaves nothing" {
	round 0 --seed 500
	[[ $output == *'rounds on gluster: 1'* && $output == *' 0 faults'* ]]
	[ -z "$(ls "$BATS_TEST_TMPDIR")" ]
}

@test "a gc that removes nothing is a fault: exit code 1, with the seed and what was kept" {
	mkdir "$BATS_TEST_TMPDIR/bin"
	ln -s "$BIN"/* "$BATS_TEST_TMPDIR/bin/"
	rm "$BATS_TEST_TMPDIR/bin/preempt-store"
	# shellcheck disable=SC2016 # for another shell
	printf '#!/bin/sh\n[ "$1" = gc ] || exec "%s" "$@"\n' "$BIN/preempt-store" >"$BATS_TEST_TMPDIR/bin/preempt-store"
	chmod +x "$BATS_TEST_TMPDIR/bin/preempt-store"
	BIN=$BATS_TEST_TMPDIR/bin round 1 --seed 500
	[[ $output == *'FAULT on gluster: tests/soak --places gluster --seed 500 --rounds 1, kept in '* ]]
	[[ $output == *'keys are left in the store'* ]]
	[ -s "$(sed -n 's/.*--rounds 1, kept in //p' <<<"$output")/lives/output" ]
}

teardown() {
	[ -z "${soak_pid:-}" ] || kill "$soak_pid" 2>/dev/null || return 0
	[ -z "${soak_pid:-}" ] || wait "$soak_pid" || :
}

gone() { ! pgrep -f "$BATS_TEST_TMPDIR/tmp/"; }

@test "TERM in the middle of a round, with frozen servers, leaves nothing" {
	local code=0
	mkdir "$BATS_TEST_TMPDIR/tmp"
	TMPDIR=$BATS_TEST_TMPDIR/tmp "$soak" --places gluster --seed 500 3>&- &
	soak_pid=$!
	eventually compgen -G "$BATS_TEST_TMPDIR/tmp/soak.*/gluster.500/claims/output"
	"$BATS_TEST_DIRNAME/rig/mounts" freeze "$BATS_TEST_TMPDIR"/tmp/soak.*/gluster
	kill $soak_pid
	wait $soak_pid || code=$?
	[ "$code" = 130 ]
	[ -z "$(ls "$BATS_TEST_TMPDIR/tmp")" ]
	run ! grep "$BATS_TEST_TMPDIR" /proc/self/mounts
	eventually gone
}

@test "where a place cannot run it is said why" {
	mkdir "$BATS_TEST_TMPDIR/path"
	local tool
	for tool in bash env uname id realpath dirname sed; do ln -s "$(type -P $tool)" "$BATS_TEST_TMPDIR/path/"; done
	# What is found by PATH may be a script that needs more.
	ln -s "$(python3 -c 'import sys; print(sys.executable)')" "$BATS_TEST_TMPDIR/path/python3"
	PATH=$BATS_TEST_TMPDIR/path round 77
	[[ $output == *'not on gluster: mounts rig: no '* ]]
}
