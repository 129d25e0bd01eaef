#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Faults at the calls below the store: errors, kills, stops, loss of power, full disks. The programs
# of tests/crash do the many, for the store's own transactions and for a queue's exchange and
# schedule (queue-*: also that the same caller, asking again, is answered as without the fault);
# here they are run on a sample, under a seed that is printed. For all:
#   build/plain/tests/crash/sweep errors|kills|stops [--url '?lock=link']
#   build/plain/tests/crash/together kills|errors|stops [--url '?lock=link']
#   build/plain/tests/crash/powerloss --tries 100
#   build/plain/tests/crash/lives --schedules 100
# takes: 230
# asan: no (preloaded libraries)

# shellcheck disable=SC2154,SC2016 # bats sets stderr and stderr_lines; inner shells expand
bats_require_minimum_version 1.5.0
load ../support/programs

setup() {
	PATH=${BIN:-$BATS_TEST_DIRNAME/../../bin}:$PATH
	faults=${OUT:-$BATS_TEST_DIRNAME/../../build/plain}/tests/crash
	chmod 700 "$BATS_TEST_TMPDIR"
	dir=$BATS_TEST_TMPDIR/dir
	mkdir -m 700 "$dir"
	export PREEMPT_STORE=$dir/run.db
	unset PREEMPT_RUN XDG_STATE_HOME
	mounted=
}

teardown() {
	local pid
	for pid in ${pids:-}; do
		kill -9 "$pid" 2>/dev/null || :
	done
	"$BATS_TEST_DIRNAME/../support/forget-stores" "$BATS_TEST_TMPDIR"
	[ -z "$mounted" ] || umount -l "$mounted"
}

need_root() {
	[ "$(id -u)" = 0 ] || skip "needs root $1"
}

# swept PROGRAM [ARG...]: it passed, and did as much as it should.
swept() {
	local program=$1
	shift
	run timeout 500 "$faults/$program" "$@"
	echo "$output" | grep '^#\|^not ok' | head -n 60
	[ "$status" = 0 ]
	echo "# $program $*: ${lines[-1]#\# }" >&3
}

@test "an error at any call of any transaction: the right code, its true cause, nothing by halves" {
	swept sweep errors --one-in 25
}

@test "the same on a shared filesystem, and with lock=link" {
	swept sweep errors --one-in 80 --url '?assume=shared'
	swept sweep errors --one-in 60 --url '?lock=link'
}

@test "kill -9 and Ctrl-C at any call: what was acknowledged is there, the next one proceeds at once" {
	swept sweep kills --one-in 12
	swept sweep kills --one-in 25 --url '?lock=link'
}

@test "stopped at any change: the others are told who it is (75); when it goes on nothing is lost" {
	swept sweep stops --one-in 15
	swept sweep stops --one-in 40 --url '?lock=link'
}

@test "the same of one that carries out what three others ask: they are answered rightly and in time" {
	swept together kills
	swept together kills --url '?lock=link'
	swept together errors --one-in 8 --url '?assume=shared'
	swept together stops --one-in 8
}

@test "power is lost at any change, what was not synced in any way: what was acknowledged is there" {
	swept powerloss --tries 4 make-and-put put delete purge roll-back-and-put queue-exchange
	swept powerloss --tries 3 --url '?lock=link' make-and-put put
}

@test "kill -9 at any stage of two overlapping lives of one sharded save: never a mixture of both" {
	export TMPDIR=$BATS_TEST_TMPDIR
	swept lives --schedules 3 --one-in 6
	# The sweep finds it where lives have no name, as in version 0.1.0.
	run -1 timeout 500 "$faults/lives" --schedules 1 --one-in 12 --seed 5 --nameless
	[[ $output == *"its shards are not those of one life"* ]]
}

# ---- Whole programs ----

# errors_in NORMAL COMMAND...: errors at about 8 (or $points) of its calls. It ends as it should (NORMAL), or with
# 75 or 77 and the cause, never with another answer; and then, run again, with NORMAL or AGAIN.
errors_in() {
	local normal=$1 calls at number code step
	shift
	before
	calls=$("$faults/inject" "$dir" 0 count -- "$@" 2>/dev/null) || [ $? = "$normal" ]
	[ "$calls" -gt 5 ]
	step=$((calls / ${points:-8} + 1))
	for ((at = 1 + RANDOM % step; at <= calls; at += step)); do
		for number in EIO EROFS; do
			code=0
			before
			timeout 120 "$faults/inject" "$dir" "$at" always $number -- "$@" \
				>"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" || code=$?
			# 99: this time it made fewer calls.
			case $code in
			"$normal" | 99) ;;
			75 | 77) grep -q 'Input/output error\|Read-only' "$BATS_TEST_TMPDIR/err" ;;
			*) echo "call $at of $calls, $number: $code $(cat "$BATS_TEST_TMPDIR/err")" && false ;;
			esac
			code=0
			timeout 120 "$@" >/dev/null 2>"$BATS_TEST_TMPDIR/err" || code=$?
			[[ $code = "$normal" || $code = "${again:-$normal}" ]] ||
				{ echo "then: $code $(cat "$BATS_TEST_TMPDIR/err")" && false; }
		done
	done
}

# Before each: so that it has the same to do.
before() { :; }

