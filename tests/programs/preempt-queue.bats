#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-queue as its clients see it: what is scheduled, shown, cancelled, put back, forgotten and joined.
# What workers do: preempt-queue-work.bats.
# takes: 40
# shellcheck disable=SC2016 # text for another shell

bats_require_minimum_version 1.5.0
load ../support/queue

# fails ID: that command is run, and fails. No client has been told.
fails() {
	worker w
	eventually is "$1" failed
	noticed w
}

# ---- Scheduled and shown ----

@test "WQ-3: join and done are at once through, three times; 1 where nothing was ever scheduled" {
	local i
	preempt-queue schedule --lines -- true </dev/null
	for i in 1 2 3; do
		expect 1 preempt-queue join
		says 'queue default: nothing was ever scheduled'
		expect 1 preempt-queue 'done'
		says 'queue default: nothing was ever scheduled'
	done
	# Also where there is a queue, and all in it is over.
	preempt-queue schedule -- true
	preempt-queue cancel 1
	for i in 1 2 3; do
		expect 0 preempt-queue join
		says 'queue default: 1 command: 1 cancelled'
		expect 0 preempt-queue 'done'
		[ -z "$out$err" ]
	done
	# A name that is mistyped is not said to be done.
	expect 1 preempt-queue join --queue defualt
	says 'queue defualt: nothing was ever scheduled'
}

@test "a store that does not exist, as where its name is mistyped: 1, a message, and none is made" {
	local command
	for command in join 'done' 'join --exit-status' list workers 'show 1' 'fetch --wait 1' 'cancel --all' 'join -q'; do
		# shellcheck disable=SC2086
		expect 1 preempt-queue $command
		says 'does not exist'
		[ -z "$out" ]
	done
	[ ! -e "$PREEMPT_STORE" ]
}

@test "schedule prints the id, and show what was asked" {
	local id
	export COLOUR=green
	expect 0 preempt-queue schedule --tag sweep --priority -7 --max-attempts 4 --timeout 90s --needs 1h \
		--env 'A=b c' --env COLOUR --stdin in.txt --halt soon --resource vocabulary -- \
		python3 train.py --lr '0.1 0.2' ''
	[ "$out$err" = 1 ]
	expect 0 preempt-queue schedule --shell --directory '' -- 'echo "$1"' x
	[ "$out" = 2 ]
	expect 0 preempt-queue show 1
	says "^command  *python3 train.py --lr '0.1 0.2' ''"
	[ "$(what 1 command environment stdin directory priority timeout needs halt)" = \
		"['python3', 'train.py', '--lr', '0.1 0.2', ''] ['A=b c', 'COLOUR=green'] $PWD/in.txt $PWD -7 90.0 3600.0 soon" ]
	[[ $(what 1 scheduled) = 20??-??-??T??:??:??.???Z ]]
	[ "$(what 2 shell directory)" = 'True ' ]
	expect 1 preempt-queue show 3
	says 'no command 3'
}

@test "list: by state and tag, as a table, in JSON and as a joblog, at most so many; text of the store is escaped" {
	preempt-queue schedule --tag $'a\e[31mb' -- printf $'x\ty'
	preempt-queue schedule --tag plain -- true
	seq 4 | preempt-queue schedule --lines -- echo
	preempt-queue cancel 2-3
	expect 0 preempt-queue list
	[ "$(wc -l <<<"$out")" = 7 ]
	says "a.x1b\[31mb.*printf 'x.ty'\$"
	[[ $out != *$'\e'* ]]
	expect 0 preempt-queue list --state running
	[ "$(wc -l <<<"$out")" = 1 ]
	expect 0 preempt-queue list --tag plain --json
	says '"state":"cancelled"'
	[ "$(preempt-queue list --limit 3 | awk 'NR > 1 { printf "%s ", $1 }')" = '1 2 3 ' ]
	[ "$(preempt-queue list --state failed,cancelled --limit 9 | awk 'NR > 1 { printf "%s ", $1 }')" = '2 3 ' ]
	[ "$(preempt-queue list --state waiting,cancelled | wc -l)" = 7 ]
	expect 2 preempt-queue list --state waiting,gone
	says '"gone" is not waiting'
	# What has never run is in no joblog.
	expect 0 preempt-queue list --joblog
	[ "$out" = $'Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand' ]
}

