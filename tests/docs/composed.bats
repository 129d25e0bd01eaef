#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# examples/composed.sh: the small programs put together into an agent, alone and beside preempt-run.
# takes: 70
# shellcheck disable=SC2016,SC2030,SC2031,SC2154 # text for another shell; a test is a subshell of its own

bats_require_minimum_version 1.5.0
load ../support/group
load ../support/programs
# shellcheck disable=SC2034 # eventually uses it
patience=180

# A training that is not over before its test; saved.I has the steps that task I saved at. As in any
# training none gets far ahead of another that lives: the agreed step is soon reached by all.
write_training() {
	cat >train.sh <<-EOF2
		. "$REPO/lib/client/preempt.sh"
		echo \$\$ >"$PWD/pid.\$PREEMPT_TASK"
		behind() {
			read -r pid <"$PWD/pid.\$1" || return
			read -r at <"$PWD/at.\$1" || at=0
			((at + 5 < s)) && [ -d "/proc/\$pid" ]
		} 2>/dev/null
		for ((s = 0; s < \${TOTAL:-1000000}; s++)); do
			preempt_step \$s || { echo \$s >>"$PWD/saved.\$PREEMPT_TASK" && preempt_saved \$s; } || exit
			echo \$s >"$PWD/at.\$PREEMPT_TASK"
			for ((other = 0; other < PREEMPT_TASKS; other++)); do
				while behind \$other; do sleep 0.02; done
			done
			sleep 0.01
			[ ! -e "$PWD/fail.\$PREEMPT_TASK" ] || exit 9
			[ ! -e "$PWD/enough" ] && [ ! -e "$PWD/enough.\$PREEMPT_TASK" ] || exit 0
		done
	EOF2
}

# No task is decided without, however long the machine takes: a task is slow here, or dead.
report_timeout=(--report-timeout 10m)
patient_pieces() {
	mkdir -p pieces
	printf '#!/bin/sh\nexec "%s" %s "$@"\n' "$(type -P preempt-ack)" "${report_timeout[*]}" >pieces/preempt-ack
	chmod +x pieces/preempt-ack
	PATH=$PWD/pieces:$PATH
}

# composed I: task I in the background; agents[I] is its script, which leads a process group.
composed() {
	[ -d pieces ] || patient_pieces
	PREEMPT_TASK=$1 PREEMPT_TASKS=$tasks setsid "${script:-$REPO/examples/composed.sh}" bash train.sh \
		>"out.$1" 2>"err.$1" 3>&- &
	agents[$1]=$!
}

run_beside() {
	PREEMPT_TASK=$1 PREEMPT_TASKS=$tasks preempt-run "${report_timeout[@]}" -- bash train.sh >"out.$1" 2>"err.$1" 3>&- &
	agents[$1]=$!
}

all_train() {
	local task
	for ((task = 0; task < tasks; task++)); do
		[ "$(cat "at.$task")" -ge "${1:-3}" ] || return
	done
}

# What there is to see of all tasks, when one does not end.
all_shown() {
	tail -n 20 err.*
	ps -o pid,ppid,stat,wchan:20,etimes,args -p "$({ printf '%s\n' "${agents[@]}"; for agent in "${agents[@]}"; do below "$agent" .; done; } | paste -sd,)"
	preempt-store list --timeout 5s run/r/ || :
}

# All end with this code, and saved.I are all the same.
all_end_with() {
	local task
	for ((task = 0; task < tasks; task++)); do
		eventually gone "${agents[task]}" || { all_shown >&2; return 1; }
		code_of "${agents[task]}"
		[ "$code" = "$1" ] || { echo "task $task: $code, not $1"; tail -n 20 err.* >&2; return 1; }
		[ "$1" != 42 ] || cmp saved.0 "saved.$task"
	done
}

# The processes below process $1 whose command line has $2 in it.
below() {
	local pid
	for pid in $(pgrep -P "$1"); do
		if tr '\0' ' ' <"/proc/$pid/cmdline" | grep -q -e "$2"; then echo "$pid"; fi
		below "$pid" "$2"
	done
}

@test "PH-1 three composed tasks and a preempt-run: TERM to one, one step, one save each, all leave with 42" {
	tasks=4
	write_training
	for task in 0 1 2; do composed "$task"; done
	run_beside 3
	eventually all_train
	kill -TERM "${agents[1]}"
	all_end_with 42
	[ "$(wc -l <saved.0)" = 1 ]
	[ "$(preempt-store get run/r/000001/CLOSED | field state)" = preempted ]
	[ "$(preempt-store get run/r/000001/TERMINATED_WORKER | field task)" = 1 ]
	[ "$(preempt-store get run/r/000001/TERMINATED_WORKER | field source)" = signal:TERM ]
	eventually no_boards
}

