#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The examples of the manual, and the scripts of the guides, run as they stand there, with a place for /shared and /run.
# Those of preempt-queue(1) are in queue.bats, the script of preempt(7) is in composed.bats, the loops are in loops.bats.
# takes: 35
# asan: no (the programs' own tests do that)
# shellcheck disable=SC2016,SC2030,SC2031 # text for another shell; a test is a subshell of its own

bats_require_minimum_version 1.5.0
load ../support/programs
load ../support/manual

setup() {
	programs
	PATH=$PWD/path:$PATH
	unset PREEMPT_STORE JOB_ID SGE_ROOT LSB_JOBID KUBERNETES_SERVICE_HOST
	export XDG_STATE_HOME=$PWD/state PREEMPT_PLATFORM=generic TMPDIR=$PWD/tmp
	mkdir -m 700 shared path state tmp
	cat >train.sh <<-END
		#!/bin/bash
		. "$REPO/lib/client/preempt.sh"
		for ((s = 0; s < \${STEPS:-20}; s++)); do
			preempt_step \$s || { echo \$s >saved.\$PREEMPT_TASK && preempt_saved \$s; } || exit
			touch trains
			sleep 0.01
		done
		echo "\$PREEMPT_TASK" >>finished
	END
	# srun: one task, here; with -N2, two.
	cat >path/srun <<-'END'
		#!/bin/bash
		[ "$1" = -N2 ] || exec "$@"
		shift
		export SLURM_JOB_ID=1 SLURM_STEP_ID=1 SLURM_NTASKS=2 SLURM_STEP_NUM_TASKS=2 SLURM_NNODES=2
		SLURM_PROCID=1 "$@" &
		SLURM_PROCID=0 "$@" && wait $!
	END
	chmod +x train.sh path/srun
	pieces=''
}

teardown() {
	[ -z "$pieces" ] || kill -KILL -- "-$pieces" || :
	end_started
}

# the PAGE N: the Nth example of the page, in the file "typed", with places that are here.
the() {
	example "$1" "$2" | sed "s|/shared|$PWD/shared|g; s|/run/drain|$PWD/drain|g; s|/var/lib/prometheus/node-exporter|$PWD/shared|" >typed
	[ -s typed ]
}

# runs PAGE N: this example, to its end.
runs() {
	the "$1" "$2"
	run -0 bash -e typed
}

# begin COMMAND...: in the background, until it trains.
begin() {
	rm -f trains
	STEPS=100000 "$@" >log 2>&1 3>&- &
	job=$!
	started+=("$job")
	until_true 60 test -e trains
}

# ended CODE: the job has ended with it.
ended() {
	code_of "$job"
	[ "$code" = "$1" ] || { cat log; return 1; }
}

# trains RUN TASKS: a run trains, with its store where the examples have it.
trains() {
	export PREEMPT_RUN=$1 PREEMPT_STORE=$PWD/shared/$1.db
	begin preempt-run -n "$2" -- ./train.sh
}

# killed: the job, as by its machine.
killed() {
	kill -KILL "$job"
	code_of "$job"
}

# pipeline: what is typed, in the background, as a group of processes; what it prints, in "printed".
pipeline() {
	set -m
	bash typed >printed 2>&1 3>&- &
	pieces=$!
	set +m
	eventually catches_usr1 preempt-watch || { cat printed; return 1; }
}

# no_pipeline: it is ended.
no_pipeline() {
	kill -KILL -- "-$pieces" 2>/dev/null || :
	wait "$pieces" || :
	pieces=
}

# catches_usr1 NAME: the program of this name in the pipeline no longer dies of USR1.
catches_usr1() {
	local pid
	pid=$(pgrep -g "$pieces" "$1") && catches "$pid" 10
}

@test "preempt-claim(1): on demand, from a drain script, of every notice" {
	[ "$(examples preempt-claim.1)" = 4 ]
	trains mymodel 2
	runs preempt-claim.1 2
	until_true 60 test -e saved.1
	rm saved.?
	# It has two minutes, and trains on.
	the preempt-claim.1 1
	PREEMPT_RUN='' PREEMPT_STORE='' run -0 --separate-stderr bash -e typed
	[[ $output = outside* ]]
	until_true 60 test -e saved.1
	grep -q 'claimed from outside .*drain' log
	killed
	for number in 3 4; do
		trains other$number 1
		the preempt-claim.1 $number
		pipeline
		pkill -USR1 -g "$pieces" preempt-watch
		ended 42
		grep -q 'claimed from outside .*signal:USR1' log
		grep -q "^outside $(hostname)" printed
		no_pipeline
	done
}