# on_terminal COLUMNS COMMAND: what it prints there
on_terminal() {
	script -qec "stty cols $1; $2" /dev/null </dev/null | tr -d '\r'
}

@test "on a terminal: schedule prints ranges, list fits and has totals, join shows how far it is" {
	on_terminal 80 'seq 200 | preempt-queue schedule --lines -- echo {} and very many words that do not fit on it' >said
	[ "$(<said)" = 1-200 ]
	preempt-queue cancel 7
	for columns in 80 66; do
		on_terminal $columns 'preempt-queue list' >said
		[ "$(wc -l <said)" = 202 ]
		[ "$(python3 -c 'print(max(len(line.rstrip("\n")) for line in open("said")))')" = $columns ]
		[ "$(tail -n 1 said)" = '200 commands: 1 cancelled, 199 waiting' ]
	done
	grep -q '^ *7 cancelled .*echo 7 and.*…$' said
	on_terminal 80 'preempt-queue join --timeout 100ms' >said || :
	grep -q '\] 1/200, 0 running' said
}

@test "ids in ranges: cancel, show, done, forget and join take them, and name the one that is missing" {
	local words
	seq 6 | preempt-queue schedule --lines --tag six -- echo
	expect 0 preempt-queue cancel 2-3,5
	says '3 commands cancelled'
	expect 0 preempt-queue show --json 5,2-3
	[ "$(grep -oE '^\{ *"id": *[0-9]+' <<<"$out" | grep -oE '[0-9]+' | tr '\n' ' ')" = '5 2 3 ' ]
	expect 0 preempt-queue 'done' 2-3 5
	expect 0 preempt-queue join 2-3,5
	expect 1 preempt-queue 'done' 1-3
	says '1 commands wait, 0 run'
	expect 1 preempt-queue 'done' --tag six
	says '3 commands wait, 0 run'
	expect 1 preempt-queue join 2-3,8
	says 'there is no command 8'
	expect 1 preempt-queue forget 2-4,7
	says '2 commands forgotten' 'command 4 is not over' 'no command 7'
	[ "$(states)" = 'waiting waiting cancelled waiting ' ]
	expect 2 preempt-queue 'done' 1 --tag six
	for words in 4-2 0-3 3- -3 1,,2 '1,' 1-2-3 1-9999999999 x; do
		expect 2 preempt-queue fetch "$words"
		[[ -z $out && $err = *preempt-queue* ]]
	done
}

@test "queues of one store are apart, and without --store one is found by the queue's name" {
	preempt-queue schedule --queue one -- true
	PREEMPT_QUEUE=two preempt-queue schedule -- true
	[ "$(preempt-queue list --queue two | wc -l)" = 2 ]
	unset PREEMPT_STORE
	export XDG_STATE_HOME=$PWD/state
	preempt-queue schedule -- true
	preempt-queue schedule --queue night -- true
	[[ -e state/preempt/queue-default.db && -e state/preempt/queue-night.db ]]
	[ "$(preempt-queue list --queue night | wc -l)" = 2 ]
}

# ---- Changed ----

@test "cancel and retry by id, by tag and all; what could not be changed is named" {
	seq 5 | preempt-queue schedule --lines --tag odd -- echo
	preempt-queue schedule --tag even -- true
	expect 1 preempt-queue cancel 2 2 77
	says '1 command cancelled' 'queue default has no command 77'
	expect 0 preempt-queue cancel --tag even
	[ "$(states)" = 'waiting cancelled waiting waiting waiting cancelled ' ]
	expect 0 preempt-queue cancel --all
	says '4 commands cancelled'
	expect 0 preempt-queue retry --tag even
	expect 0 preempt-queue retry 1
	expect 0 preempt-queue retry 1
	[ "$(states)" = 'waiting cancelled cancelled cancelled cancelled waiting ' ]
	expect 0 preempt-queue retry --failed
	says '0 commands put back'
	expect 0 preempt-queue retry --cancelled
	counts waiting 6
}

