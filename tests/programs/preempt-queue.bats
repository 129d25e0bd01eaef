#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-queue as far as it needs no worker: what is scheduled, shown, cancelled, put back,
# forgotten, joined. On any backend (support/store.bash).
# takes: 40
# shellcheck disable=SC2016 # text for another shell

bats_require_minimum_version 1.5.0
load ../support/programs

setup() {
	PATH=${BIN:-$BATS_TEST_DIRNAME/../../bin}:$PATH
	store_for_test "sqlite:$BATS_TEST_TMPDIR/s.db"
	chmod 700 "$BATS_TEST_TMPDIR"
	cd "$BATS_TEST_TMPDIR" || return
}

teardown() {
	local pid
	for pid in $(jobs -pr); do
		kill -9 "$pid" 2>/dev/null || :
	done
	wait
	"$BATS_TEST_DIRNAME/../support/forget-stores" "$BATS_TEST_TMPDIR"
}

# run with stdout and stderr apart, expecting an exit code
answers() {
	local code=$1
	shift
	run -"$code" --separate-stderr "$@"
}

# states: "ID STATE" of all
states() {
	preempt-queue list | awk 'NR > 1 { print $1, $2 }'
}

# member NAME: of the JSON object on stdin
member() {
	python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"
}

@test "WQ-3: join and done are at once through, three times; 1 where nothing was ever scheduled" {
	local i
	preempt-queue schedule --lines -- true </dev/null
	for i in 1 2 3; do
		answers 1 preempt-queue join
		[[ $stderr = *'queue default: nothing was ever scheduled'* ]]
		answers 1 preempt-queue 'done'
		[[ $stderr = *'queue default: nothing was ever scheduled'* ]]
	done
	# Also where there is a queue, and all in it is over.
	answers 0 preempt-queue schedule -- true
	answers 0 preempt-queue cancel 1
	for i in 1 2 3; do
		answers 0 preempt-queue join
		[ -z "$output$stderr" ]
		answers 0 preempt-queue 'done'
	done
	# A name that is mistyped is not said to be done.
	answers 1 preempt-queue join --queue defualt
	[[ $stderr = *'queue defualt: nothing was ever scheduled'* ]]
}

@test "a store that does not exist, as where its name is mistyped: 1, a message, and none is made" {
	local command
	for command in join 'done' 'join --exit-status' 'list --follow' list workers 'show 1' 'fetch --wait 1' 'cancel --all'; do
		# shellcheck disable=SC2086
		answers 1 timeout 60 preempt-queue $command
		[[ $stderr = *'does not exist'* ]]
		[ -z "$output" ]
	done
	answers 1 preempt-queue join -q
	[[ $stderr = *'does not exist'* ]]
	[[ $PREEMPT_STORE != sqlite:* ]] || [ ! -e "${PREEMPT_STORE#sqlite:}" ]
}

@test "join says when no worker is alive, once, and waits" {
	preempt-queue schedule -- true
	preempt-queue join 2>err 3>&- &
	local pid=$! code=0
	eventually grep -q 'no worker is alive, 1 commands wait' err
	sleep 2 # it looks every second
	kill -TERM $pid
	wait $pid || code=$?
	[ $code = 143 ]
	[ "$(grep -c 'no worker is alive' err)" = 1 ]
}

@test "schedule prints the id, and show what was asked" {
	export COLOUR=green
	answers 0 preempt-queue schedule --tag sweep --priority -7 --max-attempts 4 --timeout 90s \
		--env 'A=b c' --env COLOUR --stdin in.txt --halt soon --resource vocabulary -- \
		python3 train.py --lr '0.1 0.2' ''
	[ "$output" = 1 ]
	[ -z "$stderr" ]
	answers 0 preempt-queue schedule --shell --directory '' -- 'echo "$1"' x
	[ "$output" = 2 ]
	answers 0 preempt-queue show 1
	[[ $output = *"command      python3 train.py --lr '0.1 0.2' ''"* ]]
	answers 0 preempt-queue show 1 --json
	[ "$(member command <<<"$output")" = "['python3', 'train.py', '--lr', '0.1 0.2', '']" ]
	[ "$(member environment <<<"$output")" = "['A=b c', 'COLOUR=green']" ]
	[ "$(member stdin <<<"$output")" = "$PWD/in.txt" ]
	[ "$(member directory <<<"$output")" = "$PWD" ]
	[ "$(member priority <<<"$output")" = -7 ]
	[ "$(member timeout_ms <<<"$output")" = 90000 ]
	[ "$(member halt <<<"$output")" = soon ]
	answers 0 preempt-queue show 2 --json
	[ "$(member shell <<<"$output")" = True ]
	[[ $output != *directory* ]]
	answers 1 preempt-queue show 3
	[[ $stderr = *'no command 3'* ]]
}

