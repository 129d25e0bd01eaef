#!/bin/sh
# SPDX-License-Identifier: MIT
# A task prolog for Slurm (TaskProlog= in slurm.conf, or srun --task-prolog): a job that names no store gets a store
# that all nodes see. Slurm runs it as the user before each task and puts its lines "export NAME=VALUE" into the
# environment of the task; a line "print TEXT" goes to the output of the task.
#
#   PREEMPT_SHARED	a directory in which each user may make a directory (/shared/preempt)

[ -z "${PREEMPT_STORE-}" ] || exit 0
top=${PREEMPT_SHARED:-/shared/preempt}/$(id -un)
umask 077
if mkdir -p "$top"; then
	# A requeued job keeps its number, and therefore its store.
	echo "export PREEMPT_STORE=$top/$SLURM_JOB_ID.db"
else
	echo "print task-prolog: cannot make $top, so this job has no PREEMPT_STORE"
fi
