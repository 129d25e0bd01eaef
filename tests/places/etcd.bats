#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A store in a real etcd: the contract of every store, whole programs, and what happens when members
# die, stop or come back with other data. Needs etcd.
# takes: 70

# shellcheck disable=SC2034,SC2154 # bats sets stderr and stderr_lines; the rig reads and sets etcd_*
bats_require_minimum_version 1.5.0
load ../support/etcd
load ../support/programs

# One member for all tests that do nothing to the server; the others start their own.
setup_file() {
	etcd_needed
	etcd_options=()
	etcd_start 1
	plain_member=${etcd_client[1]} plain_directory=$etcd_directory
	export plain_member plain_directory
}
teardown_file() {
	rm -rf "$plain_directory"
}

setup() {
	programs
	etcd_options=() etcd_tls='' etcd_directory=''
}

teardown() {
	local pid
	for pid in $(jobs -p); do
		[[ " ${etcd_pids[*]} " = *" $pid "* ]] || kill "$pid" 2>/dev/null || :
	done
	etcd_stop
}

# start MEMBERS: with $PREEMPT_STORE
start() {
	etcd_start "$1"
	export PREEMPT_STORE=etcd://$etcd_endpoints/test
}

# plain: the member that all share, with a prefix of this test's own.
plain() {
	etcd_client=('' "$plain_member") etcd_endpoints=$plain_member etcd_pids=() etcd_tls_options=()
	export PREEMPT_STORE=etcd://$plain_member/test$BATS_TEST_NUMBER
}

watched() { curl -s "http://$etcd_endpoints/metrics" | grep -qx 'etcd_debugging_mvcc_watcher_total 1'; }

@test "a member that was stopped and continues, with its old state, makes no second winner" {
	local i
	start 3
	etcd_pause 3
	preempt-store put --if-absent claim first --store "etcd://${etcd_client[1]}/test"
	etcd_continue 3
	for i in 1 2 3 4 5; do
		answers 1 preempt-store put --if-absent claim late --store "etcd://${etcd_client[3]}/test"
	done
	[ "$(preempt-store get claim)" = first ]
}

@test "without a majority nothing is answered, 75; with it again all that was acknowledged is there; a member that lost its data is replaced" {
	start 3
	preempt-store put k v
	etcd_kill 1
	etcd_pause 2
	answers 75 preempt-store get k --timeout 1s
	[[ $stderr = *"$etcd_endpoints/test"* ]]
	answers 75 preempt-store put k w --timeout 1s
	answers 75 preempt-store wait absent --timeout 1s
	preempt-store get k --timeout 60s >out 3>&- &
	etcd_continue 2
	wait $!
	# The outcome of the put was unknown: it may have been carried out.
	[[ $(<out) = [vw] ]]
	etcd_replace 1
	[ "$(preempt-store get k)" = "$(<out)" ]
	eventually preempt-store get k --timeout 2s --store "etcd://${etcd_client[1]}/test"
}

@test "compaction: a wait from before it is over at once, and one that waits goes on" {
	plain
	preempt-store put k v
	preempt-store wait later --timeout 60s >out 3>&- &
	preempt-store put other 1
	preempt-store rm other
	etcd_compact
	[ "$(preempt-store wait k --since 1 --timeout 60s)" = v ]
	[ "$(preempt-store list)" = k ]
	preempt-store put later there
	wait $!
	[ "$(<out)" = there ]
}

# libcurl sends a request again by itself where it may: the second one would find what the first has put.
@test "an answer is lost on a connection that was kept: 75, and it is not sent again; what arrives late is not carried out" {
	local relay=$BATS_TEST_DIRNAME/../support/lossy_relay
	plain
	preempt-store put a x
	"$relay" "$etcd_endpoints" lost >port &
	eventually test -s port
	answers 75 preempt-store put --if-absent k x --store "etcd://127.0.0.1:$(<port)/${PREEMPT_STORE##*/}"
	[[ $stderr = *'it may have been written: read again'* ]]
	[ "$(wc -l <lost)" = 1 ]
	[ "$(preempt-store get k)" = x ]
	"$relay" "$etcd_endpoints" held '"request_put"' 1 late >held.port &
	eventually test -s held.port
	answers 75 preempt-store put k late --store "etcd://127.0.0.1:$(<held.port)/${PREEMPT_STORE##*/}"
	touch late
	eventually test -e late.done
	[ "$(preempt-store get k)" = x ]
}

@test "an older copy of the data is put back: who has seen newer ones is told, 65" {
	local waiting
	start 1
	preempt-store put k v
	etcd_control snapshot save "$PWD/older" >/dev/null 2>&1
	preempt-store put k w
	preempt-store wait absent --timeout 60s 2>told 3>&- &
	waiting=$!
	eventually watched
	etcd_restore "$PWD/older"
	code_of $waiting
	[ "$code" = 65 ]
	grep -q 'an older copy' told
}

