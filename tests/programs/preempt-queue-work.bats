#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-queue work: what its options, notices and signals do; what becomes of commands when they fail, are
# cancelled, or their worker, its store or its machine misbehaves; and what commands are given and leave.
# takes: 60
# shellcheck disable=SC2016,SC2094 # text for another shell

bats_require_minimum_version 1.5.0
load ../support/queue

# here NAME: exactly this worker is registered; "": none.
here() {
	local all
	all=$(preempt-queue workers --json | grep -o '"worker":"[^"]*"') || :
	[ "$all" = "${1:+\"worker\":\"$1\"}" ]
}

# ---- Coming and going ----

@test "WQ-1, WQ-17: commands are run, with their variables; a worker that comes in the middle helps" {
	local ids
	schedule_many 4 -- sh -c 'echo "$PREEMPT_ITEM_ID $PREEMPT_ITEM_ATTEMPT $PREEMPT_WORKER $PREEMPT_SLOT"; echo bad >&2
		test -d "$PREEMPT_ITEM_DIR"; test "$PREEMPT_WORKER" = two || { >up; until test -e go; do sleep 0.05; done; }'
	worker one --idle-exit 0
	eventually test -e up
	worker two --idle-exit 0
	eventually counts succeeded 3
	is 1 running
	: >go
	worker_ends one 0
	worker_ends two 0
	[ "$(preempt-queue fetch 1)" = "1 1 one 0" ]
	[ "$(preempt-queue fetch 2 --stderr)" = bad ]
	are succeeded "${ids[@]}"
	[ "$(what 4 worker)" = two ]
	here ''
}

@test "--idle-exit: ends the workers of a drained queue with 0, for as long as it says, but not while others run" {
	local id began
	schedule id -- ./gated go
	worker a --idle-exit 100ms
	eventually begun "$id"
	worker b --idle-exit 100ms
	eventually eval '[ "$(preempt-queue workers --json | wc -l)" = 2 ]'
	sleep 0.3
	kill -0 "${workers[b]}"
	: >go
	worker_ends a 0
	worker_ends b 0
	is "$id" succeeded
	began=${EPOCHREALTIME/./}
	worker c --idle-exit 500ms
	worker_ends c 0
	[ $((${EPOCHREALTIME/./} - began)) -ge 500000 ]
	# Where nothing is taken because of a failure that nobody was told of, it ends, too.
	schedule _ --halt soon -- false
	schedule id -- ./item
	worker d --idle-exit 0
	worker_ends d 44
	is "$id" waiting
}

@test "on a terminal, work shows how far the queue is, in a line that messages replace" {
	schedule _ -- ./gated go
	schedule _ -- sh -c 'until [ -e go ]; do sleep 0.02; done; exit 3'
	schedule _ -- ./gated go
	aside work script -qefc "preempt-queue work --slots 2 --idle-exit 0 -v ${pace[*]}" screen </dev/null
	eventually grep -q '\] 0/3, 2 running' screen
	: >go
	aside_ends work 0
	# The line is erased before each message: what is then seen is one of the two.
	! sed 's/.*\r\x1b\[K//' screen | grep 'running.*preempt-queue' || return 1
	sed 's/.*\r\x1b\[K//' screen | grep '^preempt-queue: command 2: failed'
	worker quiet -q --idle-exit 0
	worker_ends quiet 0
	[ ! -s quiet.err ]
}

@test "WQ-15: a staggered start: by the index, capped; a notice ends it" {
	local ids began
	export SLURM_ARRAY_TASK_ID=7
	schedule ids -- sh -c 'echo $PREEMPT_WORKER_INDEX'
	preempt-queue work --start-delay 30s "${pace[@]}" 2>err 3>&- &
	started+=($!) workers[7]=$!
	eventually here 7
	noticed 7
	unset SLURM_ARRAY_TASK_ID
	preempt-queue cancel 1
	schedule_many 3 -- bash -c 'echo "$PREEMPT_WORKER $EPOCHREALTIME" >>began; until [ -e go ]; do sleep 0.02; done'
	began=$EPOCHREALTIME
	# TensorFlow's variables for its coordinator say the same; the options come first.
	export TF_COORDINATOR_SCHEDULE_START_DELAY=1 TF_COORDINATOR_SCHEDULE_START_DELAY_MAX=1
	# A name that is a number is the index; the first one's delay would be 300 s.
	worker 1000
	worker 1 --start-delay 300ms --start-delay-max 600ms
	worker 0 --start-delay 300ms --start-delay-max 600ms
	eventually eval '[ "$(wc -l <began)" = 3 ]'
	: >go
	expect 0 preempt-queue join
	awk -v from="$began" '{ delay[$1] = $2 - from }
		END { exit !(delay[1] >= 0.3 && delay[1000] >= 1) }' began
}

