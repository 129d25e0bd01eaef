#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The board's clients (docs/design.md, section 3): one list of cases through bash, dash, C, Python and
# preempt-step; then what only some of them have. The test plays the agent.
# takes: 100
# BIN and OUT tell where the built programs are; CLIENTS="c python" runs fewer.
# shellcheck disable=SC2154,SC2030,SC2031

bats_require_minimum_version 1.5.0

setup_file() {
	load ../support/clients/board
	local -a make=(make -s -C "$REPO")
	case $OUT in
	*/build/asan) make+=(SANITIZE=1) ;;
	esac
	"${make[@]}" all "$(realpath -m --relative-to="$REPO" "$OUT")/tests/support/clients/driver" >&2
}

setup() {
	load ../support/clients/board
	processes=() rooms=()
	unset PREEMPT_DIR PREEMPT_RANKS PREEMPT_SIGNALS LOCAL_RANK
}

teardown() {
	exec 7>&- 8<&-
	processes_end
	rm -rf "${rooms[@]}"
}

# The file step

step_written() {
	start
	inode=$(stat -c %i "$board/step")
	ask "step 0" 0
	[ "$(stat -c %s "$board/step")" = 42 ]
	at_step 0
	ask "step 12345678901234567" 0
	at_step 12345678901234567
	[ "$(stat -c '%s %i' "$board/step")" = "42 $inode" ]
}
@test "step: 42 bytes, in place, before anything else" {
	each step_written
}

step_files_missing() {
	rm "$board/step" "$board/saved" "$board/agent" "$board/pause"
	start
	ask "step 7" 0
	at_step 7
	ask "saved 7" 0
	[ "$(cat "$board/saved")" = 00000000000000000007 ]
	hold "save 8"
	ask "step 8" 10
	hold "wait $agent"
	tell "step 9"
	eventually at_step 9
	still
	lift
	expect "step 0"
}
@test "step and saved are made where they are missing, and no fifo is needed to wait" {
	each step_files_missing
}

step_stride() {
	start
	ask "step 10 20" 0
	at_step 10 20
	hold "exit 20"
	ask "step 20 30" 10
	at_step 20 30
}
@test "step N NEXT: a loop that asks every so many steps" {
	each step_stride
}

step_next_wrong() {
	for next in 10 9; do
		start
		tell "step 10 $next"
		ends 2
		said 1 "next"
	done
	[[ $client != c* && $client != python* ]] || {
		start
		tell "step 10 1000000000000000001"
		ends 2
		said 1 "next"
	}
	[ ! -s "$board/step" ]
}
@test "step N NEXT: NEXT must be later than N" {
	each step_next_wrong
}

step_same() {
	start
	ask "step 3" 0
	ask "step 3" 0
	hold "save 3"
	ask "step 3" 10
	ask "step 3" 0
	ask "step 3" 0
}
@test "step: the same N again is right, and saves once" {
	each step_same
}

step_falls() {
	start
	ask "step 5" 0
	tell "step 4"
	ends 2
	at_step 5
	said 1 "step 4 after step 5"
}
@test "step: a number that falls is refused" {
	each step_falls
}

# C has no garbage but numbers that are too great.
numbers_refused() {
	local garbage="010 00 -1 +1 1x x 0x10 1.0 99999999999999999999 1000000000000000000 EMPTY"
	[[ $client != c* ]] || garbage="-1 1000000000000000000 18446744073709551615"
	[[ $client != python* ]] || garbage=${garbage/+1 /}
	for n in $garbage; do
		start
		ask "step 0" 0
		tell "step $n"
		ends 2
		said 1 "step"
		at_step 0
		start
		tell "saved $n"
		ends 2
	done
	[ ! -s "$board/saved" ]
	start
	tell "step ${garbage##* }"
	ends 2
	start
	ask "step 999999999999999999" 0
	[ "$(cat "$board/step")" = "00999999999999999999 01000000000000000000" ]
}
@test "step, saved: only whole numbers from 0 to 999999999999999999, no octal" {
	each numbers_refused
}

# The file section

section_written() {
	start
	ask "section setup" 0
	[ "$(cat "$board/section")" = "$(printf '%-31s' setup)" ]
	[ "$(stat -c %s "$board/section")" = 32 ]
	inode=$(stat -c %i "$board/section")
	ask "step 3" 0
	ask "section a.very+long_name:of-31@characte" 0
	[ "$(cat "$board/section")" = a.very+long_name:of-31@characte ]
	ask "section x" 0
	[ "$(cat "$board/section")" = "$(printf '%-31s' x)" ]
	[ "$(stat -c '%s %i' "$board/section")" = "32 $inode" ]
	ask "step 4" 0
}
@test "section: 32 bytes, in place" {
	each section_written
}

section_refused() {
	for name in EMPTY .x -x a/b 'a*' a.very+long_name:of-32@character; do
		start
		tell "section $name"
		ends 2
		said 1 "section"
	done
	[ ! -e "$board/section" ]
}
@test "section: only names" {
	each section_refused
}

