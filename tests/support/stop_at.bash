# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# shellcheck disable=SC2016,SC2034,SC2154,SC2119,SC2120 # eval expands; tests set and use the variables
# Commands that strace stops at a call: $tracer is strace, $stopped the command. Load eventually, too.

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

# stop_at CALL COMMAND...: start a command that stops itself at its first ($nth) CALL, and wait for
# that. With $only set, only calls that touch this path count. $later: what befalls another call.
stop_at() {
	local call=$1 path=()
	shift
	if [ "${only-}" ]; then path=(-P "$only"); fi
	: >trace
	strace -f -o trace "${path[@]}" -e trace="$call${later+,${later%%:*}}" \
		-e inject="$call:signal=STOP:when=${nth-1}" ${later+-e inject="$later"} \
		"$@" >answer 2>error 3>&- &
	tracer=$!
	until_stopped
}
