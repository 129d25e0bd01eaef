# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# What the comments of a test file say for tests/run, and how long it takes: for tests/run and tests/support/lint.

# Seconds that a slow machine needs for both builds and the check set.
# shellcheck disable=SC2034 # tests/support/lint uses it
CHECK_SET_TAKES=600

# says FILE NAME: print the text after "# NAME: " in the file; fails if there is none.
says() {
	grep -m 1 "^# $2: " "$1" | sed 's/^[^:]*: *//'
}

# takes FILE WORD: print the seconds that this test usually takes.
takes() {
	case $1/$2 in
	*.bats/smoke) echo 20 ;;
	*.bats/*) says "$1" takes || echo 20 ;;
	*) echo 5 ;;
	esac
}

# may_take FILE WORD: print the seconds that are reserved for it: half as much again.
may_take() {
	echo $(($(takes "$1" "$2") * 3 / 2))
}