section_vanished() {
	start
	ask "step 1" 0
	rm -rf "$board"
	tell "section save"
	ends 43
	said 1 "vanished\|cannot write"
}
@test "section: the board vanishes: 43" {
	each section_vanished bash dash c python c@disk
}

# Hold

hold_save() {
	start
	ask "step 1" 0
	hold "save 3 $agent"
	ask "step 2" 0
	ask "step 3" 10
	ask "saved 3" 0
	[ "$(cat "$board/saved")" = 00000000000000000003 ]
	[ "$(stat -c %s "$board/saved")" = 21 ]
	ask "step 4" 0
	hold "save 5"
	ask "step 5" 10
	lift
	ask "step 6" 0
}
@test "save S: at S, once, then on; the next round again" {
	each hold_save
}

hold_seen_at_once() {
	local n
	start
	for n in 1 2 3 4 5 6; do
		ask "step ${n}0" 0
		# So long that a client which looks at times trusts them.
		read -r -t 0.08 <>"$board/pause" || :
		ask "step ${n}1" 0
		hold "save ${n}2"
		ask "step ${n}2" 10
		lift
	done
	for ((n = 100; n < 130; n++)); do
		hold "save $n"
		ask "step $n" 10
		lift
		ask "step $n" 0
	done
}
@test "a hold made between two steps is seen at the very next one" {
	each hold_seen_at_once
}

hold_wait_exit() {
	start
	hold "wait $agent"
	tell "step 5"
	eventually at_step 5
	still
	hold "exit 7 $agent"
	expect "step 0"
	ask "step 6" 0
	ask "step 7" 10
	tell "saved 7"
	eventually [ -s "$board/saved" ]
	still
	hold "leave 42"
	expect "saved 42"
}
@test "wait, then exit S: runs to S, saves, stays until leave" {
	each hold_wait_exit
}

hold_wait_decided_here() {
	start
	hold "wait $agent"
	tell "step 5"
	eventually at_step 5
	hold "exit 5 $agent"
	expect "step 10"
	hold "leave 93"
	ask "saved 5" 93
}
@test "wait, then exit at this very step" {
	each hold_wait_decided_here
}

hold_wait_lifted() {
	start
	hold "wait $agent"
	tell "step 5"
	eventually at_step 5
	still
	lift
	expect "step 0"
	ask "step 6" 0
}
@test "wait, then lifted: runs on" {
	each hold_wait_lifted
}

hold_beyond_save() {
	start
	ask "step 7" 0
	hold "save 5"
	ask "step 7" 10
	ask "step 7" 0
	ask "step 8" 0
}
@test "save S: one save at the first boundary at or after S, then on" {
	each hold_beyond_save
}

hold_between() {
	local word
	for word in save exit; do
		[ $word = save ] || {
			finish
			board_make
		}
		start
		hold "$word 5 $agent"
		ask "step 2 4" 0
		tell "step 4 8"
		still
		hold "$word 8 $agent"
		expect "step 0"
		ask "step 8 12" 10
	done
}
@test "save S and exit S: a task whose next boundary lies beyond S waits at the last one before it" {
	each hold_between
}

hold_beyond_exit() {
	start
	hold "exit 5 $agent"
	ask "step 4" 0
	ask "step 7" 10
	ask "step 7" 10
	printf '%020d\n' 7 1<>"$board/saved"
	tell "step 7"
	still
	hold "leave 9"
	ends 9
}
@test "exit S: one save at the first boundary at or after S, then no step further" {
	each hold_beyond_exit
}

hold_exit_parks() {
	local n
	for n in 5 6; do
		[ "$n" = 5 ] || {
			finish
			board_make
		}
		start
		hold "exit 5 $agent"
		ask "step 5" 10
		printf '%020d\n' 5 1<>"$board/saved" # as another thread reports it
		tell "step $n"
		eventually at_step "$n"
		still
		hold "leave 42"
		ends 42
	done
}
@test "after exit S and its save: a task that asks again waits, at S and at S+1, and leaves with the agent's code" {
	each hold_exit_parks
}

hold_exit_unsaved() {
	start
	printf '%020d\n' 4 1<>"$board/saved"
	hold "exit 5 $agent"
	ask "step 5" 10
	ask "step 5" 10
	tell "step 6"
	eventually at_step 6
	still
	hold "leave 43"
	ends 43
}
@test "after exit S, no save reported: asked to save again at S, never to run on" {
	each hold_exit_unsaved
}

hold_parked_next_round() {
	start
	hold "exit 5 $agent"
	ask "step 5" 10
	tell "step 6"
	eventually at_step 6
	hold "wait $agent"
	still
	hold "exit 8 $agent"
	expect "step 0"
	ask "step 7" 0
	ask "step 8" 10
	tell "step 9"
	still
	hold "save 9 $agent"
	expect "step 10"
	ask "step 10" 0
	hold "exit 10 $agent"
	ask "step 10" 10
	tell "step 11"
	still
	lift
	expect "step 0"
}
@test "parked after exit S: a later round takes over, or the hold is lifted" {
	each hold_parked_next_round
}

