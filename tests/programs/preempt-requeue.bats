#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-requeue, with a squeue and a scontrol that answer what a test wants. A real Slurm: systems/slurm_requeue.bats.
# takes: 40
# shellcheck disable=SC2016 # text for other shells

bats_require_minimum_version 1.5.0
load ../support/programs

setup() {
	programs
	unset JOB_ID SGE_ROOT LSB_JOBID KUBERNETES_SERVICE_HOST
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
			touch runs
			sleep 0.01
		done
	TRAINER
	# No task: it writes down which signal it gets. FIRST: what it does before.
	cat >deaf <<-'DEAF'
		#!/bin/bash
		eval "${FIRST-}"
		for name in USR1 TERM; do trap "echo $name >got; exit 3" $name; done
		touch runs
		while :; do sleep 0.05; done
	DEAF
	chmod +x fake/scontrol fake/squeue trainer deaf
	PATH=$PWD/fake:$PATH
	export CLIENT=$REPO/lib/client XDG_STATE_HOME=$PWD/home # the traces of jobs
	slurm
	job=''
}

teardown() {
	[ -n "${BATS_TEST_COMPLETED:-}" ] || cat err calls >&2 || :
	[ -n "${BATS_TEST_COMPLETED:-}" ] || preempt-store list --values run/ >&2 || :
	end_started
}

# This is a batch shell of Slurm, restart COUNT.
slurm() {
	export SLURM_JOB_ID=9
	unset SLURM_RESTART_COUNT
	[ -z "${1-}" ] || export SLURM_RESTART_COUNT=$1
	rm -f state calls
}
# another_job [COUNT]: of which nothing is known.
another_job() {
	another_store
	rm -rf home
	slurm "${1-}"
}
no_slurm() {
	unset "${!SLURM_@}"
	export PREEMPT_RUN=job
}

# requeues ARGUMENT...: preempt-requeue in the background, as $job.
requeues() {
	rm -f runs
	preempt-requeue "$@" 2>err 3>&- &
	job=$!
	started+=("$job")
}
# trains [OPTION...]: the same around a training, which runs.
trains() { requeues "$@" -- preempt-run -- ./trainer && eventually test -e runs; }

code() {
	local code
	code_of "$job"
	[ "$code" = "$1" ] || { echo "code $code, not $1" >&2; return 1; }
}

agent() { pgrep -P "$job" -x preempt-run; }
# The tasks get a TERM, as Slurm sends it.
preempted() {
	eventually test -e runs
	kill -TERM "$(agent)"
}
# calls CALL,...: Slurm was asked this, and nothing else.
calls() { [ "$(paste -sd, calls 2>/dev/null)" = "$1" ] || { echo "Slurm was asked: $(cat calls)"; return 1; }; }
requeued() { calls 'squeue 9,requeue 9'; }

# as_task COMMAND...: as a task of this job.
as_task() { SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=1 SLURM_PROCID=0 SLURM_NTASKS=1 "$@"; }

claim() { preempt-store get "run/$1/000001/TERMINATED_WORKER"; }

# ---- What Slurm is asked, and what its answers mean ----

@test "finished: 0, and no scheduler is asked" {
	STEPS=3 run -0 preempt-requeue -- preempt-run -- ./trainer
	calls ""
}

@test "preempted: Slurm is asked for the state, then to requeue; one that will not run again is not requeued, and that is said" {
	# Before | what is asked | what is said
	while IFS='|' read -r before asked said; do
		slurm
		rm -f away refuses unknown
		eval "$before"
		trains
		preempted
		code 42
		calls "$asked"
		grep "$said" err || { echo "after $before: not said: $said"; false; }
	done <<-'EOT'
		|squeue 9,requeue 9|run again: attempt 1 was preempted
		|squeue 9,requeue 9|job 9 is requeued
		echo CANCELLED >state|squeue 9|job 9 is not requeued: it is CANCELLED
		echo COMPLETING >state|squeue 9|job 9 is not requeued: it is COMPLETING
		echo ODD >state|squeue 9|job 9 is not requeued: it is ODD
		touch unknown|squeue 9|not requeued: squeue: slurm_load_jobs error: Invalid job id specified
		touch refuses|squeue 9,requeue 9,squeue 9,requeue 9|not requeued: scontrol requeue: Requested operation is presently disabled for job 9; was it submitted with --requeue?
		printf '\n\n' >away|squeue 9,squeue 9,squeue 9,requeue 9|job 9 is requeued
		export SLURM_ARRAY_JOB_ID=9 SLURM_ARRAY_TASK_ID=3|squeue 9_3,requeue 9_3|job 9_3 is requeued
	EOT
}

