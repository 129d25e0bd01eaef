#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-queue as its clients see it: what is scheduled, shown, cancelled, put back, forgotten and joined.
# What workers do: preempt-queue-work.bats.
# takes: 40
# shellcheck disable=SC2016 # text for another shell

bats_require_minimum_version 1.5.0
load ../support/queue

# member NAME: of the JSON object on stdin
member() {
	python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"
}

# words: the lines on stdin, sorted, in one line
words() { sort | tr '\n' ' '; }

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
		[ -z "$out$err" ]
		expect 0 preempt-queue 'done'
	done
	# A name that is mistyped is not said to be done.
	expect 1 preempt-queue join --queue defualt
	says 'queue defualt: nothing was ever scheduled'
}

@test "a store that does not exist, as where its name is mistyped: 1, a message, and none is made" {
	local command
	for command in join 'done' 'join --exit-status' 'list --follow' list workers 'show 1' 'fetch --wait 1' 'cancel --all' 'join -q'; do
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
	expect 0 preempt-queue schedule --tag sweep --priority -7 --max-attempts 4 --timeout 90s \
		--env 'A=b c' --env COLOUR --stdin in.txt --halt soon --resource vocabulary -- \
		python3 train.py --lr '0.1 0.2' ''
	[ "$out$err" = 1 ]
	expect 0 preempt-queue schedule --shell --directory '' -- 'echo "$1"' x
	[ "$out" = 2 ]
	expect 0 preempt-queue show 1
	says "command      python3 train.py --lr '0.1 0.2' ''"
	[ "$(what 1 command environment stdin directory priority timeout_ms halt)" = \
		"['python3', 'train.py', '--lr', '0.1 0.2', ''] ['A=b c', 'COLOUR=green'] $PWD/in.txt $PWD -7 90000 soon" ]
	[ "$(what 2 shell directory)" = 'True ' ]
	expect 1 preempt-queue show 3
	says 'no command 3'
	# The command itself is what was given, also where it cannot be shown.
	schedule id -- cat $'a\xff\xfeb'
	preempt-store get "queue/default/item/000000000$id" | grep -q $'a\xff\xfeb'
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
	[ "$(member state <<<"$out")" = cancelled ]
	[ "$(preempt-queue list --limit 3 | awk 'NR > 1 { printf "%s ", $1 }')" = '1 2 3 ' ]
	[ "$(preempt-queue list --state failed,cancelled --limit 9 | awk 'NR > 1 { printf "%s ", $1 }')" = '2 3 ' ]
	[ "$(preempt-queue list --state waiting,cancelled | wc -l)" = 7 ]
	expect 0 preempt-queue list --limit 2 --follow --timeout 60s
	[ "$(wc -l <<<"$out")" = 3 ]
	expect 124 preempt-queue list --follow --timeout 100ms
	says 'queue default: --timeout has passed'
	expect 2 preempt-queue list --state waiting,gone
	says '"gone" is not waiting'
	# What has never run is in no joblog.
	expect 0 preempt-queue list --joblog
	[ "$out" = $'Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand' ]
}

