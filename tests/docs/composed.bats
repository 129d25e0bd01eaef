#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# examples/composed.sh: the small programs put together into an agent, alone and beside preempt-run.
# takes: 45
# shellcheck disable=SC2016,SC2030,SC2031,SC2046,SC2154,SC2317 # text for another shell; a test is a subshell of its own

bats_require_minimum_version 1.5.0
load ../support/group
# shellcheck disable=SC2034 # eventually uses it
patience=180

# A training that is not over before its test; saved.I has the steps that task I saved at. As in any training
# none gets far ahead of another that lives: the agreed step is soon reached by all. fail.I, nosave.I, enough.I:
# it fails, its save fails, it is over.
write_training() {
	cat >train.sh <<-EOF2
		. "$REPO/lib/client/preempt.sh"
		echo \$\$ >"$PWD/pid.\$PREEMPT_TASK"
		behind() {
			read -r pid <"$PWD/pid.\$1" || return
			read -r at <"$PWD/at.\$1" || at=0
			((at + 5 < s)) && [ -d "/proc/\$pid" ]
		} 2>/dev/null
		save() { [ ! -e "$PWD/nosave.\$PREEMPT_TASK" ] && echo \$s >>"$PWD/saved.\$PREEMPT_TASK" && preempt_saved \$s; }
		for ((s = 0; ; s++)); do
			preempt_step \$s || save || exit
			echo \$s >"$PWD/at.\$PREEMPT_TASK"
			for ((other = 0; other < PREEMPT_TASKS; other++)); do
				while behind \$other; do sleep 0.02; done
			done
			sleep 0.01
			[ ! -e "$PWD/fail.\$PREEMPT_TASK" ] || exit 9
			[ ! -e "$PWD/enough.\$PREEMPT_TASK" ] || exit 0
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

beside() {
	PREEMPT_TASK=$1 PREEMPT_TASKS=$tasks preempt-run "${report_timeout[@]}" -- bash train.sh >"out.$1" 2>"err.$1" 3>&- &
	agents[$1]=$!
}

# trains KIND...: a new run of so many tasks, each "composed" or "beside" (by preempt-run). All train.
trains() {
	local kind task=0
	another_store
	rm -rf {saved,at,fail,nosave,enough}.*
	write_training
	tasks=$#
	for kind; do $kind $((task++)); done
	eventually all_train
}

all_train() {
	local task
	for ((task = 0; task < tasks; task++)); do
		[ "$(cat "at.$task")" -ge 3 ] || return
	done
}

# leaves I CODE: task I does; CODE is a regular expression.
leaves() {
	code_of "${agents[$1]}" || return
	[[ $code =~ ^($2)$ ]] || { echo "task $1: $code, not $2"; tail -n 20 err.*; return 1; } >&2
}

# All end with this code, and saved.I are all the same.
all_leave() {
	local task
	for ((task = 0; task < tasks; task++)); do
		leaves "$task" "$1" || return
		[ ! -e saved.0 ] || cmp saved.0 "saved.$task" || return
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

no_boards() { ! compgen -G "preempt-board-*" >/dev/null; }

closed() { [ "$(preempt-store get run/r/000001/CLOSED | field "$1")" = "$2" ]; }

claimed_by() { [ "$(preempt-store get run/r/000001/TERMINATED_WORKER | field "$1")" = "$2" ]; }

@test "PH-1 three composed tasks and a preempt-run: TERM to one, one step, one save each, all leave with 42" {
	trains composed composed composed beside
	kill -TERM "${agents[1]}"
	all_leave 42
	[ "$(wc -l <saved.0)" = 1 ]
	closed state preempted
	claimed_by task 1
	claimed_by source signal:TERM
	eventually no_boards
}

@test "a notice to the process group, to the whole tree, to a peer, USR2, XCPU of a site, twice: one step, 42 (PH-3, PH-19)" {
	local shape signal
	for shape in group:TERM peer:TERM tree:USR2 tree:XCPU; do
		signal=${shape#*:} shape=${shape%:*}
		if [ "$signal" = XCPU ]; then export PREEMPT_SIGNALS=XCPU; fi
		trains composed beside
		for _ in 1 2; do
			case $shape in
			group) kill -"$signal" -- "-${agents[0]}" ;;
			tree) kill -"$signal" "${agents[0]}" $(below "${agents[0]}" .) ;;
			peer) kill -"$signal" "${agents[1]}" ;;
			esac 2>/dev/null || :
		done
		all_leave 42
		[ "$(wc -l <saved.0)" = 1 ]
		claimed_by source "signal:$signal"
	done
}

all_gone() {
	local pid
	for pid in "${pieces[@]}"; do gone "$pid" || return; done
}

