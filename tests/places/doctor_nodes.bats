#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-store doctor between two mounts and between nodes: GlusterFS and bindfs.
#
# takes: 60
# mounts: private
# asan: no (a minute, mostly of waiting; doctor.bats has it)

# shellcheck disable=SC2154 # bats and doctor.bash set them
bats_require_minimum_version 1.5.0
load ../support/mounts
load ../support/doctor

setup_file() { mounts_start gluster bindfs; }
teardown_file() { mounts_stop; }
setup() { doctor_setup; }
teardown() { doctor_teardown; }

# ---- What it finds ----

notices() {
	answers 0 preempt-store doctor "$a" --other "$b" --json
	[ "$(value noticed_ms)" != null ]
}

@test "two mounts of GlusterFS are coherent: nothing acknowledged is lost, soon" {
	pair gluster
	# Where the machine has no time for it for two seconds nothing is noticed: then once more.
	until_there notices
	[ "$(value verdict) $(value clients) $(value form)" = "safe 2 two" ]
	[ "$(value modes fcntl excludes) $(value modes link excludes)" = "yes yes" ]
	[ "$(value lock) $(value modes fcntl keeps) $(value modes fcntl several)" = "fcntl yes 0" ]
	[ "$(value modes fcntl acknowledged)" -ge 2 ] # a busy machine does no more
	[ "$(value modes fcntl acknowledged)" = "$(value modes fcntl present)" ]
	[ "$(value modes fcntl claims)" -gt 0 ]
	[[ $(value scope) == *'mounts of one machine'* ]]
	empty "$a"
}

@test "two mounts of bindfs are incoherent in mode fcntl, and safe in mode link, soon" {
	pair bindfs
	answers 1 preempt-store doctor --store "$a/run.db?lock=fcntl" --other "$b" --quick --timeout 60s --json
	[ "$(value verdict) $(value clients)" = "unsafe 2" ]
	[ "$(value modes fcntl excludes) $(value modes link excludes)" = "no yes" ]
	[ "$(value modes fcntl keeps)" = skipped ] # it is known to be wrong
	[ "$(value modes link keeps)" = yes ]
	[[ $(value change 0) == *'?lock=link'* ]]
	answers 0 preempt-store doctor --store "$a/run.db" --other "$b" --json
	[ "$(value verdict) $(value lock)" = "safe link" ]
	[ "$(value modes link acknowledged)" -ge 2 ] # a busy machine does no more
	[ "$(value modes link acknowledged)" = "$(value modes link present)" ]
	empty "$a"
}

@test "a store that was made with the wrong mode for this mount is unsafe" {
	pair bindfs
	preempt-store put --store "$a/run.db?lock=fcntl&assume=local" k v
	answers 1 preempt-store doctor --store "$a/run.db" --other "$b" --quick --timeout 60s
	[[ $output == *'recorded in the store'*'verdict         unsafe'* ]]
	[[ $output == *"doctor --fix --store"* ]]
	# The user's word for locks that do not reach is not taken.
	answers 1 preempt-store doctor --store "$a/run.db?assume=shared" --other "$b" --quick --timeout 60s
}

@test "on a filesystem that is not known one machine cannot tell, and is told what can" {
	pair bindfs
	answers 75 preempt-store doctor --store "$a/run.db?lock=fcntl" --quick --timeout 60s
	[[ $output == *'could not tell'*'--nodes 2'* ]] || [[ $output == *'unsafe'*'lock=link'* ]]
	answers 0 preempt-store doctor "$a" --quick --timeout 60s
	[[ $output == *'safe: lock=link'*'not shown'* ]]
}

# ---- Several machines ----

@test "two nodes find each other, see what is wrong, and both say the same" {
	pair bindfs
	node one preempt-store doctor --store "$a/run.db?lock=fcntl" --nodes 2 --node 1 --session x --quick --timeout 100s
	answers 1 preempt-store doctor --store "$b/run.db?lock=fcntl" --nodes 2 --node 0 --session x --quick --timeout 100s
	wait "$job"
	[ "$(cat "$BATS_TEST_TMPDIR/one.code")" = 1 ]
	# The first one prints all, the other the verdict.
	[ -n "$output" ]
	[ "$(sed -n '/^verdict /,$p' <<<"$output")" = "$(cat "$BATS_TEST_TMPDIR/one")" ]
	[[ $output == *'DO NOT EXCLUDE'*" on $(uname -n) got it while "*" on $(uname -n) held it"* ]]
	[ "$(grep -c '^locks ' <<<"$output")" = 1 ]
	empty "$a"
}

has_started() { has "$a/.preempt-doctor-*/0.0"; }

