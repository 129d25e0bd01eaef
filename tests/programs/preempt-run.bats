#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-run: tasks that stop together at one step, each under an agent of its own.
# takes: 60
# shellcheck disable=SC2030,SC2031,SC2034,SC2154 # each test is a subshell with its own variables
# shellcheck disable=SC2012,SC2086 # numbers
# shellcheck disable=SC2016,SC2317 # text for other shells; functions that are handed over

bats_require_minimum_version 1.5.0

setup_file() {
	load ../support/trainers/agents
	agents_setup_file
}

setup() {
	load ../support/trainers/agents
	agents_setup
	# No task is given up who is only slow: no test here waits for one of these to pass.
	quick=(--report-timeout 60s --save-timeout 120s --join-timeout 120s --kill-after 1s)
}

teardown() { agents_teardown; }

# saves_took MILLISECONDS: so long did a save take in earlier attempts. The final round of a grace period
# begins so much earlier, which leaves a machine that stalls the time for it.
saves_took() { preempt-store put "run/$PREEMPT_RUN/MEASURE" "{\"save_ms\": $1}" >/dev/null; }

# PH-1 for any trainer: COMMAND is started with "job STEPS SECONDS".
preempted_and_finished() {
	local i victim=$((RANDOM % 4))
	for ((i = 0; i < 4; i++)); do agent $i 4 -- "$@" job 100000 0.005; done
	until_true 20 all_begun 4 20
	kill -TERM "${pids[victim]}"
	all_ended 42
	saved_together 4
	[ "$(ls job/ckpt)" = "$saved_step" ]
	told_by 0 "claimed by task $victim on $HOSTNAME (signal:TERM: sent by process"
	told_by 0 "step $saved_step is saved and complete: run me again (42); 1 attempt in "
	for ((i = 0; i < 4; i++)); do [ "$(field "LEFT/$i" reason)" = saved ]; done
	[ "$(field CLOSED state) $(field CLOSED step)" = "preempted $saved_step" ]

	attempt=2
	for ((i = 0; i < 4; i++)); do agent $i 4 -- "$@" job $((saved_step + 100)) 0.001; done
	all_ended 0
	for ((i = 0; i < 4; i++)); do grep -qx "start $saved_step" "job/log/2.$i"; done
	counted 4 $((saved_step + 100))
	[ "$(ls job/ckpt)" = "$saved_step" ]
	[ "$(field CLOSED state)" = completed ]
	nothing_left
}

@test "PH-1: TERM to one of 4 agents: all save once at one step and leave with 42; restarted, nothing is lost (C)" {
	count_c() { "$COUNT" --dir "$1" --steps "$2"; }
	cat >trainer <<-'EOT'
		#!/bin/sh
		exec "$COUNT" --dir "$1" --steps "$2" --step-ms "$(echo "$3" | sed 's/^0\.00//')"
	EOT
	chmod +x trainer
	preempted_and_finished ./trainer
}

@test "PH-1: the same with a trainer in bash" {
	preempted_and_finished bash "$TRAINERS/count.sh"
}

@test "PH-1: the same with a trainer in Python" {
	preempted_and_finished python3 "$TRAINERS/count.py"
}

@test "PH-1: one task alone leaves with 42" {
	unset PREEMPT_RUN
	preempt-run -- "$COUNT" --dir job --steps 100000 --step-ms 5 2>err.0 &
	pids=($!)
	until_true 10 begun 0 5
	kill -TERM "${pids[0]}"
	all_ended 42
	[ "$(find job/ckpt/* -maxdepth 0 | wc -l)" = 1 ]
	nothing_left
}

@test "PH-2: one task fails with a message: every other one is ended and leaves with 44; its agent and the first print that message" {
	# Not before all have begun: who comes later says it in other words.
	cat >trainer <<-'EOT'
		#!/bin/sh
		for i in 0 1 3; do
			until [ "$PREEMPT_TASK" != 2 ] || [ -s "job/log/1.$i" ]; do sleep 0.02; done
		done
		exec "$COUNT" --dir job --steps 100000 --step-ms 5 --fail 2:30:7
	EOT
	chmod +x trainer
	for i in 0 1 2 3; do agent $i 4 -- ./trainer; done
	ended 2 7
	for i in 0 1 3; do ended $i 44; done
	told_by "0 2" "task 2 failed on $HOSTNAME with 7: count: task 2: the loss is not a number at step 30"
	told_by 0 "another task broke: run me again (44)"
	[ "$(field ERROR task) $(field ERROR code)" = "2 7" ]
	[ "$(field CLOSED state)" = failed ]
	[ -z "$(ls job/ckpt)" ]
	nothing_left
}

