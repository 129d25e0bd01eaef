#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-store doctor on one machine: what it says of good and bad places, what it leaves behind.
#
# takes: 45
# mounts: private

# shellcheck disable=SC2154 # bats and doctor.bash set them
bats_require_minimum_version 1.5.0
load ../support/programs
load ../support/mounts
load ../support/doctor

# Most tests need neither root nor FUSE.
setup_file() {
	why=$("$BATS_TEST_DIRNAME/../support/mounts" usable bindfs small 2>&1) || {
		export why
		return 0
	}
	mounts_start small
}
need_mounts() { [ -n "${MOUNTS:-}" ] || skip "$why"; }

teardown_file() { mounts_stop; }
setup() { doctor_setup; }
teardown() { doctor_teardown; }

# ---- What it finds ----

@test "a local disk is safe, in text and in JSON" {
	answers 0 preempt-store doctor "$dir"
	[ -z "$stderr" ]
	[[ ${lines[0]} =~ ^'directory '\ +"$dir on" ]]
	[[ $output == *$'\nverdict         safe: lock=file, for the processes of this machine' ]]
	answers 0 preempt-store doctor --store "$dir/run.db" --quick --timeout 60s --json
	[ "${#lines[@]}" = 1 ]
	[ "$(value verdict) $(value exit) $(value exists) $(value sides 0 local)" = "safe 0 false true" ]
	[ "$(value acknowledged)" = "$(value present)" ]
	empty "$dir"
}

@test "a store that is there is asked, and stays as it is" {
	preempt-store put --store "$dir/run.db" k v
	local before
	before=$(sha256sum "$dir"/run.db*)
	answers 0 preempt-store doctor --store "$dir/run.db" --quick --timeout 60s
	[ "$(sha256sum "$dir"/run.db*)" = "$before" ]
	ln -s dir/run.db link.db
	answers 0 preempt-store doctor --store "$PWD/link.db" --quick --timeout 60s --json
	[ "$(value exists)" = true ]
	mv "$dir/run.db.lock" "$dir/kept"
	answers 65 preempt-store doctor --store "$dir/run.db" --quick --timeout 60s
	[[ $output == *'could not tell'*'run.db.lock was deleted'* ]]
	mv "$dir/kept" "$dir/run.db.lock"
	echo garbage >"$dir/run.db.lock"
	answers 65 preempt-store doctor --store "$dir/run.db" --quick --timeout 60s
	[[ $output == *'could not tell'*'is not the lock file of a store'* ]]
}

@test "two mounts whose locks do not reach each other, though the user says so: rows are lost, unsafe, and what to do; left out, it is safe" {
	need_mounts
	bind "$dir"
	# Not --quick: a slow machine may put so little in its 0.12 s that nothing is lost.
	answers 1 preempt-store doctor --store "$bound/run.db?assume=shared" --other "$dir"
	local lost='verdict         unsafe: data is lost(: of |, the database was damaged: ).*leave "\?assume=shared" out'
	[[ $output =~ $lost ]]
	answers 1 preempt-store doctor --store "$bound/run.db?assume=shared" --other "$dir" --json
	# Or so much was lost that the database is damaged.
	[[ $output == *'database was damaged'* ]] || [ "$(value present)" -lt "$(value acknowledged)" ] ||
		[ "$(value several)" -gt 0 ]
	answers 0 preempt-store doctor --store "$bound/run.db" --other "$dir" --quick --timeout 60s
	[[ $output == *'shown between 2 mounts of one machine'* ]]
	# One alone can not show it.
	answers 0 preempt-store doctor "$bound" --shared --quick --timeout 60s
	[[ $output == *'for several machines'*'shown on one machine only: not shown is '* ]]
	empty "$dir"
}

@test "a store whose holder is stopped: its place is safe, and that it did not answer is told" {
	local holder
	preempt-store put --store "$dir/run.db" k v
	"$OUT/tests/support/hold_store" "$dir/run.db" held begin &
	holder=$! job=$!
	eventually is_stopped "$holder"
	run -0 --separate-stderr preempt-store doctor --store "$dir/run.db" --quick --timeout 60s
	kill -KILL "$holder"
	wait "$holder" || :
	[[ $output == *'the store itself did not answer'*'look for a process that is stopped'* ]]
}

# ---- Places where nothing can be tried ----

