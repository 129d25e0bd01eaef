#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-store on any store: places/suite.bats runs this file, too. What only files have is in preempt-store-files.bats;
# the contract below the program in unit/store.c.

# shellcheck disable=SC2154 # bats sets stderr and stderr_lines
bats_require_minimum_version 1.5.0
load ../support/programs

setup() {
	programs "sqlite:$BATS_TEST_TMPDIR/s.db"
	chmod 700 .
}

teardown() {
	end_started
	"$REPO/tests/support/forget-stores" "$BATS_TEST_TMPDIR"
}

# The revision of a key: they begin at 1 only where the store has a server or a file of its own.
revision_of() { preempt-store get "$1" --json | sed 's/.*"revision":\([0-9]*\).*/\1/'; }

@test "put and get: the value comes back, and only it is on stdout" {
	answers 0 preempt-store put greeting 'hello  world'
	[ -z "$output$stderr" ]
	answers 0 preempt-store get greeting
	[ "$output" = 'hello  world' ]
	[ -z "$stderr" ]
}

@test "get of an absent key exits 1 and prints nothing on stdout" {
	answers 0 preempt-store put a 1
	answers 1 preempt-store get b
	[ -z "$output" ]
	[ "$stderr" = 'preempt-store: there is no key "b"' ]
	answers 1 preempt-store get -q b
	[ -z "$stderr" ]
}

@test "put --if-absent: the first wins, the others print what is present and exit 1" {
	answers 0 preempt-store put k first --if-absent
	answers 1 preempt-store put k second --if-absent
	[ "$output" = first ]
	answers 0 preempt-store get k
	[ "$output" = first ]
}

@test "put --if-revision: only over the revision that was seen" {
	answers 0 preempt-store put k one --if-revision 0
	answers 1 preempt-store put k two --if-revision 0
	[ "$output" = one ]
	local first
	first=$(revision_of k)
	answers 0 preempt-store put k two --if-revision "$first" --json
	[ "$output" = "{\"revision\":$((first + 1))}" ]
	answers 1 preempt-store put k three --if-revision "$first"
	[ "$output" = two ]
	answers 1 preempt-store put gone x --if-revision $((first + 7))
	[ -z "$output" ]
}

@test "put -: the value is what stdin holds, byte for byte, and too much is refused" {
	printf 'a\0b\nc\n\n' >value
	preempt-store put k - <value
	{ cat value; echo; } >expected
	preempt-store get k | cmp - expected
	answers 0 preempt-store get k --json
	[[ $output = '{"key":"k","value":"a\u0000b\nc\n\n","revision":'[1-9]* ]]
	head -c 65537 /dev/zero >large
	run -2 --separate-stderr preempt-store put k - <large
	[[ $stderr == *65536* ]]
}

@test "list prints keys in order under a prefix, with control characters escaped" {
	preempt-store put b 2
	preempt-store put a/2 $'line\n\x1b[31m'
	preempt-store put a/1 1
	answers 0 preempt-store list
	[ "$output" = $'a/1\na/2\nb' ]
	answers 0 preempt-store list a/ --values
	[ "$output" = $'a/1\t1\na/2\tline\\n\\x1b[31m' ]
	answers 0 preempt-store list b --json
	[ "$output" = '{"key":"b","value":"2","revision":'"$(revision_of b)}" ]
	answers 0 preempt-store list none
	[ -z "$output" ]
}

@test "rm deletes; a second time it exits 1" {
	preempt-store put k v
	answers 0 preempt-store rm k
	answers 1 preempt-store get k
	answers 1 preempt-store rm k
}

@test "wait: a key that is there is printed at once; else when another process puts it, though the store is not there yet; 124 in vain" {
	local first
	preempt-store wait k --timeout 100s >out &
	started+=($!)
	preempt-store put other x
	preempt-store put kk x
	run ! gone "${started[0]}"
	preempt-store put k one
	wait "${started[0]}"
	[ "$(<out)" = one ]
	answers 0 preempt-store wait k --since 0 --timeout 100s
	[ "$output" = one ]
	first=$(revision_of k)
	preempt-store wait k --since "$first" --timeout 100s >out &
	started+=($!)
	preempt-store put k two
	wait "${started[1]}"
	[ "$(<out)" = two ]
	preempt-store rm k
	# Of its deletion it is told, too, and goes on waiting.
	answers 124 preempt-store wait k --since $((first + 1)) --timeout 100ms
	answers 124 preempt-store wait k --timeout 100ms
	[ -z "$output" ]
	[ "$stderr" = 'preempt-store: key "k" did not appear in time' ]
}