# names_task I COMMAND...: the command makes task I fail, and others because of it; the error names I. Who
# fails because of another waits for a moment until that one's death is known: where the machine has just
# stalled for longer, it may name the other one, and the command is run again, in the next attempt.
names_task() {
	local failed=$1 try i
	shift
	for try in 1 2; do
		"$@"
		until_true 20 has ERROR
		[ "$(field ERROR task)" != "$failed" ] || return 0
		for i in "${!pids[@]}"; do ended "$i" "1|44|137"; done
		attempt=$((attempt + 1))
	done
	echo "the error never names task $failed"
	return 1
}

@test "PH-2: the error of a task that was killed is reported, too, and the peers that fail of it are not blamed" {
	# The peers notice at once, as in a synchronous training: who comes first to the store may be any.
	cat >trainer <<-'EOT'
		#!/bin/bash
		cd job
		touch here.$PREEMPT_TASK
		until [ -e go ]; do sleep 0.01; done
		[ "$PREEMPT_TASK" != 3 ] || kill -KILL $$
		echo "peer of task $PREEMPT_TASK is gone" >&2
		exit 1
	EOT
	chmod +x trainer
	fails_together() {
		rm -f job/go job/here.*
		"$@"
		until_true 10 test -e job/here.0 -a -e job/here.1 -a -e job/here.2 -a -e job/here.3
		touch job/go
	}
	four_agents() { for i in 0 1 2 3; do agent $i 4 -- ./trainer; done; }
	names_task 3 fails_together four_agents
	ended 3 137
	for i in 0 1 2; do ended $i 44; done
	told_by "0 3" "task 3 failed on $HOSTNAME with 137"
	attempt=$((attempt + 1))
	one_of_four() {
		preempt-run -n 4 "${quick[@]}" -- ./trainer 2>err.0 3>&- &
		pids=($!)
	}
	names_task 3 fails_together one_of_four
	ended 0 137
	[ "$(field ERROR task) $(field ERROR code)" = "3 137" ]
	nothing_left
}

@test "PH-2: a real synchronous training: one task is killed, its peers fail at once; the error names it" {
	train=$OUT/examples/train
	[ -x "$train" ] || make -s -C "$REPO" "${train#"$REPO/"}" >&2
	quick+=(--kill-after 1s)
	training=("$train" --dir job --hidden 16 --batch 30 --steps 100000 --step-ms 2)
	four_agents() {
		rm -f out.0
		for ((i = 0; i < 4; i++)); do agent $i 4 -- "${training[@]}"; done
		until_true 20 grep -qs "^step 20 " out.0
		kill -KILL "$(command_of 2 train)"
	}
	names_task 2 four_agents
	ended 2 137
	for i in 0 1 3; do ended $i "44|1"; done
	told_by "0 2" "task 2 failed on $HOSTNAME with 137"
	[ "$(field ERROR task) $(field ERROR code)" = "2 137" ]

	attempt=$((attempt + 1))
	one_of_four() {
		rm -f out.0
		preempt-run -n 4 "${quick[@]}" -- "${training[@]}" >out.0 2>err.0 3>&- &
		pids=($!)
		until_true 20 grep -qs "^step 20 " out.0
		kill -KILL "$(pgrep -P "${pids[0]}" train | sed -n 3p)"
	}
	names_task 2 one_of_four
	ended 0 137
	[ "$(field ERROR task) $(field ERROR code)" = "2 137" ]
	nothing_left
}

@test "PH-3: grace 0, every task noticed again and again: one checkpoint" {
	count_agents 4 --steps 100000 --step-ms 5 --save-ms 300
	until_true 20 all_begun 4 10
	until none_left; do
		for pid in "${pids[@]}"; do kill -TERM "$pid" 2>/dev/null || :; done
		sleep 0.01
	done
	all_ended 42
	saved_together 4
	[ "$(ls job/ckpt)" = "$saved_step" ]
	nothing_left
}

