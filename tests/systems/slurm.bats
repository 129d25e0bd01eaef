#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The main job under a real Slurm: examples/sbatch.sh runs a training on four nodes, a job of higher
# priority preempts it, all tasks save one step in the grace time, the job is requeued and finishes,
# and the model is the same to the bit as one that ran through. Needs root, slurm-wlm and munge.
# takes: 80
# asan: no (mostly Slurm's time; the programs' own tests have it)
# shellcheck disable=SC2016,SC2034 # text for other shells; patience

load ../support/slurm

setup_file() {
	PATH=$(realpath "${BIN:-$REPO/bin}"):$(realpath "${OUT:-$REPO/build/plain}")/examples:$PATH
	export PATH
	# A site's prolog and epilog, for the jobs that name them.
	for hook in prolog epilog; do
		printf '#!/bin/sh\n[ ! -x "$SITE/%s" ] || exec "$SITE/%s"\n' $hook $hook >"$BATS_FILE_TMPDIR/$hook"
		chmod 755 "$BATS_FILE_TMPDIR/$hook"
	done
	slurm_start --grace 20 --kill-wait 10 --set "TaskProlog=$BATS_FILE_TMPDIR/prolog" --set "TaskEpilog=$BATS_FILE_TMPDIR/epilog"
	# The training that no task interrupts: by Slurm, too, but without the tools.
	mkdir "$BATS_FILE_TMPDIR/reference"
	srun -N4 -n4 train --dir "$BATS_FILE_TMPDIR/reference" --hidden 32 --batch 64 --steps 600 --save-every 20 --no-board \
		--done-model "$BATS_FILE_TMPDIR/reference/model" >&2
}

teardown_file() { slurm_stop; }
setup() {
	local conf=$SLURM_CONF rig=$SLURM_RIG
	slurm_training
	export SLURM_CONF=$conf SLURM_RIG=$rig
}
teardown() { slurm_end_test; }

@test "preempted, saved at one step, requeued, finished: bit-identical (linuxproc: TERM to the whole tree)" {
	submit
	preempted_and_finished
	cmp job/model "$BATS_FILE_TMPDIR/reference/model"
}

@test "composed, linuxproc: TERM to the whole tree of each task: saved at one step, requeued, finished" {
	submit_composed
	preempted_and_finished
	cmp job/model "$BATS_FILE_TMPDIR/reference/model"
}

# Two checkpoints, one of them at the end of the grace.
saved_and_trained_on() {
	[[ $(key 1 RUN_TO_CHECKPOINT) == *'"kind":"save"'* ]] &&
		[[ $(key 1 LAST_RUN_TO_CHECKPOINT/2) == *'"kind":"exit"'* ]] &&
		[ "$(preempt-store list "run/slurm-$job/000001/SAVED/" | wc -l)" = 8 ]
}

@test "PH-4: the grace time is asked from Slurm and trained in: two checkpoints, requeued" {
	unset PREEMPT_GRACE
	# A machine that stands still in Slurm's grace does so once; then a new job.
	for try in 1 2; do
		rm -rf job store.db*
		mkdir job
		submit -- --steps 5000
		patience=360 eventually saved_once
		slurm_preempt
		patience=360 eventually slurm_restarted "$job" 1
		! saved_and_trained_on || break
		scancel --me
	done
	saved_and_trained_on
	grep 'the job is preempted' job.out
	[ "$(grep -c 'exit code 42' job.out)" -ge 4 ]
}

@test "srun -K, which kills all when the first leaves, does not spoil their saves" {
	export SLURM_KILL_BAD_EXIT=1
	submit -- --save-seconds 2
	patience=360 eventually saved_once
	slurm_preempt
	patience=360 eventually slurm_restarted "$job" 1
	saved_together
	grep -q 'Terminating' job.out # by srun: -K was in force
}

@test "scancel: saved in the time it leaves, and never requeued" {
	submit
	patience=360 eventually saved_once
	scancel "$job"
	slurm_wait_state "$job" CANCELLED
	patience=360 eventually key 1 CLOSED
	grep -q "^saved step $(agreed_step)" job.out
	patience=360 eventually slurm_idle
	slurm_restarted "$job" 0
	slurm_is "$job" CANCELLED
}

@test "preempt-store doctor --nodes 2 under srun: the nodes of one step meet, those of two do not mix" {
	mkdir -m 700 place
	for step in one two; do
		srun -N2 -n2 preempt-store doctor "$PWD/place" --nodes 2 --quick --timeout 120s --json >$step 3>&- &
	done
	wait
	for step in one two; do
		cat $step
		[ "$(wc -l <$step)" = 1 ]
		grep -q '^{"verdict":"safe","exit":0,' $step
		[ "$(grep -o '"host":' $step | wc -l)" = 2 ]
	done
	[ -z "$(ls -A place)" ]
}

@test "join in the TaskProlog and leave in the TaskEpilog: nothing in the batch shell, each task of a step joins" {
	export SITE=$PWD
	printf '#!/bin/sh\n"%s" join --timeout 5m\nexit\n' "$(type -P preempt-store)" >prolog
	printf '#!/bin/sh\n"%s" leave >>%s/epilog.out 2>&1\necho $? >>%s/epilog.out\n' "$(type -P preempt-store)" "$PWD" "$PWD" >epilog
	chmod 755 prolog epilog
	sbatch --parsable --wait --nodes=2 --ntasks=2 --output=job.out --wrap '
		echo "batch ${PREEMPT_ATTEMPT-none}"
		srun sh -c "
			[ \"\$PREEMPT_AGENT\" = \$\$ ] && [ -d \"\$PREEMPT_DIR\" ] &&
				echo \"task \$PREEMPT_TASK of \$PREEMPT_TASKS, attempt \$PREEMPT_ATTEMPT, \$PREEMPT_SIGNALS\"
			exit 3"' || :
	cat job.out epilog.out
	grep -qx 'batch none' job.out
	for task in 0 1; do grep -qx "task $task of 2, attempt 1, TERM,USR1,USR2,XCPU,PWR" job.out; done
	# Those of the two tasks, and that of the batch shell, which prints nothing. How they ended is the job's own code.
	[ "$(sort epilog.out)" = $'0\n0\n0\n0\n0' ]
	[[ $(preempt-store list --values run/) = *CLOSED*'"state":"left"'* ]]
}
