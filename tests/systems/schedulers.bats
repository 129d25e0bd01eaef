#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What schedulers send: no signal that can be caught ends an agent, a worker or the batch wrapper unheard. LSF, Grid
# Engine and PBS are stand-ins, which send what the manual of each says, to the processes that it says. (The set of
# signals: tests/unit/platform.c.)
# takes: 10
# shellcheck disable=SC2016 # text for other programs

bats_require_minimum_version 1.5.0
load ../support/programs

setup() {
	programs
	unset "${!LSB_@}" "${!PBS_@}" JOB_ID SGE_ROOT
	PATH=$PWD/fake:$PATH
	export CLIENT=$REPO/lib/client XDG_STATE_HOME=$PWD/state
	mkdir fake
	cat >train <<-'END'
		# Without a trap bash does not end if its child ended by itself just before the signal.
		trap 'trap - INT; kill -INT $$' INT
		. "$CLIENT/preempt.sh"
		start=$(ckpt-rotate latest ck --step --or 0) || exit
		save() { d=$(ckpt-rotate begin ck $1) && echo x >$d/w && ckpt-rotate commit ck $1 >/dev/null; }
		for ((s = start; s < 100000; s++)); do
			preempt_step $s || { save $s && preempt_saved $s; } || exit
			: >trains
			sleep 0.02
		done
	END
	job=
}

teardown() { [ -z "$job" ] || kill -KILL -- "-$job" 2>/dev/null || :; }

# submit COMMAND...: as a job: the leader of a session of its own, $job, with the default of each signal.
submit() {
	rm -f trains
	env --default-signal setsid "$@" >out 2>err 3>&- &
	job=$!
	eventually test -e trains
}

# ends CODE: and it has saved.
ends() {
	local code
	code_of "$job"
	[ "$code" = "$1" ] || { echo "$code, not $1"; cat err; return 1; }
	grep -q 'is saved and complete: run me again (42)' err || { cat err; return 1; }
	job=
}

# to_all SIGNAL: to every process of the job.
to_all() { kill -"$1" -- "-$job"; }

@test "USR2, XCPU: to preempt-run alone, and to the tree with preempt-requeue: saved, 42" {
	for signal in USR2 XCPU; do
		submit preempt-run --run "r$signal" -- bash train
		kill -$signal "$job"
		ends 42
		submit preempt-requeue --platform none --run "q$signal" -- preempt-run -- bash train
		to_all $signal
		ends 42
		grep -q "preempt-requeue: notice: signal:$signal" err
	done
}

@test "the same to a worker of a queue: the command goes back" {
	preempt-queue schedule --queue q -- sh -c 'touch trains; exec sleep 1000'
	submit preempt-queue work --queue q --grace 0
	kill -XCPU "$job"
	code_of "$job"
	[ "$code" = 42 ]
	[[ $(preempt-queue list --queue q) = *waiting* ]]
}

@test "INT can be named as a notice; it is none unless it is, except under LSF" {
	submit preempt-run --run named --notice signal:INT -- bash train
	kill -INT "$job"
	ends 42
	submit preempt-run --run other -- bash train
	kill -INT "$job"
	code_of "$job"
	[ "$code" = 130 ]
	LSB_JOBID=7 submit preempt-run --run lsf -- bash train
	kill -INT "$job"
	ends 42
}

@test "LSF: bkill and TERMINATE send INT, TERM and KILL; USR2 at the run limit; 42 makes it run again" {
	export LSB_JOBID=7 LSB_JOBINDEX=0
	submit preempt-requeue --platform lsf -- preempt-run -- bash train
	to_all INT
	to_all TERM
	ends 42
	submit preempt-requeue --platform lsf -- preempt-run -- bash train
	to_all USR2
	ends 42
	[[ $(preempt-store runs) = *"lsf-7 "*" 2 "* ]]
	run -0 preempt-watch --show-platform
	[[ $output = *"auto is lsf, and watches: signal:TERM,USR1,USR2,XCPU,PWR,INT"* ]]
}

@test "Grid Engine: -notify sends USR2 before KILL (and USR1 before STOP); 99 makes it run again" {
	export JOB_ID=7 SGE_ROOT=/opt/sge SGE_TASK_ID=undefined
	submit preempt-requeue --platform sge -- preempt-run -- bash train
	to_all USR2
	ends 99
}

@test "PBS: TERM before KILL; qrerun makes it run again" {
	export PBS_JOBID=7.server
	cat >fake/qrerun <<-'END'
		#!/bin/sh
		echo "$*" >asked
		[ ! -e refuses ] || { echo "qrerun: Unauthorized Request 7.server" >&2; exit 159; }
	END
	chmod +x fake/qrerun
	submit preempt-requeue -- preempt-run -- bash train
	to_all TERM
	ends 42
	[ "$(cat asked)" = 7.server ]
	: >refuses
	submit preempt-requeue -- preempt-run -- bash train
	to_all TERM
	ends 42
	grep -q 'qrerun .*: failed with 159: qrerun: Unauthorized Request' err
	# What has finished is not run again.
	rm asked
	run -0 preempt-requeue -- preempt-run -- true
	[ ! -e asked ]
}