# closed MILLISECONDS_AGO
closed() {
	printf '{"utc":%s,"state":"completed"}' $(($(date +%s%3N) - $1))
}

@test "runs: prints each run with attempts, state and last change" {
	preempt-store put run/alpha/000001/OPEN '{"utc":1000}'
	preempt-store put run/alpha/000001/CLOSED '{"utc":2000,"state":"preempted"}'
	preempt-store put run/alpha/000002/OPEN '{"utc":3000}'
	preempt-store put run/beta/000001/OPEN '{"utc":5000}'
	preempt-store put run/beta/000001/CLOSED '{"utc":1769860800123,"state":"completed"}'
	preempt-store put queue/q/x y
	answers 0 preempt-store runs
	[ "${#lines[@]}" = 3 ]
	[[ ${lines[1]} =~ ^alpha\ +2\ +open\ +1970-01-01T00:00:03.000Z$ ]]
	[[ ${lines[2]} =~ ^beta\ +1\ +completed\ +2026-01-31T12:00:00.123Z$ ]]
	answers 0 preempt-store runs --json
	[ "${lines[1]}" = '{"run":"beta","attempts":1,"state":"completed","closed":true,"utc":"2026-01-31T12:00:00.123Z"}' ]
}

@test "gc: removes runs closed long enough ago, and nothing else" {
	preempt-store put run/old/000001/CLOSED "$(closed 10000000)"
	preempt-store put run/old/000001/STEP x
	preempt-store put run/recent/000001/CLOSED "$(closed 1000)"
	preempt-store put run/again/000001/CLOSED "$(closed 10000000)"
	preempt-store put run/again/000002/OPEN '{"utc":1}'
	preempt-store put run/garbage/000001/CLOSED 'no json'
	preempt-store put run/older/000001/OPEN '{"utc":1}'
	preempt-store put queue/q/x y
	local before
	before=$(preempt-store list)
	answers 0 preempt-store gc --older-than 1h --dry-run
	[ "$output" = old ]
	[ "$(preempt-store list)" = "$before" ]
	answers 0 preempt-store gc --older-than 1h
	[ "$output" = old ]
	[ "$(preempt-store list)" = "$(grep -v '^run/old/' <<< "$before")" ]
}

@test "bad command lines are refused with 2 and one message" {
	local words
	for words in '' nonsense 'get' 'get a b' 'put a' 'get --nonsense a' 'put a b --if-revision x' \
		'put a b --if-revision -1' 'put a b --if-absent --if-revision 3' 'wait a --timeout 5x' \
		'gc' 'gc --older-than soon' 'runs x' 'wait a --since 1.5'; do
		# shellcheck disable=SC2086
		answers 2 preempt-store $words
		[ -z "$output" ]
		[ "${#stderr_lines[@]}" = 1 ]
		[[ $stderr == 'preempt-store: '* ]]
	done
	answers 2 preempt-store put "$(printf 'k%.0s' {1..513})" v
	[[ $stderr == *'at most 512'* ]]
	answers 2 preempt-store put '' v
	answers 0 preempt-store put "$(printf 'k%.0s' {1..512})" v
	# What looks like an option goes behind --.
	answers 0 preempt-store put -- k --json
	[ "$(preempt-store get k)" = --json ]
}

@test "characters that a terminal may act on: escaped in messages, tables and JSON, kept in values" {
	# A control byte, the control U+009B, one that turns the text around (U+202E), and what may stand.
	local value=$'a\x9bb\xc2\x9bc\xe2\x80\xaed\xc3\xa9'
	preempt-store put k "$value"
	[ "$(preempt-store get k)" = "$value" ]
	answers 0 preempt-store get k --json
	[[ $output = '{"key":"k","value":"a\ufffdb\u009bc\u202edé","revision":'[1-9]* ]]
	run -1 --separate-stderr preempt-store get "$value"
	[[ $stderr = *'no key "a\x9bb\x9bc\u202edé"'* ]]
	[[ $PREEMPT_STORE != etcd:* ]] || export PREEMPT_STORE=$PWD/queue.db # a queue is kept on a filesystem
	preempt-queue schedule -q -- echo "$value"
	preempt-queue list | grep -F 'a\x9bb\x9bc\u202edé'
	preempt-queue list --json | grep -F 'a\ufffdb\u009bc\u202edé'
}
