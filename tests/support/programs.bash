# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# What all tests of programs share:
#   load ../support/programs
#   setup() { programs; }
#   teardown() { end_started; }
#
# On a loaded machine with sanitizers everything takes many times as long: wait for a condition, never for a time.

REPO=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

# programs [STORE]: the programs of $BIN are in PATH, other built files in $OUT; the test has an empty directory,
# a store of its own (STORE: its file) and no job. started: pids that end_started ends.
programs() {
	cd "$BATS_TEST_TMPDIR" || return
	PATH=$(realpath -m "${BIN:-$REPO/bin}"):$PATH
	OUT=$(realpath -m "${OUT:-$REPO/build/plain}")
	store_for_test "${1:-$PWD/s.db}"
	export OUT XDG_RUNTIME_DIR=$PWD
	started=()
}

# Only our own children: the number of another that has ended may be another process's by now.
end_started() {
	local pid ours
	ours=" $(jobs -pr | tr '\n' ' ')"
	for pid in "${started[@]}"; do
		[[ $ours = *" $pid "* ]] || continue
		kill -KILL "$pid" 2>/dev/null || :
		wait "$pid" 2>/dev/null || :
	done
}

# answers CODE COMMAND...: stdout and stderr apart.
answers() {
	local code=$1
	shift
	run -"$code" --separate-stderr "$@"
}

# ---- Waiting ----

# Wait until a command succeeds, 60 s at most, or as many as $patience says. Of what never comes true, tell_all
# tells more, where that is defined.
eventually() {
	local end=$((SECONDS + ${patience:-60}))
	until "$@" 2>/dev/null; do
		if ((SECONDS >= end)); then
			echo "never came true: $*" >&2
			! declare -F tell_all >/dev/null || tell_all >&2
			return 1
		fi
		sleep 0.02
	done
}

# until_true SECONDS COMMAND...: what takes so long at most on a machine that has time for us; it is given
# four times as long, and at least a minute.
until_true() {
	local patience=$((4 * $1 > 60 ? 4 * $1 : 60))
	shift
	eventually "$@"
}

# gone PID: it has ended, whether or not its parent has noticed.
gone() {
	local state
	state=$(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$1/status" 2>/dev/null) || :
	[ -z "$state" ] || [ "$state" = Z ]
}

# is_stopped PID
is_stopped() { grep -qs '^State:.[Tt]' "/proc/$1/status"; }

# catches PID N, ignores PID N: it has a handler for signal number N, or ignores it.
catches() { signal_mask SigCgt "$@"; }
ignores() { signal_mask SigIgn "$@"; }
signal_mask() {
	local mask
	mask=$(sed -n "s/^$1:[[:space:]]*//p" "/proc/$2/status")
	((0x$mask >> ($3 - 1) & 1))
}

# code_of PID: our child ends; its exit code is in $code.
# shellcheck disable=SC2034 # for the caller
code_of() {
	eventually gone "$1" || return
	code=0
	wait "$1" || code=$?
}

# stopped PID...: send STOP, but not while one holds the lock of the store, which would stop all processes.
stopped() {
	kill -STOP "$@"
	until preempt-store list --timeout 3s none/ >/dev/null 2>&1; do
		kill -CONT "$@"
		sleep 0.01
		kill -STOP "$@"
	done
}

# ---- The store ----

# store_for_test FILE: export PREEMPT_STORE, and unset all other variables PREEMPT_* and SLURM_*. PREEMPT_TEST_STORE
# is a URL with %s in place of a new name ("etcd://127.0.0.1:2379/test/%s"); if it is not set, FILE is the store.
store_for_test() {
	local url=${PREEMPT_TEST_STORE:-$1}
	unset "${!PREEMPT_@}" "${!SLURM_@}"
	export PREEMPT_STORE=${url//\%s/bats-$$-$BATS_TEST_NUMBER}
}

# Replace the store by an empty one.
another_store() {
	case $PREEMPT_STORE in
	etcd://*) PREEMPT_STORE=${PREEMPT_STORE//bats-/bats-a} ;;
	*) rm -rf "$PREEMPT_STORE"* ;;
	esac
}

# Call it in a test that breaks, moves or measures the file of a store.
needs_store_file() {
	[[ $PREEMPT_STORE != etcd://* ]] || skip "this is about the file of a store"
}

# field NAME: of the JSON object on stdin.
field() {
	python3 -c 'import json,sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"
}
