#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# tests/support/soak itself, with small rounds on GlusterFS: for hours it is run by hand (make soak).
# takes: 120
# asan: no (KILL leaves nothing to look at)
# mounts: private
# soak (takes long)

bats_require_minimum_version 1.5.0

load ../support/programs

setup() {
	soak=$BATS_TEST_DIRNAME/../support/soak
	BIN=${BIN:-$BATS_TEST_DIRNAME/../../bin}
	local why
	why=$("$BATS_TEST_DIRNAME/../support/mounts" usable gluster 2>&1) || skip "$why"
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

# replace PROGRAM LINE...: for the soak, a program is this shell script; all others of $BIN stay.
replace() {
	if [ "$BIN" != "$BATS_TEST_TMPDIR/bin" ]; then
		mkdir "$BATS_TEST_TMPDIR/bin"
		ln -s "$(realpath "$BIN")"/* "$BATS_TEST_TMPDIR/bin/"
		export BIN=$BATS_TEST_TMPDIR/bin
	fi
	rm -f "$BIN/$1"
	{ echo '#!/bin/sh' && printf '%s\n' "${@:2}"; } >"$BIN/$1"
	chmod +x "$BIN/$1"
}

@test "a gc that removes nothing is a fault: exit code 1, with the seed and what was kept" {
	# shellcheck disable=SC2016 # for another shell
	replace preempt-store '[ "$1" = gc ] || exec "'"$(realpath "$BIN")"'/preempt-store" "$@"'
	round 1 --seed 500
	[[ $output == *'FAULT on gluster: tests/support/soak --places gluster --seed 500 --rounds 1, kept in '* ]]
	[[ $output == *'keys are left in the store'* ]]
	[ -s "$(sed -n 's/.*--rounds 1, kept in //p' <<<"$output")/lives/output" ]
}

@test "loads that exit with 1 and a round that cannot begin are faults; after three such rounds the place is left" {
	replace python3 'exit 1' # for lives and queue
	replace store_history
	# In the way of the next round's directory.
	# shellcheck disable=SC2016 # for another shell
	replace contend ': >"$SOAK/gluster.600"' 'exit 1'
	round 1 --seed 500 --rounds 9
	[[ $output == *'lives: exit code 1'* && $output == *'claims: exit code 1'* ]]
	[[ $output != *'history: exit code'* ]]
	[[ $output == *"FileExistsError: "*"gluster.600'"* ]]
	[[ $output == *'no longer on gluster: 3 rounds in a row had faults'* && $output == *'rounds on gluster: 3,'* ]]
	[ "$(grep -c '^soak: FAULT on gluster: tests/support/soak ' <<<"$output")" = 3 ]
}

@test "a process that a round leaves behind is a fault, and is killed" {
	replace python3
	replace store_history
	# shellcheck disable=SC2016 # for another shell
	replace contend 'setsid sleep 1000 &' 'echo $! >"'"$BATS_TEST_TMPDIR/left"'"'
	round 1 --seed 500
	local left
	left=$(<"$BATS_TEST_TMPDIR/left")
	[[ $output == *"process $left is left: sleep 1000"* ]]
	run ! grep -s sleep "/proc/$left/cmdline" # empty: a process that its parent has not waited for
}

@test "a place that is usable and does not start is a fault" {
	# shellcheck disable=SC2016 # for another shell
	replace unshare 'case "$*" in *gluster-server*) exit 1 ;; esac' "exec $(type -P unshare)"' "$@"'
	round 1 --seed 500
	[[ $output == *'FAULT on gluster: '*'does not start: mounts rig: '* ]]
	[ -s "$(sed -n 's/.*--rounds 1, kept in //p' <<<"$output")/start" ]
}

@test "machine_load: a worker that ends with an unknown exit code, or of a signal it was not sent, makes the queue load fail" {
	local load=$BATS_TEST_DIRNAME/../support/machine_load worker
	# A queue of two commands, which are over when a worker has ended.
	# shellcheck disable=SC2016 # for another shell
	replace preempt-queue 'case $1 in' \
		'schedule) seq 2 ;;' \
		'work) : >"'"$BATS_TEST_TMPDIR"'/worked"; exit $WORKER ;;' \
		'join) until [ -e "'"$BATS_TEST_TMPDIR"'/worked" ]; do sleep 0.1; done ;;' \
		'list) seq 2 ;;' \
		'fetch) echo "result $(($2 * 7 + 1))" ;;' 'esac'
	for worker in 0 99 137; do
		rm -f "$BATS_TEST_TMPDIR/worked"
		# With this seed the first worker is to be killed after 2 s.
		PATH=$BIN:$PATH WORKER=$worker run -$((worker > 0)) "$load" queue "$BATS_TEST_TMPDIR/$worker" 2 45
		echo "$output"
		[[ $output == *'# 2 commands'* ]]
		[[ $worker = 0 || $output == *"a worker ended with $worker"* ]]
	done
}

teardown() {
	[ -z "${freezer:-}" ] || kill "$freezer" 2>/dev/null || :
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
	"$BATS_TEST_DIRNAME/../support/mounts" freeze "$BATS_TEST_TMPDIR"/tmp/soak.*/gluster 1000 3>&- &
	freezer=$!
	frozen() { grep -q '^State:	T' "/proc/$(cat "$BATS_TEST_TMPDIR"/tmp/soak.*/gluster/gluster/server)/status"; }
	eventually frozen
	kill $soak_pid
	wait $soak_pid || code=$?
	kill $freezer
	[ "$code" = 130 ]
	[ -z "$(ls "$BATS_TEST_TMPDIR/tmp")" ]
	run ! grep "$BATS_TEST_TMPDIR" /proc/self/mounts
	eventually gone
}

@test "where a place cannot run, the reason is reported" {
	mkdir "$BATS_TEST_TMPDIR/path"
	local tool
	for tool in bash env uname id realpath dirname sed rm; do ln -s "$(type -P $tool)" "$BATS_TEST_TMPDIR/path/"; done
	# What is found by PATH may be a script that needs more.
	ln -s "$(python3 -c 'import sys; print(sys.executable)')" "$BATS_TEST_TMPDIR/path/python3"
	PATH=$BATS_TEST_TMPDIR/path round 77
	[[ $output == *'not on gluster: mounts rig: no '* ]]
}
