#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-queue work: what its options and signals do, on one machine. More: queue_worker.bats,
# queue_scenarios.bats.
# shellcheck disable=SC2030,SC2031,SC2154 # each test is a subshell with its own variables
# shellcheck disable=SC2016 # other shells expand it

bats_require_minimum_version 1.5.0

load ../support/programs

setup() {
	root=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	export PATH=${BIN:-$root/bin}:$PATH
	cd "$BATS_TEST_TMPDIR" || return
	export PREEMPT_STORE=$PWD/s/q.db
	mkdir -m 700 s
	unset SLURM_ARRAY_TASK_ID JOB_COMPLETION_INDEX PREEMPT_TASK PREEMPT_GRACE PREEMPT_QUEUE PREEMPT_PLATFORM
	workers=()
}

teardown() {
	local pid running
	running=" $(jobs -pr | tr '\n' ' ')"
	for pid in "${workers[@]}"; do
		# The number of one that has ended may be another process's by now.
		[[ $running = *" $pid "* ]] || continue
		kill -CONT "$pid" 2>/dev/null || :
		kill -KILL "$pid" 2>/dev/null || :
		wait "$pid" 2>/dev/null || :
	done
}

# schedule OPTION... -- COMMAND...: puts the id into $id.
schedule() { id=$(preempt-queue schedule "$@"); }

# work NAME OPTION...: a worker in the background, its words in err.NAME; its pid in $worker. It has
# no notice but of the file "notice" and the options: this machine may be in a cloud.
work() {
	local name=$1
	shift
	preempt-queue work --worker "$name" --source file:notice --period 200ms --limit 100 "$@" >"out.$name" 2>"err.$name" 3>&- &
	worker=$!
	workers+=("$worker")
}

# ends CODE [PID]: waits for it, by default the last worker.
ends() {
	local code=0
	wait "${2:-$worker}" || code=$?
	[ "$code" = "$1" ] || {
		echo "ended with $code" >&2
		return 1
	}
}

state_of() {
	preempt-queue show "$1" --json | python3 -c 'import json,sys; print(json.load(sys.stdin)[sys.argv[1]])' "${2:-state}"
}
is() { [ "$(state_of "$1")" = "$2" ]; }
# A process that knows nothing of our store only has the number of one that is gone.
gone() { ! grep -qzsFx "PREEMPT_STORE=$PREEMPT_STORE" "/proc/$1/environ"; }
here() { [ "$(preempt-queue workers --json | wc -l)" = "$1" ]; }

@test "WQ-1, WQ-17: commands are run, with their variables; a worker that comes in the middle helps" {
	for i in 1 2 3 4; do
		schedule -- sh -c 'echo "$PREEMPT_ITEM_ID $PREEMPT_ITEM_ATTEMPT $PREEMPT_WORKER"; echo bad >&2
			test -d "$PREEMPT_ITEM_DIR"; touch "up.$PREEMPT_WORKER"; until test -e go; do sleep 0.05; done'
	done
	work one --idle-exit 0
	one=$worker
	eventually is 1 running
	work two --idle-exit 0
	eventually test -e up.two
	touch go
	ends 0 "$one"
	ends 0
	[ "$(preempt-queue fetch 1)" = "1 1 one" ]
	[ "$(preempt-queue fetch 2 --stderr)" = bad ]
	[ "$(preempt-queue list --json | grep -c '"state":"succeeded"')" = 4 ]
	preempt-queue list --json | grep -q '"worker":"two"'
	here 0
	# Nothing is left of those that said goodbye but one tally.
	[ "$(preempt-store list queue/default/count/ | grep -vc @)" = 0 ]
	run -0 preempt-store list queue/default/beat/
	[ -z "$output" ]
}

