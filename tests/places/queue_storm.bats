#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A queue under workers that are killed, stopped and given notices at random (tests/support/storm), and
# a worker that comes back after its command was given to another. Ten thousand commands:
# queue_storm_many.bats. Full disks: queue_disk.bats. Shared filesystems: queue_shared.bats.
# takes: 30

# shellcheck disable=SC2016 # inner shells expand
bats_require_minimum_version 1.5.0
load ../support/programs

setup() {
	PATH=${BIN:-$BATS_TEST_DIRNAME/../../bin}:$PATH
	unset "${!PREEMPT_@}" "${!SLURM_@}"
	mkdir -m 700 "$BATS_TEST_TMPDIR/store"
	cd "$BATS_TEST_TMPDIR" || return
	export PREEMPT_STORE=$BATS_TEST_TMPDIR/store/q.db
	pids=()
}
teardown() {
	local pid
	# Not those that have ended: their numbers may be another process's by now.
	for pid in $(jobs -pr); do kill -KILL "$pid" 2>/dev/null || :; done
	"$BATS_TEST_DIRNAME/../support/forget-stores" "$BATS_TEST_TMPDIR"
}

# storm OPTION...: all was right; says under which seed, and what happened.
storm() {
	run -0 timeout 560 "$BATS_TEST_DIRNAME/../support/storm" --store "$PREEMPT_STORE" "$@"
	echo "$output" | grep '^#' >&3
}

@test "workers killed, stopped and noticed at random: each of 300 commands has one result, the right one" {
	storm --commands 300 --workers 6 --every 150
}

@test "schedule and join killed at random: all that was acknowledged is there, once" {
	storm --commands 1200 --workers 4 --slots 4 --schedulers 2 --kinds schedule,join --every 50
	[[ $output =~ 'schedule killed after it had printed ids '[1-9] && $output =~ 'join killed '[1-9] ]]
}

start_worker() {
	preempt-queue work --worker "$1" --source signal:USR1 --period 200ms --limit 5 --idle-exit 0 --joblog "joblog.$1" "${@:2}" \
		2>"err.$1" 3>&- &
	pids+=($!)
}
running_on() { [[ $(preempt-queue show 1 --json) == *'"running"'*"\"worker\":\"$1\""* ]]; }
over() { preempt-queue fetch 1 >fetched; }

@test "WQ-10: a zombie, stopped for longer than its lease, does not overwrite its replacement's result" {
	local size
	# Short, and in a file.
	for size in 20 50000; do
		rm -rf store/* go joblog.* && mkdir -p store
		[ "$(preempt-queue schedule --max-attempts 5 -- sh -c \
			'until [ -e go ]; do sleep 0.02; done; yes "$PREEMPT_WORKER" | head -c "$1"' sh $size)" = 1 ]
		start_worker zombie
		eventually running_on zombie
		stopped "${pids[-1]}"
		: >go # its command ends, and it has a result that it has not handed in
		start_worker other
		eventually over
		grep -q '^other$' fetched
		[ "$(wc -c <fetched)" = $size ]
		kill -CONT "${pids[-2]}"
		wait "${pids[-2]}" "${pids[-1]}"
		grep -q 'declared dead' err.zombie
		preempt-queue fetch 1 | cmp - fetched
		# Nor does it write it down, or leave it.
		run -0 cat joblog.other
		[ "${#lines[@]}" = 2 ]
		run -0 cat joblog.zombie
		[ "${#lines[@]}" = 1 ]
		[ $size = 20 ] || [ "$(find store/q.db.queue/default/out -type f | wc -l)" = 1 ]
		[[ $(preempt-queue show 1 --json) == *'"starts":2'*'"lost":1'* ]]
	done
}
