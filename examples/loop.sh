#!/bin/bash
# SPDX-License-Identifier: MIT
# The smallest training in bash that saves and stops together with the other tasks, and resumes from there:
#
#   PREEMPT_SH=lib/client/preempt.sh preempt-run --run loop -n 2 --checkpoints ck -- examples/loop.sh ck 1000
[ $# = 2 ] || { echo "usage: $0 CHECKPOINTS STEPS" >&2; exit 2; }
# shellcheck source=/dev/null
. "${PREEMPT_SH:-/usr/local/share/preempt/preempt.sh}"
top=$1 steps=$2
step=0 state=0 newest=
if [ -n "${PREEMPT_RESUME-}" ]; then
	read -r step state <"$PREEMPT_RESUME/task-$PREEMPT_TASK/state" || exit
	newest=$step # the step of the newest checkpoint
fi

# Each task has its own directory in the checkpoint, which is complete when the last task has committed.
save() {
	local directory
	[ "$step" != "$newest" ] || return 0
	directory=$(ckpt-rotate begin "$top" "$step" --sharded) &&
		echo "$step $state" >"$directory/state" &&
		ckpt-rotate commit "$top" "$step" --sharded >/dev/null
}

while ((step < steps)); do # step: the number of finished steps
	preempt_step "$step" || { save && preempt_saved "$step"; } || exit
	state=$(((state * 31 + step) % 1000003))
	sleep 0.01
	((step += 1))
done
echo "task $PREEMPT_TASK: $state"