@test "forget: what is over goes, with its files beside the store" {
	seq 3 | preempt-queue schedule --lines -- echo
	expect 1 preempt-queue forget 1
	preempt-queue cancel 1 2
	mkdir -p files/item/0/1 files/item/0/3
	touch files/item/0/1/state files/{1,2,3}.0123456789abcdef.out
	export PREEMPT_QUEUE_FILES=$PWD/files
	expect 0 preempt-queue forget --finished --older-than 1h
	says '0 commands forgotten'
	expect 0 preempt-queue forget 1
	expect 1 preempt-queue show 1
	[ "$(ls files/item/0)" = 3 ]
	expect 0 preempt-queue forget --finished
	[ "$(cd files && echo *.out)" = 3.0123456789abcdef.out ]
	[ "$(states)" = 'waiting ' ]
	# Its number is not given again.
	[ "$(preempt-queue schedule -- true)" = 4 ]
}

# ---- --lines, --once ----

@test "--lines: templates, commands of their own, NUL, blanks, the last line without an end" {
	printf 'a b\n\n$(date)\nlast' | preempt-queue schedule --lines -- cp {} '{}.bak' >ids
	[ "$(tr '\n' ' ' <ids)" = '1 2 3 ' ]
	[ "$(what 1 command)" = "['cp', 'a b', 'a b.bak']" ]
	[ "$(what 2 command)" = "['cp', '\$(date)', '\$(date).bak']" ]
	[ "$(what 3 command)" = "['cp', 'last', 'last.bak']" ]
	printf 'with\nnewline\0second' | preempt-queue schedule --lines -0 -- cat
	[ "$(what 4 command)" = "['cat', 'with\\nnewline']" ]
	echo 'gzip <"$f" | wc' | preempt-queue schedule --lines
	[ "$(what 6 shell command)" = "True ['gzip <\"\$f\" | wc']" ]
	expect 0 preempt-queue schedule --lines -- cat </dev/null
	[ -z "$out" ]
	# Fields, and the number of the line.
	printf '0.1  8\n0.2\t16 x\n' | preempt-queue schedule --lines -- train '--lr={1}' '{2}' '{#}' '{{1}'
	[ "$(what 7 command) $(what 8 command)" = "['train', '--lr=0.1', '8', '1', '{1}'] ['train', '--lr=0.2', '16', '2', '{1}']" ]
	for word in '{.}' '{/}' '{//}' '{%}' '{2}'; do
		expect 2 preempt-queue schedule --lines -- echo "a$word" <<<x
		says "\"$word\""
	done
	# {} in text for a shell is refused, unless a brace more keeps it as it is.
	for word in '{}' '{1}'; do expect 2 preempt-queue schedule --lines --shell -- "echo $word" <<<x; done
	expect 0 preempt-queue schedule --lines --shell -- 'find . -exec touch {{} +; echo "$1"' <<<x
	[ "$(what 9 command)" = "['find . -exec touch {} +; echo \"\$1\"', 'x']" ]
}

@test "a command line in one word is refused, with the hint at --shell" {
	for word in 'a | b' 'a;b' 'python train.py' 'a >b'; do
		expect 2 preempt-queue schedule -- "$word"
		says '--shell'
	done
	expect 0 preempt-queue schedule -- '/opt/my tools/train' '{' 'a | b'
}

@test "--lines: ids come while the input is still open" {
	mkfifo in
	preempt-queue schedule --lines -- echo <in >ids 3>&- &
	exec 7>in
	echo one >&7
	eventually grep -qx 1 ids
	echo two >&7
	eventually grep -qx 2 ids
	exec 7>&-
	wait $!
	[ "$(states)" = 'waiting waiting ' ]
}

@test "--lines: a line that is refused ends it, and it is reported what was scheduled before" {
	# shellcheck disable=SC2183
	{
		seq 70
		printf 'x%.0s' {1..70000}
		echo
		seq 5
	} >in
	expect 2 preempt-queue schedule --lines -- echo <in
	[ "$(wc -l <<<"$out")" = 70 ]
	says '70 commands are scheduled, the rest is not: line 71 '
	counts waiting 70
	printf 'a\0b\n' >in
	expect 2 preempt-queue schedule --lines -- echo <in
	says 'line 1 has a NUL'
	# A transaction takes only as many as it has room for.
	[ "$(seq 20 | preempt-queue schedule --lines --env "A=$(printf 'x%.0s' {1..50000})" -- echo | wc -l)" = 20 ]
}