@test "a key that another program has put, too long for ours: 65" {
	start 1
	preempt-store put k v
	etcd_control put "test/k/$(printf '%0513d' 0)" v >/dev/null
	answers 65 preempt-store list
	[[ $stderr = *'was not written by preempt-tools'* ]]
}

@test "a full server: 75, what to do, reading goes on; once it has room it goes on" {
	etcd_options=(--quota-backend-bytes 16777216)
	start 1
	local full=0 i
	preempt-store put k v
	head -c 60000 /dev/zero | tr '\0' x >large
	for ((i = 0; i < 400 && full == 0; i++)); do
		preempt-store put "fill/$i" - <large >out 2>&1 || full=$?
	done
	[ $full = 75 ]
	grep -q 'its server is full.*compact and defragment it' out
	answers 75 preempt-store put k w
	[ "$(preempt-store get k)" = v ]
	etcd_control del --prefix test/k/fill/ >/dev/null
	etcd_compact
	etcd_control defrag >/dev/null
	etcd_control alarm disarm >/dev/null
	preempt-store put k w
}

@test "TLS: its own certificate and authority; others are refused with 77 and which" {
	local tls url
	etcd_tls=yes
	start 1
	tls=$etcd_directory/tls
	url="etcd://$etcd_endpoints/test?cert=$tls/client.pem&key=$tls/client.key"
	preempt-store put k v --store "$url&ca=$tls/ca.pem"
	answers 77 preempt-store get k --store "$url&ca=$tls/other.pem"
	[[ $stderr = *certificate*'check ca=FILE'* ]]
	answers 77 preempt-store get k --store "etcd://$etcd_endpoints/test?ca=$tls/ca.pem"
	answers 77 preempt-store get k --store "etcd://$etcd_endpoints/test?ca=$tls/ca.pem&cert=$tls/expired.pem&key=$tls/expired.key"
	answers 77 preempt-store get k --store "$url&ca=/none"
	answers 75 preempt-store get k --store "etcd://$etcd_endpoints/test" --timeout 1s
	[[ $stderr = *'if it wants TLS'* ]]
}

@test "users: without a password, with a wrong one or without the permission, 77" {
	start 1
	etcd_control user add other:secret >/dev/null
	etcd_enable_users
	answers 77 preempt-store put k v
	[[ $stderr = *'credentials=FILE'* ]]
	PREEMPT_ETCD_CREDENTIALS=root:wrong answers 77 preempt-store put k v
	PREEMPT_ETCD_CREDENTIALS=other:secret answers 77 preempt-store put k v
	[[ $stderr = *'grant the user readwrite on all keys that begin with "test/"'* ]]
	PREEMPT_ETCD_CREDENTIALS=root:secret answers 0 preempt-store put k v
	echo root:secret >login
	chmod 644 login
	answers 77 preempt-store get k --store "$PREEMPT_STORE?credentials=$PWD/login"
	[[ $stderr = *'chmod 600'* ]]
	chmod 600 login
	[ "$(preempt-store get k --store "$PREEMPT_STORE?credentials=$PWD/login")" = v ]
	# Neither the password nor the token is ever said.
	[[ $output$stderr != *secret* ]]
}

@test "users: answers are lost after the login: it logs in again" {
	start 1
	etcd_enable_users
	PREEMPT_ETCD_CREDENTIALS=root:secret preempt-store put k v
	"$BATS_TEST_DIRNAME/../support/lossy_relay" "$etcd_endpoints" lost Authorization >port &
	eventually test -s port
	PREEMPT_STORE=etcd://127.0.0.1:$(<port)/test PREEMPT_ETCD_CREDENTIALS=root:secret answers 0 preempt-store get k
	[ "$output" = v ]
	[ "$(wc -l <lost)" = 2 ]
}

@test "more tasks of one agent than a transaction takes are refused" {
	plain
	answers 2 preempt-run --run many -n 200 -- true
	[[ $stderr = *"takes at most 114 tasks of one agent, and this one has 200"* ]]
}

@test "URLs that are no store: 2, or 75 where nothing answers" {
	local url
	for url in etcd:host etcd://h/x etcd://h:1 etcd://h:1/ etcd://h:0/x 'etcd://h:1/x?ca' 'etcd://h:1/x?cert=/a' \
		'etcd://h:1/x?lock=link' 'etcd://h:1/x?tls&tls' 'etcd://u@h:1/x' 'etcd://h:1/x?files=/a'; do
		answers 2 preempt-store get k --store "$url"
		[ -n "$stderr" ]
	done
	for url in etcd://joe:secret@h:1/x etcd://joe:sec/secret@h:1/x 'etcd://joe:secret@h:1/x?bogus'; do
		answers 2 preempt-store get k --store "$url"
		[[ $stderr != *joe* && $stderr != *secret* ]]
	done
	free_ports 1
	answers 75 preempt-store get k --store "etcd://127.0.0.1:${ports[0]}/x" --timeout 1s
	[[ $stderr = *"${ports[0]}"* ]]
	plain
	answers 1 preempt-store get k
	answers 75 preempt-store put k v --store "etcd://$etcd_endpoints/none?must-exist"
}
