#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# ckpt-rotate copy and drain: from a disk of one machine to another filesystem, whatever happens.
# shellcheck disable=SC2154,SC2030,SC2031,SC2012,SC2016
bats_require_minimum_version 1.5.0
load ../support/programs
load ../support/stop_at

setup() {
	PATH=${BIN:-$BATS_TEST_DIRNAME/../../bin}:$PATH
	cd "$BATS_TEST_TMPDIR" || return
	unset PREEMPT_ATTEMPT PREEMPT_LIFE PREEMPT_TASK PREEMPT_TASKS
	# Leak checks do not work under strace.
	export ASAN_OPTIONS=detect_leaks=0
}

teardown() {
	local pid
	for pid in $(jobs -p) ${stopped-} ${one-} ${two-}; do kill -KILL "$pid" 2>/dev/null || :; done
	if mountpoint -q "$BATS_TEST_TMPDIR/disk"; then umount -l "$BATS_TEST_TMPDIR/disk"; fi
}

load ../support/layouts/near_far.bash

small_disk() { # a filesystem of $1 bytes on ./disk
	[ "$(id -u)" = 0 ] || skip "needs root"
	mkdir -p disk
	mount -t tmpfs -o "size=$1" ckpt-test disk || skip "cannot mount a tmpfs"
}

@test "two-tiers.sh: a job that was restarted on a new node saves there, and what it saved is copied" {
	cat >train.sh <<-'END'
		echo "resume=$RESUME"
		echo "$1" >"$(ckpt-rotate begin "$NEAR" "$1")/x" && ckpt-rotate commit "$NEAR" "$1"
	END
	export SLURM_JOB_ID=1 SLURM_SUBMIT_DIR=$PWD EVERY=1
	local example=$BATS_TEST_DIRNAME/../../examples/two-tiers.sh
	NEAR=$PWD/first/ck run -0 timeout 60 "$example" bash train.sh 10
	NEAR=$PWD/second/ck run -0 timeout 60 "$example" bash train.sh 20
	[[ $output == *"resume=$PWD/ck/step-00000010"* ]]
	run -0 ckpt-rotate latest --step ck
	[ "$output" = 20 ]
}

@test "a checkpoint that is marked as bad on one tier is not offered as its copy on the other" {
	for step in 10 20; do
		echo "$step" >"$(ckpt-rotate begin near $step)/x"
		ckpt-rotate commit near $step
	done
	ckpt-rotate copy near far --all
	ckpt-rotate mark near 20 bad
	run -0 --separate-stderr ckpt-rotate latest near far
	[ "$output" = near/step-00000010 ]
	run -0 --separate-stderr ckpt-rotate latest far near
	[ "$output" = far/step-00000010 ]
	run -0 --separate-stderr ckpt-rotate latest far near --layout native
	[ "$output" = far/step-00000010 ]
	# Also if its files are damaged by now.
	rm near/step-00000020/x
	run -0 --separate-stderr ckpt-rotate latest near far
	[ "$output" = near/step-00000010 ]
	echo 20 >near/step-00000020/x
	# Saved again it is another one.
	ckpt-rotate mark near 20 good
	run -0 --separate-stderr ckpt-rotate latest far near
	[ "$output" = far/step-00000020 ]
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
		d=$(ckpt-rotate begin near 20 --sharded --task $task --tasks 3 --attempt 4 --life one)
		echo "shard $task" >"$d/new"$'\n'"line"
		echo x >"$d/"$'not\xffutf8'
		ln "$d/"$'not\xffutf8' "$d/-linked"
		echo '#!/bin/sh' >"$d/run" && chmod 750 "$d/run"
		chmod 400 "$d/-linked"
		truncate -s 64M "$d/sparse"
		printf x | dd of="$d/sparse" bs=1 seek=1M conv=notrunc status=none
		ckpt-rotate commit near 20 --sharded --task $task --tasks 3 --attempt 4 --life one
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
	for fault in copy_file_range:error=EXDEV copy_file_range:retval=0 lseek:error=EINVAL \
		renameat2:error=EINVAL flock:error=EOPNOTSUPP sync_file_range:error=ESPIPE; do
		rm -rf far
		strace -f -o trace -e trace=copy_file_range,lseek,renameat2,flock,sync_file_range \
			-e inject="$fault" ckpt-rotate copy -q near far
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
	[[ $stderr == *"is not a checkpoint of ours"* ]]
}

