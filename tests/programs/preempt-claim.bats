#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-claim, and preempt-watch waiting for the group's claim.
# takes: 40
# shellcheck disable=SC2016,SC2030,SC2031,SC2154 # text for another shell; a test is a subshell of its own

bats_require_minimum_version 1.5.0
load ../support/group

# cannot_be_asked OPTION...: the watch says why, 75; the same with its first answer.
cannot_be_asked() {
	local limit
	for limit in 1s 15s 60s; do
		run -75 --separate-stderr preempt-watch "$@" --store "$PWD/not/mounted/s.db" --timeout $limit
		[[ $stderr = *"did not answer in that time"* ]] || break
	done
	[[ $stderr = *"the group could not be asked: "*"$PWD/not/mounted"* ]]
}

@test "the first claims, 0; the same task again, 0; another, 1, and is told whose it is" {
	join 2
	as 1 run -0 --separate-stderr preempt-claim --reason "power cut"
	[ "$output" = "task 1 $(hostname)" ]
	as 1 run -0 --separate-stderr preempt-claim
	[ "$output" = "task 1 $(hostname)" ]
	as 0 run -1 --separate-stderr preempt-claim
	[ "$output" = "task 1 $(hostname)" ]
	[[ $stderr = *"attempt 1 is claimed by task 1 on"* ]]
	as 0 run -1 --separate-stderr preempt-claim --json
	[ "$(field task <<<"$output")" = 1 ]
	[ "$(field reason <<<"$output")" = "power cut" ]
}

@test "from outside the job: no task is named, all leave; a second one from outside is told no" {
	join 2
	run -0 --separate-stderr preempt-claim --reason maintenance
	[ "$output" = "outside $(hostname)" ]
	run -1 --separate-stderr preempt-claim
	[ "$output" = "outside $(hostname)" ]
	run -0 --separate-stderr preempt-watch --source group --once
	[[ $output = *"group left=unknown claimed from outside, on $(hostname): command maintenance" ]]
}

@test "no store, no run, no attempt, a run that is over: a definite no; a store that cannot be reached: 75" {
	run -1 --separate-stderr preempt-claim
	run -75 --separate-stderr preempt-claim --store "$PWD/not/mounted/s.db"
	[[ $stderr = *"is the filesystem mounted?"* ]]
	[ ! -e s.db ]
	join 1
	run -1 --separate-stderr preempt-claim --run other
	[[ $stderr = *"has no attempt yet"* ]]
	run -1 --separate-stderr preempt-claim --attempt 7
	as 0 preempt-store leave --code 0
	run -1 --separate-stderr preempt-claim
	[[ $stderr = *"attempt 1 is over (completed)"* ]]
}

@test "wrong usage is refused: --then, a task that is none, garbage in numbers; nothing is claimed" {
	join 2
	run -2 --separate-stderr preempt-claim --then leave
	run -2 --separate-stderr preempt-claim --task 2 --tasks 2
	run -2 --separate-stderr preempt-claim --task 0x1
	run -2 --separate-stderr preempt-claim --grace -1s
	run -2 --separate-stderr preempt-claim extra
	run -1 --separate-stderr preempt-watch --source group --once
}

@test "a claim while not all have joined: 0; whichever task joins then leaves unstarted with 42" {
	export PREEMPT_LAUNCH=launch
	stand_for 0
	PREEMPT_TASKS=2 join_one 0 --timeout 5m >joined.0 2>err.0 3>&- &
	local first=$!
	eventually has_key TASK/0
	run -0 --separate-stderr preempt-claim --outside
	code_of "$first"
	[ "$code" = 42 ]
	run -42 --separate-stderr env PREEMPT_TASK=1 PREEMPT_TASKS=2 preempt-store join --pid $$ --timeout 30s
	[[ $stderr = *"was preempted before this task joined"* ]]
}

