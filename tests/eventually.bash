# SPDX-License-Identifier: MIT
# shellcheck shell=bash

# Wait until a command succeeds, 20 s at most, or as many as $patience says.
eventually() {
	local end=$((SECONDS + ${patience:-20}))
	until "$@" 2>/dev/null; do
		if ((SECONDS >= end)); then
			echo "never came true: $*" >&2
			return 1
		fi
		sleep 0.02
	done
}
