#!/bin/sh
# SPDX-License-Identifier: MIT
# A prolog for Slurm (Prolog= in slurm.conf): a node on which the shared filesystem is not mounted, or on
# which a store would lose rows, is drained before a job runs there. This script needs no PATH and no
# Slurm commands, and takes three seconds at most. Other errors, such as a full disk, are left to the job.
#
#   PREEMPT_PROLOG_STORE	a store in a directory where jobs have theirs. The directory must exist,
#				on a filesystem that other machines see
#   PREEMPT_PROLOG_PROGRAM	preempt-store, if it is not in /usr/local/bin

"${PREEMPT_PROLOG_PROGRAM:-/usr/local/bin/preempt-store}" doctor --quick --shared \
	--store "${PREEMPT_PROLOG_STORE:-/shared/preempt/any.db}"
case $? in
0 | 65 | 75 | 77) ;; # safe, or not known: the disk is full, or root may not write there
*) exit 1 ;;         # not safe for a store, or the program or the directory is not there
esac