@test "--then stop is kept in the claim; --then continue claims nothing, and opens a round each time" {
	join 2
	run -0 --separate-stderr preempt-claim --then continue
	[ "$output" = "round 1" ]
	run -1 --separate-stderr preempt-claim --then continue
	[[ $stderr = *"under way already"* ]]
	run -1 --separate-stderr preempt-watch --source group --once
	run -0 --separate-stderr preempt-watch --source group:1 --once
	[[ $output = *"a checkpoint is asked for, round 1" ]]
	run -1 --separate-stderr preempt-watch --source group:2 --once
	agree_and_save 7
	run -0 --separate-stderr preempt-claim --then continue
	[ "$output" = "round 2" ]
	run -0 --separate-stderr preempt-claim --then stop --outside
	[ "$(preempt-store get run/r/000001/TERMINATED_WORKER | field "then")" = stop ]
	run -1 --separate-stderr preempt-claim --then continue
	[[ $stderr = *"is claimed from outside"* ]]
}

@test "--then continue --wait waits for the save of all tasks; --timeout bounds it" {
	join 2
	preempt-claim --then continue --wait >told 3>&- &
	waiter=$!
	started+=("$waiter")
	eventually grep -qx 'round 1' told
	kill -0 "$waiter"
	agree_and_save 7
	code_of "$waiter"
	[ "$code" = 0 ]
	run -124 --separate-stderr preempt-claim --then continue --wait --timeout 5s
	[[ $stderr = *"round 2: not all tasks have saved in time"* ]]
	run -2 preempt-claim --wait
}

@test "a task that has claimed claims again with another --then: 1, as that was not done" {
	join 2
	as 0 preempt-claim >/dev/null
	as 0 run -1 --separate-stderr preempt-claim --then stop
	[ "$output" = "task 0 $(hostname)" ]
	[[ $stderr = *"is claimed by task 0 on"* ]]
	as 0 run -1 preempt-claim --then continue
	as 0 run -0 preempt-claim --then exit
}

@test "--from -: an event of preempt-watch, text or JSON, with its time, source, reason and deadline (SY-12)" {
	local form
	for form in '' --json; do
		another_store
		join 1
		echo "drained" >flag
		# shellcheck disable=SC2086 # none or one word
		preempt-watch --source file:flag --grace 1h $form >event
		(
			cat event
			sleep 0.5
			echo garbage
		) | as 0 preempt-claim --from - >answer
		claim=$(preempt-store get run/r/000001/TERMINATED_WORKER)
		[ "$(field source <<<"$claim")" = file:flag ]
		[ "$(field reason <<<"$claim")" = drained ]
		[ "$(field utc <<<"$claim")" -le "$(date +%s%3N)" ]
		left=$(preempt-store get run/r/000001/DEADLINE | field left)
		[ "$left" -gt 3500000 ]
		[ "$left" -le 3600000 ]
		as 0 preempt-store leave >/dev/null
	done
}

# claimed SOURCE REASON: the claim names them, and a deadline within an hour.
claimed() {
	local claim left
	claim=$(preempt-store get run/r/000001/TERMINATED_WORKER)
	[ "$(field source <<<"$claim")" = "$1" ]
	[[ $(field reason <<<"$claim") = "$2"* ]]
	left=$(preempt-store get run/r/000001/DEADLINE | field left)
	((left > 3000000 && left <= 3600000))
}

@test "after preempt-watch, by && or by --exec: the notice's own source, reason and deadline" {
	local how
	echo drained >flag
	for how in 'preempt-watch --source file:flag --grace 1h >event && preempt-claim' \
		'exec preempt-watch --source file:flag --grace 1h --exec preempt-claim'; do
		another_store
		join 1
		run -0 --separate-stderr sh -c "$how"
		claimed file:flag drained
		as 0 preempt-store leave >/dev/null
	done
	# Another shell, and one that says why itself.
	another_store
	join 1
	run -0 sh -c 'preempt-watch --source file:flag --grace 1h && preempt-claim --reason power'
	claimed file:flag power
	as 0 preempt-store leave >/dev/null
	another_store
	join 1
	preempt-claim
	[ "$(preempt-store get run/r/000001/TERMINATED_WORKER | field source)" = command ]
}

