#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# ckpt-rotate copy: verified copies in another directory, and originals that go.
# takes: 10
# mounts: private
# shellcheck disable=SC2012,SC2016,SC2030,SC2031,SC2034,SC2086,SC2154
bats_require_minimum_version 1.5.0
load ../support/ckpt

@test "two-tiers.sh: a job that was restarted on a new node saves there, and what it saved is copied" {
	cat >train.sh <<-'END'
		echo "resume=$RESUME"
		echo "$1" >"$(ckpt-rotate begin "$NEAR" "$1")/x" && ckpt-rotate commit "$NEAR" "$1"
	END
	unset PREEMPT_STORE
	export SLURM_JOB_ID=1 SLURM_SUBMIT_DIR=$PWD EVERY=1
	local example=$REPO/examples/two-tiers.sh
	NEAR=$PWD/first/ck run -0 timeout 60 "$example" bash train.sh 10
	NEAR=$PWD/second/ck run -0 timeout 60 "$example" bash train.sh 20
	[[ $output == *"resume=$PWD/ck/step-00000010"* ]]
	[ "$(ckpt-rotate latest --step ck)" = 20 ]
}

@test "a checkpoint that is marked as bad on one tier is not offered as its copy on the other" {
	in=near saves 10 20
	ckpt-rotate copy near far --all
	ckpt-rotate mark near 20 bad
	offers() { [ "$(ckpt-rotate latest "${@:2}" 2>/dev/null)" = "$1" ]; }
	offers near/step-00000010 near far
	offers far/step-00000010 far near
	offers far/step-00000010 far near --layout native
	# Also if its files are damaged by now.
	mv near/step-00000020/model model
	offers near/step-00000010 near far
	mv model near/step-00000020/model
	# Saved again it is another one.
	ckpt-rotate mark near 20 good
	offers far/step-00000020 far near
}