@test "a directory that is missing: 75, is it mounted? A read-only mount: 77. A full one: 75, and nothing stays there" {
	answers 75 preempt-store doctor "$dir/none" --quick --timeout 60s
	[[ $output == *'could not tell'*'is the filesystem mounted?'* ]]
	answers 75 preempt-store doctor --store "$dir/none/run.db" --quick --timeout 60s --json
	[ "$(value exit)" = 75 ]
	touch "$dir/file"
	answers 75 preempt-store doctor "$dir/file" --quick --timeout 60s
	[[ $output == *'Not a directory'* ]]
	need_mounts
	answers 77 preempt-store doctor "$MOUNTS/small/ro" --quick --timeout 60s
	[[ $output == *'could not tell'*'mounted read-only'* ]]
	mkdir -m 700 "$MOUNTS/small/rw/full"
	mounts_fill "$MOUNTS/small/rw"
	answers 75 preempt-store doctor "$MOUNTS/small/rw/full" --quick --timeout 60s
	empty "$MOUNTS/small/rw/full"
	mounts_drain "$MOUNTS/small/rw"
	[[ $output == *'could not tell'*'No space left on device'* ]]
}

@test "a directory of another user: 77, and nothing is made in it" {
	need_mounts
	chown 65534 "$dir"
	answers 77 preempt-store doctor "$dir" --quick --timeout 60s
	[[ $output == *'belongs to user 65534'* ]]
	chown 0 "$dir"
	chmod 777 "$dir"
	answers 77 preempt-store doctor "$dir" --quick --timeout 60s
	[[ $output == *'writable by everyone'* ]]
	# Where names cannot be taken away it can be tried, but a store would be refused.
	chmod 1777 "$dir"
	answers 0 preempt-store doctor "$dir" --quick --timeout 60s
	[[ $output == *'warning'*'mkdir -m 700'* ]]
	answers 77 preempt-store doctor --store "$dir/run.db" --quick --timeout 60s
	empty "$dir"
}

# Each row: what is said, @ for a space; what is asked for.
@test "options that make no sense together, and two directories that are not the same: 2" {
	local says words
	mkdir "$dir/x" "$dir/y"
	while read -r says words; do
		eval "answers 2 preempt-store doctor $words"
		[ -z "$output" ]
		[[ $stderr == *"${says//@/ }"* ]] || { echo "$words: $stderr"; return 1; }
	done <<-'END'
		not@the@same@directory "$dir/x" --other "$dir/y"
		preempt-store
		preempt-store       "$dir" --other "$dir" --nodes 2
		preempt-store       "$dir" --nodes 1
		preempt-store       --store "$dir/run.db?lock=link"
		preempt-store       --store etcd://host/x
		preempt-store       --store etcd://127.0.0.1:1/x --other "$dir"
		preempt-store       "$dir" --session x
		preempt-store       "$dir" --node 1
		numbered@from@0@to@1 "$dir" --nodes 2 --node 2 --session x
		preempt-store       "$dir" --nodes 2 --node 0
		preempt-store       "$dir" --nodes 2 --session x
		give@--node@0@and@--session@NAME "$dir" --nodes 2
		--store@and@a@DIRECTORY@exclude@each@other --store "$dir/run.db" "$dir"
		preempt-store       ''
		preempt-store       "$dir" --other ''
		is@a@directory      --store "$dir"
		preempt-store       --store "$dir/run.db?takeover=1s"
	END
	PREEMPT_TASK=0 PREEMPT_TASKS=3 answers 2 preempt-store doctor "$dir" --nodes 2 --session x
	[[ $stderr == *'--nodes 2'*'started 3 tasks'* ]]
	empty "$dir/x"
	empty "$dir/y"
	rmdir "$dir/x" "$dir/y"
	PREEMPT_STORE=$dir/run.db answers 0 preempt-store doctor "$dir" --quick --timeout 60s
}

# ---- In a prolog ----

@test "a filesystem that hangs does not hang the doctor: 75 in time" {
	need_mounts
	bind "$dir"
	kill -STOP "$job"
	answers 75 preempt-store doctor "$bound" --quick
	[[ $stderr$output == *'did not answer in time'* ]]
}

@test "the example of a prolog drains a node where a store is unsafe or the filesystem is not mounted" {
	need_mounts
	local prolog=$BATS_TEST_DIRNAME/../../examples/prolog.sh
	bind "$dir" -o subtype=bindfs # so that it is known whose locks these are
	# On a machine that is too busy for it it could not tell, which drains nothing.
	printf '#!/bin/sh\nexec "%s" "$@" --timeout 60s\n' "$(command -v preempt-store)" >patient
	chmod +x patient
	prolog_of() {
		env -i "PREEMPT_PROLOG_PROGRAM=$PWD/patient" "PREEMPT_PROLOG_STORE=$1" "$prolog"
	}
	# Where the shared filesystem should be there is this machine's own disk, or nothing.
	answers 1 prolog_of "$dir/any.db"
	[[ $output == *'verdict         unsafe'*'this machine only'* ]]
	answers 1 prolog_of "$dir/none/any.db"
	answers 0 prolog_of "$bound/any.db"
	# One that was made where its locks do reach.
	preempt-store put --store "$dir/run.db" k v
	answers 1 prolog_of "$bound/run.db"
	[[ $output == *'verdict         unsafe: the store is refused on '* ]]
}

