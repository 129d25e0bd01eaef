#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What no injected fault is like: a disk that is full or read-only under writers, limits on files and threads, an output
# that is not read, the journal of another store. (Faults at single calls: tests/crash/sweep.)
# asan: no (limits on the size of files)
# takes: 10
# mounts: private

# shellcheck disable=SC2016,SC2154 # inner shells expand; bats sets stderr
bats_require_minimum_version 1.5.0
load ../support/programs

setup() {
	chmod 700 "$BATS_TEST_TMPDIR"
	mkdir -m 700 "$BATS_TEST_TMPDIR/dir"
	dir=$BATS_TEST_TMPDIR/dir mounted=''
	programs "$dir/run.db"
}

teardown() {
	end_started
	[ -z "$mounted" ] || umount -l "$mounted"
}

need_root() {
	[ "$(id -u)" = 0 ] || skip "needs root $1"
}

@test "a limit on file sizes: 75 and says so, no core, nothing changed; commands do not inherit ours" {
	preempt-store put k v
	head -c 60000 /dev/zero | tr '\0' x >"$BATS_TEST_TMPDIR/value"
	run -75 --separate-stderr bash -c \
		'ulimit -c unlimited -S; ulimit -f 30; preempt-store put large - <"$0"' "$BATS_TEST_TMPDIR/value"
	[[ $stderr == *'File too large'*'ulimit -f'* ]]
	run -1 preempt-store get large
	run -75 --separate-stderr bash -c 'ulimit -f 1; preempt-store put k v --store "$0"' "$dir/new.db"
	[[ $stderr == *'File too large'* ]]
	run -0 preempt-store put k v --store "$dir/new.db"
	# The command dies of it as it would without us.
	run -153 preempt-run --run limited -- bash -c 'ulimit -f 1; head -c 99999 /dev/zero >"$0"' "$dir/large"
	[ -z "$(find "$dir" "$BATS_TEST_TMPDIR" . -maxdepth 1 -name 'core*')" ]
}

@test "no process reads the answer: what was put is there" {
	run bash -c 'set -o pipefail; preempt-store put k v --json | true'
	[[ $status = 0 || $status = 141 || $status = 75 ]]
	run -0 preempt-store get k
	[ "$output" = v ]
	run -0 bash -c 'preempt-store list | head -n 1'
}

# left_by STORE: a writer is killed in the middle of its commit: pages are written, and the journal would undo them.
left_by() {
	local i
	for i in 1 2 3 4 5 6; do preempt-store put "run/r/$i" "$(printf '%0900d' "$i")" --store "$dir/$1"; done
	preempt-store put run/r/3 "before $1" --store "$dir/$1"
	run -137 "$BATS_TEST_DIRNAME/crash" --inject "$dir" fdatasync:"$1" 1 before KILL -- \
		preempt-store put run/r/3 half --store "$dir/$1"
	[ "$(head -c 8 "$dir/$1-journal" | od -An -tx1 | tr -d ' ')" = d9d505f920a163d7 ]
}

@test "the journal of a killed writer, of this store: it is rolled back; of another: 65, and nothing is" {
	local command
	left_by run.db
	cp -a "$dir" half
	[ "$(preempt-store get run/r/3)" = "before run.db" ]
	left_by other.db
	cat "$dir/other.db-journal" >"$dir/run.db-journal"
	sha256sum "$dir"/* >sums
	for command in "get k" "put k v"; do
		# shellcheck disable=SC2086 # words
		run -65 --separate-stderr preempt-store $command
		[[ $stderr == *"run.db-journal is the journal of another database"* ]]
		sha256sum -c --quiet sums
	done
	cat half/run.db >"$dir/run.db"
	cat half/run.db-journal >"$dir/run.db-journal"
	[ "$(preempt-store get run/r/3)" = "before run.db" ]
	[ "$(sqlite3 "$dir/run.db" 'PRAGMA integrity_check')" = ok ]
}

# Four writers, each of which writes down the numbers of the keys that were acknowledged, until they
# are told to stop: killed in the middle of a put they would leave it at work.
start_writers() {
	local writer
	for writer in a b c d; do
		(
			for ((i = 1; i <= 100000; i++)); do
				[ ! -e "$BATS_TEST_TMPDIR/stop" ] || exit 0
				until preempt-store put "$writer/$i" "$i" 2>>"$BATS_TEST_TMPDIR/errors"; do
					echo $? >>"$BATS_TEST_TMPDIR/codes"
					[ ! -e "$BATS_TEST_TMPDIR/stop" ] || exit 0
					sleep 0.05
				done
				echo "$i" >>"$BATS_TEST_TMPDIR/acknowledged.$writer"
			done
		) &
		started+=($!)
	done
}

# All that the writers were told is there.
check_writers() {
	local writer last i
	for writer in a b c d; do
		last=$(tail -n 1 "$BATS_TEST_TMPDIR/acknowledged.$writer")
		[ "$last" -gt 2 ]
		preempt-store list "$writer/" | sort >"$BATS_TEST_TMPDIR/there"
		for ((i = 1; i <= last; i++)); do echo "$writer/$i"; done | sort >"$BATS_TEST_TMPDIR/told"
		[ -z "$(comm -23 "$BATS_TEST_TMPDIR/told" "$BATS_TEST_TMPDIR/there")" ]
	done
	[ "$(sqlite3 "$PREEMPT_STORE" 'PRAGMA integrity_check')" = ok ]
}

# How many each of them has been told at least.
acknowledged() {
	local writer least=100000 count
	for writer in a b c d; do
		count=$(wc -l 2>/dev/null <"$BATS_TEST_TMPDIR/acknowledged.$writer" || echo 0)
		least=$((count < least ? count : least))
	done
	echo $least
}
written() {
	[ "$(acknowledged)" -ge "$1" ]
}
# told CODE WHY
told() {
	grep -qx "$1" "$BATS_TEST_TMPDIR/codes" 2>/dev/null && grep -q "$2" "$BATS_TEST_TMPDIR/errors"
}

end_writers() {
	local pid
	touch "$BATS_TEST_TMPDIR/stop"
	for pid in "${started[@]}"; do
		wait "$pid"
	done
	started=()
}

@test "the disk becomes full under four writers, and is freed: 75, and all that was acknowledged is there" {
	need_root "to mount a small tmpfs"
	mount -t tmpfs -o mode=700,size=1m none "$dir" || skip "needs to mount a tmpfs"
	mounted=$dir
	preempt-store put k v
	start_writers
	until_true 30 written 10
	head -c 2M /dev/zero >"$dir/filler" 2>/dev/null || :
	until_true 60 told 75 'No space left on device'
	rm "$dir/filler"
	before=$(acknowledged)
	until_true 60 written $((before + 5))
	end_writers
	check_writers
	run ! grep -vx 75 "$BATS_TEST_TMPDIR/codes"
}

@test "remounted read-only under four writers, and back: 77, and all that was acknowledged is there" {
	need_root "to remount a tmpfs"
	mount -t tmpfs -o mode=700 none "$dir" || skip "needs to mount a tmpfs"
	mounted=$dir
	preempt-store put k v
	start_writers
	until_true 30 written 10
	# Busy while a file is open for writing.
	until_true 30 mount -o remount,ro "$dir" 2>/dev/null || skip "cannot be remounted under writers"
	until_true 60 told 77 'Read-only file system'
	run -0 preempt-store get k
	mount -o remount,rw "$dir"
	before=$(acknowledged)
	until_true 60 written $((before + 5))
	end_writers
	check_writers
	run ! grep -vx '7[57]' "$BATS_TEST_TMPDIR/codes"
}