@test "priorities: the highest first, then the oldest" {
	local low first second high highest
	schedule low --priority -5 -- ./item
	schedule first -- ./item
	schedule second -- ./item
	schedule high --priority 7 -- ./item
	schedule highest --priority 4999 -- ./item
	worker a --idle-exit 0
	worker_ends a 0
	diff ran <(printf '%s\n' "$highest" "$high" "$first" "$second" "$low")
}

# ---- Notices and signals ----

@test "WQ-2: a notice: commands get --term-signal and the grace, and go back without using an attempt; nothing more is taken; 42" {
	local one two ids
	cat >resumes <<-'ITEM'
		#!/bin/bash
		echo "$PREEMPT_ITEM_ATTEMPT $PREEMPT_ITEM_DIR" >>"starts.$PREEMPT_ITEM_ID"
		[ ! -e "$PREEMPT_ITEM_DIR/saved" ] || { cat "$PREEMPT_ITEM_DIR/saved"; exec ./item; }
		# To save takes longer than to be killed would.
		trap 'sleep 0.5; echo "saved in $PREEMPT_ITEM_ATTEMPT" >"$PREEMPT_ITEM_DIR/saved"; exit 9' USR2
		: >"begun.$PREEMPT_ITEM_ID"
		while :; do sleep 0.05; done
	ITEM
	chmod +x resumes
	schedule one --max-attempts 1 -- ./resumes
	schedule two --max-attempts 1 -- ./resumes
	schedule_many 2 -- ./item
	worker a --slots 2 --term-signal USR2 --grace 30s --kill-after 100ms
	eventually [ -e "begun.$one" ]
	eventually [ -e "begun.$two" ]
	noticed a
	grep -q 'notice: signal:TERM' a.err
	are waiting "$one" "$two" "${ids[@]}"
	[ "$(what "${ids[0]}" starts)" = 0 ]
	worker b
	expect 0 preempt-queue join
	for id in "$one" "$two"; do
		[ "$(preempt-queue fetch "$id")" = "saved in 1" ]
		[ "$(what "$id" state starts preempted attempts)" = "succeeded 2 1 0" ]
		# The number of the start, and the same directory.
		diff <(cut -d' ' -f1 "starts.$id") <(printf '1\n2\n')
		[ "$(cut -d' ' -f2 "starts.$id" | sort -u | wc -l)" = 1 ]
	done
	[ "$(cut -d' ' -f2 "starts.$one" "starts.$two" | sort -u | wc -l)" = 2 ]
}

@test "a command that dies of the notice before its worker knows of it is given back, and used no attempt" {
	local try pids within began id ids
	for ((try = 0; ; try++)); do
		rm -f pid1 pid2
		schedule ids[0] -- sh -c 'echo $$ >pid1; exec sleep 1000'
		schedule ids[1] -- sh -c 'echo $$ >pid2; sleep 1000; exit $?'
		worker one --slots 2
		eventually test -s pid1
		eventually test -s pid2
		eventually pgrep -P "$(<pid2)" -x sleep
		pids=("$(<pid1)" "$(pgrep -P "$(<pid2)" -x sleep)")
		# As schedulers do: all within 2 s, in any order; the second is below a shell, which hands it on as 143.
		began=${EPOCHREALTIME/./}
		kill -TERM "${pids[@]}"
		sleep 0.2
		kill -TERM "${workers[one]}"
		within=$((${EPOCHREALTIME/./} - began))
		worker_ends one 42
		# A machine that has stopped us in between for longer than that has shown nothing.
		((within > 1900000 && try < 20)) || break
		preempt-queue cancel "${ids[@]}" || :
	done
	for id in "${ids[@]}"; do [ "$(what "$id" state attempts preempted)" = "waiting 0 1" ]; done
}

