#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The ways in which a Slurm tells a job that it must go, each with a rig of its own: TERM to a process group (pgid) or
# to one process (cgroup), signals that the user or the site has chosen, KILL; and examples/ddp.sbatch. What Slurm's
# own default does: slurm.bats. Needs root, slurm-wlm and munge.
# soak (each starts a cluster, and Slurm sends some signals only after a minute)
# takes: 250
# asan: no (mostly Slurm's time; the programs' own tests have it)
# shellcheck disable=SC2016,SC2034 # text for other shells; patience

load ../support/slurm

# rig OPTION...: a cluster for this test.
rig() {
	slurm_start --grace 20 --kill-wait 10 "$@"
	local conf=$SLURM_CONF rig=$SLURM_RIG
	slurm_training
	export SLURM_CONF=$conf SLURM_RIG=$rig
	patience=360
}

teardown() {
	slurm_end_test
	slurm_stop
}

@test "proctrack/pgid: TERM to the process group of preempt-run, and of the script of composed programs" {
	rig --proctrack pgid
	submit
	preempted_and_finished
	rm -rf job job.out
	mkdir job
	submit_composed
	preempted_and_finished
}

@test "proctrack/cgroup: TERM to preempt-run only, and to the script only" {
	rig --proctrack cgroup
	submit
	preempted_and_finished
	rm -rf job job.out
	mkdir job
	submit_composed
	preempted_and_finished
}

@test "KILL of the process group (pgid) takes the command of preempt-run with it" {
	rig --proctrack pgid
	submit
	eventually saved_once
	scancel --signal=KILL "$job"
	eventually slurm_idle
	run -1 pgrep -f -- "train --dir job ${training[*]}"
	[ ! -e job/model ]
}

@test "USR2 before the time limit, as to any process, is a notice, too" {
	rig
	# Slurm looks only now and then, and sends it up to a minute early.
	submit --time=2 --signal=USR2@120 -- --steps 5000
	eventually slurm_restarted "$job" 1
	grep 'notice: signal:USR2' job.out
	[[ $(key 1 "SAVED/1/0") == *"\"step\":$(agreed_step),"* ]]
}

@test "preempt_send_user_signal: the signal of --signal instead of TERM is a notice with Slurm's grace, too" {
	rig --set SlurmctldParameters=preempt_send_user_signal
	unset PREEMPT_GRACE
	submit --signal=USR1@30 -- --steps 5000
	eventually saved_once
	slurm_preempt
	eventually slurm_restarted "$job" 1
	grep 'notice: signal:USR1' job.out
	[[ $(key 1 RUN_TO_CHECKPOINT) == *'"kind":"save"'* && $(key 1 LAST_RUN_TO_CHECKPOINT/2) == *'"kind":"exit"'* ]]
}

@test "scontrol is out of reach: the script stays, and Slurm requeues the preempted job itself" {
	rig
	mkdir none
	printf '#!/bin/sh\necho "Unable to contact slurm controller" >&2\nexit 1\n' >none/scontrol
	chmod +x none/scontrol
	job=$(PATH=$PWD/none:$PATH sbatch --parsable --nodes=4 --requeue --open-mode=append --output=job.out --wrap \
		"exec preempt-requeue --timeout 1s -- srun preempt-run -- sh -c '$hurry' train --dir job ${training[*]}")
	eventually saved_once
	slurm_preempt
	eventually slurm_restarted "$job" 1
	grep 'staying for at most 300 s' job.out
	slurm_wait_state "$job" COMPLETED
}

@test "examples/ddp.sbatch: four ranks under Slurm, preempted, requeued and resumed with the same weights" {
	/usr/bin/python3 -c 'import torch.distributed' 2>/dev/null || skip "no PyTorch: apt-get install python3-torch"
	rig
	# Debian's Python comes first: it has the package. The machine's own name may have no address that gloo can use.
	export PATH=${PATH%%:*}:/usr/bin:$PATH PYTHONPATH=$REPO/lib/client GLOO_SOCKET_IFNAME=lo
	cat >train.py <<-END
		import os, runpy
		os.environ["STEP_SECONDS"] = "0" if os.environ.get("PREEMPT_RESUME") else "0.1"
		runpy.run_path("$REPO/examples/ddp.py", run_name="__main__")
	END
	job=$(sbatch --parsable --output=job.out "$REPO/examples/ddp.sbatch" train.py "$PWD/ck" 200)
	eventually grep -q '^saved step' job.out
	scancel --signal=TERM "$job"
	slurm_wait_state "$job" COMPLETED
	from=$(grep '^start at step [1-9]' job.out)
	[ "$(grep -c '^start at step' job.out)" = 2 ]
	grep -Fqx "saved ${from#start at }" job.out
	grep -q '^done step 200 ' job.out
}
