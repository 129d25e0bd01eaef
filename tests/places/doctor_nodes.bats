#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-store doctor between nodes, on two mounts of bindfs. (What it finds of two mounts by itself: suite.bats.)
# takes: 50
# mounts: private
# asan: no (a minute, mostly of waiting; doctor.bats has it)

# shellcheck disable=SC2154 # bats and doctor.bash set them
bats_require_minimum_version 1.5.0
load ../support/mounts
load ../support/doctor

setup_file() { mounts_start bindfs; }
teardown_file() { mounts_stop; }
setup() { doctor_setup; }
teardown() { doctor_teardown; }

@test "two nodes find each other, see what is wrong, and both say the same" {
	pair bindfs
	node one preempt-store doctor --store "$a/run.db?assume=shared" --nodes 2 --node 1 --session x --timeout 100s
	answers 1 preempt-store doctor --store "$b/run.db?assume=shared" --nodes 2 --node 0 --session x --timeout 100s
	wait "$job"
	[ "$(cat one.code)" = 1 ]
	# The first one prints all, the other the verdict.
	[ -n "$output" ]
	[ "$(sed -n '/^verdict /,$p' <<<"$output")" = "$(sed -n '/^verdict /,$p' one)" ]
	[[ $output == *'2 mounts'*'verdict         unsafe: data is lost: of '* ]]
	[ "$(wc -l <one)" -lt "$(wc -l <<<"$output")" ]
	empty "$a"
}

# two_nodes I: side I, $pid, and the other, $job.
two_nodes() {
	preempt-store doctor "$a" --nodes 2 --node "$1" --session x --timeout 100s >victim 2>&1 3>&- &
	pid=$!
	node other preempt-store doctor "$b" --nodes 2 --node $((1 - $1)) --session x --timeout 100s
}

@test "one that is killed in the middle, or that a signal ends: the other says so, 75, and cleans up" {
	pair bindfs
	local pid began
	in_the_middle "$a/.preempt-doctor-*/*/2.0" two_nodes 0
	# As a machine that loses power: all of it at once.
	end_tree
	wait "$job"
	[ "$(cat other.code)" = 75 ]
	[[ $(said other) == *'could not tell'*'did not answer in time'* ]]
	empty "$a"
	in_the_middle "$a/.preempt-doctor-*/*/2.1" two_nodes 1
	kill -TERM "$pid"
	began=$SECONDS
	continue_tree
	code_of "$pid"
	[ "$code" = 143 ]
	wait "$job"
	[ "$(cat other.code)" = 75 ]
	[[ $(said other) == *'ended before it was done'* ]]
	[ $((SECONDS - began)) -lt 6 ]
	eventually empty "$a"
}