@test "a command that a user kills with TERM, and no notice comes: it has failed" {
	schedule _ -- sh -c 'echo $$ >pid; exec sleep 1000'
	worker one
	eventually test -s pid
	kill -TERM "$(<pid)"
	eventually is 1 failed
	[ "$(what 1 signal)" = 15 ]
}

@test "INT ends what runs after the grace of --kill-after, gives it back, and is what the worker dies of" {
	local id
	schedule id -- ./stubborn
	worker a --kill-after 300ms
	eventually begun "$id"
	kill -INT "${workers[a]}"
	worker_ends a 130
	grep -q 'Interrupt: stopping the running commands and putting them back' a.err
	[ "$(what "$id" state attempts)" = "waiting 0" ]
	here ''
}

@test "an earlier deadline brings the end forward; so does a second signal, also after a notice" {
	local first second word grace end id pace=(--period 300ms --limit 30 --source file:notice)
	while read -r first second word grace end; do
		rm -f notice
		schedule id -- ./stubborn
		worker a --kill-after 600s --grace "$grace"
		eventually begun "$id"
		notify() { if [ "$1" = notice ]; then : >notice; else kill -TERM "${workers[a]}"; fi; }
		notify "$first"
		# Two signals at once would be one.
		eventually grep -q "$word" a.err
		kill -0 "${workers[a]}"
		while ! gone "${workers[a]}"; do
			notify "$second" 2>/dev/null || :
			sleep 0.1
		done
		worker_ends a "$end"
		preempt-queue cancel "$id"
		rm a.err
	done <<-'END'
		signal notice stopping 1s 143
		signal signal stopping 600s 143
		notice signal notice 600s 42
	END
}

@test "a long grace: its worker still watches the others, and the command of a dead one runs in that time" {
	local long id
	schedule long -- bash -c 'trap "" TERM; exec ./gated slow'
	worker monitor --grace 600s
	eventually begun "$long"
	schedule id -- bash -c '[ "$PREEMPT_ITEM_ATTEMPT" = 1 ] || exec ./item; exec ./gated never'
	worker dead --limit 8
	eventually begun "$id"
	# Later than both: it leaves the judging to the lowest that beats.
	worker other
	kill -TERM "${workers[monitor]}"
	eventually grep -q notice monitor.err
	# As a machine that is gone: its process can be seen, its beats are missed.
	stopped "${workers[dead]}"
	eventually is "$id" succeeded
	is "$long" running
	: >slow
	worker_ends monitor 42
	expect 0 preempt-queue join
	ran_once "$long" "$id"
}

# ---- Failures ----

@test "WQ-8: while a failure is pending nothing is taken; once it was told, work goes on" {
	schedule _ --halt now -- false
	schedule _ -- touch taken
	worker one
	eventually is 1 failed
	eventually grep -q 'nothing is taken until the failure is reported' one.err
	expect 44 preempt-queue join
	is 2 cancelled
	schedule _ -- touch after
	eventually test -e after
	[ ! -e taken ]
	[ "$(grep -c 'nothing is taken' one.err)" = 1 ]
}

@test "WQ-13: how a command ends: forgiven failures, time limits, and what cannot be started" {
	local want options command id
	local -A wanted=()
	mkdir gone
	# What is said of each: state, starts, attempts, ending, exit code and text.
	while IFS='|' read -r want options command; do
		# shellcheck disable=SC2086
		schedule id $options -- $command
		wanted[$id]="^$want"
	done <<-'END'
		succeeded 3 2 exited 0|--max-attempts 3|./often 1 2
		failed 2 2 exited 1|--max-attempts 2|./often 1 2
		succeeded 2 0 exited 0||./often 75 1
		succeeded 3 0 exited 0||./often 75 2
		succeeded 4 0 exited 0||./often 75 3
		failed 4 0 exited 75||./often 75 4
		succeeded 4 0 exited 0|--max-transient 1|./in-a-row 75 42 75 0
		failed 1 1 timed-out 124|--timeout 500ms|./gated never
		failed 1 1 timed-out 124|--timeout 500ms|./stubborn
		failed 1 1 cannot 127 .*there-is-none||./there-is-none
		failed 1 1 cannot 1 .*gone|--directory gone|pwd
	END
	rmdir gone
	printf '#!/bin/bash\nexit "${!PREEMPT_ITEM_ATTEMPT}"\n' >in-a-row
	chmod +x in-a-row
	worker a --slots 11 --kill-after 500ms
	expect 44 preempt-queue join
	for id in "${!wanted[@]}"; do
		what "$id" state starts attempts ending exit text >got
		grep "${wanted[$id]}" got || { echo "$id: $(<got)" >&2; false; }
	done
	gone "$(<begun.9)"
	expect 124 preempt-queue fetch --exit-status 8
	expect 127 preempt-queue fetch --exit-status 10
}

