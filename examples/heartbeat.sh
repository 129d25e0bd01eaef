#!/bin/bash
# SPDX-License-Identifier: MIT
# heartbeat.sh COMMAND [ARG...]: run a training whose tasks do not agree when to save, but must not hang when one of
# them is lost. Start one for each task, with PREEMPT_RUN, PREEMPT_TASK and PREEMPT_TASKS set (or by
# a launcher that preempt-run knows). Exits with 44, "run me again", when another task has died.
set -u

[ $# -gt 0 ] || { echo "usage: $0 COMMAND [ARG...]" >&2; exit 2; }
exports=$(preempt-store join --pid $$ --no-board) || exit
eval "$exports"

# shellcheck disable=SC2086 # HEARTBEAT_OPTIONS may be several words
preempt-heartbeat ${HEARTBEAT_OPTIONS-} -- "$@"
code=$?
# Leaving tells the others of a failure. The last task that leaves closes the attempt.
exit "$(preempt-store leave --code "$code" || echo "$code")"