no_boards() {
	! compgen -G "preempt-board-*" >/dev/null
}

@test "TERM to the script, to its process group, to the whole tree, USR2 to that, twice: one step, all leave with 42 (PH-3, PH-19)" {
	tasks=2
	local shape
	for shape in script group tree peer usr2; do
		another_store
		rm -rf saved.* at.*
		write_training
		composed 0
		run_beside 1
		eventually all_train
		for _ in 1 2; do
			# shellcheck disable=SC2046 # several numbers
			case $shape in
			script) kill -TERM "${agents[0]}" ;;
			group) kill -TERM -- "-${agents[0]}" ;;
			tree) kill -TERM "${agents[0]}" $(below "${agents[0]}" .) ;;
			peer) kill -TERM "${agents[1]}" ;;
			usr2) kill -USR2 "${agents[0]}" $(below "${agents[0]}" .) ;;
			esac 2>/dev/null || :
		done
		all_end_with 42
		[ "$(wc -l <saved.0)" = 1 ]
	done
}

# Stand-ins for the pieces: those that serve run on, and the training ends with 42 when it is asked to.
stand_ins() {
	local piece
	mkdir -p pieces
	for piece in watch claim ack; do printf '#!/bin/sh\ntrap "" TERM USR1\nexec sleep 1000\n' >pieces/preempt-$piece; done
	printf '#!/bin/sh\ntrap "" TERM USR1\n: >trains\nread -r _ <end\nexit 42\n' >pieces/preempt-heartbeat
	printf '#!/bin/sh\ncase $1 in join) echo export PREEMPT_SIGNALS=TERM,USR1 ;; *) echo "$3" ;; esac\n' >pieces/preempt-store
	chmod +x pieces/*
	mkfifo end
	PATH=$PWD/pieces:$PATH
}

@test "the training ends while the script gets a notice: the script hears of both, and leaves with its code" {
	stand_ins
	for ((i = 0; i < 30; i++)); do
		rm -f trains
		composed 0
		eventually test -e trains
		mapfile -t pieces < <(below "${agents[0]}" .)
		echo >end
		for _ in 1 2 3 4; do kill -USR1 "${agents[0]}" 2>/dev/null || :; done
		eventually gone "${agents[0]}"
		code_of "${agents[0]}"
		[ "$code" = 42 ]
		kill -KILL "${pieces[@]}" 2>/dev/null || :
	done
}

@test "the exit code of the training comes in two pieces, a second apart: the script leaves with it" {
	stand_ins
	# shellcheck disable=SC2317 # called by the script
	echo() { [ "$*" = 42 ] || { builtin echo "$@"; return; }; printf 4; sleep 2.5; printf '2\n'; }
	export -f echo
	composed 0
	unset -f echo
	eventually test -e trains
	mapfile -t pieces < <(below "${agents[0]}" .)
	echo >end
	code_of "${agents[0]}"
	kill -KILL "${pieces[@]}" 2>/dev/null || :
	[ "$code" = 42 ]
}

@test "a site whose notice is XCPU, sent to the whole tree: one step, all leave with 42" {
	tasks=2
	sed 's/kill \$/kill -TERM $/; s/TERM/XCPU/g' "$REPO/examples/composed.sh" >site.sh
	chmod +x site.sh
	write_training
	PREEMPT_SIGNALS=XCPU script=$PWD/site.sh composed 0
	run_beside 1
	eventually all_train
	# shellcheck disable=SC2046 # several numbers
	kill -XCPU "${agents[0]}" $(below "${agents[0]}" .) 2>/dev/null || :
	all_end_with 42
	[ "$(preempt-store get run/r/000001/TERMINATED_WORKER | field source)" = signal:XCPU ]
}

@test "checkpoints on demand, then a claim from outside: each at one step, the last one leaves" {
	tasks=2
	write_training
	composed 0
	run_beside 1
	eventually all_train
	preempt-claim --then continue
	eventually test -s saved.0
	eventually test -s saved.1
	eventually preempt-claim --then continue
	eventually has_key SAVED/2/0
	eventually has_key SAVED/2/1
	preempt-claim --outside
	all_end_with 42
	[ "$(wc -l <saved.0)" = 3 ]
}

@test "all finish: 0 for all, the attempt is completed, nothing is left behind (PH-8)" {
	tasks=2
	write_training
	export TOTAL=20
	composed 0
	run_beside 1
	all_end_with 0
	[ "$(preempt-store get run/r/000001/CLOSED | field state)" = completed ]
	eventually no_boards
}

@test "PH-2 one task fails: the others are ended with 44, its own code stays" {
	tasks=3
	write_training
	composed 0
	composed 1
	run_beside 2
	eventually all_train
	touch fail.1
	code_of "${agents[1]}"
	[ "$code" = 9 ]
	code_of "${agents[0]}"
	[ "$code" = 44 ]
	grep -q "task 1 failed" err.0
	code_of "${agents[2]}"
	[ "$code" = 44 ]
}

# kill -9 the piece of task 0 that has this in its command line; pieces[] are all processes of the task.
piece_killed() {
	mapfile -t pieces < <(echo "${agents[0]}" && below "${agents[0]}" .)
	# shellcheck disable=SC2046 # several numbers
	kill -KILL $(below "${agents[0]}" "$1")
}

all_gone() {
	local pid
	for pid in "${pieces[@]}"; do gone "$pid" || return; done
}

@test "kill -9 of any piece: nothing of the task is left running, and the others learn it" {
	tasks=2
	local what
	for what in "preempt-watch" "preempt-claim" "preempt-ack" "preempt-heartbeat"; do
		another_store
		rm -rf saved.* at.*
		write_training
		composed 0
		composed 1
		eventually all_train
		piece_killed "$what "
		eventually all_gone
		code_of "${agents[0]}"
		[[ $code = 75 || ($code = 137 && $what = preempt-heartbeat) ]]
		code_of "${agents[1]}"
		[ "$code" = 44 ]
		grep -q "task 0 failed" err.1
	done
}

@test "kill -9 of preempt-ack while it agrees: the task leaves with 43, and so do the others" {
	tasks=2
	write_training
	composed 0
	run_beside 1
	eventually all_train
	stopped "${agents[1]}" # does not report
	kill -TERM "${agents[0]}"
	eventually has_key STEP/1/0
	piece_killed preempt-ack
	kill -CONT "${agents[1]}"
	all_end_with 43
	eventually all_gone
}

@test "kill -9 of the script itself, held or not: training and pieces are ended, the others decide without it" {
	tasks=2
	local held
	for held in no yes; do
		another_store
		rm -rf saved.* at.*
		write_training
		composed 0
		run_beside 1
		eventually all_train
		if [ $held = yes ]; then
			stopped "${agents[1]}"
			kill -TERM "${agents[0]}"
			eventually has_key STEP/1/0
		fi
		mapfile -t pieces < <(below "${agents[0]}" .)
		kill -KILL "${agents[0]}"
		eventually all_gone
		# Before, they might have agreed, and the script be gone.
		kill -CONT "${agents[1]}" 2>/dev/null || :
		kill -TERM "${agents[1]}" 2>/dev/null || :
		code_of "${agents[1]}"
		# 44: nothing was claimed yet when it was seen that task 0 is gone.
		[[ $code = 42 || $code = 43 || ($held = no && $code = 44) ]]
	done
}

@test "kill -9 of the training before and after the notice: 137 and an error for all, or 43" {
	tasks=2
	write_training
	composed 0
	run_beside 1
	eventually all_train
	# shellcheck disable=SC2046 # several numbers
	kill -KILL $(below "${agents[0]}" "bash train.sh")
	code_of "${agents[0]}"
	[ "$code" = 137 ]
	code_of "${agents[1]}"
	[ "$code" = 44 ]
	another_store
	rm -rf saved.* at.*
	composed 0
	run_beside 1
	eventually all_train
	stopped "${agents[1]}"
	kill -TERM "${agents[0]}"
	eventually has_key STEP/1/0
	# shellcheck disable=SC2046 # several numbers
	kill -KILL $(below "${agents[0]}" "bash train.sh")
	kill -CONT "${agents[1]}"
	code_of "${agents[0]}"
	[ "$code" = 43 ]
	code_of "${agents[1]}"
	[ "$code" = 43 ]
}

@test "a wrong start is refused by join and starts no training" {
	write_training
	PREEMPT_TASK=3 PREEMPT_TASKS=2 run -2 --separate-stderr "$REPO/examples/composed.sh" bash train.sh
	[ ! -e at.3 ]
	PREEMPT_STORE=$PWD/no/s.db PREEMPT_TASK=0 PREEMPT_TASKS=1 run -75 --separate-stderr \
		"$REPO/examples/composed.sh" bash train.sh
	[ ! -e at.0 ]
}

further_than() {
	[ "$(cat at.2)" -gt $(($1 + 5)) ]
}

@test "tasks that finish at different times stop no task: 0 for each, and the rest is preempted without them" {
	tasks=3
	write_training
	sed -i 's/^for ((s = 0; s < .*TOTAL.*/total=TOTAL_$PREEMPT_TASK; for ((s = 0; s < ${!total}; s++)); do/; s/((at + 5 < s))/((at + 5 < s \&\& at < 9))/' train.sh
	export TOTAL_0=10 TOTAL_1=40 TOTAL_2=1000000
	composed 0
	composed 1
	composed 2
	code_of "${agents[0]}"
	[ "$code" = 0 ]
	code_of "${agents[1]}"
	[ "$code" = 0 ]
	run ! has_key TERMINATED_WORKER
	eventually further_than "$(cat at.2)"
	kill -TERM "${agents[2]}"
	code_of "${agents[2]}"
	[ "$code" = 43 ] # what it saved is not complete without the others
	[ "$(preempt-store get run/r/000001/CLOSED | field state)" = preempted ]
}

