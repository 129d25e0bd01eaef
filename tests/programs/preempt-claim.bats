#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-claim: who claims, from what, and what is kept of it.
# takes: 25
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2154 # text for another shell; a test is a subshell of its own

bats_require_minimum_version 1.5.0
load ../support/group

# claim NAME: what the claim of attempt 1 says.
claim() { preempt-store get run/r/000001/TERMINATED_WORKER | field "$1"; }

# Nothing is claimed.
none_claimed() { run -1 --separate-stderr preempt-watch --source group --once; }

@test "the first claims, 0; the same task again, 0; another, 1, and is told whose it is; from outside no task is named" {
	join 2
	for _ in 1 2; do
		as 1 run -0 --separate-stderr preempt-claim --reason $'power\e[2J\ncut'
		[ "$output" = "task 1 $(hostname)" ]
	done
	as 0 run -1 --separate-stderr preempt-claim
	[ "$output" = "task 1 $(hostname)" ]
	[[ $stderr = *"attempt 1 is claimed by task 1 on"* ]]
	as 0 run -1 --separate-stderr preempt-claim --json
	[ "$(field task <<<"$output")" = 1 ]
	[ "$(field reason <<<"$output")" = 'power\x1b[2J\ncut' ]
	run -0 --separate-stderr preempt-watch --source group --once
	[[ $output = *'command power\x1b[2J\ncut' ]]
	another_store
	join 2
	run -0 --separate-stderr preempt-claim --reason maintenance
	[ "$output" = "outside $(hostname)" ]
	run -1 --separate-stderr preempt-claim
	[ "$output" = "outside $(hostname)" ]
	run -0 --separate-stderr preempt-watch --source group --once
	[[ $output = *"group left=unknown claimed from outside, on $(hostname): command maintenance" ]]
}

@test "no store, no run, no attempt, a run that is over: a definite no; a store that cannot be reached: 75; wrong use: 2" {
	run -1 --separate-stderr preempt-claim
	run -75 --separate-stderr preempt-claim --store "$PWD/not/mounted/s.db"
	[[ $stderr = *"is the filesystem mounted?"* ]]
	[ ! -e s.db ]
	join 1
	run -1 --separate-stderr preempt-claim --run other
	[[ $stderr = *"has no attempt yet"* ]]
	run -1 --separate-stderr preempt-claim --attempt 7
	for wrong in "--then leave" "--task 2 --tasks 2" "--task 0x1" "--grace -1s" extra --wait; do
		# shellcheck disable=SC2086 # several words
		run -2 preempt-claim $wrong
	done
	none_claimed
	as 0 preempt-store leave --code 0
	run -1 --separate-stderr preempt-claim
	[[ $stderr = *"attempt 1 is over (completed)"* ]]
}

@test "a claim while not all have joined: 0; whichever task joins then leaves unstarted with 42" {
	export PREEMPT_LAUNCH=launch
	stand_for 0
	tasks=2
	joining 0
	eventually has_key TASK/0
	run -0 --separate-stderr preempt-claim --outside
	code_of "${joins[0]}"
	[ "$code" = 42 ]
	run -42 --separate-stderr env PREEMPT_TASK=1 PREEMPT_TASKS=2 preempt-store join --pid $$ --timeout 30s
	[[ $stderr = *"was preempted before this task joined"* ]]
}

@test "--then continue claims nothing, and opens a round each time; --then stop is kept; another --then comes too late: 1" {
	join 2
	run -0 --separate-stderr preempt-claim --then continue
	[ "$output" = "round 1" ]
	run -1 --separate-stderr preempt-claim --then continue
	[[ $stderr = *"under way already"* ]]
	none_claimed
	run -0 --separate-stderr preempt-watch --source group:1 --once
	[[ $output = *"a checkpoint is asked for, round 1" ]]
	run -1 --separate-stderr preempt-watch --source group:2 --once
	agree_and_save 7
	run -0 --separate-stderr preempt-claim --then continue
	[ "$output" = "round 2" ]
	as 0 run -0 --separate-stderr preempt-claim --then stop
	[ "$(claim "then")" = stop ]
	as 0 run -1 --separate-stderr preempt-claim --then exit
	[ "$output" = "task 0 $(hostname)" ]
	[[ $stderr = *"is claimed by task 0 on"* ]]
	as 0 run -1 preempt-claim --then continue
	as 0 run -0 preempt-claim --then stop
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
	in_vain preempt-claim --then continue --wait
	[[ $stderr = *"round 2: not all tasks have saved in time"* ]]
}

