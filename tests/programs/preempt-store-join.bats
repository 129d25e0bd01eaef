#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-store join, leave and close: which process stands for the task, who counts as joined, what is refused,
# and how an attempt ends.
# takes: 25
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2154 # text for another shell; a test is a subshell of its own

bats_require_minimum_version 1.5.0
load ../support/group

# exported NAME: of the export lines on stdin.
exported() {
	sed -n "s/^export $1=//p"
}

# ---- Which process stands for the task ----

@test "the shell that reads the answer stands for the task, also with programs in between; where none does, join's parent" {
	local join reader
	for join in 'preempt-store join' 'timeout 60 preempt-store join' 'env A=b timeout 60 preempt-store join' \
		'bash -c "preempt-store join; exit"'; do
		another_store
		run -0 --separate-stderr bash -c '
			eval "$('"$join"')" || exit
			[ -d "$PREEMPT_DIR" ] && [ "$PREEMPT_AGENT" = $$ ] && echo yes'
		[ "$output" = yes ]
	done
	another_store
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

# stepd STEP [OPTION...]: a copy of bash whose name is slurmstepd; its command line says which step it is of.
stepd() {
	[ -e slurmstepd ] || cp "$(type -P bash)" slurmstepd
	(exec -a "slurmstepd: [$1]" ./slurmstepd "${@:2}")
}

# (What a TaskProlog and a TaskEpilog do otherwise: tests/systems/slurm.bats.)
@test "below a slurmstepd: refused in the batch shell of several machines; a TaskProlog prints why; a shell that it reads" {
	export SLURM_JOB_ID=9 SLURM_JOB_NUM_NODES=2 SLURM_NTASKS=2 SLURM_PROCID=0
	stepd 9.batch -c 'bash -c "preempt-store join 2>err; echo \$? >code; exit"; exit'
	[ "$(cat code)" = 2 ]
	grep -q "prefix srun" err
	stepd 9.batch -c 'preempt-store leave --run r --task 0 --tasks 1 2>err; echo $? >code; exit'
	[[ $(cat err code) = *"does not exist"*$'\n1' ]]
	export SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=1 SLURM_STEP_NUM_NODES=1 SLURM_NODEID=0
	printf '#!/bin/sh\npreempt-store join\nexit\n' >prolog
	chmod +x prolog
	# The slurmstepd of the step forks one that becomes the task, and that reads what the TaskProlog prints.
	echo 'lines=$(./prolog); echo "$? $lines" >answer' >task
	PREEMPT_STORE=$PWD/none/s.db stepd 9.0 -c "(exec -a 'slurmstepd: [9.0]' ./slurmstepd task); exit"
	[[ $(cat answer) = "75 print preempt-store: join: "*"$PWD/none"* ]]
	stepd 9.0 -c 'printf "%s\n" "$(bash -c "echo \$\$ >shell; preempt-store join; exit")" >lines; exit'
	[ "$(exported PREEMPT_AGENT <lines)" = "$(cat shell)" ]
}

# ---- What it prints ----

@test "join prints export lines that eval understands, whatever is in the names, and TaskProlog where they are plain" {
	mkdir "a b'c\"d \$(touch bad)"
	export PREEMPT_STORE="$PWD/a b'c\"d \$(touch bad)/s.db"
	XDG_RUNTIME_DIR="$PWD/a b'c\"d \$(touch bad)" preempt-store join --task 0 --tasks 1 --pid $$ >lines
	run ! grep -v '^export PREEMPT_[A-Z]*=' lines
	store=$PREEMPT_STORE
	unset PREEMPT_STORE
	eval "$(cat lines)"
	[ "$PREEMPT_STORE" = "$store" ]
	[ -d "$PREEMPT_DIR" ]
	[ ! -e bad ]
	[ "$PREEMPT_ATTEMPT" = 1 ]
	[ "$PREEMPT_AGENT" = $$ ]
	run -0 --separate-stderr preempt-store leave
	[ "$output" = 0 ]
	[ ! -d "$PREEMPT_DIR" ]
	unset "${!PREEMPT_@}"
	export PREEMPT_STORE=$PWD/s.db PREEMPT_RUN=r
	preempt-store join --task 0 --tasks 1 --pid $$ >lines
	run ! grep "[\"']" lines # Slurm takes what follows = as it is
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

# ---- Once more ----

@test "an attempt that was asked for and is not due is refused, and the cure named" {
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

@test "refused with the cure: a place that is taken, another number of tasks, another launch, an older one, a store without OPEN" {
	stand_for 0
	tasks=2
	PREEMPT_LAUNCH=slurm:1:1 joining 0
	eventually has_key TASK/0
	PREEMPT_TASKS=3 run -2 --separate-stderr join_one 1 --timeout 60s
	[[ $stderr = *"--run"* ]]
	PREEMPT_LAUNCH=slurm:2:0 PREEMPT_TASKS=2 run -2 --separate-stderr join_one 1 --timeout 60s
	[[ $stderr = *"launch slurm:1:1"*"--run"* ]]
	PREEMPT_LAUNCH=slurm:1:0 PREEMPT_TASKS=2 run -2 --separate-stderr join_one 1 --timeout 60s
	[[ $stderr = *"older; end this process"* ]]
	run -1 has_key TASK/1
	another_store
	join 1
	as 0 run -0 --separate-stderr preempt-store join --pid "${agents[0]}"
	[[ $output = *PREEMPT_ATTEMPT=1* ]]
	[[ $output =~ PREEMPT_LIFE=[0-9a-f]{24} ]]
	as 0 run -2 --separate-stderr preempt-store join --pid $$
	[[ $stderr = *"task 0 of attempt 1 is running (pid ${agents[0]}"* ]]
	preempt-store rm run/r/000001/OPEN
	PREEMPT_TASKS=1 run -1 --separate-stderr join_one 0
	[[ $stderr = *"run r has no attempt 1"* ]]
	[[ $stderr != *"is gone"* ]]
}

# ---- Who counts as joined ----

# joined I ATTEMPT: the join of task I is over.
joined() {
	code_of "${joins[$1]}"
	[ "$code" = 0 ]
	[ "$(exported PREEMPT_ATTEMPT <"joined.$1")" = "$2" ]
}

@test "a dead predecessor is buried: the others are told, and the next attempt begins without waiting for it" {
	join 2
	end_agent 0
	stand_for 0
	joining 0
	eventually has_key DEAD/0
	as 1 run -44 --separate-stderr preempt-ack --attempt 1
	[[ $stderr = *"task 0 was restarted"* ]]
	as 1 run -0 --separate-stderr preempt-store leave --attempt 1 --code 44
	joining 1
	joined 0 2
	joined 1 2
}

@test "a task whose process died while it joined is named with the missing; its successor and the others join the next attempt" {
	local others
	export PREEMPT_LAUNCH=slurm:1:0 # all are of one launch
	for others in wait go; do
		another_store
		tasks=3
		stand_for 0 1 2
		joining 0
		joining 1
		eventually has_key TASK/0
		eventually has_key TASK/1
		end_agent 1
		code_of "${joins[1]}"
		[ "$code" = 1 ]
		if [ $others = go ]; then
			joining 2 --timeout 2s
			for task in 0 2; do
				code_of "${joins[task]}"
				[ "$code" = 124 ]
				grep -q "2 of 3 tasks have joined; missing: 1 (--join-timeout)" "err.$task"
			done
		else
			# All places are taken, but no process is behind one of them.
			joining 2
			eventually has_key TASK/2
			stand_for 1
			joining 1
			for task in 0 1 2; do joined "$task" 2; done
		fi
	done
}

@test "a join ends with the process that it is for, also while the store is unreachable, and does not join again for it" {
	local store
	tasks=2
	for store in here away; do
		rm -rf away
		mkdir -p -m 700 store
		export PREEMPT_STORE=$PWD/store/s.db
		stand_for 0
		joining 0
		eventually has_key TASK/0
		if [ $store = away ]; then
			mv store away
			eventually grep -q "; trying again" err.0
		fi
		end_agent 0
		code_of "${joins[0]}"
		[ "$code" = 1 ]
		grep -q "process ${agents[0]}, for which this would join, is gone" err.0
		[ $store = away ] || run ! has_key LEFT/0
		rm -rf store
	done
}

@test "a task whose board cannot be made leaves with an error, which ends the others" {
	touch file
	tasks=2
	stand_for 0 1
	joining 1
	PREEMPT_TASKS=2 run -75 --separate-stderr join_one 0 --timeout 10m --board "$PWD/file"
	[[ $stderr = *"make a board in $PWD/file"* ]]
	[ "$(preempt-store get run/r/000001/LEFT/0 | field reason)" = failed ]
	code_of "${joins[1]}"
	if [ "$code" != 44 ]; then # all had joined before it learned of that
		as 1 run -44 --separate-stderr preempt-heartbeat --period 100ms -- sleep 1000
		echo "$stderr" >>err.1
	fi
	grep -q "task 0 failed" err.1
	[[ $(preempt-store get run/r/000001/ERROR | field line) = *"make a board in $PWD/file"* ]]
}

# ---- leave, close ----

@test "leave: what each code means, the code to leave with, and the last one closes; asked to stop it is 93" {
	local code reason state left
	while read -r code reason state left; do
		another_store
		join 2
		as 0 run -0 --separate-stderr preempt-store leave --code "$code"
		[ "$output" = "$left" ]
		as 0 run -0 --separate-stderr preempt-store leave --code 7 # what was said first stands
		[ "$(preempt-store get run/r/000001/LEFT/0 | field reason)" = "$reason" ]
		run -1 has_key CLOSED
		as 1 preempt-store leave --code 0 2>/dev/null
		[ "$(preempt-store get run/r/000001/CLOSED | field state)" = "$state" ]
	done <<-END
		0 completed completed 0
		42 saved failed 42
		43 preempted failed 43
		44 peer failed 44
		9 failed failed 9
	END
	for code in 42 43 44 93 7 0; do # whatever it says, except a task that has finished
		another_store
		join 1
		preempt-claim --outside --then stop >/dev/null
		[ "$(as 0 preempt-store leave --code "$code")" = $((code ? 93 : 0)) ]
		[ "$(preempt-store get run/r/000001/CLOSED | field cause)" = "$([ "$code" = 0 ] && echo completed || echo stopped)" ]
	done
}

@test "leave after a claim: a training that failed was preempted, 43; without a claim its failure is an error for all" {
	join 2
	as 0 preempt-claim
	as 0 preempt-store leave --code 42 3>&- & # stays until the other one has left, too
	as 1 run -0 --separate-stderr preempt-store leave --code 137
	[ "$output" = 43 ]
	run -1 has_key ERROR
	wait $!
	another_store
	join 2
	as 1 run -0 --separate-stderr preempt-store leave --code 3
	[ "$(preempt-store get run/r/000001/ERROR | field code)" = 3 ]
	as 0 run -0 --separate-stderr preempt-store leave --code 137
	[ "$output" = 44 ]
}

@test "leave without --code, as in an epilog: left, neither finished nor failed, and not in the way of the next attempt" {
	join 2
	kill -KILL "${agents[@]}"
	as 0 run -0 --separate-stderr preempt-store leave
	[ "$output" = 0 ]
	run -1 preempt-store get run/r/000001/ERROR
	as 1 preempt-store leave
	[[ $(preempt-store runs) = *"r  "*" left "* ]]
	join 2
	[ "$(preempt-store get run/r/000001/CLOSED | field cause)" = left ]
	as 0 preempt-store leave --code 0
	as 1 preempt-store leave
	[ "$(preempt-store get run/r/000002/CLOSED | field cause)" = left ]
}

@test "leave by a task that never joined, that does not exist, of a run that does not: no, and nothing is written" {
	PREEMPT_TASKS=2 run -124 --separate-stderr preempt-store join --task 0 --pid $$ --timeout 200ms
	run -1 --separate-stderr preempt-store leave --task 1 --tasks 2
	[[ $stderr = *"has not joined"* ]]
	run -2 --separate-stderr preempt-store leave --task 5 --tasks 9
	run -1 --separate-stderr preempt-store leave --run other --task 0 --tasks 1
	run -2 --separate-stderr preempt-store leave --task 0 --tasks 2 --code 256
	run -1 has_key LEFT/1
}

# notice_left MS: task 0 has a notice on its board.
notice_left() {
	echo "{\"utc\":\"2026-01-31T12:00:00.123Z\",\"source\":\"signal:TERM\",\"reason\":\"\",\"left_ms\":$1}" >"${boards[0]}/notice"
}

@test "leave, the store away or held by another process: a notice on the board makes a failure 43, and is not outstayed" {
	# Without a notice it asks again for 30 s.
	mkdir store
	PREEMPT_STORE=$PWD/store/s.db join 1
	notice_left 30000
	mv store away
	PREEMPT_STORE=$PWD/store/s.db as 0 run -75 --separate-stderr env PREEMPT_LIFE=x timeout 8 preempt-store leave --code 1
	[ "$output" = 43 ]
	join 1
	notice_left 2000
	store_held
	as 0 run -75 --separate-stderr timeout 20 preempt-store leave --code 42
	[ "$output" = 42 ]
}

@test "leave stays for the others also while a task holds the store, and ends when they have left" {
	local leave
	join 2
	as 0 preempt-claim >/dev/null
	# It was to have finished by now: each question is a short one.
	notice_left 30000
	as 0 preempt-store leave --code 42 >left 3>&- &
	leave=$!
	started+=("$leave")
	eventually has_key LEFT/0
	store_held database
	sleep 2 # it asks the store in this time, gets no answer, and must stay
	kill -CONT "$holder"
	kill -0 "$leave"
	as 1 preempt-store leave --code 42
	code_of "$leave"
	[ "$code" = 0 ]
	[ "$(cat left)" = 42 ]
}

@test "close ends an attempt of which nothing runs any more, twice is fine, and the next one can begin" {
	join 1
	end_agent 0
	for _ in 1 2; do
		preempt-store close
		[ "$(preempt-store get run/r/000001/CLOSED | field state)" = failed ]
	done
	join 1
	[ "$(preempt-store get run/r/LAST)" = '{"attempt":2}' ]
	# A preemption is under way: its task saves, also with --force; another one has ended unseen.
	as 0 preempt-claim
	run -1 --separate-stderr preempt-store close --force
	[[ $stderr = *"attempt 2 is being preempted: task 0 (process ${agents[0]} on "*"); wait until it has ended"* ]]
	end_agent 0
	preempt-store close
	# A script that only beats sees a close by force, too.
	join 1
	PREEMPT_ATTEMPT=3 as 0 preempt-heartbeat -v --period 100ms --pid "${agents[0]}" 2>beats 3>&- &
	started+=("$!")
	eventually grep -q timeout beats
	preempt-store close --force
	code_of "${started[-1]}"
	[ "$code" = 44 ]
	grep -q "it was closed by preempt-store close" beats
	run -1 --separate-stderr preempt-store close --run other
}
