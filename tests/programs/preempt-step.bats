#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The board's clients (docs/design.md, section 3): what they and an agent say to each other, through bash, dash, C,
# Python and preempt-step; then what only some of them have. The test plays the agent. CLIENTS="c python" runs fewer.
# takes: 90
# shellcheck disable=SC2016,SC2030,SC2031,SC2154,SC2317 # text for another shell; each calls the cases

bats_require_minimum_version 1.5.0
load ../support/programs
load ../support/clients/board

setup() {
	programs
	processes=() rooms=()
}

teardown() {
	finish
	rm -rf "${rooms[@]}"
}

tell_all() { cat "$room/err"; }

@test "the files step and section" { transcript step.txt; }

@test "hold: save, wait, exit, leave" { transcript hold.txt; }

@test "saved: what is answered, and the exit barrier" { transcript saved.txt; }

@test "the agent dies; the board vanishes, is damaged or is none" { transcript gone.txt; }

@test "owner: one process at a time" { transcript owner.txt; }

# C has no garbage but numbers that are too great.
numbers_refused() {
	local n garbage="010 00 -1 +1 1x x 0x10 1.0 99999999999999999999 1000000000000000000 EMPTY"
	[[ $client != c* ]] || garbage="-1 1000000000000000000 18446744073709551615"
	[[ $client != python* ]] || garbage=${garbage/+1 /}
	for n in $garbage; do
		start
		ask "step 0" 0
		tell "step $n"
		ends 2
		said 1 "step"
		at 0
	done
	for n in "step ${garbage##* }" "saved ${garbage%% *}" "saved ${garbage##* }"; do
		start
		tell "$n"
		ends 2
	done
	[ ! -s "$board/saved" ]
	start
	ask "step 999999999999999999" 0
	[ "$(cat "$board/step")" = "00999999999999999999 01000000000000000000" ]
}
@test "step, saved: only whole numbers from 0 to 999999999999999999, no octal" {
	each numbers_refused
}

hold_seen_at_once() {
	local n
	start
	for n in 1 2 3; do
		ask "step ${n}0" 0
		# So long that a client which looks at times trusts them.
		read -r -t 0.08 <>"$board/pause" || :
		ask "step ${n}1" 0
		hold "save ${n}2"
		ask "step ${n}2" 10
		lift
	done
	for ((n = 100; n < 115; n++)); do
		hold "save $n"
		ask "step $n" 10
		lift
		ask "step $n" 0
	done
}
@test "a hold made between two steps is seen at the very next one" {
	each hold_seen_at_once bash dash c python program c@disk python@disk
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
		[ "$n" -gt 1 ] || still
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
		at 5
	done
	echo "step 6" >&5
	read -r -t 60 line <&6
	[ "$line" = "step 0" ]
	exec 5>&- 6<&-
}
@test "owner: a second process on the board is refused, whatever client it has" {
	each owner_second bash dash c python program
}

racers() {
	local i pids=() n=4
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
		if read -r -t 60 line <&$((40 + i)); then
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
@test "owner: of four that want to follow, one does" {
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

# Signals

# survives SIGNAL: it does not end the training; shells ignore it, so that a foreground command lives on, too,
# other clients have a handler, which a command does not inherit.
survives() {
	case $client in
	bash* | dash*) ignored "$1" ;;
	*) caught "$1" ;;
	esac
}

signals_survived() {
	start
	ask "step 5" 0
	survives TERM
	! ignored USR1 || return 1 # bash catches it for itself
	kill -TERM "$training"
	ask "step 6" 0
	said 0 .
}
signals_listed() {
	start PREEMPT_SIGNALS=USR1,SIGUSR2,GARBAGE,KILL
	ask "step 5" 0
	! survives TERM || return 1
	survives USR1
	survives USR2
	said 1 "no signal GARBAGE"
	said 1 "no signal KILL"
}
signals_none() {
	start PREEMPT_SIGNALS=
	ask "step 5" 0
	! survives TERM || return 1
}
@test "signals: TERM, or what PREEMPT_SIGNALS names, does not end the training where it was default" {
	each signals_survived bash dash c python
	each signals_listed bash dash c python
	each signals_none bash dash c python
}

