#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-store doctor of a store in a real etcd. What follows from what is seen: unit/doctor_etcd.c.
# takes: 40
# shellcheck disable=SC2034,SC2154 # bats sets stderr; the rig reads and sets etcd_*

bats_require_minimum_version 1.5.0
load ../support/programs
load ../support/etcd

setup_file() { etcd_needed; }

setup() {
	programs
	etcd_options=()
}

teardown() { etcd_stop; }

start() {
	etcd_start "$1"
	export PREEMPT_STORE=etcd://$etcd_endpoints/test
}

# doctor CODE [OPTION...]
doctor() {
	local code=$1
	shift
	run -"$code" --separate-stderr preempt-store doctor "$@"
}

@test "three members: safe, with their versions and times, and it leaves nothing; one that was killed is named; without a majority 75" {
	start 3
	doctor 0 "$PREEMPT_STORE"
	[[ $output = *"endpoints       127.0.0.1:"*", etcd 3."*"members         3"*"write, read     "*"verdict         safe"* ]]
	[ "$(grep -c ', leads, ' <<<"$output")" = 1 ]
	doctor 0 --json
	[ "$(jq -r '"\(.verdict) \(.exit) \(.members)"' <<<"$output")" = "safe 0 3" ]
	[ -z "$(etcd_control get --prefix '')" ]
	[ -z "$(etcd_control lease list | sed 1d)" ]
	etcd_kill 3
	etcd_control get x >/dev/null
	doctor 0
	[[ $output = *"${etcd_client[3]}, gives no answer"*"warning"*"${etcd_client[3]}: Connection refused"* ]]
	etcd_pause 2
	doctor 75 --timeout 3s
	[[ $output = *"verdict         could not tell: "* ]]
	etcd_continue 2
}

@test "an alarm: unsafe; users: without the permission 77; with it safe, and the password is never said" {
	start 1
	curl -sf -d '{"action":"ACTIVATE","alarm":"NOSPACE"}' "http://${etcd_client[1]}/v3/maintenance/alarm"
	doctor 1
	[[ $output = *"verdict         unsafe: an alarm says that it is full"*"alarm disarm"* ]]
	etcd_control alarm disarm
	doctor 0
	etcd_control user add other:secret >/dev/null
	etcd_enable_users
	doctor 77
	PREEMPT_ETCD_CREDENTIALS=other:secret doctor 77
	[[ $output = *'grant the user readwrite on all keys that begin with "test/"'* ]]
	PREEMPT_ETCD_CREDENTIALS=root:secret doctor 0
	[[ $output$stderr != *secret* ]]
}
