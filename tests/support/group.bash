# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# shellcheck disable=SC2034 # the tests use them
# A run of tasks that join by hand, one small program at a time.

. "$BATS_TEST_DIRNAME/../support/programs.bash"

setup() {
	programs
	export PREEMPT_RUN=r
	agents=() boards=() joins=() tasks=1
}

teardown() {
	started+=("${agents[@]}")
	end_started
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

# stand_for I...: a process that stands for task I from now on.
stand_for() {
	local task
	for task; do
		sleep 1000 3>&- &
		agents[task]=$!
		started+=("$!")
	done
}

# end_agent I: what stands for task I is killed.
end_agent() {
	kill -KILL "${agents[$1]}"
	eventually gone "${agents[$1]}"
}

# joining I [OPTION...]: task I joins, as process joins[I] in the background: joined.I, err.I.
joining() {
	local task=$1
	shift
	PREEMPT_TASK=$task PREEMPT_TASKS=$tasks exec preempt-store join --pid "${agents[task]}" --timeout 10m "$@" \
		>"joined.$task" 2>"err.$task" 3>&- &
	joins[task]=$!
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

# serve I COMMAND...: as task I of attempt 1, in the background; $! is its process.
serve() {
	PREEMPT_TASK=$1 PREEMPT_TASKS=$tasks PREEMPT_DIR=${boards[$1]} PREEMPT_AGENT=${agents[$1]} \
		PREEMPT_ATTEMPT=1 "${@:2}" 3>&- &
	started+=("$!")
}

# at I STEP [NEXT]: the training process of task I says that it has finished so many steps.
at() {
	printf '%020d %020d\n' "$2" "${3:-$(($2 + 1))}" 1<>"${boards[$1]}/step"
}

# saves I STEP: it has saved.
saves() {
	printf '%020d\n' "$2" 1<>"${boards[$1]}/saved"
}

# start_watch [OPTION...]: preempt-watch in the background, with the signals of a terminal: out, err, $watch.
start_watch() {
	env --default-signal=HUP,INT,QUIT,PIPE preempt-watch "$@" >out 2>err 3>&- &
	watch=$!
	started+=("$watch")
	eventually watch_is_ready
}

# It catches HUP, and before that all that it is sent here.
watch_is_ready() {
	[ "$(cat "/proc/$watch/comm")" = preempt-watch ] && catches "$watch" 1
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

# store_held [WHERE]: a process takes the lock of the store, and stops.
store_held() {
	needs_store_file
	"$OUT/tests/support/hold_store" "$PREEMPT_STORE" held "${1:-begin}" >/dev/null 3>&- &
	holder=$!
	started+=("$holder")
	eventually is_stopped "$holder"
}
