# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Waiting for conditions. On a loaded machine with sanitizers everything takes many times as long.

# Wait until a command succeeds, 60 s at most, or as many as $patience says.
eventually() {
	local end=$((SECONDS + ${patience:-60}))
	until "$@" 2>/dev/null; do
		if ((SECONDS >= end)); then
			echo "never came true: $*" >&2
			return 1
		fi
		sleep 0.02
	done
}

# until_true SECONDS COMMAND...: what takes so long at most on a machine that has time for us; it is given
# four times as long, and at least a minute.
until_true() {
	local patience=$((4 * $1 > 60 ? 4 * $1 : 60))
	shift
	eventually "$@"
}
