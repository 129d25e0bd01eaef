#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The training program of the demo alone, without the tools: the tests are its agent.
# shellcheck disable=SC2030,SC2031 # each test is a subshell and sets its own variables

bats_require_minimum_version 1.5.0

setup_file() {
	ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	TRAIN=${OUT:-$ROOT/build/plain}/examples/train
	[ -x "$TRAIN" ] || make -s -C "$ROOT" build/plain/examples/train >&2
	STAND_IN=$ROOT/tests/support/train
	PATH=${BIN:-$ROOT/bin}:$PATH
	command -v ckpt-rotate >/dev/null || PATH=$STAND_IN:$PATH
	export TRAIN STAND_IN PATH
	unset "${!PREEMPT_@}" "${!SLURM_@}"
}

setup() {
	cd "$BATS_TEST_TMPDIR" || exit
	mkdir job
	pids=()
	starts=0
	first_hold=
}

teardown() {
	for pid in "${pids[@]}"; do
		kill -KILL "$pid" 2>/dev/null || :
		wait "$pid" || :
	done 2>/dev/null
}

small=(--hidden 16 --batch 30 --steps 120)

# launch N [OPTION...]: starts N tasks, with a board each; their output is in out.0, err.0 ...
launch() {
	local n=$1 i
	shift
	pids=()
	starts=$((starts + 1))
	for ((i = 0; i < n; i++)); do
		launch_task "$i" "$n" "$@"
	done
}

launch_task() {
	local i=$1 n=$2
	shift 2
	rm -rf "board.$i"
	mkdir -m 700 "board.$i"
	[ -z "$first_hold" ] || echo "$first_hold" >"board.$i/hold"
	PREEMPT_DIR=$PWD/board.$i PREEMPT_RUN=run PREEMPT_ATTEMPT=$starts \
		PREEMPT_TASK=$i PREEMPT_TASKS=$n \
		"$TRAIN" --dir job "${small[@]}" "$@" >"out.$i" 2>"err.$i" 3>&- &
	pids[i]=$!
}

# finish CODE...: waits for the tasks; their exit codes must be these.
finish() {
	local i code
	for i in "${!pids[@]}"; do
		code=0
		wait "${pids[i]}" || code=$?
		unset "pids[$i]"
		if [ "$code" != "$1" ]; then
			echo "task $i: exit code $code, expected $1"
			cat "out.$i" "err.$i"
			return 1
		fi
		shift
	done
}

# until_true SECONDS COMMAND...; a loaded machine is given four times as long, and at least a minute.
until_true() {
	local end=$((SECONDS + (4 * $1 > 60 ? 4 * $1 : 60)))
	shift
	until "$@"; do
		if ((SECONDS > end)); then
			echo "never true: $*"
			return 1
		fi
		sleep 0.01
	done
}