@test "a notice that a scheduler sends to the whole pipe is claimed, also by one that has not joined" {
	local group
	join 1
	setsid sh -c 'preempt-watch --follow --source signal:TERM --grace 1h | preempt-claim --from -; :' \
		>out 2>err 3>&- &
	group=$!
	pipe_is_ready() {
		local claim watch
		claim=$(pgrep -g "$group" preempt-claim) && watch=$(pgrep -g "$group" preempt-watch) &&
			(($(sed -n 's/^SigIgn:/0x/p' "/proc/$claim/status" | tr -d '\t') >> 14 & 1)) &&
			(($(sed -n 's/^SigCgt:/0x/p' "/proc/$watch/status" | tr -d '\t') & 1))
	}
	eventually pipe_is_ready
	kill -TERM -- "-$group"
	is_claimed() { preempt-watch --once --source group >/dev/null 2>&1; }
	eventually is_claimed
	claimed signal:TERM 'sent by process '
	kill -KILL -- "-$group"
	as 0 preempt-store leave >/dev/null
}

@test "--from FILE; no event: 1; garbage: 2; a missing file: not a no; nothing is claimed by any of them" {
	join 1
	run -1 --separate-stderr preempt-claim --from /dev/null
	[[ $stderr = *"no notice came"* ]]
	run -1 --separate-stderr preempt-claim --from - </dev/null
	run -2 --separate-stderr preempt-claim --from - <<<'garbage'
	run -2 --separate-stderr preempt-claim --from - <<<''
	run -2 --separate-stderr preempt-claim --from - <<<'{"utc":"yesterday","source":"x"}'
	run -2 --separate-stderr preempt-claim --from - <<<'2026-02-31T00:00:00.000Z signal:TERM left=1s'
	head -c 100000 /dev/zero >zeros
	run -2 --separate-stderr preempt-claim --from zeros
	run preempt-claim --from missing
	[ "$status" -ge 64 ]
	run -1 --separate-stderr preempt-watch --source group --once
	printf '2026-01-31T00:00:00.000Z signal:TERM left=unknown' >line
	run -0 --separate-stderr preempt-claim --from line
}

@test "SY-8 the deadline only ever moves earlier, whichever task says it, also after the claim" {
	join 2
	as 0 preempt-claim --grace 10m
	first=$(deadline)
	as 1 run -1 --separate-stderr preempt-claim --grace 20m
	[ "$(deadline)" = "$first" ]
	[[ $stderr != *"earlier now"* ]]
	as 1 run -1 --separate-stderr preempt-claim --grace 1m
	second=$(deadline)
	[ "$second" -lt $((first - 500000)) ]
	[[ $stderr = *"run r: the deadline is earlier now: 20"*Z* ]]
	run -1 --separate-stderr preempt-claim --outside
	[ "$(deadline)" = "$second" ]
	run -0 --separate-stderr preempt-watch --source group --once --json
	# What was left when the claim was made, a while before the deadline became the second one.
	[ "$(field left_ms <<<"$output")" -le 120000 ]
}

@test "SY-11 garbage in DEADLINE, in the claim, in a task: a claim neither spins nor crashes" {
	join 2
	preempt-store put run/r/000001/DEADLINE garbage
	preempt-store put run/r/000001/TASK/1 '[]'
	as 0 run -0 --separate-stderr timeout 30 preempt-claim --grace 1m
	as 0 run -0 --separate-stderr timeout 30 preempt-claim --grace 30s
	[ "$(preempt-store get run/r/000001/DEADLINE | field left)" -le 60000 ]
	preempt-store put run/r/000001/TERMINATED_WORKER $'{"task":0,"host":"\\u001b[2J"}'
	run -1 --separate-stderr preempt-claim --outside
	[[ $output$stderr != *$'\e'* ]]
	preempt-store put run/r/000001/TERMINATED_WORKER garbage
	run -0 --separate-stderr preempt-watch --source group --once
	preempt-store put run/r/000001/OPEN garbage
	run -65 --separate-stderr preempt-claim
	preempt-store put run/r/LAST garbage
	run -65 --separate-stderr preempt-claim
	run -65 --separate-stderr preempt-watch --source group --timeout 30s
}

