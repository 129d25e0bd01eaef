# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# shellcheck disable=SC2034 # the tests use them
# A run of composed tasks, for claim.bats, ack.bats and composed.bats.

. "$BATS_TEST_DIRNAME/../support/programs.bash"

setup() {
	programs
	export PREEMPT_RUN=r
	agents=() boards=() tasks=1
}

teardown() {
	local pid
	for pid in "${started[@]}" "${agents[@]}"; do
		kill -KILL "$pid" 2>/dev/null || :
		wait "$pid" 2>/dev/null || :
	done
}

# Its first answer is the one that counts.
tell_all() { ! declare -F all_shown >/dev/null || all_shown; }

has_key() {
	preempt-store get -q "run/r/000001/$1" >/dev/null
}

deadline() {
	preempt-store get run/r/000001/DEADLINE | field utc
}

# join_one I [OPTION...]: task I joins; agents[I] stands for it.
join_one() {
	local task=$1
	shift
	PREEMPT_TASK=$task preempt-store join --pid "${agents[task]:-$$}" "$@"
}

# A process that stands for task I from now on.
stand_for() {
	sleep 1000 3>&- &
	agents[$1]=$!
	started+=("$!")
}

# join N: all tasks of a run of N join, each with a process that stands for it and a board.
join() {
	local task joins=()
	tasks=$1
	for ((task = 0; task < tasks; task++)); do
		stand_for "$task"
	done
	for ((task = 0; task < tasks; task++)); do
		PREEMPT_TASKS=$tasks join_one "$task" >"joined.$task" &
		joins+=($!)
	done
	wait "${joins[@]}" || return
	for ((task = 0; task < tasks; task++)); do
		boards[task]=$(sed -n 's/^export PREEMPT_DIR=//p' "joined.$task")
	done
}

# as I COMMAND...: as task I of the run that was joined.
as() {
	local -x PREEMPT_TASK=$1 PREEMPT_TASKS=$tasks
	local -x PREEMPT_DIR=${boards[$1]-} PREEMPT_AGENT=${agents[$1]-}
	shift
	"$@"
}

# at I STEP [NEXT]: the training process of task I says that it has finished so many steps.
at() {
	printf '%020d %020d\n' "$2" "${3:-$(($2 + 1))}" 1<>"${boards[$1]}/step"
}

# saves I STEP: it has saved.
saves() {
	printf '%020d\n' "$2" 1<>"${boards[$1]}/saved"
}

# Start preempt-watch in the background: out, err, $watch.
start_watch() {
	preempt-watch "$@" >out 2>err 3>&- &
	watch=$!
	started+=("$watch")
	eventually watch_is_ready
}

watch_is_ready() {
	local mask
	[ "$(cat "/proc/$watch/comm")" = preempt-watch ] || return
	mask=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$watch/status")
	((0x$mask & 1)) # HUP, when all others are caught
}

# agree_and_save STEP: all tasks stand one step before it, agree on it and save.
agree_and_save() {
	local task acks=()
	for ((task = 0; task < tasks; task++)); do
		at "$task" $(($1 - 1))
		as "$task" preempt-ack --report-timeout 60s >"agreed.$task" 3>&- &
		acks+=($!)
	done
	wait "${acks[@]}" || return
	for ((task = 0; task < tasks; task++)); do
		at "$task" "$1"
		saves "$task" "$1"
		as "$task" preempt-ack --saved || return
	done
}

# in_vain COMMAND...: it waits for what does not come, 124. Where the store has not answered in so short
# a time, it is asked with more of it.
# shellcheck disable=SC2154 # run sets them
in_vain() {
	local limit
	for limit in 500ms 15s 60s; do
		run --separate-stderr "$@" --timeout $limit
		[ "$status" = 75 ] || break
	done
	[ "$status" = 124 ] || { echo "$*: $status, not 124: $stderr" >&2; return 1; }
}

# store_held: a process takes the lock of the store, and stops.
store_held() {
	needs_store_file
	"${OUT:-$REPO/build/plain}/tests/support/hold_store" "$PREEMPT_STORE" held begin >/dev/null 3>&- &
	holder=$!
	started+=("$holder")
	eventually grep -q '^State:.T' "/proc/$holder/status"
}
