#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-store join: which process stands for the task, where there is nothing to join, what the shell
# that joined joins next, and who counts as joined.
# takes: 40
# shellcheck disable=SC2016,SC2030,SC2031,SC2154 # text for another shell; a test is a subshell of its own

bats_require_minimum_version 1.5.0
load ../support/group

# exported NAME: of the export lines on stdin.
exported() {
	sed -n "s/^export $1=//p"
}

# ---- Which process stands for the task ----

@test "join: the shell that reads the answer stands for the task, also with programs in between" {
	for join in 'preempt-store join' 'timeout 60 preempt-store join' 'env A=b timeout 60 preempt-store join' \
		'bash -c "preempt-store join; exit"'; do
		another_store
		run -0 --separate-stderr bash -c '
			eval "$('"$join"')" || exit
			[ -d "$PREEMPT_DIR" ] && [ "$PREEMPT_AGENT" = $$ ] && echo yes'
		[ "$output" = yes ]
	done
}

@test "join: without a pipe, and with one that no process above it reads, its parent stands for the task" {
	bash -c 'preempt-store join >lines; echo $$ >shell'
	[ "$(exported PREEMPT_AGENT <lines)" = "$(cat shell)" ]
	another_store
	mkfifo pipe # not one of the shell's own, whose reading end it holds for a moment
	cat pipe >lines 3>&- &
	reader=$!
	bash -c 'preempt-store join >pipe; echo $$ >shell'
	wait "$reader"
	[ "$(exported PREEMPT_AGENT <lines)" = "$(cat shell)" ]
}

# A copy of bash whose name is slurmstepd runs the script; its command line says which step it is of.
stepd() {
	[ -e slurmstepd ] || cp "$(type -P bash)" slurmstepd
	(exec -a "slurmstepd: [$1]" ./slurmstepd "$2")
}

# task STEP: as Slurm does, the slurmstepd of the step forks one that becomes the task, and that reads
# what the TaskProlog prints: prolog, a script, which calls preempt-store.
task() {
	cat >fork <<-EOF
		(exec -a "slurmstepd: [$1]" ./slurmstepd task)
		exit
	EOF
	cat >task <<-'EOF'
		echo $$ >pid
		lines=$(./prolog)
		echo "$? $lines" >answer
	EOF
	printf '#!/bin/sh\npreempt-store join\nexit\n' >prolog
	chmod +x prolog
	stepd "$1" fork
}

step() {
	export SLURM_JOB_ID=9 SLURM_JOB_NUM_NODES=2 SLURM_NTASKS=2 SLURM_PROCID=0
	export SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=1 SLURM_STEP_NUM_NODES=1 SLURM_NODEID=0
}

@test "join in a TaskProlog that is a script: the task to be stands for the task" {
	step
	task 9.0
	[[ $(cat answer) = "0 export"* ]]
	[ "$(exported PREEMPT_AGENT <answer)" = "$(cat pid)" ]
}

@test "join in the TaskProlog of a batch shell: nothing is joined, nothing printed, 0" {
	step
	unset "${!SLURM_STEP_@}"
	task 9.batch
	[ "$(cat answer)" = "0 " ]
	[ ! -e s.db ]
	# The variables of the step that submitted this job.
	step
	task 9.batch
	[ "$(cat answer)" = "0 " ]
}

@test "join in the script of a batch job of several machines is refused; what a slurmstepd reads goes to a log" {
	step
	unset "${!SLURM_STEP_@}"
	printf 'bash -c "preempt-store join 2>err; echo \\$? >code; exit"; exit' >script
	stepd 9.batch script
	[ "$(cat code)" = 2 ]
	grep -q "prefix srun" err
	step
	printf 'printf "%%s\n" "$(bash -c "echo \\$\\$ >shell; preempt-store join; exit")" >lines' >script
	stepd 9.0 script
	[ "$(exported PREEMPT_AGENT <lines)" = "$(cat shell)" ]
}

# ---- Once more in the same shell ----

