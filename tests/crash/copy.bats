#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# ckpt-rotate copy and drain, killed at every second of their system calls; at each with CKPT_SWEEP=all.
# asan: no (hundreds of starts, of what tests/programs/ckpt-rotate-tiers.bats runs with sanitizers)
# shellcheck disable=SC2154,SC2030,SC2031,SC2012,SC2016
bats_require_minimum_version 1.5.0
load ../support/layouts/near_far.bash
load ../support/layouts/sweep.bash

setup() {
	PATH=${BIN:-$BATS_TEST_DIRNAME/../../bin}:$PATH
	unset PREEMPT_ATTEMPT PREEMPT_LIFE PREEMPT_TASK PREEMPT_TASKS
	enter_memory
}

teardown() { leave_memory; }

# The calls that can change a filesystem: killed at any other call, what is left is what is left by a
# kill at the next of these. (The loader calls openat, too.)
changing="openat mkdir mkdirat write pwrite64 fchmod ioctl copy_file_range ftruncate sync_file_range
	fsync rename renameat renameat2 linkat symlinkat unlinkat rmdir"

# sweep LEAST COMMAND...: kill COMMAND at these calls, each time from ./template; then "check" and
# "rerun" must hold.
sweep() {
	local call n points=0 least=$1
	shift
	for call in $changing; do
		for ((n = 1; n < 300; n++)); do
			sampled $n || continue
			rm -rf near far
			cp -a template/* .
			run strace -f -o trace -e trace="$call" -e inject="$call:signal=KILL:when=$n" "$@"
			if [ "$status" != 137 ]; then break; fi
			points=$((points + 1))
			check || { echo "# wrong after $call $n" >&3; return 1; }
			rerun || { echo "# rerun failed after $call $n" >&3; return 1; }
		done
	done
	echo "# killed at $points calls (CKPT_SWEEP_SEED=$CKPT_SWEEP_SEED)" >&3
	[ $points -gt "$least" ]
}

@test "an I/O error at any call of copy: nothing wrong appears, and a rerun finishes" {
	save 10
	save 20
	mkdir template
	ckpt-rotate copy -q near far 10
	mv near far template/
	points=0
	for call in read copy_file_range fsync renameat2 rename mkdirat ftruncate getdents64 unlinkat; do
		for ((n = 1; n < 100; n++)); do
			sampled $n || continue
			rm -rf near far
			cp -a template/* .
			code=0
			strace -f -o trace -e trace=$call -e inject=$call:error=EIO:when=$n \
				ckpt-rotate copy -q near far 2>/dev/null || code=$?
			grep -q INJECTED trace || break
			points=$((points + 1))
			now=$(ckpt-rotate latest far --step --verify)
			# (Errors before it begins are the loader's.)
			[ "$code $now" = "0 20" ] || [ "$code $now" = "75 10" ] ||
				[ "$code $now" = "75 20" ] || [ "$code $now" = "127 10" ]
			ckpt-rotate copy -q near far
			same 20
			nothing_left
		done
	done
	echo "# $points calls failed (CKPT_SWEEP_SEED=$CKPT_SWEEP_SEED)" >&3
	[ $points -gt 25 ]
}

@test "kill -9 at every system call of copy" {
	save 10
	save 20
	mkdir template
	ckpt-rotate copy -q near far 10
	mv near far template/
	check() {
		now=$(ckpt-rotate latest far --step --verify) && [ "$now" -ge 10 ] &&
			[ "$(ckpt-rotate latest near far --step)" = 20 ]
	}
	rerun() { ckpt-rotate copy -q near far && same 20 && nothing_left; }
	sweep 35 ckpt-rotate copy -q near far
}

@test "kill -9 at every system call of a copy that goes on where another was killed" {
	save 20
	mkdir template far
	strace -f -o trace -e trace=renameat2 -e inject=renameat2:signal=KILL:when=2 \
		ckpt-rotate copy -q near far || :
	[ "$(find far -name model)" != "" ]
	cp -a near/. template/near
	mv far template/
	check() { [ "$(ckpt-rotate latest near far --step --verify)" = 20 ]; }
	rerun() { ckpt-rotate copy -q near far && same 20 && nothing_left; }
	sweep 35 ckpt-rotate copy -q near far
}

@test "kill -9 at every system call of drain" {
	save 10
	save 20
	ckpt-rotate copy -q near far --all
	mkdir template
	mv near far template/
	check() {
		[ "$(ckpt-rotate latest near far --step --verify)" = 20 ] &&
			{ ckpt-rotate verify -q near 10 || ckpt-rotate verify -q far 10; }
	}
	rerun() {
		ckpt-rotate drain -q near far && [ ! -e near/step-00000010 ] && nothing_left &&
			ckpt-rotate verify -q far --all
	}
	sweep 10 ckpt-rotate drain -q near far
}

@test "kill -9 at every system call of a copy of a framework's: of files, and of a directory" {
	mkdir template
	for layout in tensorflow hf; do
		rm -rf near far template/*
		mkdir near
		python3 "$BATS_TEST_DIRNAME/../support/layouts/frameworks.py" $layout near 100 200
		find near -exec touch -h -d '1 hour ago' {} +
		ckpt-rotate copy -q near far 100
		# Another copy was killed when it had copied a file.
		strace -f -o trace -e trace=renameat2 -e inject=renameat2:signal=KILL:when=2 \
			ckpt-rotate copy -q near far || :
		[ "$(find far/.ckpt-copying-* -type f | wc -l)" = 2 ]
		mv near far template/
		check() {
			now=$(ckpt-rotate latest far --step) && [ "$now" -ge 100 ] &&
				[ "$(ckpt-rotate latest near far --step)" = 200 ]
		}
		rerun() { ckpt-rotate copy -q near far && diff -r -x '.ckpt-copying-tracker.*' near far; }
		sweep 15 ckpt-rotate copy -q near far
	done
}
