#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A queue under a real Slurm: the tasks of an array are its workers, and are preempted in the middle of
# commands. Needs root, slurm-wlm and munge.
# asan: no (mostly Slurm's time; queue_work.bats has it)
# shellcheck disable=SC2016,SC2030,SC2031

bats_require_minimum_version 1.5.0
load ../support/slurm

setup_file() {
	root=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	PATH=${BIN:-$root/bin}:$PATH
	export PATH root
	slurm_start --grace 15 --kill-wait 3
}

teardown_file() {
	slurm_stop
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	mkdir -m 700 s
	mkdir in
	export PREEMPT_STORE=$PWD/s/q.db PREEMPT_QUEUE=fan-out
	join=
}

teardown() {
	[ -z "$join" ] || kill "$join" 2>/dev/null || :
	if [ -z "${BATS_TEST_COMPLETED:-}" ]; then
		head -n 1000 shown ./*.out fan-out.err >&2 || :
		preempt-queue list >&2 || :
		preempt-queue workers >&2 || :
	fi
	slurm_dump_logs
	slurm_cancel_all
}

count_of() { preempt-queue list --json --state "$1" | wc -l; }
# Until the first is scheduled, there is no store.
running() { [ "$(count_of running 2>/dev/null)" = "$1" ]; }
begun() { [ "$(wc -l 2>/dev/null <starts)" = "$1" ]; }
all_restarted() { [ "$(scontrol show job -o | grep 'JobName=fan-out.sbatch ' | grep -c ' Restarts=1 ')" = 4 ]; }
# What show says of a command: value_of ID MEMBER.
value_of() {
	preempt-queue show "$1" --json | sed -n 's/.*"'"$2"'": *\([0-9]*\).*/\1/p'
}
sum_of() {
	local id value sum=0
	for ((id = 1; id <= files; id++)); do
		value=$(value_of "$id" "$1")
		sum=$((sum + ${value:-0}))
	done
	echo "$sum"
}

@test "examples/fan-out.sh: array workers preempted in the middle of commands: each command done once" {
	files=24
	for ((i = 1; i <= files; i++)); do echo "text $i" >in/f$i; done
	# Each start of a command and each end of it are one line of a log. The first wait to be preempted.
	touch hold
	IDLE=30s "$root/examples/fan-out.sh" in out \
		'echo "$PREEMPT_ITEM_ID" >>starts; while [ -e hold ]; do sleep 0.1; done; tr a-z A-Z <"$1" >"$2"; echo "$PREEMPT_ITEM_ID" >>ends' \
		--partition=low --output=%a.out --time=10 >fan-out.out 2>fan-out.err 3>&- &
	join=$!
	until_true 90 begun 4
	running 4
	slurm_preempt 1 >/dev/null
	until_true 90 all_restarted
	rm hold
	code=0
	wait "$join" || code=$?
	join=
	[ "$code" = 0 ] || { echo "fan-out.sh ended with $code" >&2; return 1; }
	# Each has one result that counts, and a file that is whole.
	[ "$(count_of succeeded)" = $files ]
	[ "$(preempt-queue list --json | wc -l)" = $files ]
	for ((i = 1; i <= files; i++)); do [ "$(<out/f$i)" = "TEXT $i" ]; done
	# No command ended twice, though some were begun twice: they were given back by their workers,
	# and no attempt was used for that.
	[ -z "$(sort ends | uniq -d)" ]
	[ "$(wc -l <ends)" = $files ]
	for ((id = 1; id <= files; id++)); do preempt-queue show "$id" --json; done >shown
	preempted=$(sum_of preempted)
	echo "starts $(wc -l <starts), given back $preempted, attempts $(sum_of attempts)"
	[ "$preempted" = 4 ]
	[ "$(wc -l <starts)" = $((files + preempted)) ]
	[ "$(sum_of attempts)" = 0 ]
	[ "$(sum_of lost)" = 0 ]
	# Slurm ran the tasks of the array again, each once.
	all_restarted
}