@test "preempt-watch(1): announce every notice, look once, and the agent of one task" {
	[ "$(examples preempt-watch.1)" = 3 ]
	trains a 1
	the preempt-watch.1 1
	pipeline
	the preempt-watch.1 2
	run -1 bash -e typed
	touch drain
	run -0 bash -e typed
	[[ $output = *file* ]]
	ended 42
	no_pipeline
	# It has no preempt-run: the script that joins is the agent.
	export PREEMPT_RUN=b PREEMPT_STORE=$PWD/shared/b.db
	{
		echo 'eval "$(preempt-store join --pid $$)" || exit; STEPS=100000 ./train.sh & touch joined'
		example preempt-watch.1 3
		echo '[ $? = 0 ] && wait $!; exit "$(preempt-store leave --code $?)"'
	} >typed
	diff <(example preempt-watch.1 3) <(example preempt-ack.1 1)
	begin bash typed
	preempt-claim
	ended 42
	[ "$(examples preempt-ack.1)" = 1 ]
}

@test "preempt-heartbeat(1): join, beat beside the training, leave" {
	[ "$(examples preempt-heartbeat.1)" = 1 ]
	export PREEMPT_RUN=mymodel PREEMPT_STORE=$PWD/shared/mymodel.db PREEMPT_TASK=0 PREEMPT_TASKS=1
	the preempt-heartbeat.1 1
	PREEMPT_TASK=5 run -2 bash typed # refused by the join: the training does not begin
	[ ! -e trains ]
	begin bash typed
	running() { [[ $(preempt-status --run mymodel) = *" running "* ]]; }
	eventually running
	# The heartbeat is killed, and the training with it; the next start trains to its end, and leaves.
	pkill -KILL -P "$job"
	ended 137
	STEPS=20 run -0 bash typed
	[[ $(preempt-status --run mymodel) = *" completed "* ]]
}

@test "preempt-run(1): one machine, a watched progress, a rehearsal, restarts, a program of its own, events" {
	[ "$(examples preempt-run.1)" = 7 ]
	local n
	for n in 1 3 5; do
		rm -f finished
		runs preempt-run.1 "$n"
		[ "$(wc -l <finished)" = 4 ]
	done
	the preempt-run.1 2
	rm finished
	PREEMPT_RUN=two run -0 bash -e typed
	[ "$(cat finished)" = 0 ]
	# Half a minute is half a second here.
	the preempt-run.1 4
	sed -i 's/30s/500ms/' typed
	STEPS=100000 run -0 bash -e typed
	# A solver that knows USR1 only.
	printf '#!/bin/bash\n%s\n' 'trap "to=\$(ckpt-rotate begin ck 7) && echo 7 >\$to/model && ckpt-rotate commit ck 7; exit" USR1' \
		'touch trains' 'while :; do sleep 0.02; done' >solver
	chmod +x solver
	the preempt-run.1 6
	begin env PREEMPT_RUN=solver bash -c "$(sed 's/^preempt-run/exec &/' typed)"
	kill -TERM "$job"
	ended 42
	[ "$(ckpt-rotate latest ck --step)" = 7 ]
	# Two commands: a mail, and a webhook.
	printf '#!/bin/sh\ncat >>mails; echo "$@" >>subjects\n' >path/mail
	printf '#!/bin/sh\ncat >>posted; echo >>posted; [ "$8" = hook ]\n' >path/curl
	chmod +x path/mail path/curl
	the preempt-run.1 7
	PREEMPT_RUN=seven WEBHOOK=hook run -0 bash -e typed
	[ "$(sort -u subjects)" = '-s job seven me' ]
	grep -q . mails
	python3 -c 'import json; assert len([json.loads(line) for line in open("posted") if line.strip()]) >= 1'
}

# make_checkpoint DIRECTORY STEP
make_checkpoint() {
	local to
	to=$(ckpt-rotate begin "$1" "$2")
	echo "model $2" >"$to/model"
	ckpt-rotate commit "$1" "$2" >/dev/null
}