@test "a reason with control characters is escaped in the store and on the screen" {
	join 1
	as 0 preempt-claim --reason $'a\e[2Jb\nc'
	run -0 --separate-stderr preempt-watch --source group --once
	[[ $output = *'command a\x1b[2Jb\nc' ]]
}

@test "PH-22 a claim in attempt 1 is not seen in attempt 2, and one for attempt 1 is refused there" {
	join 1
	as 0 preempt-claim
	as 0 preempt-store leave --code 42
	join 1
	[ "$(preempt-store get run/r/LAST)" = '{"attempt":2}' ]
	run -1 --separate-stderr preempt-watch --source group --once
	run -1 --separate-stderr preempt-watch --source group --once --attempt 2
	run -1 --separate-stderr preempt-claim --attempt 1
	run -1 --separate-stderr preempt-watch --source group --once
}

@test "PH-9 the message of a preemption can be read after all have gone" {
	join 1
	as 0 preempt-claim --reason "node drained"
	as 0 preempt-store leave --code 42
	run -0 --separate-stderr preempt-watch --source group --once
	[[ $output = *"claimed by task 0 on $(hostname): command node drained" ]]
	run -0 --separate-stderr preempt-watch --source group --attempt 1 --timeout 20s
}

@test "PH-9 --until-exit returns when the claimer's process is gone, and not before" {
	join 2
	preempt-watch --until-exit >out 2>err 3>&- &
	watch=$!
	started+=("$watch")
	as 1 preempt-claim
	eventually test -s out
	in_vain preempt-watch --until-exit
	kill -0 "$watch"
	kill "${agents[1]}"
	code_of "$watch"
	[ "$code" = 0 ]
	run -0 --separate-stderr preempt-watch --until-exit --once
}

@test "PH-9 --until-exit returns at once where the claimer has left, never joined, or is outside; 1 with --once where no task has claimed" {
	join 2
	run -1 --separate-stderr preempt-watch --until-exit --once
	as 0 preempt-claim
	serve 0 preempt-store leave --code 42 # stays for the other one, which has not saved
	eventually has_key LEFT/0
	run -0 --separate-stderr preempt-watch --until-exit --timeout 30s
	preempt-store rm run/r/000001/LEFT/0
	preempt-store rm run/r/000001/TASK/0
	preempt-store rm run/r/000001/ALL_JOINED
	run -0 --separate-stderr preempt-watch --until-exit --timeout 30s
	preempt-store put run/r/000001/TERMINATED_WORKER '{"then":"exit","host":"elsewhere"}'
	run -0 --separate-stderr preempt-watch --until-exit --timeout 30s
	run -2 --separate-stderr preempt-watch --until-exit --source signal:TERM
	run -2 --separate-stderr preempt-watch --until-exit --follow
}

@test "watch: a store and a run that do not exist yet are waited for; the claim is told within a second" {
	local before took
	# A machine that stands still for a moment does so once.
	for _ in 1 2 3; do
		another_store
		preempt-watch --source group >out 2>err 3>&- &
		watch=$!
		started+=("$watch")
		sleep 0.3
		kill -0 "$watch"
		join 1
		as 0 preempt-claim
		before=$SECONDS
		code_of "$watch"
		took=$((SECONDS - before))
		[ "$code" = 0 ]
		[[ $(cat out) = *" group left=unknown claimed by task 0"* ]]
		[ "$took" -gt 10 ] || break # it looks by itself every 15 s
	done
	[ "$took" -le 10 ]
}

@test "watch: in a job the default is the claim and TERM; a bare signal source needs no store" {
	join 1
	start_watch
	kill -TERM "$watch"
	code_of "$watch"
	[ "$code" = 0 ]
	grep -q " signal:TERM " out
	start_watch
	as 0 preempt-claim
	code_of "$watch"
	[ "$code" = 0 ]
	grep -q " group " out
	PREEMPT_STORE=$PWD/not/mounted/s.db start_watch --source signal:TERM
	kill -TERM "$watch"
	code_of "$watch"
	[ "$code" = 0 ]
	[ ! -s err ]
	unset PREEMPT_RUN
	start_watch
	kill -TERM "$watch"
	code_of "$watch"
	[ "$code" = 0 ]
}

