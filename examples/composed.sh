#!/bin/bash
# SPDX-License-Identifier: MIT
# composed.sh COMMAND [ARG...]: what preempt-run does for one task, out of the small programs. Start one
# for each task, with PREEMPT_RUN, PREEMPT_TASK and PREEMPT_TASKS set (or by a launcher that preempt-run
# knows). COMMAND has the loop with preempt_step in it, and saves with ckpt-rotate.
[ $# -gt 0 ] || { echo "usage: $0 COMMAND [ARG...]" >&2; exit 2; }
exports=$(preempt-store join) || exit
eval "$exports"

# A notice becomes a claim for all tasks; preempt-ack agrees on each round; COMMAND trains.
preempt-watch --follow --source "signal:$PREEMPT_SIGNALS" | preempt-claim --from - >/dev/null &
preempt-ack --serve &
pieces=$(jobs -p)
# Pass on, to all of these programs, a notice that was sent to this script alone.
IFS=, read -ra signals <<<"$PREEMPT_SIGNALS"
trap 'kill $pieces' "${signals[@]}"
exec 3>&1 4< <(trap : "${signals[@]}"; preempt-heartbeat --with "$pieces" -- "$@" >&3; echo $?)

# Read COMMAND's exit code from a pipe: bash's wait can lose it when a trapped signal comes at its end.
code=''
while read -t 1 -ru 4 digits; ended=$? code+=$digits; ((ended > 128)); do :; done
trap '' "${signals[@]}"
exit "$(preempt-store leave --code "${code:-137}")"
