#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-run while the wall clock jumps by an hour, either way.
# asan: no (the clock is set forward by LD_PRELOAD)
# shellcheck disable=SC2030,SC2031,SC2034,SC2154 # each test is a subshell with its own variables
# shellcheck disable=SC2012,SC2086 # numbers

bats_require_minimum_version 1.5.0

setup_file() {
	load trainers/agents
	agents_setup_file
	"${CC:-cc}" -shared -fPIC -O -D_GNU_SOURCE -o "$BATS_FILE_TMPDIR/clock.so" -x c "$TRAINERS/clock.c.txt"
}

setup() {
	load trainers/agents
	agents_setup
	quick=(--report-timeout 60s --save-timeout 120s --join-timeout 120s --kill-after 1s)
	head -c 8 /dev/zero >clock
	export CLOCK_OFFSET=$PWD/clock
	interruptible=(env "LD_PRELOAD=$BATS_FILE_TMPDIR/clock.so")
}

teardown() { agents_teardown; }

# clock_is SECONDS: the wall clock of all agents is so much ahead.
clock_is() {
	local i bytes=''
	for ((i = 0; i < 8; i++)); do bytes+=$(printf '\\x%02x' $((($1 >> (8 * i)) & 255))); done
	printf '%b' "$bytes" | dd of=clock conv=notrunc status=none
}

@test "CS-3: the wall clock jumps by an hour, both ways, while training and while agreeing: nothing happens" {
	for hours in 1 -1; do
		count_agents 3 --steps 100000 --step-ms 5 --save-ms 300
		until_true 10 all_begun 3 $((attempt * 5))
		clock_is $((hours * 3600))
		# As many steps as it likes: nobody thinks that anybody is dead or late.
		at=$(tail -n 1 "job/log/$attempt.0")
		until_true 10 begun 0 $((${at#* } + 100))
		[ "$(keys "" | sed 's|.*/00000./||; s|/.*||' | sort -u | xargs)" = "OPEN TASK" ]
		kill -TERM "${pids[0]}"
		until_true 10 has RUN_TO_CHECKPOINT
		clock_is 0
		all_ended 42
		saved_together 3
		attempt=$((attempt + 1))
		nothing_left
	done
}

@test "CS-3: with a grace period, the wall clock an hour off on one machine and jumping: saved in time" {
	# An hour is much longer; and so much time is left for a machine that stalls. The final round begins
	# at once, because a save is said to have taken long before.
	options=(--grace 11s)
	preempt-store put run/job/MEASURE '{"save_ms": 3000}' >/dev/null
	for hours in 1 -1; do
		count_agents 2 --steps 100000 --step-ms 5
		until_true 10 all_begun 2 $((attempt * 5))
		clock_is $((hours * 3600))
		kill -TERM "${pids[0]}"
		until_true 10 has TERMINATED_WORKER
		clock_is 0
		all_ended 42
		saved_at_agreed 0 1
		attempt=$((attempt + 1))
	done
}

@test "CS-3: the last line of a command, and the end of an agent, do not wait for the wall clock" {
	preempt-run -- true
	"${interruptible[@]}" preempt-run --task 0 --tasks 1 -- sh -c 'setsid sleep 3 & echo last >&2; exit 3' 2>err.0 3>&- &
	pids=($!)
	clock_is -3600
	ended 0 3
	grep -q last err.0
	nothing_left
}
