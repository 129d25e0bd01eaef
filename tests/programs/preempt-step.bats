#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The board's clients (docs/design.md, section 3): what they and an agent say to each other, through bash, dash, C,
# Python and preempt-step; then what only some of them have. The test plays the agent. CLIENTS="c python" runs fewer.
# takes: 60
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

@test "the file step" { transcript step.txt; }

@test "hold: save, wait, exit, leave" { transcript hold.txt; }

@test "saved: what is answered, and the exit barrier" { transcript saved.txt; }

@test "the agent dies; the board vanishes, is damaged or is none" { transcript gone.txt; }

@test "owner: one process at a time" { transcript owner.txt; }

@test "signals, and the state of a shell" { transcript signals.txt; }

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

racers() {
	local i line won=0 lost=0 pids=()
	bash -c 'echo $$' >"$board/owner"
	for i in 0 1 2 3; do
		start
		pids+=("$training")
		# Kept open, so that each stays until the end.
		eval "exec 2$i>&7 3$i<&8"
	done
	for i in 0 1 2 3; do echo "step 5" >&"2$i"; done
	for i in 0 1 2 3; do
		if read -r -t 60 line <&"3$i"; then
			[ "$line" = "step 0" ]
			won=$((won + 1))
			[ "$(cut -d ' ' -f 1 "$board/owner")" = "${pids[i]}" ]
		else
			code_of "${pids[i]}"
			[ "$code" = 2 ]
			lost=$((lost + 1))
		fi
	done
	[ "$won $lost" = "1 3" ]
	for i in 0 1 2 3; do eval "exec 2$i>&- 3$i<&-"; done
}
@test "owner: of four that want to follow, one does" {
	each racers bash dash c python
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
	eventually test -e "$board/ready"
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
	run -0 readelf -d "$OUT/libpreempt.so.0"
	[[ $output = *NEEDED* ]]
	run -1 grep -vE '\[(libc\.|ld-|lib(asan|ubsan)\.)' <(grep NEEDED <<<"$output")
	[ "$(nm -D --defined-only "$OUT/libpreempt.so.0" | awk '$2 == "T" { print $3 }' | sort | xargs)" = \
		"preempt_ask preempt_saved preempt_step preempt_step_next" ]
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
