#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# PREEMPT_MOUNTS names what must be mounted: until it is, no program reads or makes anything. And what is missing above
# a store or a checkpoint directory is never made.
# mounts: private

bats_require_minimum_version 1.5.0

setup() {
	PATH=${BIN:-$BATS_TEST_DIRNAME/../../bin}:$PATH
	cd "$(mktemp -d -p "$BATS_TEST_TMPDIR")" || return
	mkdir -m 700 disk mnt home
	unset PREEMPT_RUN PREEMPT_STORE PREEMPT_MOUNTS XDG_STATE_HOME
	export HOME=$PWD/home
}

teardown() {
	umount -l mnt 2>/dev/null || :
	"$BATS_TEST_DIRNAME/../support/forget-stores" "$BATS_TEST_TMPDIR"
}

mounted() { mount --bind disk mnt 2>/dev/null || skip "needs root, to mount"; }
# refused COMMAND...: 75, since it is not mounted, and nothing is made.
refused() {
	run -75 --separate-stderr timeout 60 "$@"
	[[ $stderr$output == *"$PWD/mnt is not mounted"* ]]
	[ -z "$(ls -A mnt)" ]
}

@test "while what PREEMPT_MOUNTS names is not mounted, every program says 75, and makes nothing" {
	mounted
	export PREEMPT_STORE=$PWD/mnt/q.db PREEMPT_MOUNTS=/proc::$PWD/mnt
	preempt-queue schedule -q -- echo first
	preempt-store put k v
	echo x >"$(ckpt-rotate begin mnt/ck 5)/f"
	ckpt-rotate commit -q mnt/ck 5
	umount mnt
	mkdir local
	ln -s mnt/ck link
	for command in "latest mnt/ck --or 0" "latest link" "list mnt/ck" "verify mnt/ck" "begin mnt/ck 6" "begin mnt 6" \
		"commit mnt/ck 5" "prune --keep-last 1 mnt/ck" "pin mnt/ck 5" "copy local mnt/ck 5" "copy mnt/ck local 5"; do
		# shellcheck disable=SC2086 # words
		refused ckpt-rotate $command
	done
	refused preempt-store get k
	refused preempt-store put k w
	refused preempt-store gc --older-than 1h
	refused preempt-queue schedule -q -- echo second
	refused preempt-queue join
	refused preempt-claim --run r --outside
	refused preempt-run -q --run r -- true
	refused preempt-requeue --dry-run --run r
	run -1 preempt-store doctor mnt --quick --timeout 60s
	[[ $output == *"unsafe"*"not mounted"* ]]
	mounted
	[ "$(preempt-queue list --json | wc -l)" = 1 ]
	[ "$(preempt-store get k)" = v ]
	[ "$(ckpt-rotate latest mnt/ck --step)" = 5 ]
	PREEMPT_MOUNTS=mnt run -2 preempt-store get k
}

@test "a worker whose --files are not mounted takes nothing, and no command fails" {
	mounted
	export PREEMPT_STORE=$PWD/home/q.db
	preempt-queue schedule -q --files mnt/f -- true
	umount mnt
	export PREEMPT_MOUNTS=$PWD/mnt
	refused preempt-queue work --files mnt/f --idle-exit 0
	mounted
	run -0 preempt-queue work --files mnt/f --idle-exit 0
	[ "$(preempt-queue list --state succeeded --json | grep -c '"transients":0')" = 1 ]
}

@test "a home that is not there is not made, by root neither" {
	export HOME=$PWD/none
	for command in "preempt-run --run r -- true" "preempt-store get --run r k" "preempt-queue schedule -- true"; do
		# shellcheck disable=SC2086 # words
		run -75 $command
		[[ $output == *"there is no directory $PWD/none"* ]]
	done
	HOME=$PWD/home XDG_STATE_HOME=$PWD/none/state run -75 preempt-store put --run r k v
	[ ! -e none ]
	HOME=$PWD/home/ run -0 preempt-run --run r -- true
	HOME=$PWD/home XDG_STATE_HOME=$PWD/state run -0 preempt-store put --run r k v
	[ -f state/preempt/r.db ]
	[ -f home/.local/state/preempt/r.db ]
}

@test "?must-exist: a store that is missing is 75, and not made" {
	mkdir -m 700 one
	run -75 --separate-stderr preempt-store get --store 'one/s.db?must-exist' k
	[[ $stderr == *must-exist* ]]
	run -75 preempt-store put --store 'one/s.db?must-exist' k v
	run -75 preempt-run -q --store 'one/s.db?must-exist' --run r -- true
	run -75 preempt-claim --store 'one/s.db?must-exist' --run r --outside
	[ -z "$(ls -A one)" ]
	preempt-store put --store one/s.db k v
	run -0 preempt-store get --store 'one/s.db?must-exist' k
	run -1 preempt-store get --store 'one/s.db?must-exist' none
	run -2 preempt-store get --store 'one/s.db?must-exist=no' k
}