@test "join once more in the same shell: the next attempt each time, with a board of its own" {
	run -0 --separate-stderr bash -c '
		for k in 1 2 3; do
			eval "$(preempt-store join)" || exit
			[ -d "$PREEMPT_DIR" ] || exit
			echo "$PREEMPT_ATTEMPT $PREEMPT_AGENT $PREEMPT_LIFE"
			preempt-store leave --code $((k == 2 ? 9 : 42)) >/dev/null || exit
		done
		eval "$(preempt-store join)" && eval "$(preempt-store join)" && echo "$PREEMPT_ATTEMPT"'
	[ "$(cut -d ' ' -f 1 <<<"$output" | xargs)" = "1 2 3 4" ]
	[ "$(cut -d ' ' -f 3 <<<"$output" | sort -u | wc -l)" = 4 ] # three lives, and the last line
	[ -z "$stderr" ]
}

@test "join: an attempt that was asked for and is not due is refused, and the cure named" {
	as 0 run -0 --separate-stderr preempt-store join --no-board
	as 0 preempt-store leave
	for asked in 1 7; do
		PREEMPT_ATTEMPT=$asked as 0 run -2 --separate-stderr preempt-store join
		[[ $stderr = *"attempt $asked was requested, but the next one is 2: leave out --attempt, or unset PREEMPT_ATTEMPT"* ]]
	done
	# In a shell that joined before, only the option asks for one.
	export PREEMPT_LIFE=x
	PREEMPT_ATTEMPT=1 as 0 run -2 --separate-stderr preempt-store join --attempt 1
	[[ $stderr = *"attempt 1 was requested"* ]]
	PREEMPT_ATTEMPT=1 as 0 run -0 --separate-stderr preempt-store join --no-board
	[ "$(exported PREEMPT_ATTEMPT <<<"$output")" = 2 ]
}

@test "join exports the signals that are notices here, which the clients ignore" {
	run -0 --separate-stderr preempt-store join --no-board
	[ "$(exported PREEMPT_SIGNALS <<<"$output")" = TERM,USR1,USR2,XCPU,PWR ]
	LSB_JOBID=9 run -0 --separate-stderr preempt-store join --no-board --run s --task 0 --tasks 1
	[ "$(exported PREEMPT_SIGNALS <<<"$output")" = TERM,USR1,USR2,XCPU,PWR,INT ]
	PREEMPT_SIGNALS=USR2 run -0 --separate-stderr preempt-store join --no-board --run t
	[ "$(exported PREEMPT_SIGNALS <<<"$output")" = USR2 ]
	PREEMPT_SIGNALS='' run -0 --separate-stderr preempt-store join --no-board --run u
	[[ $output != *PREEMPT_SIGNALS* ]]
}

@test "leave without --code, as in an epilog: left, neither finished nor failed; the job's own code decides" {
	join 2
	kill -KILL "${agents[@]}"
	as 0 run -0 --separate-stderr preempt-store leave
	[ "$output" = 0 ]
	run -1 preempt-store get run/r/000001/ERROR
	as 1 preempt-store leave
	[[ $(preempt-store runs) = *"r  "*" left "* ]]
	decide() { run "-$1" --separate-stderr preempt-requeue --platform none --run r --dry-run --code "$2"; }
	decide 0 0
	[[ $output = *"nothing to run again"* ]]
	decide 44 7
	[[ $output = *"run again: the exit code was 7, and the tasks said none, 1 of 3"* ]]
	decide 42 42
	[[ $output = *"run again: attempt 1 was preempted"* ]]
	# The next attempt is not in its way.
	join 2
	[ "$(preempt-store get run/r/000001/CLOSED | field cause)" = left ]
	as 0 preempt-store leave --code 0
	as 1 preempt-store leave
	[ "$(preempt-store get run/r/000002/CLOSED | field cause)" = left ]
}