@test "ids in ranges: cancel, show, done, forget and join take them, and name the one that is missing" {
	local words
	seq 6 | preempt-queue schedule --lines --tag six -- echo
	expect 0 preempt-queue cancel 2-3,5
	[ "$(words <<<"$out")" = '2 3 5 ' ]
	expect 0 preempt-queue show --json 5,2-3
	[ "$(grep -oE '^\{ *"id": *[0-9]+' <<<"$out" | grep -oE '[0-9]+' | tr '\n' ' ')" = '5 2 3 ' ]
	expect 0 preempt-queue 'done' 2-3 5
	expect 0 preempt-queue join 2-3,5
	expect 1 preempt-queue 'done' 1-3
	says '1 of these commands wait or run'
	expect 1 preempt-queue 'done' --tag six
	says '3 of these commands wait or run'
	expect 1 preempt-queue join 2-3,8
	says 'there is no command 8'
	expect 1 preempt-queue forget 2-4,7
	[ "$(words <<<"$out")" = '2 3 ' ]
	says 'command 4 is not over' 'no command 7'
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

@test "cancel and retry by id, by tag and all: the ids are printed, others refused" {
	seq 5 | preempt-queue schedule --lines --tag odd -- echo
	preempt-queue schedule --tag even -- true
	expect 1 preempt-queue cancel 2 2 77
	[ "$out" = 2 ]
	says 'queue default has no command 77'
	expect 1 preempt-queue cancel 2
	expect 0 preempt-queue cancel --tag even
	[ "$out" = 6 ]
	expect 0 preempt-queue cancel --all
	[ "$(words <<<"$out")" = '1 3 4 5 ' ]
	expect 0 preempt-queue retry --tag even
	[ "$out" = 6 ]
	expect 0 preempt-queue retry 1
	expect 1 preempt-queue retry 1
	expect 0 preempt-queue retry --failed
	[ -z "$out" ]
	expect 0 preempt-queue retry --cancelled
	[ "$(words <<<"$out")" = '2 3 4 5 ' ]
	counts waiting 6
}

@test "forget: what is over goes, with its files beside the store" {
	seq 3 | preempt-queue schedule --lines -- echo
	expect 1 preempt-queue forget 1
	preempt-queue cancel 1 2
	mkdir -p files/item/0/1 files/item/0/3
	touch files/item/0/1/state
	export PREEMPT_QUEUE_FILES=$PWD/files
	expect 0 preempt-queue forget --finished --older-than 1h
	[ -z "$out" ]
	expect 0 preempt-queue forget 1
	expect 1 preempt-queue show 1
	[ "$(ls files/item/0)" = 3 ]
	expect 0 preempt-queue forget --finished
	[ "$out" = 2 ]
	[ "$(states)" = 'waiting ' ]
	[ "$(preempt-store list queue/default/done/ | wc -l)" = 0 ]
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
	# {} in text for a shell is refused, unless a brace more keeps it as it is.
	echo x | expect 2 preempt-queue schedule --lines --shell -- 'echo {}'
	echo x | expect 0 preempt-queue schedule --lines --shell -- 'find . -exec touch {{} +; echo "$1"'
	[ "$(what 7 command)" = "['find . -exec touch {} +; echo \"\$1\"', 'x']" ]
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
	preempt-queue schedule --lines --once night -- echo <in | head -n 3 >/dev/null || :
	preempt-queue schedule --lines --once night -- echo <in >ids
	preempt-queue schedule --lines --once night -- echo <in >again
	cmp ids again
	[ "$(sort -u ids | wc -l)" = 100 ]
	counts waiting 100
	[ "$(preempt-queue schedule --once morning -- true)" = 101 ]
	[ "$(preempt-queue schedule --once morning -- true)" = 101 ]
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
	[ "$(preempt-queue list | wc -l)" -lt 50000 ]
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

# ---- The first error ----

@test "WQ-4: join tells the first error, cancels what waits, and tells it until that is retried or forgotten" {
	local i
	schedule i --priority 1 -- sh -c 'exit 3'
	seq 99 | preempt-queue schedule --lines -- train
	fails 1
	for i in join 'done' join; do
		expect 44 preempt-queue "$i"
		says "command 1 (sh -c 'exit 3').*exit code 3.*w.*99 others were cancelled"
		counts cancelled 99
	done
	# The queue goes on, and who waits for another command is told of that one.
	preempt-queue schedule -- true
	preempt-queue cancel 101
	expect 0 preempt-queue join 101
	expect 44 preempt-queue join 1 101
	# What was cancelled because of it was not done, either.
	preempt-queue forget 1
	expect 44 preempt-queue join
	says 'command 2 (train 1) and others were cancelled because command 1 failed'
	expect 44 preempt-queue join 2
	expect 44 preempt-queue join $(seq 101 -1 2)
	preempt-queue forget --finished
	expect 0 preempt-queue join
	expect 0 preempt-queue 'done'
	expect 1 preempt-queue join 2
	says 'there is no command 2'
}

@test "join --tag: what failed or was cancelled there is reported, also if another command raised the error" {
	local big
	schedule big --tag big --priority 1 -- sh -c 'exit 3'
	preempt-queue schedule --tag small -- train
	preempt-queue schedule --tag quiet --keep-going --priority 2 -- sh -c 'exit 4'
	fails "$big"
	expect 44 preempt-queue schedule -- true
	preempt-queue schedule --tag later -- true
	expect 124 preempt-queue join --tag later --timeout 100ms
	expect 44 preempt-queue join --tag big --timeout 100s
	says "command 1 \[big\] (sh -c 'exit 3')"
	expect 3 preempt-queue join --tag big --exit-status
	expect 44 preempt-queue join --tag small
	says 'command 2 (train) was cancelled because command 1 failed'
	expect 1 preempt-queue join --tag quiet
	says '1 of 1 commands failed: 3;'
	expect 1 preempt-queue join --tag typo
	says 'no command has the tag "typo"'
	expect 2 preempt-queue join --tag big 1
	preempt-queue retry 1
	expect 124 preempt-queue join --tag big --timeout 100ms
}

some_are_cancelled() { preempt-queue list --state cancelled --limit 1 --json | grep -q .; }

@test "WQ-6: of many who join at the same time each is told, also where some are killed at it" {
	local i pids=()
	schedule i --priority 1 -- sh -c 'exit 3'
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
		[ "$code" = 137 ] || grep 'command 1 .*2000 others were cancelled' "err.$i"
	done
	[ "$(preempt-queue list --state cancelled | wc -l)" = 2001 ]
	expect 44 preempt-queue join
	says 'command 1 .*2000 others were cancelled'
}

@test "--keep-going: a failure cancels nothing; join says 1, and with --exit-status the command's own code" {
	local bad ids
	schedule bad --keep-going --priority 1 -- sh -c 'exit 3'
	schedule_many 5 -- ./item
	worker a
	expect 1 preempt-queue join
	says '1 of 6 commands failed: 1;'
	expect 3 preempt-queue join --exit-status
	is "$bad" failed
	are succeeded "${ids[@]}"
	preempt-queue forget "$bad"
	expect 0 preempt-queue join
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
	says 'is not over: it waits'
	expect 1 preempt-queue fetch 999
	expect 124 preempt-queue fetch --wait --timeout 200ms "$id"
	aside fetch preempt-queue fetch --wait "$id"
	worker a
	eventually begun "$id"
	expect 1 preempt-queue fetch "$id"
	: >go
	aside_ends fetch 0
	[ "$(<fetch.out)" = out ]
	schedule bad --keep-going -- sh -c 'echo out; exit 7'
	expect 0 preempt-queue fetch --wait -q "$bad"
	[ "$out" = out ]
	expect 7 preempt-queue fetch --exit-status "$bad"
	schedule bad --keep-going -- sh -c 'kill -KILL $$'
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

@test "signals end join, fetch, schedule and list as they end any program" {
	local command signal i pids=() signals=()
	preempt-queue schedule -- echo
	mkfifo never
	exec 8<>never
	for command in join 'fetch 1 --wait' 'schedule --lines -- echo' 'list --follow'; do
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
schedule --env 1A=b -- x
schedule --env NO_SUCH_VARIABLE_HERE -- x
schedule --resource a/b -- x
schedule --once a/b -- x
schedule --queue a/b -- x
schedule -0 -- x
schedule --halt later -- x
schedule --halt now --keep-going -- x
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
	says 'put what it needs into a file'
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

# ---- Damaged ----

# damaged KEY VALUE COMMAND...: while the key has that value, COMMAND says 65 and names it, however often.
damaged() {
	local key=queue/default/$1 value=$2 before
	shift 2
	before=$(preempt-store get "$key") || before=
	preempt-store put "$key" "$value"
	for _ in 1 2; do
		expect 65 preempt-queue "$@"
		says "$key"
	done
	[ "$(preempt-store get "$key")" = "$value" ]
	if [ -n "$before" ]; then preempt-store put "$key" "$before"; else preempt-store rm "$key"; fi
}

@test "a record that is damaged is named, 65, by all that need it, and left as it is" {
	preempt-queue schedule -- true
	preempt-queue schedule --priority 1 -- true
	preempt-queue cancel "$(preempt-queue schedule -- true)"
	damaged item/0000000001 '{"command":[]}' list
	damaged item/0000000001 '{"command":[]}' show 1
	# Where one waits with another priority is not known.
	damaged item/0000000002 '{"command":[]}' cancel 2
	damaged count/@clients '[]' cancel 1
	damaged count/@clients '[]' join
	damaged worker/0123456789abcdef '{}' workers
	damaged wait/0000/xyz '{}' work --idle-exit 0 --source signal:TERM
	[ "$(states)" = 'waiting waiting cancelled ' ]
}

@test "a command that is damaged fails; once it is forgotten, the queue can be used again" {
	preempt-queue schedule -- true
	preempt-store put queue/default/item/0000000001 '{"command":[]}'
	worker a --idle-exit 0
	worker_ends a 0
	expect 44 preempt-queue join
	says "command 1.*damaged"
	expect 65 preempt-queue list
	preempt-queue forget 1
	expect 0 preempt-queue list
}
