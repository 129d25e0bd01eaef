#!/bin/bash
# SPDX-License-Identifier: MIT
# composed.sh COMMAND [ARG...]: the small programs put together into what preempt-run does for one
# task. Start one for each task, with PREEMPT_RUN, PREEMPT_TASK and PREEMPT_TASKS set (or by a
# launcher that preempt-run knows). COMMAND has the loop with preempt_step in it.
set -u

exports=$(preempt-store join --pid $$) || exit
eval "$exports"

# Our own notice becomes the group's claim; both ends of this pipe end with us.
trap : TERM # waited for below; a shell that dies of the notice can do nothing about it
preempt-watch --follow --source "file:$PREEMPT_DIR/notice" | preempt-claim --from - >/dev/null &
claimer=$!

"$@" &
training=$!

# Whoever has claimed: agree, save, wait for the others. Ends with the training, if that comes first.
(
	until preempt-ack 2>/dev/null; do
		rc=$?
		[ $rc = 1 ] || exit $rc
		preempt-store wait "$(printf 'run/%s/%06d/ROUND/1' "$PREEMPT_RUN" "$PREEMPT_ATTEMPT")" >/dev/null
	done
	preempt-ack --saved --wait
) &
agent=$!

while :; do
	wait $training
	code=$?
	# `wait` returns early, with 128 + 15, when a signal came: pass the notice on and wait again.
	if [ $code = 143 ] && kill -0 $training 2>/dev/null; then
		echo "TERM" >"$PREEMPT_DIR/notice"
		continue
	fi
	break
done
kill $claimer $agent 2>/dev/null
preempt-store leave --code "$code"
exit "$code"