@test "watch: could not ask is never no claim; a store that refuses us ends it with its own code" {
	run -75 --separate-stderr preempt-watch --once --source group --store "$PWD/not/mounted/s.db"
	cannot_be_asked --source group
	cannot_be_asked --until-exit
	needs_store_file
	join 1
	chmod 666 s.db
	run -77 --separate-stderr preempt-watch --once --source group
	run -77 --separate-stderr preempt-watch --source group --timeout 30s
	chmod 600 s.db
	echo "this is no database, and is long enough to be looked at as one" >broken.db
	chmod 600 broken.db
	run -65 --separate-stderr preempt-watch --source group --store "$PWD/broken.db" --timeout 30s
	run -2 --separate-stderr preempt-watch --source group:0
	run -2 --separate-stderr preempt-watch --source group:x
	run -2 --separate-stderr preempt-watch --source group --source group
}

@test "watch: the attempt it was asked for broke: 44; is over: 1; the newest: another may come" {
	join 2
	as 1 preempt-store leave --code 9
	run -44 --separate-stderr preempt-watch --source group --attempt 1 --timeout 30s
	[[ $stderr = *"task 1 failed"* ]]
	in_vain preempt-watch --source group
	as 0 preempt-store leave --code 0
	join 1
	as 0 preempt-store leave --code 0
	run -1 --separate-stderr preempt-watch --source group --attempt 2 --timeout 30s
	[[ $stderr = *"is over (completed)"* ]]
	run -0 --separate-stderr preempt-store runs
}

@test "watch --follow tells the claim of each attempt once" {
	join 1
	preempt-watch --follow --source group >out 2>err 3>&- &
	watch=$!
	started+=("$watch")
	as 0 preempt-claim --reason one
	eventually test -s out
	as 0 preempt-claim --reason again --grace 1m
	as 0 preempt-store leave --code 42
	join 1
	as 0 preempt-claim --reason two
	eventually grep -q two out
	[ "$(wc -l <out)" = 2 ]
}

@test "256 preempt-claim at once: exactly one winner, no other answer than 0 and 1" {
	preempt-store put run/r/LAST '{"attempt":1}'
	preempt-store put run/r/000001/OPEN '{"tasks":256,"launch":"","life":"99535a47afe81adb9bcf0d9d"}'
	seq 0 255 | xargs -P 256 -I{} bash -c \
		'PREEMPT_TASK={} PREEMPT_TASKS=256 preempt-claim -q --timeout 10m >/dev/null 2>>err; echo $?' >codes
	[ "$(sort codes | uniq -c | tr -s " " | tr "\n" ";")" = " 1 0; 255 1;" ]
	[ ! -s err ]
	run -0 preempt-store list run/r/000001/ROUND/
	[ "$output" = run/r/000001/ROUND/1 ]
}

@test "I1: 256 claims from outside, many in the same millisecond: one of them wins" {
	local round
	for round in 1 2 3 4 5; do
		preempt-store join --run crowd$round --task 0 --tasks 1 --no-board --pid $$ >/dev/null
		"${OUT:-$BATS_TEST_DIRNAME/../../build/plain}/tests/bench/repeat" -256 sh -c \
			"preempt-claim -q --timeout 10m --run crowd$round >/dev/null 2>&1 && echo won >>won.$round; :"
		[ "$(wc -l <won.$round)" = 1 ]
	done
}

@test "--from -: later events with earlier deadlines are announced, too, while the input lasts" {
	join 1
	mkfifo events
	as 0 preempt-claim --from events >answer 3>&- &
	agents[1]=$!
	exec 4>events
	echo "$(date -u +%FT%T.000Z) signal:TERM left=1h" >&4
	eventually has_key TERMINATED_WORKER
	before=$(deadline)
	echo "$(date -u +%FT%T.000Z) deadline:soon left=5m" >&4
	eventually eval '[ "$(deadline)" -lt $((before - 1800000)) ]'
	exec 4>&-
	code_of "${agents[1]}"
	[ "$code" = 0 ]
	[ "$(wc -l <answer)" = 1 ]
}

