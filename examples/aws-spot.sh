#!/bin/bash
# SPDX-License-Identifier: MIT
# aws-spot.sh DIR COMMAND [ARG...]: train on one spot machine of AWS, which gives a notice two minutes before it ends.
# Start it at boot, by user data or a systemd unit. The next machine, with the same DIR, continues the training. DIR is
# on a filesystem that outlives the machine: EFS, FSx, or an EBS volume that the next machine attaches.
#
#   TASKS	processes on this machine (1)
set -u
[ $# -ge 2 ] || { echo "usage: $0 DIR COMMAND [ARG...]" >&2; exit 2; }
top=$1
shift
mkdir -p "$top/ck" || exit
export PREEMPT_STORE=$top/run.db

until preempt-run --run spot -n "${TASKS:-1}" --notice aws --checkpoints "$top/ck" --restarts -- "$@"; do
	code=$?
	case $code in
	42 | 43) exit 0 ;; # the machine goes away; 42: the training is saved
	44 | 75) sleep 10 ;; # lost a task, or the store did not answer: run again
	*) exit "$code" ;;
	esac
done
# The training has finished. To stop paying for the machine, end it here: shutdown -h now
