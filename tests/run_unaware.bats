#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-run around programs that know no board, but save on a signal.
# shellcheck disable=SC2030,SC2031,SC2154 # a test is a subshell of its own

bats_require_minimum_version 1.5.0

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	PATH=${BIN:-$BATS_TEST_DIRNAME/../bin}:$PATH
	unset "${!PREEMPT_@}" "${!SLURM_@}"
	mkdir -m 700 job
	export PREEMPT_STORE=$PWD/job/s.db PREEMPT_RUN=job
	cat >solver <<'SOLVER'
#!/bin/bash
# Counts in a checkpoint of its own; saves and ends on USR1.
n=0
[ -z "${PREEMPT_RESUME-}" ] || n=$(cat "$PREEMPT_RESUME/n")
echo "$n" >>"starts.$PREEMPT_TASK"
save() {
	dir=$(ckpt-rotate begin ck "$n" 2>/dev/null) && echo "$n" >"$dir/n" && ckpt-rotate commit ck "$n" >/dev/null
}
trap 'n=$((n + 1)); [ "$PREEMPT_TASK" != 0 ] || save; exit 0' USR1
trap '' TERM
touch "ready.$PREEMPT_TASK"
[ -z "${FINISH-}" ] || { touch finished; exit 0; }
while :; do sleep 0.05; done
SOLVER
	chmod +x solver
	agent=
}

teardown() {
	[ -z "$agent" ] || kill -KILL "$agent" 2>/dev/null || :
}

ready() {
	local end=$((SECONDS + 20))
	until [ -e ready.0 ] && [ -e ready.1 ]; do
		((SECONDS < end)) || return
		sleep 0.02
	done
}

start() {
	rm -f ready.*
	preempt-run -n 2 --kill-after 1s "$@" 2>err 3>&- &
	agent=$!
}

code() {
	local code=0
	wait "$agent" || code=$?
	agent=
	[ "$code" = "$1" ] || { cat err >&2; echo "code $code" >&2; return 1; }
}

@test "--on-notice signal: every task is told; a newer checkpoint means 42, and the next start resumes from it" {
	start --on-notice signal:USR1 --checkpoints ck -- ./solver
	ready
	kill -TERM "$agent"
	code 42
	[ "$(ckpt-rotate latest ck --step)" = 1 ]
	[ "$(cat starts.0 starts.1)" = $'0\n0' ]
	start --on-notice signal:USR1 --checkpoints ck -- ./solver
	ready
	kill -TERM "$agent"
	code 42
	[ "$(ckpt-rotate latest ck --step)" = 2 ]
	[ "$(tail -n 1 starts.0) $(tail -n 1 starts.1)" = "1 1" ]
}

@test "no newer checkpoint appeared: 43" {
	start --on-notice 'command:touch told' --checkpoints ck --save-timeout 1s -- ./solver
	ready
	kill -TERM "$agent"
	code 43
	[ -e told ]
}

@test "--done-if tells finished from stopped" {
	start --checkpoints ck --done-if 'test -e finished' -- env FINISH=1 ./solver
	code 0
	rm finished
	start --on-notice signal:USR1 --done-if 'test -e finished' -- ./solver
	ready
	kill -TERM "$agent"
	code 43
}

@test "a way to tell that is none is refused" {
	run -2 preempt-run --on-notice USR1 -- true
	run -2 preempt-run --on-notice signal:NONE -- true
	run -2 preempt-run --on-notice command: -- true
	run -2 preempt-run --signal-to all -- true
}