hold_leave() {
	start
	ask "step 1" 0
	hold "leave 43"
	tell "step 2"
	ends 43
	said 0 .
}
@test "leave C at a boundary: leaves with C, silently" {
	each hold_leave
}

hold_garbled() {
	local line n=0 garbage
	start
	for line in '' hello 'wait' 'wait 0' 'wait x' 'save' 'save x' 'exit 010' 'exit -1' 'save 5 0' 'save 5 ' \
		'save  5' 'exit 5 6 7' 'leave' 'leave 0' 'leave 256' 'leave x' 'leave 42 7' 'EXIT 5' \
		'exit 1000000000000000000' $'save 0\nsave 0' $'exit 0\n'; do
		n=$((n + 1))
		hold "$line"
		: >"$room/err"
		tell "step $n"
		eventually grep -q "cannot understand $board/hold" "$room/err"
		[ "$n" -gt 3 ] || still
		said 1 .
		lift
		expect "step 0"
	done
	printf 'exit 5' >"$board/hold" # no end of line
	tell "step 50"
	eventually grep -q "understand.*exit 5" "$room/err"
	hold "exit 50"
	expect "step 10"
	rm "$board/hold"
	mkdir "$board/hold"
	: >"$room/err"
	tell "step 51"
	eventually grep -q "cannot understand $board/hold" "$room/err"
	rmdir "$board/hold"
	expect "step 0"
	hold $'\e[31mred'
	: >"$room/err"
	tell "step 52"
	eventually grep -q "cannot understand.*red" "$room/err"
	said 0 $'\e'
}
@test "a hold that cannot be understood: said once, waited for, never ignored, never an exit" {
	each hold_garbled
}

# Saved

saved_runs_on() {
	start
	ask "saved 1" 0
	ask "step 2" 0
	hold "wait $agent"
	ask "saved 2" 0
	[ "$(cat "$board/saved")" = 00000000000000000002 ]
	hold "exit 5 $agent"
	ask "saved 3" 0
	hold "save 5 $agent"
	ask "saved 5" 0
	hold "nonsense"
	ask "saved 6" 0
	said 1 "cannot understand"
	hold "leave 43"
	ask "saved 7" 43
	[ "$(cat "$board/saved")" = 00000000000000000007 ]
}
@test "saved: runs on without hold, under wait and save, and before S; leave at once" {
	each saved_runs_on
}

saved_barrier_lifted() {
	start
	hold "exit 5 $agent"
	ask "step 5" 10
	tell "saved 5"
	eventually [ -s "$board/saved" ]
	still
	lift
	expect "saved 0"
	ask "step 6" 0
}
@test "exit barrier: lifted, runs on" {
	each saved_barrier_lifted
}

saved_barrier_next_round() {
	start
	hold "exit 5 $agent"
	ask "step 5" 10
	tell "saved 5"
	eventually [ -s "$board/saved" ]
	looked
	hold "wait $agent"
	still
	hold "exit 5 $agent"
	still
	hold "wait $agent"
	still
	hold "exit 6 $agent"
	expect "saved 0"
	ask "step 6" 10
	tell "saved 6"
	still
	hold "save 7"
	expect "saved 0"
	ask "step 7" 10
	ask "saved 7" 0
	hold "exit 8"
	ask "step 8" 10
	tell "saved 8"
	still
	hold "leave 42"
	expect "saved 42"
	# Two rounds behind this task.
	hold "exit 9"
	ask "step 20" 10
	tell "saved 20"
	eventually grep -q 20 "$board/saved"
	looked
	hold "exit 10" # it has saved beyond that, too
	still
	hold "leave 42"
	expect "saved 42"
}
@test "exit barrier: wait keeps it, a later round ends it" {
	each saved_barrier_next_round
}

saved_async() {
	start
	hold "save 5 $agent"
	ask "step 5" 10
	ask "step 6" 0
	tell "async 5"
	expect "async 0"
	hold "exit 8 $agent"
	ask "step 7" 0
	ask "step 8" 10
	tell "async 8"
	eventually grep -q 8 "$board/saved"
	tell "step 8"
	still
	hold "leave 42"
	# The saver may say so before the other thread has left.
	local line
	while read -r -t "$PATIENCE" line <&8; do [ "$line" = "async 42" ]; done
	ends 42
}
@test "an asynchronous saver: reports from another thread, and waits there" {
	each saved_async c python c@disk
}

thread_leaves() {
	start
	ask "step 5" 0
	tell "thread 6"
	expect "thread 0"
	hold "leave 93"
	tell "thread 7"
	ends 93
}
@test "Python: leaving from another thread leaves the process" {
	each thread_leaves python
}

# What ask and tell_section add to the code to leave with.
leave=256

