#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A store whose filesystem goes away under running agents, and comes back. (Jobs on two mounts: suite.bats.)
# takes: 30
# asan: no (the same programs run with sanitizers in preempt-run*.bats; here it is the filesystems)
# mounts: private
# shellcheck disable=SC2016,SC2034 # text for another shell; what agents.bash uses

load ../support/agents

teardown() {
	end_agents
	[ -z "${bindfs:-}" ] || kill -KILL "$bindfs" 2>/dev/null || :
	[ -z "${mount:-}" ] || umount -l "$mount" 2>/dev/null || :
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
	[ "$(id -u)" = 0 ] && command -v bindfs >/dev/null && [ -c /dev/fuse ] || skip "needs root, FUSE and bindfs"
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
	options=(--period 1s --limit 60)
	export PREEMPT_STORE=$mount/store.db
	for task in 0 1; do agent "$task" 2 -- bash loop; done
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
