# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# The queue, beside GNU parallel, task-spooler and nq: sourced by bench.sh. None of these syncs
# anything to the disk, and none shares its queue with another machine.
# shellcheck disable=SC2154 # what bench.sh has set: here, work, out, repeat

export TS_SOCKET=$work/tsp.socket TMPDIR=$work NQDIR=$work/nq PARALLEL_HOME=$work/parallel
mkdir "$NQDIR" "$PARALLEL_HOME"
: >"$PARALLEL_HOME/will-cite"
queue=0

# absent PROGRAM NAME: a row that says so, where it is.
absent() {
	has "$1" && return 1
	row "$2" "not installed"
}

new_queue() { export PREEMPT_QUEUE=bench$((++queue)); }
# fill COUNT: schedules the command `true` COUNT times.
fill() { seq "$1" | preempt-queue schedule --lines -- true >/dev/null; }

per_second() { calc "$1 / $2" %.0f; }

title "a command is scheduled, as a whole process (milliseconds, median)"
new_queue
figure=$("$repeat" 40 preempt-queue schedule -- true)
row "preempt-queue schedule (synced)" "$figure"
peer=$("$repeat" 40 "$out/tests/bench/bare_put" "$work/queue-bare.db" "key{}" x)
row "  in synced transactions of a bare C program" "$(ratio "$figure" "$peer")"
if ! absent tsp tsp; then
	tsp -S 1
	row "tsp (not synced)" "$("$repeat" 40 tsp true)"
	tsp -w
	tsp -K
fi
absent nq nq || row "nq (not synced)" "$("$repeat" 40 nq -q true)"

title "100,000 commands are scheduled from a file (seconds)"
new_queue
seq 100000 >"$work/lines"
figure=$(seconds preempt-queue schedule --lines -- echo {} <"$work/lines")
budget schedule "$figure"
row "commands in a second" "$(per_second 100000 "$figure")"

# start_after COMMAND...: milliseconds until what it starts has begun, median of 15.
start_after() {
	local from i
	for ((i = 0; i < 15; i++)); do
		rm -f "$work/began"
		from=${EPOCHREALTIME/./}
		# shellcheck disable=SC2016 # for the bash that is started
		"$@" bash -c 'echo ${EPOCHREALTIME/./} >"$0.part"; mv "$0.part" "$0"' "$work/began" >/dev/null
		until [ -e "$work/began" ]; do sleep 0.01; done
		calc "$(($(<"$work/began") - from)) / 1000" '%.2f\n'
		sleep 0.1 # the worker is idle again
	done | median
}

title "from schedule's start to the command's start, with an idle worker (milliseconds, median)"
new_queue
preempt-queue work -q 2>/dev/null &
worker=$!
figure=$(start_after preempt-queue schedule --)
row "preempt-queue (two synced transactions)" "$figure"
kill "$worker"
wait "$worker" || :
if ! absent tsp tsp; then
	tsp -S 1
	row "tsp" "$(start_after tsp)"
	tsp -K
fi
absent nq nq || row "nq" "$(start_after nq -q)"

# drain WORKERS SLOTS: until all is done.
drain() {
	local i pids=()
	for ((i = 0; i < $1; i++)); do
		preempt-queue work -q --worker "w$i" --slots "$2" --idle-exit 0 &
		pids+=($!)
	done
	wait "${pids[@]}"
}
spool() {
	local i
	tsp -S "$2"
	for ((i = 0; i < $1; i++)); do tsp true; done
	while tsp -l | grep -q -e queued -e running; do sleep 0.05; done
	tsp -K
}
queue_up() {
	local i
	for ((i = 0; i < $1; i++)); do nq -q true; done
	nq -w
}

count=300
title "$count of true, scheduled and run (commands in a second)"
for slots in 1 16; do
	new_queue
	figure=$(seconds eval "fill $count; drain 1 $slots")
	row "preempt-queue, one worker, $slots at a time" "$(per_second $count "$figure")"
	left=$(preempt-queue list --json --state succeeded | wc -l)
	[ "$left" = $count ] || wrong "succeeded of $count" "$left"
	if ! absent parallel "GNU parallel"; then
		peer=$(seconds eval "seq $count | parallel -j$slots --joblog $work/joblog true")
		row "GNU parallel -j$slots" "$(per_second $count "$peer")"
		row "  ratio" "$(ratio "$peer" "$figure")"
	fi
	if ! absent tsp tsp; then
		peer=$(seconds spool $count "$slots")
		row "tsp -S $slots" "$(per_second $count "$peer")"
		row "  ratio" "$(ratio "$peer" "$figure")"
	fi
done
new_queue
figure=$(seconds eval "fill $count; drain 4 4")
row "preempt-queue, four workers, 4 at a time each" "$(per_second $count "$figure")"
if ! absent nq nq; then
	peer=$(seconds queue_up 100)
	row "nq, one at a time" "$(per_second 100 "$peer")"
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
