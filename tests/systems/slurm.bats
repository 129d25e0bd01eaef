#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The main job under a real Slurm: examples/sbatch.sh runs a training on four nodes, a job of higher
# priority preempts it, all tasks save one step in the grace time, the job is requeued and finishes,
# and the model is the same to the bit as one that ran through. Needs root, slurm-wlm and munge.
# takes: 200
# asan: no (two minutes, mostly Slurm's; the programs' own tests have it)
# shellcheck disable=SC2016,SC2030,SC2031

bats_require_minimum_version 1.5.0
load ../support/slurm

rig=$BATS_TEST_DIRNAME/../support/slurm

setup_file() {
	local root out
	root=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	out=${OUT:-$root/build/plain}
	PATH=${BIN:-$root/bin}:$out/examples:$PATH
	export PATH
	[ -x "$out/examples/train" ] || make -s -C "$root" build/plain/examples/train >&2
	slurm_start --grace 20 --kill-wait 10
	# All four nodes are this machine, so that a store in /tmp is seen by all.
	export PREEMPT_MACHINES=1
	# The training that no task interrupts: by Slurm, too, but without the tools.
	mkdir "$BATS_FILE_TMPDIR/reference"
	srun -N4 -n4 train --dir "$BATS_FILE_TMPDIR/reference" "${training[@]}" --step-ms 0 --no-board \
		--done-model "$BATS_FILE_TMPDIR/reference/model" >&2
}

teardown_file() {
	slurm_stop
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	mkdir job
	export PREEMPT_STORE=$BATS_TEST_TMPDIR/store.db
	export PREEMPT_GRACE=0 # saved at once, so that these small trainings are not finished in the grace
	here=$SLURM_CONF
	other=
}

