#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Where preempt-run starts. History decides whether a run may begin at step 0: the store knows whether it has ever
# saved, which step and where (the rows of that decision: tests/unit/saved.c). --max-bad-restarts: a checkpoint from
# which no restart succeeds is given up.
# takes: 30
# shellcheck disable=SC2016 # text for other shells

bats_require_minimum_version 1.5.0
load ../support/programs

setup() {
	programs
	mkdir -m 700 home store
	unset XDG_STATE_HOME
	export HOME=$PWD/home PREEMPT_STORE=$PWD/store/s.db client=$REPO/lib/client/preempt.sh
}

teardown() {
	end_started
	[ -z "${frozen-}" ] || kill -KILL "$frozen"
	"$REPO/tests/support/forget-stores" "$BATS_TEST_TMPDIR"
}

# ---- History ----

# saves CODE STEP DIR [OPTION...]: a program that writes a checkpoint of a framework and is then preempted.
saves() {
	cat >saves.sh <<-'END'
		echo "from ${PREEMPT_RESUME:-nothing}" >>starts
		d=$2/checkpoint-$1
		mkdir -p "$d"
		echo "{\"global_step\": $1}" >"$d/trainer_state.json"
		echo w >"$d/pytorch_model.bin"
		kill -TERM $PPID
		sleep 100
	END
	run "-$1" --separate-stderr preempt-run --run r --on-notice signal:TERM --checkpoints "$3:hf" "${@:4}" -- \
		bash saves.sh "$2" "$3"
}
record() { preempt-store get saved/r; }
latest() { PREEMPT_RUN=r ckpt-rotate latest "$@"; }

@test "the README's loop after a crash before any save: begins at 0, makes its directory, and saves" {
	cat >train.sh <<-'END'
		. "$client"
		save() { d=$(ckpt-rotate begin ckpt $1 --sharded) && echo "$1" >"$d/$PREEMPT_TASK" &&
			ckpt-rotate commit ckpt $1 --sharded >/dev/null; }
		start=$(ckpt-rotate latest ckpt --step --or 0) || exit
		echo "from $start" >>starts
		for ((s = start; s < 2000; s++)); do
			preempt_step $s || { save $s && preempt_saved $s; } || exit
			[ -e ok ] || { touch ok; exit 1; }
			((s < start + 3)) || touch trains
			sleep 0.02
		done
	END
	preempt-run --run r --restarts -- bash train.sh 2>err 3>&- &
	started+=($!)
	eventually test -e trains
	kill -TERM $!
	code_of $!
	[ "$code" = 42 ] || { cat err >&2; false; }
	[ "$(cat starts)" = $'from 0\nfrom 0' ]
	record | grep -q '"attempt":2'
	# The directory is lost: latest says so before the first step; --or is for a run that never saved.
	mv ckpt away
	rm starts
	run -75 --separate-stderr latest ckpt --step --or 0
	[ "$output" = "" ]
	[[ $stderr == *"run r has saved step "*" in attempt 2"*"no complete checkpoint in ckpt"*"--anew"* ]]
	run ! preempt-run --run r -- bash train.sh
	[ ! -e starts ]
	# Two directories are asked; without a run, the directory alone; a store that cannot be asked is not "none".
	run -0 latest ckpt away --step --or 0
	[ "${lines[-1]}" -gt 0 ]
	run -0 ckpt-rotate latest ckpt --step --or 0
	PREEMPT_STORE=$PWD/none/s.db run -75 latest ckpt --step --or 0
	preempt-store anew --run r
	run -0 --separate-stderr latest ckpt --step --or 0
	[ "$output" = 0 ]
}