@test "a command that goes back again and again is started after pauses that double" {
	schedule _ -- bash -c 'echo "$EPOCHREALTIME" >>starts; exit 42'
	worker a
	eventually eval '[ "$(wc -l <starts)" = 4 ]'
	awk -v pause=0.25 'NR > 1 { early = early || $1 - last < pause; pause *= 2 } { last = $1 } END { exit early }' starts
}

@test "a command that kills its worker fails after the third, and not for ever" {
	local id name
	schedule id -- bash -c 'kill -KILL $PPID; sleep 100'
	for name in a b c; do
		worker "$name"
		worker_ends "$name" 137
	done
	worker d
	expect 44 preempt-queue join --timeout 200s
	says "command $id"
	[ "$(what "$id" state starts lost ending)" = "failed 3 3 lost" ]
	kill -0 "${workers[d]}"
}

@test "a machine on which nothing can be started is no sink: it leaves, says why, and others run what it could not" {
	local where ids
	for where in "TMPDIR=$PWD/nowhere" "PATH=$PWD/bare"; do
		# The second has no program of that name.
		rm -rf bare
		mkdir bare
		ln -s "$(type -P preempt-queue)" bare
		rm -f go
		: >ran
		schedule_many 5 -- bash ./gated go
		worker sound
		eventually here sound
		elsewhere broken "$where"
		worker_ends broken 75
		grep -q '3 times in a row a command could not be run here: .*this worker leaves' broken.err
		: >go
		expect 0 preempt-queue join
		are succeeded "${ids[@]}"
		ran_once "${ids[@]}"
		worker_killed sound
	done
}

@test "what cannot be started has failed when a second machine says so, or when there is none" {
	local alone both
	worker a
	schedule alone -- ./there-is-none
	expect 44 preempt-queue join
	[ "$(what "$alone" state starts refused exit)" = "failed 1 1 127" ]
	preempt-queue forget "$alone"
	elsewhere b
	eventually eval '[ "$(preempt-queue workers --json | wc -l)" = 2 ]'
	schedule both -- ./there-is-none
	expect 44 preempt-queue join
	[ "$(what "$both" state starts refused exit)" = "failed 2 2 127" ]
	kill -0 "${workers[a]}" "${workers[b]}"
}

@test "a machine on which commands fail that succeed elsewhere: its worker leaves with 75" {
	local ids
	schedule_many 12 --max-attempts 5 -- bash -c '[ "$PREEMPT_WORKER" = sound ] || exit 9; sleep 0.1; exec ./item'
	worker sound
	elsewhere broken
	worker_ends broken 75
	grep -q 'succeeded elsewhere' broken.err
	expect 0 preempt-queue join
	ran_once "${ids[@]}"
}

@test "what needs more time than is left is left to others, and named" {
	local long short
	schedule long --needs 2h -- ./item
	schedule short --needs 1s -- ./item
	worker a --source deadline:+1h
	eventually is "$short" succeeded
	eventually grep "command $long needs more time than is left here" a.err
	is "$long" waiting
	[ "$(what "$long" starts)" = 0 ]
	worker b
	expect 0 preempt-queue join
	[ "$(grep -c "needs more time" a.err)" = 1 ]
}

# ---- Cancelled and put back by users ----

