#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-requeue, with a squeue and a scontrol that answer what a test wants. A real Slurm: slurm_requeue.bats.
# takes: 85
# shellcheck disable=SC2016,SC2030,SC2031,SC2154 # a test is a subshell of its own; text for other shells

bats_require_minimum_version 1.5.0
load ../support/programs

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	PATH=${BIN:-$BATS_TEST_DIRNAME/../../bin}:$PATH
	unset JOB_ID SGE_ROOT LSB_JOBID KUBERNETES_SERVICE_HOST
	mkdir -m 700 job
	store_for_test "$PWD/job/s.db"
	export CLIENT=$BATS_TEST_DIRNAME/../../lib/client
	mkdir fake
	cat >fake/scontrol <<-'FAKE'
		#!/bin/bash
		[ -e err.first ] || cp err err.first 2>/dev/null
		echo "$*" >>calls
		case $1 in
		requeue)
			[ ! -e refuses ] || { echo "Requested operation is presently disabled for job 9" >&2; exit 1; }
			echo PENDING >state
			kill -TERM "$PPID" # Slurm ends the script
			;;
		esac
	FAKE
	cat >fake/squeue <<-'FAKE'
		#!/bin/bash
		[ "$(cat /proc/$PPID/comm)" = preempt-requeue ] || exit 1 # preempt-run asks, too
		[ "$SLURM_TIME_FORMAT $*" = "%s -h -j $3 --states=all -o %T %e %S" ] || { echo "squeue: $*" >&2; exit 1; }
		[ -e err.first ] || cp err err.first 2>/dev/null
		echo "squeue $3" >>calls
		[ ! -s away ] || { sed -i 1d away; echo "slurm_load_jobs error: Unable to contact slurm controller (connect failure)" >&2; exit 1; }
		[ ! -e hangs ] || { echo $$ >hung; exec sleep 1000; }
		[ ! -e unknown ] || { echo "slurm_load_jobs error: Invalid job id specified" >&2; exit 1; }
		echo "$(cat state 2>/dev/null || echo RUNNING) $(date -d '+1 hour' +%s) $(date +%s)"
	FAKE
	# Counts, and saves when it is asked to; fails at step $FAIL.
	cat >trainer <<-'TRAINER'
		#!/bin/bash
		. "$CLIENT/preempt.sh"
		start=$(cat ck 2>/dev/null || echo 0)
		for ((s = start; s < ${STEPS:-100000}; s++)); do
			preempt_step $s || { echo $s >ck && preempt_saved $s; } || exit
			[ "${FAIL-}" != $s ] || { echo "broken at $s" >&2; exit 7; }
			touch started
			sleep 0.01
		done
	TRAINER
	chmod +x fake/scontrol fake/squeue trainer
	PATH=$PWD/fake:$PATH
	export XDG_STATE_HOME=$PWD/home # the traces of jobs
	slurm
	job='' holder=''
}

teardown() {
	[ -n "${BATS_TEST_COMPLETED:-}" ] || cat err calls >&2 || :
	[ -n "${BATS_TEST_COMPLETED:-}" ] || preempt-store list --values run/ >&2 || :
	[ -z "$job" ] || kill -KILL "$job" 2>/dev/null || :
	[ -z "$holder" ] || kill -KILL "$holder" 2>/dev/null || :
}

# This is a batch shell of Slurm, restart COUNT.
slurm() {
	export SLURM_JOB_ID=9
	unset SLURM_RESTART_COUNT
	[ -z "${1-}" ] || export SLURM_RESTART_COUNT=$1
}
no_slurm() {
	unset "${!SLURM_@}"
	export PREEMPT_RUN=job
}

start() { # ARGUMENT...: preempt-requeue in the background
	rm -f started
	preempt-requeue "$@" 2>err 3>&- &
	job=$!
}

code() {
	local code=0
	wait "$job" || code=$?
	job=
	[ "$code" = "$1" ] || { echo "code $code, not $1" >&2; return 1; }
}

agent() { pgrep -P "$job" -x preempt-run; }
# The tasks get a TERM, as Slurm sends it.
preempted() {
	until_true 10 test -e started
	kill -TERM "$(agent)"
}
calls() { [ "$(cat calls 2>/dev/null)" = "$1" ]; }

