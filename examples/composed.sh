#!/bin/bash
# SPDX-License-Identifier: MIT
# composed.sh COMMAND [ARG...]: what preempt-run does for one task, out of the small programs. Start one
# for each task, with PREEMPT_RUN, PREEMPT_TASK and PREEMPT_TASKS set (or by a launcher that preempt-run
# knows). COMMAND has the loop with preempt_step in it, and saves with ckpt-rotate.
[ $# -gt 0 ] || { echo "usage: $0 COMMAND [ARG...]" >&2; exit 2; }
exports=$(preempt-store join) || exit
eval "$exports"

# Our notice becomes the claim of all; every round is agreed on; the command trains.
preempt-watch --follow --source signal:TERM,USR1 | preempt-claim --from - >/dev/null &
preempt-ack --serve &
pieces=$(jobs -p)
# A notice sent to this script alone is for all of them.
trap 'kill $pieces' TERM USR1
exec 3>&1 4< <(trap : TERM USR1; preempt-heartbeat --with "$pieces" -- "$@" >&3; echo $?)

# Its exit code comes by read: bash's wait can lose that of a child that ends when a trapped signal comes.
code=''
while read -t 1 -ru 4 digits; ended=$? code+=$digits; ((ended > 128)); do :; done
trap '' TERM USR1
exit "$(preempt-store leave --code "${code:-137}")"
