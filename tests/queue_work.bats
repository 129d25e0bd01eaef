#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-queue work: one or several workers on one machine, with notices, deaths and a store that
# goes away.
# shellcheck disable=SC2030,SC2031,SC2154 # each test is a subshell with its own variables
# shellcheck disable=SC2016 # other shells expand it

bats_require_minimum_version 1.5.0

load eventually

setup() {
	root=$(cd "$BATS_TEST_DIRNAME/.." && pwd)
	export PATH=${BIN:-$root/bin}:$PATH
	cd "$BATS_TEST_TMPDIR" || return
	export PREEMPT_STORE=$PWD/s/q.db
	mkdir -m 700 s
	unset SLURM_ARRAY_TASK_ID JOB_COMPLETION_INDEX PREEMPT_TASK PREEMPT_GRACE PREEMPT_QUEUE PREEMPT_PLATFORM
	workers=()
}

teardown() {
	local pid
	for pid in "${workers[@]}"; do
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
	preempt-queue work --worker "$name" --source file:notice --period 200ms --limit 10 "$@" >"out.$name" 2>"err.$name" 3>&- &
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
here() { [ "$(preempt-queue workers --json | wc -l)" = "$1" ]; }

@test "WQ-1, WQ-17: commands are run, with their variables; a worker that comes in the middle helps" {
	for i in 1 2 3 4; do schedule -- sh -c 'echo "$PREEMPT_ITEM_ID $PREEMPT_ITEM_ATTEMPT $PREEMPT_WORKER"; echo bad >&2; test -d "$PREEMPT_ITEM_DIR"; sleep 0.5'; done
	work one --idle-exit 0
	one=$worker
	eventually is 1 running
	work two --idle-exit 0
	ends 0 "$one"
	ends 0
	[ "$(preempt-queue fetch 1)" = "1 1 one" ]
	[ "$(preempt-queue fetch 2 --stderr)" = bad ]
	[ "$(preempt-queue list --json | grep -c '"state":"succeeded"')" = 4 ]
	preempt-queue list --json | grep -q '"worker":"two"'
	here 0
	# Nothing is left of those who said goodbye but one tally.
	[ "$(preempt-store list queue/default/count/ | grep -vc @)" = 0 ]
	run -0 preempt-store list queue/default/beat/
	[ -z "$output" ]
}

@test "--idle-exit waits for what others run, and for as long as it says" {
	schedule -- sleep 1
	work one --idle-exit 0
	eventually is 1 running
	began=$EPOCHREALTIME
	run -0 preempt-queue work --source file:notice --worker two --period 200ms --idle-exit 500ms
	python3 -c 'import sys; sys.exit(not float(sys.argv[2]) - float(sys.argv[1]) >= 0.5)' "$began" "$EPOCHREALTIME"
	is 1 succeeded
	ends 0
}

@test "a notice: what runs is told to end and goes back without an attempt; what ends with 0 counts; 42" {
	schedule --max-attempts 1 -- sh -c 'trap "exit 9" TERM; touch up1; sleep 60 & wait'
	schedule --max-attempts 1 -- sh -c 'trap "echo saved; exit 0" TERM; touch up2; sleep 60 & wait'
	schedule --max-attempts 1 -- sh -c 'trap "" TERM; touch up3; while :; do sleep 0.1; done'
	schedule -- true
	work one --slots 3 --source signal:TERM --grace 3s
	for i in 1 2 3; do eventually test -e "up$i"; done
	kill -TERM "$worker"
	ends 42
	grep -q 'notice: signal:TERM' err.one
	is 1 waiting
	is 2 succeeded
	[ "$(preempt-queue fetch 2)" = saved ]
	is 3 waiting
	is 4 waiting
	for i in 1 3; do
		[ "$(state_of "$i" attempts)" = 0 ]
		[ "$(state_of "$i" preempted)" = 1 ]
	done
	here 0
}

@test "an earlier deadline brings the end forward; so does a second signal" {
	for second in notice signal; do
		rm -f up notice
		schedule -- sh -c 'trap "" TERM; touch up; while :; do sleep 0.1; done'
		work one --kill-after 60s --grace 1s
		eventually test -e up
		kill -TERM "$worker"
		sleep 0.5
		kill -0 "$worker"
		if [ $second = notice ]; then touch notice; else kill -TERM "$worker"; fi
		eventually eval "! kill -0 $worker"
		ends 143
		preempt-queue cancel "$id"
	done
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
	run -0 preempt-queue work --source file:notice --start-delay 30s --start-delay-max 700ms --idle-exit 0
	python3 -c 'import sys; sys.exit(not 0.7 <= float(sys.argv[2]) - float(sys.argv[1]) < 20)' "$began" "$EPOCHREALTIME"
	[ "$(preempt-queue fetch 1)" = 7 ]
}

@test "INT ends what runs after the grace of --kill-after, gives it back, and is what we die of" {
	schedule -- sh -c 'trap "" TERM; touch up; while :; do sleep 0.1; done'
	# A shell lets what it runs in the background ignore INT.
	env --default-signal=INT preempt-queue work --source file:notice --kill-after 300ms 3>&- &
	worker=$!
	workers+=("$worker")
	eventually test -e up
	kill -INT "$worker"
	ends 130
	is 1 waiting
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
	for pid in "${pids[@]}"; do eventually eval "! kill -0 $pid"; done
	grep -q 'worker is gone' err.two
	here 0
}

@test "a zombie, stopped for longer than its limit, cannot overwrite its replacement's result" {
	schedule -- sh -c 'echo "from $PREEMPT_WORKER"; touch "up.$PREEMPT_WORKER"; until test -e "go.$PREEMPT_WORKER"; do sleep 0.05; done'
	work zombie
	zombie=$worker
	eventually test -e up.zombie
	kill -STOP "$zombie"
	# Its command ends while nobody looks.
	touch go.zombie
	work other
	eventually test -e up.other
	touch go.other
	eventually is 1 succeeded
	kill -CONT "$zombie"
	eventually grep -q 'taken for dead' err.zombie
	[ "$(preempt-queue fetch 1)" = "from other" ]
	[ "$(state_of 1 worker)" = other ]
	# It goes on as a new one.
	eventually here 2
	kill -TERM "$worker"
	ends 143
	schedule -- sh -c 'echo "$PREEMPT_WORKER"'
	[ "$(preempt-queue fetch "$id" --wait)" = zombie ]
	[ "$(preempt-queue list --json | grep -c '"state":"succeeded"')" = 2 ]
}

@test "stopped for less than its limit: nothing happens, its result counts" {
	schedule -- sh -c 'touch up; sleep 1; echo "$PREEMPT_WORKER"'
	work one --limit 100
	one=$worker
	eventually test -e up
	work two
	eventually here 2
	kill -STOP "$one"
	sleep 1
	kill -CONT "$one"
	[ "$(preempt-queue fetch 1 --wait)" = one ]
	[ "$(state_of 1 starts)" = 1 ]
	[ ! -s err.one ]
	[ ! -s err.two ]
}

@test "a store that goes away: what runs goes on, results are kept and handed in, it is said once" {
	schedule -- sh -c 'touch up; until test -e gone; do sleep 0.05; done; echo done'
	work one --idle-exit 0 --joblog log
	eventually test -e up
	mv s/q.db away
	eventually grep -q 'cannot ask the store' err.one
	touch gone
	eventually eval '! pgrep -P "$worker" sh'
	sleep 1
	kill -0 "$worker"
	mv away s/q.db
	ends 0
	[ "$(preempt-queue fetch 1)" = "done" ]
	[ "$(state_of 1 starts)" = 1 ]
	[ "$(grep -c 'cannot ask' err.one)" = 1 ]
	[ "$(grep -c 'answers again' err.one)" = 1 ]
	[ "$(wc -l <log)" = 2 ]
}

@test "a store that is away until the deadline of the notice: 75, and others are given it later" {
	schedule -- sh -c 'touch up; sleep 60'
	work one --source signal:TERM --grace 2s
	eventually test -e up
	mv s/q.db away
	kill -TERM "$worker"
	ends 75
	mv away s/q.db
	is 1 running
	work two
	eventually test "$(state_of 1 starts)" = 1
	eventually eval '[ "$(state_of 1 starts)" = 2 ]'
}

@test "cancel: what runs is told to end, and is cancelled" {
	schedule -- sh -c 'touch up; sleep 60'
	work one --idle-exit 0
	eventually test -e up
	preempt-queue cancel 1
	ends 0
	is 1 cancelled
}

@test "WQ-8: while a failure is pending nothing is taken; once it was told, work goes on" {
	schedule -- false
	schedule -- touch taken
	work one
	eventually is 1 failed
	eventually grep -q 'nothing is taken until that was told' err.one
	run -44 preempt-queue join
	is 2 cancelled
	schedule -- touch after
	eventually test -e after
	[ ! -e taken ]
	[ "$(grep -c 'nothing is taken' err.one)" = 1 ]
}

@test "WQ-16: the watchdog says what runs when nothing ends, and nothing when nothing runs" {
	schedule -- sh -c 'touch up; until test -e go; do sleep 0.05; done'
	work one --watchdog 300ms
	eventually grep -q 'watchdog: command 1 has run for .* s: sh -c' err.one
	touch go
	eventually is 1 succeeded
	count=$(grep -c watchdog err.one)
	sleep 1
	# One may have been on its way.
	[ "$(grep -c watchdog err.one)" -le $((count + 2)) ]
}

@test "--joblog: GNU parallel's columns, one line for each accepted final result" {
	for text in true 'exit 3' 'kill -9 $$'; do schedule --shell --keep-going -- "$text"; done
	schedule --keep-going -- sh -c 'test "$PREEMPT_ITEM_ATTEMPT" = 2 || exit 75'
	work one --idle-exit 0 --joblog log
	ends 0
	[ "$(head -n 1 log)" = $'Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand' ]
	[ "$(wc -l <log)" = 5 ]
	[ "$(tail -n +2 log | sort -n | cut -f 1,7,8 | tr '\t' ,| xargs)" = "1,0,0 2,3,0 3,0,9 4,0,0" ]
}

@test "WQ-14: a resource is built once for each worker; its failure is one of who uses it" {
	preempt-queue resource DATA -- sh -c 'echo built >>count; echo x >"$PREEMPT_RESOURCE_DIR/x"'
	preempt-queue resource BAD -- false
	for i in 1 2 3; do schedule --resource DATA -- sh -c 'cat "$PREEMPT_RESOURCE_DATA/x"'; done
	schedule --keep-going --resource BAD -- true
	schedule -- echo plain
	work one --slots 2 --idle-exit 0
	ends 0
	[ "$(wc -l <count)" = 1 ]
	for i in 1 2 3; do [ "$(preempt-queue fetch "$i")" = x ]; done
	is 4 failed
	is 5 succeeded
	schedule --resource DATA -- true
	work two --idle-exit 0
	ends 0
	[ "$(wc -l <count)" = 2 ]
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
	for wrong in '--period 1ms' '--limit 1' '--slots 0' '--term-signal FOO' '--source signal:INT'; do
		# shellcheck disable=SC2086 # two words
		run -2 preempt-queue work --idle-exit 0 $wrong
	done
}

@test "workers are killed, stopped and given notices at random: each command has one result" {
	local commands=120 round pid pids=() name=0
	seq $commands | preempt-queue schedule --lines --max-attempts 1000 -- sh -c 'echo "{}"; sleep 0.0$((RANDOM % 5))' >/dev/null
	for round in 1 2 3 4; do
		name=$((name + 1))
		work $name --slots 2 --limit 3 --joblog log --source signal:TERM --grace 1s --kill-after 300ms
	done
	for ((round = 0; round < 24; round++)); do
		sleep 0.15
		pid=${workers[RANDOM % ${#workers[@]}]}
		case $((RANDOM % 3)) in
		0) kill -KILL "$pid" 2>/dev/null || : ;;
		1) kill -TERM "$pid" 2>/dev/null || : ;;
		2)
			kill -STOP "$pid" 2>/dev/null || :
			(
				sleep 1
				kill -CONT "$pid" 2>/dev/null
			) 3>&- &
			pids+=($!)
			;;
		esac
		pids=()
		for pid in "${workers[@]}"; do
			if kill -0 "$pid" 2>/dev/null; then
				pids+=("$pid")
			else
				wait "$pid" || :
			fi
		done
		workers=("${pids[@]}")
		while [ "${#workers[@]}" -lt 4 ]; do
			name=$((name + 1))
			work $name --slots 2 --limit 3 --joblog log --source signal:TERM --grace 1s --kill-after 300ms
		done
	done
	run -0 preempt-queue join --timeout 60s
	[ "$(preempt-queue list --json | grep -c '"state":"succeeded"')" = $commands ]
	for ((round = 1; round <= commands; round += 7)); do [ "$(preempt-queue fetch $round)" = $round ]; done
	# Nothing is said to have ended twice; one who was killed may not have said it.
	[ -z "$(tail -n +2 log | cut -f 1 | sort | uniq -d)" ]
}

@test "a command that dies of the notice before its worker knows of it is given back, and used no attempt" {
	schedule -- sh -c 'echo $$ >>pids; exec sleep 1000'
	schedule -- sh -c 'echo $$ >>pids; sleep 1000; exit $?'
	work one --slots 2 --source signal:TERM
	eventually sh -c '[ "$(wc -l <pids)" = 2 ]'
	# As schedulers do: all at once, in any order; the second is a shell, and hands it on as 143.
	while read -r pid; do
		pkill -TERM -P "$pid" 2>/dev/null || kill -TERM "$pid"
	done <pids
	sleep 0.3
	kill -TERM "$worker"
	ends 42
	for i in 1 2; do
		is $i waiting
		[ "$(state_of $i attempts) $(state_of $i preempted)" = "0 1" ]
	done
}

@test "a command that somebody kills with TERM, and no notice comes: it has failed" {
	schedule -- sh -c 'echo $$ >pid; exec sleep 1000'
	work one
	eventually test -s pid
	kill -TERM "$(cat pid)"
	eventually is 1 failed
	[ "$(state_of 1 signal)" = 15 ]
}
