#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Examples that no other file runs. loop.c, loop.py, loop.sh: loops.bats; sbatch.sh: slurm.bats; ddp.py: ddp.bats;
# train.c: train.bats; composed.sh: composed.bats; heartbeat.sh: heartbeat.bats; sweep.sh: queue_examples.bats;
# fan-out.sh: slurm_queue.bats; prolog.sh: doctor.bats; two-tiers.sh: ckpt_tiers.bats; cron and systemd: ckpt_keep.bats.
# takes: 60
# shellcheck disable=SC2016,SC2017,SC2030,SC2031 # text of another shell; the arithmetic of loop.sh

bats_require_minimum_version 1.5.0
load ../support/programs

setup() {
	ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	EXAMPLES=$ROOT/examples
	PATH=${BIN:-$ROOT/bin}:$PATH
	cd "$BATS_TEST_TMPDIR" || return
	unset "${!PREEMPT_@}" "${!SLURM_@}" RANK WORLD_SIZE LOCAL_RANK JOB_COMPLETION_INDEX
	export PREEMPT_STORE=$PWD/s.db PREEMPT_RUN=r XDG_RUNTIME_DIR=$PWD
	export PREEMPT_GRACE=0 # saved at once
	# The frameworks are stand-ins; what the tests of ckpt-rotate write checkpoints with is in layouts.
	export PYTHONPATH=$EXAMPLES/callbacks:$ROOT/lib/client:$ROOT/tests/support/frameworks:$ROOT/tests/support/layouts
	job='' server='' pods=()
	mkdir out
}