@test "--once: what is scheduled again after an unknown end is there once" {
	seq 100 >in
	head -n 60 in | preempt-queue schedule --lines --once night -- echo >/dev/null
	preempt-queue schedule --lines --once night -- echo <in >ids
	preempt-queue schedule --lines --once night -- echo <in >again
	cmp ids again
	[ "$(sort -u ids | wc -l)" = 100 ]
	counts waiting 100
	[ "$(preempt-queue schedule --once morning -- true)" = 101 ]
	[ "$(preempt-queue schedule --once morning -- true)" = 101 ]
}

@test "a reader that goes away, and a full disk: all is scheduled, and the ids that are not written are named" {
	seq 10000 >in
	{ preempt-queue schedule --lines -- echo <in 2>err || echo $? >code; } | head -n 1 >/dev/null
	[ "$(<code)" = 75 ]
	grep -q 'are scheduled, but their ids could not be written to stdout: [0-9]*-10000$' err
	counts waiting 10000
	expect 75 bash -c 'preempt-queue schedule --lines -- echo <in >/dev/full'
	says 'stdout: 10001-20000$'
	preempt-queue list >/dev/full 2>err && false
	grep -q 'cannot write' err
}

@test "WQ-9: a full queue: schedule waits, --wait ends that, room lets it in" {
	seq 2 | preempt-queue schedule --lines --limit 2 -- echo
	expect 124 preempt-queue schedule --limit 2 --wait 200ms -- echo
	says full
	aside third preempt-queue schedule --limit 2 -- echo third
	sleep 0.3
	runs third
	preempt-queue cancel 1
	aside_ends third 0
	[ "$(<third.out)" = 3 ]
	expect 0 preempt-queue schedule --limit 0 -- echo
	says warning
}

# ---- Failures ----

@test "a failure cancels nothing; join ends with 44, totals and the first one, as long as it is there" {
	local ids
	schedule_many 5 -- ./item
	preempt-queue schedule --priority 2 --tag bad -- sh -c 'echo no such thing >&2; exit 3'
	preempt-queue schedule --priority 1 -- sh -c 'exit 4'
	worker a
	expect 44 preempt-queue join
	says "7 commands: 5 succeeded, 2 failed; the first: command 6 \[bad\] (sh -c .*) ended with exit code 3 on a: no such thing; see preempt-queue fetch --stderr 6"
	are succeeded "${ids[@]}"
	expect 44 preempt-queue 'done'
	says 'command 6 '
	expect 3 preempt-queue join --exit-status
	expect 0 preempt-queue join "${ids[@]}"
	says '5 commands: 5 succeeded'
	preempt-queue forget 6
	expect 4 preempt-queue join --exit-status
	preempt-queue forget 7
	expect 0 preempt-queue join
	expect 1 preempt-queue join --tag bad
	says 'no command has the tag "bad"'
	expect 2 preempt-queue join --tag bad 1
}

@test "WQ-4: --halt now: join tells the first error once, cancels what waits, and the queue goes on" {
	local i
	schedule i --priority 1 --halt now -- sh -c 'exit 3'
	seq 99 | preempt-queue schedule --lines --tag rest -- train
	fails 1
	expect 44 preempt-queue join
	says "command 1 (sh -c 'exit 3') ended with exit code 3 on w; 99 others were cancelled"
	says '100 commands: 1 failed, 99 cancelled$'
	[ "$(grep -c 'command 1 ' <<<"$err")" = 1 ]
	counts cancelled 99
	for i in join 'done'; do
		expect 44 preempt-queue "$i"
		says "1 failed, 99 cancelled; the first: command 1 (sh -c 'exit 3').*exit code 3.*w"
	done
	# The queue goes on, and who waits for another command is told of that one.
	preempt-queue schedule -- true
	preempt-queue cancel 101
	expect 0 preempt-queue join 101
	expect 44 preempt-queue join 1 101
	# What was cancelled because of it was not done, either.
	expect 44 preempt-queue join --tag rest
	says '99 commands: 99 cancelled; cancelled because of command 1 (sh'
	preempt-queue forget 1
	expect 44 preempt-queue join $(seq 101 -1 2)
	says 'because of command 1;'
	preempt-queue forget --finished
	expect 0 preempt-queue join
	expect 1 preempt-queue join 2
	says 'there is no command 2'
}

