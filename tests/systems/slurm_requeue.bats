#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-requeue and a queue under a real Slurm: who is requeued, who is not, and for how long. That a preempted
# job of four nodes runs again and finishes, bit-identical: slurm.bats. Needs root, slurm-wlm and munge.
# takes: 60
# asan: no (mostly Slurm's time; preempt-requeue.bats and preempt-queue-work.bats have it)
# shellcheck disable=SC2016,SC2034 # text for other shells; patience

load ../support/slurm

setup_file() {
	PATH=$(realpath "${BIN:-$REPO/bin}"):$PATH
	export PATH
	slurm_start --grace 15 --kill-wait 3
}

teardown_file() { slurm_stop; }
teardown() {
	end_started
	slurm_end_test
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	started=()
	export CLIENT=$REPO/lib/client PREEMPT_STORE=$PWD/store.db
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
			[ -e hold ] || ((s < 100)) || break
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
	patience=360
}

# job OPTION OF SBATCH... -- [OPTION OF preempt-requeue...]
submit() {
	local options=()
	while [ "$1" != -- ]; do options+=("$1") && shift; done
	shift
	job=$(sbatch --parsable --requeue --nodes=2 --output=%j.out --open-mode=append "${options[@]}" \
		--wrap "exec preempt-requeue $* -- srun preempt-run --kill-after 1s -- ./trainer")
}

saved() { [ "$(cat "ck.slurm-$1.0" 2>/dev/null || echo 0)" -ge 10 ]; }

@test "a job that crashes at the same step each time: 93 after its budget, and it stays ended" {
	export FAIL=5
	submit -- --max-crashes 2
	slurm_wait_state "$job" FAILED
	cat "$job.out"
	slurm_restarted "$job" 2
	[ "$(wc -l <"starts.slurm-$job.1")" = 3 ]
	[[ $(scontrol show job "$job") == *ExitCode=93:0* ]]
	grep -q 'not run again (93): 3 crashes, 2 allowed (--max-crashes): task 1 failed on .*broken at 5' "$job.out"
	eventually slurm_idle
	slurm_is "$job" FAILED
}

@test "a task of an array is requeued alone, also the one that has the array's own number" {
	# The last task of an array gets the array's number as its job id.
	touch hold
	submit --array=1-2 --nodes=1 -- --max-crashes 3
	local array=$job mine other=${job}_1
	eventually saved "${array}_1"
	eventually saved "${array}_2"
	number() { scontrol show job -o "${array}_$1" | sed -n 's/^JobId=\([0-9]*\) .*/\1/p'; }
	mine=${array}_2
	[ "$(number 2)" = "$array" ] || { mine=${array}_1 other=${array}_2; }
	[ "$(number "${mine#*_}")" = "$array" ]
	scancel --signal=TERM "$mine"
	eventually slurm_restarted "$mine" 1
	grep "job $mine is requeued" ./*.out
	slurm_restarted "$other" 0
	[ "$(wc -l <"starts.slurm-$other.0")" = 1 ]
	[ ! -e "done.slurm-$other.0" ]
}

@test "a signal for the batch shell only (--signal=B:USR1): all save, and it is requeued" {
	unset PREEMPT_GRACE
	touch hold
	submit --time=4 --signal=B:USR1@240 --
	# Slurm says that a minute or two are left: saved, and trained on.
	eventually grep -q 'agreed: all 2 save at step .* and run on' "$job.out"
	grep 'preempt-requeue: notice: signal:USR1' "$job.out"
	grep 'claimed from outside' "$job.out"
	[[ $(key 1 TERMINATED_WORKER) == *'"deadline_utc":'* ]]
	# Now it is to be sooner.
	preempt-claim --run "slurm-$job" --outside --grace 12s || :
	eventually slurm_restarted "$job" 1
	[[ $(key 1 CLOSED) == *'"cause":"preempted"'* ]]
}

@test "cancelled while it is being preempted: it stays cancelled" {
	touch hold
	submit --
	eventually saved "$job"
	slurm_preempt
	# Between the notice and the requeue; whichever comes first, it must not run again.
	scancel "$job"
	slurm_wait_state "$job" CANCELLED
	eventually slurm_idle
	slurm_is "$job" CANCELLED
	[ "$(wc -l <"starts.slurm-$job.0")" = 1 ]
}

@test "submitted with --no-requeue: said, and its exit code tells" {
	touch hold
	submit --no-requeue --
	eventually saved "$job"
	scancel --signal=TERM "$job"
	slurm_wait_state "$job" FAILED
	grep "job $job is not requeued: scontrol requeue: .*; was it submitted with --requeue?" "$job.out"
	[[ $(scontrol show job "$job") == *ExitCode=42:0* ]]
}

@test "examples/fan-out.sh: array workers of a queue preempted in the middle of commands: each command done once" {
	local files=12 i
	mkdir -m 700 s
	mkdir in
	export PREEMPT_STORE=$PWD/s/q.db PREEMPT_QUEUE=fan-out
	# Each has a grace of Slurm's, as the program asks for it.
	unset PREEMPT_GRACE
	for ((i = 1; i <= files; i++)); do echo "text $i" >in/f$i; done
	# Each start of a command and each end of it are one line of a log. The first wait to be preempted.
	touch hold
	IDLE=15s "$REPO/examples/fan-out.sh" in out \
		'echo "$PREEMPT_ITEM_ID" >>starts; while [ -e hold ]; do sleep 0.1; done; tr a-z A-Z <"$1" >"$2"; echo "$PREEMPT_ITEM_ID" >>ends' \
		--partition=low --output=%a.out --time=10 >fan-out.out 2>fan-out.err 3>&- &
	started+=($!)
	begun() { [ "$(wc -l 2>/dev/null <starts)" = 4 ]; }
	all_restarted() { [ "$(scontrol show job -o | grep 'JobName=fan-out.sbatch ' | grep -c ' Restarts=1 ')" = 4 ]; }
	eventually begun
	[ "$(preempt-queue list --json --state running | wc -l)" = 4 ]
	slurm_preempt 1 >/dev/null
	eventually all_restarted
	rm hold
	code_of "${started[0]}"
	[ "$code" = 0 ]
	# Each has one result that counts, and a file that is whole.
	[ "$(preempt-queue list --json --state succeeded | wc -l)" = $files ]
	[ "$(preempt-queue list --json | wc -l)" = $files ]
	for ((i = 1; i <= files; i++)); do [ "$(<out/f$i)" = "TEXT $i" ]; done
	# No command ended twice, though four were begun twice: they were given back by their workers,
	# and no attempt was used for that.
	[ -z "$(sort ends | uniq -d)" ]
	[ "$(wc -l <ends) $(wc -l <starts)" = "$files $((files + 4))" ]
	for ((i = 1; i <= files; i++)); do preempt-queue show "$i" --json; done >shown
	sum_of() { sed -n 's/.*"'"$1"'": *\([0-9]*\).*/\1/p' shown | awk '{ sum += $1 } END { print sum + 0 }'; }
	[ "$(sum_of preempted) $(sum_of attempts) $(sum_of lost)" = "4 0 0" ]
	# Slurm ran the tasks of the array again, each once.
	all_restarted
}
