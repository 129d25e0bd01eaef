#!/bin/sh
# SPDX-License-Identifier: MIT
# A prolog for Slurm (Prolog= in slurm.conf): a node on which the shared filesystem is not mounted, or on
# which a store would lose rows, is drained before a job runs there. No PATH, no Slurm commands, three
# seconds at most. Any other trouble, such as a full disk, is the job's own affair.
#
#   PREEMPT_PROLOG_STORE	a store where the jobs have theirs; it need not exist, its directory must,
#				on a filesystem that other machines see. With ?lock=fcntl it is also
#				demanded that byte-range locks reach the other nodes: those of a mount
#				with nolock or localflock do not
#   PREEMPT_PROLOG_PROGRAM	preempt-store, if it is not in /usr/local/bin

"${PREEMPT_PROLOG_PROGRAM:-/usr/local/bin/preempt-store}" doctor --quick --shared \
	--store "${PREEMPT_PROLOG_STORE:-/shared/preempt/any.db}"
[ $? != 1 ]
