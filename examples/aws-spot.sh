#!/bin/bash
# SPDX-License-Identifier: MIT
# aws-spot.sh DIR COMMAND [ARG...]: a training on one spot machine of AWS, with two minutes of notice before it is taken.
# Started at boot, by user data or a systemd unit; the next machine, with the same DIR, goes on. DIR is on a filesystem
# that outlives the machine: EFS, FSx, or an EBS volume that the next one attaches.
#
#   TASKS	processes on this machine (1)
#   AWS_METADATA	the metadata server, if it is not Amazon's: http://127.0.0.1:PORT of tests/rig/metadata
set -u
top=$1
shift
mkdir -p "$top/ck" || exit
export PREEMPT_STORE=$top/run.db

until preempt-run --run spot -n "${TASKS:-1}" --notice "aws${AWS_METADATA:+:$AWS_METADATA}" --checkpoints "$top/ck" \
	--restarts -- "$@"; do
	code=$?
	case $code in
	42 | 43) exit 0 ;; # the machine is taken; 42: saved
	44 | 75) sleep 10 ;; # lost a task, or the store did not answer: run again
	*) exit "$code" ;;
	esac
done
# The training has finished. A machine that is paid for by the second could be ended here: shutdown -h now
