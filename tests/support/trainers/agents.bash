# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# What the tests of preempt-run share: agents are started, watched through the store and their boards,
# and nothing of them may be left. Set BIN and OUT to test another build.

. "$BATS_TEST_DIRNAME/../support/programs.bash"

agents_setup_file() {
	BIN=$(realpath -m "${BIN:-$REPO/bin}") OUT=$(realpath -m "${OUT:-$REPO/build/plain}")
	CLIENTS=$REPO/lib/client TRAINERS=$REPO/tests/support/trainers COUNT=$OUT/tests/support/trainers/count
	[ -x "$COUNT" ] || make -s -C "$REPO" "${COUNT#"$REPO/"}" >&2
	PATH=$BIN:$PATH
	export REPO BIN OUT CLIENTS TRAINERS COUNT PATH
	# Leaks are looked for when a program ends by itself; the tests kill many.
	export PYTHONDONTWRITEBYTECODE=1
}

agents_setup() {
	cd "$BATS_TEST_TMPDIR" || exit
	mkdir -m 700 job boards store
	store_for_test "$PWD/store/db"
	export XDG_RUNTIME_DIR=$PWD/boards PREEMPT_RUN=job
	export AGENTS_MARK=$BATS_TEST_TMPDIR
	quick=(--report-timeout 1s --save-timeout 8s --join-timeout 30s --kill-after 1s)
	attempt=1
	pids=()
}

# What every task said, for the reader of a failure.
tell_all() {
	local file
	for file in err.*; do [ ! -s "$file" ] || sed "s/^/$file: /" "$file"; done
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
	until_true 2 none_left
	local left
	left=$(ls -A boards)
	[ -z "$left" ] || { echo "left: $left"; return 1; }
}

agents_teardown() {
	local pid
	for pid in $(ours); do
		kill -CONT "$pid"
		kill -KILL "$pid"
	done 2>/dev/null
	for pid in "${pids[@]}"; do wait "$pid"; done 2>/dev/null
	return 0
}

# A shell ignores INT in what it starts in the background.
interruptible=(env '--default-signal=INT,QUIT')

# agent I N [OPTION...] -- COMMAND...: task I of N under an agent; its output in out.I and err.I.
agent() {
	local i=$1 n=$2
	shift 2
	"${interruptible[@]}" preempt-run --task "$i" --tasks "$n" "${quick[@]}" "$@" >"out.$i" 2>"err.$i" 3>&- &
	pids[i]=$!
}

# count_agents N [COUNT OPTION...]: N agents with the C trainer; agent options in $options.
options=()
count_agents() {
	local i n=$1
	shift
	for ((i = 0; i < n; i++)); do agent "$i" "$n" "${options[@]}" -- "$COUNT" --dir job "$@"; done
}

# one_agent L [COUNT OPTION...]: L tasks under one agent.
one_agent() {
	local l=$1
	shift
	"${interruptible[@]}" preempt-run -n "$l" "${quick[@]}" "${options[@]}" -- "$COUNT" --dir job "$@" >out.0 2>err.0 3>&- &
	pids=($!)
}

# ended I CODE [SECONDS]: agent I ends with CODE (or with one of CODE|CODE).
ended() {
	local code=0
	until_true "${3:-20}" gone "${pids[$1]}"
	wait "${pids[$1]}" || code=$?
	if [[ "|$2|" != *"|$code|"* ]]; then
		echo "agent $1: exit code $code, expected $2"
		tell_all
		return 1
	fi
}

# all_ended CODE [SECONDS]
all_ended() {
	local i
	for i in "${!pids[@]}"; do ended "$i" "$1" "${2:-20}"; done
}

key() { preempt-store get "run/$PREEMPT_RUN/$(printf %06d "$attempt")/$1" 2>/dev/null; }
has() { key "$1" >/dev/null; }
# field KEY NAME: a number or word in the value of a key.
field() { key "$1" | sed -n "s/.*\"$2\": *\"\{0,1\}\([^,\"}]*\).*/\1/p"; }
keys() { preempt-store list "run/$PREEMPT_RUN/$(printf %06d "$attempt")/$1"; }
count_keys() { keys "$1" | wc -l; }

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

started() { [ -s "job/log/$attempt.$1" ]; }

# agreed: the step of the newest decision.
agreed() {
	local round
	round=$(newest_round)
	if [ "$round" = 1 ]; then field RUN_TO_CHECKPOINT step; else field "LAST_RUN_TO_CHECKPOINT/$round" step; fi
}

# saved_at_agreed TASK...: these saved at the step of the newest decision and began none after it.
saved_at_agreed() {
	local i step round
	step=$(agreed) round=$(newest_round)
	[ -n "$step" ]
	for i; do
		[ "$(field "SAVED/$round/$i" step)" = "$step" ] || { echo "task $i: no save at $step"; return 1; }
		[ -e "job/ckpt/$step/$i" ]
		never_after "$i" "$step"
	done
}

# saved_together N: one decision in this attempt, one claim; every task saved at its step, no task
# began a step after it (I1, I2, I3), and the checkpoint is complete.
saved_together() {
	local n=$1 i step
	step=$(field RUN_TO_CHECKPOINT step)
	[ -n "$step" ]
	[ "$(count_keys LAST_RUN_TO_CHECKPOINT/)" = 0 ]
	for ((i = 0; i < n; i++)); do
		[ "$(field "SAVED/1/$i" step)" = "$step" ] || { echo "task $i: no save at $step"; return 1; }
		[ "$(grep -c "^saved $step\$" "job/log/$attempt.$i")" = 1 ]
		[ -e "job/ckpt/$step/$i" ]
		has "RECEIVED_SIGNAL_RUN_TO_CHECKPOINT_$i"
		never_after "$i" "$step"
	done
	# shellcheck disable=SC2034 # for the test
	saved_step=$step
}

never_after() { # TASK STEP
	awk -v s="$2" '$1 == "begin" && $2 >= s { print FILENAME ": " $0 ", after " s; bad = 1 }
		END { exit bad }' "job/log/$attempt.$1"
}

# counted N STEPS: all have ended, and no step was lost or done twice.
counted() {
	local i
	for ((i = 0; i < $1; i++)); do
		[ "$(cat "job/end/$i")" = "$2" ] || { echo "task $i counted $(cat "job/end/$i"), not $2"; return 1; }
	done
}

# The pid of the command of agent I, a process of this name.
command_of() { pgrep -P "${pids[$1]}" "${2:-count}"; }

# stop_agent I: STOP, but not while it holds the store's lock, for no task could go on then.
stop_agent() {
	kill -STOP "${pids[$1]}"
	until preempt-store get --timeout 200ms "run/$PREEMPT_RUN/LAST" >/dev/null 2>&1; do
		kill -CONT "${pids[$1]}"
		sleep 0.002
		kill -STOP "${pids[$1]}"
	done
}

# The newest round, and the step decided in it.
newest_round() {
	local last
	last=$(keys LAST_RUN_TO_CHECKPOINT/ | sed 's|.*/||' | sort -n | tail -n 1)
	echo "${last:-1}"
}
