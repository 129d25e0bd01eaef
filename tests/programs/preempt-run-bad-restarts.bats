#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-run --max-bad-restarts: a checkpoint from which no restart succeeds is given up.
# shellcheck disable=SC2030,SC2031,SC2154,SC2016
bats_require_minimum_version 1.5.0
load ../support/programs

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	PATH=${BIN:-$BATS_TEST_DIRNAME/../../bin}:$PATH
	unset "${!PREEMPT_@}" "${!SLURM_@}"
	mkdir -m 700 job
	export PREEMPT_STORE=$PWD/job/s.db PREEMPT_RUN=job
	for step in 10 20 30; do
		d=$(ckpt-rotate begin ck $step)
		echo $step >"$d/n"
		ckpt-rotate commit ck $step >answer
	done
	# Fails when it resumes from a step in the file "poison"; else it has finished.
	cat >trainer <<'TRAINER'
#!/bin/bash
n=$(cat "$PREEMPT_RESUME/n" 2>/dev/null || echo none)
echo "$n" >>"resumed.$PREEMPT_TASK"
[ ! -e terminate ] || { kill -TERM "$PPID"; sleep 30; }
! grep -qx "$n" poison
TRAINER
	chmod +x trainer
	echo 30 >poison
}

teardown() {
	if [ "${stopped-}" ]; then kill -KILL "$stopped"; fi
}

train() { preempt-run -n "${copies:-1}" --kill-after 200ms --max-bad-restarts "$@" --checkpoints ck -- ./trainer; }
offered() { ckpt-rotate latest ck --step 2>/dev/null; }

@test "after N failed restarts from a checkpoint it is marked as bad, and the one before is resumed" {
	for _ in 1 2; do
		run -1 --separate-stderr train 2
		[ "$(offered)" = 30 ]
	done
	run -0 --separate-stderr train 2
	[[ $stderr == *"ck/step-00000030: 2 restarts from it have failed; it is marked as bad"* ]]
	[ "$(tr '\n' ' ' <resumed.0)" = "30 30 20 " ]
	run -0 --separate-stderr ckpt-rotate latest ck --step
	[ "$output" = 20 ]
	[[ $stderr == *"2 restarts from it failed"* ]]
}

@test "all tasks of the attempt resume from the same" {
	copies=3
	run -1 --separate-stderr train 1
	run -0 --separate-stderr train 1
	[ "$(offered)" = 20 ]
	for task in 0 1 2; do
		[ "$(tail -n 1 resumed.$task)" = 20 ]
	done
}

@test "without the option nothing is marked; a restart that was preempted is no failure" {
	for _ in 1 2 3; do
		run -1 preempt-run --checkpoints ck -- ./trainer
	done
	[ "$(offered)" = 30 ]
	run -1 train 4
	: >terminate
	run -43 train 5
	rm terminate
	run -1 --separate-stderr train 5
	[ "$(offered)" = 30 ]
	run -0 --separate-stderr train 5
	[ "$(offered)" = 20 ]
}

@test "a step that was given up and saved again has its own count" {
	run -1 train 1
	run -0 train 1
	[ "$(offered)" = 20 ]
	d=$(ckpt-rotate begin ck 30)
	echo 30 >"$d/n"
	ckpt-rotate commit ck 30
	[ "$(offered)" = 30 ]
	run -1 train 2
	run -1 train 2
	[ "$(offered)" = 30 ]
	run -0 train 2
	[ "$(offered)" = 20 ]
}

@test "one after the other is given up, but never the last complete one" {
	printf '%s\n' 10 20 30 >poison
	for _ in 1 2 3 4; do run -1 --separate-stderr train 1; done
	[ "$(tr '\n' ' ' <resumed.0)" = "30 20 10 10 " ]
	[[ $stderr == *"no other complete checkpoint"* ]]
	[ "$(offered)" = 10 ]
}

@test "a prune that removes the others while the last one is marked: the mark is removed" {
	run -1 train 1
	: >trace
	# Leak checks do not work under strace.
	export ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0
	strace -f -o trace -e trace=rename -e inject=rename:signal=STOP:when=1 \
		preempt-run --max-bad-restarts 1 --checkpoints ck -- ./trainer 2>err 3>&- &
	tracer=$!
	eventually grep -q 'stopped by SIGSTOP' trace
	stopped=$(awk '/stopped by SIGSTOP/ {print $1; exit}' trace)
	[ -e ck/step-00000030/.ckpt-bad.json ]
	rm -r ck/step-000000[12]0
	until_true 20 eval '! kill -CONT "$stopped" 2>/dev/null'
	stopped=
	code=0
	wait $tracer || code=$?
	[ $code = 1 ]
	grep 'no other complete checkpoint' err
	[ "$(offered)" = 30 ]
}

@test "wrong usage" {
	run -2 --separate-stderr preempt-run --max-bad-restarts 1 -- true
	[[ $stderr == *"--checkpoints"* ]]
	run -2 train 0
	# There is no place for marks in what a framework wrote.
	for place in ck:hf ck:deepspeed hf; do
		mkdir -p hf/checkpoint-5
		echo '{"global_step": 5}' >hf/checkpoint-5/trainer_state.json
		run -2 --separate-stderr preempt-run --max-bad-restarts 2 --checkpoints "$place" -- touch started
		[[ $stderr == *"--max-bad-restarts: in the layout "*" ($place) nothing can be marked"* ]]
		[ ! -e started ]
	done
}