@test "--grace 0, also beside a notice that says more: one checkpoint, at once" {
	# On a slow machine the time may be up before all have begun.
	for after in 2s 10s 40s; do
		options=(--grace 0 --notice "deadline:+$after" --notice signal:TERM)
		count_agents 2 --steps 100000 --step-ms 5 --save-ms 100
		all_ended 42
		[ "$(field RUN_TO_CHECKPOINT kind)" != save ]
		[ "$(field RUN_TO_CHECKPOINT kind)" != exit ] || break
		rm -rf job/ckpt
		attempt=$((attempt + 1))
	done
	saved_together 2
	[ "$(ls job/ckpt)" = "$saved_step" ]
	nothing_left
}

@test "PH-4, PH-3: grace 16 s, every task noticed: exactly two checkpoints, and a message says what the grace was used for" {
	options=(--grace 16s)
	saves_took 3000
	# Where the machine stalls, the time may allow for less: tried again.
	for try in 1 2 3 4; do
		rm -rf job/log job/ckpt
		count_agents 4 --steps 100000 --step-ms 5 --save-ms 300 --sync
		until_true 20 all_begun 4 10
		kill -TERM "${pids[@]}"
		all_ended "42|43"
		[ "$(count_keys SAVED/)" != 8 ] || break
		attempt=$((attempt + 1))
	done
	for i in 0 1 2 3; do [ "$(field "LEFT/$i" reason)" = saved ]; done
	told_by 0 "run me again (42)"
	[ "$(count_keys SAVED/)" = 8 ]
	[ "$(find job/ckpt -mindepth 1 -maxdepth 1 | wc -l)" = 2 ]
	[ "$(field RUN_TO_CHECKPOINT kind) $(field LAST_RUN_TO_CHECKPOINT/2 kind)" = "save exit" ]
	grep -qE '1[0-9]\.[0-9] s of grace: [0-9.]+ s of training, [0-9.]+ s to agree and save, [0-9.]+ s left' err.0
	nothing_left
}

@test "PH-5: a notice with probability 1/7 each second, by each task's own detector: all leave soon" {
	options=(--notice 'command:[ -e storm ] && shuf -i 1-7 -n 1 | grep -qx 1')
	count_agents 4 --steps 1000000 --step-ms 5 --save-ms 100
	# Before all are under way there is nothing that all could save.
	until_true 20 all_begun 4 10
	touch storm
	until_true 60 field TERMINATED_WORKER task
	all_ended 42
	# At the first step that all can stop at.
	[ "$(field RUN_TO_CHECKPOINT kind)" = exit ]
	saved_together 4
	[ "$saved_step" = "$(for i in 0 1 2 3; do field STEP/1/$i next; done | sort -n | tail -n 1)" ]
	[ "$(ls job/ckpt)" = "$saved_step" ]
	nothing_left
}

@test "PH-20: tasks with different grace, all noticed: the shortest counts for all" {
	# So long that there is one save, at once, and half of what is left for a silent task to report.
	saves_took 12000
	agent 0 3 --grace 90s -- "$COUNT" --dir job --steps 100000 --step-ms 5 --save-ms 100
	agent 1 3 -v --grace 32s -- "$COUNT" --dir job --steps 100000 --step-ms 5 --save-ms 100
	agent 2 3 -v -- "$COUNT" --dir job --steps 100000 --step-ms 5 --save-ms 100
	until_true 20 all_begun 3 10
	kill -TERM "${pids[@]}"
	all_ended 42
	[ "$(field DEADLINE left)" -le 32000 ]
	# As far as each knows: it may have had its notice some seconds before task 1.
	for i in 0 1 2; do grep -qE ': [1-7]?[0-9]\.[0-9] s of grace: ' err.$i; done
	[ "$(find job/ckpt -mindepth 1 -maxdepth 1 | wc -l)" -ge 1 ]
	nothing_left
}

@test "PH-6: no task can save: all leave with 43, no checkpoint is offered" {
	count_agents 3 --steps 100000 --step-ms 5 --save-fails all
	until_true 20 all_begun 3 10
	kill -TERM "${pids[0]}"
	all_ended 43
	[ -z "$(ls job/ckpt)" ]
	[ "$(count_keys SAVED/)" = 0 ]
	grep -q "stopped without a new complete checkpoint: run me again (43)" err.0
	nothing_left
}