@test "leave in a batch shell's TaskEpilog: nothing printed, 0, as join; with --task it does what is asked" {
	step
	unset "${!SLURM_STEP_@}"
	printf 'preempt-store leave >left 2>&1; echo $? >>left; exit' >script
	stepd 9.batch script
	[ "$(cat left)" = 0 ]
	[ ! -e s.db ]
	printf 'preempt-store leave --run r --task 0 --tasks 1 >left 2>&1; echo $? >>left; exit' >script
	stepd 9.batch script
	[[ $(cat left) = *"does not exist"*$'\n1' ]]
}

@test "a TaskProlog that cannot join says why in the job's output" {
	step
	PREEMPT_STORE=$PWD/none/s.db task 9.0
	[[ $(cat answer) = "75 print preempt-store: join: "*"$PWD/none"* ]]
}

@test "the board of a process that joined and was killed goes when the next board is made" {
	join 2
	[ -e "${boards[0]}" ] && [ -e "${boards[1]}" ]
	kill -KILL "${agents[0]}"
	wait "${agents[0]}" 2>/dev/null || :
	run -0 preempt-store join --run other --task 0 --tasks 1 --pid $$
	[ ! -e "${boards[0]}" ]
	[ -e "${boards[1]}" ]
}

# ---- Who counts as joined ----

# joining I [TIMEOUT]: in the background; its process is joins[I].
joining() {
	PREEMPT_TASK=$1 PREEMPT_TASKS=$tasks exec preempt-store join --pid "${agents[$1]}" --timeout "${2:-10m}" \
		>"joined.$1" 2>"err.$1" 3>&- &
	joins[$1]=$!
	started+=("$!")
}

end_agent() {
	kill -KILL "${agents[$1]}"
	eventually gone "${agents[$1]}"
}

# stop_join I: but not while it holds the store's lock, for no other could go on then.
stop_join() {
	kill -STOP "${joins[$1]}"
	until preempt-store get -q --timeout 1s run/r/LAST >/dev/null; do
		kill -CONT "${joins[$1]}"
		sleep 0.01
		kill -STOP "${joins[$1]}"
	done
}

@test "join: a task whose process died while it joined is missing; its successor and the others join the next attempt" {
	export PREEMPT_LAUNCH=slurm:1:0 # all are of one launch
	tasks=3
	for task in 0 1 2; do stand_for "$task"; done
	joining 0
	joining 1
	eventually has_key TASK/0
	eventually has_key TASK/1
	end_agent 1
	code_of "${joins[1]}"
	[ "$code" = 1 ]
	# All places are taken, but no process is behind one of them.
	joining 2
	eventually has_key TASK/2
	stand_for 1
	joining 1
	for task in 0 1 2; do
		code_of "${joins[task]}"
		[ "$code" = 0 ]
		[ "$(exported PREEMPT_ATTEMPT <"joined.$task")" = 2 ]
	done
}

@test "join: a task whose process died right after the last one joined is missing, too" {
	export PREEMPT_LAUNCH=slurm:1:0
	tasks=2
	stand_for 0
	stand_for 1
	joining 0
	eventually has_key TASK/0
	stop_join 0
	PREEMPT_TASKS=2 join_one 1 --timeout 10m >joined.1
	end_agent 1
	kill -CONT "${joins[0]}"
	stand_for 1
	joining 1
	for task in 0 1; do
		code_of "${joins[task]}"
		[ "$code" = 0 ]
		[ "$(exported PREEMPT_ATTEMPT <"joined.$task")" = 2 ]
	done
}

@test "join: a task whose process died while it joined is named with the missing" {
	export PREEMPT_LAUNCH=slurm:1:0
	tasks=3
	for task in 0 1 2; do stand_for "$task"; done
	joining 0
	joining 1
	eventually has_key TASK/0
	eventually has_key TASK/1
	end_agent 1
	code_of "${joins[1]}"
	joining 2 2s
	for task in 0 2; do
		code_of "${joins[task]}"
		[ "$code" = 124 ]
		grep -q "2 of 3 tasks have joined; missing: 1 (--join-timeout)" "err.$task"
	done
}