@test "asked to stop: all save at one step and leave with 93" {
	tasks=2
	write_training
	composed 0
	run_beside 1
	eventually all_train
	preempt-claim --outside --then stop
	all_end_with 93
	cmp saved.0 saved.1
}

@test "one shell joins again after each restart, until its training has finished" {
	tasks=1
	script=$PWD/again.sh
	{
		printf '%s\n' '#!/bin/bash' 'until [ "${code-}" = 0 ]; do'
		sed "s/^exit \(.*\)/code=\1; trap - TERM; wait; done; exit \$code/" "$REPO/examples/composed.sh"
	} >again.sh
	chmod +x again.sh
	write_training
	composed 0
	for attempt in 1 2; do
		eventually all_train
		kill -TERM "$(pgrep -P "${agents[0]}" preempt-watch)"
		eventually preempt-store get -q "run/r/00000$attempt/CLOSED"
		rm at.0
	done
	eventually all_train
	touch enough
	code_of "${agents[0]}"
	[ "$code" = 0 ]
	[ "$(preempt-store get run/r/000003/CLOSED | field state)" = completed ]
}

@test "a peer is killed while it joins: its place is free, and all train once it is started again" {
	tasks=2
	write_training
	composed 1
	eventually has_key TASK/1
	kill -KILL "${agents[1]}"
	eventually gone "${agents[1]}"
	composed 0
	composed 1
	eventually all_train
	kill -TERM "${agents[1]}"
	all_end_with 42
}