@test "cancel: a command that runs is ended, one that waits is never started, and no client is told" {
	local runs waits
	schedule runs -- ./gated go
	schedule waits -- ./item
	worker a
	eventually begun "$runs"
	expect 0 preempt-queue cancel "$runs" "$waits"
	eventually is "$runs" cancelled
	eventually gone "$(<"begun.$runs")"
	is "$waits" cancelled
	expect 0 preempt-queue join
	expect 1 preempt-queue fetch "$runs"
	expect 0 preempt-queue cancel "$runs"
	ran_once
}

@test "cancel: a command whose output cannot be kept is cancelled, and its slot is free again" {
	local id next
	export PREEMPT_QUEUE_FILES=$PWD/files
	: >files # where the directory should be
	schedule id -- head -c 40000 /dev/zero
	schedule next -- ./item
	worker a
	eventually grep -q 'commands cannot be run here now' a.err
	cat a.err
	preempt-queue cancel "$id"
	rm files
	expect 0 preempt-queue join
	is "$id" cancelled
	ran_once "$next"
}

@test "cancel reaches a command that runs at once, whatever the period, also if no slot is free" {
	local id began
	pace=(--period 20s --source signal:TERM)
	schedule id -- ./gated go
	worker a
	eventually begun "$id"
	began=${EPOCHREALTIME/./}
	preempt-queue cancel "$id"
	eventually gone "$(<"begun.$id")"
	# 0.5 s on a machine that has time for us; a period takes 20.
	[ $((${EPOCHREALTIME/./} - began)) -lt 5000000 ]
	eventually is "$id" cancelled
}

# ---- Workers that die, and stores that do not answer ----

@test "WQ-10: a worker is killed: its commands die with it, go back at once, and run elsewhere" {
	local i pids pid
	schedule _ -- sh -c 'echo $$ >>pids; : >"up.$PREEMPT_WORKER"; test "$PREEMPT_WORKER" = two || sleep 60'
	schedule _ -- sh -c 'setsid sh -c "echo \$\$ >>pids; : >up.far.$PREEMPT_WORKER; sleep 60" & test "$PREEMPT_WORKER" = two || sleep 60'
	worker one --slots 2
	eventually test -e up.one
	eventually test -e up.far.one
	mapfile -t pids <pids
	worker_killed one
	worker two --idle-exit 0
	worker_ends two 0
	for i in 1 2; do [ "$(what $i state lost worker)" = "succeeded 1 two" ]; done
	for pid in "${pids[@]}"; do eventually gone "$pid"; done
	# Seen, not waited for.
	grep -q 'worker is gone' two.err
	here ''
}

@test "WQ-10: a zombie, stopped for longer than its lease: its late result is discarded, and it works on" {
	local size id
	# Short, and in a file.
	for size in 20 50000; do
		rm -f go
		schedule id --max-attempts 5 -- sh -c 'echo $$ >"begun.$PREEMPT_ITEM_ID.$PREEMPT_ITEM_ATTEMPT"
			until [ -e go ]; do sleep 0.02; done; yes "$PREEMPT_WORKER" | head -c "$1"' sh $size
		worker zombie --limit 6 -v
		eventually begun "$id" 1
		stopped "${workers[zombie]}"
		: >go # its command ends, and it has a result that it has not handed in
		worker other -v --idle-exit 0
		worker_ends other 0
		[ "$(what "$id" state worker starts lost)" = "succeeded other 2 1" ]
		preempt-queue fetch "$id" >fetched
		[ "$(wc -c <fetched) $(head -n 1 fetched)" = "$size other" ]
		kill -CONT "${workers[zombie]}"
		eventually grep -q 'declared dead' zombie.err
		# It works on.
		schedule _ -- ./item
		expect 0 preempt-queue join
		noticed zombie
		preempt-queue fetch "$id" | cmp - fetched
		# Nor does it say so, or leave its output.
		grep "command $id: succeeded" other.err
		! grep "command $id: succeeded" zombie.err || return 1
		[ "$(find store/q.db.queue/default -name "$id.*" -type f | wc -l)" = 1 ]
		rm zombie.err
	done
}

