#!/bin/bash
# SPDX-License-Identifier: MIT
# composed.sh COMMAND [ARG...]: what preempt-run does for one task, out of the small programs. Start one
# for each task, with PREEMPT_RUN, PREEMPT_TASK and PREEMPT_TASKS set (or by a launcher that preempt-run
# knows). COMMAND has the loop with preempt_step in it, and saves with ckpt-rotate.
[ $# -gt 0 ] || { echo "usage: $0 COMMAND [ARG...]" >&2; exit 2; }
exports=$(preempt-store join) || exit
eval "$exports"

# A notice becomes a claim for all tasks; preempt-ack agrees on each round; COMMAND trains. A notice that is
# sent to this process alone is passed on to the other programs; its exit code is that of the task.
preempt-watch --follow --source "signal:$PREEMPT_SIGNALS" | preempt-claim --from - >/dev/null &
preempt-ack --serve &
exec preempt-heartbeat --with "$(jobs -p)" --leave -- "$@"
