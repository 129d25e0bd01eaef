#!/bin/bash
# SPDX-License-Identifier: MIT
# composed.sh COMMAND [ARG...]: the small programs put together into what preempt-run does for one
# task. Start one for each task, with PREEMPT_RUN, PREEMPT_TASK and PREEMPT_TASKS set (or by a
# launcher that preempt-run knows). COMMAND has the loop with preempt_step in it.
#
# Every piece answers again what it has answered before, so one that was killed is started again; and
# none outlives this script, not even if that is killed: the kernel ends it then (setpriv).
set -u

exports=$(preempt-store join --pid $$) || exit
eval "$exports"

# A notice of our own is a file: it is still there for a watch that is started again.
trap 'echo TERM >"$PREEMPT_DIR/notice"' TERM

# Our own notice becomes the group's claim.
announce() {
	preempt-watch --source "file:$PREEMPT_DIR/notice" |
		setpriv --pdeathsig KILL -- preempt-claim --from - >/dev/null &
	claimer=$!
}

# For each round: wait until the group wants a checkpoint; hold the training and agree where it saves;
# say that it has saved, wait for the others, let it run on or leave.
round=1
pieces=("preempt-watch --source group:1" "preempt-ack" "preempt-ack --saved --wait")
piece=0
agent() {
	pieces[0]="preempt-watch --source group:$round"
	# shellcheck disable=SC2086 # several words
	setpriv --pdeathsig KILL -- ${pieces[piece]} >/dev/null &
	agent=$!
}

# The training cannot go on: TERM, and 10 s later KILL, to all of it.
end_training() {
	kill -TERM -- "-$training"
	timeout 10 tail --pid="$training" -f /dev/null
	kill -KILL -- "-$training"
} 2>/dev/null

# The agent's piece has ended with $1: which comes next?
advance() {
	case $piece:$1 in
	*:42 | *:43 | *:44 | *:93) leave_with=$1 && end_training && return ;;
	0:1) agent= && return ;; # the attempt is over: nobody can ask for anything any more
	*:1 | 2:0) piece=0 round=$((round + 1)) ;; # 1: this task had no part in it
	*:0) piece=$((piece + 1)) ;;
	*) sleep 0.2 ;; # killed, or the store could not be asked: once more
	esac
	agent
}

gone() {
	[ -n "$1" ] && ! kill -0 "$1" 2>/dev/null
}

setpriv --pdeathsig KILL -- setsid -- "$@" &
training=$!
leave_with=
announce
agent
until gone "$training"; do
	if gone "$agent"; then
		wait "$agent"
		advance $?
	fi
	# 1: it was killed or its watch was, or somebody else has claimed.
	if gone "$claimer"; then
		wait "$claimer" || preempt-watch --once --source group >/dev/null 2>&1 || announce
		gone "$claimer" && claimer=
	fi
	# A sleep without a process; `wait -n` would miss what ends between two calls of it.
	IFS= read -rt 0.05 _ <>"$PREEMPT_DIR/pause"
done
trap '' TERM # it must not end what says goodbye
wait "$training"
code=${leave_with:-$?}
# shellcheck disable=SC2086 # there may be none
kill $claimer $agent 2>/dev/null
exit "$(preempt-store leave --code "$code" || echo "$code")"