teardown() {
	for pid in $job $server "${pods[@]}"; do
		kill -KILL "$pid" 2>/dev/null || :
		wait "$pid" 2>/dev/null || :
	done
	[ -n "${BATS_TEST_COMPLETED-}" ] || tail -n 30 err ./*.err events.* 2>/dev/null >&2 || :
	[ -z "${stderr-}" ] || echo "$stderr" >&2
}

# ---- callbacks of frameworks ----

trains() { [ "$(cat events.0 events.1 | grep -c "^$1 [1-9]")" -ge 20 ]; }

# preempted LAYOUT EVENT: two tasks train, are preempted, and leave with 42; step is where they saved.
preempted() {
	local code=0
	STEPS=1000000 preempt-run -n 2 --checkpoints "out:$1" -- python3 train.py >log 2>err 3>&- &
	job=$!
	until_true 20 trains "$2"
	kill -TERM "$job"
	wait "$job" || code=$?
	job=
	[ "$code" = 42 ]
	[ ! -s log ]
	step=$(ckpt-rotate latest --layout "$1" --step out)
	grep "preempted: .*saved at step $step" err || grep "saved.* step $step" err
}

# resumed LAYOUT: from there, to what an uninterrupted training comes to.
resumed() {
	local end=$((step + 21)) # a multiple of three optimizers, too
	STEPS=$end run -0 --separate-stderr preempt-run -n 2 --checkpoints "out:$1" -- python3 train.py
	echo "$output"
	[ "${#lines[@]}" = 2 ]
	[[ ${lines[0]} == "from $step to $end: "* ]]
	[ "${lines[0]}" = "${lines[1]}" ]
	rm -r out events.*
	mkdir out
	STEPS=$end python3 train.py >alone 2>/dev/null
	[ "${lines[0]#from "$step" }" = "$(sed "s/from 0 //" alone)" ]
}

@test "callbacks/preempt_hf.py: two tasks save at one step, leave with 42 and go on from there" {
	cat >train.py <<-'END'
		import os
		from preempt_hf import PreemptCallback
		from transformers import Trainer, TrainingArguments
		arguments = TrainingArguments(output_dir="out", max_steps=int(os.environ["STEPS"]))
		trainer = Trainer(args=arguments, callbacks=[PreemptCallback()])
		resume = os.environ.get("PREEMPT_RESUME")
		trainer.train(resume_from_checkpoint=resume)
		begin = resume.rpartition("-")[2] if resume else 0
		print(f"from {begin} to {trainer.state.global_step}: {trainer.weights}")
	END
	preempted hf step_end
	for task in 0 1; do
		# No evaluation before the save, and nothing after it: neither the end of the epoch nor that of the training.
		[ "$(tail -n 1 events.$task)" = "save $step" ]
		! grep "^evaluate $step$" events.$task
		grep -q "^evaluate $((step - 1))$" events.$task
	done
	resumed hf
}

@test "callbacks/preempt_lightning.py: two tasks save at one step, leave with 42 and go on from there" {
	cat >train.py <<-'END'
		import os
		from lightning.pytorch import Trainer
		from preempt_lightning import PreemptCallback
		optimizers = int(os.environ.get("OPTIMIZERS", 1))
		trainer = Trainer(max_steps=int(os.environ["STEPS"]), callbacks=[PreemptCallback("out")], optimizers=optimizers)
		resume = os.environ.get("PREEMPT_RESUME")
		trainer.fit(None, ckpt_path=resume)
		begin = resume.rpartition("=")[2].partition(".")[0] if resume else 0
		print(f"from {begin} to {trainer.global_step}: {trainer.weights}")
	END
	local OPTIMIZERS
	for OPTIMIZERS in 1 3; do
		export OPTIMIZERS
		rm -rf out events.* s.db*
		mkdir out
		preempted lightning train_batch_end
		[ "$((step % OPTIMIZERS))" = 0 ]
		for task in 0 1; do
			# At the batch that ends a step of the optimizer; then nothing but the end.
			[ "$(tail -n 1 events.$task)" = "exception $step $((step / OPTIMIZERS * 2))" ]
			! grep "^validation_start" events.$task
		done
		step=$step resumed lightning
	done
}

@test "callbacks: without an agent they do nothing, and the training finishes" {
	printf '%s\n' 'from preempt_hf import PreemptCallback' 'from transformers import Trainer, TrainingArguments' \
		'Trainer(args=TrainingArguments("out", 9), callbacks=[PreemptCallback()]).train()' >train.py
	run -0 python3 train.py
	grep -q 'train_end 9' events.0
	printf '%s\n' 'from preempt_lightning import PreemptCallback' 'from lightning.pytorch import Trainer' \
		'Trainer(9, [PreemptCallback("out")]).fit(None)' >train.py
	run -0 python3 train.py
	grep -q 'fit_end 9' events.0
	[ ! -e out/step=9.ckpt ]
}

# ---- what runs loop.sh ----

# boards_of N: N tasks have finished a step, as they told their agents.
boards_of() { [ "$(find . -name step -exec grep -l '^0*[1-9]' {} + | wc -l)" = "$1" ]; }
# expected STEPS [TASKS]: what the loops print at the end.
expected() {
	local i state=0
	for ((i = 0; i < $1; i++)); do state=$(((state * 31 + i) % 1000003)); done
	for ((i = 0; i < ${2-2}; i++)); do echo "task $i: $state"; done
}

# ---- Slurm, Kubernetes, AWS ----

# A training of a container or a spot machine.
write_training() {
	cat >train.sh <<-END
		#!/bin/bash
		echo "\$PREEMPT_TASK of \$PREEMPT_TASKS" >>starts
		PREEMPT_SH=$ROOT/lib/client/preempt.sh exec $EXAMPLES/loop.sh $1 \$(cat steps)
	END
	chmod +x train.sh
	echo 1000000 >steps
}

need_yaml() {
	python=/usr/bin/python3
	$python -c 'import yaml, jsonschema' 2>/dev/null || skip "no python3-yaml, python3-jsonschema"
}

@test "job.yaml: the API of Kubernetes knows all its fields; misspelt ones are noticed" {
	need_yaml
	check() { $python "$ROOT/tests/support/frameworks/job.py" "$1"; }
	run -0 check "$EXAMPLES/job.yaml"
	[ -z "$output" ]
	local change
	for change in s/completionMode/completionmode/ s/podFailurePolicy/podFailurePolicies/ 's/value: "4"/value: 4/' \
		s/Indexed/indexed/ s/42,/0,/ 's/action: Ignore/action: ignore/' s/Never/OnFailure/ 's/claimName/name/' \
		's/terminationGracePeriodSeconds: 120/terminationGracePeriodSeconds: 2m/' '0,/name: shared$/s//name: other/'; do
		sed "$change" "$EXAMPLES/job.yaml" >wrong.yaml
		! cmp -s wrong.yaml "$EXAMPLES/job.yaml"
		run -1 check wrong.yaml
		[ -n "$output" ]
	done
}

@test "job.yaml: its four pods, one is evicted: all leave with 42, and run again" {
	need_yaml
	# What the kubelet would start; /shared is here.
	$python - "$EXAMPLES/job.yaml" >pod <<-'END'
		import shlex, sys, yaml
		spec = yaml.safe_load(open(sys.argv[1]))["spec"]
		container = spec["template"]["spec"]["containers"][0]
		environment = {pair["name"]: pair["value"] for pair in container["env"]}
		assert environment["PREEMPT_TASKS"] == str(spec["completions"]) == str(spec["parallelism"])
		print(shlex.join(["env", *(f"{k}={v}" for k, v in environment.items()), *container["command"]]))
	END
	sed -i "s|/shared|$PWD|g; s|110s|0|" pod # saved at once
	mkdir ck
	write_training ck
	export PREEMPT_MACHINES=1 # all nodes are this machine
	pods() {
		pods=()
		for i in 0 1 2 3; do
			JOB_COMPLETION_INDEX=$i bash -c "exec $(cat pod)" >>log 2>>err 3>&- &
			pods+=($!)
		done
	}
	all_left() {
		local pod code
		for pod in "${pods[@]}"; do
			code=0
			wait "$pod" || code=$?
			[ "$code" = "$1" ]
		done
		pods=()
	}
	pods
	eventually boards_of 4
	kill -TERM "${pods[2]}"
	all_left 42
	ckpt-rotate latest ck --step >steps
	pods
	all_left 0
	[ "$(sort log)" = "$(expected "$(cat steps)" 4)" ]
	[ "$(sort starts | uniq -c | sed 's/^ *//')" = "$(printf '2 %d of 4\n' 0 1 2 3)" ]
}

