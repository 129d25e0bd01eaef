#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Heartbeats of 256 agents on this machine, beating every second under load: nobody alive is called dead;
# then 16 of them are stopped: exactly those are named.
# takes: 30
# alone
# asan: no (1,000 threads with sanitizers are another load)
# shellcheck disable=SC2030,SC2031,SC2034,SC2154 # each test is a subshell with its own variables

bats_require_minimum_version 1.5.0

setup_file() {
	load trainers/agents
	agents_setup_file
}

setup() {
	load trainers/agents
	agents_setup
	# Eight observations: a machine that is busy elsewhere may keep one agent waiting for long.
	quick=(-q --period 1s --limit 8 --join-timeout 300s --kill-after 1s)
}

teardown() { agents_teardown; }

all_joined() { [ "$(count_keys TASK/)" = 256 ]; }
# beaten N: every task has beaten so often.
beaten() {
	cat store/db.beats/job/000001/* | awk -v n="$1" '
		{ count = 0; for (i = 7; i <= 16; i++) count = count * 16 + index("123456789abcdef", substr($2, i, 1)) }
		NF == 4 && count >= n { good++ } END { exit good != 256 }'
}
dead() { keys DEAD/ | sed 's|.*/||' | sort -n | xargs; }
some_dead() { [ -n "$(dead)" ]; }

@test "256 agents beat every second under load: nobody is called dead; 16 are stopped: exactly those are named" {
	for ((i = 0; i < 256; i++)); do agent $i 256 -- sleep 1000; done
	until_true 100 all_joined
	for i in 1 2 3 4; do
		(while :; do :; done) 3>&- &
		load[i]=$!
	done
	until_true 100 beaten 9
	[ "$(keys "" | sed 's|.*/00000./||; s|/.*||' | sort -u | xargs)" = "OPEN TASK" ]
	# The monitor and some of those who would follow it are among them.
	stopped=(0 1 2 7 30 31 32 77 100 101 128 177 200 201 254 255)
	victims=()
	for i in "${stopped[@]}"; do victims+=("${pids[i]}"); done
	# In one go: those who die together are named together.
	kill -STOP "${victims[@]}"
	until_true 60 some_dead
	kill "${load[@]}"
	for ((i = 0; i < 256; i++)); do [[ " ${stopped[*]} " = *" $i "* ]] || ended $i 44 60; done
	[ "$(dead)" = "${stopped[*]}" ]
	grep -q "task 0 on $(hostname) is dead: no heartbeat since 20.*; and so are [0-9,-]*" err.5
	kill -CONT "${victims[@]}"
	for i in "${stopped[@]}"; do ended "$i" 44 60; done
	until_true 30 nobody
}
