# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# shellcheck disable=SC2013,SC2015,SC2016,SC2034,SC2119,SC2120 # pids; A && B || fail; text for other shells; the tests
# For bats files that need a Slurm cluster (tests/support/slurm) in $SLURM_RIG; SLURM_CONF points all commands to it:
#
#   load ../support/slurm
#   setup_file()    { slurm_start --grace 8; }     skips if no rig can run here
#   teardown_file() { slurm_stop; }
#   teardown()      { slurm_end_test; }            cancels all jobs; prints what there is after a failure

bats_require_minimum_version 1.5.0
. "$(dirname "${BASH_SOURCE[0]}")/programs.bash"

# slurm_start [OPTION]...: start a cluster, with the options of tests/support/slurm start.
slurm_start() {
	local lines parent=${TMPDIR:-/tmp} code=0
	# These tests may run in a job themselves: its variables must not reach ours.
	unset "${!SLURM_@}" "${!PREEMPT_@}" "${!SBATCH_@}" "${!SRUN_@}"
	# Do not use bats' deep directories: the path of a socket must be short.
	[ ${#parent} -le 50 ] || parent=/tmp
	SLURM_RIG=$(mktemp -d "$parent/slurm.XXXXXX")
	export SLURM_RIG
	lines=$("$REPO/tests/support/slurm" start "$SLURM_RIG" "$@" 2>"$SLURM_RIG.err") || code=$?
	cat "$SLURM_RIG.err" >&2
	[ $code != 77 ] || { rmdir "$SLURM_RIG" && skip "$(cat "$SLURM_RIG.err")"; }
	rm "$SLURM_RIG.err"
	eval "$lines"
	# All four nodes are this machine, so that a store in /tmp is seen by all.
	export PREEMPT_MACHINES=1
	return $code
}

# Nothing may be left: processes that name the rig, mounts, files.
slurm_stop() {
	local process
	[ -d "${SLURM_RIG:-/nonexistent}" ] || return 0
	"$REPO/tests/support/slurm" stop "$SLURM_RIG"
	for process in $(grep -lzsF "$SLURM_RIG/" /proc/[0-9]*/environ | cut -d/ -f3); do
		[ "$process" = "$$" ] || [ "$process" = "$BASHPID" ] || ps -o pid=,args= -p "$process"
	done >"$BATS_FILE_TMPDIR/left"
	grep -F "$SLURM_RIG" /proc/mounts >>"$BATS_FILE_TMPDIR/left" || :
	[ ! -s "$BATS_FILE_TMPDIR/left" ] && [ ! -e "$SLURM_RIG" ] || { cat "$BATS_FILE_TMPDIR/left" >&2; return 1; }
}

slurm_state() { squeue --noheader --states=all --jobs="$1" --format=%T 2>/dev/null; }
slurm_is() { [ "$(slurm_state "$1")" = "$2" ]; }
slurm_restarts() { scontrol show job "$1" | sed -n 's/.* Restarts=\([0-9]*\).*/\1/p'; }
slurm_restarted() { [ "$(slurm_restarts "$1")" = "$2" ]; }

# slurm_wait_state JOB STATE: wait until JOB is PENDING, RUNNING, COMPLETING, COMPLETED, PREEMPTED, ...
slurm_wait_state() {
	patience=600 eventually slurm_is "$1" "$2" || {
		echo "job $1 is $(slurm_state "$1"), not $2" >&2
		scontrol show job "$1" >&2
		return 1
	}
}

# slurm_preempt [SECONDS]: submit a job of high priority for all four nodes that takes SECONDS (0).
slurm_preempt() {
	sbatch --parsable --nodes=4 --partition=high --job-name=urgent --output=/dev/null \
		--wrap "srun sleep ${1:-0}"
}

slurm_idle() { [ "$(sinfo --noheader --partition=low --format=%t)" = idle ]; }

# Cancel all jobs, and wait until all nodes are free for the next test.
slurm_end_test() {
	[ -d "${SLURM_RIG:-/nonexistent}" ] || return 0
	if [ -z "${BATS_TEST_COMPLETED:-}" ]; then
		head -n 1000 "$BATS_TEST_TMPDIR"/*.out >&2 || :
		preempt-store list --values run/ >&2 || :
		squeue --states=all >&2 || :
		"$REPO/tests/support/slurm" logs "$SLURM_RIG" >&2
	fi
	scancel --me --quiet || :
	patience=480 eventually slurm_idle
}

# ---- A job of four nodes that is preempted in the middle ----

# slurm_training: this test's job, in the directory job.
slurm_training() {
	programs "$BATS_TEST_TMPDIR/store.db"
	PATH=$OUT/examples:$PATH
	export PREEMPT_MACHINES=1 PREEMPT_GRACE=0 # saved at once, so that these small trainings are not finished in the grace
	mkdir job
	# Small, and slow enough to be interrupted in the middle: a minute or more; started again, it hurries.
	training=(--hidden 32 --batch 64 --steps 600 --step-ms 100 --save-every 20)
	hurry='[ -z "${SLURM_RESTART_COUNT-}" ] || set -- "$@" --step-ms 0; exec train "$@"'
}

# submit [OPTION...] [-- OPTION OF TRAIN...]: the job; its id is in $job, what it says in job.out.
submit() {
	local options=()
	while [ $# -gt 0 ] && [ "$1" != -- ]; do options+=("$1") && shift; done
	[ $# -eq 0 ] || shift
	job=$(sbatch --parsable --output=job.out "${options[@]}" "$REPO/examples/sbatch.sh" \
		sh -c "$hurry" train --dir job "${training[@]}" --done-model job/model "$@")
}

# The same with the small programs instead of preempt-run.
submit_composed() {
	printf '%s\n' '#!/bin/bash' "exec preempt-requeue -- srun '$REPO/examples/composed.sh' \"\$@\"" >composed.sbatch
	job=$(sbatch --parsable --output=job.out --nodes=4 --ntasks-per-node=1 --requeue --open-mode=append \
		composed.sbatch sh -c "$hurry" train --dir job "${training[@]}" --done-model job/model)
}

key() { preempt-store get "run/slurm-$job/$(printf %06d "$1")/$2"; } # of attempt $1
agreed_step() { key 1 RUN_TO_CHECKPOINT | sed -n 's/.*"step": *\([0-9]*\).*/\1/p'; }
saved_once() { [ "$(ckpt-rotate latest job/ckpt --step --or 0 2>/dev/null)" -gt 0 ]; }

# One attempt was interrupted: four saves at one step in the middle, which was its last and not its first,
# and all left with 42.
saved_together() {
	local task step first saved
	patience=360 eventually key 1 CLOSED
	step=$(agreed_step)
	first=$(sed '/^resumed /,$d' job.out)
	mapfile -t saved < <(sed -n 's/^saved step \([0-9]*\)$/\1/p' <<<"$first")
	[ "${#saved[@]}" -ge 2 ] && [ "${saved[-1]}" = "$step" ] || return
	[[ $first != *"done step"* ]] || return
	for task in 0 1 2 3; do
		key 1 "RECEIVED_SIGNAL_RUN_TO_CHECKPOINT_$task" && [[ $(key 1 "SAVED/1/$task") == *"\"step\":$step,"* ]] &&
			grep -q "task $task: Exited with exit code 42" job.out || return
	done
}

# It was preempted, saved together, requeued once, went on from that step, and finished.
preempted_and_finished() {
	patience=360 eventually saved_once
	slurm_preempt
	slurm_wait_state "$job" COMPLETED
	saved_together
	[ "$(slurm_restarts "$job")" = 1 ]
	[ "$(preempt-store list "run/slurm-$job/" | grep -c '/OPEN$')" = 2 ]
	grep "^resumed at step $(agreed_step) " job.out
	[ "$(grep -c '^resumed ' job.out)" = 1 ]
	grep '^done step 600 ' job.out
}
