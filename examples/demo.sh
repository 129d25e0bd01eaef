#!/bin/bash
# SPDX-License-Identifier: MIT
# A demonstration: four tasks train a small language model on the licence texts of this machine, once
# without interruption, and once with a TERM to a random task in the middle, then started again. At the
# end loss and model must be the same, bit for bit.
set -euo pipefail

here=$(cd "$(dirname "$0")/.." && pwd)
PATH=$here/bin:$here/build/plain/examples:$PATH
steps=${DEMO_STEPS:-600}
work=$(mktemp -d "${TMPDIR:-/tmp}/preempt-demo.XXXXXX")
unset "${!PREEMPT_@}" "${!SLURM_@}"
export PREEMPT_STORE=${1:-$work/store.db}

cleanup() {
	local job
	for job in $(jobs -p); do kill "$job" 2>/dev/null || :; done
	wait 2>/dev/null || :
	rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

bold=$'\e[1m' plain=$'\e[0m'
[ -t 1 ] || bold='' plain=''
say() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
run() {
	printf '$ %s\n' "$*"
	"$@"
}
# Show only the milestones of what the training prints.
milestones() { grep --line-buffered -E '^step [0-9]*00 |^saved|^resumed|^done|^counter'; }
attempt_of() { preempt-store list "run/$1/" | sed -n 's|^run/[^/]*/0*\([1-9][0-9]*\)/OPEN$|\1|p' | tail -1; }

say "1. Four tasks, not interrupted: the reference"
mkdir "$work/reference" "$work/run"
run preempt-run -q --run reference -n 4 -- \
	train --dir "$work/reference" --steps "$steps" --save-every 200 --done-model "$work/reference/model" | milestones

say "2. The same, as four agents; the machine of one task is about to go away"
pids=()
# Slow steps, so that the training is not over before the notice comes.
for task in 0 1 2 3; do
	preempt-run -q --run demo --task $task --tasks 4 -- \
		train --dir "$work/run" --steps "$steps" --step-ms 15 --save-every 200 --done-model "$work/run/model" \
		> >(milestones) &
	pids+=($!)
done
echo "\$ preempt-run -q --run demo --task 0..3 --tasks 4 -- train --dir $work/run ... &"
# Wait for the middle of the training, when the first periodic checkpoint exists.
until [ "$(ckpt-rotate latest "$work/run/ckpt" --step --or 0 2>/dev/null || echo 0)" -ge 200 ]; do
	kill -0 "${pids[0]}" 2>/dev/null || break
	sleep 0.05
done
victim=$((RANDOM % 4))
run kill -TERM "${pids[victim]}" || { # the agent of task $victim
	echo "demo: the training was over before its notice; try DEMO_STEPS=$((steps * 4))" >&2
	exit 1
}
codes=()
for pid in "${pids[@]}"; do
	code=0
	wait "$pid" || code=$?
	codes+=("$code")
done

attempt=$(printf '%06d' "$(attempt_of demo)")
value() { preempt-store get "run/demo/$attempt/$1" 2>/dev/null || echo none; }
# member NAME: print that member of the JSON object on stdin, without quotes.
member() { sed -n 's/.*"'"$1"'":"\{0,1\}\([^",}]*\).*/\1/p'; }
say "What the store shows of that attempt"
printf '%-8s %s\n' noticed "task $victim" \
	claimed "by task $(value TERMINATED_WORKER | member task): $(value TERMINATED_WORKER | member source)" \
	agreed "to save at step $(value RUN_TO_CHECKPOINT | member step), tasks $(value RUN_TO_CHECKPOINT | member members)"
for task in 0 1 2 3; do
	acked=no
	preempt-store get "run/demo/$attempt/RECEIVED_SIGNAL_RUN_TO_CHECKPOINT_$task" >/dev/null 2>&1 && acked=yes
	printf 'task %d   acknowledged: %s, saved step %s in %s ms, exit code %s\n' $task $acked \
		"$(value SAVED/1/$task | member step)" "$(value SAVED/1/$task | member ms)" "${codes[task]}"
done
printf '%-8s %s\n' closed "$(value CLOSED | member state)"
for code in "${codes[@]}"; do
	[ "$code" = 42 ] || { echo "demo: every task should have left with 42 (saved: run me again)" >&2; exit 1; }
done
run ckpt-rotate list "$work/run/ckpt"

say "3. 42 means: run me again"
run preempt-run -q --run demo -n 4 -- \
	train --dir "$work/run" --steps "$steps" --save-every 200 --done-model "$work/run/model" | milestones

say "4. Is it the same model?"
run cmp "$work/reference/model" "$work/run/model" || { echo "demo: the models differ" >&2; exit 1; }
echo "bit-identical: $(sha256sum <"$work/run/model" | cut -c1-16)..."

say "5. A wrong setup is refused, with advice: a batch shell is not a task"
code=0
run env SLURM_JOB_ID=7 SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_JOB_NUM_NODES=4 preempt-run -- train || code=$?
[ $code = 2 ] || { echo "demo: expected exit code 2, got $code" >&2; exit 1; }
echo "exit code $code"
say "All as it should be."