teardown() {
	if [ -z "${BATS_TEST_COMPLETED:-}" ]; then
		head -n 1000 "$BATS_TEST_TMPDIR"/*.out >&2 || :
		preempt-store list run/ >&2 || :
	fi
	slurm_dump_logs
	if [ -n "$other" ]; then
		[ -n "${BATS_TEST_COMPLETED:-}" ] || "$rig" logs "$other" >&2
		"$rig" stop "$other"
		export SLURM_CONF=$here
	fi
	slurm_cancel_all
}

# Small, and slow enough to be interrupted in the middle: a minute or more; started again, it hurries.
training=(--hidden 32 --batch 64 --steps 600 --step-ms 100 --save-every 20)
hurry='[ -z "${SLURM_RESTART_COUNT-}" ] || set -- "$@" --step-ms 0; exec train "$@"'

# Another rig, for this test only.
other_rig() {
	local lines asked=()
	[ "$1" != --proctrack ] || asked=("$1" "$2")
	run "$rig" usable "${asked[@]}"
	[ "$status" -eq 0 ] || skip "$output"
	other=$(slurm_new_dir)
	lines=$("$rig" start "$other" --grace 20 --kill-wait 10 "$@") || return
	eval "$lines"
}

# submit [OPTION...] [-- OPTION OF TRAIN...]: the job; its id is in $job, what it says in job.out.
submit() {
	local options=()
	while [ $# -gt 0 ] && [ "$1" != -- ]; do options+=("$1") && shift; done
	[ $# -eq 0 ] || shift
	job=$(sbatch --parsable --output=job.out "${options[@]}" "$BATS_TEST_DIRNAME/../../examples/sbatch.sh" \
		sh -c "$hurry" train --dir job "${training[@]}" --done-model job/model "$@")
}

saved_once() { [ "$(ckpt-rotate latest job/ckpt --step --or 0 2>/dev/null)" -gt 0 ]; }
key() { preempt-store get "run/slurm-$job/$(printf %06d "$1")/$2"; } # of attempt $1
attempts() { preempt-store list "run/slurm-$job/" | grep -c '/OPEN$'; }
restarts() { scontrol show job "$job" | sed -n 's/.* Restarts=\([0-9]*\).*/\1/p'; }
agreed_step() { key 1 RUN_TO_CHECKPOINT | sed -n 's/.*"step": *\([0-9]*\).*/\1/p'; }

# One attempt was interrupted: four saves at one step in the middle, which was its last and not its first,
# and all left with 42.
saved_together() {
	local task step first saved
	until_true 90 key 1 CLOSED
	step=$(agreed_step)
	echo "agreed: $(key 1 RUN_TO_CHECKPOINT)"
	first=$(sed '/^resumed /,$d' job.out)
	mapfile -t saved < <(sed -n 's/^saved step \([0-9]*\)$/\1/p' <<<"$first")
	[ "${#saved[@]}" -ge 2 ] && [ "${saved[-1]}" = "$step" ]
	[[ $first != *"done step"* ]]
	for task in 0 1 2 3; do
		key 1 "RECEIVED_SIGNAL_RUN_TO_CHECKPOINT_$task"
		[[ $(key 1 "SAVED/1/$task") == *"\"step\":$step,"* ]]
		grep -q "task $task: Exited with exit code 42" job.out
	done
	grep -qx "saved step $step" job.out
}

# It was requeued once, went on from that step, finished, and the model is the same.
finished_the_same() {
	slurm_wait_state "$job" COMPLETED 180
	saved_together
	[ "$(restarts)" = 1 ]
	[ "$(attempts)" = 2 ]
	grep "^resumed at step $(agreed_step) " job.out
	[ "$(grep -c '^resumed ' job.out)" = 1 ]
	grep '^done step 600 ' job.out
	cmp job/model "$BATS_FILE_TMPDIR/reference/model"
}

# Two checkpoints, one of them at the end of the grace.
saved_and_trained_on() {
	[[ $(key 1 RUN_TO_CHECKPOINT) == *'"kind":"save"'* ]] &&
		[[ $(key 1 LAST_RUN_TO_CHECKPOINT/2) == *'"kind":"exit"'* ]] &&
		[ "$(preempt-store list "run/slurm-$job/000001/SAVED/" | wc -l)" = 8 ]
}

# not_held_up COMMAND...: for what Slurm's grace of 20 s decides. A machine that stands still in it does
# so once; then a new job.
not_held_up() {
	"$@" && return
	echo "once more, with a new job" >&2
	slurm_cancel_all
	rm -rf job store.db*
	mkdir job
	"$@"
}

@test "preempted, saved at one step, requeued, finished: bit-identical (linuxproc: TERM to the whole tree)" {
	submit --
	until_true 90 saved_once
	slurm_preempt
	finished_the_same
}

trained_in_the_grace() {
	submit -- --steps 5000
	until_true 90 saved_once
	slurm_preempt
	until_true 90 number_of_restarts 1
	cat job.out
	grep -E 'the job is preempted' job.out &&
		saved_and_trained_on &&
		# Of the 20 s most were used, and none of them too many.
		grep -E ' (1[5-9]|20)\.[0-9] s of grace: ([5-9]|1[0-9])\.[0-9] s of training, .* s left' job.out &&
		[ "$(grep -c 'exit code 42' job.out)" -ge 4 ]
}

@test "PH-4: the grace time is asked from Slurm and trained in: two checkpoints, requeued" {
	unset PREEMPT_GRACE
	not_held_up trained_in_the_grace
}

@test "the same with proctrack/pgid: TERM to the process group of preempt-run" {
	other_rig --proctrack pgid
	submit --
	until_true 90 saved_once
	slurm_preempt
	finished_the_same
}

@test "the same with proctrack/cgroup: TERM to preempt-run only" {
	other_rig --proctrack cgroup
	submit --
	until_true 90 saved_once
	slurm_preempt
	finished_the_same
}

# The small programs instead of preempt-run.
submit_composed() {
	printf '%s\n' '#!/bin/bash' "exec preempt-requeue -- srun '$BATS_TEST_DIRNAME/../../examples/composed.sh' \"\$@\"" >composed.sbatch
	job=$(sbatch --parsable --output=job.out --nodes=4 --ntasks-per-node=1 --requeue --open-mode=append \
		composed.sbatch sh -c "$hurry" train --dir job "${training[@]}" --done-model job/model)
}

@test "composed, linuxproc: TERM to the whole tree of each task: saved at one step, requeued, finished" {
	submit_composed
	until_true 90 saved_once
	slurm_preempt
	finished_the_same
}

@test "composed, pgid: TERM to the process group of the script" {
	other_rig --proctrack pgid
	submit_composed
	until_true 90 saved_once
	slurm_preempt
	finished_the_same
}

@test "composed, cgroup: TERM to the script only" {
	other_rig --proctrack cgroup
	submit_composed
	until_true 90 saved_once
	slurm_preempt
	finished_the_same
}

@test "srun -K, which kills all when the first leaves, does not spoil their saves" {
	export SLURM_KILL_BAD_EXIT=1
	submit -- --save-seconds 2
	until_true 90 saved_once
	slurm_preempt
	until_true 90 number_of_restarts 1
	saved_together
	cat job.out
	grep -q 'Terminating' job.out # by srun: -K was in force
}

@test "one task is slow: all wait for it, in the grace" {
	submit -- --slow-task 2:100
	until_true 90 saved_once
	slurm_preempt
	until_true 90 number_of_restarts 1
	saved_together
}
number_of_restarts() { [ "$(restarts)" = "$1" ]; }

@test "USR2 before the time limit, as to any process, is a notice, too" {
	# Slurm looks only now and then, and sends it up to a minute early.
	submit --time=2 --signal=USR2@120 -- --steps 5000
	until_true 90 number_of_restarts 1
	cat job.out
	grep -q 'notice: signal:USR2' job.out
	[[ $(key 1 "SAVED/1/0") == *"\"step\":$(agreed_step),"* ]]
}

told_by_usr1() {
	submit --signal=USR1@30 -- --steps 5000
	until_true 90 saved_once
	slurm_preempt
	until_true 90 number_of_restarts 1
	cat job.out
	grep -q 'notice: signal:USR1' job.out && saved_and_trained_on
}

@test "preempt_send_user_signal: the signal of --signal instead of TERM is a notice with Slurm's grace, too" {
	unset PREEMPT_GRACE
	local lines
	other=$(slurm_new_dir)
	lines=$("$rig" start "$other" --grace 20 --kill-wait 10 --set SlurmctldParameters=preempt_send_user_signal)
	eval "$lines"
	not_held_up told_by_usr1
}

@test "scancel: saved in the time it leaves, and never requeued" {
	submit --
	until_true 90 saved_once
	scancel "$job"
	slurm_wait_state "$job" CANCELLED 90
	until_true 90 key 1 CLOSED
	cat job.out
	grep -q "^saved step $(agreed_step)" job.out
	until_true 90 slurm_idle
	[ "$(restarts)" = 0 ]
	slurm_is "$job" CANCELLED
}

@test "scancel -s TERM of the steps: saved and run again, as the user asked" {
	submit --
	until_true 90 saved_once
	scancel --signal=TERM "$job"
	until_true 90 number_of_restarts 1
	saved_together
}

@test "KILL of the process group (pgid) takes the command of preempt-run with it" {
	other_rig --proctrack pgid
	submit --
	until_true 90 saved_once
	scancel --signal=KILL "$job"
	until_true 90 slurm_idle
	run -1 pgrep -f -- "train --dir job ${training[*]}"
	[ ! -e job/model ]
}

@test "a batch shell in place of a task is refused with 2; the message names the cure" {
	sbatch --parsable --wait --nodes=4 --output=job.out --wrap 'preempt-run -- touch job/started; echo "code $?"'
	cat job.out
	grep -q 'prefix srun' job.out
	grep -qx 'code 2' job.out
	[ ! -e job/started ]
	[ ! -e "$PREEMPT_STORE" ]
}

@test "preempt-store doctor --nodes 2 under srun: the nodes of one step meet, those of two do not mix" {
	local step
	mkdir -m 700 place
	for step in one two; do
		srun -N2 -n2 preempt-store doctor "$PWD/place" --nodes 2 --quick --timeout 120s --json >$step 3>&- &
	done
	wait
	for step in one two; do
		cat $step
		[ "$(wc -l <$step)" = 1 ]
		grep -q '^{"verdict":"safe","exit":0,.*"form":"nodes"' $step
		[ "$(grep -o '"host":' $step | wc -l)" = 2 ]
	done
	[ -z "$(ls -A place)" ]
}

@test "preempt-store join as the TaskProlog of a site: nothing in the batch shell, each task of a step joins" {
	local program
	program=$(type -P preempt-store)
	printf '#!/bin/sh\n"%s" join --timeout 5m\nexit\n' "$program" >prolog
	chmod 755 prolog
	other_rig --set "TaskProlog=$PWD/prolog"
	sbatch --parsable --wait --nodes=2 --ntasks=2 --output=job.out --wrap '
		echo "batch ${PREEMPT_ATTEMPT-none}"
		srun sh -c "
			[ \"\$PREEMPT_AGENT\" = \$\$ ] && [ -d \"\$PREEMPT_DIR\" ] &&
				echo \"task \$PREEMPT_TASK of \$PREEMPT_TASKS, attempt \$PREEMPT_ATTEMPT, \$PREEMPT_SIGNALS\"
			preempt-store leave --code 0"'
	cat job.out
	grep -qx 'batch none' job.out
	for task in 0 1; do grep -qx "task $task of 2, attempt 1, TERM,USR1,USR2,XCPU,PWR" job.out; done
	[[ $(preempt-store list --values run/) = *CLOSED*completed* ]]
}

@test "join in the TaskProlog and leave in the TaskEpilog: how the tasks ended is the job's own code" {
	local program
	program=$(type -P preempt-store)
	printf '#!/bin/sh\n"%s" join --timeout 5m\nexit\n' "$program" >prolog
	printf '#!/bin/sh\n"%s" leave >>%s/epilog.out 2>&1\necho $? >>%s/epilog.out\n' "$program" "$PWD" "$PWD" >epilog
	chmod 755 prolog epilog
	other_rig --set "TaskProlog=$PWD/prolog" --set "TaskEpilog=$PWD/epilog"
	sbatch --parsable --wait --nodes=2 --ntasks=2 --output=job.out --wrap 'srun sh -c "exit 3"' || :
	cat job.out epilog.out
	# Those of the two tasks, and that of the batch shell, which prints nothing.
	[ "$(sort epilog.out)" = $'0\n0\n0\n0\n0' ]
	[[ $(preempt-store list --values run/) = *CLOSED*'"state":"left"'* ]]
}
