#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-queue: what commands are given, and what they leave behind: output, codes, joblog.
# shellcheck disable=SC2016,SC2094 # text for another shell

bats_require_minimum_version 1.5.0
load ../support/queue

@test "output comes back byte for byte: binary, 1 MiB, empty, stderr apart" {
	local binary large empty
	head -c 5000 /dev/urandom >binary
	head -c 1048576 /dev/urandom >large
	schedule binary -- bash -c 'cat binary; tac binary >&2'
	schedule large -- bash -c 'cat large; cat large large >&2'
	schedule empty -- true
	worker a
	expect 0 preempt-queue join
	preempt-queue fetch "$binary" | cmp binary
	preempt-queue fetch --stderr "$binary" | cmp <(tac binary)
	preempt-queue fetch "$large" | cmp large
	preempt-queue fetch --stderr "$large" | cmp <(cat large large)
	[ -z "$(preempt-queue fetch "$empty")" ]
	[ "$(what "$large" stdout_bytes) $(what "$large" stderr_bytes)" = "1048576 2097152" ]
	# The long one is a file, and goes with its command.
	needs_store_file
	[ -n "$(find store -size +1000k -name '*.out')" ]
	preempt-queue forget "$large"
	[ -z "$(find store -size +1000k -name '*.out')" ]
}

@test "fetch: 1 until it is over, --wait, --exit-status" {
	local id bad
	schedule id -- bash -c './gated go; echo out'
	expect 1 preempt-queue fetch "$id"
	aside fetch preempt-queue fetch --wait "$id"
	worker a
	eventually begun "$id"
	expect 1 preempt-queue fetch "$id"
	expect 124 preempt-queue fetch --wait --timeout 200ms "$id"
	: >go
	aside_ends fetch 0
	[ "$(<fetch.out)" = out ]
	schedule bad --keep-going -- sh -c 'echo out; exit 7'
	expect 0 preempt-queue fetch --wait -q "$bad"
	[ "$said" = out ]
	expect 7 preempt-queue fetch --exit-status "$bad"
	schedule bad --keep-going -- sh -c 'kill -KILL $$'
	expect 137 preempt-queue fetch --wait --exit-status "$bad"
	expect 1 preempt-queue fetch 999
	# Several, in the order that is asked for; of one that failed it is reported, of one that is not there, too.
	schedule good -- echo good
	expect 0 preempt-queue fetch --wait "$good" "$id" "$good" --timeout 100s
	[ "$said" = $'good\nout\ngood' ]
	expect 137 preempt-queue fetch --exit-status "$good" "$bad" "$good"
	says "command $bad has failed: it died of signal 9"
	expect 0 preempt-queue fetch -q "$bad"
	[ -z "$said" ]
	expect 1 preempt-queue fetch "$good" 999 "$good"
	says "no command 999"
	[ "$(grep -c good <<<"$said")" = 1 ]
}

@test "a command has its directory, environment and stdin, and nothing is run by a shell unless asked" {
	local id
	mkdir there
	echo "from a file" >in
	export FROM_HERE=here
	schedule id --directory there --env A='x y' --env FROM_HERE --stdin in -- \
		bash -c 'pwd; echo "$A $FROM_HERE $PREEMPT_QUEUE"; cat; echo "$1"' sh '$(touch bad); `touch bad`'
	unset FROM_HERE
	worker a
	expect 0 preempt-queue join
	diff <(preempt-queue fetch "$id") <(printf '%s\n' "$PWD/there" "x y here default" "from a file" '$(touch bad); `touch bad`')
	[ ! -e bad ] && [ ! -e there/bad ]
	schedule id -- cat
	schedule id --shell -- 'echo "$1" | tr a-z A-Z' shouted
	expect 0 preempt-queue join
	[ "$(preempt-queue fetch "$id")" = SHOUTED ]
}

@test "--stdout: the output goes to a file, one for each, emptied at each start; fetch names it" {
	local again lost
	mkdir there
	printf '%s\n' one 'two {id}' >lines
	mapfile -t ids < <(preempt-queue schedule --lines --stdout 'there/{}.{id}' --shell -- 'echo "$1"; echo "$1 err" >&2' <lines)
	schedule again --directory there --stdout '{worker}.out' -- \
		sh -c 'echo "start $PREEMPT_ITEM_ATTEMPT"; [ "$PREEMPT_ITEM_ATTEMPT" = 2 ] || exit 75'
	schedule lost --keep-going --stdout 'missing/out' -- touch never
	worker a
	expect 1 preempt-queue join
	[ "$(cat "there/one.${ids[0]}" "there/two {id}.${ids[1]}")" = $'one\ntwo {id}' ]
	[ "$(cat there/a.out)" = "start 2" ]
	[ "$(preempt-queue fetch --stderr "${ids[0]}")" = "one err" ]
	expect 0 preempt-queue fetch "$again"
	says "command $again: its stdout is in $PWD/there/a.out"
	[ "$(preempt-queue fetch "$again" 2>&-)" = "" ]
	grep -F "cannot write $PWD/missing/out as stdout: No such file or directory; make its directory first" < <(preempt-queue show "$lost")
	[ ! -e never ] && [ ! -e missing ]
	# Where all would overwrite one file, or the name cannot be known, nothing is scheduled.
	expect 2 preempt-queue schedule --lines --stdout 'all.{{id}' -- echo <lines
	expect 2 preempt-queue schedule --stdout '{per-worker:a,b}' -- echo
}