@test "--checkpoints without what the run has saved: 75 before the first step, until --anew" {
	saves 42 40 out
	record | grep -q "\"step\":40,\"attempt\":1,\"where\":\"$PWD/out\""
	saves 75 20 outt
	[[ $stderr == *"run r has saved step 40 in attempt 1, in $PWD/out "*"no complete checkpoint in outt:hf"*"--anew"* ]]
	[ "$(cat starts)" = "from nothing" ]
	[ ! -e outt ]
	# No attempt was opened, so the budgets know of no crash.
	[ "$(preempt-store runs --json | grep -o '"attempts":[0-9]*')" = '"attempts":1' ]
	# It outlives gc.
	preempt-store gc --older-than 0s
	saves 75 20 outt
	# What is there counts, not its path; an older one is used, and told.
	mkdir older
	cp -a out/checkpoint-40 older
	mv out moved
	saves 42 60 moved
	[[ $stderr != *"is used"* ]]
	saves 42 50 older
	[[ $stderr == *"has saved step 60"*"older/checkpoint-40, of step 40: it is used"* ]]
	[ "$(cat starts)" = $'from nothing\nfrom moved/checkpoint-40\nfrom older/checkpoint-40' ]
	saves 42 20 outt --anew
	[ "$(tail -n1 starts)" = "from nothing" ]
	record | grep -q '"step":20'
	# A missing parent is 75, saved or not.
	saves 75 20 none/out --anew
	# A run that has finished has nothing that must be there.
	run -0 preempt-run --run r --checkpoints outt:hf -- true
	run -1 record
}

@test "a store that is missing, but was there at an earlier start of the job: 75, and not made" {
	export SLURM_JOB_ID=7 PREEMPT_RUN=r
	local trace=home/.local/state/preempt/slurm-7.db.trace
	preempt-requeue --platform none -- preempt-run -- sh -c 'exit 1' || :
	[ "$(cat $trace)" = "$PREEMPT_STORE" ]
	mv store away
	mkdir -m 700 store
	run -75 --separate-stderr preempt-run -- touch started
	[[ $stderr == *"$PREEMPT_STORE is missing, but an earlier start of this job had it ($PWD/$trace)"* ]]
	run preempt-requeue --platform none -- preempt-run -- touch started
	[ -z "$(ls -A store)" ]
	[ ! -e started ]
	# Another job, another store, or no job: nothing is known of it.
	SLURM_JOB_ID=8 run -0 preempt-run --store "$PWD/away/8.db" -- true
	run -0 preempt-run --store "$PWD/away/other.db" -- true
	# The job finishes: its id may come again.
	rmdir store
	mv away store
	run -0 preempt-requeue --platform none -- preempt-run -- true
	[ ! -e $trace ]
}

@test "what ckpt-rotate commit has published is known at once, also when all are killed; and could not ask is not none" {
	cat >train.sh <<-'END'
		d=$(ckpt-rotate begin ckpt 5) && echo 5 >"$d/f" && ckpt-rotate commit ckpt 5 >/dev/null && touch saved
		sleep 100
	END
	setsid preempt-run --run r -- bash train.sh 2>err 3>&- &
	started+=($!)
	eventually test -e saved
	kill -KILL -- -$! || kill -KILL $!
	record | grep -q '"step":5,"attempt":1,"where":"'"$PWD"'/ckpt"'
	mv ckpt elsewhere
	export PREEMPT_RUN=r
	run -75 --separate-stderr ckpt-rotate latest ckpt --or 0
	[[ $stderr == *"run r has saved step 5 in attempt 1, in $PWD/ckpt"* ]]
	[ "$(ckpt-rotate latest elsewhere --step)" = 5 ]
	# A store that cannot be read is no store that knows nothing.
	mv store away
	run -75 --separate-stderr ckpt-rotate latest ckpt --or 0
	[ "$(ckpt-rotate latest elsewhere --step)" = 5 ]
	mv away store
	echo garbage >"$PREEMPT_STORE"
	run -65 --separate-stderr ckpt-rotate latest ckpt --or 0
}