@test "a peer is killed before its first beat, with all that belongs to it: the others leave with 44" {
	tasks=2
	write_training
	patient_pieces
	printf '#!/bin/sh\n[ $PREEMPT_TASK = 0 ] || exec sleep 1000\nexec "%s" "$@"\n' "$(type -P preempt-heartbeat)" >pieces/preempt-heartbeat
	chmod +x pieces/preempt-heartbeat
	composed 0
	composed 1
	eventually test -s at.0
	mapfile -t pieces < <(echo "${agents[1]}" && below "${agents[1]}" .)
	kill -STOP "${pieces[@]}"
	kill -KILL "${pieces[@]}"
	code_of "${agents[0]}"
	[ "$code" = 44 ]
}

# The store's directory is what goes away, as a mount does.
in_a_directory() {
	mkdir store
	export PREEMPT_STORE=$PWD/store/s.db
}

@test "a store that is unreachable for a while: the notice waits for it, and all leave with 42" {
	tasks=2
	in_a_directory
	write_training
	composed 0
	composed 1
	eventually all_train
	mv store away
	kill -TERM "${agents[0]}"
	eventually grep -q "trying again" err.0
	mv away store
	all_end_with 42
	[ "$(wc -l <saved.0)" = 1 ]
}

@test "a store that stays away: the noticed task saves by itself before its deadline, and leaves with 43" {
	tasks=2
	export PREEMPT_GRACE=10s
	in_a_directory
	write_training
	composed 0
	composed 1
	eventually all_train
	mv store away
	kill -TERM "${agents[0]}"
	code_of "${agents[0]}"
	[ "$code" = 43 ]
	[ "$(wc -l <saved.0)" = 1 ]
	run ! test -s saved.1
	mv away store
	kill -TERM "${agents[1]}"
	code_of "${agents[1]}"
	[[ $code = 43 || $code = 44 ]]
}