@test "the store is unreachable for a while: the command runs on, and its result is handed in" {
	needs_store_file
	local id
	schedule id -- bash -c './gated go; echo said'
	worker a -v
	eventually begun "$id"
	mv store away
	: >go
	eventually test -s ran
	eventually grep -q 'cannot ask the store' a.err
	# No client says "all is done", nor "no".
	expect 75 preempt-queue join --timeout 1s
	expect 75 preempt-queue 'done'
	mv away store
	expect 0 preempt-queue join --timeout 200s
	is "$id" succeeded
	[ "$(preempt-queue fetch "$id")" = said ]
	ran_once "$id"
	eventually grep -q 'answers again' a.err
	[ "$(grep -c 'cannot ask the store' a.err) $(grep -c 'answers again' a.err)" = "1 1" ]
}

@test "the store is unreachable at a notice and stays away: the worker says so, and another runs the command" {
	needs_store_file
	local id
	schedule id -- ./gated go
	worker a --grace 2s
	eventually begun "$id"
	mv store away
	kill -TERM "${workers[a]}"
	worker_ends a 75
	[ -s a.err ]
	eventually gone "$(<"begun.$id")"
	mv away store
	: >go
	worker b
	expect 0 preempt-queue join --timeout 200s
	is "$id" succeeded
	ran_once "$id"
}

# ---- What commands are given ----

@test "a command has its directory, environment and stdin, and nothing is run by a shell unless asked" {
	local id
	mkdir there
	echo "from a file" >in
	export FROM_HERE=here
	schedule id --directory there --env A='x y' --env FROM_HERE --stdin in -- \
		bash -c 'pwd; echo "$A $FROM_HERE $PREEMPT_QUEUE"; cat; echo "$1"' sh '$(touch bad); `touch bad`'
	unset FROM_HERE
	worker a
	expect 0 preempt-queue join
	diff <(preempt-queue fetch "$id") <(printf '%s\n' "$PWD/there" "x y here default" "from a file" '$(touch bad); `touch bad`')
	[[ ! -e bad && ! -e there/bad ]]
	schedule id -- cat
	schedule id --shell -- 'echo "$1" | tr a-z A-Z' shouted
	expect 0 preempt-queue join
	[ "$(preempt-queue fetch "$id")" = SHOUTED ]
}

@test "{worker} and {per-worker:a,b,c} are the worker's own" {
	local id
	schedule id -- sh -c 'echo "$1 $2 $PREEMPT_WORKER_INDEX"' sh '{worker}' '{per-worker:red,green,blue}'
	worker 5 --idle-exit 0
	worker_ends 5 0
	[ "$(preempt-queue fetch "$id")" = "5 blue 5" ]
}

@test "--gpus-per-slot: no two commands that run at once see the same GPU; too few are refused" {
	local ids id
	mkdir smi
	printf '#!/bin/sh\n[ "$1" = -L ] && printf "GPU %%d: fake (UUID: GPU-x)\\n" 0 1 2 3\n' >smi/nvidia-smi
	chmod +x smi/nvidia-smi
	schedule_many 2 -- bash -c './gated go; echo "$CUDA_VISIBLE_DEVICES"'
	CUDA_VISIBLE_DEVICES=7,GPU-ab,3 expect 2 preempt-queue work --slots 2 --gpus-per-slot 2 --idle-exit 0
	PATH=$PWD/smi:$PATH worker a --slots 2 --gpus-per-slot 2 --idle-exit 0
	eventually have_begun 2
	: >go
	worker_ends a 0
	[ "$(preempt-queue fetch "${ids[@]}" | sort)" = $'0,1\n2,3' ]
	schedule id --shell -- 'echo "$CUDA_VISIBLE_DEVICES"'
	CUDA_VISIBLE_DEVICES=7,GPU-ab,3 worker b --gpus-per-slot 2 --idle-exit 0
	worker_ends b 0
	[ "$(preempt-queue fetch "$id")" = 7,GPU-ab ]
}

# ---- What commands leave ----

