#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-requeue under a real Slurm: who is requeued, who is not, and for how long. That a preempted
# job of four nodes runs again and finishes, bit-identical: slurm.bats, with examples/sbatch.sh.
# Needs root, slurm-wlm and munge.
# takes: 110
# asan: no (mostly Slurm's time; requeue.bats has it)
# shellcheck disable=SC2016,SC2030,SC2031

bats_require_minimum_version 1.5.0
load ../support/slurm

setup_file() {
	local root
	root=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	PATH=${BIN:-$root/bin}:$PATH
	export PATH CLIENT=$root/lib/client
	slurm_start --grace 15 --kill-wait 3
	export PREEMPT_MACHINES=1
}

teardown_file() {
	slurm_stop
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	export PREEMPT_STORE=$BATS_TEST_TMPDIR/store.db
	export PREEMPT_GRACE=0 # saved at once, well before Slurm's grace is over
	# Saves at each tenth step and when it is asked to; task 1 fails at step $FAIL. It neither ends
	# nor fails while there is a file hold.
	cat >trainer <<-'TRAINER'
		#!/bin/bash
		. "$CLIENT/preempt.sh"
		me=$PREEMPT_RUN.$PREEMPT_TASK
		start=$(cat "ck.$me" 2>/dev/null || echo 0)
		echo "$start" >>"starts.$me"
		for ((s = start; ; s++)); do
			[ -e hold ] || ((s < ${STEPS:-100})) || break
			preempt_step $s || { echo $s >"ck.$me" && preempt_saved $s; } || exit
			if ((s % 10 == 0 && s > start)); then
				echo $s >"ck.$me"
				preempt_saved $s || exit
			fi
			if [ "$PREEMPT_TASK" = 1 ] && ((s >= ${FAIL:-1000000})) && [ ! -e hold ]; then
				echo "broken at $s" >&2
				exit 7
			fi
			sleep 0.05
		done
		touch "done.$me"
	TRAINER
	chmod +x trainer
}

