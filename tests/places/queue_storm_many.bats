#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Ten thousand commands over sixteen workers that are killed, stopped and given notices at random,
# while schedule and join are killed: tests/support/storm says what is checked.
# takes: 80
# asan: no (the same with 300 commands runs with sanitizers in queue_storm.bats)
# soak (takes long)

bats_require_minimum_version 1.5.0

setup() {
	PATH=${BIN:-$BATS_TEST_DIRNAME/../../bin}:$PATH
	unset "${!PREEMPT_@}" "${!SLURM_@}"
	# So many transactions are not about how fast a disk syncs.
	[ ! -w /dev/shm ] || fast=/dev/shm
	store=$(mktemp -d "${fast:-$BATS_TEST_TMPDIR}/storm.XXXXXX")
	cd "$BATS_TEST_TMPDIR" || return
}
teardown() {
	"$BATS_TEST_DIRNAME/../support/forget-stores" "$store"
	rm -rf "$store"
}

@test "10,000 commands over 16 workers in a storm: each has exactly one accepted result, none is lost" {
	run -0 "$BATS_TEST_DIRNAME/../support/storm" --store "$store/q.db" --commands 10000 --workers 16 --every 300 \
		--deadline 900
	echo "$output" | grep '^#' >&3
	[[ $output =~ ' killed '[1-9] && $output =~ 'noticed '[1-9] && $output =~ 'longer than the lease '[1-9] ]]
}
