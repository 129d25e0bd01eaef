# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# shellcheck disable=SC2034 # the tests use them
# A queue in a store of its own, and its workers, for the tests of preempt-queue. Workers are known
# by their names; what a test starts is ended by its pid.

. "$BATS_TEST_DIRNAME/../support/programs.bash"

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	PATH=${BIN:-$REPO/bin}:$PATH
	# In a directory of its own, which a test may move away.
	mkdir -m 700 store
	store_for_test "$PWD/store/q.db"
	export XDG_RUNTIME_DIR=$PWD
	declare -gA workers=()
	started=()
	# Of eventually, s: all machines come to it some day, and who hangs never does.
	patience=180
	# Fast enough for a test, slow enough for a loaded machine: that a worker was killed is seen, not
	# waited for. Whatever cloud this is.
	pace=(--period 300ms --limit 30 --source signal:TERM)
	write_items
}

teardown() {
	local pid file patience=60 running
	running=" $(jobs -pr | tr '\n' ' ')"
	# Stopped ones, too. The number of one that has ended may be another process's by now.
	for pid in "${workers[@]}" "${started[@]}"; do
		[[ $running != *" $pid "* ]] || kill -KILL "$pid" 2>/dev/null || :
		wait "$pid" 2>/dev/null || :
	done
	# What they ran ends with them, a moment later.
	for file in begun.*.*; do
		[ ! -s "$file" ] || eventually gone "$(<"$file")"
	done
}

# Commands for the queue. All append what they say in one write.
write_items() {
	# gated GATE: begun.ID appears, waits for the file GATE, then writes its id to "ran".
	cat >gated <<-'ITEM'
		#!/bin/bash
		echo $$ >"begun.$PREEMPT_ITEM_ID"
		echo $$ >"begun.$PREEMPT_ITEM_ID.$PREEMPT_ITEM_ATTEMPT"
		until [ -e "$1" ]; do sleep 0.02; done
		echo "$PREEMPT_ITEM_ID" >>ran
	ITEM
	# ran: writes its id to "ran".
	cat >item <<-'ITEM'
		#!/bin/bash
		echo "$PREEMPT_ITEM_ID" >>ran
	ITEM
	# often CODE N: ends with CODE in its first N starts, then as item.
	cat >often <<-'ITEM'
		#!/bin/bash
		echo start >>"$PREEMPT_ITEM_DIR/starts"
		[ "$(wc -l <"$PREEMPT_ITEM_DIR/starts")" -gt "$2" ] || exit "$1"
		echo "$PREEMPT_ITEM_ID" >>ran
	ITEM
	chmod +x gated item often
	: >ran
}

# worker NAME [OPTION...]: in the background; NAME.err is what it says, workers[NAME] its pid.
worker() {
	local name=$1
	shift
	# A shell lets what it runs in the background ignore INT.
	env --default-signal=INT,QUIT preempt-queue work --worker "$name" "${pace[@]}" "$@" >>"$name.out" 2>>"$name.err" 3>&- &
	workers[$name]=$!
}

# aside NAME COMMAND...: anything else in the background; NAME.code is its exit code.
aside() {
	local name=$1
	shift
	{
		code=0
		"$@" >"$name.out" 2>"$name.err" || code=$?
		echo "$code" >"$name.code.new"
		mv "$name.code.new" "$name.code"
	} 3>&- &
	started+=("$!")
}

# gone PID: of a worker or what it runs. A process that knows nothing of our store only has its number.
gone() {
	local state
	grep -qzsFx "PREEMPT_STORE=$PREEMPT_STORE" "/proc/$1/environ" || return 0
	state=$(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$1/status" 2>/dev/null) || :
	[ -z "$state" ] || [ "$state" = Z ]
}

# worker_ends NAME CODE: by itself, and with this code.
worker_ends() {
	local code=0
	eventually gone "${workers[$1]}" || return
	wait "${workers[$1]}" || code=$?
	unset "workers[$1]"
	[ "$code" = "$2" ] || { echo "worker $1 ended with $code, not $2"; tail -n 20 "$1.err"; return 1; } >&2
}

# worker_killed NAME...: -9, all at once.
worker_killed() {
	local name pids=()
	for name; do pids+=("${workers[$name]}"); done
	kill -KILL "${pids[@]}"
	for name; do
		wait "${workers[$name]}" 2>/dev/null || :
		unset "workers[$name]"
	done
}

# aside_ends NAME CODE
aside_ends() {
	eventually [ -e "$1.code" ] || return
	[ "$(<"$1.code")" = "$2" ] || { echo "$1 ended with $(<"$1.code"), not $2"; cat "$1.err"; return 1; } >&2
}

# schedule ID_VARIABLE [OPTION...] -- COMMAND...
schedule() {
	local -n into=$1
	shift
	into=$(preempt-queue schedule "$@")
}

# schedule_many N [OPTION...] -- COMMAND...: the same command N times; ids are in the array ids.
schedule_many() {
	local n=$1
	shift
	mapfile -t ids < <(yes . | head -n "$n" | preempt-queue schedule --lines "$@")
	[ "${#ids[@]}" = "$n" ]
}

# what ID NAME: a member of what is known of the command; nothing where it has none.
what() {
	preempt-queue show "$1" --json | python3 -c \
		'import json,sys; v = json.load(sys.stdin).get(sys.argv[1]); print("" if v is None else v)' "$2"
}

# is ID STATE
is() {
	preempt-queue show "$1" --json | grep -q "\"state\":\"$2\""
}

# are STATE ID...
are() {
	local id state=$1
	shift
	for id; do is "$id" "$state" || { echo "$id is $(what "$id" state), not $state" >&2; return 1; }; done
}

# have_begun N: so many gated commands.
have_begun() {
	local files=(begun.*.1)
	[ -e "${files[0]}" ] && [ "${#files[@]}" -ge "$1" ]
}

# How many commands are in this state.
count() {
	preempt-queue list --json | grep -c "\"state\":\"$1\"" || :
}

counts() { [ "$(count "$1")" = "$2" ]; }

# begun ID [START]: the gated command has begun (this start of it).
begun() { [ -s "begun.$1${2:+.$2}" ]; }

# ran_once ID...: these, and no others, and each exactly once.
ran_once() {
	diff <(sort -n ran) <([ $# = 0 ] || printf '%s\n' "$@" | sort -n)
}

# expect CODE PROGRAM...: what it says is in $said. One that waits for ever is ended.
expect() {
	local want=$1 code=0
	shift
	said=$(timeout 240 "$@" 2>&1) || code=$?
	[ "$code" = "$want" ] || { echo "$*: $code, not $want: $said" >&2; return 1; }
}

says() { grep -q -e "$1" <<<"$said" || { echo "not said: $1; but: $said" >&2; return 1; }; }