@test "what does not come out as it went in is copied again, then refused" {
	save 20
	# The first file goes wrong once: its content is replaced after it was written.
	strace -f -o trace -e trace=sync_file_range -e inject=sync_file_range:signal=STOP:when=1 \
		ckpt-rotate copy -q near far 3>&- &
	tracer=$!
	until_stopped
	part=$(find far -name '.ckpt-part*')
	printf XXX | dd of="$part" conv=notrunc status=none
	go_on
	[ "$code" = 0 ]
	same 20
	nothing_left
}

# frameworks LAYOUT DIR STEP...: checkpoints, written an hour ago.
frameworks() {
	mkdir -p "$2"
	python3 "$BATS_TEST_DIRNAME/../support/layouts/frameworks.py" "$@" &&
		find "$2" -exec touch -h -d '1 hour ago' {} +
}

@test "checkpoints of frameworks are copied with their times, and the tracker that names one" {
	umask 022
	mkdir far
	for layout in hf lightning deepspeed megatron tensorflow dcp orbax; do
		frameworks $layout $layout 100 200 300
		run -0 --separate-stderr ckpt-rotate copy $layout far/$layout
		[[ $output == *300*"copied and verified"* ]]
		run -0 ckpt-rotate copy --all $layout far/$layout
		[[ $(head -n 1 <<<"$output") == *300*"is there already" ]]
		diff -r $layout far/$layout
		[ "$(ckpt-rotate latest --step far/$layout)" = 300 ]
		[ "$(find far/$layout -type f -perm /022)" = "" ]
		ckpt-rotate list $layout >here
		ckpt-rotate list far/$layout >there
		diff here there
		[ "$(find far/$layout -name '.ckpt-*' -o -newermt '50 minutes ago' -type f ! -name latest \
			! -name checkpoint ! -name 'latest_*')" = "" ]
	done
	# An older one does not bring the tracker, a path in it is not copied, and a pattern will do.
	run -0 ckpt-rotate copy deepspeed far/older 100
	[ ! -e far/older/latest ]
	sed -i 's|"ckpt-300"|"/elsewhere/ckpt-300"|' tensorflow/checkpoint
	run -0 --separate-stderr ckpt-rotate copy tensorflow far/paths
	[[ $stderr == *"tensorflow/checkpoint names a path"* ]]
	mkdir models
	echo 1 >models/model-1.pt
	run -0 ckpt-rotate copy --pattern 'model-{step}.pt' models far/models
	[ "$(cat far/models/model-1.pt)" = 1 ]
}

