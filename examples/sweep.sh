#!/bin/bash
# SPDX-License-Identifier: MIT
# A hyper-parameter sweep: each combination is a command in a queue, which workers on this machine run.
# Workers on other machines that see the store may help (preempt-queue work).
#
#   examples/sweep.sh [TRAINER]
#
# The last line that TRAINER --width W --rate R prints begins with its loss; sweep.sh prints the best line.
# Files in $PREEMPT_ITEM_DIR are still there when TRAINER is started again: see sweep-train.sh. On TERM
# this script exits with 42. Started again, it continues: commands that were scheduled under a name
# (--once) are not scheduled again, and finished commands do not run again.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
trainer=$(realpath "${1:-$here/sweep-train.sh}")
export PREEMPT_STORE=${PREEMPT_STORE:-$PWD/sweep.db} PREEMPT_QUEUE=${PREEMPT_QUEUE:-sweep}

# The name has the rates: other rates are scheduled.
read -ra rates <<<"${RATES:-10 30 100 300}"
for width in ${WIDTHS:-8 16 32}; do
	printf '%s\n' "${rates[@]}" |
		preempt-queue schedule --lines --once "width-$width-rates-$(IFS=-; echo "${rates[*]}")" \
			--tag "width-$width" -- "$trainer" --width "$width" --rate {} >/dev/null
done

# On TERM the workers signal their commands, and give them back. bash runs a trap only while it waits.
# shellcheck disable=SC2046,SC2317 # numbers; called by the trap
leave() {
	kill -TERM $(jobs -pr) 2>/dev/null || :
	wait || :
	exit 42
}
trap leave TERM INT HUP
workers=()
for ((i = 0; i < ${WORKERS:-2}; i++)); do
	preempt-queue work --worker "$HOSTNAME-$i" --idle-exit 1s &
	workers+=($!)
done

preempt-queue join &
join=$!
code=0
wait "$join" || code=$?
wait "${workers[@]}" || :
[ "$code" = 0 ] || [ "$code" = 44 ] || exit "$code" # 44: a combination has failed; the others have results

preempt-queue list --json --state succeeded | sed -n 's/.*"id": *\([0-9]*\).*/\1/p' |
	while read -r id; do
		printf '%s (command %s)\n' "$(preempt-queue fetch "$id" | tail -n 1)" "$id"
	done | sort -g | head -n 1
exit "$code"
