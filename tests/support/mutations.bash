# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# For tests/mutations_*.bats, one of which would take too long for make check WITHIN=... (tests/support/lint): the
# simulator is tried by faults. Each is put into a copy of the source, and has to be noticed.

# all_noticed: those of this file. There are as many parts as there are such files.
# shellcheck disable=SC2154 # bats sets output and status
all_noticed() {
	local files=("$BATS_TEST_DIRNAME"/mutations_*.bats) part=0
	until [ "${files[part++]}" -ef "$BATS_TEST_FILENAME" ]; do :; done
	run tests/sim/mutations --part "$part/${#files[@]}"
	echo "$output"
	[ "$status" = 0 ]
	[[ $output != *"not ok"* ]]
	[ "$(grep -c '^ok' <<<"$output")" -ge 10 ]
}
