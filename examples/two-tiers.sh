#!/bin/bash
# SPDX-License-Identifier: MIT
# A training on one node that saves to the node's own disk, which is fast. A loop copies the newest
# checkpoint to the shared filesystem, where the next node finds it:
#
#   sbatch examples/two-tiers.sh ./train.sh ARGUMENT...
#
# The training commits its checkpoints in $NEAR and starts from $RESUME, which may be empty.
#SBATCH --nodes=1 --requeue --open-mode=append
set -u

[ $# -gt 0 ] || { echo "usage: sbatch two-tiers.sh COMMAND [ARG...]" >&2; exit 2; }
export NEAR=${NEAR:-${TMPDIR:-/tmp}/preempt-$SLURM_JOB_ID/ck} FAR=${FAR:-$SLURM_SUBMIT_DIR/ck}

# A new node does not have this directory, nor the one above it.
mkdir -p "$NEAR" || exit
RESUME=$(ckpt-rotate latest "$NEAR" "$FAR" --or none) || exit
[ "$RESUME" != none ] || RESUME=
export RESUME

# Copy the newest, then make room: remove what has a verified copy, except the newest.
bring() {
	ckpt-rotate copy -q "$NEAR" "$FAR" --move
}
while sleep "${EVERY:-300}"; do [ ! -d "$NEAR" ] || bring; done &
copier=$!

"$@"
code=$?

# Copy the last checkpoint. 75: another copy is still running, or a disk cannot be reached now.
kill "$copier"
if [ -d "$NEAR" ]; then
	for _ in {1..60}; do
		bring
		[ $? = 75 ] || break
		sleep 1
	done
fi
exit "$code"