@test "asked to stop: 93, and what is left behind is said" {
	count_agents 2 --steps 100000 --step-ms 5 --save-fails 1
	until_true 20 all_begun 2 10
	preempt-claim --run job --store "$PREEMPT_STORE" --then stop --outside
	all_ended 93
	for i in 0 1; do
		grep -q "asked to stop, without a new complete checkpoint: do not run me again (93)" err.$i
	done
	attempt=2
	count_agents 2 --steps 100000 --step-ms 5
	until_true 20 all_begun 2 10
	preempt-claim --run job --store "$PREEMPT_STORE" --then stop --outside
	all_ended 93
	step=$(field RUN_TO_CHECKPOINT step)
	grep -q "step $step is saved and complete; asked to stop: do not run me again (93)" err.0
	nothing_left
}

@test "PH-6: one task cannot save: the checkpoint is not complete, all leave with 43" {
	count_agents 3 --steps 100000 --step-ms 5 --save-fails 1
	until_true 20 all_begun 3 10
	kill -TERM "${pids[0]}"
	all_ended 43
	[ "$(count_keys SAVED/)" = 2 ]
	attempt=2
	count_agents 3 --steps 30
	all_ended 0
	for i in 0 1 2; do grep -qx "start 0" job/log/2.$i; done
	nothing_left
}

@test "PH-7: a notice after training has finished is no failure" {
	echo '"$COUNT" --dir job --steps 20 --step-ms 1 && until [ -e go ]; do sleep 0.02; done' >trainer
	for i in 0 1 2; do agent $i 3 -- sh trainer; done
	until_true 20 test -e job/end/0 -a -e job/end/1 -a -e job/end/2
	kill -TERM "${pids[1]}"
	until_true 20 has TERMINATED_WORKER
	touch go
	all_ended 0
	[ "$(field CLOSED state)" = completed ]
	[ -z "$(ls job/ckpt)" ]
	nothing_left
}

@test "PH-8, SY-1: without a notice no task is asked to save, and nothing is left after the end" {
	count_agents 4 --steps 300 --step-ms 1
	all_ended 0
	counted 4 300
	[ -z "$(ls job/ckpt)" ]
	[ "$(keys "" | sed 's|.*/000001/||; s|/.*||' | sort -u | xargs)" = "ALL_JOINED CLOSED LEFT OPEN TASK" ]
	nothing_left
}

@test "PH-9: the message of a preemption can be read afterwards" {
	count_agents 2 --steps 100000 --step-ms 5
	until_true 20 all_begun 2 5
	kill -TERM "${pids[1]}"
	all_ended 42
	nothing_left
	[ "$(field TERMINATED_WORKER task) $(field TERMINATED_WORKER source)" = "1 signal:TERM" ]
	[[ $(field TERMINATED_WORKER reason) = "sent by process $$ "* || $(field TERMINATED_WORKER reason) = "sent by process $BASHPID "* ]]
	[ "$(field SEAL text)" = "claimed by task 1 on $HOSTNAME" ]
}

@test "PH-10: the claimer is killed between claim and step: the others agree without it and leave with 43" {
	count_agents 4 --steps 100000 --step-ms 5
	until_true 20 all_begun 4 10
	# Its training stands still, so that it cannot save and leave before it is killed.
	kill -STOP "$(command_of 1)"
	(preempt-store wait "run/job/000001/TERMINATED_WORKER" >/dev/null && kill -KILL "${pids[1]}") 3>&- &
	kill -TERM "${pids[1]}"
	ended 1 137
	for i in 0 2 3; do ended $i 43; done
	saved_at_agreed 0 2 3
	until_true 10 none_left
}

@test "PH-11: a peer that is many steps ahead: all save at its next step" {
	count_agents 3 --steps 1000000 --step-ms 10 --slow 1:50
	until_true 20 all_begun 3 5
	kill -TERM "${pids[1]}"
	all_ended 42 60
	saved_together 3
	nothing_left
}