@test "--joblog: a line for each accepted result, in the columns of GNU parallel" {
	local good bad again last ids
	schedule good -- bash -c 'printf 12345; sleep 0.3'
	schedule bad --keep-going -- sh -c 'exit 3'
	schedule_many 2 --keep-going -- sh -c 'kill -9 $$'
	schedule again --keep-going -- sh -c '[ "$PREEMPT_ITEM_ATTEMPT" = 2 ] || exit 75'
	worker a --joblog log
	expect 1 preempt-queue join
	kill -TERM "${workers[a]}"
	worker_ends a 42
	# Another worker goes on with the same file.
	worker b --joblog log
	schedule last -- ./item
	preempt-queue fetch --wait "$last"
	kill -TERM "${workers[b]}"
	worker_ends b 42
	[ "$(head -n 1 log)" = $'Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand' ]
	[ "$(grep -c ^Seq log)" = 1 ]
	[ "$(awk -F'\t' 'NF != 9' log)" = "" ]
	awk -F'\t' -v id="$good" '$1 == id { exit !($4 >= 0.3 && $6 == 5 && $7 == 0 && $8 == 0 && /printf/) }' log
	awk -F'\t' -v id="$bad" '$1 == id { exit !($7 == 3 && $8 == 0) }' log
	[ "$(awk -F'\t' '$7 == 0 && $8 == 9' log | wc -l)" = 2 ]
	# As --resume-failed reads it: those that did not end well.
	diff <(awk -F'\t' 'NR > 1 && ($7 != 0 || $8 != 0) { print $1 }' log | sort) <(printf '%s\n' "$bad" "${ids[@]}" | sort)
	[ "$(cut -f 1 log | grep -cx "$again")" = 1 ]
	grep "^$last" log
}

@test "what GNU parallel would run again by our joblog is what failed" {
	command -v parallel >/dev/null || skip "GNU parallel is not here"
	parallel --version 2>/dev/null | grep -q 'GNU parallel' || skip "GNU parallel is not here"
	local id
	# The same three arguments, in the order of ours.
	for word in one two three; do
		schedule id --keep-going -- sh -c '[ $1 != two ] && [ $1 != three ]' sh "$word"
	done
	worker a --joblog log --idle-exit 0
	worker_ends a 0
	parallel --resume-failed --joblog log echo again ::: one two three >again 2>&1
	diff <(sort again) <(printf '%s\n' 'again three' 'again two')
}

@test "a command that leaves something behind in its group: it ends with the worker" {
	local id
	schedule id -- bash -c 'sleep 1000 >/dev/null 2>&1 & echo $! >left; exec ./gated go'
	worker a --grace 60s
	eventually begun "$id"
	kill -TERM "${workers[a]}"
	worker_ends a 42
	eventually gone "$(<left)"
}

sleeps() { [ "$(awk '/^State:/ { print $2 }' "/proc/$1/status")" = S ]; }

@test "fetch --wait sleeps, also when what it waits for came to its place long ago" {
	local id pid before after
	worker a --slots 2
	schedule id -- ./gated go
	eventually begun "$id"
	# More changes than the store remembers deletions of.
	schedule_many 600 -- true
	patience=400 eventually counts succeeded 600
	aside waiter preempt-queue fetch "$id" --wait
	eventually pgrep -P "${started[-1]}"
	pid=$(pgrep -P "${started[-1]}")
	# Its start is over: it has stopped working for the first time.
	eventually eval '[ "$(readlink "/proc/$pid/exe")" -ef "$(command -v preempt-queue)" ]'
	eventually sleeps "$pid"
	before=$(awk '{ print $14 + $15 }' "/proc/$pid/stat")
	sleep 3
	after=$(awk '{ print $14 + $15 }' "/proc/$pid/stat")
	# Ticks of 10 ms; it took half of a processor once.
	((after - before < 30))
	: >go
	aside_ends waiter 0
}