@test "list: by state and tag, as a table, in JSON and as a joblog; text of the store is escaped" {
	preempt-queue schedule --tag $'a\e[31mb' -- printf $'x\ty'
	preempt-queue schedule --tag plain -- true
	preempt-queue cancel 2
	answers 0 preempt-queue list
	[ "${#lines[@]}" = 3 ]
	[[ ${lines[1]} = *'a\x1b[31mb'*"printf 'x\\ty'" ]]
	[[ $output != *$'\e'* ]]
	answers 0 preempt-queue list --state cancelled
	[[ ${#lines[@]} = 2 && ${lines[1]} = *' 2 cancelled '* ]]
	answers 0 preempt-queue list --state running
	[ "${#lines[@]}" = 1 ]
	answers 0 preempt-queue list --tag plain --json
	[ "${#lines[@]}" = 1 ]
	[ "$(member state <<<"$output")" = cancelled ]
	# What has never run is in no joblog.
	answers 0 preempt-queue list --joblog
	[ "$output" = $'Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand' ]
}

@test "list --json is JSON also where a word is not UTF-8" {
	preempt-queue schedule -- cat $'a\xff\xfeb' ü
	preempt-queue list --json | python3 -c '
import json, sys
assert json.loads(sys.stdin.buffer.read().decode())["command"] == ["cat", "a\ufffd\ufffdb", "ü"]'
	# The command itself is what was given.
	preempt-store get queue/default/item/0000000001 | grep -q $'a\xff\xfeb'
}

@test "ids in ranges: cancel, show, done, forget and join take them, and name the one that is missing" {
	local words
	seq 6 | preempt-queue schedule --lines --tag six -- echo
	answers 0 preempt-queue cancel 2-3,5
	[ "$(sort <<<"$output" | tr '\n' ' ')" = '2 3 5 ' ]
	answers 0 preempt-queue show --json 5,2-3
	[ "$(grep -oE '^\{ *"id": *[0-9]+' <<<"$output" | grep -oE '[0-9]+' | tr '\n' ' ')" = '5 2 3 ' ]
	answers 0 preempt-queue 'done' 2-3 5
	answers 0 preempt-queue join 2-3,5
	answers 1 preempt-queue 'done' 1-3
	[[ $stderr = *'1 of these commands wait or run'* ]]
	answers 1 preempt-queue 'done' --tag six
	[[ $stderr = *'3 of these commands wait or run'* ]]
	answers 1 preempt-queue join 2-3,8
	[[ $stderr = *'there is no command 8'* ]]
	answers 1 preempt-queue forget 2-4,7
	[ "$(sort <<<"$output" | tr '\n' ' ')" = '2 3 ' ]
	[[ $stderr = *'command 4 is not over'* && $stderr = *'no command 7'* ]]
	answers 2 preempt-queue 'done' 1 --tag six
	for words in 4-2 0-3 3- -3 1,,2 '1,' 1-2-3 1-9999999999 x; do
		answers 2 preempt-queue fetch "$words"
		[[ -z $output && $stderr = *preempt-queue* ]]
	done
}

@test "set: commands that say nothing else get the --halt of their queue, also with --once" {
	halts() { preempt-queue show --json "$1" | python3 -c 'import json, sys
for line in sys.stdin: print(json.loads(line).get("halt", "now"), end=" ")'; }
	preempt-queue schedule -- true
	[ "$(preempt-queue set)" = 'halt now' ]
	preempt-queue set --keep-going
	[ "$(preempt-queue set)" = 'halt never' ]
	preempt-queue schedule -- true
	preempt-queue schedule --halt now -- true
	preempt-queue schedule --once k -- true
	seq 2 | preempt-queue schedule --halt soon --lines -- true
	preempt-queue set --halt soon
	preempt-queue schedule -- true
	[ "$(halts 1-7)" = 'now never now never soon soon soon ' ]
	[ "$(preempt-queue set --queue other)" = 'halt now' ]
	answers 2 preempt-queue set --halt seldom
	answers 2 preempt-queue set --halt now --keep-going
	[ "$(preempt-queue set)" = 'halt soon' ]
}

@test "list: several states, and at most so many" {
	seq 6 | preempt-queue schedule --lines -- echo
	preempt-queue cancel 2-3
	[ "$(preempt-queue list --limit 3 | awk 'NR > 1 { printf "%s ", $1 }')" = '1 2 3 ' ]
	[ "$(preempt-queue list --state failed,cancelled --limit 9 | awk 'NR > 1 { printf "%s ", $1 }')" = '2 3 ' ]
	[ "$(preempt-queue list --state waiting,cancelled | wc -l)" = 7 ]
	answers 0 preempt-queue list --limit 2 --follow --timeout 60s
	[ "${#lines[@]}" = 3 ]
	answers 124 preempt-queue list --follow --timeout 100ms
	[[ $stderr = *'queue default: --timeout has passed'* ]]
	answers 2 preempt-queue list --state waiting,gone
	[[ $stderr = *'"gone" is not waiting'* ]]
}

@test "cancel and retry by id, by tag and all: the ids are printed, others refused" {
	seq 5 | preempt-queue schedule --lines --tag odd -- echo
	preempt-queue schedule --tag even -- true
	answers 1 preempt-queue cancel 2 2 77
	[ "$output" = 2 ]
	[[ $stderr = *'queue default has no command 77'* ]]
	answers 1 preempt-queue cancel 2
	answers 0 preempt-queue cancel --tag even
	[ "$output" = 6 ]
	answers 0 preempt-queue cancel --all
	[ "$(sort <<<"$output" | tr '\n' ' ')" = '1 3 4 5 ' ]
	answers 0 preempt-queue retry --tag even
	[ "$output" = 6 ]
	answers 0 preempt-queue retry 1
	answers 1 preempt-queue retry 1
	answers 0 preempt-queue retry --failed
	[ -z "$output" ]
	answers 0 preempt-queue retry --cancelled
	[ "$(sort <<<"$output" | tr '\n' ' ')" = '2 3 4 5 ' ]
	[ "$(states | grep -c waiting)" = 6 ]
}

@test "forget: what is over goes, with its files beside the store" {
	seq 3 | preempt-queue schedule --lines -- echo
	answers 1 preempt-queue forget 1
	preempt-queue cancel 1 2
	mkdir -p files/item/0/1 files/item/0/3
	touch files/item/0/1/state
	export PREEMPT_QUEUE_FILES=$PWD/files
	answers 0 preempt-queue forget --finished --older-than 1h
	[ -z "$output" ]
	answers 0 preempt-queue forget 1
	answers 1 preempt-queue show 1
	[ "$(ls files/item/0)" = 3 ]
	answers 0 preempt-queue forget --finished
	[ "$output" = 2 ]
	[ "$(states)" = '3 waiting' ]
	[ "$(preempt-store list queue/default/done/ | wc -l)" = 0 ]
	# Its number is not given again.
	answers 0 preempt-queue schedule -- true
	[ "$output" = 4 ]
}

@test "--lines: templates, commands of their own, NUL, blanks, the last line without an end" {
	printf 'a b\n\n$(date)\nlast' | preempt-queue schedule --lines -- cp {} '{}.bak' >ids
	[ "$(tr '\n' ' ' <ids)" = '1 2 3 ' ]
	[ "$(preempt-queue show 2 --json | member command)" = "['cp', '\$(date)', '\$(date).bak']" ]
	[ "$(preempt-queue show 3 --json | member command)" = "['cp', 'last', 'last.bak']" ]
	printf 'with\nnewline\0second' | preempt-queue schedule --lines -0 -- cat
	[ "$(preempt-queue show 4 --json | member command)" = "['cat', 'with\\nnewline']" ]
	echo 'gzip <"$f" | wc' | preempt-queue schedule --lines
	[ "$(preempt-queue show 6 --json | member shell)" = True ]
	[ "$(preempt-queue show 6 --json | member command)" = "['gzip <\"\$f\" | wc']" ]
	answers 0 preempt-queue schedule --lines -- cat </dev/null
	[ -z "$output" ]
	# {} in text for a shell is refused, unless a brace more keeps it as it is.
	echo x | answers 2 preempt-queue schedule --lines --shell -- 'echo {}'
	echo x | answers 0 preempt-queue schedule --lines --shell -- 'find . -exec touch {{} +; echo "$1"'
	[ "$(preempt-queue show 7 --json | member command)" = "['find . -exec touch {} +; echo \"\$1\"', 'x']" ]
}

@test "--lines: ids come while the input is still open" {
	mkfifo in
	preempt-queue schedule --lines -- echo <in >ids &
	exec 7>in
	echo one >&7
	eventually grep -qx 1 ids
	echo two >&7
	eventually grep -qx 2 ids
	exec 7>&-
	wait $!
	[ "$(states)" = $'1 waiting\n2 waiting' ]
}

@test "--lines: a line that is refused ends it, and it is reported what was scheduled before" {
	# shellcheck disable=SC2183
	{
		seq 70
		printf 'x%.0s' {1..70000}
		echo
		seq 5
	} >in
	answers 2 preempt-queue schedule --lines -- echo <in
	[ "${#lines[@]}" = 70 ]
	[[ $stderr = *'70 commands are scheduled, the rest is not: line 71 '* ]]
	[ "$(states | wc -l)" = 70 ]
	printf 'a\0b\n' >in
	answers 2 preempt-queue schedule --lines -- echo <in
	[[ $stderr = *'line 1 has a NUL'* ]]
}

@test "--lines with a long --env: a transaction takes only as many lines as it has room for" {
	batch() { preempt-store get "queue/default/item/$(printf %010d "$1")" | member batch; }
	seq 20 | preempt-queue schedule --lines --env "A=$(printf 'x%.0s' {1..50000})" -- echo >ids
	[ "$(wc -l <ids)" = 20 ]
	[ "$(batch 1)" != "$(batch 20)" ]
}

@test "--once: what is scheduled again after an unknown end is there once" {
	seq 100 >in
	preempt-queue schedule --lines --once night -- echo <in | head -n 3 >/dev/null || :
	preempt-queue schedule --lines --once night -- echo <in >ids
	preempt-queue schedule --lines --once night -- echo <in >again
	cmp ids again
	[ "$(sort -u ids | wc -l)" = 100 ]
	[ "$(states | wc -l)" = 100 ]
	answers 0 preempt-queue schedule --once morning -- true
	[ "$output" = 101 ]
	answers 0 preempt-queue schedule --once morning -- true
	[ "$output" = 101 ]
}

@test "WQ-9: a full queue: schedule waits, --wait ends that, room lets it in" {
	seq 2 | preempt-queue schedule --lines --limit 2 -- echo
	answers 124 preempt-queue schedule --limit 2 --wait 200ms -- echo
	[[ $stderr = *'full'* ]]
	preempt-queue schedule --limit 2 -- echo third >id 3>&- &
	local pid=$!
	sleep 0.3
	[ ! -s id ]
	preempt-queue cancel 1
	wait $pid
	[ "$(<id)" = 3 ]
	answers 0 preempt-queue schedule --limit 0 -- echo
	[[ $stderr = *warning* ]]
}

# fail ID [quietly]: as a worker would have put it
failed=0
fail() {
	local id now prefix=queue/default
	failed=$((failed + 1))
	id=$(printf %010d "$1") now=$(date +%s%3N)
	preempt-store rm "$prefix/wait/4999/$id"
	preempt-store put "$prefix/done/$id" \
		"{\"state\":\"failed\",\"ending\":\"exited\",\"code\":3,\"token\":\"t\",\"worker\":\"w1\",\"host\":\"n1\",\"started\":$now,\"ended\":$now}"
	preempt-store put "$prefix/count/w1" "{\"taken\":$failed,\"failed\":$failed}"
	[ "${2-}" = quietly ] || preempt-store put "$prefix/error" \
		"{\"id\":$1,\"ending\":\"exited\",\"code\":3,\"worker\":\"w1\",\"host\":\"n1\",\"tag\":\"big\",\"command\":\"train 1\",\"utc\":$now}"
}

@test "WQ-4: join tells the first error, cancels what waits, and tells it until that is retried or forgotten" {
	seq 100 | preempt-queue schedule --lines -- train
	fail 1
	answers 44 preempt-queue join
	[[ $stderr = *'command 1 (train 1)'*'exit code 3'*'w1'*'99 others were cancelled'* ]]
	[ "$(states | grep -c cancelled)" = 99 ]
	local i
	for i in join 'done' join; do
		answers 44 preempt-queue "$i"
		[[ $stderr = *'command 1 (train 1)'*'exit code 3'*'w1'*'99 others were cancelled'* ]]
	done
	# The queue goes on, and who waits for another command is told of that one.
	answers 0 preempt-queue schedule -- true
	preempt-queue cancel 101
	answers 0 preempt-queue join 101
	answers 44 preempt-queue join 1 101
	# What was cancelled because of it was not done, either.
	preempt-queue forget 1
	answers 44 preempt-queue join
	[[ $stderr = *'command 2 (train 2) and others were cancelled because command 1 failed'* ]]
	answers 44 preempt-queue join 2
	answers 44 preempt-queue join $(seq 101 -1 2)
	answers 0 preempt-queue forget --finished
	answers 0 preempt-queue join
	answers 0 preempt-queue 'done'
	answers 1 preempt-queue join 2
	[[ $stderr = *'there is no command 2'* ]]
}

@test "join of some commands raises the first error, too: what waits is cancelled, and the queue goes on" {
	seq 3 | preempt-queue schedule --lines -- train
	fail 1
	answers 44 preempt-queue join 1
	[ "$(states | grep -c cancelled)" = 2 ]
	answers 0 preempt-queue schedule -- true
}

@test "retry before the first error was told: it tells it, and what it puts back is not cancelled again" {
	seq 3 | preempt-queue schedule --lines -- train
	fail 1
	answers 0 preempt-queue retry --failed
	[ "$output" = 1 ]
	[[ $stderr = *'command 1 [big] (train 1)'*'2 others were cancelled'* ]]
	answers 0 preempt-queue retry --cancelled
	answers 0 preempt-queue schedule -- true
	answers 124 preempt-queue join --timeout 100ms
	[ "$(states | grep -c waiting)" = 4 ]
}

@test "list --follow prints a command once that ends while the others are being listed" {
	local row times=0 follower
	seq 1101 | preempt-queue schedule --lines -- train >/dev/null
	mkfifo rows
	preempt-queue list --follow --json --timeout 60s >rows 3>&- &
	follower=$!
	exec 4<rows
	# It has begun, and the rows of the first page (1000) do not fit into the pipe.
	read -r row <&4
	preempt-queue cancel 1100
	for _ in listed followed; do
		row=
		until [[ $row = *'"id":1101,'* ]]; do
			read -r row <&4
			[[ $row != *'"id":1100,'* ]] || times=$((times + 1))
		done
		preempt-queue cancel 1101 || :
	done
	kill $follower
	[ $times = 1 ]
}

@test "fetch before the first error was told: it tells it, and does not wait for what no worker would take" {
	local how failing
	for how in --wait --follow; do
		failing=$((failed * 2 + 1))
		seq 2 | preempt-queue schedule --lines -- train
		fail $failing
		answers 1 preempt-queue fetch "$how" $((failing + 1)) --timeout 60s
		[[ $stderr = *"command $failing [big] (train 1)"*"command $((failing + 1)) was cancelled"*"because command $failing failed"* ]]
	done
}

@test "join --tag: what failed or was cancelled there is reported, also if another command raised the error" {
	preempt-queue schedule --tag big -- train
	preempt-queue schedule --tag small -- train
	preempt-queue schedule --tag quiet --keep-going -- train
	fail 3 quietly
	fail 1
	answers 44 preempt-queue schedule -- true
	preempt-queue schedule --tag later -- true
	answers 124 preempt-queue join --tag later --timeout 300ms
	answers 44 preempt-queue join --tag big --timeout 100s
	[[ $stderr = *'command 1 [big] (train)'* ]]
	answers 3 preempt-queue join --tag big --exit-status
	answers 44 preempt-queue join --tag small
	[[ $stderr = *'command 2 (train) was cancelled because command 1 failed'* ]]
	answers 1 preempt-queue join --tag quiet
	[[ $stderr = *'1 of 1 commands failed: 3;'* ]]
	answers 1 preempt-queue join --tag typo
	[[ $stderr = *'no command has the tag "typo"'* ]]
	answers 2 preempt-queue join --tag big 1
	preempt-queue retry 1
	answers 124 preempt-queue join --tag big --timeout 300ms
}

@test "WQ-5: schedule tells the first error once, and schedules nothing then" {
	preempt-queue schedule -- train
	fail 1
	answers 44 preempt-queue schedule -- true
	[ -z "$output" ]
	[[ $stderr = *'command 1 '* ]]
	[ "$(states)" = '1 failed' ]
	answers 0 preempt-queue schedule -- true
	[ "$output" = 2 ]
}

@test "WQ-6: done tells the first error; of many who join at the same time each is told" {
	seq 50 | preempt-queue schedule --lines -- train
	fail 1
	answers 44 preempt-queue 'done'
	answers 44 preempt-queue 'done'
	preempt-queue retry --failed
	answers 1 preempt-queue 'done'
	fail 1
	local i pids=() told=0 other=0
	for i in 1 2 3 4 5 6; do
		preempt-queue join --timeout 200s 2>"err.$i" &
		pids+=($!)
	done
	for i in "${pids[@]}"; do
		wait "$i" && continue
		[ $? = 44 ] && told=$((told + 1)) || other=$((other + 1))
	done
	[ "$told $other" = '6 0' ]
	[ "$(cat err.* | grep -c 'command 1 ')" = 6 ]
}

@test "join: 1 where failed what was to keep going, with --exit-status the command's own code" {
	preempt-queue schedule --keep-going -- train
	fail 1 quietly
	answers 1 preempt-queue join
	[[ $stderr = *'1 of 1 commands failed: 1;'* ]]
	answers 3 preempt-queue join --exit-status
	answers 0 preempt-queue forget 1
	answers 0 preempt-queue join
}

@test "join: 124 after --timeout, 75 when no worker was there to work, and the truth is said" {
	seq 3 | preempt-queue schedule --lines -- echo
	answers 124 preempt-queue join --timeout 300ms
	[[ $stderr = *'3 commands wait and 0 run'* ]]
	answers 75 preempt-queue join --recovery 1s
	[[ $stderr = *'no worker was alive for '*'3 commands wait, 0 were being run; nothing is lost'* ]]
	[[ $stderr != *'trying again'* ]]
	# Both times may be over at one look.
	watched() {
		answers 124 preempt-queue join --watchdog 500ms --timeout 2500ms
		grep -q watchdog <<<"$stderr"
	}
	eventually watched
}

@test "fetch: 1 where there is nothing to fetch yet, or ever; 124 when it was waited for in vain" {
	preempt-queue schedule -- echo
	answers 1 preempt-queue fetch 1
	[[ -z $output && $stderr = *'is not over: it waits'* ]]
	answers 1 preempt-queue fetch 2
	answers 124 preempt-queue fetch 1 --wait --timeout 200ms
	preempt-queue fetch 1 --wait 2>err &
	local pid=$! code=0
	sleep 0.2
	preempt-queue cancel 1
	wait $pid || code=$?
	[ $code = 1 ]
	grep -q 'was cancelled' err
}

@test "signals end join, fetch and schedule as they end any program" {
	preempt-queue schedule -- echo
	local command pid code signal
	mkfifo never
	exec 8<>never
	for command in join 'fetch 1 --wait' 'schedule --lines -- echo' 'list --follow'; do
		for signal in INT TERM; do
			# A shell without job control starts them with INT ignored.
			# shellcheck disable=SC2086
			python3 -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL); os.execvp(sys.argv[1], sys.argv[1:])' \
				preempt-queue $command <&8 >/dev/null &
			pid=$!
			eventually grep -q 'SigCgt:.*[1-9a-f]' "/proc/$pid/status"
			eventually eval '[ "$(readlink /proc/$pid/exe)" = "$(readlink -f "$(command -v preempt-queue)")" ]'
			sleep 0.3
			code=0
			kill -$signal $pid
			wait $pid || code=$?
			[ $code = $((128 + $(kill -l $signal))) ]
		done
	done
	[ "$(states)" = '1 waiting' ]
}

@test "kill -9 of schedule at any moment: all that it printed is in the queue, each once" {
	local i pid code killed=0
	seq 100000 >in
	for i in 1 2 3 4 5 6; do
		preempt-queue schedule --lines --tag "round-$i" -- echo <in >"ids.$i" &
		pid=$!
		eventually test -s "ids.$i"
		sleep "0.0$((i * 13 % 10))"
		# A machine that did nothing for long enough has let it finish.
		kill -9 $pid 2>/dev/null || :
		code=0
		wait $pid || code=$?
		[ $code = 0 ] || killed=$((killed + 1))
	done
	[ $killed -gt 0 ]
	# A line that was cut by the kill is none.
	sed -n '/[0-9]$/p' ids.* | sort >printed
	[ "$(wc -l <printed)" -gt 100 ]
	[ -z "$(uniq -d printed)" ]
	preempt-queue list | awk 'NR > 1 { print $1 }' | sort >there
	[ -z "$(comm -23 printed there)" ]
	[ "$(wc -l <there)" = "$(sort -u there | wc -l)" ]
	# And what was scheduled of each are the first lines, in order.
	preempt-queue list --tag round-3 | awk 'NR > 1 { print $NF }' >got
	cmp got <(head -n "$(wc -l <got)" in)
}

@test "a reader that goes away, and a full disk: no more is scheduled, and it is reported" {
	seq 100000 >in
	local code=0
	{ preempt-queue schedule --lines -- echo <in || echo $? >code; } | head -n 1 >/dev/null
	[ "$(<code)" = $((128 + $(kill -l PIPE))) ]
	{ (trap '' PIPE && preempt-queue schedule --lines -- echo <in) || echo $? >code; } 2>err |
		head -n 1 >/dev/null
	[ "$(<code)" = 75 ]
	grep -q 'and no more will be' err
	preempt-queue schedule --lines -- echo <in >/dev/full 2>err || code=$?
	[ $code = 75 ]
	grep -q '[0-9] commands are scheduled, and no more will be' err
	[ "$(states | wc -l)" -lt 50000 ]
	preempt-queue list >/dev/full 2>err && false
	grep -q 'cannot write' err
}

@test "bad input is refused, and nothing is scheduled" {
	local words
	while read -r words; do
		# shellcheck disable=SC2086
		answers 2 preempt-queue $words </dev/null
		[ -n "$stderr" ]
	done <<'END'
schedule
schedule --
schedule --priority 5000 -- x
schedule --priority --5 -- x
schedule --priority 1x -- x
schedule --max-attempts 0 -- x
schedule --timeout -1 -- x
schedule --env 1A=b -- x
schedule --env NO_SUCH_VARIABLE_HERE -- x
schedule --resource a/b -- x
schedule --once a/b -- x
schedule --queue a/b -- x
schedule -0 -- x
schedule --halt later -- x
schedule --halt now --keep-going -- x
work --platform none
schedule --shell --lines -- echo>{}
schedule -- echo {per-worker:
schedule x
show 0
show 01x
show -1
show 99999999999
fetch
cancel
cancel 1 --all
retry
retry 1 --failed
forget --tag x
forget --finished 1
list --state odd
list --json --joblog
join x
join 1 --tag x
resource a
no-such-command
END
	answers 2 preempt-queue schedule -- ''
	[[ $stderr = *'the command is empty'* ]]
	answers 1 preempt-queue list
}

@test "a command that is too long is refused, and names the cure" {
	answers 2 preempt-queue schedule -- echo "$(printf 'x%.0s' {1..62000})"
	[[ $stderr = *'put what it needs into a file'* ]]
	answers 0 preempt-queue schedule -- echo "$(printf 'x%.0s' {1..60000})"
}

@test "queues of one store are apart, and without --store one is found by the queue's name" {
	preempt-queue schedule --queue one -- true
	PREEMPT_QUEUE=two preempt-queue schedule -- true
	answers 0 preempt-queue list --queue two
	[ "${#lines[@]}" = 2 ]
	unset PREEMPT_STORE
	export XDG_STATE_HOME=$PWD/state
	answers 0 preempt-queue schedule -- true
	answers 0 preempt-queue schedule --queue night -- true
	[ -e state/preempt/queue-default.db ] && [ -e state/preempt/queue-night.db ]
	answers 0 preempt-queue list --queue night
	[ "${#lines[@]}" = 2 ]
}

@test "a store that others can write is refused" {
	[[ $PREEMPT_STORE = sqlite:* ]] || skip "a file's permissions"
	preempt-queue schedule -- true
	chmod 666 "${PREEMPT_STORE#sqlite:}"
	answers 77 preempt-queue schedule -- true
	answers 77 preempt-queue list
}

@test "a value that is damaged is said, not run and not skipped" {
	preempt-queue schedule -- true
	preempt-store put queue/default/item/0000000001 '{"command":[]}'
	answers 65 preempt-queue list
	[[ $stderr = *item/0000000001* ]]
	answers 65 preempt-queue show 1
}

@test "a command that is damaged fails; once it is forgotten, the queue can be used again" {
	preempt-queue schedule -- true
	preempt-store put queue/default/item/0000000001 '{"command":[]}'
	answers 0 preempt-queue work --idle-exit 0
	answers 44 preempt-queue join
	[[ $stderr = *"command 1"*damaged* ]]
	answers 65 preempt-queue list
	answers 0 preempt-queue forget 1
	answers 0 preempt-queue list
	# Where one waits with another priority is not known.
	preempt-queue schedule --priority 1 -- true
	preempt-store put queue/default/item/0000000002 '{"command":[]}'
	answers 65 preempt-queue cancel 2
	[[ $stderr = *item/0000000002* ]]
}

@test "a key without an id among what waits: who raises a failure, and a worker, name it and do not go round" {
	preempt-queue schedule -- false
	answers 0 preempt-queue work --idle-exit 0
	preempt-store put queue/default/wait/0000/xyz '{}'
	answers 65 preempt-queue join
	[[ $stderr = *wait/0000/xyz* ]]
	preempt-store put queue/default/blocked/xyz '{}'
	answers 65 preempt-queue schedule -- true
	[[ $stderr = *blocked/xyz* ]]
	preempt-store rm queue/default/error
	answers 65 preempt-queue work --idle-exit 0
	[[ $stderr = *wait/0000/xyz* ]]
}

@test "a joiner outlasts a store that does not answer for a while" {
	mkdir -m 700 s
	export PREEMPT_STORE=$PWD/s/q.db
	preempt-queue schedule -- true
	preempt-queue join --timeout 120s --watchdog 200ms 2>err 3>&- &
	local pid=$! code=0
	eventually test -s err # it asks
	mv s away
	sleep 0.5
	kill -0 $pid
	mv away s
	preempt-queue cancel 1
	wait $pid || code=$?
	[ $code = 0 ]
}
