# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# The queue: sourced by bench.sh.
# shellcheck disable=SC2154 # what bench.sh has set: work, out, repeat

export PREEMPT_QUEUE=bench
per_second() { calc "$1 / $2" %.0f; }

title "100,000 commands are scheduled from a file (seconds)"
seq 100000 >"$work/lines"
figure=$(seconds preempt-queue schedule --lines -- echo {} <"$work/lines")
budget schedule "$figure"
row "commands in a second" "$(per_second 100000 "$figure")"

count=300
title "$count of true, scheduled and run (commands in a second)"
export PREEMPT_QUEUE=run
figure=$(seconds eval "seq $count | preempt-queue schedule --lines -- true; preempt-queue work -q --slots 16 --idle-exit 0")
row "preempt-queue, one worker, 16 at a time" "$(per_second $count "$figure")"
left=$(preempt-queue list --json --state succeeded | wc -l)
[ "$left" = $count ] || wrong "succeeded of $count" "$left"
if has parallel; then
	export PARALLEL_HOME=$work/parallel
	mkdir "$PARALLEL_HOME"
	: >"$PARALLEL_HOME/will-cite"
	peer=$(seconds eval "seq $count | parallel -j16 --joblog $work/joblog true")
	row "GNU parallel -j16 (not synced)" "$(per_second $count "$peer")"
fi

title "one exchange of a worker: hand in one, take the next (milliseconds, median, in turns)"
mkdir -m 700 "$work/exchange"
declare -A exchange=()
while read -r name figure; do exchange[$name]=$figure; done < <("$out/tests/bench/exchange" "$work/exchange" 200)
row "100 wait" "${exchange[few]}"
for name in waiting over; do
	budget "exchange-$name" "$(ratio "${exchange[$name]}" "${exchange[few]}")"
done
rm -r "$work/exchange"
