#!/bin/bash
# SPDX-License-Identifier: MIT
# sweep-train.sh --width W --rate R: a small trainer for sweep.sh. It saves checkpoints into
# $PREEMPT_ITEM_DIR, resumes from there, and on TERM saves and exits with 42, "run me again". Prints "LOSS width W rate R".
set -euo pipefail

[ "${1-} ${3-}" = "--width --rate" ] || { echo "usage: $0 --width W --rate R" >&2; exit 2; }
width=$2 rate=$4
checkpoint=${PREEMPT_ITEM_DIR:-.}/checkpoint
step=0 error=1000000

save() {
	echo "$step $error" >"$checkpoint.part"
	mv "$checkpoint.part" "$checkpoint"
}
stop=
trap 'stop=yes' TERM

if [ -e "$checkpoint" ]; then
	read -r step error <"$checkpoint"
	echo "resumed at step $step" >&2
fi
while ((step < ${STEPS:-50})); do
	sleep "${STEP_SECONDS:-0.02}" & # in place of the work of a step
	wait $! || wait $! || : # twice: TERM interrupts the first wait
	error=$((error - error * rate / 1000))
	step=$((step + 1))
	[ -z "$stop" ] || { save; exit 42; }
	((step % 10 != 0)) || save
done
rm -f "$checkpoint"
echo "$((error + 1000000 / width)) width $width rate $rate"
