# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# What a file says of itself (tests/run), and how long it takes, for the plan of tests/run and for tests/lint.

# Seconds from the start in which a slow machine has made both builds and run the check set.
# shellcheck disable=SC2034 # for tests/lint
CHECK_SET_TAKES=600

# says FILE NAME: the text after "# NAME: " in the file; fails where that is missing.
says() {
	grep -m 1 "^# $2: " "$1" | sed 's/^[^:]*: *//'
}

# takes FILE WORD: the seconds that it usually takes.
takes() {
	case $1/$2 in
	*.bats/smoke) echo 20 ;;
	*.bats/*) says "$1" takes || echo 20 ;;
	*) echo 5 ;;
	esac
}

# may_take FILE WORD: the seconds that are kept for it: half as long again.
may_take() {
	echo $(($(takes "$1" "$2") * 3 / 2))
}
