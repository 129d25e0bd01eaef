# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# The queue: sourced by bench.sh.
# shellcheck disable=SC2154 # what bench.sh has set: work

export PREEMPT_QUEUE=bench
per_second() { calc "$1 / $2" %.0f; }

title "100,000 commands are scheduled from a file (seconds)"
seq 100000 >"$work/lines"
figure=$(seconds preempt-queue schedule --lines -- echo {} <"$work/lines")
budget schedule "$figure"
row "commands in a second" "$(per_second 100000 "$figure")"