codes_returned() {
	start PREEMPT_DIR="$room/nowhere"
	ask "ask 5" $((leave + 2))
	ask "tell eval" $((leave + 2))
	ask "report 5" 2
	said 3 "not visible here"
	start
	ask "ask 5" 0
	ask "ask 4" $((leave + 2))
	ask "tell /" $((leave + 2))
	ask "report 1000000000000000000" 2
	ask "tell eval" 0
	hold "save 6"
	ask "ask 6" 10
	ask "report 6" 0
	hold "leave 42"
	ask "ask 7" $((leave + 42))
	ask "ask 8" $((leave + 42))
	ask "report 8" 42
	rm -r "$board"
	ask "ask 9" $((leave + 43))
	ask "ask 9" $((leave + 43))
	ask "tell eval" $((leave + 43))
	ask "report 9" 43
}
@test "C, Python: ask, tell_section and saved return the code to leave with" {
	each codes_returned c python
}

descriptors() {
	find "/proc/$training/fd" -mindepth 1 | wc -l
}

board_damaged() {
	echo damaged >"$board/step"
	start
	ask "ask 5" $((leave + 2))
	local before
	before=$(descriptors)
	ask "ask 5" $((leave + 2))
	ask "ask 5" $((leave + 2))
	[ "$(descriptors)" = "$before" ]
	: >"$board/step"
	ask "ask 5" 0
	hold "save 6"
	ask "ask 6" 10
}
@test "C, Python: a program that is refused may ask again, and loses no descriptors" {
	each board_damaged c python
}

# The agent dies, the board goes

agent_gone_waiting() {
	start
	hold "wait $agent"
	tell "step 5"
	eventually at_step 5
	agent_kill
	ends 43
	said 1 .
	said 1 "$agent"
}
@test "the agent is killed while a task waits: 43, said once" {
	each agent_gone_waiting
}

agent_gone_parked() {
	start
	hold "exit 5 $agent"
	ask "step 5" 10
	tell "step 6"
	eventually at_step 6
	agent_kill
	ends 43
	said 1 .
}
@test "the agent is killed while a task is parked: 43" {
	each agent_gone_parked
}

agent_gone_barrier() {
	start
	hold "exit 5 $agent"
	ask "step 5" 10
	tell "saved 5"
	eventually [ -s "$board/saved" ]
	agent_kill
	expect "saved 43"
	said 1 .
}
@test "the agent is killed during the exit barrier: 43" {
	each agent_gone_barrier
}

agent_gone_zombie() {
	local zombie
	# Its parent, a sleep, never asks after it.
	bash -c 'sleep 1000 & echo $! >"$0"; exec sleep 1000' "$room/zombie" 3>&- &
	processes+=("$!")
	eventually [ -s "$room/zombie" ]
	zombie=$(cat "$room/zombie")
	start
	hold "wait $zombie"
	tell "step 5"
	eventually at_step 5
	still
	kill -KILL "$zombie"
	eventually grep -q ') Z' "/proc/$zombie/stat"
	ends 43
}
@test "an agent that no task buries counts as gone" {
	each agent_gone_zombie
}

agent_last_word() {
	start
	hold "exit 5 $agent"
	ask "step 5" 10
	tell "saved 5"
	eventually [ -s "$board/saved" ]
	looked
	kill -STOP "$training"
	eventually grep -q ') T' "/proc/$training/stat"
	hold "leave 42"
	agent_kill
	kill -CONT "$training"
	expect "saved 42"
}
@test "the last word of an agent that ended counts" {
	each agent_last_word bash dash c python
}

agent_gone_first() {
	agent_kill
	start
	tell "step 5"
	ends 43
	said 1 "$agent"
}
@test "first use: an agent that is gone: 43" {
	each agent_gone_first
}

agent_unreadable() {
	for text in '' x 0 '12 x y'; do
		[ "$text" = '12 x y' ] || echo "$text" >"$board/agent"
		[ "$text" != '12 x y' ] || printf 12 >"$board/agent"
		start
		tell "step 5"
		ends 2
		said 1 "does not name the agent"
	done
}
@test "first use: a damaged agent file is refused" {
	each agent_unreadable
}

agent_other_namespace() {
	WRAP="unshare --fork --pid --kill-child" start
	tell "step 5"
	ends 2
	said 1 "share the PID namespace"
}
@test "first use: an agent in another PID namespace is refused, with the cure" {
	unshare --fork --pid true 2>/dev/null || skip "needs root"
	each agent_other_namespace
}

board_gone() {
	start
	ask "step 5" 0
	ask "step 6" 0
	rm -r "$board"
	tell "step 7"
	ends 43
	said 1 "leaving with 43"
}
# To preempt-step each call is a first use.
@test "the board vanishes between steps: 43" {
	each board_gone bash dash c python c@disk python@disk
}

