#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-ack in all its forms: a task's part in the agreement, for scripts.
# takes: 10

bats_require_minimum_version 1.5.0
load ../support/group

# No task is silent, however long a call takes to start: no decision without one that is on its way.
patient=(--report-timeout 60s)

# acks [OPTION...]: all tasks call preempt-ack with these at once: answer.I and code.I.
acks() {
	local task pids=()
	for ((task = 0; task < tasks; task++)); do
		as "$task" preempt-ack "${patient[@]}" "$@" >"answer.$task" 2>"err.$task" 3>&- &
		pids[task]=$!
	done
	for ((task = 0; task < tasks; task++)); do
		code_of "${pids[task]}"
		echo "$code" >"code.$task"
	done
}

all_say() { # FILE TEXT
	local task
	for ((task = 0; task < tasks; task++)); do
		[ "$(cat "$1.$task")" = "$2" ] || { tail -n +1 "$1."* err.* >&2; return 1; }
	done
}

all_at() { # STEP
	local task
	for ((task = 0; task < tasks; task++)); do at "$task" "$1"; done
}

all_save() { # STEP
	local task
	all_at "$1"
	for ((task = 0; task < tasks; task++)); do saves "$task" "$1"; done
}

@test "nothing is claimed: 1, and the board stays as it was; wrong use is refused" {
	join 2
	as 0 run -1 --separate-stderr preempt-ack
	[ -z "$output" ]
	as 0 run -1 preempt-ack --saved --wait
	run -2 preempt-ack --task 0 --tasks 2
	[[ $output = *"PREEMPT_DIR"* ]]
	as 0 run -2 preempt-ack --board /nowhere
	as 0 run -2 preempt-ack --board "$PWD"
	[[ $output = *"is not a board"* ]]
	as 0 run -2 preempt-ack --task 2
	as 0 run -2 preempt-ack --task 2 --tasks 3
	[[ $output = *"has 2 tasks"* ]]
	as 0 run -2 preempt-ack --report-timeout forever
	as 0 run -1 preempt-ack --attempt 9
	as 0 run -75 preempt-ack --store "$PWD/not/mounted/s.db"
	PREEMPT_AGENT=0x7 run -2 preempt-ack --board "${boards[0]}" --task 0 --tasks 2
	as 0 run -2 preempt-ack --serve --saved
	[[ $output = *"--serve goes with none of"* ]]
	as 0 run -2 preempt-ack --serve
	[[ $output = *"PREEMPT_ATTEMPT"* ]]
	[ ! -e "${boards[0]}/hold" ]
}

@test "the board form: hold, the largest next boundary, exit; saved, all saved, leave with 42" {
	join 3
	at 0 4
	at 1 7
	at 2 2
	as 2 preempt-claim
	acks
	all_say code 0
	all_say answer "8 exit"
	[ "$(cat "${boards[0]}/hold")" = "exit 8 ${agents[0]}" ]
	acks # again: the same answer
	all_say answer "8 exit"
	all_save 8
	acks --saved
	all_say code 0
	for _ in 1 2; do
		acks --saved --wait
		all_say code 0
		[ "$(cat "${boards[1]}/hold")" = "leave 42" ]
	done
	has_key SAVED/1/2
	has_key RECEIVED_SIGNAL_RUN_TO_CHECKPOINT_0
}

