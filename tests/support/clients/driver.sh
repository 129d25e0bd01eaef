# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# A training script for tests/programs/preempt-step.bats, run by bash or dash: commands on stdin, answers on stdout.
#	step N [NEXT], saved N		prints "step ANSWER", "saved ANSWER"
#	child N				the same step in a subshell: prints "child CODE"
#	state				prints what the client must leave alone
# Where an argument is to be empty, the word is EMPTY. PROGRAM=path: calls preempt-step instead of
# sourcing preempt.sh. HANDLER=1: traps TERM, before.
set -eu
# shellcheck disable=SC3040
[ -z "${BASH_VERSION-}" ] || set -o pipefail
[ -z "${HANDLER-}" ] || trap 'echo trapped' TERM

if [ -n "${PROGRAM-}" ]; then
	preempt_step() {
		"$PROGRAM" "$@" || case $? in
		10) return 10 ;;
		*) exit ;;
		esac
	}
	preempt_saved() {
		"$PROGRAM" --saved "$@" || case $? in
		2) exit ;;
		*) return ;;
		esac
	}
else
	# shellcheck source=lib/client/preempt.sh
	. "$CLIENT/preempt.sh"
fi

# Whatever a script may have set, the client must not mind.
set -f
IFS=0123456789
set -- one two
while IFS=' ' read -r command a b; do
	[ "$a" != EMPTY ] || a=''
	code=0
	case $command in
	step)
		if [ -n "$b" ]; then preempt_step "$a" "$b" || code=$?; else preempt_step "$a" || code=$?; fi
		echo "step $code"
		;;
	saved)
		preempt_saved "$a" || code=$?
		echo "saved $code"
		;;
	child)
		(preempt_step "$a") || code=$?
		echo "child $code"
		;;
	state) echo "state $IFS $* $-" ;;
	esac
done