board_gone_waiting() {
	start
	hold "wait $agent"
	tell "step 5"
	eventually at_step 5
	mv "$board" "$room/elsewhere"
	ends 43
	said 1 "vanished"
}
@test "the board vanishes while a task waits: 43" {
	each board_gone_waiting bash dash c python program
}

board_gone_saved() {
	start
	ask "step 5" 0
	rm -r "$board"
	ask "saved 5" 43
}
@test "the board vanishes before a save is reported: 43" {
	each board_gone_saved bash dash c python
}

board_invisible() {
	start PREEMPT_DIR="$room/nowhere"
	tell "step 5"
	ends 2
	said 1 "not visible here: in a container? share the directory and use --board"
	start PREEMPT_DIR="$board/agent"
	tell "saved 5"
	ends 2
}
@test "first use: a board that is not there is refused, with the cure" {
	each board_invisible
}

board_none() {
	unset PREEMPT_DIR
	start
	ask "step 5" 0
	ask "step 4" 0
	ask "saved 4" 0
	if [ "$client" = program ]; then
		said 3 "PREEMPT_DIR is not set"
	else
		said 1 .
	fi
	start PREEMPT_DIR=
	ask "step 5" 0
	said 1 "PREEMPT_DIR is not set"
}
@test "without PREEMPT_DIR: nothing happens, one warning" {
	each board_none
}

board_relative() {
	cd "$room" || return
	start PREEMPT_DIR=board
	ask "step 5" 0
	at_step 5
	cd "$REPO" || return
}
@test "PREEMPT_DIR may be relative" {
	each board_relative
}

board_ranks() {
	mkdir -m 700 "$board/0" "$board/1"
	for rank in 0 1; do
		start PREEMPT_RANKS=2 LOCAL_RANK=$rank
		ask "step 5$rank" 0
		[ "$(cat "$board/$rank/step")" = "0000000000000000005$rank 0000000000000000005$((rank + 1))" ]
		[ ! -s "$board/step" ]
		echo "save 60" >"$board/$rank/hold"
		ask "step 60" 10
	done
	for rank in 2 x -1 01 ''; do
		start PREEMPT_RANKS=2 LOCAL_RANK="$rank"
		tell "step 5"
		ends 2
		said 1 "LOCAL_RANK is .*0 to 1"
	done
	start PREEMPT_RANKS=2
	tell "step 5"
	ends 2
	said 1 "LOCAL_RANK is not set"
	start PREEMPT_RANKS=two LOCAL_RANK=0
	tell "step 5"
	ends 2
}
@test "PREEMPT_RANKS: the board of LOCAL_RANK; none, garbage or too great is refused" {
	each board_ranks
}

# The owner

owner_written() {
	start
	ask "step 5" 0
	[ "$(cut -d ' ' -f 1 "$board/owner")" = "$training" ]
	[ "$(cut -d ' ' -f 2 "$board/owner")" = "$(cut -d ' ' -f 22 "/proc/$training/stat")" ]
}
@test "owner: process and start time of the training process" {
	each owner_written
}

owner_second() {
	local first other
	start
	ask "step 5" 0
	first=$training
	exec 5>&7 6<&8
	for other in bash dash c python program; do
		client=$other start
		tell "step 6"
		ends 2
		said 1 "process $first, this is process $training"
		at_step 5
	done
	echo "step 6" >&5
	read -r -t "$PATIENCE" line <&6
	[ "$line" = "step 0" ]
	exec 5>&- 6<&-
}
@test "owner: a second process on the board is refused, whatever client it has" {
	each owner_second bash dash c python program
}

owner_after() {
	start
	ask "step 5" 0
	kill -KILL "$training"
	wait "$training" || :
	# It has gone back to a checkpoint, and is asked what the former one had answered.
	hold "save 6"
	start
	ask "step 5" 0
	ask "step 6" 10
	ask "saved 6" 0
	ask "section eval" 0
	[ "$(cut -d ' ' -f 1 "$board/owner")" = "$training" ]
	kill -KILL "$training"
	wait "$training" || :
	start
	ask "section eval" 0
	[ "$(cut -d ' ' -f 1 "$board/owner")" = "$training" ]
	[ ! -s "$board/step" ]
	[ ! -s "$board/saved" ]
	ask "step 2" 0
	ask "step 6" 10
	# Its own number never falls, and it is one.
	tell "step 5"
	ends 2
	said 1 "step 5 after step 6"
	at_step 6
	start
	ask "step 6" 10
	[ "$(cut -d ' ' -f 1 "$board/owner")" = "$training" ]
	exec 5>&7
	start
	tell "step 7"
	ends 2
	exec 5>&-
}
@test "owner: one that is gone is followed by the next, which may have gone back" {
	each owner_after
}

owner_after_no_step() {
	echo "$agent 1" >"$board/owner" # the number is in use again, by another process
	start
	ask "step 0" 0
	[ "$(cut -d ' ' -f 1 "$board/owner")" = "$training" ]
}
@test "owner: a process number used again is not the owner; without a step any start is right" {
	each owner_after_no_step
}