@test "aws-spot.sh: the machine is to be taken: saved, and left for the next machine, which finishes" {
	mkdir cloud
	"$ROOT/tests/support/metadata" cloud >url 2>server.err 3>&- &
	server=$! # teardown ends it
	eventually [ -s url ]
	PREEMPT_AWS_METADATA=$(<url)
	export PREEMPT_AWS_METADATA TASKS=2
	unset PREEMPT_STORE PREEMPT_RUN
	write_training efs/ck
	"$EXAMPLES/aws-spot.sh" efs ./train.sh >log 2>err 3>&- &
	job=$!
	eventually boards_of 2
	printf '{"action":"terminate","time":"{IN:120}"}' >cloud/.new
	mv cloud/.new cloud/aws.spot
	wait "$job"
	job=
	grep -q 'notice: aws' err
	step=$(ckpt-rotate latest efs/ck --step)
	[ ! -s log ]
	rm cloud/aws.spot
	echo $((step + 10)) >steps
	run -0 --separate-stderr "$EXAMPLES/aws-spot.sh" efs ./train.sh
	[ "$(sort <<<"$output")" = "$(expected $((step + 10)))" ]
}

@test "task-prolog.sh: a job has a store of its own; one that names a store keeps it" {
	unset PREEMPT_STORE
	export PREEMPT_SHARED=$PWD/out SLURM_JOB_ID=17
	run -0 "$EXAMPLES/task-prolog.sh"
	[ "$output" = "export PREEMPT_STORE=$PWD/out/$(id -un)/17.db" ]
	[ "$(stat -c %a "out/$(id -un)")" = 700 ]
	PREEMPT_STORE=x run -0 "$EXAMPLES/task-prolog.sh"
	[ -z "$output" ]
	: >file
	PREEMPT_SHARED=$PWD/file run -0 --separate-stderr "$EXAMPLES/task-prolog.sh"
	[ "$output" = "print task-prolog: cannot make $PWD/file/$(id -un), so this job has no PREEMPT_STORE" ]
}
