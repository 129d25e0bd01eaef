#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# ckpt-rotate copy and drain: from a disk of one machine to another filesystem, whatever happens.
# limit: 600
# shellcheck disable=SC2154,SC2030,SC2031,SC2012,SC2016
bats_require_minimum_version 1.5.0

setup() {
	PATH=${BIN:-$BATS_TEST_DIRNAME/../bin}:$PATH
	cd "$BATS_TEST_TMPDIR" || return
	unset PREEMPT_ATTEMPT PREEMPT_TASK PREEMPT_TASKS
	# Leak checks do not work under strace.
	export ASAN_OPTIONS=detect_leaks=0
}

teardown() {
	local pid
	for pid in $(jobs -p) ${stopped-}; do kill -KILL "$pid" 2>/dev/null || :; done
	if mountpoint -q "$BATS_TEST_TMPDIR/disk"; then umount -l "$BATS_TEST_TMPDIR/disk"; fi
}

until_true() {
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		((SECONDS < end)) || return 1
		sleep 0.02
	done
}

# save STEP [ATTEMPT]: in the near tier.
save() {
	local d
	d=$(ckpt-rotate begin near "$1" --attempt "${2:-1}") &&
		echo "model of $1" >"$d/model" && mkdir -p "$d/sub" &&
		head -c 20000 /dev/urandom >"$d/sub/state" &&
		[ "$(ckpt-rotate commit near "$1" --attempt "${2:-1}")" = complete ]
}

same() {
	diff -r "near/step-000000$1" "far/step-000000$1" &&
		[ "$(ckpt-rotate verify far "$1" | cut -d: -f1)" = "step-000000$1 verified" ]
}

nothing_left() {
	[ "$(find far near -name '.tmp*' -o -name '.gone*' -o -name '.latest*' \
		-o -name '.ckpt-writer*' -o -name '.ckpt-copy*' -o -name '.ckpt-part*' \
		-o -name '*.json.*')" = "" ]
}

small_disk() { # a filesystem of $1 bytes on ./disk
	[ "$(id -u)" = 0 ] || skip "needs root"
	mkdir -p disk
	mount -t tmpfs -o "size=$1" ckpt-test disk || skip "cannot mount a tmpfs"
}