@test "a save during the copy of a framework's: the tracker of DEST names what was copied" {
	frameworks megatron near 200 300
	mkdir far
	ckpt-rotate copy -q near far 200
	echo 200 >far/latest_checkpointed_iteration.txt
	strace -f -o trace -e trace=sync_file_range -e inject=sync_file_range:signal=STOP:when=1 \
		ckpt-rotate copy -q near far 3>&- &
	tracer=$!
	until_stopped
	frameworks megatron more 350 400
	mv more/* near/
	go_on
	[ "$code" = 0 ]
	[ "$(cat far/latest_checkpointed_iteration.txt)" = 300 ]
	[ "$(ckpt-rotate latest --step far)" = 300 ]
	# The tracker does not name 350 at its copy.
	run -0 --separate-stderr ckpt-rotate copy near far 350
	[[ $stderr == *"far/latest_checkpointed_iteration.txt still names iter_0000300: write it by hand to resume from iter_0000350" ]]
	run -0 --separate-stderr ckpt-rotate copy near far
	[ "$stderr" = "" ]
	[ "$(ls -A far | tr '\n' ' ')" = "iter_0000200 iter_0000300 iter_0000350 iter_0000400 latest_checkpointed_iteration.txt " ]
	[ "$(ckpt-rotate latest --step far)" = 400 ]
}

@test "a prune does not remove the files of a copy that is appearing file by file" {
	frameworks tensorflow near 300
	frameworks tensorflow far 400
	# The copy makes three files; the data have their names already, the index has not.
	strace -f -o trace -e trace=renameat2 -e inject=renameat2:signal=KILL:when=6 \
		ckpt-rotate copy -q near far || :
	[ -e far/ckpt-300.data-00001-of-00002 ]
	[ ! -e far/ckpt-300.index ]
	run -0 ckpt-rotate prune --keep-every-steps 100 far
	[[ $output == *"kept ckpt-300: ckpt-300.index is missing; changed "*" ago"* ]]
	ckpt-rotate copy -q near far
	cp -a far whole
	[ "$(find far -name 'ckpt-300.*' ! -newermt '50 minutes ago' | wc -l)" = 3 ]
	# A copy that was killed before it set the times is finished by the next.
	rm far/ckpt-300.*
	strace -f -o trace -e trace=utimensat -e inject=utimensat:signal=KILL:when=4 \
		ckpt-rotate copy -q near far || :
	[ -e far/ckpt-300.index ]
	ckpt-rotate copy -q near far
	diff -r whole far
	[ "$(find far -name 'ckpt-300.*' ! -newermt '50 minutes ago' | wc -l)" = 3 ]
}

# two_copies LAYOUT: of one name, with other content, in one and two.
two_copies() {
	local file
	rm -rf one two far trace*
	frameworks "$1" one 100
	cp -a one two
	for file in two/checkpoint-100/*.pt two/ckpt-100.data-*; do
		[ ! -e "$file" ] || printf y | dd of="$file" bs=1 seek=50 conv=notrunc status=none
	done
	find two -exec touch -h -d '1 hour ago' {} +
}

@test "where locks have no effect, one of two copies of a framework's gives up" {
	unlocked=(strace -f -e "trace=utimensat,renameat,renameat2,flock" -e inject=flock:error=ENOLCK)
	for layout in hf tensorflow; do
		two_copies $layout
		# One has verified its copy; the other is killed in the middle of its own.
		"${unlocked[@]}" -o trace -e inject=utimensat:signal=STOP:when=1 ckpt-rotate copy -q one far 3>&- &
		tracer=$!
		until_stopped
		"${unlocked[@]}" -o trace2 -e inject=renameat2:signal=KILL:when=2 ckpt-rotate copy -q two far || :
		go_on
		[ "$code" = 75 ]
		[ "$(ls far)" = "" ]
		ckpt-rotate copy -q two far
		diff -r two far
	done
}

@test "where locks have no effect, files that another copy has just published stay" {
	unlocked=(strace -f -e "trace=utimensat,renameat,flock" -e inject=flock:error=ENOLCK)
	two_copies tensorflow
	# One is about to publish, and the other has just taken its directory away.
	"${unlocked[@]}" -o trace -e inject=utimensat:signal=STOP:when=1 ckpt-rotate copy -q one far 3>&- &
	tracer=$!
	until_stopped
	first=$tracer one=$stopped
	"${unlocked[@]}" -o trace2 -e inject=renameat:signal=STOP:when=1 ckpt-rotate copy -q two far 2>error 3>&- &
	tracer=$!
	until_stopped trace2
	second=$tracer two=$stopped
	tracer=$first stopped=$one
	go_on
	[ "$code" = 75 ]
	tracer=$second stopped=$two
	go_on
	one='' two=''
	[ "$code" = 1 ]
	grep -q 'is there already with other content' error
	diff -r -x checkpoint -x '.ckpt-copying-*' one far
}

@test "a tracker that cannot be renamed into place leaves no other file, and is copied by the next copy" {
	frameworks deepspeed near 100
	run -75 strace -f -o trace -e trace=rename -e inject=rename:error=EIO:when=2 ckpt-rotate copy -q near far
	[[ $output == *"rename far/.ckpt-copying-tracker.100 to far/latest"* ]]
	[ "$(ls -A far)" = global_step100 ]
	ckpt-rotate copy -q near far
	cmp near/latest far/latest
}

@test "a framework's copy with a long name that was killed is made again" {
	frameworks lightning near 100
	mv near/* "near/epoch=1-step=100-loss=$(printf '%0200d' 1).ckpt"
	strace -f -o trace -e trace=renameat2 -e inject=renameat2:signal=KILL ckpt-rotate copy -q near far || :
	[ "$(ls -A far)" = ".ckpt-copying-$(ls near)" ]
	ckpt-rotate copy -q near far
	diff -r near far
}

@test "a framework's copy: other content stays, and so does a directory of another layout" {
	frameworks hf hf 100
	frameworks tensorflow tf 100
	save 10
	ckpt-rotate copy -q hf far
	ckpt-rotate copy -q tf tf.far
	echo more >>far/checkpoint-100/config.json
	echo more >>tf.far/ckpt-100.index
	run -1 --separate-stderr ckpt-rotate copy hf far
	[[ $stderr == *"far/checkpoint-100 is there already with other content; it stays as it is"* ]]
	run -1 --separate-stderr ckpt-rotate copy tf tf.far
	grep -aq more tf.far/ckpt-100.index
	rm hf/checkpoint-100/model.safetensors tf/ckpt-100.index
	for from in hf tf; do
		run -1 --separate-stderr ckpt-rotate copy $from far.$from
		[ ! -e far.$from ]
	done
	frameworks hf hf 100
	run -2 --separate-stderr ckpt-rotate copy hf tf.far
	[[ $stderr == *"tf.far holds checkpoints of the layout tensorflow"* ]]
	run -2 --separate-stderr ckpt-rotate copy hf near
	run -2 --separate-stderr ckpt-rotate copy near hf
	run -2 --separate-stderr ckpt-rotate drain near hf
	[ -d near/step-00000010 ]
	# Of two frameworks one must be named; beside others our own are ours.
	frameworks hf native 100
	frameworks megatron native 100
	run -2 --separate-stderr ckpt-rotate copy native both
	[[ $stderr == *"native holds checkpoints of two layouts"* ]]
	run -0 ckpt-rotate copy --layout hf native both
	[ "$(ls both)" = checkpoint-100 ]
	cp -a near/step-00000010 native
	run -0 ckpt-rotate copy native ours
	[ -d ours/step-00000010 ]
}

@test "a framework's original that changes in the middle of a copy is not published" {
	frameworks hf near 100
	strace -f -o trace -e trace=sync_file_range -e inject=sync_file_range:signal=STOP:when=1 \
		ckpt-rotate copy -q near far 2>error 3>&- &
	tracer=$!
	until_stopped
	echo '{"a": 1}' >near/checkpoint-100/config.json
	go_on
	[ "$code" = 75 ] || [ "$code" = 1 ]
	run -1 ckpt-rotate latest --layout hf far
	run -0 ckpt-rotate copy near far
	diff -r near far
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
	# One MiB at 512 KiB a second takes two seconds.
	start=$EPOCHREALTIME
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
	until_stopped
	run -75 --separate-stderr ckpt-rotate copy near far
	[[ $stderr == *"another copy"*"is at work"* ]]
	run -0 ckpt-rotate prune --keep-last 1 far
	[[ $output == *"kept: being written"* ]]
	[ "$(ckpt-rotate latest far --step)" = 10 ]
	go_on
	[ "$code" = 0 ]
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
	until_stopped
	rm -r near/step-00000020/sub
	go_on
	[ "$code" = 1 ]
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

@test "drain --all leaves the link to a checkpoint that is committed during it" {
	save 10
	ckpt-rotate copy -q near far
	strace -f -o trace -e trace=readlinkat -P latest -e inject=readlinkat:signal=STOP:when=1 \
		ckpt-rotate drain -q --all near far 3>&- &
	tracer=$!
	until_stopped
	grep -q 'readlinkat(.*step-00000010' trace
	save 20
	go_on
	[ "$code" = 0 ]
	[ "$(ls near | tr '\n' ' ')" = "latest step-00000020 " ]
	[ "$(readlink near/latest)" = step-00000020 ]
}

@test "drain makes the copy durable before the original goes" {
	for step in 10 20; do save $step; done
	# Not synced by the program that copied it.
	cp -a near far
	run -0 strace -f -y -o trace -e trace=fsync,renameat,renameat2,unlinkat ckpt-rotate drain near far
	for synced in far/step-00000010/model far/step-00000010/.ckpt-manifest.json far/step-00000010 far; do
		grep -n "fsync([0-9]*<$PWD/$synced>) = 0" trace >line
		[ "$(sed 's/:.*//' line | head -n 1)" -lt "$(grep -n 'rename.*step-00000010' trace | head -n 1 | sed 's/:.*//')" ]
	done
	rm -r near far
	for step in 10 20; do save $step; done
	cp -a near far
	run -75 --separate-stderr strace -f -o trace -P "$PWD/far/step-00000010/model" -e trace=fsync \
		-e inject=fsync:error=EIO ckpt-rotate drain near far
	[ -d near/step-00000010 ]
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

# copy_vanishes INJECTION: what a view through a cache does: the copy is there when it is read, and goes with
# the original.
copy_vanishes() {
	rm -rf near far away
	save 10
	save 20
	cp -a near far
	strace -f -o trace -e trace=renameat,renameat2 -e inject=renameat:signal=STOP:when=1 ${1+-e inject="$1"} \
		ckpt-rotate drain -q near far 2>error 3>&- &
	tracer=$!
	until_stopped
	mv far/step-00000010 away
	go_on
}

@test "a copy that vanishes when the original is renamed was the original: it is given back" {
	copy_vanishes
	[ "$code" = 2 ]
	grep -q 'given back' error
	ckpt-rotate verify near 10
}

@test "one that cannot be given back is not deleted, and its new name is told" {
	copy_vanishes renameat2:error=EIO
	[ "$code" = 75 ]
	local gone
	gone=$(cd near && echo .gone*)
	grep "cannot rename $gone back to step-00000010: Input/output error; do so yourself" error
	mv "near/$gone" near/step-00000010
	ckpt-rotate verify near 10
}