@test "a start that finds a checkpoint makes it known" {
	mkdir -p out/checkpoint-40
	echo '{"global_step": 40}' >out/checkpoint-40/trainer_state.json
	echo w >out/checkpoint-40/pytorch_model.bin
	preempt-run --run r --checkpoints out:hf -- bash -c 'kill -9 $PPID' 3>&- || :
	record | grep -q '"step":40'
}

# framework LAYOUT DIR STEP...: checkpoints of a training framework, written an hour ago.
framework() {
	mkdir -p "$2"
	python3 "$REPO/tests/support/layouts/frameworks.py" "$@"
	find "$2" -exec touch -h -d '1 hour ago' {} +
}
# resumes RUN PLACE: what a start of this run resumes from. It fails, so that its checkpoints count.
resumes() {
	preempt-run --run "$1" --checkpoints "$2" -- sh -c 'echo "$PREEMPT_RESUME" >resumed; exit 1' 2>err || [ $? = 1 ] || return
	cat resumed
}

@test "the layout is chosen once per run: another one that appears in the directory later refuses no job that ran" {
	framework hf out 100
	[ "$(resumes r out)" = out/checkpoint-100 ]
	record | grep -q '"layout":"hf"'
	framework lightning out 200
	[ "$(resumes r out)" = out/checkpoint-100 ]
	framework hf out 300
	[ "$(resumes r out)" = out/checkpoint-300 ]
	record | grep -q '"step":300.*"layout":"hf"'
	# What the Trainer with ZeRO-3 leaves beside is never taken for another layout.
	framework deepspeed out 400
	[ "$(resumes r out)" = out/checkpoint-300 ]
	# A run that has chosen nothing must say which.
	run -2 --separate-stderr preempt-run --run other --checkpoints out -- touch started
	[[ $stderr == *"out holds checkpoints of two layouts, hf ("*"say which with --layout"* ]]
	[ ! -e started ]
	[[ $(resumes other out:lightning) == out/*step=200.ckpt ]]
	[[ $(resumes other out) == out/*step=200.ckpt ]]
	# Within one start, too.
	framework hf new 100
	echo 'for layout in hf lightning; do python3 "$1" $layout new 200; done' >job
	run -42 --separate-stderr preempt-run --run new --checkpoints new --done-if false --on-notice signal:USR1 -- \
		bash job "$REPO/tests/support/layouts/frameworks.py"
}

@test "--checkpoints DIR:PATTERN" {
	mkdir out
	echo x >out/model-7.pt.txt
	printf 'PK\5\6%018d' 0 | tr 0 '\0' >out/model-7.pt
	[ "$(resumes r 'out:model-{step}.pt')" = out/model-7.pt ]
	run -2 --separate-stderr preempt-run --checkpoints 'out:a/{step}' -- touch started
	[[ $stderr == *"--checkpoints: "*"without '/' and blanks"* ]]
	[ ! -e started ]
}

@test "a step that the store calls saved is not doubted" {
	framework hf out 100 200
	echo x >out/checkpoint-100/extra
	[ "$(resumes r out)" = out/checkpoint-100 ]
	grep -q 'out/checkpoint-200 is doubtful and was skipped' err
	export PREEMPT_RUN=r
	[ "$(ckpt-rotate latest --step out 2>/dev/null)" = 100 ]
	preempt-store put saved/r '{"step":200,"attempt":1}'
	[ "$(ckpt-rotate latest --step out)" = 200 ]
	[ "$(resumes r out)" = out/checkpoint-200 ]
	# A store that cannot be asked: then not all tasks would find the same.
	mv store away
	run -75 --separate-stderr ckpt-rotate latest --step out
	[ "$output" = "" ]
}

# ---- --max-bad-restarts ----

# three_checkpoints: and a trainer that fails when it resumes from a step in the file "poison"; else it has finished.
three_checkpoints() {
	local step
	export PREEMPT_RUN=job
	for step in 10 20 30; do save_step $step; done
	cat >trainer <<-'TRAINER'
		#!/bin/bash
		n=$(cat "$PREEMPT_RESUME/n" 2>/dev/null || echo none)
		echo "$n" >>"resumed.$PREEMPT_TASK"
		[ ! -e terminate ] || { kill -TERM "$PPID"; sleep 30; }
		! grep -qx "$n" poison
	TRAINER
	chmod +x trainer
	echo 30 >poison
}
save_step() { echo "$1" >"$(ckpt-rotate begin ck "$1")/n" && ckpt-rotate commit -q ck "$1"; }

# train CODE N: a start with --max-bad-restarts N ends with CODE.
train() { run "-$1" --separate-stderr preempt-run -n 3 --kill-after 200ms --max-bad-restarts "$2" --checkpoints ck -- ./trainer; }
# The newest that is offered is this.
offered() { [ "$(ckpt-rotate latest ck --step 2>/dev/null)" = "$1" ]; }

@test "after N failed restarts from a checkpoint it is marked as bad, and all resume the one before" {
	three_checkpoints
	train 1 2
	train 1 2
	offered 30
	train 0 2
	[[ $stderr == *"ck/step-00000030: 2 restarts from it have failed; it is marked as bad"* ]]
	for task in 0 1 2; do [ "$(tr '\n' ' ' <resumed.$task)" = "30 30 20 " ]; done
	run -0 --separate-stderr ckpt-rotate latest ck --step
	[ "$output" = 20 ]
	[[ $stderr == *"2 restarts from it failed"* ]]
	# Saved again it has its own count.
	save_step 30
	train 1 2
	train 1 2
	offered 30
	train 0 2
	offered 20
}

@test "without the option nothing is marked; a restart that was preempted is no failure" {
	three_checkpoints
	for _ in 1 2 3; do
		run -1 preempt-run --checkpoints ck -- ./trainer
	done
	offered 30
	train 1 4
	: >terminate
	train 43 5
	rm terminate
	train 1 5
	offered 30
	train 0 5
	offered 20
}

@test "one after the other is given up, but never the last complete one" {
	three_checkpoints
	printf '%s\n' 10 20 30 >poison
	for _ in 1 2 3 4; do train 1 1; done
	[ "$(tr '\n' ' ' <resumed.0)" = "30 20 10 10 " ]
	[[ $stderr == *"no other complete checkpoint"* ]]
	offered 10
}

@test "a prune that removes the others while the last one is marked: the mark is removed" {
	three_checkpoints
	train 1 1
	: >trace
	# Leak checks do not work under strace.
	export ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0
	strace -f -o trace -P "$PWD/ck/step-00000030/.ckpt-bad.json" -e trace=fsync -e inject=fsync:signal=STOP:when=1 \
		preempt-run -n 3 --max-bad-restarts 1 --checkpoints ck -- ./trainer 2>err 3>&- &
	started+=($!)
	eventually grep -q 'stopped by SIGSTOP' trace
	frozen=$(awk '/stopped by SIGSTOP/ {print $1; exit}' trace)
	[ -e ck/step-00000030/.ckpt-bad.json ]
	rm -r ck/step-000000[12]0
	goes_on() { ! kill -CONT "$frozen" 2>/dev/null; }
	eventually goes_on
	frozen=
	code_of "${started[0]}"
	[ "$code" = 1 ]
	grep 'no other complete checkpoint' err
	offered 30
}

@test "a framework's checkpoint is given up, too: the mark is beside it" {
	framework hf ck 10 20
	three() { run "-$1" --separate-stderr preempt-run --run r --max-bad-restarts 1 --checkpoints ck -- sh -c 'echo "$PREEMPT_RESUME" >resumed; exit '"$1"; }
	three 1
	three 0
	[ "$(cat resumed)" = ck/checkpoint-10 ]
	[[ $stderr == *"ck/checkpoint-20: 1 restarts from it have failed; it is marked as bad"* ]]
	[ -e ck/.ckpt-bad-20 ]
}