@test "a task that has left claims nothing: its notice stops no task" {
	join 2
	as 1 preempt-store leave --code 0 >/dev/null
	run -1 --separate-stderr as 1 preempt-claim
	[[ $stderr = *"task 1 has left"* ]]
	run ! has_key TERMINATED_WORKER
	as 0 preempt-claim
}

@test "a task that was declared dead announces no deadline, and is answered at once" {
	join 2
	as 0 preempt-claim >/dev/null
	preempt-store put run/r/000001/DEAD/1 '{"by":"silent"}'
	run -1 --separate-stderr as 1 preempt-claim --grace 5m
	[[ $stderr = *"is claimed by task 0 on"* ]]
	run ! has_key DEADLINE
}

# serve I COMMAND...: as task I, in the background; $! is its process.
serve() {
	PREEMPT_TASK=$1 PREEMPT_TASKS=$tasks PREEMPT_DIR=${boards[$1]} PREEMPT_AGENT=${agents[$1]} \
		PREEMPT_ATTEMPT=1 "${@:2}" 3>&- &
	started+=("$!")
}

# XCPU is the last of them.
ignores_notices() {
	(( 0x$(sed -n "s/^SigIgn:[[:space:]]*//p" "/proc/$1/status") & 1 << 23 ))
}

@test "--from -: serving an agent: no notice signal ends it; the end of the agent does" {
	join 1
	mkfifo events
	PREEMPT_SIGNALS=USR1,XCPU serve 0 preempt-claim --from events
	claim=$!
	exec 4>events
	eventually ignores_notices "$claim"
	kill -TERM "$claim"
	kill -USR1 "$claim"
	kill -USR2 "$claim"
	kill -XCPU "$claim"
	echo "$(date -u +%FT%T.000Z) signal:TERM left=1h" >&4
	eventually has_key TERMINATED_WORKER
	kill -KILL "${agents[0]}"
	code_of "$claim"
	[ "$code" = 0 ]
	exec 4>&-
}

@test "--from -: an event is on the board at once also while an earlier one waits for the store" {
	left_on_board() {
		[ "$(field left_ms <"${boards[0]}/notice")" = "$1" ]
	}
	local now
	needs_store_file
	join 1
	mkdir store
	mkfifo events
	PREEMPT_STORE=$PWD/store/s.db serve 0 preempt-claim --from events 2>err
	exec 4>events
	now=$(date -u +%FT%T.000Z)
	echo "$now signal:TERM left=unknown" >&4
	eventually grep -q "trying again" err
	run -1 grep left_ms "${boards[0]}/notice"
	echo "$now deadline:soon left=20m" >&4
	eventually left_on_board 1200000
	printf '%s\n' "$now deadline:later left=1h" garbage >&4
	eventually grep -q "not a notice" err
	left_on_board 1200000
	mv s.db* store/
	export PREEMPT_STORE=$PWD/store/s.db
	eventually has_key DEADLINE
	eventually eval '[ "$(deadline)" -le $((($(date +%s) + 1200) * 1000)) ]'
	preempt-store get run/r/000001/TERMINATED_WORKER | grep -q signal:TERM
	exec 4>&-
	code_of "${started[-1]}"
	[ "$code" = 0 ]
	grep -q "answers again" err
}

@test "--timeout bounds the calls of a store that does not answer, too" {
	join 1
	store_held
	for command in "preempt-claim --outside" "preempt-ack"; do
		# shellcheck disable=SC2086 # several words
		as 0 run -75 --separate-stderr timeout 25 $command --timeout 1s # not 30 s
		[[ $stderr = *"it is busy"* ]]
	done
}

@test "watch --once --timeout: a group whose store does not answer could not be asked: 75, and said" {
	join 1
	store_held
	run -75 --separate-stderr preempt-watch --once --source group --timeout 1s
	[[ $stderr = *"group did not answer within --timeout" ]]
}