# answers NAME TEXT: a program of a scheduler, which notes its calls and answers TEXT.
answers() {
	printf '#!/bin/sh\necho "%s $*" >>calls\necho "%s"\n' "$1" "$2" >"path/$1"
	chmod +x "path/$1"
}

@test "preempt-requeue(1): a batch script, a worker of a queue, in a container, Grid Engine, and what would be done" {
	[ "$(examples preempt-requeue.1)" = 4 ]
	answers scontrol ''
	answers squeue "RUNNING $(date -d '+1 hour' +%s) $(date +%s)"
	export SLURM_JOB_ID=4711
	the preempt-requeue.1 1
	chmod +x typed
	begin env -u PREEMPT_PLATFORM ./typed
	pkill -TERM -P "$job" preempt-run
	ended 42
	grep -qx 'scontrol requeue 4711' calls
	the preempt-requeue.1 4
	run -42 bash typed
	[[ $output = *"run again"* ]]
	the preempt-requeue.1 2
	preempt-queue schedule --store "$PWD/shared/queue.db" -- touch worked
	SLURM_ARRAY_JOB_ID=4711 SLURM_ARRAY_TASK_ID=0 run -0 bash <(sed 's/1m/0/' typed)
	[ -e worked ]
	unset SLURM_JOB_ID
	JOB_ID=12 SGE_ROOT=/ the preempt-requeue.1 3
	JOB_ID=12 SGE_ROOT=/ run -0 bash typed
}

@test "preempt-status(1): watch, a picture, a check, and metrics" {
	[ "$(examples preempt-status.1)" = 4 ]
	PREEMPT_STORE=$PWD/shared/run.db preempt-run --run a -n 2 -- ./train.sh
	the preempt-status.1 1
	TERM=xterm run -0 python3 "$REPO/tests/support/screen.py" 24 80 -- bash typed <<<$'expect finished\ntype q\nwait'
	[[ $output = *"exit 0"* ]]
	runs preempt-status.1 2
	grep -q '</svg>' run.html
	runs preempt-status.1 3
	runs preempt-status.1 4
	grep -q '^preempt_' shared/preempt.prom
}

@test "ckpt-rotate(1): save alone and together, resume, copy, start from the newer, thin out, judge, from cron" {
	[ "$(examples ckpt-rotate.1)" = 10 ]
	mkdir -p ck tmp/ck shared/run7/ck
	{
		echo 'train_write_model() { echo "model $s" >"$1"; }'
		echo 'train_write_shard() { echo "shard $s" >"$1"; }'
		echo 'load_model() { grep -qx "model $start" "$1"; }'
		echo 's=7; export PREEMPT_TASK=0 PREEMPT_TASKS=1'
		example ckpt-rotate.1 2
		echo 's=8; unset PREEMPT_TASK PREEMPT_TASKS'
		example ckpt-rotate.1 1
		example ckpt-rotate.1 3
		echo 'echo "start $start"'
	} >typed
	run -0 bash -e typed
	[ "${lines[-1]}" = "start 8" ]
	# From the disk of this machine to the shared one, where the next attempt finds it.
	make_checkpoint tmp/ck 5
	runs ckpt-rotate.1 4
	[ "$(ckpt-rotate latest shared/run7/ck --step)" = 5 ]
	make_checkpoint tmp/ck 6
	the ckpt-rotate.1 5
	echo 'echo "$start"' >>typed
	run -0 bash -e typed
	[ "$output" = "$PWD/$(ckpt-rotate latest tmp/ck)" ]
	# Measured, judged, thinned out.
	make_checkpoint ck 4000
	ckpt-rotate begin ck 9 >to
	echo model >"$(cat to)/model"
	the ckpt-rotate.1 7
	s=9 run -0 bash -e typed
	[ "$(ckpt-rotate latest ck --step)" = 9 ]
	runs ckpt-rotate.1 6
	[ "$(ckpt-rotate list ck --json | grep -c '"bad"')" = 1 ]
	# From cron, all is well and nothing is said.
	local n step
	for step in 10 20 30 40; do
		mkdir -p "shared/run8/out/checkpoint-$step"
		echo "{\"global_step\": $step}" >"shared/run8/out/checkpoint-$step/trainer_state.json"
		printf '\2\0\0\0\0\0\0\0{}' >"shared/run8/out/checkpoint-$step/model.safetensors"
	done
	find shared/run8 -exec touch -d yesterday {} +
	for n in 8 9 10; do
		runs ckpt-rotate.1 "$n"
		[ -z "$output" ]
	done
	[ ! -e shared/run8/out/checkpoint-10 ]
}