@test "copy brings the newest complete checkpoint, once, and latest chooses over both" {
	save 10
	save 20
	save 30
	rm near/step-00000030/model
	run -0 ckpt-rotate copy near far
	[[ $output == "step-00000020 copied and verified: 2 files, "* ]]
	same 20
	nothing_left
	[ "$(ls -A far | tr '\n' ' ')" = "latest step-00000020 " ]
	[ "$(readlink far/latest)" = step-00000020 ]
	before=$(stat -c '%i %z' far/step-00000020/model)
	run -0 ckpt-rotate copy near/ far/
	[ "$output" = "step-00000020 is there already" ]
	[ "$(stat -c '%i %z' far/step-00000020/model)" = "$before" ]
	# The manifest is the one that was committed: attempt, time, host.
	cmp {near,far}/step-00000020/.ckpt-manifest.json
	[ "$(ckpt-rotate latest near far 2>/dev/null)" = near/step-00000020 ]
	[ "$(ckpt-rotate latest far near 2>/dev/null)" = far/step-00000020 ]
	rm -r near/*
	[ "$(ckpt-rotate latest near far)" = far/step-00000020 ]
	run -0 ckpt-rotate copy -q far third
	[ "$output" = "" ]
}

@test "copy of steps, of the last N, of all" {
	for step in 10 20 30 40; do save $step; done
	ckpt-rotate copy near far 20 10
	[ "$(ls far | tr '\n' ' ')" = "latest step-00000010 step-00000020 " ]
	ckpt-rotate copy near far --last 2
	[ "$(ls far | wc -l)" = 5 ]
	rm -r far
	run -0 ckpt-rotate copy near far --all
	[ "${lines[0]%% *}" = step-00000040 ]
	for step in 10 20 30 40; do same $step; done
	run -1 --separate-stderr ckpt-rotate copy near far 50
	for words in "near far 10 --all" "near far --all --last 2" "near far x" "near" \
		"near far --bwlimit 0" "near far --last 0" "near near" "near near/."; do
		# shellcheck disable=SC2086
		run -2 --separate-stderr ckpt-rotate copy $words
		[ "${#stderr_lines[@]}" = 1 ]
	done
	mkdir empty
	run -1 --separate-stderr ckpt-rotate copy empty far
	run -1 --separate-stderr ckpt-rotate copy missing far
	run -75 --separate-stderr ckpt-rotate copy near missing/far
	[ ! -e missing ]
}

@test "copy of a sharded one, of odd names, rights and hard links, of a sparse file" {
	for task in 0 1 2; do
		d=$(ckpt-rotate begin near 20 --sharded --task $task --tasks 3 --attempt 4)
		echo "shard $task" >"$d/new"$'\n'"line"
		echo x >"$d/"$'not\xffutf8'
		ln "$d/"$'not\xffutf8' "$d/-linked"
		echo '#!/bin/sh' >"$d/run" && chmod 750 "$d/run"
		chmod 400 "$d/-linked"
		truncate -s 4G "$d/sparse"
		printf x | dd of="$d/sparse" bs=1 seek=1G conv=notrunc status=none
		ckpt-rotate commit near 20 --sharded --task $task --tasks 3 --attempt 4
	done
	ckpt-rotate copy near far
	diff <(cd near && find . -type f -printf '%P %s %m\n' | sort) \
		<(cd far && find . -type f -printf '%P %s %m\n' | sort)
	[ "$(du -sm far | cut -f1)" -lt 100 ]
	[ "$(ckpt-rotate list --json far | grep -o '"tasks": 3')" != "" ]
	nothing_left
}

@test "copy reads and writes where the kernel does not copy" {
	save 20
	truncate -s 9M near/holes
	for fault in ioctl:error=EOPNOTSUPP copy_file_range:error=EXDEV \
		copy_file_range:retval=0 lseek:error=EINVAL renameat2:error=EINVAL \
		flock:error=EOPNOTSUPP sync_file_range:error=ESPIPE; do
		rm -rf far
		strace -f -o trace -e trace=ioctl,copy_file_range,lseek,renameat2,flock,sync_file_range \
			-e inject="$fault" -e inject=ioctl:error=EOPNOTSUPP ckpt-rotate copy -q near far
		grep -q INJECTED trace
		same 20
		nothing_left
	done
}

@test "a damaged original is not copied; a damaged copy is replaced; another content stays" {
	save 10
	save 20
	printf M | dd of=near/step-00000020/model conv=notrunc status=none
	run -65 --separate-stderr ckpt-rotate copy near far
	[[ $stderr == *"step 20 is damaged, and was not copied: the checksum of model differs"* ]]
	run -1 ckpt-rotate latest far
	ckpt-rotate copy near far 10
	rm far/step-00000010/model
	ckpt-rotate copy near far 10
	same 10
	# The same step of another attempt.
	rm -r near/step-00000010
	save 10 2
	before=$(stat -c %i far/step-00000010/model)
	run -1 --separate-stderr ckpt-rotate copy near far 10
	[[ $stderr == *"other content"* ]]
	[ "$(stat -c %i far/step-00000010/model)" = "$before" ]
	# Something in the way.
	rm -r far && mkdir -p far/step-00000010
	run -1 --separate-stderr ckpt-rotate copy near far 10
	[[ $stderr == *"in the way"* ]]
}

@test "what does not come out as it went in is copied again, then refused" {
	save 20
	# The first file goes wrong once: its content is replaced after it was written.
	strace -f -o trace -e trace=sync_file_range -e inject=sync_file_range:signal=STOP:when=1 \
		ckpt-rotate copy -q near far 3>&- &
	tracer=$!
	until_true 20 grep -qs 'stopped by SIGSTOP' trace
	stopped=$(pgrep -P $tracer)
	part=$(find far -name '.ckpt-part*')
	printf XXX | dd of="$part" conv=notrunc status=none
	until_true 20 eval '! kill -CONT "$stopped" 2>/dev/null'
	wait $tracer
	stopped=
	same 20
	nothing_left
}

@test "a framework's checkpoints are not copied: there is nothing to verify them by" {
	mkdir -p hf
	python3 "$BATS_TEST_DIRNAME/layouts/frameworks.py" hf hf 100
	save 10
	run -2 --separate-stderr ckpt-rotate copy hf far
	[[ $stderr == *"layout hf"* ]]
	[ ! -e far ]
	run -2 --separate-stderr ckpt-rotate copy near hf
	run -2 --separate-stderr ckpt-rotate drain near hf
	[ -d near/step-00000010 ]
}

@test "a full disk: 75, and with room again the rest is copied" {
	save 10
	d=$(ckpt-rotate begin near 20)
	for n in 1 2 3 4; do head -c 100K /dev/urandom >"$d/part$n"; done
	ckpt-rotate commit near 20
	small_disk 512k
	ln -s disk/far far
	mkdir disk/far
	ckpt-rotate copy -q near far 10
	head -c 250K /dev/zero >disk/filler
	run -75 --separate-stderr ckpt-rotate copy near far
	[[ $stderr == *"No space left"* ]]
	[ "$(ckpt-rotate latest far --step --verify)" = 10 ]
	[ "$(find far/.tmp* -name '.ckpt-part*')" = "" ]
	inode=$(stat -c %i far/.tmp*/part1)
	rm disk/filler
	run -0 --separate-stderr ckpt-rotate copy -v near far
	[[ $stderr == *"files had been brought by an earlier copy"* ]]
	same 20
	[ "$(stat -c %i far/step-00000020/part1)" = "$inode" ]
	mount -o remount,ro disk
	save 30
	run -77 --separate-stderr ckpt-rotate copy near far
	mount -o remount,rw disk
}

