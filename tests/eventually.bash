# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# shellcheck disable=SC2016,SC2034,SC2154 # eval expands; tests set tracer, and use stopped and code
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

# A command that stops itself under strace, whose process is $tracer:

# until_stopped [TRACE]: wait until it has stopped. stopped becomes its process.
until_stopped() {
	until_true 20 grep -qs 'stopped by SIGSTOP' "${1-trace}"
	stopped=$(pgrep -P "$tracer")
}

# Let it go on. code becomes its exit code. Each of its threads may stop it once.
go_on() {
	code=0
	until_true 20 eval '! kill -CONT "$stopped" 2>/dev/null'
	wait "$tracer" || code=$?
	stopped=
}