@test "ckpt-layouts(7): all layouts have a row and their needs; how to copy the newest one" {
	listed() { sed -n "s/^\.It Cm \([a-z]*\)$1\$/\1/p" "$REPO/man/ckpt-layouts.7" | sort; }
	sh "$REPO/completions/candidates.sh" ckpt-rotate list --layout '' | grep -vx -e auto -e native | sort >known
	diff known <(listed ' Ta .*')
	diff known <(listed '')
	mkdir -p out shared/run8/out
	python3 "$REPO/tests/support/layouts/frameworks.py" deepspeed out 100 200
	rm out/global_step200/mp_rank_00_model_states.pt
	printf '#!/bin/sh\n[ "$1" = -aL ] && cp -RL "$2" "$3"\n' >path/rsync
	chmod +x path/rsync
	example ckpt-layouts.7 1 Copying | sed "s|/shared|$PWD/shared|" >typed
	run -0 bash typed
	[[ $output == *"global_step100 complete"* ]]
	[ "$(ls shared/run8/out)" = global_step100 ]
}

@test "preempt-store(1): one is first, wait, count together, copy, join and leave" {
	[ "$(examples preempt-store.1)" = 5 ]
	export PREEMPT_STORE=$PWD/shared/s.db PREEMPT_RUN=r USER=me HOSTNAME=one
	preempt-store put data/ready yes
	example preempt-store.1 1 >typed
	run -0 bash typed
	[ "$output" = "I lead" ]
	HOSTNAME=two run -0 --separate-stderr bash typed
	[ "$output" = "one leads" ]
	example preempt-store.1 2 >typed
	run -0 bash typed
	[ "$output" = yes ]
	example preempt-store.1 3 >typed
	local n
	for n in 1 2 3 4 5 6; do bash typed 3>&- & done
	wait
	[ "$(preempt-store get n)" = 6 ]
	# Values of any bytes.
	printf 'two\n\nlines\0\n\n' | preempt-store put any -
	the preempt-store.1 4
	run -0 bash typed
	[ -z "$output" ]
	cmp <(preempt-store list --values | od -c) <(preempt-store list --values --store shared/new.db | od -c)
	cmp <(preempt-store get any) <(preempt-store get any --store shared/new.db)
	{
		echo 'export PREEMPT_TASK=0 PREEMPT_TASKS=1'
		example preempt-store.1 5 | sed 's/^\.\.\.$/code=3/'
	} >typed
	run -3 bash typed
}

@test "preempt-stores(7): a store of one's own, of a group, in an etcd that does not answer" {
	[ "$(examples preempt-stores.7)" = 3 ]
	mkdir shared/{me,team}
	chmod 2770 shared/team
	local n
	for n in 1 2; do
		the preempt-stores.7 $n
		USER=me run -0 --separate-stderr bash -c '. ./typed && preempt-store put key value && preempt-store get key'
		[ "$output" = value ]
	done
	[ "$(stat -c %a shared/*/run.db | xargs)" = "600 660" ]
	the preempt-stores.7 3
	sed -i 's/10\.0\.0\.[56]:2379/127.0.0.1:1/g' typed
	run -75 --separate-stderr bash -c '. ./typed && preempt-store get key --timeout 1s'
}

@test "preempt-store-doctor(1): one machine, two nodes, two halves of a question, two paths, a prolog" {
	[ "$(example preempt-store-doctor.1 0 DESCRIPTION)" = 4 ]
	export USER=me
	mkdir -m 700 shared/me
	ln -s shared again
	local n
	for n in 1 2 3 4; do
		example preempt-store-doctor.1 $n DESCRIPTION
	done | sed "s|/shared|$PWD/shared|g; s|/mnt|$PWD|; /--quick/!s/doctor/& --quick --timeout 60s/; /--node 0/s/\$/ \&/" >typed
	[ "$(wc -l <typed)" = 7 ]
	run bash typed
	echo "$status $output"
	# This machine alone sees its disk: the prolog says so.
	[ "$status" = 1 ]
	[ "$(grep -c '^verdict *safe' <<<"$output")" = 5 ]
	[ "$(grep -c '^{"verdict":"safe"' <<<"$output")" = 1 ]
	[ "$(grep -c '^verdict *unsafe: .* this machine only' <<<"$output")" = 1 ]
}