@test "leave, the store away: a notice on the board makes a failure 43, and is not outstayed" {
	tasks=1
	in_a_directory
	join 1
	echo '{"utc":"2026-01-31T12:00:00.123Z","source":"signal:TERM","reason":"","left_ms":30000}' >"${boards[0]}/notice"
	mv store away
	# Without a notice it asks again for 30 s.
	as 0 run -75 --separate-stderr env PREEMPT_LIFE=x timeout 8 preempt-store leave --code 1
	[ "$output" = 43 ]
	mv away store
}

is_stopped() {
	grep -q '^State:[[:space:]]*T' "/proc/$1/status"
}

@test "leave, another process holds the store: a notice on the board is not outstayed" {
	join 1
	echo '{"utc":"2026-01-31T12:00:00.123Z","source":"signal:TERM","reason":"","left_ms":2000}' >"${boards[0]}/notice"
	store_held
	# Without a notice it asks for 30 s.
	as 0 run -75 --separate-stderr timeout 20 preempt-store leave --code 42
	[ "$output" = 42 ]
}

@test "leave: stays for the others also while a task holds the store, and ends when they have left" {
	needs_store_file
	tasks=2
	join 2
	as 0 preempt-claim >/dev/null
	# It was to have finished by now: each question is a short one.
	echo '{"utc":"2026-01-31T12:00:00.123Z","source":"signal:TERM","reason":"","left_ms":30000}' >"${boards[0]}/notice"
	as 0 preempt-store leave --code 42 >left 3>&- &
	leave=$!
	eventually has_key LEFT/0
	"$OUT/tests/support/hold_store" "$PREEMPT_STORE" run/r/held database >/dev/null 3>&- &
	holder=$!
	started+=("$leave" "$holder")
	eventually is_stopped "$holder"
	kill -0 "$leave"
	sleep 3 # it asks the store in this time, gets no answer, and must stay
	kill -CONT "$holder"
	kill -0 "$leave"
	as 1 preempt-store leave --code 42
	code_of "$leave"
	[ "$code" = 0 ]
	[ "$(cat left)" = 42 ]
}

# The script without its head, as README and preempt(7) show it.
@test "README and preempt(7) show the script as it is, in at most 20 lines" {
	sed '/^#!/d; 1,/^[^#]/ { /^#/d }' "$REPO/examples/composed.sh" >script
	[ "$(grep -c . script)" -le 20 ]
	sed -n '/^## Composed/,/^## /p' "$REPO/README.md" | sed -n '/^```bash/,/^```/p' | sed '/^```/d' | diff script -
	sed -n '/^\.Ss Composed/,/^\.Ed/p' "$REPO/man/preempt.7" | sed -n '/^\.Bd/,$p' | sed '1d; $d' | diff script -
}

@test "kill -9 of the script and of preempt-ack: the others learn it from the heartbeat, and no board stays" {
	tasks=2
	write_training
	composed 0
	run_beside 1
	eventually all_train
	mapfile -t pieces < <(echo "${agents[0]}" && below "${agents[0]}" .)
	# shellcheck disable=SC2046 # several numbers
	kill -KILL $(below "${agents[0]}" preempt-ack) "${agents[0]}"
	eventually all_gone
	code_of "${agents[1]}"
	[ "$code" = 44 ]
}

@test "kill -9 of the script and of preempt-ack when the training has ended: the others learn it all the same" {
	tasks=2
	write_training
	patient_pieces
	# In a session of its own: the kernel continues what is stopped in a process group that loses its script.
	printf '#!/bin/sh\nexec setsid "%s" "$@"\n' "$(type -P preempt-heartbeat)" >pieces/preempt-heartbeat
	chmod +x pieces/preempt-heartbeat
	composed 0
	run_beside 1
	eventually all_train
	beats=$(below "${agents[0]}" preempt-heartbeat | head -n 1)
	kill -STOP "$beats"
	touch enough.0
	eventually gone "$(cat pid.0)"
	mapfile -t pieces < <(echo "${agents[0]}" && below "${agents[0]}" .)
	# shellcheck disable=SC2046 # several numbers
	kill -KILL $(below "${agents[0]}" preempt-ack) "${agents[0]}"
	eventually gone "${agents[0]}"
	kill -CONT "$beats"
	eventually all_gone
	code_of "${agents[1]}"
	[ "$code" = 44 ]
}