# claimed SOURCE REASON: the claim names them, and a deadline within an hour.
claimed() {
	local left
	[ "$(claim source)" = "$1" ]
	[[ $(claim reason) = "$2"* ]]
	[ "$(claim utc)" -le "$(date +%s%3N)" ]
	left=$(preempt-store get run/r/000001/DEADLINE | field left)
	((left > 3000000 && left <= 3600000))
}

@test "the notice of preempt-watch, by --from - as text or JSON, by && or by --exec: its source, reason, time and deadline (SY-12)" {
	local how
	echo drained >flag
	export watch='preempt-watch --source file:flag --grace 1h'
	for how in \
		'$watch >event; { cat event; echo garbage; } | preempt-claim --from -' \
		'$watch --json >event; { cat event; echo garbage; } | preempt-claim --from -' \
		'$watch >event && preempt-claim' \
		'exec $watch --exec preempt-claim'; do
		another_store
		join 1
		as 0 run -0 --separate-stderr sh -c "$how"
		claimed file:flag drained
	done
	another_store
	join 1
	run -0 sh -c '$watch && preempt-claim --reason power'
	claimed file:flag power
	another_store
	join 1
	preempt-claim
	[ "$(claim source)" = command ]
}

@test "a notice that a scheduler sends to the whole pipe is claimed, also by one that has not joined" {
	local group
	join 1
	setsid sh -c 'preempt-watch --follow --source signal:TERM --grace 1h | preempt-claim --from -; :' \
		>out 2>err 3>&- &
	group=$!
	pipe_is_ready() {
		local claim
		claim=$(pgrep -g "$group" preempt-claim) && watch=$(pgrep -g "$group" preempt-watch) &&
			ignores "$claim" 15 && watch_is_ready
	}
	eventually pipe_is_ready
	kill -TERM -- "-$group"
	eventually has_key DEADLINE
	claimed signal:TERM 'sent by process '
	kill -KILL -- "-$group"
}

@test "--from: no event: 1; garbage: 2; a missing file: not a no; nothing is claimed by any of them" {
	join 1
	run -1 --separate-stderr preempt-claim --from /dev/null
	[[ $stderr = *"no notice came"* ]]
	for garbage in garbage '' '2026-02-31T00:00:00.000Z signal:TERM left=1s'; do
		run -2 --separate-stderr preempt-claim --from - <<<"$garbage"
	done
	run preempt-claim --from missing
	[ "$status" -ge 64 ]
	none_claimed
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
	[ "$(preempt-store get run/r/000001/DEADLINE | field left)" -le 60000 ]
	preempt-store put run/r/000001/TERMINATED_WORKER $'{"task":0,"host":"\\u001b[2J"}'
	run -1 --separate-stderr preempt-claim --outside
	[[ $output$stderr != *$'\e'* ]]
	preempt-store put run/r/000001/OPEN garbage
	run -65 --separate-stderr preempt-claim
	preempt-store put run/r/LAST garbage
	run -65 --separate-stderr preempt-claim
	run -65 --separate-stderr preempt-watch --source group --timeout 30s
}

@test "an attempt that is claimed and closes while the command of preempt-watch --follow runs is told after it" {
	preempt-watch --follow --source group --source "file:$PWD/flag" --exec '
		echo "$PREEMPT_NOTICE_SOURCE" >>told; until [ -e go ]; do sleep 0.05; done' 3>&- &
	started+=("$!")
	touch flag
	eventually grep -q file told
	join 1
	as 0 preempt-claim
	as 0 preempt-store leave --code 42
	touch go
	eventually grep -q group told
}

@test "the claim of an attempt that opens and closes meanwhile is told, too, although the next one is open" {
	join 1
	preempt-watch --follow --json --source group --exec '
		echo "$PREEMPT_NOTICE" >>told; until [ -e go ]; do sleep 0.05; done' 3>&- &
	started+=("$!")
	as 0 preempt-claim
	eventually grep -q group told
	as 0 preempt-store leave --code 42
	join 1
	as 0 preempt-claim
	as 0 preempt-store leave --code 42
	join 1
	touch go
	eventually grep -q '"attempt":2' told
	as 0 preempt-claim
	eventually grep -q '"attempt":3' told
	[ "$(grep -o '"attempt":.' told | tr -dc '0-9')" = 123 ]
}

@test "PH-9 the message can be read after all have gone; PH-22 attempt 2 does not see it, and refuses a claim for attempt 1" {
	join 1
	as 0 preempt-claim --reason "node drained"
	as 0 preempt-store leave --code 42
	run -0 --separate-stderr preempt-watch --source group --once
	[[ $output = *"claimed by task 0 on $(hostname): command node drained" ]]
	run -0 --separate-stderr preempt-watch --source group --attempt 1 --timeout 20s
	join 1
	run -1 --separate-stderr preempt-claim --attempt 1
	none_claimed
}

