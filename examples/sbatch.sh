#!/bin/bash
# SPDX-License-Identifier: MIT
# A training job on four nodes that saves when it is preempted, and runs again:
#
#   sbatch examples/sbatch.sh ./train.sh ARGUMENT...
#
#SBATCH --nodes=4 --ntasks-per-node=1
#SBATCH --requeue --open-mode=append --signal=USR1@120

# On a filesystem that all nodes see. One file for each run.
export PREEMPT_STORE=${PREEMPT_STORE:-$SLURM_SUBMIT_DIR/preempt-$SLURM_JOB_ID.db}

# Slurm itself cannot know whether the job is to run again: one that ends by itself while it is being
# preempted is completed for Slurm, whatever its exit code. exec: signals for the batch shell
# (--signal=B:USR1@120) reach preempt-requeue, too.
exec preempt-requeue -- srun preempt-run -- "$@"