@test "kill -9 of the script: preempt-ack removes its board" {
	tasks=1
	write_training
	composed 0
	eventually all_train
	kill -KILL "${agents[0]}"
	eventually no_boards
}

@test "a store that is unreachable when a task finishes: its goodbye waits, and the others train on" {
	tasks=2
	in_a_directory
	write_training
	sed -i 's/^for ((s = 0; s < .*TOTAL.*/total=TOTAL_$PREEMPT_TASK; for ((s = 0; s < ${!total}; s++)); do/; s/((at + 5 < s))/((at + 5 < s \&\& at < 9))/' train.sh
	export TOTAL_0=10 TOTAL_1=1000000
	composed 0
	composed 1
	eventually test -s at.0
	mv store away
	eventually below_is "${agents[0]}" "preempt-store leave"
	mv away store
	code_of "${agents[0]}"
	[ "$code" = 0 ]
	touch enough
	code_of "${agents[1]}"
	[ "$code" = 0 ]
	[ "$(preempt-store get run/r/000001/CLOSED | field state)" = completed ]
}

below_is() {
	[ -n "$(below "$1" "$2")" ]
}

# away_before_heartbeat RUN: a task has joined, and its heartbeat ($beats) waits for the store, which is in
# the directory store and not in away. piece is a process of --with.
away_before_heartbeat() {
	PREEMPT_RUN=$1 join 1
	sleep 1000 3>&- &
	piece=$!
	started+=("$piece")
	rm -f err # of an earlier call
	(
		eval "$(cat joined.0)"
		PREEMPT_AGENT=${agents[0]} PREEMPT_STORE=$PWD/away/s.db exec preempt-heartbeat --with "$piece" -- touch trained
	) 2>err 3>&- &
	beats=$!
	started+=("$beats")
	eventually grep -q "trying again" err
}

@test "a store that is unreachable when the heartbeat begins: it waits, and the task trains then" {
	in_a_directory
	away_before_heartbeat r
	kill -TERM "$beats" # is not its end
	mv store away
	code_of "$beats"
	[ "$code" = 0 ]
	[ -e trained ]
	grep -q "the store answers again" err
}

@test "a store that is unreachable when the heartbeat begins: it ends when the board says so, or a process of --with or the agent ends" {
	in_a_directory
	away_before_heartbeat told
	echo "leave 43" >"${boards[0]}/hold"
	code_of "$beats"
	[ "$code" = 43 ]
	grep -q "told to leave with 43: the command is not started" err
	away_before_heartbeat alone
	kill -KILL "$piece"
	code_of "$beats"
	[ "$code" = 75 ]
	grep -q "process of --with has ended, .*: the command is not started" err
	away_before_heartbeat deserted
	kill -KILL "${agents[0]}"
	code_of "$beats"
	[ "$code" = 1 ]
	grep -q "process of PREEMPT_AGENT is gone: the command is not started" err
	[ ! -e trained ]
}

@test "a store that goes away after the join, and a notice: the task leaves in its grace time, and trains no more" {
	tasks=1
	export PREEMPT_GRACE=8s
	in_a_directory
	write_training
	patient_pieces
	printf '#!/bin/sh\nuntil [ -e away ]; do sleep 0.05; done\nexec "%s" "$@"\n' "$(type -P preempt-heartbeat)" >pieces/preempt-heartbeat
	chmod +x pieces/preempt-heartbeat
	composed 0
	eventually serves "${agents[0]}"
	mv store away
	eventually grep -q "trying again" err.0
	kill -TERM "${agents[0]}"
	code_of "${agents[0]}"
	[ "$code" = 42 ]
	grep -q "told to leave with 42: the command is not started" err.0
	[ ! -e at.0 ]
}

# The pieces of a task wait for notices, and preempt-ack has opened the store.
serves() {
	# shellcheck disable=SC2034 # watch_is_ready uses it
	watch=$(below "$1" "preempt-watch ")
	watch_is_ready && [ -n "$(below "$1" "preempt-claim ")" ] &&
		[ -n "$(find "/proc/$(below "$1" "preempt-ack ")/fd" -lname "*/s.db*")" ]
}

