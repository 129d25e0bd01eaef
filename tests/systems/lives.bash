# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# shellcheck disable=SC2154 # bats sets output
# Random lives of training jobs with the real programs (tests/support/lives): agents and trainers killed and
# stopped, notices, claims, a store that goes away. The plans follow from the seeds, which are the same
# each time; for others: tests/support/lives --help.

lives() {
	unset "${!PREEMPT_@}" "${!SLURM_@}"
	run -0 env TMPDIR="$BATS_TEST_TMPDIR" "$BATS_TEST_DIRNAME/../support/lives" --jobs 4 "$@"
	echo "$output" | grep '^#' >&3
}
