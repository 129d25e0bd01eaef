#!/bin/bash
# SPDX-License-Identifier: MIT
# A hyper-parameter sweep: each combination is a command in a queue, and some workers of this machine
# run them; more, on other machines that see the store, help when they like (preempt-queue work).
#
#   examples/sweep.sh [TRAINER]
#
# TRAINER --width W --rate R prints its loss, and more if it likes, as its last line. What it keeps in
# $PREEMPT_ITEM_DIR is still there when it is started again: see sweep-train.sh. Prints the best.
# Ended by TERM or by a reboot, this script leaves with 42, and goes on when it is started again: what
# was scheduled under a name (--once) is not scheduled again, and what is done is done.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
trainer=$(realpath "${1:-$here/sweep-train.sh}")
export PREEMPT_STORE=${PREEMPT_STORE:-$PWD/sweep.db} PREEMPT_QUEUE=${PREEMPT_QUEUE:-sweep}

# A combination that fails is a result, too: the others go on. Other rates are another name.
read -ra rates <<<"${RATES:-10 30 100 300}"
for width in ${WIDTHS:-8 16 32}; do
	printf '%s\n' "${rates[@]}" |
		preempt-queue schedule --lines --once "width-$width-rates-$(IFS=-; echo "${rates[*]}")" \
			--keep-going --tag "width-$width" -- "$trainer" --width "$width" --rate {} >/dev/null
done

# A shell hears a signal only while it waits. The workers then tell their commands, and give them back.
# shellcheck disable=SC2046,SC2317 # numbers; by the trap
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
[ "$code" -le 1 ] || exit "$code" # 1: some have failed

preempt-queue list --json --state succeeded | sed -n 's/.*"id": *\([0-9]*\).*/\1/p' |
	while read -r id; do
		printf '%s (command %s)\n' "$(preempt-queue fetch "$id" | tail -n 1)" "$id"
	done | sort -g | head -n 1
exit "$code"