racers() {
	local i pids=() n=8
	bash -c 'echo $$' >"$board/owner"
	for ((i = 0; i < n; i++)); do
		start
		pids+=("$training")
		# Kept open, so that each stays until the end.
		eval "exec $((20 + i))>&7 $((40 + i))<&8"
	done
	for ((i = 0; i < n; i++)); do
		echo "step 5" >&$((20 + i))
	done
	local won=0 lost=0 line code
	for ((i = 0; i < n; i++)); do
		if read -r -t "$PATIENCE" line <&$((40 + i)); then
			[ "$line" = "step 0" ]
			won=$((won + 1))
			[ "$(cut -d ' ' -f 1 "$board/owner")" = "${pids[i]}" ]
		else
			code=0
			wait "${pids[i]}" || code=$?
			[ "$code" = 2 ]
			lost=$((lost + 1))
		fi
	done
	echo "won $won lost $lost"
	[ "$won" = 1 ]
	[ "$lost" = $((n - 1)) ]
	for ((i = 0; i < n; i++)); do
		eval "exec $((20 + i))>&- $((40 + i))<&-"
	done
}
@test "owner: of eight that want to follow, one does" {
	each racers bash dash c python
}

# A filesystem without room is played by a limit of 0 on the size of files.
owner_no_room() {
	cat >"$room/no_room" <<-'END'
		#!/bin/bash
		trap '' XFSZ
		exec 2> >(cat >"${0%/*}/said")
		ulimit -f 0
		exec "$@"
	END
	chmod +x "$room/no_room"
	WRAP=$room/no_room start
	tell "step 5"
	ends 2
	eventually grep -q "cannot write on the board $board: " "$room/said"
	[ ! -e "$board/owner.1" ]
}
@test "owner: no room to write it: refused, without another try" {
	each owner_no_room bash dash c python
}

owner_child() {
	start
	ask "step 5" 0
	ask "child 6" 2
	said 1 "process $training, this is process"
	ask "step 6" 0
}
@test "owner: a forked child is a second process, and is refused" {
	each owner_child c python
}

owner_subshell() {
	start
	ask "step 5" 0
	ask "child 6" 0
	ask "step 7" 0
}
@test "owner: a subshell is the same owner" {
	each owner_subshell bash dash
}

# Signals

# survives SIGNAL: it does not end the training; shells ignore it, so that a foreground command lives on, too,
# other clients have a handler, which a command does not inherit.
survives() {
	case $client in
	bash* | dash*) [ "$(disposition "$1")" = ignored ] ;;
	*) [ "$(disposition "$1")" = caught ] ;;
	esac
}

signals_survived() {
	start
	ask "step 5" 0
	survives TERM
	[ "$(disposition USR1)" != ignored ] # bash catches it for itself
	kill -TERM "$training"
	ask "step 6" 0
	said 0 .
}
signals_listed() {
	start PREEMPT_SIGNALS=USR1,SIGUSR2,GARBAGE,KILL
	ask "step 5" 0
	! survives TERM
	survives USR1
	survives USR2
	said 1 "no signal GARBAGE"
	said 1 "no signal KILL"
}
signals_none() {
	start PREEMPT_SIGNALS=
	ask "step 5" 0
	! survives TERM
}
@test "signals: TERM, or what PREEMPT_SIGNALS names, does not end the training where it was default" {
	each signals_survived bash dash c python
	each signals_listed bash dash c python
	each signals_none bash dash c python
}

signals_handler() {
	start HANDLER=1
	ask "step 5" 0
	[ "$(disposition TERM)" = caught ]
	kill -TERM "$training"
	# A signal just before a read is told to the script behind it; dash ends at one within a read.
	(tell nothing) 2>/dev/null || :
	expect trapped
}
@test "signals: a handler or trap of the user's stays" {
	each signals_handler bash dash c python
}

signals_program() {
	local pid
	start
	hold "wait $agent"
	tell "step 5"
	eventually at_step 5
	pid=$(pgrep -P "$training" preempt-step)
	kill -TERM "$pid"
	still
	lift
	expect "step 0"
}
@test "signals: preempt-step that waits is not killed by a notice to the process tree" {
	each signals_program program
}

# One client only

shell_state() {
	start
	tell state
	read -r -t "$PATIENCE" before <&8
	ask "step 5" 0
	hold "wait $agent"
	tell "step 6"
	eventually at_step 6
	hold "exit 6"
	expect "step 10"
	tell state
	read -r -t "$PATIENCE" after <&8
	[ -n "$before" ]
	[ "$before" = "$after" ]
}
@test "shell: IFS, positional parameters and options stay as they are" {
	each shell_state bash dash
}

