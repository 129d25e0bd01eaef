#!/bin/bash
# SPDX-License-Identifier: MIT
# The smallest training in bash that saves and stops together with the other tasks, and resumes from there:
#
#   PREEMPT_SH=lib/client/preempt.sh preempt-run --run loop -n 2 -- examples/loop.sh ckpt 1000
# shellcheck disable=SC2015,SC2086 # if saved cannot be told, leave, too; numbers have no blanks
[ $# = 2 ] || { echo "usage: $0 CHECKPOINTS STEPS" >&2; exit 2; }
# shellcheck source=/dev/null
. "${PREEMPT_SH:-/usr/local/share/preempt/preempt.sh}"
ckpt=$1 total=$2 every=100 state=0

train() {
    state=$(((state * 31 + $1) % 1000003))
    sleep 0.01
}
write_state() { echo "$state" >"$1/state"; }
read_state() { read -r state <"$1/state"; }

save() {                                     # each task writes its own part of the checkpoint
    [ "$1" != "$saved" ] || return 0
    d=$(ckpt-rotate begin "$ckpt" $1 --sharded) && write_state "$d" &&
        ckpt-rotate commit "$ckpt" $1 --sharded >/dev/null && saved=$1
}

saved=$(ckpt-rotate latest "$ckpt" --step --or '') || exit
if [ -n "$saved" ]; then
    d=$(ckpt-rotate latest "$ckpt") && read_state "$d/task-$PREEMPT_TASK" || exit
fi
start=${saved:-0}
for ((s = start; s < total; s++)); do            # s steps are finished
    if ! preempt_step $s || ((s > start && s % every == 0)); then
        save $s && preempt_saved $s || exit
    fi
    train $s
done
echo "task $PREEMPT_TASK: $state"