@test "a checkpoint on demand: save and run on, as often as asked; --json; what the save took is kept" {
	join 2
	for step in 7 20; do
		preempt-claim --then continue
		at 0 $((step - 1))
		at 1 $((step - 3))
		acks --json
		all_say code 0
		all_say answer "{\"kind\":\"save\",\"step\":$step}"
		all_at "$step"
		touch -d '36 seconds ago' "${boards[@]/%//step}" "${boards[@]/%//hold}"
		for task in 0 1; do saves "$task" "$step"; done
		acks --saved --wait
		all_say code 0
		[[ $(preempt-store get run/r/MEASURE) =~ \"save_ms\":[3-9][0-9]{4}, ]]
		acks
		all_say answer "$step save"
	done
	[ ! -e "${boards[0]}/hold" ]
}

@test "--wait without the others' saves ends with --timeout, 124, and tells a terminal how many; a task without a save: 1, leave 43" {
	join 2
	all_at 4
	as 0 preempt-claim
	acks
	at 0 5
	saves 0 5
	in_vain as 0 preempt-ack --saved --wait
	[[ $stderr != *"1 of 2 saved"* ]]
	as 0 script -qefc 'preempt-ack --saved --wait' terminal >/dev/null </dev/null 3>&- &
	started+=("$!")
	eventually grep -q $'1 of 2 saved' terminal
	as 1 preempt-store leave --code 43
	code_of "${started[-1]}"
	[ "$code" = 1 ]
	as 0 run -1 --separate-stderr preempt-ack --saved --wait
	[[ $stderr = *"not all tasks have saved"* ]]
	[ "$(cat "${boards[0]}/hold")" = "leave 43" ]
}

@test "a long grace period: --wait stays after the first save, and opens the final round in time" {
	local waits=()
	join 2
	all_at 4
	as 0 preempt-claim --grace 10m
	acks
	all_say answer "5 save"
	# Their steps take so long that the final round is due 3 s after the claim, and its save has time.
	for task in 0 1; do
		preempt-store put "run/r/000001/STEP/1/$task" '{"step":4,"next":5,"step_ms":298000}'
	done
	all_save 5
	for task in 0 1; do
		as "$task" preempt-ack "${patient[@]}" --saved --wait 2>"err.$task" 3>&- &
		waits+=("$!")
	done
	started+=("${waits[@]}")
	eventually has_key ROUND/2
	eventually grep -q exit "${boards[0]}/hold"
	all_save 6
	for task in 0 1; do
		code_of "${waits[task]}"
		[ "$code" = 0 ]
	done
	[ "$(cat "${boards[0]}/hold")" = "leave 42" ]
}

@test "PH-2 a broken group is 44 with its reason, also for a task that waits for the saves" {
	join 3
	at 0 4
	as 2 preempt-store leave --code 9
	as 0 run -44 --separate-stderr preempt-ack
	[[ $stderr = *"task 2 failed"* ]]
	as 0 run -44 --separate-stderr preempt-ack --saved --wait
}

@test "an agent that goes away: 43; a board that goes away: 1; garbage on it: 65" {
	join 3
	as 0 preempt-claim
	all_at 4
	as 0 preempt-ack --report-timeout 1h 2>err 3>&- &
	started+=("$!")
	eventually has_key STEP/1/0
	end_agent 0
	code_of "${started[-1]}"
	[ "$code" = 43 ]
	as 1 preempt-ack --report-timeout 1h --saved 2>err 3>&- &
	started+=("$!")
	eventually test -e "${boards[1]}/hold"
	eventually rm -rf "${boards[1]}" # it may be at work in it
	code_of "${started[-1]}"
	[ "$code" = 1 ]
	echo garbage >"${boards[2]}/hold"
	as 2 run -65 preempt-ack
}

# It ignores TERM (15), the last of the notices, by now.
@test "--serve: TERM does not end it, leaving does; an agent that is killed is declared dead, and the others need not wait" {
	join 1
	serve 0 preempt-ack --serve 2>err
	eventually ignores "$!" 15
	at 0 2
	as 0 preempt-claim >/dev/null
	kill -TERM "$!"
	at 0 3
	eventually has_key RECEIVED_SIGNAL_RUN_TO_CHECKPOINT_0
	kill -TERM "$!"
	saves 0 "$(preempt-store get run/r/000001/RUN_TO_CHECKPOINT | field step)"
	eventually has_key SAVED/1/0
	eventually grep -q "leave 42" "${boards[0]}/hold"
	as 0 preempt-store leave --code 42 >/dev/null
	code_of "$!"
	[ "$code" = 0 ]
	another_store
	join 2
	serve 0 preempt-ack --serve 2>err
	eventually ignores "$!" 15
	end_agent 0
	code_of "${started[-1]}"
	[ "$code" = 0 ]
	has_key DEAD/0
}