some_are_cancelled() { preempt-queue list --state cancelled --limit 1 --json | grep -q .; }

@test "WQ-6: of many who join at the same time each is told, also where some are killed at it" {
	local i pids=()
	schedule i --priority 1 --halt now -- sh -c 'exit 3'
	seq 2000 | preempt-queue schedule --lines -- train >/dev/null
	fails 1
	for i in 1 2 3 4 5 6 7 8; do
		preempt-queue join --timeout 200s 2>"err.$i" 3>&- &
		pids+=($!)
	done
	# While they cancel.
	eventually some_are_cancelled
	kill -KILL "${pids[@]:0:4}" 2>/dev/null || :
	for i in 1 2 3 4 5 6 7 8; do
		code_of "${pids[i - 1]}"
		[ "$code" = 44 ] || [[ $code = 137 && $i -le 4 ]]
		[ "$code" = 137 ] || grep 'command 1 ' "err.$i"
	done
	counts cancelled 2000
	expect 44 preempt-queue join
	says '1 failed, 2000 cancelled; the first: command 1 '
}

# ---- --after ----

@test "--after: each is run when all that it names have succeeded; what is done already is none" {
	local one two both last
	schedule one -- ./gated go
	schedule two --after "$one" -- ./item
	schedule both --after "$one" --after "$two" --priority 5 -- ./item
	schedule last --after "$one-$both" -- ./item
	[ "$(states)" = "waiting blocked blocked blocked " ]
	[ "$(what "$both" after) $(what "$last" after)" = "1-2 1-3" ]
	expect 1 preempt-queue "done" "$last"
	worker a
	eventually begun "$one"
	: >go
	expect 0 preempt-queue join
	[ "$(tr '\n' ' ' <ran)" = "$one $two $both $last " ]
	schedule last --after "$one,$two" -- ./item
	[ "$(what "$last" state)" != blocked ]
	expect 2 preempt-queue schedule --after "$one,77" -- ./item
	says "no command 77"
	expect 0 preempt-queue join
	[ "$(grep -c . ran)" = 5 ]
}

@test "--after: one fails, and what comes after it is cancelled, and that after that; retry puts all back" {
	local one two three other
	schedule one -- test -e good
	schedule two --after "$one" -- ./item
	schedule three --after "$two" -- ./item
	schedule other -- ./item
	worker a
	expect 44 preempt-queue join
	says "the first: command $one "
	[ "$(states)" = "failed cancelled cancelled succeeded " ]
	preempt-queue list | grep "^ *$three cancelled .*(because of command $one)"
	[ "$(what "$three" because)" = "$one" ]
	# It comes after one that has failed already.
	schedule other --after "$two" -- ./item
	expect 44 preempt-queue join
	[ "$(what "$other" state)" = cancelled ]
	: >good
	preempt-queue forget "$other"
	preempt-queue retry --failed --cancelled
	expect 0 preempt-queue join
	[ "$(states)" = "succeeded succeeded succeeded succeeded " ]
	[ "$(grep -x -e "$two" -e "$three" ran | tr '\n' ' ')" = "$two $three " ]
}

@test "--after: without a worker, too, join ends when a user cancels what others wait for" {
	local one two three
	schedule one -- ./item
	schedule two --after "$one" -- ./item
	schedule three --after "$two" -- ./item
	preempt-queue cancel "$two"
	[ "$(states)" = "waiting cancelled cancelled " ]
	preempt-queue retry "$two" "$three"
	[ "$(states)" = "waiting blocked blocked " ]
	preempt-queue cancel "$one"
	expect 0 preempt-queue join
	[ "$(states)" = "cancelled cancelled cancelled " ]
	# What was forgotten no longer counts; what has failed does.
	preempt-queue forget "$one"
	preempt-queue retry "$two" "$three"
	[ "$(states)" = "waiting blocked " ]
}