@test "no other page has examples" {
	[ "$(examples libpreempt.3)" = 2 ]
	[ "$(examples preempt-step.1)" = 1 ]
	[ "$(grep -l '^.Sh EXAMPLES' "$REPO"/man/* | sed 's|.*/||' | tr '\n' ' ')" = "ckpt-rotate.1 libpreempt.3 preempt-ack.1 \
preempt-claim.1 preempt-heartbeat.1 preempt-requeue.1 preempt-run.1 preempt-status.1 preempt-step.1 \
preempt-store.1 preempt-stores.7 preempt-watch.1 " ]
}

# ---- The scripts of the guides in docs/, from a preemption to the resumed training ----

# script PAGE: the first script of a guide, and a training for it.
script() {
	unset PREEMPT_PLATFORM
	sed -n '/^```bash/,/^```/p' "$REPO/docs/$1" | sed '/^```/d' >"$1.sh"
	mkdir ck
	cat >train.sh <<-END
		#!/bin/bash
		. "$REPO/lib/client/preempt.sh"
		start=\$(ckpt-rotate latest ck --step --or 0) || exit
		save() {
			d=\$(ckpt-rotate begin ck \$1 --chief-only) && { [ \$PREEMPT_TASK != 0 ] || echo \$1 >\$d/model; } &&
				ckpt-rotate commit ck \$1 --chief-only >/dev/null
		}
		echo "start \$start" >>starts
		[ \$start = 0 ] || exit 0
		for ((s = start; s < 50000; s++)); do
			preempt_step \$s || { save \$s && preempt_saved \$s; } || exit
			touch trains
		done
	END
}

# guided COMMAND...: in the background; what is left of it at the end is ended.
guided() {
	setsid "$@" >log 2>&1 3>&- &
	job=$! pieces=$!
}

@test "the guide for ssh: four machines, one is drained, all start again; what crashes each time is not started for ever" {
	script ssh.md
	printf '%s\n' one two three four >hosts
	printf '#!/bin/sh\nexec sh -c "$3"\n' >path/ssh
	chmod +x path/ssh
	sed -i "s|/shared/\$USER|$PWD|; s/sleep 10/sleep 0.1/" ssh.md.sh
	guided bash ssh.md.sh
	until_true 60 test -e trains
	preempt-claim --store "$PWD/run.db" --run mymodel
	ended 0
	[ "$(grep -c 'start 0' starts)" = 4 ]
	[ "$(wc -l <starts)" = 8 ]
	[ "$(sed -n 5,8p starts | sort -u)" = "start $(ckpt-rotate latest ck --step)" ]
	# Also if the connection to the first machine breaks at the end.
	rm -r run.db* starts
	printf '#!/bin/sh\necho start >>starts\nexit 1\n' >train.sh
	sed -i 's/^exec.*/code=0; sh -c "$3" || code=$?; [ "$2" != one ] || exit 255; exit $code/' path/ssh
	guided timeout 120 bash ssh.md.sh
	ended 93
	(($(wc -l <starts) <= 16))
}

@test "the guide for spot machines: saved, and left for the next machine" {
	script cloud.md
	sed -i "s|/disk/|$PWD/|; s/-n 8/-n 2/" cloud.md.sh
	for expected in 2 4; do
		guided bash cloud.md.sh
		[ "$expected" = 4 ] || { until_true 60 test -e trains && preempt-claim --store "$PWD/run.db" --run mymodel; }
		ended 0
		[ "$(wc -l <starts)" = "$expected" ]
	done
}

@test "the guide for Slurm shows the script of the README" {
	diff <(sed -n '/^exec preempt-requeue/p' "$REPO/docs/slurm.md") <(sed -n '/^exec preempt-requeue/p' "$REPO/README.md")
}