left_on_board() { [ "$(field left_ms <"${boards[0]}/notice")" = "$1" ]; }

# deadline_within SECONDS
deadline_within() { [ "$(deadline)" -le $((($(date +%s) + $1) * 1000)) ]; }

@test "--from -: each event is on the board at once, also while the store is missing or held, and announced when it answers" {
	local how now
	needs_store_file
	for how in missing held; do
		another_store
		join 1
		rm -f events
		mkfifo events
		case $how in
		missing) PREEMPT_STORE=$PWD/store/s.db serve 0 preempt-claim --from events >answer 2>err ;;
		held) serve 0 preempt-claim --from events >answer 2>err ;;
		esac
		exec 4>events
		now=$(date -u +%FT%T.000Z)
		echo "$now signal:TERM left=unknown" >&4
		case $how in
		missing) eventually grep -q "trying again" err ;;
		held) eventually has_key TERMINATED_WORKER && store_held ;;
		esac
		run -1 grep left_ms "${boards[0]}/notice"
		# Less than the 30 s that an answer of the store is waited for.
		echo "$now deadline:soon left=20m" >&4
		patience=29 eventually left_on_board 1200000
		printf '%s\n' "$now deadline:later left=1h" garbage >&4
		eventually grep -q "not a notice" err
		left_on_board 1200000
		echo "$now deadline:sooner left=5m" >&4
		patience=29 eventually left_on_board 300000
		case $how in
		missing) mkdir store && mv s.db* store/ && export PREEMPT_STORE=$PWD/store/s.db ;;
		held) kill -KILL "$holder" ;;
		esac
		eventually deadline_within 300
		[ "$(claim source)" = signal:TERM ]
		[ $how = held ] || grep -q "answers again" err
		exec 4>&-
		[ $how = held ] || { eventually gone "${started[-1]}" && PREEMPT_STORE=$PWD/s.db; }
		[ "$(wc -l <answer)" = 1 ]
	done
}

@test "a task that has left claims nothing, one that was declared dead announces no deadline: answered at once" {
	join 2
	as 1 preempt-store leave --code 0 >/dev/null
	run -1 --separate-stderr as 1 preempt-claim
	[[ $stderr = *"task 1 has left"* ]]
	none_claimed
	as 0 preempt-claim >/dev/null
	another_store
	join 2
	as 0 preempt-claim >/dev/null
	preempt-store put run/r/000001/DEAD/1 '{"by":"silent"}'
	run -1 --separate-stderr as 1 preempt-claim --grace 5m
	[[ $stderr = *"is claimed by task 0 on"* ]]
	run ! has_key DEADLINE
	# Nor does it take part any more.
	as 1 run -43 preempt-ack --timeout 60s
	as 1 run -43 preempt-ack --saved --timeout 60s
	run ! has_key STEP/1/1
}

@test "--from -: serving an agent: no notice signal ends it; the end of the agent does" {
	join 1
	mkfifo events
	PREEMPT_SIGNALS=USR1,XCPU serve 0 preempt-claim --from events
	claim=$!
	exec 4>events
	eventually ignores "$claim" 24 # XCPU is the last of them
	for signal in TERM USR1 USR2 XCPU; do kill -$signal "$claim"; done
	echo "$(date -u +%FT%T.000Z) signal:TERM left=1h" >&4
	eventually has_key TERMINATED_WORKER
	kill -KILL "${agents[0]}"
	code_of "$claim"
	[ "$code" = 0 ]
	exec 4>&-
}

@test "--timeout bounds the calls of a store that does not answer: 75, and not 30 s" {
	join 1
	store_held
	for command in "preempt-claim --outside" "preempt-ack" "preempt-watch --once --source group"; do
		# shellcheck disable=SC2086 # several words
		as 0 run -75 --separate-stderr timeout 25 $command --timeout 1s
		[[ $stderr = *"it is busy"* || $stderr = *"group did not answer within --timeout" ]]
	done
}

@test "the claim of a group, read from preempt-watch, is announced to another run only" {
	join 1
	as 0 preempt-claim >/dev/null
	preempt-watch --source group --json >event
	as 0 preempt-store leave --code 42 >/dev/null
	end_agent 0
	join 1
	run -1 --separate-stderr as 0 preempt-claim --from event
	[[ $stderr = *"is the claim of a group"* ]]
	PREEMPT_RUN=other PREEMPT_TASK=0 PREEMPT_TASKS=1 preempt-store join --pid $$ --no-board >/dev/null
	run -0 preempt-claim --run other --outside --from event
}