@test "--after: thousands, and one failure that ends them all" {
	local one last
	schedule one -- false
	seq 5000 | preempt-queue schedule --lines --after "$one" -- ./item >ids
	[ "$(wc -l <ids)" = 5000 ]
	schedule last --after "$(head -n 1 ids)-$(tail -n 1 ids)" -- ./item
	worker a --idle-exit 0
	expect 44 preempt-queue join
	worker_ends a 0
	counts cancelled 5001
	[ ! -s ran ]
}

# ---- Waiting ----

@test "join without a worker says so, once, and waits; 124 after --timeout, 75 after --recovery" {
	seq 3 | preempt-queue schedule --lines -- echo
	aside join preempt-queue join --recovery 60s
	expect 124 preempt-queue join --timeout 100ms
	says '3 commands wait and 0 run'
	eventually grep 'no worker is alive, 3 commands wait' join.err
	expect 75 preempt-queue join --recovery 1s
	says 'no worker was alive for .*3 commands wait, 0 were being run; nothing is lost'
	! grep 'trying again' <<<"$err" || return 1
	# It looks every second.
	[ "$(grep -c 'no worker is alive' join.err)" = 1 ]
	runs join
}

@test "fetch: 1 where there is nothing to fetch yet, or ever; --wait waits, 124 in vain; --exit-status" {
	local id bad good
	schedule id -- bash -c './gated go; echo out'
	expect 1 preempt-queue fetch "$id"
	says 'is not over: it is waiting'
	expect 1 preempt-queue fetch 999
	expect 124 preempt-queue fetch --wait --timeout 200ms "$id"
	aside fetch preempt-queue fetch --wait "$id"
	worker a
	eventually begun "$id"
	expect 1 preempt-queue fetch "$id"
	: >go
	aside_ends fetch 0
	[ "$(<fetch.out)" = out ]
	schedule bad -- sh -c 'echo out; exit 7'
	expect 0 preempt-queue fetch --wait -q "$bad"
	[ "$out" = out ]
	expect 7 preempt-queue fetch --exit-status "$bad"
	schedule bad -- sh -c 'kill -KILL $$'
	expect 137 preempt-queue fetch --wait --exit-status "$bad"
	# Several, in the order that is asked for; of one that failed it is reported, of one that is not there, too.
	schedule good -- echo good
	expect 0 preempt-queue fetch --wait "$good" "$id" "$good" --timeout 100s
	[ "$out" = $'good\nout\ngood' ]
	expect 137 preempt-queue fetch --exit-status "$good" "$bad" "$good"
	says "command $bad has failed: it died of signal 9"
	expect 0 preempt-queue fetch -q "$bad"
	[ -z "$out$err" ]
	expect 1 preempt-queue fetch "$good" 999 "$good"
	says "no command 999"
	[ "$out" = good ]
	# One that is cancelled while it is waited for.
	noticed a
	schedule id -- ./item
	aside fetch2 preempt-queue fetch "$id" --wait
	sleep 0.2
	preempt-queue cancel "$id"
	aside_ends fetch2 1
	grep -q 'was cancelled' fetch2.err
}

@test "signals end join, fetch and schedule as they end any program" {
	local command signal i pids=() signals=()
	preempt-queue schedule -- echo
	mkfifo never
	exec 8<>never
	for command in join 'fetch 1 --wait' 'schedule --lines -- echo'; do
		for signal in INT TERM; do
			# A shell without job control starts them with INT ignored.
			# shellcheck disable=SC2086
			env --default-signal=INT preempt-queue $command <&8 >/dev/null 3>&- &
			pids+=($!) signals+=("$signal")
		done
	done
	started+=("${pids[@]}")
	for i in "${!pids[@]}"; do
		eventually [ "/proc/${pids[i]}/exe" -ef "$(command -v preempt-queue)" ]
		eventually grep -q 'SigCgt:.*[1-9a-f]' "/proc/${pids[i]}/status"
	done
	sleep 0.3
	for i in "${!pids[@]}"; do
		kill -"${signals[i]}" "${pids[i]}"
		code_of "${pids[i]}"
		[ "$code" = $((128 + $(kill -l "${signals[i]}"))) ]
	done
	[ "$(states)" = 'waiting ' ]
}