@test "finished: 0, and no scheduler is asked" {
	STEPS=3 run -0 preempt-requeue -- preempt-run -- ./trainer
	calls ""
}

@test "preempted: squeue is asked for the state, then scontrol to requeue; 42" {
	start -- preempt-run -- ./trainer
	preempted
	code 42
	calls $'squeue 9\nrequeue 9'
	grep -q 'run again: attempt 1 was preempted' err
	grep -q 'job 9 is requeued' err
}

@test "a task was lost from sight, but the launcher ended with 0: all have finished, nothing is run again" {
	local code
	for code in 0 7; do
		no_slurm
		export PREEMPT_RUN=lost$code
		cat >launcher <<-LAUNCHER
			preempt-store join --run lost$code --task 0 --tasks 1 >/dev/null
			preempt-store put run/lost$code/000001/DEAD/0 '{"by":"silent"}'
			preempt-store put run/lost$code/000001/SEAL '{"by":"death","text":"task 0 is dead"}'
			preempt-store close --run lost$code
			exit $code
		LAUNCHER
		start --requeue-command 'touch requeued' -- bash launcher
		code $((code ? 44 : 0))
		[ -e requeued ] || [ $code = 0 ]
		[ $code != 0 ] || [ ! -e requeued ]
	done
}

@test "a task of an array is requeued alone" {
	export SLURM_ARRAY_JOB_ID=9 SLURM_ARRAY_TASK_ID=3
	start -- preempt-run -- ./trainer
	preempted
	code 42
	calls $'squeue 9_3\nrequeue 9_3'
}

@test "cancelled, completing, over or unknown: never requeued, and said" {
	for state in CANCELLED COMPLETING TIMEOUT COMPLETED FAILED PREEMPTED NODE_FAIL DEADLINE ODD; do
		rm -f calls
		echo $state >state
		start -- preempt-run -- ./trainer
		preempted
		code 42
		calls 'squeue 9'
		grep -q "job 9 is not requeued: it is $state" err
	done
	rm calls
	touch unknown
	start -- preempt-run -- ./trainer
	preempted
	code 42
	calls 'squeue 9'
	grep -q "not requeued: squeue: slurm_load_jobs error: Invalid job id specified" err
}

@test "requeued already: not once more" {
	echo PENDING >state
	start -- preempt-run -- ./trainer
	until_true 10 test -e started
	kill -TERM "$(agent)"
	until_true 10 grep -q 'job 9 is requeued' err
	kill -TERM "$job"
	code 42
	calls 'squeue 9'
}

@test "refused: its words, and what to do" {
	touch refuses
	start -- preempt-run -- ./trainer
	preempted
	code 42
	calls $'squeue 9\nrequeue 9\nsqueue 9\nrequeue 9' # a controller out of reach fails in the same way
	grep -q 'job 9 is not requeued: scontrol requeue: Requested operation is presently disabled for job 9; was it submitted with --requeue?' err
}

@test "the controller cannot be reached for a moment: once more" {
	printf '\n\n' >away
	start -- preempt-run -- ./trainer
	preempted
	code 42
	calls $'squeue 9\nsqueue 9\nsqueue 9\nrequeue 9'
}

@test "squeue hangs: given up in time, and stays for Slurm, which requeues a job that lives" {
	touch hangs
	# Once more where it was killed before it had begun.
	for limit in 5s 30s; do
		rm -f calls
		start --timeout $limit --stay 1s -- preempt-run -- ./trainer
		preempted
		code 42
		[ ! -s hung ] || break
	done
	calls 'squeue 9'
	grep -q 'job 9 is not requeued: squeue has not answered in time; from outside: scontrol requeue 9' err
	grep -q 'staying for at most 1 s' err
	run -1 kill -0 "$(<hung)"
}