@test "--stdout: the output goes to a file, one for each, emptied at each start; fetch names it" {
	local again lost
	mkdir there
	printf '%s\n' one 'two {id}' >lines
	mapfile -t ids < <(preempt-queue schedule --lines --stdout 'there/{}.{id}' --shell -- 'echo "$1"; echo "$1 err" >&2' <lines)
	schedule again --directory there --stdout '{worker}.out' -- \
		sh -c 'echo "start $PREEMPT_ITEM_ATTEMPT"; [ "$PREEMPT_ITEM_ATTEMPT" = 2 ] || exit 75'
	schedule lost --stdout 'missing/out' -- touch never
	worker a
	expect 44 preempt-queue join
	[ "$(cat "there/one.${ids[0]}" "there/two {id}.${ids[1]}" there/a.out)" = $'one\ntwo {id}\nstart 2' ]
	[ "$(preempt-queue fetch --stderr "${ids[0]}")" = "one err" ]
	expect 0 preempt-queue fetch "$again"
	says "command $again: its stdout is in $PWD/there/a.out"
	[ "$(preempt-queue fetch "$again" 2>&-)" = "" ]
	preempt-queue show "$lost" | grep -F "cannot write $PWD/missing/out as stdout: No such file or directory; make its directory first"
	[[ ! -e never && ! -e missing ]]
	# Where all would overwrite one file, or the name cannot be known, nothing is scheduled.
	expect 2 preempt-queue schedule --lines --stdout 'all.{{id}' -- echo <lines
	expect 2 preempt-queue schedule --stdout '{per-worker:a,b}' -- echo
}

@test "list --joblog: a line for each result, as GNU parallel reads it" {
	local one two three again
	# The same three arguments for parallel below, in this order.
	schedule one -- bash -c 'printf 12345; sleep 0.3' one
	schedule two -- sh -c 'exit 3' two
	schedule three -- sh -c 'kill -9 $$' three
	schedule again -- sh -c '[ "$PREEMPT_ITEM_ATTEMPT" = 2 ] || exit 75'
	worker a
	expect 44 preempt-queue join
	preempt-queue list --joblog >log
	[ "$(head -n 1 log)" = $'Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand' ]
	[ -z "$(awk -F'\t' 'NF != 9' log)" ]
	diff <(awk -F'\t' 'NR > 1 { print $1, ($4 >= 0.3), $6, $7, $8 }' log | sort) - <<-END
		$one 1 5 0 0
		$two 0 0 3 0
		$three 0 0 0 9
		$again 0 0 0 0
	END
	parallel --version 2>/dev/null | grep -q 'GNU parallel' || skip "GNU parallel is not here"
	parallel --resume-failed --joblog log echo again ::: one two three four >again 2>&1
	diff <(sort again) <(printf '%s\n' 'again three' 'again two')
}

@test "join --follow prints each of its commands that ends, also the last ones; a full disk ends it with 75" {
	local ids name
	schedule _ -- ./gated go
	schedule_many 3 -- ./gated go
	aside join preempt-queue join --follow "${ids[@]}"
	aside full bash -c 'preempt-queue join --follow >/dev/full'
	# They have looked once, and then for so long that they miss a worker.
	for name in join full; do eventually grep -q 'no worker is alive' "$name.err"; done
	worker a --slots 4
	: >go
	aside_ends join 0
	diff <(awk '{ print $1, $2 }' join.out | sort -n) <(printf '%s succeeded\n' "${ids[@]}")
	aside_ends full 75
	grep -q 'cannot write to stdout' full.err
}

# shows FILE TEXT: whether the file has exactly this
shows() {
	[ "$(cat "$1" 2>/dev/null)" = "$2" ]
}

@test "fetch --follow: prints what a command writes as it writes it, over a preemption, to its end" {
	local id
	cat >writes <<-'ITEM'
		#!/bin/bash
		trap 'exit 42' TERM
		echo "start $PREEMPT_ITEM_ATTEMPT"
		echo err >&2
		until [ -e "go.$PREEMPT_ITEM_ATTEMPT" ]; do sleep 0.02; done
		echo end
		exit 3
	ITEM
	chmod +x writes
	schedule id -- ./writes
	aside follower preempt-queue fetch --follow --exit-status "$id"
	worker a
	eventually shows follower.out 'start 1'
	expect 124 preempt-queue fetch --follow --stderr --timeout 500ms "$id"
	noticed a
	worker b
	eventually shows follower.out $'start 1\nstart 2'
	[ ! -s follower.err ]
	: >go.2
	aside_ends follower 3
	shows follower.out $'start 1\nstart 2\nend'
	grep -q "command $id has failed" follower.err
	[ "$(preempt-queue fetch --follow --stderr "$id")" = err ]
	expect 1 preempt-queue fetch --follow 99
}