# ---- Several machines ----

# (Two nodes that meet: tests/places/doctor_nodes.bats; those of two jobs: tests/systems/slurm.bats.)
@test "launches of different sessions do not mix; one that never comes: 75, and who came is named" {
	node red preempt-store doctor "$dir" --nodes 2 --node 0 --session red --timeout 2s
	answers 75 preempt-store doctor "$dir" --nodes 2 --node 1 --session blue --timeout 2s
	wait "$job"
	[[ $(said red) == *'of 2 nodes that were to meet'*', 1 came in time: '"$(hostname)"* ]]
	[ "$(cat red.code)" = 75 ]
	empty "$dir"
}

@test "other options on one node: 2, and both are named; the same number or session twice: 75, and never a verdict of others" {
	local side launch codes
	node first preempt-store doctor "$dir" --nodes 2 --node 0 --session x --timeout 100s
	answers 2 preempt-store doctor "$dir" --nodes 2 --node 1 --session x --timeout 100s --quick
	wait "$job"
	[ "$(cat first.code)" = 2 ]
	[[ $stderr == *"$(hostname) runs preempt-tools "*"$(hostname) runs preempt-tools "*' --quick'*'the same command'* ]]
	[[ $(said first) == *'the same command'* ]]
	empty "$dir"
	for side in 0 1; do
		node "twice.$side" preempt-store doctor "$dir" --nodes 2 --node 1 --session x --timeout 4s
	done
	wait
	[ "$(cat twice.0.code twice.1.code)" = $'75\n75' ]
	empty "$dir"
	# Two launches of one name at once: one at most comes to an end.
	for launch in 1 2; do
		for side in 0 1; do
			node "two.$launch.$side" preempt-store doctor "$dir" --nodes 2 --node $side --session x --quick --timeout 4s
		done
	done
	wait
	codes=$(cat two.*.code)
	echo "$codes"
	[ "$(grep -cvx '0\|75' <<<"$codes")" = 0 ]
	[ "$(grep -cx 75 <<<"$codes")" -ge 2 ]
	eventually swept "$dir" ''
}

@test "what a killed launch of the session left is not taken for a node of this one" {
	node dead preempt-store doctor "$dir" --nodes 2 --node 0 --session x --timeout 100s
	eventually has "$dir/.preempt-doctor-*/0.0"
	stop_tree "$job"
	end_tree
	node second preempt-store doctor "$dir" --nodes 2 --node 1 --session x --quick --timeout 100s
	eventually has "$dir/.preempt-doctor-*/0.1"
	answers 0 preempt-store doctor "$dir" --nodes 2 --node 0 --session x --quick --timeout 100s
	wait "$job"
	[ "$(cat second.code)" = 0 ]
	empty "$dir"
}

# ---- What stays ----

# In the background, $pid. A shell lets what it runs there ignore INT.
examine() {
	env --default-signal=INT preempt-store doctor "$dir" 3>&- &
	pid=$!
}

@test "killed, whole, alone or in a part, it leaves nothing running; what it left is removed after a day" {
	local pid sides began left
	in_the_middle "$dir/.preempt-doctor-*/*/try.db" examine
	end_tree
	# A day later.
	left=$(ls -A "$dir")
	[[ $left == .preempt-doctor-* ]]
	swept "$dir" "$left"
	touch -d '2 days ago' "$dir/$left"
	swept "$dir" ''
	# Killed alone: its parts end.
	in_the_middle "$dir/.preempt-doctor-*/*/try.db" examine
	sides=$(pgrep -d , -P "$pid")
	[[ $sides == *,* ]]
	kill -KILL "$pid"
	continue_tree
	eventually ended "$sides"
	rm -r "$dir"/.preempt-doctor-*
	# A part of it: 75 at once.
	in_the_middle "$dir/.preempt-doctor-*/*/try.db" examine
	kill -KILL "$(pgrep -P "$pid" | sort -n | head -n 1)"
	began=$SECONDS
	continue_tree
	code_of "$pid"
	[ "$code" = 75 ]
	[ $((SECONDS - began)) -lt 6 ]
	eventually empty "$dir"
}
ended() { ! ps -p "$1" >/dev/null; }