# The loop of docs/design.md, section 3, to the letter.
loop_script() {
	cat <<-'END'
		set -euo pipefail
		. "$CLIENT/preempt.sh"
		start=$1 total=$2
		save() { echo "save $1"; }
		train() { echo "train $1"; }
		for ((s = start; s < total; s++)); do
		    preempt_step $s || { save $s && preempt_saved $s; } || exit
		    train $s
		done
		echo end
	END
}
@test "shell: the loop of the manual under set -euo pipefail" {
	client=bash
	board_make
	loop_script >"$room/loop"
	export CLIENT=$REPO/lib/client
	run -0 bash "$room/loop" 0 3
	[ "$output" = "$(printf 'train %d\n' 0 1 2)"$'\nend' ]
	finish

	board_make
	hold "save 1"
	loop_script >"$room/loop"
	run -0 bash "$room/loop" 0 3
	[ "$output" = "train 0"$'\n'"save 1"$'\n'"train 1"$'\n'"train 2"$'\n'"end" ]
	finish

	board_make
	loop_script >"$room/loop"
	hold "exit 2 $agent"
	bash "$room/loop" 0 5 >"$room/out" 2>"$room/err" 3>&- &
	training=$!
	processes+=("$training")
	eventually [ -s "$board/saved" ]
	hold "leave 42"
	code=0
	wait "$training" || code=$?
	[ "$code" = 42 ]
	[ "$(cat "$room/out")" = "train 0"$'\n'"train 1"$'\n'"save 2" ]
}

@test "shell: noclobber, allexport, functions called where set -e counts" {
	for client in bash dash; do
		board_make
		hold "save 1"
		cat >"$room/script" <<-'END'
			set -aCeu
			. "$CLIENT/preempt.sh"
			preempt_step 0
			preempt_step 1 || echo "save $?"
			preempt_saved 1
			preempt_step 2 5
			case $- in *C*) echo "still $?" ;; esac
			if (echo x >"$PREEMPT_DIR/step") 2>/dev/null; then echo clobbered; fi
			# A child that sources it again is another process.
			"$1" -c '. "$CLIENT/preempt.sh"; preempt_step 6' 2>/dev/null || echo "child $?"
		END
		CLIENT=$REPO/lib/client run -0 "$client" "$room/script" "$client"
		echo "$output"
		[ "$output" = "save 10"$'\n'"still 0"$'\n'"child 2" ]
		finish
	done
}

@test "shell: bash in its POSIX mode" {
	client=bash
	board_make
	hold "exit 1 $agent"
	# shellcheck disable=SC2016
	CLIENT=$REPO/lib/client bash --posix -euc '. "$CLIENT/preempt.sh"; preempt_step 0; preempt_step 1 || echo $?
		preempt_saved 1 || exit' >"$room/out" 2>"$room/err" 3>&- &
	training=$!
	processes+=("$training")
	eventually [ -s "$board/saved" ]
	hold "leave 42"
	code=0
	wait "$training" || code=$?
	[ "$code" = 42 ]
	[ "$(cat "$room/out")" = 10 ]
	[ ! -s "$room/err" ]
	finish
}

looked_twice() {
	[ "$(grep -c "openat.*board/hold" "$room/trace")" -ge 2 ]
}
@test "shell: 1000 steps and a wait under bash without a single fork" {
	client=bash
	board_make
	cat >"$room/script" <<-'END'
		set -euo pipefail
		. "$CLIENT/preempt.sh"
		for ((s = 0; s < 1000; s++)); do preempt_step $s; done
		preempt_saved 1000
		: >"$PREEMPT_DIR/ready"
		until [ -e "$PREEMPT_DIR/hold" ]; do :; done
		preempt_step 1000
	END
	CLIENT=$REPO/lib/client strace -f -s 64 -o "$room/trace" -e trace=process,openat,write,read \
		bash "$room/script" 2>"$room/err" 3>&- &
	processes+=("$!")
	tracer=$!
	eventually [ -e "$board/ready" ]
	hold "wait $agent"
	eventually at_step 1000
	eventually looked_twice
	hold "exit 5000"
	wait "$tracer"
	[ "$(grep -cE '(clone|clone3|fork|vfork)\(' "$room/trace")" = 0 ]
	# Each step is one write of 42 bytes into a file that was not truncated.
	[ "$(grep -c 'write(1, "[0-9]* [0-9]*\\n", 42) *= 42' "$room/trace")" = 1001 ]
	[ "$(grep -c 'board/step".*O_TRUNC' "$room/trace")" = 0 ]
}

# The strace line above proves nothing if strace sees nothing.
@test "shell: strace would have seen a fork" {
	run -0 strace -f -e trace=process -o "$BATS_TEST_TMPDIR/trace" bash -c '(:); :'
	[ "$(grep -cE '(clone|clone3|fork|vfork)\(' "$BATS_TEST_TMPDIR/trace")" -ge 1 ]
}

clobbered() {
	echo precious >"$room/mine"
	start MINE="$room/mine"
	ask "step 5" 0
	tell clobber
	expect clobber
	ask "step 6" 0
	at_step 6
	[ "$(cat "$room/mine")" = precious ]
	hold "save 7"
	ask "step 7" 10
}
@test "C, Python: a program that closes every file loses neither its own nor its board" {
	each clobbered c python c@disk python@disk
}

@test "libpreempt: needs nothing but libc, exports what its header declares" {
	run -0 ldd "$OUT/libpreempt.so.0"
	case $OUT in
	*/build/asan) ;;
	*) [ "$(grep -cvE 'linux-vdso|linux-gate|libc\.so|ld-linux|ld64|ld-musl' <<<"$output")" = 0 ] ;;
	esac
	[ "$(nm -D --defined-only "$OUT/libpreempt.so.0" | awk '$2 == "T" { print $3 }' | sort | xargs)" = \
		"preempt_ask preempt_saved preempt_section preempt_step preempt_step_next preempt_tell_section" ]
	# In the static library every other symbol keeps out of a program's way.
	run -0 nm -g --defined-only "$OUT/libpreempt.a"
	[ "$(grep -E ' [TDBR] ' <<<"$output" | grep -cv ' preempt_')" = 0 ]
}

