#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-store copy: from one store to another, of the same backend and of another one.
# takes: 40
# shellcheck disable=SC2016,SC2034,SC2154 # text for another shell; bats sets stderr; the rig reads and sets etcd_*

bats_require_minimum_version 1.5.0
load rig/etcd
load rig/store

setup() {
	PATH=${BIN:-$BATS_TEST_DIRNAME/../bin}:$PATH
	cd "$BATS_TEST_TMPDIR" || return
	chmod 700 .
	store_for_test "$PWD/from.db"
	etcd_options=() etcd_tls=''
}

teardown() {
	etcd_stop
	"$BATS_TEST_DIRNAME/rig/forget-stores" "$BATS_TEST_TMPDIR"
}

answers() {
	local code=$1
	shift
	run -"$code" --separate-stderr "$@"
}

copy() { preempt-store copy "$PREEMPT_STORE" "$@"; }
all_of() { preempt-store list --values --store "$1"; }

# A run that was preempted after step 7, which it has saved.
preempted_run() {
	preempt-run --run job -n 1 -- sh -c '. "$0"
		for s in 0 1 2 3 4 5 6 7; do [ $s != 7 ] || kill -TERM $PPID; preempt_step $s || { preempt_saved $s; exit; }; sleep 0.1; done
		while :; do preempt_step $((s = s + 1)) || { preempt_saved $s; exit; }; sleep 0.1; done' \
		"$BATS_TEST_DIRNAME/../lib/client/preempt.sh" 2>err && code=0 || code=$?
	[ "$code" = 42 ]
}

# bats test_tags=smoke
@test "every key is there afterwards; again, nothing is copied; values may have any bytes" {
	local i
	for ((i = 0; i < 130; i++)); do echo "queue/q/item/$i value $i"; done >pairs
	while read -r key value; do preempt-store put "$key" "$value"; done <pairs
	head -c 60000 /dev/zero | preempt-store put zeros -
	answers 0 copy to.db --json
	[ "$output" = '{"keys":131,"copied":131}' ]
	cmp <(all_of "$PREEMPT_STORE") <(all_of to.db)
	answers 0 copy to.db
	[[ $stderr = *'has all 131 keys; 0 were copied'* ]]
	# One that was broken off goes on.
	preempt-store rm queue/q/item/77 --store to.db
	answers 0 copy to.db --json
	[ "$output" = '{"keys":131,"copied":1}' ]
}

# bats test_tags=smoke
@test "what the other store has already stays: another value or another key of the same run is refused" {
	preempt-store put run/r/000001/CLOSED '{"state":"completed","utc":1}'
	preempt-store put run/r/LAST '{"attempt":1}'
	preempt-store put run/other/LAST '{"attempt":1}' --store to.db
	preempt-store put run/r/000002/OPEN x --store to.db
	answers 1 copy to.db
	[[ $stderr = *'run/r/: store '*'to.db has other data of it (key run/r/000002/OPEN)'* ]]
	preempt-store rm run/r/000002/OPEN --store to.db
	preempt-store put run/r/LAST other --store to.db
	answers 1 copy to.db
	[[ $stderr = *'key run/r/LAST'* ]]
	[ "$(preempt-store list --store to.db | wc -l)" = 2 ]
	preempt-store rm run/r/LAST --store to.db
	answers 0 copy to.db
	[ "$(preempt-store list --store to.db | wc -l)" = 3 ]
}

# bats test_tags=smoke
@test "while something runs, or without the files of queues, nothing is copied; and what must be done is said" {
	preempt-store join --run r --task 0 --tasks 1 --no-board --pid $$ >/dev/null
	answers 1 copy to.db
	[[ $stderr = *'run r is open'*'preempt-store close'* ]]
	preempt-store close --run r --force 2>/dev/null
	answers 0 copy to.db
	preempt-store put queue/q/worker/abc '{}'
	answers 1 copy to.db
	[[ $stderr = *'a worker is registered (queue/q/worker/abc)'* ]]
	preempt-store rm queue/q/worker/abc
	preempt-queue schedule -- sh -c 'yes | head -c 200000' >/dev/null
	preempt-queue work --idle-exit 100ms 2>/dev/null
	answers 1 copy new.db
	[[ $stderr = *'copy the files of queues first: cp -a '* ]]
	eval "${stderr##*first: }" || { mkdir -m 700 new.db.queue && eval "${stderr##*first: }"; }
	answers 0 copy new.db
	[ "$(preempt-queue fetch 1 --store new.db | wc -c)" = 200000 ]
	answers 1 preempt-store copy missing.db to.db
	answers 2 copy
}

@test "killed at any moment and made again, all is there" {
	local i
	for ((i = 0; i < 300; i++)); do echo "put k$i $i"; done | while read -r _ key value; do
		preempt-store put "$key" "$value"
	done
	for ((i = 1; i <= 20; i++)); do
		copy to.db 2>/dev/null &
		sleep "0.00$i"
		kill -KILL $! 2>/dev/null || :
		wait $! 2>/dev/null || :
	done
	answers 0 copy to.db
	cmp <(all_of "$PREEMPT_STORE") <(all_of to.db)
}

@test "the other store is on a full disk: 75, and it goes on where there is room" {
	mkdir full
	mount -t tmpfs -o size=256k,mode=700 tmpfs full || skip "needs root, for a small filesystem"
	local i
	for ((i = 0; i < 10; i++)); do head -c 50000 /dev/urandom | base64 -w 0 | head -c 60000 | preempt-store put "k$i" -; done
	answers 75 copy full/to.db
	[[ $stderr = *'No space left'* ]]
	mount -o remount,size=64m full
	answers 0 copy full/to.db
	cmp <(all_of "$PREEMPT_STORE") <(all_of full/to.db)
	umount full
}

@test "to etcd and back: a preempted run goes on there, and a queue with its outputs" {
	local there
	etcd_needed
	etcd_start 1
	there="etcd://$etcd_endpoints/new?trusted&files=$PWD/files"
	preempted_run
	preempt-queue schedule -- sh -c 'yes | head -c 200000' >/dev/null
	preempt-queue work --idle-exit 100ms 2>/dev/null
	preempt-queue schedule -- echo later >/dev/null
	answers 1 preempt-store copy "$PREEMPT_STORE" "etcd://$etcd_endpoints/new"
	[[ $stderr = *'add files='* ]]
	cp -a from.db.queue files
	answers 0 preempt-store copy "$PREEMPT_STORE" "$there"
	cmp <(all_of "$PREEMPT_STORE") <(all_of "$there")
	PREEMPT_STORE=$there
	[ "$(preempt-queue fetch 1 | wc -c)" = 200000 ]
	preempt-queue work --idle-exit 100ms 2>/dev/null
	[ "$(preempt-queue fetch 2)" = later ]
	answers 0 preempt-run --run job -n 1 -- sh -c 'echo "$PREEMPT_ATTEMPT"'
	[ "$output" = 2 ]
	cp -a files back.db.queue
	answers 0 preempt-store copy "$there" back.db
	cmp <(all_of "$there") <(all_of back.db)
}
