# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Functions that the rigs share (tests/support/mounts, nfs, slurm): messages, exit codes, deadlines, and how to
# identify a process. usage prints the lines of a rig's comment that begin with its name.

# An absolute path, because a rig starts its guard by this name from another directory.
script=$(realpath "$0")

say() { printf '%s rig: %s\n' "${script##*/}" "$*" >&2; }
usage() {
	say "$*"
	sed -n "s/^#   \(${script##*/} [a-z].*\)/  \1/p" "$script" >&2
	exit 2
}
skip() {
	say "$*"
	exit 77
}
fail() {
	say "$*"
	exit 1
}

# deadline SECONDS COMMAND...: repeat COMMAND until it succeeds; fail after SECONDS.
deadline() {
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		((SECONDS < end)) || return 1
		sleep 0.05
	done
}

# birth PID: set $born to the start of the process, in clock ticks since boot; fail if it has ended. PID and
# $born together identify a process. (Without a fork, because a guard calls this all the time.)
birth() {
	local stat
	born=''
	{ read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
	stat=${stat##*) }
	# shellcheck disable=SC2086
	set -- $stat
	[ "$1" != Z ] && [ "$1" != X ] || return 1
	born=${20}
}
# lives PID BORN: succeeds if that process still lives.
lives() { birth "$1" && [ "$born" = "$2" ]; }
