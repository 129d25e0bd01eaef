# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# shellcheck disable=SC2034 # the tests use them
# A queue in a store of its own, and its workers, for the tests of preempt-queue. Workers are known
# by their names; what a test starts is ended by its pid.

. "$BATS_TEST_DIRNAME/../support/programs.bash"

setup() {
	# In a directory of its own, which a test may move away.
	mkdir -m 700 "$BATS_TEST_TMPDIR/store"
	programs "$BATS_TEST_TMPDIR/store/q.db"
	declare -gA workers=() asides=()
	# Of eventually, s: all machines come to it some day, and who hangs never does.
	patience=180
	# Fast enough for a test, slow enough for a loaded machine: that a worker was killed is seen, not
	# waited for. Whatever cloud this is.
	pace=(--period 300ms --limit 30 --source signal:TERM)
	write_items
}

teardown() {
	local file patience=60
	end_started
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
	# stubborn: begun.ID appears, and it runs until it is killed.
	cat >stubborn <<-'ITEM'
		#!/bin/bash
		trap '' TERM
		exec ./gated never
	ITEM
	chmod +x gated item often stubborn
	: >ran
}

# ---- What runs in the background ----

# worker NAME [OPTION...]: in the background; NAME.err is what it says, workers[NAME] its pid.
worker() {
	local name=$1
	shift
	# A shell lets what it runs in the background ignore INT.
	env --default-signal=INT,QUIT preempt-queue work --worker "$name" "${pace[@]}" "$@" >>"$name.out" 2>>"$name.err" 3>&- &
	workers[$name]=$!
	started+=("$!")
}

# elsewhere NAME [VARIABLE=VALUE]: a worker on another machine, of which only the host's name differs.
# shellcheck disable=SC2016 # text for sh
elsewhere() {
	local name=$1
	unshare --uts sh -c 'hostname "$1.test" && shift && exec env "$@"' sh "$name" "${2-_=}" \
		preempt-queue work --worker "$name" "${pace[@]}" >"$name.out" 2>"$name.err" 3>&- &
	workers[$name]=$!
	started+=("$!")
}

# worker_ends NAME CODE: by itself, and with this code.
worker_ends() {
	code_of "${workers[$1]}" || return
	[ "$code" = "$2" ] || { echo "worker $1 ended with $code, not $2"; tail -n 20 "$1.err"; return 1; } >&2
}

# worker_killed NAME...: -9, all at once.
worker_killed() {
	local name pids=()
	for name; do pids+=("${workers[$name]}"); done
	kill -KILL "${pids[@]}"
	wait "${pids[@]}" 2>/dev/null || :
}

# noticed NAME: the worker gets a notice, gives back what it runs, and ends.
noticed() {
	kill -TERM "${workers[$1]}"
	worker_ends "$1" 42
}

# aside NAME COMMAND...: anything else in the background; NAME.out and NAME.err are what it says.
aside() {
	local name=$1
	shift
	"$@" >"$name.out" 2>"$name.err" 3>&- &
	asides[$name]=$!
	started+=("$!")
}

# ended NAME, runs NAME: whether what runs aside has ended.
ended() { gone "${asides[$1]}"; }
runs() { ! ended "$1"; }

# aside_ends NAME CODE
aside_ends() {
	code_of "${asides[$1]}" || return
	[ "$code" = "$2" ] || { echo "$1 ended with $code, not $2"; cat "$1.err"; return 1; } >&2
}

# ---- What is asked ----

# expect CODE PROGRAM...: $out is its stdout, $err its stderr. One that waits for ever is ended.
expect() {
	local want=$1 code=0
	shift
	out=$(timeout 240 "$@" 2>expect.err) || code=$?
	err=$(<expect.err)
	[ "$code" = "$want" ] || { echo "$*: $code, not $want: $out; $err" >&2; return 1; }
}

# says REGEX...: each is in a line of what was expected last.
says() {
	local regex
	for regex; do
		grep -q -e "$regex" <<<"$out"$'\n'"$err" || { echo "not said: $regex; but: $out; $err" >&2; return 1; }
	done
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

# what ID NAME...: members of what is known of the command; nothing where it has none.
what() {
	preempt-queue show "$1" --json | python3 -c '
import json, sys
c = json.load(sys.stdin)
print(*("" if c.get(name) is None else c[name] for name in sys.argv[1:]))' "${@:2}"
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

# The states of all commands, in the order of their ids: "waiting failed ".
states() {
	preempt-queue list | awk 'NR > 1 { printf "%s ", $2 }'
}

# count STATE: how many commands are in it.
count() {
	preempt-queue list --json | grep -c "\"state\":\"$1\"" || :
}

counts() { [ "$(count "$1")" = "$2" ]; }

# begun ID [START]: the gated command has begun (this start of it).
begun() { [ -s "begun.$1${2:+.$2}" ]; }

# have_begun N: so many gated commands.
have_begun() {
	local files=(begun.*.1)
	[ -e "${files[0]}" ] && [ "${#files[@]}" -ge "$1" ]
}

# ran_once ID...: these, and no others, and each exactly once.
ran_once() {
	diff <(sort -n ran) <([ $# = 0 ] || printf '%s\n' "$@" | sort -n)
}