# ---- Refused ----

@test "bad input is refused, and nothing is scheduled" {
	local words
	while read -r words; do
		# shellcheck disable=SC2086
		expect 2 preempt-queue $words </dev/null
		[ -n "$err" ]
	done <<'END'
schedule
schedule --
schedule --priority 5000 -- x
schedule --priority --5 -- x
schedule --priority 1x -- x
schedule --max-attempts 0 -- x
schedule --timeout -1 -- x
schedule --needs x -- x
schedule --env 1A=b -- x
schedule --env NO_SUCH_VARIABLE_HERE -- x
schedule --resource a/b -- x
schedule --once a/b -- x
schedule --queue a/b -- x
schedule -0 -- x
schedule --halt later -- x
schedule --keep-going -- x
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
resource 1a -- x
set --halt now
work --platform none
work --period 1ms
work --limit 1
work --slots 0
work --term-signal FOO
work --source signal:KILL
no-such-command
END
	expect 2 preempt-queue schedule -- ''
	says 'the command is empty'
	expect 1 preempt-queue list
	# A command that is too long; the message names the cure.
	expect 2 preempt-queue schedule -- echo "$(printf 'x%.0s' {1..62000})"
	says 'into a file'
	expect 0 preempt-queue schedule -- echo "$(printf 'x%.0s' {1..60000})"
}

@test "a store, or a queue's directory, that others can write is refused: 77" {
	needs_store_file
	preempt-queue schedule -- true
	expect 77 preempt-queue work --store "$PREEMPT_STORE?shared-group" --idle-exit 0
	says 'run as you'
	chmod 666 store/q.db
	expect 77 preempt-queue schedule -- true
	expect 77 preempt-queue list
	chmod 600 store/q.db
	chmod g+w store
	expect 77 preempt-queue work --idle-exit 0
	chmod g-w store
	mkdir -p store/q.db.queue/default
	chmod go+w store/q.db.queue/default
	expect 77 preempt-queue work --idle-exit 0
	is 1 waiting
}

@test "queues need a store on a filesystem; one of 0.1.0 is refused, with the version that reads it: 65" {
	expect 2 preempt-queue schedule --store etcd://127.0.0.1:1/x -- true
	says 'queues need a store on a filesystem'
	preempt-store put queue/default/count/x '{"waiting":1,"running":0,"succeeded":0}'
	for command in join list 'schedule -- true' 'work --idle-exit 0 --source signal:TERM'; do
		# shellcheck disable=SC2086
		expect 65 preempt-queue $command
		says 'was made by preempt-tools 0.1.0, the last version that reads it'
	done
	preempt-queue schedule --queue other -- true
}

# sql STATEMENT: as another version, or a disk, may have left it.
sql() { python3 -c 'import sqlite3, sys; c = sqlite3.connect("store/q.db"); c.execute(sys.argv[1]); c.commit()' "$1"; }

@test "a row that is damaged is named and stepped over: nobody waits for it" {
	seq 4 | preempt-queue schedule --lines -- ./item
	sql "UPDATE command SET spec='{}' WHERE id=1"
	sql "UPDATE command SET state='odd' WHERE id=2"
	expect 0 preempt-queue list
	says '^ *1 .*(damaged)' '^ *2 damaged .*cannot be read'
	expect 0 preempt-queue list --state damaged --json
	says '"id":2,"state":"damaged"'
	worker a --idle-exit 0
	worker_ends a 0
	are succeeded 3 4
	expect 44 preempt-queue join
	says '2 succeeded, 1 failed, 1 damaged; the first: command 1 .*damaged'
	preempt-queue forget 1
	expect 65 preempt-queue join
	says '2 succeeded, 1 damaged'
	preempt-queue forget 2
	expect 0 preempt-queue join
}