@test "three nodes on two mounts of GlusterFS, among them what an earlier launch left: safe" {
	pair gluster
	local left
	# Where the scratch directory of this session is.
	node zero preempt-store doctor "$a" --nodes 3 --node 0 --session yesterday --timeout 100s
	until_there has_started
	left=$(echo "$a"/.preempt-doctor-*)
	kill -KILL "$(pgrep -P "$job")"
	wait "$job"
	rm -rf "$a"/.preempt-doctor-*
	# Records of a launch that was killed.
	mkdir -m 700 "$left"
	head -c 9000 /dev/urandom | tee "$left/0.1" "$left/1.0" >"$left/2.1"
	node one preempt-store doctor "$a" --nodes 3 --node 1 --session yesterday --timeout 100s --json
	node two preempt-store doctor "$b" --nodes 3 --node 2 --session yesterday --timeout 100s --json
	sleep 0.5
	answers 0 preempt-store doctor "$b" --nodes 3 --node 0 --session yesterday --timeout 100s --json
	wait
	# One object in all.
	[ "$(cat "$BATS_TEST_TMPDIR"/{one,two}.code)" = $'0\n0' ]
	[[ $(cat "$BATS_TEST_TMPDIR/one" "$BATS_TEST_TMPDIR/two") != *'{'* ]]
	[ "$(value clients) $(value form) $(value verdict)" = "2 nodes safe" ]
	[ "$(value modes fcntl acknowledged)" = "$(value modes fcntl present)" ]
	empty "$a"
}

# two_nodes I: side I, $pid, and the other, $job.
two_nodes() {
	preempt-store doctor "$a" --nodes 2 --node "$1" --session x --timeout 100s >"$BATS_TEST_TMPDIR/victim" 2>&1 3>&- &
	pid=$!
	node other preempt-store doctor "$b" --nodes 2 --node $((1 - $1)) --session x --timeout 100s
}

@test "one that is killed in the middle, whichever it is: the other says so, 75, and cleans up" {
	pair bindfs
	local side pid
	for side in 0 1; do
		in_the_middle "$a/.preempt-doctor-*/*/3.$side" two_nodes "$side"
		# As a machine that loses power: all of it at once.
		end_tree
		wait "$job"
		[ "$(cat "$BATS_TEST_TMPDIR/other.code")" = 75 ]
		[[ $(said other) == *'could not tell'*'did not answer in time'* ]]
		empty "$a"
	done
}

@test "one that a signal ends informs the others: 75 at once" {
	pair bindfs
	local side pid code began
	for side in 0 1; do
		in_the_middle "$a/.preempt-doctor-*/*/3.$side" two_nodes "$side"
		kill -TERM "$pid"
		began=$SECONDS
		continue_tree
		code=0
		wait "$pid" || code=$?
		[ "$code" = 143 ]
		wait "$job"
		[ "$(cat "$BATS_TEST_TMPDIR/other.code")" = 75 ]
		[[ $(said other) == *'ended before it was done'* ]]
		[ $((SECONDS - began)) -lt 6 ]
		until_there empty "$a"
	done
}

# ---- --fix ----

@test "--fix records the safe mode, and the store is used with it" {
	make_wrong
	answers 2 preempt-store get --store "$store" k
	answers 0 preempt-store doctor --store "$store" --other "$b" --fix --json
	[[ $(value fixed) == *'recorded lock=link'* ]]
	[ "$(value lock) $(value verdict) $(value modes link keeps)" = "link safe yes" ]
	answers 0 preempt-store get --store "$b/run.db" k
	[ "$output" = v ]
	grep -q '^mode link$' "$store.lock"
	[ "$(ls -A "$a")" = $'run.db\nrun.db-journal\nrun.db.lock' ]
}

@test "--fix refuses a store that is open or changed by others: 75, and it is as before" {
	make_wrong
	local writer
	preempt-store wait --store "$store?assume=local" never 3>&- &
	writer=$! job=$!
	until_there holds_open $writer "$store.lock"
	answers 75 preempt-store doctor --store "$store" --other "$b" --fix
	kill $writer
	wait $writer || :
	[[ $output == *"not fixed: "*"in use: process $writer (preempt-store)"* ]]
	# On another machine: its open files are not seen, its writes are.
	(
		while sleep 0.3; do
			sqlite3 "$b/run.db" "UPDATE meta SET revision=revision+1" || :
		done
	) 2>/dev/null 3>&- &
	writer=$! job=$!
	answers 75 preempt-store doctor --store "$store" --fix
	kill $writer
	[[ $output == *"not fixed: "*"was changed while we held its locks"* ]]
	grep -q '^mode fcntl$' "$store.lock"
}
