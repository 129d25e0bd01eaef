#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# ckpt-rotate, killed, or with an I/O error, at every one of its calls that touch a filesystem: the newest checkpoint
# is whole at any moment, none is never said, and the same command again finishes.
# takes: 230
# asan: no (thousands of starts, of what tests/programs runs with sanitizers)
# soak (the rows of the crash driver take its place)
# shellcheck disable=SC2012,SC2016,SC2030,SC2031,SC2034,SC2086,SC2154
bats_require_minimum_version 1.5.0
load ../support/ckpt

# The calls that change a filesystem: killed at any other one, what is left is what is left by a kill at the next
# of these. (The loader calls openat, too.)
changing="openat mkdir mkdirat write pwrite64 fchmod ioctl copy_file_range ftruncate sync_file_range fsync rename
	renameat renameat2 linkat symlinkat unlinkat rmdir"

# before_each_call FILE...: the state before.
before_each_call() {
	mkdir template
	mv "$@" template/
}

# kill_at_each_call LEAST COMMAND...: from the state in ./template, and at LEAST points at least. After each, "holds"
# must hold, and "again" must finish.
kill_at_each_call() {
	local least=$1 call n points=0
	shift
	for call in $changing; do
		for ((n = 1; n < 300; n++)); do
			rm -rf ck near far
			cp -a template/. .
			run --separate-stderr strace -f -o trace -e trace="$call" -e inject="$call:signal=KILL:when=$n" "$@"
			[ "$status" = 137 ] || break
			points=$((points + 1))
			holds || { echo "wrong after $call $n"; return 1; }
			again || { echo "not finished after $call $n"; return 1; }
		done
	done
	echo "# killed at $points calls" >&3
	[ $points -ge "$least" ]
}

# error_at_each_call LEAST CALLS PATHS COMMAND...: with an I/O error at each of CALLS that touches PATHS (all of them,
# where PATHS is empty). "judge" is asked of each end, in $code and $answer.
error_at_each_call() {
	local least=$1 path paths=() call n points=0
	for path in $3; do paths+=(-P "$path" -P "$PWD/$path"); done
	for call in $2; do
		for ((n = 1; n < 100; n++)); do
			[ ! -d template ] || { rm -rf near far && cp -a template/. .; }
			code=0
			answer=$(strace -f -o trace "${paths[@]}" -e trace=$call -e inject=$call:error=EIO:when=$n \
				"${@:4}" 2>/dev/null) || code=$?
			grep -q INJECTED trace || break
			points=$((points + 1))
			judge || { echo "wrong after $call $n: $code $answer"; cat trace; return 1; }
		done
	done
	echo "# $points calls failed" >&3
	[ $points -ge "$least" ]
}

# newest_is LEAST: the newest in ck is whole, and of this step or a later one.
newest_is() {
	local now
	now=$(ckpt-rotate latest ck --step --verify 2>/dev/null) && [ "$now" -ge "$1" ]
}

@test "begin: of the first one; where a living writer has begun; where a dead one left something" {
	holds() { [ -z "$(ckpt-rotate latest ck 2>/dev/null)" ]; }
	again() { save 20 && no_debris 20; }
	mkdir template
	kill_at_each_call 5 ckpt-rotate begin ck 20
	holds() { newest_is 10; }
	again() { save 20 && no_debris 20 && [ ! -e ck/step-00000020/old ]; }
	for who in living dead; do
		rm -rf ck template
		save 10
		if [ $who = dead ]; then dead old ckpt-rotate begin ck 20; else echo old >"$(ckpt-rotate begin ck 20)/old"; fi
		before_each_call ck
		kill_at_each_call 6 ckpt-rotate begin ck 20
	done
}

@test "commit: of a new one, in the place of a damaged one, of the last shard" {
	holds() { newest_is 10; }
	again() { [ "$(ckpt-rotate commit ck 20)" = complete ] && no_debris 20; }
	for before in 10 "10 20"; do
		rm -rf ck template
		saves $before
		rm -f ck/step-00000020/model
		d=$(ckpt-rotate begin ck 20)
		mkdir "$d/sub"
		echo model | tee "$d/model" >"$d/sub/state"
		before_each_call ck
		kill_at_each_call 6 ckpt-rotate commit ck 20
	done
	rm -rf ck template
	save 10
	shards 20 3
	shard commit 20 0 3
	shard commit 20 2 3
	before_each_call ck
	again() { [ "$(shard commit 20 1 3)" = complete ] && no_debris 20; }
	kill_at_each_call 6 ckpt-rotate commit ck 20 --sharded --task 1 --tasks 3 --attempt 1 --life $one
}

@test "commit --chief-only, of another task than the chief" {
	save 10
	d=$(replica begin 20 1 2)
	mkdir "$d/sub"
	echo half >"$d/model"
	before_each_call ck
	holds() { [ "$(ckpt-rotate latest ck --step --verify)" = 10 ]; }
	again() { [ "$(replica commit 20 1 2)" = "waiting for 1 of 2" ] && [ "$(names -A ck)" = "latest step-00000010" ]; }
	kill_at_each_call 3 ckpt-rotate commit ck 20 --chief-only --task 1 --tasks 2 --attempt 1
}

