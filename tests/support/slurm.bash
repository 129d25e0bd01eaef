# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# For bats files that need a Slurm cluster:
#
#   load ../support/slurm
#   setup_file()    { slurm_start --grace 8; }     skips the file if no rig can run here
#   teardown_file() { slurm_stop; }
#   teardown()      { slurm_dump_logs; }           prints logs, only after a failure
#
# The rig is in $SLURM_RIG; SLURM_CONF points all commands to it.

. "$(dirname "${BASH_SOURCE[0]}")/programs.bash"

slurm_rig_script=$(realpath "$(dirname "${BASH_SOURCE[0]}")/slurm")

# Do not use bats' deep directories: the path of a socket must be short.
slurm_new_dir() {
	local parent=${TMPDIR:-/tmp}
	[ ${#parent} -le 50 ] || parent=/tmp
	mktemp -d "$parent/slurm.XXXXXX"
}

# slurm_start [OPTION]...: start a cluster, with the options of tests/support/slurm start.
slurm_start() {
	local lines why proctrack=linuxproc i
	for ((i = 1; i < $#; i++)); do
		[ "${!i}" != --proctrack ] || proctrack=${*:i+1:1}
	done
	why=$("$slurm_rig_script" usable --proctrack "$proctrack" 2>&1) || skip "$why"
	# These tests may run in a job themselves: its variables must not reach ours.
	for i in "${!SLURM_@}" "${!PREEMPT_@}" "${!SBATCH_@}" "${!SRUN_@}"; do
		[ "$i" = SLURM_RIG ] || unset "$i"
	done
	SLURM_RIG=$(slurm_new_dir)
	export SLURM_RIG
	lines=$("$slurm_rig_script" start "$SLURM_RIG" "$@") || return
	eval "$lines"
}

slurm_stop() {
	[ -z "${SLURM_RIG:-}" ] || "$slurm_rig_script" stop "$SLURM_RIG"
}

slurm_state() { squeue --noheader --states=all --jobs="$1" --format=%T 2>/dev/null; }
slurm_is() { [ "$(slurm_state "$1")" = "$2" ]; }

# slurm_wait_state JOB STATE SECONDS: wait until JOB is PENDING, RUNNING, COMPLETING, COMPLETED, PREEMPTED, ...
slurm_wait_state() {
	until_true "$3" slurm_is "$1" "$2" || {
		echo "job $1 is $(slurm_state "$1"), not $2" >&2
		scontrol show job "$1" >&2
		return 1
	}
}

# slurm_preempt [SECONDS]: submit a job of high priority for all four nodes that takes SECONDS (0); prints its id.
slurm_preempt() {
	sbatch --parsable --nodes=4 --partition=high --job-name=urgent --output=/dev/null \
		--wrap "srun sleep ${1:-0}"
}

# slurm_cancel_all: cancel all jobs, and wait until all nodes are free for the next test.
slurm_cancel_all() {
	scancel --me --quiet || :
	until_true 120 slurm_idle
}
slurm_idle() { [ "$(sinfo --noheader --partition=low --format=%t)" = idle ]; }

slurm_dump_logs() {
	[ -z "${BATS_TEST_COMPLETED:-}" ] && [ -d "${SLURM_RIG:-/nonexistent}" ] || return 0
	squeue --states=all >&2 || :
	"$slurm_rig_script" logs "$SLURM_RIG" >&2
}