@test "errors under preempt-store put, get, list, rm, wait, gc" {
	errors_in 0 preempt-store put k v
	errors_in 0 preempt-store get k
	errors_in 1 preempt-store get none
	errors_in 0 preempt-store list --values
	errors_in 0 preempt-store wait k --timeout 60s
	errors_in 1 preempt-store put k w --if-absent
	before() { preempt-store put k v; }
	again=1 errors_in 0 preempt-store rm k
	before() { preempt-store put run/old/000001/CLOSED '{"utc":1,"state":"completed"}'; }
	errors_in 0 preempt-store gc --older-than 1h
}

@test "errors under preempt-claim, preempt-store join and leave" {
	sleep infinity &
	pids=$!
	local n=0
	before() {
		n=$((n + 1))
		export PREEMPT_RUN=r$n
	}
	# These two try again until their timeout.
	errors_in 0 preempt-store join --task 0 --tasks 1 --pid $pids --no-board --timeout 3s
	before() {
		n=$((n + 1))
		export PREEMPT_RUN=r$n
		preempt-store join --task 0 --tasks 1 --pid $pids --no-board >/dev/null
	}
	# 1: it is claimed already.
	again=1 points=4 errors_in 0 preempt-claim --reason test --timeout 1s
	errors_in 0 preempt-store leave --task 0 --tasks 1
}

@test "errors under preempt-run from its start to its goodbye: the command's own code or 75, 77" {
	local n=0 calls at code came=0
	preempt-store put k v
	calls=$("$faults/inject" "$dir" 0 count -- preempt-run --run first -- true)
	for at in 5 50 $((calls / 4)) $((calls / 2)) $((calls * 3 / 4)) $((calls - 30)); do
		n=$((n + 1))
		code=0
		timeout 120 "$faults/inject" "$dir" "$at" fail EIO -- \
			preempt-run --run "r$n" -- sh -c 'exit 7' 2>"$BATS_TEST_TMPDIR/err" || code=$?
		# 99: it made fewer calls than the first, which beat and looked more often.
		[[ $code = 7 || $code = 75 || $code = 99 ]] ||
			{ echo "call $at: $code $(cat "$BATS_TEST_TMPDIR/err")" && false; }
		[ $code != 75 ] || grep -q 'Input/output error' "$BATS_TEST_TMPDIR/err"
		[ $code = 99 ] || came=$((came + 1))
		code=0
		timeout 120 "$faults/inject" "$dir" "$at" before KILL -- \
			preempt-run --run "k$n" -- true || code=$?
		[[ $code = 137 || $code = 99 ]]
		run -0 timeout 120 preempt-run --run "k$n" -- true
	done
	[ $came -ge 2 ]
}

@test "a call fails once with EIO, as after an NFS server has lost the locks: the file is opened again, and the put made" {
	local call at code calls=0
	preempt-store put k v
	for call in pread pwrite fdatasync; do
		for ((at = 1; ; at++)); do
			code=0
			"$faults/inject" "$dir" "$call:run.db" $at fail EIO -- preempt-store put k "$call $at" || code=$?
			[ $code != 99 ] || break
			[ $code = 0 ]
			run -0 preempt-store get k
			[ "$output" = "$call $at" ]
			calls=$((calls + 1))
		done
	done
	[ $calls -ge 8 ]
	run -75 "$faults/inject" "$dir" pread:run.db 1 always EIO -- preempt-store put k w
	[[ $output == *'Input/output error'* ]]
}

@test "Ctrl-C in the middle of a commit: 130, and nothing is left" {
	preempt-store put k v
	for at in 1 2 3; do
		run -130 "$faults/inject" "$dir" pwrite $at before INT -- preempt-store put k w
		run -0 preempt-store get k
		[ "$output" = v ]
	done
	[ "$(ls "$dir")" = $'run.db\nrun.db-journal\nrun.db.lock' ]
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

# Four writers, each of which writes down the numbers of the keys that were acknowledged, until they
# are told to stop: killed in the middle of a put they would leave it at work.
start_writers() {
	local writer
	pids=
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
		pids+=" $!"
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
	for pid in $pids; do
		wait "$pid"
	done
	pids=
}

@test "the disk becomes full while 32 write at once: who was refused has nothing there, the others all" {
	need_root "to mount a small tmpfs"
	mount -t tmpfs -o mode=700,size=600k none "$dir" || skip "needs to mount a tmpfs"
	mounted=$dir
	run -0 --separate-stderr "$faults/../support/contend" -p 32 -k 300 "$PREEMPT_STORE"
	echo "# $output" >&3
	[[ $output =~ refused\ ([0-9]+)\ unknown\ 0\  ]]
	[ "${BASH_REMATCH[1]}" -gt 0 ]
	[[ $stderr == *"No space left on device"* ]]
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

@test "an answer is lost when the first failure of a queue is reported: a later call reports it, it is not lost" {
	local calls at code word="done"
	before
	export PREEMPT_STORE=$dir/q.db
	one_fails() {
		preempt-queue schedule -- false
		preempt-queue work --source signal:USR1 --idle-exit 0 || [ $? = 44 ]
	}
	one_fails
	calls=$("$faults/inject" "$dir" 0 count -- preempt-queue "$word" 2>/dev/null) || [ $? = 44 ]
	# The last ones take it away.
	for ((at = calls > 24 ? calls - 24 : 1; at <= calls; at++)); do
		one_fails
		code=0
		"$faults/inject" "$dir" "$at" late EIO -- preempt-queue "$word" || code=$?
		# 99: this time it made fewer calls, and told it.
		[[ $code = 44 || $code = 99 ]] || {
			[ "$code" = 75 ]
			run -44 preempt-queue "$word"
		}
		preempt-queue "$word" || [ $? = 44 ]
	done
}