teardown() {
	if [ -z "${BATS_TEST_COMPLETED:-}" ]; then
		head -n 1000 "$BATS_TEST_TMPDIR"/*.out >&2 || :
		preempt-store list --values run/ >&2 || :
	fi
	slurm_dump_logs
	slurm_cancel_all
}

# submit [OPTION OF SBATCH...] -- [OPTION OF preempt-requeue...]
submit() {
	local options=()
	while [ "$1" != -- ]; do options+=("$1") && shift; done
	shift
	job=$(sbatch --parsable --requeue --nodes=2 --output=%j.out --open-mode=append "${options[@]}" \
		--wrap "exec preempt-requeue $* -- srun preempt-run --kill-after 1s -- ./trainer")
}

restarts() { scontrol show job "$1" | sed -n 's/.* Restarts=\([0-9]*\).*/\1/p'; }
restarted() { [ "$(restarts "$1")" = "$2" ]; }
saved() { [ "$(cat "ck.slurm-$1.0" 2>/dev/null || echo 0)" -ge 10 ]; }

@test "a job that crashes at the same step each time: 93 after its budget, and it stays ended" {
	export FAIL=5
	submit -- --max-crashes 2
	slurm_wait_state "$job" FAILED 120
	cat "$job.out"
	[ "$(restarts "$job")" = 2 ]
	[ "$(wc -l <"starts.slurm-$job.1")" = 3 ]
	[[ $(scontrol show job "$job") == *ExitCode=93:0* ]]
	grep -q 'not run again (93): 3 crashes, 2 allowed (--max-crashes): task 1 failed on .*broken at 5' "$job.out"
	until_true 90 slurm_idle
	slurm_is "$job" FAILED
}

@test "preempted in the middle of it: preemption is no crash, and no crash is forgotten" {
	export FAIL=95
	touch hold
	submit -- --max-crashes 1
	until_true 90 saved "$job"
	slurm_preempt
	until_true 90 restarted "$job" 1
	rm hold
	slurm_wait_state "$job" FAILED 120
	cat "$job.out"
	# Preempted, crashed, and crashed once more.
	[ "$(restarts "$job")" = 2 ]
	[ "$(wc -l <"starts.slurm-$job.1")" = 3 ]
	grep -q 'run again: attempt 1 was preempted' "$job.out"
	grep -q 'run again: attempt 2 crashed, 1 of 1' "$job.out"
	grep -q 'not run again (93): 2 crashes' "$job.out"
}

@test "a task of an array is requeued alone, also the one that has the array's own number" {
	# The last task of an array gets the array's number as its job id.
	touch hold
	submit --array=1-2 --nodes=1 -- --max-crashes 3
	local array=$job mine other=${job}_1
	until_true 90 saved "${array}_1"
	until_true 90 saved "${array}_2"
	number() { scontrol show job -o "${array}_$1" | sed -n 's/^JobId=\([0-9]*\) .*/\1/p'; }
	mine=${array}_2
	[ "$(number 2)" = "$array" ] || { mine=${array}_1 other=${array}_2; }
	echo "array $array: tasks are jobs $(number 1) and $(number 2)"
	[ "$(number "${mine#*_}")" = "$array" ]
	scancel --signal=TERM "$mine"
	until_true 90 restarted "$mine" 1
	cat ./*.out
	grep -q "job $mine is requeued" ./*.out
	restarted "$other" 0
	[ "$(wc -l <"starts.slurm-$other.0")" = 1 ]
	[ ! -e "done.slurm-$other.0" ]
}

@test "a signal for the batch shell only (--signal=B:USR1): all save, and it is requeued" {
	unset PREEMPT_GRACE
	touch hold
	submit --time=4 --signal=B:USR1@240 --
	# Slurm says that a minute or two are left: saved, and trained on.
	until_true 90 grep -q 'agreed: all 2 save at step .* and run on' "$job.out"
	cat "$job.out"
	grep -q 'preempt-requeue: notice: signal:USR1' "$job.out"
	grep -q 'claimed from outside' "$job.out"
	[[ $(preempt-store get "run/slurm-$job/000001/TERMINATED_WORKER") == *'"deadline_utc":'* ]]
	# Now it is to be sooner.
	preempt-claim --run "slurm-$job" --outside --grace 12s || :
	until_true 90 restarted "$job" 1
	[[ $(preempt-store get "run/slurm-$job/000001/CLOSED") == *'"cause":"preempted"'* ]]
}

@test "requeued before its first real start: the restart count is no proof, the store is made and the job runs" {
	export STEPS=20
	job=$(sbatch --parsable --requeue --nodes=2 --output=%j.out --open-mode=append --wrap '
		[ -n "${SLURM_RESTART_COUNT-}" ] || { scontrol requeue "$SLURM_JOB_ID"; sleep 100; }
		echo "restart $SLURM_RESTART_COUNT"
		exec preempt-requeue -- srun preempt-run --kill-after 1s -- ./trainer')
	slurm_wait_state "$job" COMPLETED 180
	cat "$job.out"
	grep -q '^restart 1' "$job.out"
	[ "$(cat "starts.slurm-$job.1")" = 0 ]
}

@test "cancelled while it is being preempted: it stays cancelled" {
	touch hold
	submit --
	until_true 90 saved "$job"
	slurm_preempt
	# Between the notice and the requeue; whichever comes first, it must not run again.
	scancel "$job"
	slurm_wait_state "$job" CANCELLED 90
	until_true 90 slurm_idle
	slurm_is "$job" CANCELLED
	[ "$(wc -l <"starts.slurm-$job.0")" = 1 ]
}

@test "submitted with --no-requeue: said, and its exit code tells" {
	touch hold
	submit --no-requeue --
	until_true 90 saved "$job"
	scancel --signal=TERM "$job"
	slurm_wait_state "$job" FAILED 120
	cat "$job.out"
	grep -q "job $job is not requeued: scontrol requeue: .*; was it submitted with --requeue?" "$job.out"
	[[ $(scontrol show job "$job") == *ExitCode=42:0* ]]
}

@test "scontrol is out of reach: the script stays, and Slurm requeues the preempted job itself" {
	mkdir none
	printf '#!/bin/sh\necho "Unable to contact slurm controller" >&2\nexit 1\n' >none/scontrol
	chmod +x none/scontrol
	touch hold
	PATH=$PWD/none:$PATH submit -- --timeout 1s
	until_true 90 saved "$job"
	slurm_preempt
	until_true 90 restarted "$job" 1
	cat "$job.out"
	grep -q 'staying for at most 300 s' "$job.out"
	rm hold
	slurm_wait_state "$job" COMPLETED 120
	[ "$(wc -l <"starts.slurm-$job.0")" = 2 ]
}