@test "copy brings the newest complete checkpoint, once, and latest chooses over both" {
	in=near saves 10 20 30
	rm near/step-00000030/model
	run -0 ckpt-rotate copy near far
	[[ $output == "step-00000020 copied and verified: 2 files, "* ]]
	same 20
	no_debris
	[ "$(names -A far)" = "latest step-00000020" ]
	[ "$(readlink far/latest)" = step-00000020 ]
	before=$(stat -c '%i %z' far/step-00000020/model)
	run -0 ckpt-rotate copy near/ far/
	[ "$output" = "step-00000020 is there already" ]
	[ "$(stat -c '%i %z' far/step-00000020/model)" = "$before" ]
	[ "$(ckpt-rotate latest near far 2>/dev/null)" = near/step-00000020 ]
	[ "$(ckpt-rotate latest far near 2>/dev/null)" = far/step-00000020 ]
	rm -r near/*
	[ "$(ckpt-rotate latest near far)" = far/step-00000020 ]
	run -0 ckpt-rotate copy -q far third
	[ "$output" = "" ]
}

@test "copy of steps, of the last N, of all; a save that is under way at the other end is not disturbed" {
	in=near saves 10 20 30 40
	ckpt-rotate copy near far 20 10
	[ "$(names far)" = "latest step-00000010 step-00000020" ]
	ckpt-rotate copy near far --last 2
	[ "$(ls far | wc -l)" = 5 ]
	rm -r far
	run -0 ckpt-rotate copy near far --all
	[ "${lines[0]%% *}" = step-00000040 ]
	for step in 10 20 30 40; do same $step; done
	mkdir empty
	for words in "1 near far 50" "1 empty far" "1 missing far" "75 near missing/far" "2 near far 10 --all" \
		"2 near far --all --last 2" "2 near far x" "2 near" "2 near far --last 0" "2 near near" "2 near near/."; do
		run "-${words%% *}" --separate-stderr ckpt-rotate copy ${words#* }
	done
	[ ! -e missing ]
	rm -r far
	d=$(ckpt-rotate begin far 20)
	echo other >"$d/model"
	ckpt-rotate copy -q near far 20
	same 20
	[ "$(cat "$d/model")" = other ]
	fails 1 "other content" ckpt-rotate commit far 20
	rm -r "$d"
	no_debris
}

@test "copy of a sharded one, of odd names, rights and hard links, of a sparse file" {
	for task in 0 1 2; do
		d=$(in=near shard begin 20 $task 3)
		echo "shard $task" >"$d/new"$'\n'"line"
		echo x >"$d/"$'not\xffutf8'
		ln "$d/"$'not\xffutf8' "$d/-linked"
		echo '#!/bin/sh' >"$d/run"
		chmod 750 "$d/run"
		chmod 400 "$d/-linked"
		truncate -s 64M "$d/sparse"
		printf x | dd of="$d/sparse" bs=1 seek=1M conv=notrunc status=none
		in=near shard commit 20 $task 3
	done
	ckpt-rotate copy near far
	diff <(cd near && find . -type f -printf '%P %s %m\n' | sort) <(cd far && find . -type f -printf '%P %s %m\n' | sort)
	# The manifest is the one that was committed: attempt, time, host.
	cmp {near,far}/step-00000020/.ckpt-manifest.json
	[ "$(du -sm far | cut -f1)" -lt 100 ]
	no_debris
}

@test "copy to a filesystem that knows fewer calls" {
	in=near save 20
	truncate -s 9M near/holes
	for fault in renameat2:error=EINVAL flock:error=EOPNOTSUPP sync_file_range:error=ESPIPE; do
		rm -rf far
		strace -f -o trace -e trace=renameat2,flock,sync_file_range -e inject="$fault" ckpt-rotate copy -q near far
		grep -q INJECTED trace
		same 20
		no_debris
	done
}

@test "a damaged original is not copied; a damaged copy is replaced; another content stays" {
	in=near saves 10 20
	overwrite near/step-00000020/model
	fails 65 "near/step-00000020 is damaged, and was not copied: the checksum of model differs" ckpt-rotate copy near far
	run -1 ckpt-rotate latest far
	ckpt-rotate copy near far 10
	rm far/step-00000010/model
	ckpt-rotate copy near far 10
	same 10
	# The same step of another attempt.
	rm -r near/step-00000010
	echo other >"$(ckpt-rotate begin near 10 --attempt 2)/model"
	ckpt-rotate commit near 10 --attempt 2
	before=$(stat -c %i far/step-00000010/model)
	fails 1 "other content" ckpt-rotate copy near far 10
	[ "$(stat -c %i far/step-00000010/model)" = "$before" ]
	# Something in the way.
	rm -r far && mkdir -p far/step-00000010
	fails 1 "is not a checkpoint of ours" ckpt-rotate copy near far 10
}

@test "checkpoints of frameworks are not copied, and what to do is said; nor is there a drain" {
	in=near make hf 100
	fails 2 "with rsync, and check the copy with \"ckpt-rotate verify\"" ckpt-rotate copy near far
	in=ours save 10
	fails 2 "with rsync" ckpt-rotate copy ours near
	[ ! -e far ]
	# Ours beside others are.
	in=near save 20
	ckpt-rotate copy -q near far
	same 20
	fails 2 'there is no command "drain"' ckpt-rotate drain near far
	[ "${#stderr_lines[@]}" = 1 ]
}

@test "copy --move removes what has a verified copy, and nothing else" {
	in=near saves 10 20 30 40 50
	ckpt-rotate copy -q near far 10 20 40
	overwrite far/step-00000020/model
	ckpt-rotate pin near 40
	run -0 ckpt-rotate copy --move near far
	[ "${lines[0]%%:*}" = "step-00000050 copied and verified" ]
	[ "$(printf '%s\n' "${lines[@]:1}")" = "step-00000050 kept: the newest complete one
step-00000040 kept: pinned
step-00000030 kept: its copy in far is not there
step-00000020 kept: the copy reads back with different content
step-00000010 removed: its copy is verified" ]
	[ "$(names near)" = "latest step-00000020 step-00000030 step-00000040 step-00000050" ]
	# A copy of one that is marked there is no copy; named ones and no others.
	ckpt-rotate mark far 50 bad
	ckpt-rotate unpin near 40
	run -0 ckpt-rotate copy --move near far 30 20
	[ "$(names near)" = "latest step-00000020 step-00000040 step-00000050" ]
	ckpt-rotate copy -q --move --all near far
	[ "$(names near)" = "latest step-00000020 step-00000050" ]
	ckpt-rotate mark far 50 good
	run -0 ckpt-rotate copy -q --move --all near far
	[ "$output" = "" ]
	[ "$(names near) $(readlink near/latest)" = "latest step-00000020 step-00000020" ]
	# All of it: no link is left that points nowhere.
	rm -r far/step-00000020
	ckpt-rotate copy -q --move --all near far
	[ "$(ls -A near)" = "" ]
	[ "$(in=far steps)" = "10 20 30 40 50 " ]
	# One that cannot be asked: nothing goes.
	in=near save 60
	run -75 --separate-stderr ckpt-rotate copy --move --all near missing/far
	[ -d near/step-00000060 ]
}

@test "copy --move makes the copy durable before the original goes" {
	in=near saves 10 20
	# Not synced by the program that copied it.
	cp -a near far
	run -75 --separate-stderr strace -f -o trace -P "$PWD/far/step-00000010/model" -e trace=fsync \
		-e inject=fsync:error=EIO ckpt-rotate copy --move near far
	[ -d near/step-00000010 ]
	# Nor does it go if that is not durable.
	run -75 --separate-stderr strace -f -o trace -P "$PWD/near" -e trace=fsync -e inject=fsync:error=EIO:when=1 \
		ckpt-rotate copy --move near far
	[ -d near/step-00000010 ]
	run -0 strace -f -y -o trace -e trace=fsync,renameat,renameat2,unlinkat ckpt-rotate copy --move near far
	renamed=$(grep -n 'rename.*step-00000010' trace | head -n 1 | cut -d: -f1)
	for synced in far/step-00000010/model far/step-00000010/.ckpt-manifest.json far/step-00000010 far; do
		[ "$(grep -n "fsync([0-9]*<$PWD/$synced>" trace | head -n 1 | cut -d: -f1)" -lt "$renamed" ]
	done
}

@test "copy --move of a directory into itself, by whatever way, loses nothing" {
	in=near saves 10 20
	ln -s near link
	for far in near ./near link; do fails 2 "same directory" ckpt-rotate copy --move --all near $far; done
	if [ "$(id -u)" = 0 ] && mkdir disk && mount --bind near disk; then
		fails 2 "same directory" ckpt-rotate copy --move --all near disk
		umount disk
	fi
	# A view of it that has numbers and devices of its own.
	if command -v bindfs >/dev/null && [ "$(id -u)" = 0 ] && bindfs near disk 2>/dev/null; then
		run --separate-stderr ckpt-rotate copy --move --all near disk
		umount disk
	fi
	[ "$(names near)" = "latest step-00000010 step-00000020" ]
	ckpt-rotate verify --all near
}
