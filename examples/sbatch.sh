#!/bin/bash
# SPDX-License-Identifier: MIT
# A training job on four nodes that saves when it is preempted, and runs again:
#
#   sbatch examples/sbatch.sh ./train.sh ARGUMENT...
#
#SBATCH --nodes=4 --ntasks-per-node=1
#SBATCH --requeue --open-mode=append --signal=USR1@120

[ $# -gt 0 ] || { echo "usage: sbatch sbatch.sh COMMAND [ARG...]" >&2; exit 2; }

# On a filesystem that all nodes see. One file for each run.
export PREEMPT_STORE=${PREEMPT_STORE:-$SLURM_SUBMIT_DIR/preempt-$SLURM_JOB_ID.db}

# preempt-requeue asks Slurm to run the job again: Slurm itself treats a job that ends while it is being
# preempted as completed, whatever its exit code. With exec, signals to the batch shell
# (--signal=B:USR1@120) reach preempt-requeue, too.
exec preempt-requeue -- srun preempt-run -- "$@"
