#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The whole job on filesystems with two mounts: two tasks on each, store and checkpoints in the
# shared directory, preempted, resumed, bit-identical. Needs root and FUSE.
# takes: 60
# asan: no (the same programs run with sanitizers in run*.bats; here it is the filesystems)
# mounts: private

bats_require_minimum_version 1.5.0
load ../support/mounts

setup_file() { mounts_start gluster bindfs; }
teardown_file() { mounts_stop; }

setup() {
	BIN=${BIN:-$BATS_TEST_DIRNAME/../../bin} OUT=${OUT:-$BATS_TEST_DIRNAME/../../build/plain}
	PATH=$BIN:$OUT/examples:$PATH
	unset "${!PREEMPT_@}" "${!SLURM_@}"
	agents=()
	training=(--hidden 16 --batch 32 --steps 500 --save-every 60)
}
teardown() {
	local pid
	for pid in "${agents[@]}" ${bindfs:-}; do kill -KILL "$pid" 2>/dev/null || :; done
	[ -z "${mount:-}" ] || umount -l "$mount" 2>/dev/null || :
	mounts_dump_logs
}

# two KIND: a new directory, and in $a and $b its path through each mount.
two() {
	a=$(mktemp -d "$MOUNTS/$1/a/XXXXXX")
	b=$MOUNTS/$1/b/${a##*/}
}

# start_round N MS: four agents, each with the mount of its machine; so long is a step, at least.
start_round() {
	local task here
	boards=$BATS_TEST_TMPDIR/boards.$1
	mkdir "$boards"
	agents=()
	for task in 0 1 2 3; do
		here=$a
		[ $task -lt 2 ] || here=$b
		preempt-run -q --store "$here/store.db" --board "$boards" --run demo --task $task --tasks 4 \
			--report-timeout 1m -- train --dir "$here/job" "${training[@]}" --step-ms "$2" --done-model "$here/model.$task" \
			>"$BATS_TEST_TMPDIR/task.$1.$task" 2>&1 3>&- &
		agents+=($!)
	done
}
# How many boards have the file, not empty.
boards_with() { find "$boards" -name "$1" -size +0 | wc -l; }
all_step() { [ "$(boards_with step)" = 4 ]; }
all_hold_or_ended() { [ "$(boards_with hold)" = 4 ] || ! kill -0 "${agents[0]}" 2>/dev/null; }

# ended_with CODE: all four.
ended_with() {
	local pid code wrong=0
	for pid in "${agents[@]}"; do
		code=0
		wait "$pid" || code=$?
		[ $code = "$1" ] || { echo "an agent ended with $code, not $1"; wrong=1; }
	done
	agents=()
	[ $wrong = 0 ] || { tail -n 20 "$BATS_TEST_TMPDIR"/task.*; return 1; }
}

preempted_three_times() {
	local round step before=0 from
	two "$1"
	mkdir "$a/job" "$BATS_TEST_TMPDIR/reference"
	preempt-run -q --store "$BATS_TEST_TMPDIR/reference.db" --run reference -n 4 -- train \
		--dir "$BATS_TEST_TMPDIR/reference" "${training[@]}" --step-ms 0 --done-model "$BATS_TEST_TMPDIR/model"
	for round in 1 2 3; do
		start_round $round 100 # there is something left to train, however late the notice is
		until_true 60 all_step
		from=${EPOCHREALTIME/./}
		kill -TERM "${agents[round]}"
		until_true 60 all_hold_or_ended
		echo "round $round: all hold $(((${EPOCHREALTIME/./} - from) / 1000)) ms after the notice of task $round"
		ended_with 42
		step=$(ckpt-rotate latest "$a/job/ckpt" --step)
		[ "$step" = "$(ckpt-rotate latest "$b/job/ckpt" --step)" ]
		[ "$step" -gt "$before" ]
		before=$step
	done
	start_round 4 0
	ended_with 0
	cmp "$BATS_TEST_TMPDIR/model" "$b/model.0"
}

@test "two tasks on each of two GlusterFS mounts, preempted three times and resumed: the same model" {
	preempted_three_times gluster
}

@test "two tasks on each of two bindfs mounts, preempted three times and resumed: the same model" {
	preempted_three_times bindfs
}

@test "a checkpoint committed through one mount is the newest complete one through the other, at once" {
	local kind step here there begun
	for kind in gluster bindfs; do
		two $kind
		for ((step = 1; step <= 15; step++)); do
			here=$a/ckpt there=$b/ckpt
			((step % 3)) || here=$b/ckpt there=$a/ckpt
			begun=$(ckpt-rotate begin "$here" $step)
			head -c $((RANDOM * 4)) /dev/urandom >"$begun/model"
			echo $step >"$begun/number"
			# Half-written, it is not offered, and what is seen now is not remembered.
			[ "$(ckpt-rotate latest "$there" --step --or 0 2>/dev/null)" = $((step - 1)) ]
			ckpt-rotate commit -q "$here" $step
			[ "$(ckpt-rotate latest "$there" --step)" = $step ]
			[ "$(cat "$(ckpt-rotate latest "$there")/number")" = $step ]
			ckpt-rotate verify -q "$there" $step
			((step % 5)) || ckpt-rotate prune -q "$there" --keep-last 2
		done
		[ "$(ckpt-rotate list "$a/ckpt" | wc -l)" = 3 ]
		[ "$(ckpt-rotate list "$b/ckpt" | wc -l)" = 3 ]
	done
}

@test "two mounts share no memory of this machine: each has a page of its own" {
	two gluster
	preempt-store put --store "$a/store.db" key value
	preempt-store put --store "$b/store.db" other value
	local side page pages
	pages=/dev/shm/preempt-$(id -u)
	for side in "$a" "$b"; do
		page=$(stat -c '%d %i' "$side/store.db.lock")
		# shellcheck disable=SC2086 # two numbers
		[ -f "$pages/$(printf '%x-%x-page6' $page)" ]
	done
	[ "$(stat -c %d "$a/store.db.lock")" != "$(stat -c %d "$b/store.db.lock")" ]
}

# mount_again: a new bindfs of $store on $mount; its process is $bindfs.
mount_again() {
	bindfs -f "$store" "$mount" >>"$BATS_TEST_TMPDIR/bindfs.log" 2>&1 3>&- &
	bindfs=$!
	until_true 30 mountpoint -q "$mount"
}
ended() { ! kill -0 "$1" 2>/dev/null; }

@test "the store's filesystem is unmounted and mounted again under running agents: a notice is agreed on" {
	local mode task code
	store=$BATS_TEST_TMPDIR/store mount=$BATS_TEST_TMPDIR/mount
	mkdir -m 700 "$store" "$mount"
	cd "$BATS_TEST_TMPDIR"
	cat >trainer <<-'END'
		. "$CLIENT/preempt.sh"
		for ((s = 0; s < 100000; s++)); do
			preempt_step $s || preempt_saved $s || exit
			: >"$RUNS.$PREEMPT_TASK"
			sleep 0.05
		done
	END
	for mode in fcntl link; do
		mount_again
		agents=()
		for task in 0 1; do
			RUNS=$mode CLIENT=$BATS_TEST_DIRNAME/../../lib/client preempt-run --run again --period 1s --limit 60 --report-timeout 1m \
				--store "$mount/$mode.db?lock=$mode&assume=shared" --task $task --tasks 2 \
				-- bash trainer 2>"err.$mode.$task" 3>&- &
			agents+=($!)
		done
		for task in 0 1; do until_true 60 test -e "$mode.$task"; done
		umount -l "$mount"
		# They let go of it, or it would never be gone.
		until_true 60 ended $bindfs
		for task in 0 1; do until_true 60 grep -q 'no longer mounted' "err.$mode.$task"; done
		[ -z "$(ls "$mount")" ]
		mount_again
		kill -TERM "${agents[0]}"
		for task in 0 1; do
			code=0
			wait "${agents[task]}" || code=$?
			cat "err.$mode.$task"
			[ $code = 42 ]
		done
		agents=()
		umount "$mount"
		until_true 60 ended $bindfs
	done
}

dead() { ! stat "$1" >/dev/null 2>&1; }

# The last one: it leaves the mounts dead.
@test "the store's mounts are killed, then a notice: every task saves by itself before its deadline, and leaves with 43" {
	local task here code
	two gluster
	cd "$BATS_TEST_TMPDIR"
	cat >trainer <<-'END'
		. "$CLIENT/preempt.sh"
		for ((s = 0; s < 100000; s++)); do
			preempt_step $s || { echo "$EPOCHSECONDS" >"saved.$PREEMPT_TASK" && preempt_saved $s; } || exit
			: >"runs.$PREEMPT_TASK"
			sleep 0.05
		done
	END
	for task in 0 1; do
		here=$a
		[ $task = 0 ] || here=$b
		CLIENT=$BATS_TEST_DIRNAME/../../lib/client preempt-run --store "$here/store.db" --run lost --task $task \
			--tasks 2 --grace 15s -- bash trainer 2>"err.$task" 3>&- &
		agents+=($!)
	done
	for task in 0 1; do until_true 60 test -e runs.$task; done
	for here in a b; do
		pkill -KILL -f "^glusterfs --no-daemon --process-name fuse .*$MOUNTS/gluster/$here\$"
	done
	for here in a b; do until_true 30 dead "$MOUNTS/gluster/$here"; done
	kill -TERM "${agents[@]}"
	for task in 0 1; do
		code=0
		wait "${agents[task]}" || code=$?
		cat "err.$task"
		[ $code = 43 ]
		[ -s saved.$task ] # at its deadline a command is killed
		grep -q 'Transport endpoint is not connected' err.$task
	done
	agents=()
}