@test "--from -: an event is on the board while the store, which was open, does not answer an earlier one" {
	local now before took
	# A machine that stands still for a moment does so once.
	for _ in 1 2 3; do
		another_store
		join 1
		rm -f events
		mkfifo events
		serve 0 preempt-claim --from events 2>err
		claim=$!
		exec 4>events
		now=$(date -u +%FT%T.000Z)
		echo "$now signal:TERM left=1h" >&4
		eventually has_key TERMINATED_WORKER
		store_held
		echo "$now deadline:soon left=20m" >&4
		eventually grep -q '"left_ms":1200000' "${boards[0]}/notice"
		echo "$now deadline:sooner left=5m" >&4
		before=$SECONDS
		eventually grep -q '"left_ms":300000' "${boards[0]}/notice"
		took=$((SECONDS - before))
		kill -KILL "$holder"
		exec 4>&-
		code_of "$claim"
		[ "$code" = 0 ]
		[ "$took" -gt 15 ] || break # one try takes 5 s
	done
	[ "$took" -le 15 ]
}

@test "--from -: the process of PREEMPT_AGENT must exist, and is none below preempt-run (PID.START)" {
	join 1
	echo "$(date -u +%FT%T.000Z) signal:TERM left=1h" >event
	agents[0]=2147483647
	as 0 run -1 --separate-stderr preempt-claim --from event
	[[ $stderr = *"process 2147483647 (PREEMPT_AGENT) does not exist: unset PREEMPT_AGENT, or join again"* ]]
	agents[0]=2147483647.1
	as 0 run -0 preempt-claim --from event
	agents=()
}

@test "the claim of a group, read from preempt-watch, is announced to another run only" {
	join 1
	as 0 preempt-claim >/dev/null
	preempt-watch --source group --json >event
	[ "$(field run <event)" = r ]
	[ "$(field attempt <event)" = 1 ]
	[ "$(field task <event)" = 0 ]
	[ "$(field "then" <event)" = exit ]
	preempt-watch --source group >text
	as 0 preempt-store leave --code 42 >/dev/null
	kill -KILL "${agents[0]}"
	rm joined.0
	join 1
	run -1 --separate-stderr as 0 preempt-claim --from event
	[[ $stderr = *"is the claim of a group"* ]]
	run -1 as 0 preempt-claim --from text
	PREEMPT_RUN=other PREEMPT_TASK=0 PREEMPT_TASKS=1 preempt-store join --pid $$ --no-board >/dev/null
	run -0 preempt-claim --run other --outside --from event
}

@test "group:N ends with 1 once the attempt is over, also after a claim" {
	join 1
	as 0 preempt-claim >/dev/null
	preempt-watch --source group:2 --attempt 1 2>err 3>&- &
	watch=$!
	started+=("$watch")
	as 0 preempt-store leave --code 42 >/dev/null
	code_of "$watch"
	[ "$code" = 1 ]
	grep -q "is over" err
}

@test "started before join: the claim of the attempt before is no notice" {
	join 1
	as 0 preempt-claim >/dev/null
	as 0 preempt-store leave --code 42 >/dev/null
	preempt-watch --source group --json >event 3>&- &
	watch=$!
	started+=("$watch")
	join 1
	as 0 preempt-claim >/dev/null
	code_of "$watch"
	[ "$code" = 0 ]
	[ "$(field attempt <event)" = 2 ]
}

@test "serving an agent: it ends when the agent is gone, or its task has left; HUP is no notice" {
	join 3
	for task in 0 1 2; do
		serve "$task" preempt-watch --follow --source signal:TERM >"event.$task"
		watches[task]=$!
	done
	for watch in "${watches[@]}"; do
		eventually watch_is_ready
	done
	kill -KILL "${agents[0]}"
	as 1 preempt-store leave --code 0 >/dev/null
	for task in 0 1; do
		code_of "${watches[task]}"
		[ "$code" = 1 ]
	done
	kill -HUP "${watches[2]}"
	code_of "${watches[2]}"
	[ "$code" = 129 ]
	[ ! -s event.2 ]
}