@test "another filesystem: copied and drained" {
	save 10
	save 20
	small_disk 4m
	ckpt-rotate copy -q near disk/far --all
	ln -s disk/far far
	same 10
	same 20
	ckpt-rotate drain -q near far
	[ "$(ls near | tr '\n' ' ')" = "latest step-00000020 " ]
	rm far
}

@test "bwlimit" {
	d=$(ckpt-rotate begin near 20)
	head -c 1M /dev/urandom >"$d/model"
	ckpt-rotate commit near 20
	# One MiB at 512 KiB a second takes two seconds; reflinks take nothing.
	start=$EPOCHREALTIME
	strace -f -o trace -e trace=ioctl -e inject=ioctl:error=EOPNOTSUPP \
		ckpt-rotate copy -q near far --bwlimit 512K
	passed=$((${EPOCHREALTIME/./} - ${start/./}))
	[ $passed -gt 1800000 ]
	same 20
}

@test "progress is for a terminal only" {
	d=$(ckpt-rotate begin near 20)
	head -c 1M /dev/urandom >"$d/model"
	ckpt-rotate commit near 20
	run -0 --separate-stderr ckpt-rotate copy near far --bwlimit 1M
	[ "$stderr" = "" ]
	rm -r far
	script -qec "ckpt-rotate copy near far --bwlimit 1M" /dev/null >typed
	grep -aq '%, .* of 1.0 MiB, .*/s' typed
	grep -aq 'step-00000020 copied and verified' typed
}

