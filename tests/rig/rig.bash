# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# What the rigs have in common (tests/rig/mounts, nfs, slurm): messages, exit codes, deadlines, and how to name
# a process. A rig's comment says how to call it, in lines that begin with its name.

# With its directory: a guard is started by this name, elsewhere.
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

# deadline SECONDS COMMAND...: until COMMAND succeeds; fails when the time is over.
deadline() {
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		((SECONDS < end)) || return 1
		sleep 0.05
	done
}

# birth PID: when it started, in clock ticks since boot, in $born; fails when it has ended. PID and
# this together name a process. (Without a fork: a guard asks all the time.)
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
# lives PID BORN
lives() { birth "$1" && [ "$born" = "$2" ]; }
