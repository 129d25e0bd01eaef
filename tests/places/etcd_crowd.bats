#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A job that is larger than this machine could run, on a real etcd: the agents as they are, each in a thread
# of its own (tests/bench/crowd.c). 10,000 tasks: make bench SECTION=scale AGENTS= ON_ETCD=1250
# takes: 40
# asan: no (one process with the threads of 160 agents; the same code runs with sanitizers in the other files)

bats_require_minimum_version 1.5.0
load ../support/etcd

setup_file() { etcd_needed; }
setup() {
	etcd_start
	crowd=${OUT:-$BATS_TEST_DIRNAME/../../build/plain}/tests/bench/crowd
}
teardown() { etcd_stop; }

# sent: how many bytes etcd has answered.
sent() {
	python3 -c 'import sys, urllib.request
for line in urllib.request.urlopen(sys.argv[1]).read().decode().splitlines():
    if line.startswith("etcd_network_client_grpc_sent_bytes_total"):
        print(round(float(line.split()[-1])))' "http://$etcd_endpoints/metrics"
}

# preempt AGENTS [OPTION]...: sets all that crowd prints of a job of so many agents with 8 tasks each, and the bytes
# that etcd answered, for each agent.
preempt() {
	local -a fields
	local i before
	declare -gA figure=()
	before=$(sent)
	run -0 --separate-stderr "$crowd" -n "$@" "etcd://$etcd_endpoints/crowd$1"
	figure[bytes]=$((($(sent) - before) / $1))
	echo "$output bytes ${figure[bytes]}"
	read -ra fields <<<"$output"
	for ((i = 0; i + 1 < ${#fields[@]}; i += 2)); do figure[${fields[i]}]=${fields[i + 1]}; done
}

@test "1,280 tasks join, save the same step and leave with 42, and an agent is answered no more than in a job of 128" {
	preempt 16
	[ "${figure[wrong]} ${figure[late]}" = '0 -' ]
	small=${figure[bytes]}
	preempt 160
	[ "${figure[wrong]} ${figure[late]}" = '0 -' ]
	# All records together are 300 KB: one agent reads them, and a few may.
	[ "${figure[bytes]}" -le $((small + 25000)) ]
}

@test "where 16 of 1,280 tasks never come, one agent reads who they are, and all say it" {
	preempt 160 --missing 2 --limit 30
	[ "${figure[wrong]} ${figure[late]}" = '0 -' ]
	[ "$(sort -u <<<"$stderr")" = 'preempt: not all tasks have come: start this run again (44)
preempt: run crowd: 1264 of 1280 tasks have joined; missing: 1264-1279 (--join-timeout)' ]
	# All records together are 325 KB.
	[ "${figure[bytes]}" -le 50000 ]
}