# step_of TASK: sets step, and next to its next boundary; a task that has not called yet has none.
step_of() {
	step=-1 next=0
	[ -s "board.$1/step" ] || return 0
	read -r step next <"board.$1/step" || :
	step=$((10#$step))
	next=$((10#${next:-$((step + 1))}))
}

reached() { # STEP: task 0 is at this boundary or after it
	step_of 0
	((step >= $1))
}

hold() { # TASK WORD NUMBER
	echo "$2 $3" >"board.$1/.hold"
	mv "board.$1/.hold" "board.$1/hold"
}

# What agents do: hold all, take the largest boundary, let all save there, let all leave together.
stop_all() {
	local i step next agreed=0
	for i in "${!pids[@]}"; do hold "$i" wait $$; done
	sleep 0.001
	for i in "${!pids[@]}"; do
		step_of "$i"
		((next <= agreed)) || agreed=$next
	done
	for i in "${!pids[@]}"; do hold "$i" exit "$agreed"; done
	for i in "${!pids[@]}"; do until_true 20 test -s "board.$i/saved"; done
	for i in "${!pids[@]}"; do hold "$i" leave 42; done
	stopped_at=$agreed
}

@test "train: 1, 2, 4 and 5 tasks train to the end, twice with the same bits" {
	for n in 1 2 4 5; do
		zeros=$(yes 0 | head -n "$n")
		for round in 1 2; do
			launch "$n" --done-model "model.$round"
			# shellcheck disable=SC2086 # one word per task
			finish $zeros
			grep -qx "counter $((n * 120)) = $n x 120" out.0
			grep -q "^done step 120 loss " out.0
			mv out.0 "text.$round"
		done
		cmp model.1 model.2
		cmp text.1 text.2
	done
	[ -z "$(find job -type f)" ]
	[ -z "$(find job/rendezvous -mindepth 1)" ]
}

@test "train: the loss falls, on text it has never seen too" {
	small=()
	launch 2 --steps 200
	finish 0 0
	awk '/^step 20 / { first = $4 } /unseen/ { unseen = $2 } /^done/ { last = $5 }
		END { exit !(first > 3.5 && last < 2.6 && unseen < 2.8) }' out.0
}

@test "train: stopped together at any step and resumed, it ends with the same bits" {
	# So many and slow that a test which is held up comes long before their end.
	small+=(--steps 600)
	launch 4 --done-model straight
	finish 0 0 0 0
	mv out.0 text.straight
	for start in 1 2 3; do
		launch 4 --step-ms 30 --done-model resumed
		at=$((RANDOM % 30 + 1))
		until_true 20 reached $(((start - 1) * 35 + at))
		stop_all
		finish 42 42 42 42
		grep -qx "saved step $stopped_at" out.0
		[ ! -e resumed ]
		[ "$(ckpt-rotate latest job/ckpt --step)" = "$stopped_at" ]
	done
	launch 4 --done-model resumed
	finish 0 0 0 0
	grep -q "^resumed at step $stopped_at " out.0
	cmp straight resumed
	diff <(tail -n 3 text.straight) <(tail -n 3 out.0)
	grep -qx "counter 2400 = 4 x 600" out.0
}

@test "train: asked before the first step, it saves step 0 and leaves; asked again, it saves nothing new" {
	for start in 1 2; do
		first_hold="exit 0"
		launch 2
		until_true 20 test -s board.0/saved -a -s board.1/saved
		hold 0 leave 42
		hold 1 leave 42
		finish 42 42
		[ "$(grep -c '^saved step 0$' out.0)" = $((2 - start)) ]
	done
}

@test "train: a task that fails ends all; from the last periodic save it ends with the same bits" {
	launch 2 --done-model straight
	finish 0 0
	launch 2 --save-every 25 --crash-at 90:1 --done-model resumed
	finish 1 1
	grep -qx "train: task 1: crashed at step 90, as --crash-at says" err.1
	grep -qx "train: task 0: task 1 closed the connection at step 90" err.0
	launch 2 --save-every 25 --done-model resumed
	finish 0 0
	grep -q "^resumed at step 75 " out.0
	grep -qx "saved step 120" out.0
	cmp straight resumed
	# All is done: one more start has nothing to train and says the same.
	launch 2 --save-every 25 --done-model again
	finish 0 0
	cmp straight again
	run -1 grep '^saved\|^step' out.0
}

@test "train: a task killed with KILL: every other one says so at once" {
	launch 4 --step-ms 5 --steps 100000
	until_true 20 reached 10
	kill -KILL "${pids[2]}"
	before=$SECONDS
	finish 1 1 137 1
	((SECONDS - before <= 60)) # no task waits for a timeout
	# The first to see it names the killed one, the others whichever task has left before them.
	grep -q "^train: task [13]: task 2 closed the connection at step " err.[013]
	for i in 0 1 3; do
		grep -q "^train: task $i: task [0-3] closed the connection at step " "err.$i"
	done
}

@test "train: a task stopped for a while holds the others up and harms nothing" {
	launch 3 --done-model straight
	finish 0 0 0
	for _ in 1 2 3; do
		launch 3 --step-ms 15 --done-model held
		until_true 20 reached 20
		kill -STOP "${pids[1]}" && step_of 0 && ((step < 110)) && break
		# We were held up ourselves: it is over, or nearly.
		kill -CONT "${pids[1]}" || :
		finish 0 0 0
	done
	before=$step
	sleep 0.3
	step_of 0
	((step <= before + 2))
	kill -CONT "${pids[1]}"
	finish 0 0 0
	cmp straight held
}

@test "train: a damaged or foreign checkpoint is refused, and left as it is" {
	PATH=$STAND_IN:$PATH
	launch 2 --save-every 60
	finish 0 0
	rm -r job/ckpt/120
	cp job/ckpt/60/model.bin good
	expect_refusal() {
		cp job/ckpt/60/model.bin bad
		launch 2
		finish 1 1
		grep -q "$1" err.0
		grep -q "task 0 closed the connection at step 0" err.1
		cmp bad job/ckpt/60/model.bin
		cp good job/ckpt/60/model.bin
	}
	printf '\001' | dd of=job/ckpt/60/model.bin bs=1 seek=5000 conv=notrunc status=none
	expect_refusal "model.bin is damaged: its checksum is wrong"
	truncate -s -1 job/ckpt/60/model.bin
	expect_refusal "model.bin is damaged: its size is wrong"
	echo >>job/ckpt/60/model.bin
	expect_refusal "model.bin is damaged: its size is wrong"
	echo "not a model" >job/ckpt/60/model.bin
	expect_refusal "model.bin is damaged, or not a model of this program"
	rm job/ckpt/60/model.bin
	touch bad job/ckpt/60/model.bin
	expect_refusal "model.bin is damaged, or not a model of this program"

	mv job/ckpt/60 job/ckpt/61
	launch 2
	finish 1 1
	grep -q "model.bin has step 60, expected 61" err.0
	mv job/ckpt/61 job/ckpt/60
	launch 2 --hidden 24
	finish 1 1
	grep -q "model.bin has hidden 16, expected 24" err.0
	launch 1
	finish 1
	grep -q "model.bin has tasks 2, expected 1" err.0
	launch 2 --steps 50
	finish 1 1
	grep -q "step 60 is after the last, --steps 50" err.0
	launch 2
	finish 0 0
}

@test "train: a ckpt-rotate that cannot tell or cannot save ends the training, never starts it again" {
	mkdir path
	cat >path/ckpt-rotate <<-'SCRIPT'
		#!/bin/sh
		[ "$1" = "$(cat fails)" ] && exit 75
		exec "$STAND_IN/ckpt-rotate" "$@"
	SCRIPT
	chmod +x path/ckpt-rotate
	PATH=$PWD/path:$PATH
	for verb in latest begin commit; do
		echo $verb >fails
		launch 2 --save-every 60
		finish 1 1
		grep -qx "train: task 0: ckpt-rotate $verb failed with exit code 75" err.0
	done
	run -1 grep '^step 80' out.0
	run -1 env PATH=/nowhere "$TRAIN" --dir job --no-board
	[[ $output == *"cannot run ckpt-rotate: No such file or directory; is it in PATH?" ]]
}

@test "train: who does not come is named" {
	# On a slow machine one may begin long after the others.
	for seconds in 1 10 60; do
		starts=$((starts + 1))
		for i in 0 1 4; do launch_task $i 5 --start-seconds $seconds; done
		finish 1 1 1
		[ "$(grep -l "no sign of task 2, 3" err.? | wc -l)" != 3 ] || break
	done
	grep -hq "no sign of task 2, 3$" err.0 err.1 err.4
	for i in 0 1 4; do grep -q "^train: task $i: .*task [0-9].*; no sign of task 2, 3" err.$i; done
}

@test "train: neither strangers, nor files of the dead, nor other options come into the ring" {
	starts=1
	mkdir -p job/rendezvous/run-1
	echo "127.0.0.1 1 0123456789abcdef0123456789abcdef" >job/rendezvous/run-1/1
	launch_task 0 2 --done-model model
	until_true 10 test -s job/rendezvous/run-1/0
	read -r host port _ <job/rendezvous/run-1/0
	head -c 48 /dev/zero >"/dev/tcp/$host/$port"
	[ "$(stat -c %a job/rendezvous/run-1/0)" = 600 ]
	launch_task 1 2
	finish 0 0
	starts=2
	launch_task 0 2
	launch_task 1 2 --seed 2
	finish 1 1
	grep -q "task 1 was started with other options" err.0
	grep -q "task 0 was started with other options" err.1
}

@test "train: garbage on the command line and in the environment is refused" {
	refused() {
		run -2 --separate-stderr "$@"
		[ -z "$output" ]
		# shellcheck disable=SC2154 # set by run
		[[ $stderr == "train: "*"see train --help" ]]
	}
	refused "$TRAIN"
	for bad in --steps= --steps=0 --steps=-1 --steps=1x --steps=0x10 "--steps= 1" \
		--steps=99999999999999999999 --hidden=12 --hidden=0 --hidden=2048 --batch=0 \
		--crash-at=5 --crash-at=5: --crash-at=:1 --crash-at=1:2:3 --slow-task=a:b \
		--save-seconds=-1 --save-seconds=. --save-seconds=1e3 --save-seconds=nan \
		--no-board=1 --unknown garbage --step; do
		refused "$TRAIN" --dir job "$bad"
	done
	refused "$TRAIN" --dir
	refused env PREEMPT_TASK=0 "$TRAIN" --dir job
	refused env PREEMPT_TASK=2 PREEMPT_TASKS=2 PREEMPT_ATTEMPT=1 "$TRAIN" --dir job
	refused env PREEMPT_TASK=0 PREEMPT_TASKS=2 "$TRAIN" --dir job
	[[ $stderr == *"need a PREEMPT_ATTEMPT"* ]]
	refused env PREEMPT_TASK=0 PREEMPT_TASKS=2 PREEMPT_ATTEMPT=1 PREEMPT_RUN=../x \
		"$TRAIN" --dir job
	run -1 "$TRAIN" --dir nowhere
	[[ $output == *"cannot write to the directory nowhere"* ]]
	run -0 "$TRAIN" --help
	[ -z "$(ls job)" ]
}

@test "train: the batch shell of a Slurm job is no task, its steps are" {
	export SLURM_JOB_ID=7 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2
	run -0 --separate-stderr "$TRAIN" --dir job "${small[@]}" --no-board
	[[ $output == *"counter 120 = 1 x 120"* ]]
	export SLURM_STEP_ID=0
	run -1 --separate-stderr "$TRAIN" --dir job "${small[@]}" --no-board --start-seconds 0.2
	[[ $stderr == *"cannot reach task 1 in time; no sign of task 1" ]]
	[ -e job/rendezvous/7.0-0/0 ]
}