@test "mark and pin" {
	saves 10 20
	before_each_call ck
	for command in "mark ck 20 bad --reason why" "pin ck 20"; do
		holds() {
			now=$(ckpt-rotate latest ck --step --verify 2>/dev/null)
			{ [[ $command = mark* && $now = 10 ]] || [ "$now" = 20 ]; } && ckpt-rotate verify -q ck 20
		}
		again() { ckpt-rotate $command && [ -z "$(find ck -name '*.json.*')" ]; }
		kill_at_each_call 5 ckpt-rotate $command
	done
}

@test "prune: of our own, with a dead writer's and a damaged one, and of frameworks'" {
	saves 10 20 30 40
	rm ck/step-00000040/model
	dead "a b c d e f" ckpt-rotate begin ck 50
	before_each_call ck
	holds() { newest_is 30; }
	again() {
		ckpt-rotate prune -q --keep-last 1 ck && [ -z "$(find ck -name '.tmp*' -o -name '.gone*')" ] &&
			newest_is 30 && [ "$(names ck)" = "latest step-00000030 step-00000040" ]
	}
	kill_at_each_call 6 ckpt-rotate prune --keep-last 1 ck
	holds() {
		[ "$(ckpt-rotate latest ck --step 2>/dev/null)" = 300 ] && [[ "100 200 300 " = *"$(steps)" ]]
	}
	# The file with which a killed one measured the clock goes, too.
	again() {
		age
		ckpt-rotate prune -q --keep-last 1 ck && [ "$(steps)" = "300 " ] &&
			[ -z "$(find ck -name '.gone*' -o -name '.ckpt-*' -o -name '*[12]00*')" ]
	}
	for kind in hf tensorflow; do
		rm -rf template
		fresh $kind 100 200 300
		before_each_call ck
		kill_at_each_call 4 ckpt-rotate prune -q --keep-last 1 ck
	done
}

@test "copy, one that goes on where another was killed, and drain" {
	in=near saves 10 20
	ckpt-rotate copy -q near far 10
	before_each_call near far
	holds() { [ "$(ckpt-rotate latest far --step --verify)" -ge 10 ] && [ "$(ckpt-rotate latest near far --step)" = 20 ]; }
	again() { ckpt-rotate copy -q near far && same 20 && no_debris; }
	kill_at_each_call 35 ckpt-rotate copy -q near far
	rm -rf template near far
	in=near save 20
	strace -f -o trace -e trace=renameat2 -e inject=renameat2:signal=KILL:when=2 ckpt-rotate copy -q near far || :
	[ -n "$(find far -name model)" ]
	before_each_call near far
	holds() { [ "$(ckpt-rotate latest near far --step --verify)" = 20 ]; }
	kill_at_each_call 35 ckpt-rotate copy -q near far
	rm -rf template near far
	in=near saves 10 20
	ckpt-rotate copy -q near far --all
	before_each_call near far
	holds() {
		[ "$(ckpt-rotate latest near far --step --verify)" = 20 ] &&
			{ ckpt-rotate verify -q near 10 || ckpt-rotate verify -q far 10; }
	}
	again() {
		ckpt-rotate drain -q near far && [ ! -e near/step-00000010 ] && no_debris && ckpt-rotate verify -q far --all
	}
	kill_at_each_call 10 ckpt-rotate drain -q near far
}

@test "an I/O error at any call of latest never gives an older checkpoint, or one that may be bad" {
	local reads="newfstatat openat getdents64 read"
	# (The C library looks at a stream's file, too, and can do without.)
	looks() { error_at_each_call "$1" "$reads" ". $2 $(find "$2" -printf "%p " 2>/dev/null) /etc/fstab" ckpt-rotate latest "$2" --step --or 0; }
	saves 10 20
	# Some errors hurt nothing: the answer is right or there is none.
	judge() { [ "$code $answer" = "0 20" ] || [ "$code $answer" = "75 " ]; }
	looks 9 ck
	ckpt-rotate mark ck 20 bad
	judge() { [ "$code $answer" = "0 10" ] || [ "$code $answer" = "75 " ]; }
	looks 9 ck
}

@test "an I/O error at any call of copy: nothing wrong appears, and a rerun finishes" {
	in=near saves 10 20
	ckpt-rotate copy -q near far 10
	before_each_call near far
	judge() {
		# (Errors before it begins are the loader's.)
		case "$code $(ckpt-rotate latest far --step --verify)" in
		"0 20" | "75 10" | "75 20" | "127 10") ckpt-rotate copy -q near far && same 20 && no_debris ;;
		*) false ;;
		esac
	}
	error_at_each_call 25 "read copy_file_range fsync renameat2 rename mkdirat ftruncate getdents64 unlinkat" "" \
		ckpt-rotate copy -q near far
}