@test "PH-11: one task with 1 ms steps beside one with 300 ms steps: the same step" {
	count_agents 2 --steps 1000000 --step-ms 1 --slow 1:300
	until_true 20 begun 1 1
	until_true 20 begun 0 100
	kill -TERM "${pids[0]}"
	# The slow one has to catch up some hundreds of steps.
	until_true 10 has RUN_TO_CHECKPOINT
	[ "$(field RUN_TO_CHECKPOINT step)" -gt 20 ]
	kill -0 "${pids[0]}"
	for i in 0 1; do
		[ "$(field STEP/1/$i next)" -le "$(field RUN_TO_CHECKPOINT step)" ]
	done
	until_true 20 has SAVED/1/0
	never_after 0 "$(field RUN_TO_CHECKPOINT step)"
	# One wants it back sooner than the slow one can: that is what a synchronous training is for.
}

@test "PH-11: synchronous training, one task with 300 ms steps: the same step, within two steps" {
	count_agents 3 --steps 1000000 --step-ms 1 --slow 1:300 --sync
	until_true 20 begun 1 2
	kill -TERM "${pids[0]}"
	all_ended 42
	saved_together 3
	nothing_left
}

@test "PH-12: a peer is dead before it reports: decided without it, every task leaves" {
	count_agents 3 --steps 100000 --step-ms 5
	until_true 20 all_begun 3 10
	stop_agent 2
	kill -TERM "${pids[0]}"
	until_true 10 has STEP/1/1
	! has STEP/1/2 || false
	kill -KILL "${pids[2]}"
	ended 2 137
	ended 0 43
	ended 1 43
	saved_at_agreed 0 1
	has DEAD/2
	nothing_left
}

@test "PH-12: a peer dies after its report, before its ack" {
	count_agents 3 --steps 100000 --step-ms 5
	until_true 20 all_begun 3 10
	stop_agent 1
	kill -TERM "${pids[0]}"
	until_true 10 has STEP/1/2
	# It reports when it is continued; the others' decision comes at once after. Its training stands
	# still, so that it cannot save and leave before it is killed.
	kill -STOP "$(command_of 1)"
	(preempt-store wait "run/job/000001/STEP/1/1" >/dev/null && kill -KILL "${pids[1]}") 3>&- &
	kill -CONT "${pids[1]}"
	ended 1 137
	ended 0 43
	ended 2 43
	saved_at_agreed 0 2
	nothing_left
}

@test "PH-15: a notice after one peer has finished: the others save, without it no checkpoint is complete" {
	count_agents 3 --steps 100000 --step-ms 5 --end-early 2:20
	ended 2 0
	for i in 0 1; do until_true 20 begun $i 5; done
	kill -TERM "${pids[0]}"
	ended 0 43
	ended 1 43
	[ "$(field RUN_TO_CHECKPOINT members)" = 0-1 ]
	[ "$(field SAVED/1/0 step)" = "$(field SAVED/1/1 step)" ]
	[ "$(field LEFT/2 reason)" = completed ]
	nothing_left
}

@test "PH-17: the user's wrapper traps TERM already: its trap still runs with --forward" {
	cat >wrapper <<-'EOT'
		#!/bin/bash
		trap 'echo trapped >>job/trapped' TERM
		"$COUNT" --dir job --steps 100000 --step-ms 5 &
		child=$!
		code=143
		# A trap interrupts wait, the command goes on.
		while [ $code = 143 ]; do code=0; wait $child || code=$?; done
		exit $code
	EOT
	chmod +x wrapper
	options=(--forward)
	for i in 0 1; do agent $i 2 --forward -- ./wrapper; done
	until_true 20 all_begun 2 10
	kill -TERM "${pids[0]}"
	all_ended 42
	[ "$(cat job/trapped)" = trapped ]
	saved_together 2
	nothing_left
}

@test "PH-17: a trap for TERM in the training script itself stays" {
	cat >trainer <<-'EOT'
		trap 'echo trapped >>trapped' TERM
		. "$TRAINERS/count.sh"
	EOT
	options=(--forward)
	for i in 0 1; do agent $i 2 --forward -- bash trainer job 100000 0.01; done
	until_true 20 all_begun 2 10
	kill -TERM "${pids[1]}"
	all_ended 42
	[ "$(cat job/trapped)" = trapped ]
	saved_together 2
}