@test "a second copy of the same at the same time waits its turn; a prune lets it live" {
	save 10
	save 20
	ckpt-rotate copy -q near far 10
	strace -f -o trace -e trace=sync_file_range -e inject=sync_file_range:signal=STOP:when=2 \
		ckpt-rotate copy -q near far 3>&- &
	tracer=$!
	until_true 20 grep -qs 'stopped by SIGSTOP' trace
	stopped=$(pgrep -P $tracer)
	run -75 --separate-stderr ckpt-rotate copy near far
	[[ $stderr == *"another copy"*"is at work"* ]]
	run -0 ckpt-rotate prune --keep-last 1 far
	[[ $output == *"kept: being written"* ]]
	[ "$(ckpt-rotate latest far --step)" = 10 ]
	until_true 20 eval '! kill -CONT "$stopped" 2>/dev/null'
	wait $tracer
	stopped=
	same 20
	nothing_left
}

@test "a save of the same step and attempt that is under way is not disturbed" {
	save 20
	d=$(ckpt-rotate begin far 20 --attempt 1)
	echo half >"$d/model"
	run -1 --separate-stderr ckpt-rotate copy near far
	[[ $stderr == *"being written"* ]]
	[ "$(cat "$d/model")" = half ]
	# Nor is one on another machine; what a dead one left goes.
	sed -i 's/"host":"[^"]*"/"host":"othernode"/; s/"boot":"[^"]*"/"boot":"00000000-0"/' \
		"$d/.ckpt-writer.json"
	run -1 --separate-stderr ckpt-rotate copy near far
	[[ $stderr == *"on othernode"* ]]
	rm -r far
	setsid bash -c 'd=$(ckpt-rotate begin far 20 --attempt 1); echo half >"$d/model"; echo >"$d/old"'
	ckpt-rotate copy -q near far
	same 20
	nothing_left
}

@test "the original goes in the middle of a copy: no, and nothing is published" {
	save 20
	strace -f -o trace -e trace=sync_file_range -e inject=sync_file_range:signal=STOP:when=1 \
		ckpt-rotate copy -q near far 2>error 3>&- &
	tracer=$!
	until_true 20 grep -qs 'stopped by SIGSTOP' trace
	stopped=$(pgrep -P $tracer)
	rm -r near/step-00000020/sub
	until_true 20 eval '! kill -CONT "$stopped" 2>/dev/null'
	code=0
	wait $tracer || code=$?
	stopped=
	[ $code = 1 ]
	grep -q 'sub/state is missing' error
	run -1 ckpt-rotate latest far
}

@test "drain removes what has a verified copy, and nothing else" {
	for step in 10 20 30 40 50; do save $step; done
	ckpt-rotate copy -q near far --all
	printf M | dd of=far/step-00000020/model conv=notrunc status=none
	rm -r far/step-00000030
	ckpt-rotate pin near 40
	run -0 ckpt-rotate drain --dry-run near far
	[ "$(ls near | wc -l)" = 6 ]
	run -0 ckpt-rotate drain near far
	[[ ${lines[1]} == *"removed: its copy is verified" ]]
	[[ ${lines[2]} == *"kept: damaged in far: the checksum of model differs" ]]
	[[ ${lines[3]} == *"kept: not in far"* || ${lines[3]} == *"kept: there is no far/step-00000030" ]]
	[[ ${lines[4]} == *"kept: pinned" ]]
	[[ ${lines[5]} == *"kept: the newest complete one" ]]
	[ "$(ls near | tr '\n' ' ')" = "latest step-00000020 step-00000030 step-00000040 step-00000050 " ]
	ckpt-rotate drain -q --all near far
	[ "$(ls near | tr '\n' ' ')" = "latest step-00000020 step-00000030 step-00000040 " ]
	[ "$(readlink near/latest)" = step-00000040 ]
	[ "$(ckpt-rotate latest near far)" = far/step-00000050 ]
	# All of it: no link is left that points nowhere.
	ckpt-rotate unpin near 40
	rm -r near/step-000000[23]0
	ckpt-rotate drain -q --all near far
	[ "$(ls -A near)" = "" ]
	# One that cannot be asked: nothing goes.
	save 60
	run -75 --separate-stderr ckpt-rotate drain --all near missing/far
	[ -d near/step-00000060 ]
}