@test "--idle-exit waits for what others run, and for as long as it says" {
	schedule -- sh -c 'until test -e go; do sleep 0.05; done'
	work one --idle-exit 0
	one=$worker
	eventually is 1 running
	work two --idle-exit 500ms
	eventually here 2
	sleep 1 # as long as it would wait at most
	kill -0 "$worker"
	touch go
	ends 0 "$one"
	is 1 succeeded
	ends 0
	began=$EPOCHREALTIME
	run -0 preempt-queue work --source file:notice --worker three --period 200ms --idle-exit 500ms
	python3 -c 'import sys; sys.exit(not float(sys.argv[2]) - float(sys.argv[1]) >= 0.5)' "$began" "$EPOCHREALTIME"
}

@test "an earlier deadline brings the end forward; so does a second signal" {
	for second in notice signal; do
		rm -f up notice err.one
		schedule -- sh -c 'trap "" TERM; touch up; while :; do sleep 0.1; done'
		work one --kill-after 600s --grace 1s
		eventually test -e up
		kill -TERM "$worker"
		# Two signals at once would be one.
		eventually grep -q 'stopping the running commands' err.one
		sleep 0.5
		kill -0 "$worker"
		if [ $second = notice ]; then touch notice; else kill -TERM "$worker"; fi
		eventually gone "$worker"
		ends 143
		preempt-queue cancel "$id"
	done
}

@test "a second signal kills what runs at once, also after a notice" {
	schedule -- sh -c 'trap "" TERM; touch up; while :; do sleep 0.1; done'
	work one --kill-after 600s --grace 600s
	eventually test -e up
	touch notice
	eventually grep -q 'notice: file' err.one
	# Two signals at once would be one.
	signalled() {
		kill -TERM "$worker" 2>/dev/null || :
		gone "$worker"
	}
	eventually signalled
	ends 42
}

@test "a notice during the staggered start ends it; without one, WQ-15, the lower index starts first" {
	export SLURM_ARRAY_TASK_ID=7
	schedule -- sh -c 'echo $PREEMPT_WORKER_INDEX'
	preempt-queue work --start-delay 30s --period 200ms --source signal:TERM 2>err 3>&- &
	workers+=($!)
	eventually here 1
	kill -TERM $!
	ends 42 $!
	is 1 waiting
	began=$EPOCHREALTIME
	run -0 preempt-queue work --source file:notice --start-delay 100s --start-delay-max 700ms --idle-exit 0
	python3 -c 'import sys; sys.exit(not 0.7 <= float(sys.argv[2]) - float(sys.argv[1]) < 90)' "$began" "$EPOCHREALTIME"
	[ "$(preempt-queue fetch 1)" = 7 ]
}

@test "INT ends what runs after the grace of --kill-after, gives it back, and is what we die of" {
	schedule -- sh -c 'trap "" TERM; touch up; while :; do sleep 0.1; done'
	# A shell lets what it runs in the background ignore INT.
	env --default-signal=INT preempt-queue work --source file:notice --kill-after 300ms 3>&- 2>err.int &
	worker=$!
	workers+=("$worker")
	eventually test -e up
	kill -INT "$worker"
	ends 130
	grep -q 'Interrupt: stopping the running commands and putting them back' err.int
	is 1 waiting
	[ "$(state_of 1 attempts)" = 0 ]
	here 0
}

@test "WQ-10: a worker is killed: its commands die with it, go back at once, and run elsewhere" {
	schedule -- sh -c 'echo $$ >>pids; touch "up.$PREEMPT_WORKER"; test "$PREEMPT_WORKER" = two || sleep 60'
	schedule -- sh -c 'setsid sh -c "echo \$\$ >>pids; touch up.far.$PREEMPT_WORKER; sleep 60" & test "$PREEMPT_WORKER" = two || sleep 60'
	work one --slots 2
	eventually test -e up.one
	eventually test -e up.far.one
	mapfile -t pids <pids
	kill -KILL "$worker"
	work two --idle-exit 0
	ends 0
	for i in 1 2; do
		is "$i" succeeded
		[ "$(state_of "$i" lost)" = 1 ]
		[ "$(state_of "$i" worker)" = two ]
	done
	for pid in "${pids[@]}"; do eventually gone "$pid"; done
	grep -q 'worker is gone' err.two
	here 0
}

