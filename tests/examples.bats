#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Examples that no other file runs. sbatch.sh: slurm.bats; ddp.py: ddp.bats; train.c: train.bats; composed.sh:
# composed.bats; heartbeat.sh: heartbeat.bats; sweep.sh: queue_examples.bats; fan-out.sh: slurm_queue.bats; prolog.sh:
# doctor.bats; two-tiers.sh: ckpt_tiers.bats; cron and systemd: ckpt_keep.bats.
# takes: 20
# shellcheck disable=SC2016,SC2030,SC2031 # text of another shell

bats_require_minimum_version 1.5.0
load eventually

setup() {
	ROOT=$(cd "$BATS_TEST_DIRNAME/.." && pwd)
	EXAMPLES=$ROOT/examples
	PATH=${BIN:-$ROOT/bin}:$PATH
	cd "$BATS_TEST_TMPDIR" || return
	unset "${!PREEMPT_@}" "${!SLURM_@}" RANK WORLD_SIZE LOCAL_RANK JOB_COMPLETION_INDEX
	export PREEMPT_STORE=$PWD/s.db PREEMPT_RUN=r XDG_RUNTIME_DIR=$PWD
	# The frameworks are stand-ins; what the tests of ckpt-rotate write checkpoints with is in layouts.
	export PYTHONPATH=$EXAMPLES/callbacks:$ROOT/lib/client:$ROOT/tests/frameworks:$ROOT/tests/layouts
	job=
	mkdir out
}

teardown() {
	[ -z "$job" ] || kill -KILL "$job" 2>/dev/null || :
	[ -n "${BATS_TEST_COMPLETED-}" ] || tail -n 30 err ./*.err events.* 2>/dev/null >&2 || :
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

# bats test_tags=smoke
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
