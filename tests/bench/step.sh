#!/bin/bash
# SPDX-License-Identifier: MIT
# step.sh [COUNT]: us per preempt_step when nothing is wrong, for each client, on a board in /dev/shm; the
# loop around it is in the number. Budgets (docs/design.md, section 8): bash 25, Python 5, C 2.
# Best of five: what it costs, not who else is on this machine.
set -euo pipefail

repo=$(cd "$(dirname "$0")/../.." && pwd)
out=${OUT:-$repo/build/plain}
bin=${BIN:-$repo/bin}
count=${1:-100000}
export CLIENT=$repo/lib/client

# shellcheck disable=SC2016
loop_bash='. "$CLIENT/preempt.sh"; preempt_step 0; from=${EPOCHREALTIME/[.,]/}
for ((s = 1; s <= $1; s++)); do preempt_step $s; done
to=${EPOCHREALTIME/[.,]/}; n=$(((to - from) * 100 / $1)); printf "%d.%02d\n" $((n / 100)) $((n % 100))'
# shellcheck disable=SC2016
loop_dash='. "$CLIENT/preempt.sh"; s=0; while [ $s -le $1 ]; do preempt_step $s; s=$((s + 1)); done'
loop_python='
import os, sys, time
sys.dont_write_bytecode = True
sys.path.insert(0, os.environ["CLIENT"])
import preempt
n = int(sys.argv[1])
preempt.step(0)
start = time.perf_counter()
for s in range(1, n + 1):
    preempt.step(s)
print("%.2f" % ((time.perf_counter() - start) * 1e6 / n))'
# shellcheck disable=SC2016
loop_program='for ((s = 1; s <= $1; s++)); do preempt-step $s; done'

# timed COUNT COMMAND...: microseconds of all of it per step.
timed() {
	local from=${EPOCHREALTIME/[.,]/} n
	"${@:2}"
	n=$(((${EPOCHREALTIME/[.,]/} - from) * 100 / $1))
	printf '%d.%02d\n' $((n / 100)) $((n % 100))
}

row() { # NAME COMMAND...
	for _ in 1 2 3 4 5; do
		PREEMPT_DIR=$(mktemp -d /dev/shm/step.XXXXXX)
		export PREEMPT_DIR
		mkfifo "$PREEMPT_DIR/pause"
		"${@:2}"
		rm -r "$PREEMPT_DIR"
	done | sort -g | head -n 1 | xargs printf '%-14s %10s us\n' "$1"
}

row bash bash -c "$loop_bash" bash "$count"
row dash timed "$count" dash -c "$loop_dash" dash "$count"
row Python python3 -c "$loop_python" "$count"
row C "$out/tests/bench/step" "$count"
PATH=$bin:$PATH row preempt-step timed 500 bash -c "$loop_program" bash 500
