#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The whole job on filesystems with two mounts: two tasks on each, store and checkpoints in the
# shared directory, preempted, resumed, bit-identical. Needs root and FUSE.
# takes: 30
# asan: no (the same programs run with sanitizers in preempt-run*.bats; here it is the filesystems)
# mounts: private
# shellcheck disable=SC2016,SC2034 # text for another shell; what agents.bash uses

load ../support/mounts
load ../support/agents

setup_file() { mounts_start gluster bindfs; }
teardown_file() { mounts_stop; }

teardown() {
	end_agents
	[ -z "${bindfs:-}" ] || kill -KILL "$bindfs" 2>/dev/null || :
	[ -z "${mount:-}" ] || umount -l "$mount" 2>/dev/null || :
	mounts_dump_logs
}

# two KIND: a new directory, and in $a and $b its path through each mount.
two() {
	a=$(mktemp -d "$MOUNTS/$1/a/XXXXXX")
	b=$MOUNTS/$1/b/${a##*/}
	here=("$a" "$a" "$b" "$b")
}

# on_mounts TASKS COMMAND...: agents, each with the store of its machine's mount; the command finds the mount in $HERE.
on_mounts() {
	local task n=$1
	shift
	for ((task = 0; task < n; task++)); do
		HERE=${here[task * 4 / n]} PREEMPT_STORE=${here[task * 4 / n]}/store.db agent "$task" "$n" -- "$@"
	done
}

preempted_and_resumed() {
	local training=("$OUT/examples/train" --hidden 16 --batch 32 --steps 250 --save-every 60) step
	two "$1"
	mkdir "$a/job" reference
	preempt-run -q --run reference -n 4 -- "${training[@]}" --dir reference --done-model model
	train() { on_mounts 4 bash -c '"$@" --dir "$HERE/job" --done-model "$HERE/model.$PREEMPT_TASK"' train "${training[@]}" "$@"; }
	all_step() { [ "$(find boards -name step -size +0 | wc -l)" = 4 ]; }
	train --step-ms 100 # there is something left to train, however late the notice is
	eventually all_step
	kill -TERM "${pids[2]}"
	all_ended 42
	step=$(ckpt-rotate latest "$a/job/ckpt" --step)
	[ "$step" -gt 0 ]
	[ "$step" = "$(ckpt-rotate latest "$b/job/ckpt" --step)" ]
	train
	all_ended 0
	grep -q "^resumed at step $step" out.0
	cmp model "$b/model.0"
}

@test "two tasks on each of two GlusterFS mounts, preempted and resumed: the same model" {
	preempted_and_resumed gluster
}

@test "two tasks on each of two bindfs mounts, preempted and resumed: the same model" {
	preempted_and_resumed bindfs
}

@test "a checkpoint committed through one mount is the newest complete one through the other, at once" {
	local kind step from to begun
	for kind in gluster bindfs; do
		two $kind
		for ((step = 1; step <= 6; step++)); do
			from=$a/ckpt to=$b/ckpt
			((step % 3)) || from=$b/ckpt to=$a/ckpt
			begun=$(ckpt-rotate begin "$from" $step)
			head -c $((RANDOM * 4)) /dev/urandom >"$begun/model"
			echo $step >"$begun/number"
			# Half-written, it is not offered, and what is seen now is not remembered.
			[ "$(ckpt-rotate latest "$to" --step --or 0 2>/dev/null)" = $((step - 1)) ]
			ckpt-rotate commit -q "$from" $step
			[ "$(ckpt-rotate latest "$to" --step)" = $step ]
			[ "$(cat "$(ckpt-rotate latest "$to")/number")" = $step ]
			ckpt-rotate verify -q "$to" $step
			((step != 5)) || ckpt-rotate prune -q "$to" --keep-last 2
		done
		[ "$(ckpt-rotate list "$a/ckpt" | wc -l) $(ckpt-rotate list "$b/ckpt" | wc -l)" = "4 4" ]
	done
}

# loop: a trainer that writes when it runs, and when it saves.
write_loop() {
	cat >loop <<-'END'
		. "$CLIENTS/preempt.sh"
		for ((s = 0; ; s++)); do
			preempt_step $s || { : >"saved.$PREEMPT_TASK" && preempt_saved $s; } || exit
			: >"runs.$PREEMPT_TASK"
			sleep 0.05
		done
	END
}

@test "the store's filesystem is unmounted and mounted again under running agents: a notice is agreed on" {
	mount=$PWD/mount
	mkdir -m 700 "$mount"
	write_loop
	# A new bindfs of the store on $mount.
	mount_again() {
		bindfs -f "$PWD/store" "$mount" >>bindfs.log 2>&1 3>&- &
		bindfs=$!
		eventually mountpoint -q "$mount"
	}
	mount_again
	here=("$mount" "$mount" "$mount" "$mount") options=(--period 1s --limit 60)
	on_mounts 2 bash loop
	eventually test -e runs.0 -a -e runs.1
	umount -l "$mount"
	# They let go of it, or it would never be gone.
	eventually gone "$bindfs"
	for task in 0 1; do eventually grep -q 'no longer mounted' err.$task; done
	[ -z "$(ls "$mount")" ]
	mount_again
	kill -TERM "${pids[0]}"
	all_ended 42
}

# The last one: it leaves the mounts dead.
@test "the store's mounts are killed, then a notice: every task saves by itself before its deadline, and leaves with 43" {
	dead() { ! stat "$1" >/dev/null 2>&1; }
	two gluster
	write_loop
	options=(--grace 10s)
	on_mounts 2 bash loop
	eventually test -e runs.0 -a -e runs.1
	pkill -KILL -f "^glusterfs --no-daemon --process-name fuse .*$MOUNTS/gluster/[ab]\$"
	for side in a b; do eventually dead "$MOUNTS/gluster/$side"; done
	kill -TERM "${pids[@]}"
	all_ended 43
	for task in 0 1; do
		[ -e saved.$task ] # at its deadline a command is killed
		grep -q 'Transport endpoint is not connected' err.$task
	done
}