@test "join: a task that has left already counts as joined" {
	tasks=2
	stand_for 0
	stand_for 1
	joining 0
	eventually has_key TASK/0
	stop_join 0
	PREEMPT_TASKS=2 join_one 1 --timeout 10m >joined.1
	as 1 preempt-store leave
	end_agent 1
	kill -CONT "${joins[0]}"
	code_of "${joins[0]}"
	[ "$code" = 0 ]
}

# ---- A task that joined and never beats ----

# beats I [OPTION...]: preempt-heartbeat of task I, in the background.
beats() {
	local task=$1
	shift
	PREEMPT_TASK=$task PREEMPT_TASKS=$tasks preempt-heartbeat --period 200ms --pid "${agents[task]}" "$@" 2>"err.$task" 3>&- &
	hearts[task]=$!
	started+=("$!")
}

@test "preempt-heartbeat: a task that joined and never beats is dead after --join-timeout, and said so" {
	join 3
	beats 0 --join-timeout 2s --limit 100
	beats 1 --join-timeout 2s --limit 100
	for task in 0 1; do
		code_of "${hearts[task]}"
		[ "$code" = 44 ]
		grep -q "task 2 on .* is dead: no heartbeat since .*Z, no step known" "err.$task"
	done
	[ "$(preempt-store get run/r/000001/DEAD/2 | field by)" = silent ]
	run ! has_key DEAD/1
	run ! has_key DEAD/3
}

@test "preempt-heartbeat: of a task that is gone and never beat no step is known" {
	join 2
	end_agent 1
	beats 0 --limit 100
	code_of "${hearts[0]}"
	[ "$code" = 44 ]
	grep -q "task 1 on .* is gone; last seen .*Z, no step known" err.0
	run -1 --separate-stderr bash -c 'preempt-store get run/r/000001/DEAD/1 | grep \"step\"'
}

@test "preempt-heartbeat: --timeout 0 is refused" {
	join 1
	for what in "--pid ${agents[0]}" "-- true"; do
		# shellcheck disable=SC2086 # several words
		PREEMPT_TASK=0 PREEMPT_TASKS=1 run -2 --separate-stderr timeout 60 preempt-heartbeat --timeout 0 $what
		[[ $stderr = *"--timeout: must be greater than 0"* ]]
	done
}

@test "preempt-run: a task that joined by hand and never beats is dead after --join-timeout; with --no-heartbeat it is not" {
	tasks=4
	stand_for 2
	joining 2
	sleep 1000 3>&- &
	started+=("$!")
	PREEMPT_TASK=3 PREEMPT_TASKS=4 preempt-store join --pid "$!" --no-heartbeat >/dev/null 3>&- &
	started+=("$!")
	PREEMPT_TASK=1 PREEMPT_TASKS=4 preempt-run --no-heartbeat -- sleep 1000 2>err.1 3>&- &
	started+=("$!")
	agents[1]=$!
	for task in 1 2 3; do eventually has_key "TASK/$task"; done
	PREEMPT_TASK=0 PREEMPT_TASKS=4 preempt-run --join-timeout 5s --period 1s --limit 1 -- sleep 1000 2>err.0 3>&- &
	agents[0]=$!
	started+=("$!")
	code_of "${joins[2]}"
	[ "$code" = 0 ]
	code_of "${agents[0]}"
	[ "$code" = 44 ]
	grep -q "task 2 on .* is dead: no heartbeat since" err.0
	code_of "${agents[1]}"
	[ "$code" = 44 ]
	run ! has_key DEAD/1
	run ! has_key DEAD/3
}

@test "an attempt that an earlier join left in the environment is asked for neither of another run nor by preempt-run" {
	PREEMPT_TASK=0 PREEMPT_TASKS=1 preempt-store join --pid $$ >lines
	. ./lines
	preempt-store leave >/dev/null
	preempt-store join --run other --pid $$ --no-board >lines
	[ "$(exported PREEMPT_ATTEMPT <lines)" = 1 ]
	grep -qx "unset PREEMPT_DIR" lines
	run -0 preempt-run -- true
	[ "$(preempt-store get run/r/000002/CLOSED | field state)" = completed ]
	run -2 preempt-run --attempt 1 -- true
}