@test "libpreempt: installed, found by pkg-config, used from C and C++" {
	case $OUT in
	*/build/asan) skip "one build is enough" ;;
	esac
	make -s -C "$REPO" install DESTDIR="$BATS_TEST_TMPDIR/root" PREFIX=/opt/preempt >/dev/null
	root=$BATS_TEST_TMPDIR/root/opt/preempt
	export PKG_CONFIG_PATH=$root/lib/pkgconfig
	[ "$(pkg-config --variable=prefix preempt)" = /opt/preempt ]
	[ "$(pkg-config --modversion preempt)" = "$("$root/bin/preempt-step" --version | cut -d ' ' -f 2)" ]
	read -ra flags <<<"$(pkg-config --define-variable=prefix="$root" --cflags --libs preempt)"
	cat >"$BATS_TEST_TMPDIR/use.c" <<-'END'
		#include <preempt.h>
		int main(void) { return preempt_step(0) || preempt_step_next(1, 3) || preempt_saved(3); }
	END
	cp "$BATS_TEST_TMPDIR/use.c" "$BATS_TEST_TMPDIR/use.cc"
	for compile in "${CC:-cc} -std=c99 -Wall -Wextra -Werror -pedantic $BATS_TEST_TMPDIR/use.c" \
		"${CXX:-c++} -Wall -Wextra -Werror -pedantic $BATS_TEST_TMPDIR/use.cc"; do
		command -v "${compile%% *}" >/dev/null || continue
		$compile -o "$BATS_TEST_TMPDIR/use" "${flags[@]}"
		client=c
		board_make
		LD_LIBRARY_PATH=$root/lib run -0 "$BATS_TEST_TMPDIR/use"
		at_step 1 3
		[ "$(cat "$board/saved")" = 00000000000000000003 ]
		finish
	done
	[ -r "$root/share/preempt/preempt.sh" ]
	[ -r "$root/share/preempt/preempt.py" ]
}

@test "preempt-step: --help, --version; unknown options and missing arguments are refused" {
	run -0 --separate-stderr "$BIN/preempt-step" --help
	[[ $output = usage:* ]]
	[ -z "$stderr" ]
	local shown=$output
	run -0 "$BIN/preempt-step" -h
	[ "$output" = "$shown" ]
	for ask in --version -V; do
		run -0 "$BIN/preempt-step" $ask
		[[ $output = "preempt-step "[0-9]* ]]
	done
	for wrong in "" "--bogus 1" "-x" "1 2 3" "--saved" "--saved 1 2" "--saved x" "1 x" "--saved=" "--help=1"; do
		# shellcheck disable=SC2086
		run -2 --separate-stderr "$BIN/preempt-step" $wrong
		[ -z "$output" ]
		[[ $stderr = preempt-step:* ]]
	done
	run -0 "$BIN/preempt-step" --saved=5
	run -0 "$BIN/preempt-step" -- 5 6
}

@test "preempt-step: the loop of its manual, in bash and dash" {
	for client in bash dash; do
		board_make
		hold "exit 2 $agent"
		sed 's/for ((.*; do/s=0; while [ $s -lt 5 ]; do/; s/^ *train \$s/&; s=$((s + 1))/' \
			<("$BIN/preempt-step" --help | sed -n '/^ *for ((/,/^ *done/p') >"$room/loop"
		cat - "$room/loop" >"$room/script" <<-'END'
			set -eu
			save() { echo "save $1"; }
			train() { echo "train $1"; }
		END
		PATH=$BIN:$PATH "$client" "$room/script" >"$room/out" 2>"$room/err" 3>&- &
		training=$!
		processes+=("$training")
		eventually [ -s "$board/saved" ]
		hold "leave 42"
		code=0
		wait "$training" || code=$?
		cat "$room/script" "$room/err"
		[ "$code" = 42 ]
		[ "$(cat "$room/out")" = "train 0"$'\n'"train 1"$'\n'"save 2" ]
		finish
	done
}
