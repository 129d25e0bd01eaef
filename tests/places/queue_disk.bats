#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A queue whose disks are full for a while, and whose store can only be read for a while: nothing is
# lost, and the workers go on. Needs root.
# mounts: private

# shellcheck disable=SC2030,SC2031,SC2016 # a test is a subshell of its own; $1 is of the command
bats_require_minimum_version 1.5.0
load ../support/mounts

setup_file() { mounts_start small; }
teardown_file() { mounts_stop; }

setup() {
	programs
	mkdir -m 700 store
	store=$PWD/store/q.db small=$(mktemp -d "$MOUNTS/small/rw/XXXXXX")
	over=''
}
teardown() {
	end_started
	[ -z "$over" ] || umount -l "$over"
	mounts_drain "$MOUNTS/small/rw"
	rm -rf "$small"
	mounts_dump_logs
}

# start_storm OPTION...: no misfortunes but the disk's.
start_storm() {
	"$REPO/tests/support/storm" --commands 200 --workers 4 --kinds none "$@" >storm 2>&1 3>&- &
	storm=$! started+=($!)
}
ended_well() {
	local code=0
	wait "$storm" || code=$?
	cat storm
	grep '^#' storm >&3
	[ $code = 0 ]
}
done_are() { [ "$(preempt-queue list --store "$store" --state succeeded --json 2>/dev/null | wc -l)" -ge "$1" ]; }
said() { grep -q "$1" worker*.err; }

@test "the store's disk is full for a while: workers keep what they have, and hand it in when there is room" {
	store=$small/q.db
	start_storm --store "$store" --hold "$PWD/go"
	until_true 60 done_are 30
	mounts_fill "$MOUNTS/small/rw"
	: >go # the other half ends while it is full
	until_true 60 said 'No space left on device'
	mounts_drain "$MOUNTS/small/rw"
	ended_well
}

@test "the disk for outputs is full for a while: commands fail for it, and are run again when there is room" {
	mounts_fill "$MOUNTS/small/rw"
	start_storm --store "$store" --files "$small/files"
	until_true 60 said 'No space left on device'
	mounts_drain "$MOUNTS/small/rw"
	ended_well
}

@test "commands that do not notice that the disk is full: what is accepted is whole" {
	local ids worker
	export PREEMPT_STORE=$store PREEMPT_QUEUE_FILES=$small/files
	# The first one ends when there is room again.
	mapfile -t ids < <(seq 20 | preempt-queue schedule --lines --max-transient 100 --shell -- \
		'seq 20000; : >"$1.wrote"; [ "$1" != 1 ] || until [ -e go ]; do sleep 0.05; done' {})
	mkdir -m 700 "$small/files"
	mounts_fill "$MOUNTS/small/rw"
	preempt-queue work --slots 4 --source signal:TERM 2>worker.err 3>&- &
	worker=$! started+=($!)
	until_true 60 said 'cannot be kept.*No space left on device'
	until_true 60 test -e 1.wrote
	mounts_drain "$MOUNTS/small/rw"
	: >go
	preempt-queue join --timeout 200s
	for id in "${ids[@]}"; do preempt-queue fetch "$id" | cmp - <(seq 20000); done
	kill -0 "$worker"
}

@test "the store can only be read for a while: nothing is lost, and new workers go on" {
	store=$small/q.db
	start_storm --store "$store" --may-end-with 77 --hold "$PWD/go"
	until_true 60 done_are 30
	# Not by remounting: the workers have the lock file open for writing.
	mount --bind "$MOUNTS/small/ro/${small##*/}" "$small"
	over=$small
	: >go
	until_true 60 said 'Read-only file system'
	umount -l "$small" # some may still be in it
	over=
	ended_well
}
