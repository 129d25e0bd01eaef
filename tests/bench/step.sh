# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# A step of a training without a notice, for each client, on a board in memory; the loop around it is in the number.
# Best of five: what it costs, not who else is on this machine. Sourced by bench.sh.
# shellcheck disable=SC2154 # what bench.sh has set: here, out, quiet

export CLIENT=$here/lib/client
# shellcheck disable=SC2016
loop_bash='. "$CLIENT/preempt.sh"; preempt_step 0; for ((s = 1; s <= $1; s++)); do preempt_step $s; done'
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

# timed COUNT COMMAND...: microseconds of all of it per step.
timed() {
	local from=${EPOCHREALTIME/./}
	"${@:2}"
	calc "($((${EPOCHREALTIME/./} - from))) / $1" '%.2f\n'
}
# best_of_five COMMAND...: of the numbers that it prints.
best_of_five() {
	for _ in 1 2 3 4 5; do
		PREEMPT_DIR=$(mktemp -d "$quiet/step.XXXXXX")
		export PREEMPT_DIR
		mkfifo "$PREEMPT_DIR/pause"
		"$@"
		rm -r "$PREEMPT_DIR"
	done | least
}

title "preempt_step without a notice (microseconds)"
budget step-bash "$(best_of_five timed 20000 bash -c "$loop_bash" bash 20000)"
budget step-python "$(best_of_five python3 -c "$loop_python" 20000)"
budget step-c "$(best_of_five "$out/tests/bench/step" 20000)"
