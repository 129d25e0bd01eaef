# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# shellcheck disable=SC2015,SC2034,SC2154 # A && B || fail; the tests use the variables; code_of sets code
# What the tests of preempt-run share: agents are started, watched through the store and their boards, and
# nothing of them may be left.
#
#   load ../support/agents
#   setup() { agents; }
#   teardown() { end_agents; }     this file has both, for who needs no more

bats_require_minimum_version 1.5.0
. "$(dirname "${BASH_SOURCE[0]}")/programs.bash"

setup() { agents; }
teardown() { end_agents; }

agents() {
	programs "$BATS_TEST_TMPDIR/store/db"
	mkdir -m 700 job boards store
	CLIENTS=$REPO/lib/client TRAINERS=$REPO/tests/support/trainers COUNT=$OUT/tests/support/trainers/count
	export CLIENTS TRAINERS COUNT XDG_RUNTIME_DIR=$PWD/boards PREEMPT_RUN=job AGENTS_MARK=$BATS_TEST_TMPDIR
	# No task is given up who is only slow; where one has to be, the test says less.
	quick=(--report-timeout 60s --save-timeout 120s --join-timeout 120s --kill-after 1s)
	patience=120 attempt=1 options=() pids=()
}

end_agents() {
	local pid
	[ -n "${BATS_TEST_COMPLETED:-}" ] || show_all >&2
	for pid in $(ours); do
		kill -CONT "$pid"
		kill -KILL "$pid"
	done 2>/dev/null
	for pid in "${pids[@]}"; do wait "$pid"; done 2>/dev/null
	return 0
}

# ---- To start agents ----

# A shell ignores INT in what it starts in the background.
interruptible=(env '--default-signal=INT,QUIT')

# agent I N [OPTION...] -- COMMAND...: task I of N under an agent; its output in out.I and err.I.
agent() {
	local i=$1 n=$2
	shift 2
	"${interruptible[@]}" preempt-run --task "$i" --tasks "$n" "${quick[@]}" "${options[@]}" "$@" \
		>"out.$i" 2>"err.$i" 3>&- &
	pids[i]=$!
}

# alone [OPTION...] -- COMMAND...: all tasks under one agent; its output in out.0 and err.0.
alone() {
	"${interruptible[@]}" preempt-run "${quick[@]}" "${options[@]}" "$@" >out.0 2>err.0 3>&- &
	pids=($!)
}

# agents_of N COMMAND...: N agents of one task each. What all are given is in $options.
agents_of() {
	local i n=$1
	shift
	for ((i = 0; i < n; i++)); do agent "$i" "$n" -- "$@"; done
}

# count_agents N [COUNT OPTION...]: the same with the trainer count.
count_agents() { agents_of "$1" "$COUNT" --dir job "${@:2}"; }

# one_agent L [COUNT OPTION...]: L tasks of the trainer count under one agent.
one_agent() { alone -n "$1" -- "$COUNT" --dir job "${@:2}"; }

# The pid of the command of agent I, a process of this name.
command_of() { pgrep -P "${pids[$1]}" "${2:-count}"; }

# ---- To see how they end ----

# ended I CODE: agent I ends with CODE (or with one of CODE|CODE).
ended() {
	code_of "${pids[$1]}" || return
	if [[ "|$2|" != *"|$code|"* ]]; then
		echo "agent $1: exit code $code, expected $2"
		return 1
	fi
}

all_ended() { # CODE
	local i
	for i in "${!pids[@]}"; do ended "$i" "$1" || return; done
}

# What every task said, for the reader of a failure.
show_all() {
	local file
	for file in err.* starts.*; do [ ! -s "$file" ] || tail -n 100 "$file" | sed "s/^/$file: /"; done
	preempt-store list --values "run/$PREEMPT_RUN/" 2>/dev/null || :
}

# told_by TASKS TEXT: the agents of these tasks say it, and no other does.
told_by() { [ "$(grep -lF -- "$2" err.? | sed 's/err\.//' | xargs)" = "$1" ]; }

# ours: the processes with our mark in their environment, or forked by one that has.
ours() (
	mark=$AGENTS_MARK
	unset AGENTS_MARK
	grep -lsz "^AGENTS_MARK=$mark\$" /proc/[0-9]*/environ | sed 's|/proc/\([0-9]*\)/.*|\1|'
)

none_left() { [ -z "$(ours)" ]; }

nothing_left() {
	eventually none_left || return
	local left
	left=$(ls -A boards)
	[ -z "$left" ] || { echo "left: $left"; return 1; }
}

# ---- What is in the store ----

key() { preempt-store get "run/$PREEMPT_RUN/$(printf %06d "$attempt")/$1" 2>/dev/null; }
has() { key "$1" >/dev/null; }
# field KEY NAME: a number or word in the value of a key.
field() { key "$1" | sed -n "s/.*\"$2\": *\"\{0,1\}\([^,\"}]*\).*/\1/p"; }
keys() { preempt-store list "run/$PREEMPT_RUN/$(printf %06d "$attempt")/$1"; }
count_keys() { keys "$1" | wc -l; }

# saved_together N: one decision in this attempt, one claim; every task saved once, at its step (which is in
# $saved_step), no task began a step after it (I1, I2, I3), and the checkpoint is complete.
saved_together() {
	local i
	saved_step=$(field RUN_TO_CHECKPOINT step)
	[ -n "$saved_step" ] || { echo "no step was decided"; return 1; }
	[ "$(count_keys LAST_RUN_TO_CHECKPOINT/)" = 0 ] || { echo "more than one round"; return 1; }
	for ((i = 0; i < $1; i++)); do
		[ "$(field "SAVED/1/$i" step)" = "$saved_step" ] && [ -e "job/ckpt/$saved_step/$i" ] &&
			has "RECEIVED_SIGNAL_RUN_TO_CHECKPOINT_$i" &&
			[ "$(grep -c "^saved $saved_step\$" "job/log/$attempt.$i")" = 1 ] || { echo "task $i"; return 1; }
		awk -v s="$saved_step" '$1 == "begin" && $2 >= s { print FILENAME ": " $0 ", after " s; bad = 1 }
			END { exit bad }' "job/log/$attempt.$i" || return
	done
}

# ---- What the trainers have written ----

# begun TASK STEP: this task has begun to train at STEP or later.
begun() {
	local at
	at=$(grep -s '^begin ' "job/log/$attempt.$1" | tail -n 1)
	[ -n "$at" ] && ((${at#begin } >= $2))
}

all_begun() { # N STEP
	local i
	for ((i = 0; i < $1; i++)); do begun "$i" "$2" || return; done
}

# trains_on TASK [STEPS]: it trains so many steps more.
trains_on() {
	local at
	at=$(tail -n 1 "job/log/$attempt.$1")
	eventually begun "$1" $((${at#* } + ${2:-20}))
}

# counted N STEPS: all have ended, and no step was lost or done twice.
counted() {
	local i
	for ((i = 0; i < $1; i++)); do
		[ "$(cat "job/end/$i")" = "$2" ] || { echo "task $i counted $(cat "job/end/$i"), not $2"; return 1; }
	done
}
