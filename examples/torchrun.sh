#!/bin/bash
# SPDX-License-Identifier: MIT
# torchrun on one machine: when it is preempted, all ranks save at one step, and torchrun exits with 42.
# Started again, they resume from that step.
#
#   RANKS=8 examples/torchrun.sh examples/ddp.py ck 100000
#
# On several machines start it once on each, with --store on a filesystem that all see,
# --task and --tasks for preempt-run, and --nnodes and --rdzv_endpoint instead of --standalone.
set -eu
[ $# -ge 2 ] || { echo "usage: $0 SCRIPT CHECKPOINTS [ARG...]" >&2; exit 2; }
mkdir -p "$2"

# No --max_restarts for torchrun: it would start the ranks again by itself, in an attempt that is over.
exec preempt-run --run "${PREEMPT_RUN:-ddp}" --ranks "${RANKS:-2}" --checkpoints "$2" --savers chief --complete chief -- \
	torchrun --standalone --nproc_per_node "${RANKS:-2}" "$@"
