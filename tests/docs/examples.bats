#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Examples that no other file runs. loop.c, loop.py, loop.sh: loops.bats; sbatch.sh, fan-out.sh: systems/slurm*.bats;
# ddp.py: systems/ddp.bats; composed.sh: composed.bats; heartbeat.sh: preempt-heartbeat.bats; sweep.sh: examples_queue.bats;
# prolog.sh: preempt-store-doctor.bats; two-tiers.sh: ckpt-rotate-tiers.bats; cron and systemd: ckpt-rotate-keep.bats.
# takes: 20
# shellcheck disable=SC2016,SC2017 # text of another shell; the arithmetic of loop.sh

bats_require_minimum_version 1.5.0
load ../support/programs

setup() {
	programs
	EXAMPLES=$REPO/examples
	export PREEMPT_RUN=r PREEMPT_GRACE=0 # saved at once
	# The frameworks are stand-ins; what the tests of ckpt-rotate write checkpoints with is in layouts.
	export PYTHONPATH=$EXAMPLES/callbacks:$REPO/lib/client:$REPO/tests/support/frameworks:$REPO/tests/support/layouts
	mkdir out
}

teardown() {
	end_started
	[ -n "${BATS_TEST_COMPLETED-}" ] || tail -n 30 err ./*.err events.* 2>/dev/null >&2 || :
	[ -z "${stderr-}" ] || echo "$stderr" >&2
}

# left_with CODE PID...: each ends with this code.
left_with() {
	local pid code
	for pid in "${@:2}"; do
		code_of "$pid"
		[ "$code" = "$1" ] || { echo "$pid ended with $code, not $1"; return 1; }
	done
}

# ---- Callbacks of frameworks ----

trains() { [ "$(cat events.0 events.1 | grep -c "^$1 [1-9]")" -ge 20 ]; }

# preempted LAYOUT EVENT: two tasks train, are preempted, and leave with 42; step is where they saved.
preempted() {
	STEPS=1000000 preempt-run -n 2 --checkpoints "out:$1" -- python3 train.py >log 2>err 3>&- &
	started+=($!)
	eventually trains "$2"
	kill -TERM $!
	left_with 42 $!
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
	export OPTIMIZERS=3
	preempted lightning train_batch_end
	[ $((step % 3)) = 0 ]
	for task in 0 1; do
		# At the batch that ends a step of the optimizer; then nothing but the end.
		[ "$(tail -n 1 events.$task)" = "exception $step $((step / 3 * 2))" ]
		! grep "^validation_start" events.$task
	done
	resumed lightning
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
		PREEMPT_SH=$REPO/lib/client/preempt.sh exec $EXAMPLES/loop.sh $1 \$(cat steps)
	END
	chmod +x train.sh
	echo 1000000 >steps
}

need_yaml() {
	python=/usr/bin/python3
	$python -c 'import yaml, jsonschema' 2>/dev/null || skip "no python3-yaml, python3-jsonschema"
}

@test "job.yaml: the API of Kubernetes knows all its fields" {
	need_yaml
	run -0 $python "$REPO/tests/support/frameworks/job.py" "$EXAMPLES/job.yaml"
	[ -z "$output" ]
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
		started=()
		for i in 0 1 2 3; do
			JOB_COMPLETION_INDEX=$i bash -c "exec $(cat pod)" >>log 2>>err 3>&- &
			started+=($!)
		done
	}
	pods
	eventually boards_of 4
	kill -TERM "${started[2]}"
	left_with 42 "${started[@]}"
	ckpt-rotate latest ck --step >steps
	pods
	left_with 0 "${started[@]}"
	[ "$(sort log)" = "$(expected "$(cat steps)" 4)" ]
	[ "$(sort starts | uniq -c | sed 's/^ *//')" = "$(printf '2 %d of 4\n' 0 1 2 3)" ]
}

@test "aws-spot.sh: the machine is to be taken: saved, and left for the next machine, which finishes" {
	mkdir cloud
	"$REPO/tests/support/metadata" cloud >url 2>server.err 3>&- &
	started+=($!)
	eventually [ -s url ]
	export PREEMPT_AWS_METADATA TASKS=2
	PREEMPT_AWS_METADATA=$(<url)
	unset PREEMPT_STORE PREEMPT_RUN
	write_training efs/ck
	"$EXAMPLES/aws-spot.sh" efs ./train.sh >log 2>err 3>&- &
	started+=($!)
	eventually boards_of 2
	printf '{"action":"terminate","time":"{IN:120}"}' >cloud/.new
	mv cloud/.new cloud/aws.spot
	left_with 0 "${started[1]}"
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