@test "requeued already: not once more" {
	echo PENDING >state
	trains
	kill -TERM "$(agent)"
	eventually grep -q 'job 9 is requeued' err
	kill -TERM "$job"
	code 42
	calls 'squeue 9'
}

@test "squeue hangs: given up in time, and stays for Slurm, which requeues a job that lives" {
	touch hangs
	trains --timeout 2s --stay 1s
	preempted
	code 42
	calls 'squeue 9'
	grep -q 'job 9 is not requeued: squeue has not answered in time; from outside: scontrol requeue 9' err
	grep -q 'staying for at most 1 s' err
	gone "$(<hung)"
}

@test "Slurm's commands are missing: the same, at once; and no staying for a claim that is not Slurm's" {
	rm fake/scontrol fake/squeue
	# A PATH with all but Slurm's commands; real ones may be there.
	mkdir tools
	ln -sf "$(dirname "$(type -P preempt-run)")"/* /usr/bin/* tools/
	rm -f tools/scontrol tools/squeue
	PATH=$PWD/tools trains --stay 1s
	preempted
	code 42
	grep -q 'job 9 is not requeued: cannot run squeue: is it in PATH?' err
	grep -q 'staying for at most 1 s' err
	PATH=$PWD/tools trains --stay 100s
	preempt-claim --outside --run slurm-9
	code 42
	run -1 grep -q 'staying' err
}

# ---- Code and record: what is decided ----

@test "crashes: requeued three times, over restarts of the job; then 93, permanently" {
	export FAIL=3
	for count in "" 1 2; do
		slurm "$count"
		requeues -- preempt-run -- ./trainer
		code 44
		requeued
	done
	slurm 3
	requeues -- preempt-run -- ./trainer
	code 93
	calls ""
	grep -q 'not run again (93): 4 crashes, 3 allowed (--max-crashes): task 0 failed on .*: broken at 3' err
	preempt-store get run/slurm-9/000004/REFUSED
	# Asked once more it says the same; started once more it begins again.
	run -93 preempt-requeue --code 7
	slurm 4
	requeues -- preempt-run -- ./trainer
	code 44
	grep -q '1 of 3' err
}

@test "what the tasks have recorded counts, not the code of a launcher; without any record the code" {
	# What is run | the code | what is asked | what is said
	while IFS='|' read -r what expected asked said; do
		another_job
		eval "requeues $what"
		code "$expected"
		calls "$asked"
		grep -q "$said" err || { echo "$what: not said: $said"; false; }
	done <<-'EOT'
		-- sh -c 'FAIL=3 preempt-run -- ./trainer; exit 0'|44|squeue 9,requeue 9|attempt 1 crashed, 1 of 3
		-- preempt-run --done-if false -- true|43|squeue 9,requeue 9|
		-- sh -c 'exit 5'|5||not run again: the exit code was 5
		-- ./nothing|127||
		--max-crashes 100 -- env FAIL=3 preempt-run --restarts --max-crashes 1 -- ./trainer|93||not run again (93): 2 crashes, 1 allowed
		--code 75|44|squeue 9,requeue 9|run again
	EOT
}

@test "a task was lost from sight, but the launcher ended with 0: all have finished, nothing is run again" {
	no_slurm
	for code in 0 7; do
		export PREEMPT_RUN=lost$code
		cat >launcher <<-LAUNCHER
			preempt-store join --run lost$code --task 0 --tasks 1 >/dev/null
			preempt-store put run/lost$code/000001/DEAD/0 '{"by":"silent"}'
			preempt-store put run/lost$code/000001/SEAL '{"by":"death","text":"task 0 is dead"}'
			preempt-store close --run lost$code
			exit $code
		LAUNCHER
		requeues --requeue-command 'touch requeued' -- bash launcher
		if [ $code = 0 ]; then code 0 && [ ! -e requeued ]; else code 44 && [ -e requeued ]; fi
	done
}

@test "--checkpoints: what the program calls saved, and is not there, is no progress: 43, then 93" {
	printf '%s\n' 'trap "exit 0" USR1' 'touch runs' 'while :; do sleep 0.02; done' >program
	for program in "-- ./trainer" "--on-notice signal:USR1 -- bash program"; do
		another_job
		for count in "" 1; do
			slurm "$count"
			# shellcheck disable=SC2086 # words
			requeues --max-no-progress 1 -- preempt-run --checkpoints "$PWD/none" $program
			preempted
			code "$([ -n "$count" ] && echo 93 || echo 43)"
		done
		calls ""
		grep -q 'no progress in 2 attempts, 1 allowed' err
		closed=$(preempt-store get run/slurm-9/000001/CLOSED)
		[[ $closed == *'"cause":"unsaved"'* && $closed != *'"saved":'* ]]
	done
}

# Each row: what is done, how that ends three times, and what Slurm is asked each time.
@test "without a record of its attempts a job is run again three times in a row, then 93, whichever code says so" {
	local words again asked
	while IFS='|' read -r words again asked; do
		another_job 7 # a job that was preempted often is no such job
		for _ in 1 2 3; do
			rm -f calls state
			eval "run -$again preempt-requeue $words"
			calls "$asked"
		done
		rm -f calls
		eval "run -93 --separate-stderr preempt-requeue $words"
		calls ""
		[[ $stderr == *'without a record of its attempts it is run again 3 times in a row at most'* ]]
	done <<-'END'
		-- sh -c 'exit 42'|42|squeue 9,requeue 9
		--platform sge -- sh -c 'exit 99'|99|
		--code 75|44|squeue 9,requeue 9
	END
	# With a record in between the count begins anew.
	FAIL=3 run -44 preempt-requeue -- preempt-run -- ./trainer
	rm -f calls state
	run -42 --separate-stderr preempt-requeue -- sh -c 'exit 42'
	requeued
	[[ $stderr == *'the job and preempt-requeue must use the same --run and --store'* ]]
	# Without even a trace it is run again all the same.
	another_job 7
	export HOME=/dev/null XDG_STATE_HOME=/dev/null
	run -42 preempt-requeue --code 42
	run -93 preempt-requeue --code 75
}

@test "a code of a job whose tasks have said none: run again three times, then 93" {
	said_none() {
		slurm
		as_task bash -c 'eval "$(preempt-store join --no-heartbeat)"'
		as_task run -0 preempt-store leave
	}
	for _ in 1 2 3; do
		said_none
		run -44 --separate-stderr preempt-requeue --code 3
		[[ $stderr = *"run again: the exit code was 3, and the tasks said none"* ]]
	done
	said_none
	run -93 --separate-stderr preempt-requeue --code 3
	run -0 --separate-stderr preempt-requeue --code 0
}

@test "two runs in one job: both are told, both are looked at" {
	mkdir a b
	cat >both <<-'BOTH'
		for r in a b; do
			(cd $r && exec preempt-run --run $r --platform none --notice file:/nope -- ../trainer) &
		done
		wait
		exit 42
	BOTH
	as_task requeues --grace 0 -- sh both
	eventually test -e a/runs -a -e b/runs
	kill -TERM "$job"
	code 42
	[ "$(grep -c 'claimed from outside' err)" = 2 ]
	[ -s a/ck ]
	[ -s b/ck ]
	requeued
	grep -q 'run again: run [ab]: attempt 1 was preempted' err
	# The code of the whole job says less than the records.
	for code in 0 1; do
		as_task run -42 --separate-stderr preempt-requeue --dry-run --code $code
		[[ $output = *"run again: run a: attempt 1 was preempted"* ]]
	done
}

@test "other runs of a job: one that has finished changes no decision, one that failed none of a job that ended well" {
	as_task run -0 preempt-run --run prep -- true
	run -42 preempt-requeue --code 42
	requeued
	slurm
	as_task run -4 preempt-run --run side -- sh -c 'exit 4'
	run -0 preempt-requeue --code 0
	run -44 --separate-stderr preempt-requeue --code 4
	[[ $stderr = *'run again: run side: attempt 1 crashed, 1 of 3'* ]]
	slurm
	(as_task exec preempt-run --run long -- ./trainer) 3>&- & # which another preempt-requeue of the job looks after
	started+=($!)
	eventually test -e runs
	run -0 preempt-requeue --code 0
	calls ""
}

@test "the store cannot be read, or is damaged: by the exit code alone, and no task is said to be missing" {
	needs_store_file
	FIRST='preempt-run -- ./trainer; code=$?; echo garbage >s.db; exit $code' requeues -- ./deaf
	eventually test -e runs
	kill -TERM "$(pgrep -P "$(pgrep -P "$job")" -x preempt-run)"
	code 42
	requeued
	grep -q 'is judged by the exit code alone' err
	slurm
	run -1 --separate-stderr preempt-requeue --code 1
	[[ $stderr == *"not run again: the exit code was 1, and the store could not be asked"* ]]
	calls ""
}

@test "the store cannot be asked: not a no, and run again, but not endlessly" {
	run -1 preempt-run -- sh -c 'exit 1'
	mkdir mnt
	away() { PREEMPT_STORE=$PWD/mnt/s.db PREEMPT_MOUNTS=$PWD/mnt "$@"; }
	run -44 --separate-stderr away preempt-requeue --dry-run --code 1
	[[ $stderr == *"the store could not be asked: "*"$PWD/mnt is not mounted"* ]]
	[[ $output == *"run again: the exit code was 1, and the store could not be asked, 1 of 3"* ]]
	run -44 away preempt-requeue --code 137
	requeued
	slurm
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

# ---- A notice for the batch shell ----

@test "TERM for the batch shell, --grace 0: no deadline is announced that is over already, and all save" {
	# Also where the end of a job that is cancelled seems to come, by our clock.
	for state in RUNNING COMPLETING; do
		echo $state >state
		rm -f err.first
		[ $state = COMPLETING ] || export PREEMPT_GRACE=0
		trains
		kill -TERM "$job"
		eventually grep -q 'claimed from outside' err
		preempt-store list --values run/ >keys
		run -1 grep -E 'deadline_utc|/DEADLINE' keys
		code 42
		# At once is at once: a Slurm that is slow is not asked before the tasks are told.
		[ $state = COMPLETING ] || grep -q 'claimed from outside' err.first
		unset PREEMPT_GRACE
	done
}

@test "a notice before the tasks are there: they are told when they come" {
	FIRST='touch runs; until [ -e go ]; do sleep 0.05; done; exec preempt-run -- ./trainer' requeues --platform none -- ./deaf
	eventually test -e runs
	kill -USR1 "$job"
	eventually grep -q 'notice: signal:USR1' err
	touch go
	code 42
	claim slurm-9
}

# deaf_in NAME [OPTION...]: preempt-requeue around no task, in a directory and with a store of its own; its number in
# ${jobs[NAME]}.
deaf_in() {
	mkdir "$1"
	cd "$1" || return
	export PREEMPT_STORE=$PWD/s.db
	! declare -F "$1" >/dev/null || "$1"
	requeues "${@:2}" -- ../deaf
	jobs[$1]=$job
	cd ..
}
# The attempt of the last start was left open, and its store is not there when this one begins.
missing() {
	PREEMPT_LAUNCH=last preempt-store join --run slurm-9 --task 0 --tasks 1 --no-board --pid $$ >/dev/null
	mv s.db away.db
}

@test "tasks that cannot be told: the command gets USR1 under Slurm, the same signal elsewhere" {
	needs_store_file
	local -A jobs
	deaf_in slurm # noticed before any task has joined
	FIRST='mv away.db s.db' deaf_in missing
	no_slurm
	deaf_in elsewhere
	FIRST='FAIL=3 preempt-run -- ../trainer; rm runs; touch over' deaf_in between --platform none
	deaf_in held --platform none
	for name in "${!jobs[@]}"; do eventually test -e "$name/runs"; done
	eventually test -e between/over
	eventually test -e between/runs
	PREEMPT_STORE=$PWD/held/s.db preempt-store put k v
	"$OUT/tests/support/hold_store" "$PWD/held/s.db" held begin 3>&- &
	started+=($!)
	eventually is_stopped $!
	kill -TERM "${jobs[@]}"
	eventually grep -q 'cannot notify the tasks through the store: .*: sending the command a SIGTERM' held/err
	kill -KILL $!
	while read -r name signal code; do
		job=${jobs[$name]}
		code "$code"
		[ "$(<"$name/got")" = "$signal" ] || { echo "$name got $(<"$name/got")"; false; }
	done <<-'END'
		slurm USR1 42
		missing USR1 42
		elsewhere TERM 42
		between TERM 44
		held TERM 42
	END
	grep -q 'cannot notify the tasks through the store: .*attempt 1 is over' between/err
	PREEMPT_STORE=$PWD/missing/s.db run -1 claim slurm-9
}

@test "a later notice with an earlier deadline: the deadline is announced" {
	no_slurm
	# The second notice comes a quarter of the 4 s before their end.
	FIRST='preempt-store join --task 0 --tasks 1 >/dev/null' requeues --notice signal:USR1 --notice deadline:+4s -- ./deaf
	eventually test -e runs
	kill -USR1 "$job"
	eventually claim job
	eventually preempt-store get -q run/job/000001/DEADLINE
	grep -q 'notice: deadline:' err
}

# ---- The program ----

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

@test "--code: for scripts that ran the job themselves, and only of this start of the job" {
	FAIL=3 run -7 preempt-run -- ./trainer
	run -44 preempt-requeue --code 7
	requeued
	slurm 1
	run -9 --separate-stderr preempt-requeue --code 9
	calls ""
	[[ $stderr == *'has no attempt of this start of run slurm-9'* ]]
	run -2 preempt-requeue
	run -2 preempt-requeue --code 1 -- true
}

@test "INT is passed on, and ends it; kill -9 takes the command with it" {
	no_slurm
	env --default-signal=INT preempt-requeue -- bash -c 'trap "exit 130" INT; touch runs; while :; do sleep 0.05; done' 2>err 3>&- &
	job=$!
	started+=($!)
	eventually test -e runs
	kill -INT "$job"
	code 130
	FIRST='echo $$ >pid' requeues -- ./deaf
	eventually test -e runs
	kill -KILL "$job"
	code 137
	eventually gone "$(<pid)"
}

@test "exit codes of other schedulers: only where they are named" {
	no_slurm
	ended_with() { # CODE OPTION...
		PREEMPT_RUN=job$((++number)) FAIL=3 run "-$1" preempt-requeue "${@:2}" -- preempt-run -- ./trainer
	}
	JOB_ID=5 SGE_ROOT=/x ended_with 44
	JOB_ID=5 SGE_ROOT=/x ended_with 99 --platform sge
	ended_with 85 --platform condor
	ended_with 42 --platform lsf
	ended_with 42 --platform k8s
	ended_with 44 --platform none
	ended_with 7 --exit-code 7
	ended_with 93 --platform sge --max-crashes 0
	STEPS=2 run -0 preempt-requeue --platform sge -- preempt-run -- ./trainer
	run -2 preempt-requeue --platform cray -- true
	calls ""
}

@test "--requeue-command is asked instead of scontrol; its failure is said" {
	export FAIL=3
	run -44 preempt-requeue --requeue-command 'echo "again $PREEMPT_JOB" >asked' -- preempt-run -- ./trainer
	[ "$(cat asked)" = "again 9" ]
	calls ""
	run -44 --separate-stderr preempt-requeue --requeue-command 'echo no way; exit 4' -- preempt-run -- ./trainer
	[[ $stderr = *'echo no way; exit 4: failed with 4: no way'* ]]
}

@test "--dry-run says what would be, and changes nothing" {
	FAIL=3 run -7 preempt-run -- ./trainer
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
	STEPS=3 run -0 preempt-requeue --run other --store "$PWD/o.db" -- preempt-run -- ./trainer
	preempt-store get --store o.db run/other/000001/CLOSED
}
