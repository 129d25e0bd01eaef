#!/bin/bash
# SPDX-License-Identifier: MIT
# composed.sh COMMAND [ARG...]: what preempt-run does for one task, out of the small programs. Start one
# for each task, with PREEMPT_RUN, PREEMPT_TASK and PREEMPT_TASKS set (or by a launcher that preempt-run
# knows). COMMAND has the loop with preempt_step in it, and saves with ckpt-rotate.
exports=$(preempt-store join) || exit
eval "$exports"

# Our notice becomes the claim of all; every round is agreed on; the command trains.
preempt-watch --follow --source signal:TERM,USR1 | preempt-claim --from - >/dev/null &
preempt-ack --serve &
preempt-heartbeat --with "$(jobs -p)" -- "$@" &

# A notice sent to this script alone is for all of them. It interrupts wait.
trap 'kill $(jobs -p)' TERM USR1
while kill -0 $!; do wait $!; done 2>/dev/null
trap '' TERM USR1
wait $!
exit "$(preempt-store leave --code $?)"