@test "PH-19: the same TERM twice, and once more while saving: one claim, one checkpoint" {
	count_agents 2 --steps 100000 --step-ms 5 --save-ms 500
	until_true 20 all_begun 2 5
	# No task leaves before it has saved, too.
	child=$(command_of 1)
	kill -STOP "$child"
	kill -TERM "${pids[0]}"
	kill -TERM "${pids[0]}"
	until_true 10 grep -qs '^save ' job/log/1.0
	kill -TERM "${pids[0]}"
	kill -CONT "$child"
	all_ended 42
	saved_together 2
	[ "$(ls job/ckpt)" = "$saved_step" ]
	[ "$(grep -c 'preempt-run: notice:' err.0)" = 1 ]
	nothing_left
}

@test "PH-21: a notice before the first step of any: nothing to save, 42" {
	count_agents 3 --steps 100000 --step-ms 5 --start-ms 60000
	for i in 0 1 2; do until_true 20 started $i; done
	kill -TERM "${pids[1]}"
	all_ended 42
	[ -z "$(ls job/ckpt)" ]
	grep -q "no task has begun" err.0
	nothing_left
}

@test "PH-21: a notice before the first step of one: it stops at its first boundary, if it can" {
	count_agents 2 --steps 100000 --step-ms 5 --slow 1:5 --save-ms 1
	until_true 20 all_begun 2 3
	kill -TERM "${pids[1]}"
	all_ended 42
	saved_together 2
	nothing_left
}

@test "PH-21, SY-9: restored at step 1000, one has begun, two have not called yet: all save where it is" {
	agent 0 3 -- "$COUNT" --dir job --from 1000 --steps 200000 --step-ms 5
	for i in 1 2; do agent $i 3 -- "$COUNT" --dir job --from 1000 --steps 200000 --step-ms 5 --start-ms 1000; done
	until_true 20 begun 0 1000
	for i in 1 2; do until_true 20 started $i; done
	kill -TERM "${pids[2]}"
	all_ended 42
	saved_together 3
	((saved_step > 1000))
	nothing_left
}

@test "PH-21: right after a restore at step 1000: all save at one step just after it" {
	count_agents 3 --from 1000 --steps 200000 --step-ms 200
	until_true 20 all_begun 3 1000
	kill -TERM "${pids[2]}"
	all_ended 42
	saved_together 3
	((saved_step > 1000 && saved_step < 1100))
	nothing_left
}

@test "PH-22: keys of an earlier attempt touch nothing" {
	count_agents 2 --steps 100000 --step-ms 2
	until_true 20 all_begun 2 5
	kill -TERM "${pids[0]}"
	all_ended 42
	first=$(field RUN_TO_CHECKPOINT step)
	attempt=2
	count_agents 2 --steps 100000 --step-ms 2
	until_true 20 all_begun 2 $((first + 50))
	[ "$(count_keys "")" = 4 ]
	kill -TERM "${pids[1]}"
	all_ended 42
	saved_together 2
	((saved_step > first + 50))
	attempt=3
	count_agents 2 --steps $((saved_step + 100))
	all_ended 0
	counted 2 $((saved_step + 100))
	nothing_left
}

@test "without --run: the store of the name that is made up goes with the run, however that ends; others stay" {
	export XDG_STATE_HOME=$PWD/state
	unset PREEMPT_STORE PREEMPT_RUN
	mkdir -p state/preempt
	touch state/preempt/solo-of-another.db
	run -0 preempt-run -- true
	run -7 preempt-run -- sh -c 'ls state/preempt >seen; exit 7'
	run -137 preempt-run -- sh -c 'kill -KILL $$'
	grep -q '^solo-.*\.db$' seen
	[ "$(ls state/preempt)" = solo-of-another.db ]
	run -0 preempt-run --run named -- true
	[ -f state/preempt/named.db ]
	run -0 preempt-run --store other.db -- true
	[ -f other.db ]
}

@test "boards are not made in a full /dev/shm, as in a read-only one" {
	[ "$(id -u)" = 0 ] && unshare --mount true 2>/dev/null || skip "needs root, to mount a /dev/shm"
	run -0 --separate-stderr env -u XDG_RUNTIME_DIR TMPDIR="$PWD" unshare --mount sh -c '
		mount -t tmpfs -o size=64k none /dev/shm && { head -c 1m /dev/zero >/dev/shm/all 2>/dev/null
		exec preempt-run --run r --store s.db -- sh -c "echo \$PREEMPT_DIR"; }'
	[[ $output = "$PWD"/preempt-board-* ]]
}