@test "Slurm's commands are missing: the same, at once; and no staying for a claim that is not Slurm's" {
	rm fake/scontrol fake/squeue
	# A PATH with all but Slurm's commands; real ones may be there.
	mkdir tools
	ln -sf "$(dirname "$(type -P preempt-run)")"/* /usr/bin/* tools/
	rm -f tools/scontrol tools/squeue
	PATH=$PWD/tools start --stay 1s -- preempt-run -- ./trainer
	preempted
	code 42
	grep -q 'job 9 is not requeued: cannot run squeue: is it in PATH?' err
	grep -q 'staying for at most 1 s' err
	PATH=$PWD/tools start --stay 100s -- preempt-run -- ./trainer
	until_true 10 test -e started
	preempt-claim --outside --run slurm-9
	code 42
	run -1 grep -q 'staying' err
}

@test "crashes: requeued three times, over restarts of the job; then 93, permanently" {
	export FAIL=3
	for count in "" 1 2; do
		slurm "$count"
		rm -f state calls
		start -- preempt-run -- ./trainer
		code 44
		calls $'squeue 9\nrequeue 9'
	done
	slurm 3
	rm -f state calls
	start -- preempt-run -- ./trainer
	code 93
	calls ""
	grep -q 'not run again (93): 4 crashes, 3 allowed (--max-crashes): task 0 failed on .*: broken at 3' err
	preempt-store get run/slurm-9/000004/REFUSED
	# Asked once more it says the same; started once more it begins again.
	run -93 preempt-requeue --code 7
	slurm 4
	start -- preempt-run -- ./trainer
	code 44
	grep -q '1 of 3' err
}

@test "--checkpoints: what the program calls saved, and is not there, is no progress: 43, then 93" {
	slurm
	start -- preempt-run --checkpoints "$PWD/none" -- ./trainer
	preempted
	code 43
	grep -q 'all have saved step' err
	closed=$(preempt-store get run/slurm-9/000001/CLOSED)
	[[ $closed == *'"cause":"unsaved"'* && $closed != *'"saved":'* ]]
	slurm 1
	rm -f state calls
	start --max-no-progress 1 -- preempt-run --checkpoints "$PWD/none" -- ./trainer
	preempted
	code 93
	calls ""
	grep -q 'no progress in 2 attempts, 1 allowed' err
}

@test "--checkpoints: a program that saves on a signal and ends with 0 has not finished: the next attempts count on" {
	printf '%s\n' 'trap "exit 0" USR1' 'touch started' 'while :; do sleep 0.02; done' >program
	for count in "" 1; do
		slurm "$count"
		rm -f state calls
		start --max-no-progress 1 -- preempt-run --on-notice signal:USR1 --checkpoints "$PWD/none" -- bash program
		preempted
		code "$([ -n "$count" ] && echo 93 || echo 43)"
	done
	[[ $(preempt-store get run/slurm-9/000001/CLOSED) == *'"cause":"unsaved"'* ]]
}

@test "what preempt-run --restarts has decided is not decided again" {
	export FAIL=3
	start --max-crashes 100 -- preempt-run --restarts --max-crashes 1 -- ./trainer
	code 93
	calls ""
	grep -q 'preempt-requeue: not run again (93): 2 crashes, 1 allowed' err
}

@test "a launcher that hides the codes of its tasks changes nothing" {
	export FAIL=3
	start -- sh -c 'preempt-run -- ./trainer; exit 0'
	code 44
	calls $'squeue 9\nrequeue 9'
}

@test "what only the agent knows: stopped, not finished (--done-if)" {
	start -- preempt-run --done-if false -- true
	code 43
	calls $'squeue 9\nrequeue 9'
}

@test "the job ended before any task had joined: its code, not requeued" {
	start -- sh -c 'exit 5'
	code 5
	calls ""
	grep -q 'not run again: the exit code was 5' err
	run -127 preempt-requeue -- ./nothing
	calls ""
}

@test "42 without a record: run again, but not endlessly; a job that was preempted often is no such job" {
	slurm 7
	for _ in 1 2 3; do
		start -- sh -c 'exit 42'
		code 42
		calls $'squeue 9\nrequeue 9'
		grep -q 'the job and preempt-requeue must use the same --run and --store' err
		rm calls state
	done
	start -- sh -c 'exit 42'
	code 93
	calls ""
	grep -q 'without a record of its attempts it is run again 3 times in a row at most' err
	# With a record in between the count begins anew.
	export FAIL=3
	start -- preempt-run -- ./trainer
	code 44
	rm calls state
	start -- sh -c 'exit 42'
	code 42
	calls $'squeue 9\nrequeue 9'
}

@test "without exec in a batch script: a warning at the start" {
	cp "$(type -P bash)" slurmstepd
	batch() { (exec -a "slurmstepd: [9.batch]" ./slurmstepd -c "$1; exit"); }
	run --separate-stderr batch 'exec bash -c "preempt-requeue -- true; exit"'
	[[ $stderr != *"start it with exec"* ]] # not below Slurm's process
	run --separate-stderr batch 'bash -c "preempt-requeue -- true; exit"'
	[[ $stderr = *"--signal=B:"*"start it with exec"* ]]
	run --separate-stderr batch 'bash -c "exec preempt-requeue -- true"'
	[[ $stderr != *"start it with exec"* ]]
}

@test "two runs in one job: both are told, both are looked at" {
	export SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=1 SLURM_PROCID=0 SLURM_NTASKS=1
	mkdir a b
	cat >both <<-'BOTH'
		for r in a b; do
			(cd $r && exec preempt-run --run $r --platform none --notice file:/nope -- ../trainer) &
		done
		wait
		exit 42
	BOTH
	start --grace 0 -- sh both
	until_true 10 test -e a/started -a -e b/started
	kill -TERM "$job"
	code 42
	[ "$(grep -c 'claimed from outside' err)" = 2 ]
	[ -s a/ck ] && [ -s b/ck ]
	calls $'squeue 9\nrequeue 9'
	grep -q 'run again: run [ab]: attempt 1 was preempted' err
	# The code of the whole job says less than the records.
	rm calls state
	for code in 0 1; do
		run -42 --separate-stderr preempt-requeue --dry-run --code $code
		[[ $output = *"run again: run a: attempt 1 was preempted"* ]]
	done
}

# as_task COMMAND...: as a task of this job.
as_task() {
	SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=1 SLURM_PROCID=0 SLURM_NTASKS=1 "$@"
}

@test "other runs of a job: one that has finished changes no decision, one that failed none of a job that ended well" {
	as_task run -0 preempt-run --run prep -- true
	start --code 42
	code 42
	calls $'squeue 9\nrequeue 9'
	rm calls state
	as_task run -4 preempt-run --run side -- sh -c 'exit 4'
	start --code 0
	code 0
	start --code 4
	code 44
	grep -q 'run again: run side: attempt 1 crashed, 1 of 3' err
	rm calls state
	(as_task exec preempt-run --run long -- ./trainer) 3>&- & # which another preempt-requeue of the job looks after
	until_true 10 test -e started
	start --code 0
	code 0
	calls ""
	kill -TERM %%
	wait %%  || :
}

@test "two runs, one after the other: the second is told of the notice, too" {
	mkdir a b
	cat >both <<-'BOTH'
		for r in a b; do (cd $r && exec preempt-run --run $r --platform none --notice file:/nope -- ../trainer); done
		exit 42
	BOTH
	as_task start --grace 0 -- sh both
	until_true 10 test -e a/started
	kill -TERM "$job"
	code 42
	[ "$(grep -c 'claimed from outside' err)" = 2 ]
}

@test "the tasks have said no exit code: failures of the job are counted" {
	for _ in 1 2 3; do
		as_task bash -c 'eval "$(preempt-store join --no-heartbeat)"'
		as_task run -0 preempt-store leave
		run -44 --separate-stderr preempt-requeue --code 3
		[[ $stderr = *"run again: the exit code was 3, and the tasks said none"* ]]
	done
	as_task bash -c 'eval "$(preempt-store join --no-heartbeat)"'
	as_task run -0 preempt-store leave
	run -93 --separate-stderr preempt-requeue --code 3
	run -0 --separate-stderr preempt-requeue --code 0
}

@test "a job that was preempted often and leaves no trace is run again all the same" {
	slurm 7
	export HOME=/dev/null XDG_STATE_HOME=/dev/null
	start --code 42
	code 42
	run -93 --separate-stderr preempt-requeue --code 75
}

@test "the platform's own code for run again is counted, too" {
	for _ in 1 2 3; do run -99 preempt-requeue --platform sge -- sh -c 'exit 99'; done
	run -93 preempt-requeue --platform sge -- sh -c 'exit 99'
}

@test "the store cannot be read: by the exit code alone" {
	needs_store_file
	start -- sh -c 'preempt-run -- ./trainer; code=$?; echo garbage >job/s.db; exit $code'
	until_true 10 test -e started
	kill -TERM "$(pgrep -P "$(pgrep -P "$job")" -x preempt-run)"
	code 42
	calls $'squeue 9\nrequeue 9'
	grep -q 'is judged by the exit code alone' err
}

@test "the store cannot be asked: not a no, and run again, but not endlessly" {
	run -1 preempt-run -- sh -c 'exit 1'
	mkdir mnt
	away() { PREEMPT_STORE=$PWD/mnt/s.db PREEMPT_MOUNTS=$PWD/mnt "$@"; }
	run -44 --separate-stderr away preempt-requeue --dry-run --code 1
	[[ $stderr == *"the store could not be asked: "*"$PWD/mnt is not mounted"* ]]
	[[ $output == *"run again: the exit code was 1, and the store could not be asked, 1 of 3"* ]]
	run -44 away preempt-requeue --code 137
	calls $'squeue 9\nrequeue 9'
	rm calls state
	run -0 away preempt-requeue --code 0
	run -93 away preempt-requeue --code 93
	run -75 away preempt-requeue --dry-run
	# What is not mounted may be the home: then the scheduler's own count is the limit.
	slurm 3
	run -93 --separate-stderr away preempt-requeue --code 1
	[[ $stderr == *"run again 3 times in a row at most (--max-no-progress), and the store could not be asked"* ]]
	run -44 away preempt-requeue --dry-run --code 1 --max-no-progress 4
	calls ""
}

@test "75 of the command, which could not ask the store: run again, though it can be asked now" {
	run -44 preempt-requeue --code 75
	calls $'squeue 9\nrequeue 9'
	rm calls state
	run -93 preempt-requeue --code 75 --max-no-progress 1
	calls ""
}

@test "the store is damaged: a failure is not run again, and no task is said to be missing" {
	needs_store_file
	run -1 preempt-run -- sh -c 'exit 1'
	echo garbage >job/s.db
	run -1 --separate-stderr preempt-requeue --code 1
	[[ $stderr == *"not run again: the exit code was 1, and the store could not be asked"* ]]
	calls ""
}

@test "--code: for scripts that ran the job themselves, and only of this start of the job" {
	export FAIL=3
	run -7 preempt-run -- ./trainer
	run -44 preempt-requeue --code 7
	calls $'squeue 9\nrequeue 9'
	rm calls
	slurm 1
	run -9 --separate-stderr preempt-requeue --code 9
	calls ""
	[[ $stderr == *'has no attempt of this start of run slurm-9'* ]]
	run -2 preempt-requeue
	run -2 preempt-requeue --code 1 -- true
}

@test "USR1 for the batch shell only: claimed for all, with the end that Slurm plans" {
	start -- preempt-run -- ./trainer
	until_true 10 test -e started
	kill -USR1 "$job"
	until_true 10 grep -q 'claimed from outside' err
	[[ $(preempt-store get run/slurm-9/000001/TERMINATED_WORKER) == *'"source":"signal:USR1"'*'"deadline_utc":'* ]]
	# An hour is left: saved, and trained on.
	until_true 10 grep -q 'all have saved step' err
	grep -q 'save at step .* and run on' err
	grep -q 'squeue 9' calls
	kill -KILL "$(agent)"
	code 42
}

@test "TERM for the batch shell only, nothing known of the end: all save, and it is requeued" {
	rm fake/scontrol
	start --platform none -- preempt-run -- ./trainer
	until_true 10 test -e started
	kill -TERM "$job"
	code 42
	[ "$(cat ck)" -gt 0 ]
}

@test "TERM for the batch shell, --grace 0: no deadline is announced that is over already, and all save" {
	# Also where the end of a job that is cancelled seems to come, by our clock.
	for state in RUNNING COMPLETING; do
		echo $state >state
		rm -f err.first
		[ $state = COMPLETING ] || export PREEMPT_GRACE=0
		start -- preempt-run -- ./trainer
		until_true 10 test -e started
		kill -TERM "$job"
		until_true 10 grep -q 'claimed from outside' err
		preempt-store list --values run/ >keys
		run -1 grep -E 'deadline_utc|/DEADLINE' keys
		code 42
		# At once is at once: a Slurm that is slow is not asked before the tasks are told.
		[ $state = COMPLETING ] || grep -q 'claimed from outside' err.first
		unset PREEMPT_GRACE
	done
	grep -q 'job 9 is not requeued: it is COMPLETING' err
}

@test "a notice before the tasks are there: they are told when they come" {
	start --platform none -- sh -c 'touch started; until [ -e go ]; do sleep 0.05; done; exec preempt-run -- ./trainer'
	until_true 10 test -e started
	kill -USR1 "$job"
	until_true 10 grep -q 'notice: signal:USR1' err
	touch go
	code 42
	preempt-store get run/slurm-9/000001/TERMINATED_WORKER
}

@test "a notice by a command: it is asked again and again, and the tasks are told" {
	no_slurm
	start --notice 'command:echo >>asked; test -e goes' -- preempt-run -- ./trainer
	until_true 10 test -e started
	until_true 20 eval '[ "$(wc -l <asked)" -ge 3 ]'
	touch goes
	code 42
	grep -q 'notice: command:' err
	run -1 grep 'cannot ask\|took its' err
}

@test "tasks that cannot be told: the command gets USR1 under Slurm, the same signal elsewhere" {
	start -- bash -c 'trap "echo USR1 >got; exit 3" USR1; trap "echo TERM >got; exit 3" TERM; touch started; while :; do sleep 0.05; done'
	until_true 10 test -e started
	kill -TERM "$job"
	code 42 # noticed before any task had joined
	[ "$(cat got)" = USR1 ]
	no_slurm
	start -- bash -c 'trap "echo USR1 >got; exit 3" USR1; trap "echo TERM >got; exit 3" TERM; touch started; while :; do sleep 0.05; done'
	until_true 10 test -e started
	kill -TERM "$job"
	code 42
	[ "$(cat got)" = TERM ]
}

@test "a later notice with an earlier deadline: the deadline is announced" {
	no_slurm
	# The second notice comes a quarter of the 4 s before their end.
	start --notice signal:USR1 --notice deadline:+4s -- bash -c 'preempt-store join --task 0 --tasks 1 >/dev/null
		touch started; while :; do sleep 0.05; done'
	until_true 10 test -e started
	kill -USR1 "$job"
	until_true 10 preempt-store get -q run/job/000001/TERMINATED_WORKER
	until_true 10 preempt-store get -q run/job/000001/DEADLINE
	grep -q 'notice: deadline:' err
}

@test "a notice between two attempts of the job: the one that is over cannot be told, the command gets the signal" {
	no_slurm
	start --platform none -- bash -c 'FAIL=3 preempt-run -- ./trainer
		trap "echo TERM >got; exit 3" TERM; touch over; while :; do sleep 0.05; done'
	until_true 10 test -e over
	kill -TERM "$job"
	code 44
	[ "$(cat got)" = TERM ]
	grep -q 'cannot notify the tasks through the store: .*attempt 1 is over' err
}

@test "the store was missing at the start: the attempt that the last start left open is not claimed" {
	needs_store_file
	PREEMPT_LAUNCH=last preempt-store join --run slurm-9 --task 0 --tasks 1 --no-board --pid $$ >/dev/null
	mv job/s.db away.db
	start -- bash -c 'mv away.db job/s.db; trap "echo USR1 >got; exit 3" USR1; touch started; while :; do sleep 0.05; done'
	until_true 10 test -e started
	kill -TERM "$job"
	code 42
	[ "$(cat got)" = USR1 ]
	run -1 preempt-store get run/slurm-9/000001/TERMINATED_WORKER
}

@test "a store that does not answer: the command gets the signal in time" {
	needs_store_file
	local before took
	is_stopped() { grep -q '^State:.T' "/proc/$1/status"; }
	no_slurm
	# A machine that stands still for a moment does so once.
	for _ in 1 2 3; do
		preempt-store put k v
		start --platform none -- bash -c 'trap "exit 0" TERM; touch started; while :; do sleep 0.05; done'
		until_true 10 test -e started
		"${OUT:-$BATS_TEST_DIRNAME/../../build/plain}/tests/support/hold_store" "$PREEMPT_STORE" held begin 3>&- &
		holder=$!
		until_true 10 is_stopped "$holder"
		kill -TERM "$job"
		before=$SECONDS
		until_true 10 grep -q 'cannot notify the tasks through the store: .*: sending the command a SIGTERM' err
		took=$((SECONDS - before))
		kill -KILL "$holder"
		code 42
		[ "$took" -gt 8 ] || break
	done
	[ "$took" -le 8 ] # 5 s, and at most 1 s for the last try
}

@test "a store that can be read but not written: the command gets the signal, the notice is not lost" {
	needs_store_file
	no_slurm
	# Only preempt-requeue itself is kept from writing.
	strace -D -o trace -P "$PREEMPT_STORE-journal" -e trace=pwrite64 -e inject=pwrite64:error=EACCES \
		preempt-requeue --platform none -- preempt-run -- ./trainer 2>err 3>&- &
	job=$!
	until_true 10 test -e started
	kill -TERM "$job"
	until_true 60 grep -q 'cannot notify the tasks through the store: .*: sending the command a SIGTERM' err
	grep -q 'EACCES.*INJECTED' trace
	code 42
	[ "$(cat ck)" -gt 0 ]
}

@test "INT is passed on, and ends it; kill -9 takes the command with it" {
	no_slurm
	env --default-signal=INT preempt-requeue -- bash -c 'trap "exit 130" INT; touch started; while :; do sleep 0.05; done' 2>err 3>&- &
	job=$!
	until_true 10 test -e started
	kill -INT "$job"
	code 130
	start -- bash -c 'echo $$ >pid; touch started; while :; do sleep 0.05; done'
	until_true 10 test -e started
	kill -KILL "$job"
	code 137
	gone() { ! kill -0 "$(<pid)" 2>/dev/null; }
	until_true 10 gone
}

@test "exit codes of other schedulers: only where they are named" {
	no_slurm
	ended_with() { # CODE OPTION...
		local wanted=$1
		shift
		PREEMPT_RUN=job$((++runs)) FAIL=3 run "-$wanted" preempt-requeue "$@" -- preempt-run -- ./trainer
	}
	JOB_ID=5 SGE_ROOT=/x ended_with 44
	JOB_ID=5 SGE_ROOT=/x ended_with 99 --platform sge
	ended_with 85 --platform condor
	ended_with 42 --platform lsf
	ended_with 42 --platform k8s
	ended_with 44 --platform none
	ended_with 7 --exit-code 7
	FAIL=3 run -93 preempt-requeue --platform sge --max-crashes 0 -- preempt-run -- ./trainer
	STEPS=2 run -0 preempt-requeue --platform sge -- preempt-run -- ./trainer
	run -2 preempt-requeue --platform cray -- true
	calls ""
}

@test "--requeue-command is asked instead of scontrol; its failure is said" {
	export FAIL=3
	start --requeue-command 'echo "again $PREEMPT_JOB" >asked' -- preempt-run -- ./trainer
	code 44
	[ "$(cat asked)" = "again 9" ]
	calls ""
	start --requeue-command 'echo no way; exit 4' -- preempt-run -- ./trainer
	code 44
	grep -q 'echo no way; exit 4: failed with 4: no way' err
}

@test "--dry-run says what would be, and changes nothing" {
	export FAIL=3
	run -7 preempt-run -- ./trainer
	before=$(preempt-store list --values run/)
	run -44 --separate-stderr preempt-requeue --dry-run -- touch ran
	[[ $output == *"attempt 1: crashed: task 0 failed on "*"run again: attempt 1 crashed, 1 of 3"*"would run: scontrol requeue 9"*"exit code 44" ]]
	run -93 preempt-requeue --dry-run --max-crashes 0
	run -99 preempt-requeue --dry-run --platform sge
	run -44 --separate-stderr preempt-requeue --dry-run --requeue-command $'true \e[31m\xe2\x80\xae'
	[[ $output = *'would run: true \x1b[31m\u202e'* ]]
	[ "$(preempt-store list --values run/)" = "$before" ]
	[ ! -e ran ]
	calls ""
}

@test "--run and --store reach the command" {
	unset PREEMPT_STORE
	STEPS=3 run -0 preempt-requeue --run other --store "$PWD/job/o.db" -- preempt-run -- ./trainer
	preempt-store get --store job/o.db run/other/000001/CLOSED
}