signals_handler() {
	start HANDLER=1
	ask "step 5" 0
	caught TERM
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
	waits step 5
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
	read -r -t 60 before <&8
	ask "step 5" 0
	hold "wait $agent"
	waits step 6
	hold "exit 6"
	expect "step 10"
	tell state
	read -r -t 60 after <&8
	[ -n "$before" ]
	[ "$before" = "$after" ]
}
@test "shell: IFS, positional parameters and options stay as they are" {
	each shell_state bash dash
}

# shown_loop: the loop that the client shows, for its shell.
shown_loop() {
	case $client in
	bash) sed -n 's/^#\t//; /^for ((/,/^done/p' "$REPO/lib/client/preempt.sh" ;;
	program*) preempt-step --help | sed -n '/^ *for ((/,/^ *done/p' ;;
	esac | case $client in
	*dash) sed 's/for ((.*; do/s=$start; while [ $s -lt $total ]; do/; s/^ *train \$s/&; s=$((s + 1))/' ;;
	*) cat ;;
	esac
}

# loop_ends HOLD CODE LINE...: under that hold the loop prints these lines.
loop_ends() {
	local code=0 shell=bash
	[[ $client != *dash ]] || shell=dash
	board_make
	hold "${1/AGENT/$agent}"
	{
		[ $shell = dash ] || echo 'set -o pipefail'
		echo 'set -eu; start=0 total=3; save() { echo "save $1"; }; train() { echo "train $1"; }'
		[ $client != bash ] || echo ". \"$REPO/lib/client/preempt.sh\""
		shown_loop
		echo 'echo end'
	} >"$room/script"
	$shell "$room/script" >"$room/out" 2>"$room/err" 3>&- &
	processes+=("$!")
	if [ "$2" != 0 ]; then
		eventually test -s "$board/saved"
		hold "leave $2"
	fi
	wait $! || code=$?
	[ "$code" = "$2" ] || { cat "$room/script" "$room/err"; return 1; }
	diff <(printf '%s\n' "${@:3}") "$room/out"
	finish
}
@test "shell: the loop that preempt.sh and preempt-step --help show, under set -euo pipefail" {
	for client in bash program program-dash; do
		loop_ends "save 9" 0 "train 0" "train 1" "train 2" end
		loop_ends "save 1" 0 "train 0" "save 1" "train 1" "train 2" end
		loop_ends "exit 2 AGENT" 42 "train 0" "train 1" "save 2"
	done
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
	eventually test -s "$board/saved"
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
	eventually at 1000
	eventually looked_twice
	hold "exit 5000"
	wait "$tracer"
	[ "$(grep -cE '(clone|clone3|fork|vfork)\(' "$room/trace")" = 0 ]
	# Each step is one write of 42 bytes into a file that was not truncated.
	[ "$(grep -c 'write(1, "[0-9]* [0-9]*\\n", 42) *= 42' "$room/trace")" = 1001 ]
	[ "$(grep -c 'board/step".*O_TRUNC' "$room/trace")" = 0 ]
	# This proves nothing if strace sees nothing.
	strace -f -e trace=process -o "$room/trace" bash -c '(:); :'
	[ "$(grep -cE '(clone|clone3|fork|vfork)\(' "$room/trace")" -ge 1 ]
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

@test "libpreempt: its header is C99 and C++, without a warning" {
	cd "$BATS_TEST_TMPDIR"
	cat >use.c <<-'END'
		#include <preempt.h>
		int main(void) { return preempt_step(0) || preempt_step_next(1, 3) || preempt_saved(3); }
	END
	cp use.c use.cc
	"${CC:-cc}" -std=c99 -Wall -Wextra -Werror -pedantic -fsyntax-only -I "$REPO/lib/client" use.c
	! command -v "${CXX:-c++}" >/dev/null || "${CXX:-c++}" -Wall -Wextra -Werror -pedantic -fsyntax-only -I "$REPO/lib/client" use.cc
}

@test "preempt-step: unknown options and missing arguments are refused" {
	for wrong in "" "--bogus 1" "-x" "1 2 3" "--saved" "--saved 1 2" "--saved x" "1 x" "--saved=" "--help=1"; do
		# shellcheck disable=SC2086
		run -2 --separate-stderr preempt-step $wrong
		[ -z "$output" ]
		[[ $stderr = preempt-step:* ]]
	done
	run -0 preempt-step --saved=5
	run -0 preempt-step -- 5 6
}
