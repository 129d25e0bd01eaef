# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# For bats files that record what many processes ask of one store and are answered, and check it
# (tests/history/store_history.c):
#
#   load history
#   setup()    { history_setup; }
#   teardown() { history_teardown; }
#
# More than a test asks for, by hand: HISTORY_OPERATIONS=100000 HISTORY_KILLS=40.

# $logs is an empty directory.
history_setup() {
	PATH=${OUT:-$BATS_TEST_DIRNAME/../../build/plain}/tests/history:$PATH
	unset "${!PREEMPT_@}"
	logs=$BATS_TEST_TMPDIR/logs
	mkdir "$logs"
}
history_teardown() { "$BATS_TEST_DIRNAME/../support/forget-stores" "$BATS_TEST_TMPDIR"; }

# linearizable OPERATIONS URL...: 8 processes share them, some are killed, and what all of them were
# answered is what one store can answer to one after the other.
# shellcheck disable=SC2154 # bats sets output and status
linearizable() {
	local operations=${HISTORY_OPERATIONS:-$1} kills=${HISTORY_KILLS:-8} seed=$((RANDOM + 1))
	shift
	run -0 --separate-stderr store_history record -n $((operations / 8)) --kill "$kills" \
		-s $seed "$logs" "$@"
	echo "# -s $seed: $output" >&3
	[[ $output == *" refused 0 unknown 0 disturbed $disturbed failed 0 "* ]]
	# A process that is killed leaves one operation without an answer.
	run store_history check --answered $((operations / 8 * 8 - kills)) "$logs"
	echo "# $output" >&3
	[ "$status" = 0 ]
	[[ $output =~ revisions\ ([0-9]+) ]]
	[ "${BASH_REMATCH[1]}" -gt $((operations / 8)) ]
}