# What happens to task 0, when, what the other task is, the codes of both. trains: at any time; agreed: after the notice,
# when the other has not yet reported its step; finished: when the training has ended, and the script has not said so.
@test "PH-2 kill -9 of any piece, of the script, of the training; a failure: nothing stays, and the others learn it" {
	local row what when peer here there pieces
	for row in \
		"preempt-watch      trains   composed 75     44" \
		"preempt-claim      trains   composed 75     44" \
		"preempt-ack        agreed   beside   43     43" \
		"training           agreed   beside   43     43" \
		"failure            trains   composed 9      44" \
		"save               agreed   beside   43     43" \
		"script             trains   beside   137    44" \
		"script             agreed   beside   137    42|43" \
		"script+ack         finished beside   137    44"; do
		read -r what when peer here there <<<"$row"
		echo "$row"
		trains composed "$peer"
		case $when in
		agreed)
			stopped "${agents[1]}"
			kill -TERM "${agents[0]}"
			eventually has_key STEP/1/0
			;;
		finished)
			stopped "${agents[0]}"
			touch enough.0
			eventually gone "$(cat pid.0)"
			;;
		esac
		mapfile -t pieces < <(echo "${agents[0]}" && below "${agents[0]}" .)
		case $what in
		failure) touch fail.0 ;;
		save) touch nosave.0 ;;
		training) kill -KILL "$(cat pid.0)" ;;
		script) kill -KILL "${agents[0]}" ;;
		script+ack) kill -KILL $(below "${agents[0]}" preempt-ack) "${agents[0]}" ;;
		*) kill -KILL $(below "${agents[0]}" "$what ") ;;
		esac
		[ "$when" != agreed ] || kill -CONT "${agents[1]}"
		leaves 0 "$here"
		eventually all_gone
		leaves 1 "$there"
		[ "$peer" != composed ] || grep -q "task 0 failed" err.1
		[ "$what" != save ] || closed cause unsaved
		[ "$what" = script+ack ] || eventually no_boards
	done
}

@test "a wrong start is refused by join and starts no training" {
	write_training
	PREEMPT_TASK=3 PREEMPT_TASKS=2 run -2 --separate-stderr "$REPO/examples/composed.sh" bash train.sh
	[ ! -e at.3 ]
	PREEMPT_STORE=$PWD/no/s.db PREEMPT_TASK=0 PREEMPT_TASKS=1 run -75 --separate-stderr \
		"$REPO/examples/composed.sh" bash train.sh
	[ ! -e at.0 ]
}

@test "a task joins again after each restart, until its training has finished" {
	script=$PWD/again.sh
	printf '#!/bin/bash\nuntil "%s" "$@"; do :; done\n' "$REPO/examples/composed.sh" >again.sh
	chmod +x again.sh
	trains composed
	for attempt in 1 2; do
		kill -TERM "$(below "${agents[0]}" "^preempt-watch")"
		eventually preempt-store get -q "run/r/00000$attempt/CLOSED"
		rm at.0
		eventually all_train
	done
	touch enough.0
	leaves 0 0
	[ "$(preempt-store get run/r/000003/CLOSED | field state)" = completed ]
}

@test "preempt-heartbeat --leave joins if nothing has, gives the command what join prints, and leaves with its code" {
	local code
	another_store
	for code in 0 5; do
		run -"$code" --separate-stderr preempt-heartbeat --task 0 --tasks 1 --leave -- \
			sh -c 'test -d "$PREEMPT_DIR" && test "$PREEMPT_RUN" = r && echo "$PREEMPT_ATTEMPT $PREEMPT_LIFE"; exit '"$code"
		[[ $output =~ ^[12]\ [0-9a-f]+$ ]]
	done
	closed state completed
	[ "$(preempt-store get run/r/000002/CLOSED | field state)" = failed ]
	no_boards
	run -2 preempt-heartbeat --task 0 --tasks 1 --leave
	run -2 preempt-heartbeat --task 7 --tasks 1 --leave -- true
	PREEMPT_SIGNALS=TERM,NOPE run -2 preempt-heartbeat --task 0 --tasks 1 --leave -- true
	[[ $output == *'PREEMPT_SIGNALS: "NOPE" is not a signal'* ]]
	# An option that is refused after the script has joined: the others need not wait for this task.
	local joined
	joined=$(preempt-store join --task 0 --tasks 1 --pid $$)
	(eval "$joined" && run -2 preempt-heartbeat --period 50ms --leave -- true)
	[ "$(preempt-store get run/r/000003/CLOSED | field state)" = failed ]
}

# The script without its head, as README and preempt(7) show it.
@test "README and preempt(7) show the script as it is, in five lines and one that checks its use" {
	sed '/^#!/d; 1,/^[^#]/ { /^#/d }' "$REPO/examples/composed.sh" >script
	[ "$(grep -c '^[^#]' script)" -le 6 ]
	sed -n '/^## Composed/,/^## /p' "$REPO/README.md" | sed -n '/^```bash/,/^```/p' | sed '/^```/d' | diff script -
	sed -n '/^\.Ss Composed/,/^\.Ed/p' "$REPO/man/preempt.7" | sed -n '/^\.Bd/,$p' | sed '1d; $d' | diff script -
}