@test "stopped for less than its limit: nothing happens, its result counts" {
	schedule -- sh -c 'touch up; until test -e go; do sleep 0.05; done; echo "$PREEMPT_WORKER"'
	work one
	one=$worker
	eventually test -e up
	work two
	eventually here 2
	stopped "$one"
	touch go
	sleep 1
	kill -CONT "$one"
	[ "$(preempt-queue fetch 1 --wait)" = one ]
	[ "$(state_of 1 starts)" = 1 ]
	[ ! -s err.one ]
	[ ! -s err.two ]
}

@test "WQ-8: while a failure is pending nothing is taken; once it was told, work goes on" {
	schedule -- false
	schedule -- touch taken
	work one
	eventually is 1 failed
	eventually grep -q 'nothing is taken until the failure is reported' err.one
	run -44 preempt-queue join
	is 2 cancelled
	schedule -- touch after
	eventually test -e after
	[ ! -e taken ]
	[ "$(grep -c 'nothing is taken' err.one)" = 1 ]
}

@test "a queue that others can write is refused: 77" {
	schedule -- true
	run -77 preempt-queue work --source file:notice --store "$PREEMPT_STORE?shared-group" --idle-exit 0
	[[ $output = *"run as you"* ]]
	chmod g+w s
	run -77 preempt-queue work --source file:notice --idle-exit 0
	chmod g-w s
	chmod g+w s/q.db
	run -77 preempt-queue work --source file:notice --idle-exit 0
	chmod g-w s/q.db
	mkdir -p s/q.db.queue/default
	chmod go+w s/q.db.queue/default
	run -77 preempt-queue work --source file:notice --idle-exit 0
	is 1 waiting
}

@test "wrong usage: 2" {
	for wrong in '--period 1ms' '--limit 1' '--slots 0' '--term-signal FOO' '--source signal:KILL'; do
		# shellcheck disable=SC2086 # two words
		run -2 preempt-queue work --idle-exit 0 $wrong
	done
}

@test "a command that dies of the notice before its worker knows of it is given back, and used no attempt" {
	for ((try = 0; ; try++)); do
		rm -f pid1 pid2
		schedule --keep-going -- sh -c 'echo $$ >pid1; exec sleep 1000'
		ids=("$id")
		schedule --keep-going -- sh -c 'echo $$ >pid2; sleep 1000; exit $?'
		ids+=("$id")
		work one --slots 2 --source signal:TERM
		eventually test -s pid1
		eventually test -s pid2
		eventually pgrep -P "$(<pid2)" -x sleep
		pids=("$(<pid1)" "$(pgrep -P "$(<pid2)" -x sleep)")
		# As schedulers do: all within 2 s, in any order; the second is below a shell, which hands it on as 143.
		began=$EPOCHREALTIME
		kill -TERM "${pids[@]}"
		sleep 0.2
		kill -TERM "$worker"
		within=$((${EPOCHREALTIME/./} - ${began/./}))
		ends 42
		# A machine that has stopped us in between for longer than that has shown nothing.
		((within > 1900000 && try < 20)) || break
		preempt-queue cancel "${ids[@]}" || :
	done
	for i in "${ids[@]}"; do
		is "$i" waiting
		[ "$(state_of "$i" attempts) $(state_of "$i" preempted)" = "0 1" ]
	done
}

@test "a command that a user kills with TERM, and no notice comes: it has failed" {
	schedule -- sh -c 'echo $$ >pid; exec sleep 1000'
	work one
	eventually test -s pid
	kill -TERM "$(cat pid)"
	eventually is 1 failed
	[ "$(state_of 1 signal)" = 15 ]
}