@test "drain of a directory into itself, by whatever way, loses nothing" {
	save 10
	save 20
	ln -s near link
	for far in near ./near link; do
		run -2 --separate-stderr ckpt-rotate drain --all near $far
		[[ $stderr == *"same directory"* ]]
	done
	if [ "$(id -u)" = 0 ] && mkdir disk && mount --bind near disk; then
		run -2 --separate-stderr ckpt-rotate drain --all near disk
		umount disk
	fi
	# A view of it that has numbers and devices of its own.
	if command -v bindfs >/dev/null && [ "$(id -u)" = 0 ] && bindfs near disk 2>/dev/null; then
		run --separate-stderr ckpt-rotate drain --all near disk
		umount disk
	fi
	[ "$(ls near | tr '\n' ' ')" = "latest step-00000010 step-00000020 " ]
	ckpt-rotate verify --all near
}

@test "a copy that vanishes when the original is renamed was the original: it is given back" {
	save 10
	save 20
	cp -a near far
	# What a view through a cache does: it is there when it is read, and goes with the original.
	strace -f -o trace -e trace=rename -e inject=rename:signal=STOP:when=1 \
		ckpt-rotate drain -q near far 2>error 3>&- &
	tracer=$!
	until_true 20 grep -qs 'stopped by SIGSTOP' trace
	stopped=$(pgrep -P $tracer)
	mv far/step-00000010 away
	until_true 20 eval '! kill -CONT "$stopped" 2>/dev/null'
	code=0
	wait $tracer || code=$?
	stopped=
	[ $code = 2 ]
	grep -q 'given back' error
	ckpt-rotate verify near 10
}

# The calls that can change a filesystem, and when descriptors and locks go: killed at any other call,
# what is left is what is left by a kill at the next of these. (The loader calls openat, too.)
changing="openat mkdir mkdirat write pwrite64 fchmod ioctl copy_file_range ftruncate sync_file_range
	fsync close rename renameat renameat2 linkat symlinkat unlinkat rmdir flock clone3"

@test "examples/two-tiers.sh: a job goes on on another node" {
	cat >train.sh <<-'END'
		start=0
		if [ "$RESUME" ]; then start=$(cat "$RESUME/model"); fi
		echo "from $start" >>log
		for ((s = start + 1; s <= start + 3; s++)); do
			d=$(ckpt-rotate begin "$NEAR" $s) && echo $s >"$d/model" && ckpt-rotate commit "$NEAR" $s || exit
			sleep 0.3
		done
		exit 42
	END
	for node in 1 2 3; do
		NEAR=$PWD/node$node/ck FAR=$PWD/far EVERY=0.1 run -42 \
			"$BATS_TEST_DIRNAME/../examples/two-tiers.sh" bash train.sh
	done
	[ "$(tr '\n' ' ' <log)" = "from 0 from 3 from 6 " ]
	[ "$(ckpt-rotate latest far --step --verify)" = 9 ]
	[ "$(ls node3/ck | tr '\n' ' ')" = "latest step-00000009 " ]
}

# sweep LEAST COMMAND...: kill COMMAND at each of these calls, each time from ./template; then "check"
# and "rerun" must hold.
sweep() {
	local call n points=0 least=$1
	shift
	for call in $changing; do
		for ((n = 1; n < 300; n++)); do
			rm -rf near far
			cp -a template/* .
			run strace -f -o trace -e trace="$call" -e inject="$call:signal=KILL:when=$n" "$@"
			if [ "$status" != 137 ]; then break; fi
			points=$((points + 1))
			check || { echo "# wrong after $call $n" >&3; return 1; }
			rerun || { echo "# rerun failed after $call $n" >&3; return 1; }
		done
	done
	echo "# killed at $points calls" >&3
	[ $points -gt "$least" ]
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
	sweep 90 ckpt-rotate copy -q near far
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
	sweep 90 ckpt-rotate copy -q near far
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
	sweep 30 ckpt-rotate drain -q near far
}
