#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-run while the store is unreachable: no task invents an agreed step, no task hangs, every task saves by
# itself; when the store is back in time it goes on.
# takes: 210
# shellcheck disable=SC2030,SC2031,SC2034,SC2154 # each test is a subshell with its own variables
# shellcheck disable=SC2012,SC2016,SC2086 # numbers; text for other shells

bats_require_minimum_version 1.5.0

setup_file() {
	load ../support/trainers/agents
	agents_setup_file
}

setup() {
	load ../support/trainers/agents
	agents_setup
	quick=(--report-timeout 20s --save-timeout 2s --join-timeout 2m)
}

# gated_agents N: as count_agents, with a trainer whose saves last until there is a file "go".
gated_agents() {
	local i
	cat >gated <<-'EOT'
		#!/bin/bash
		. "$CLIENTS/preempt.sh"
		log=job/log/$PREEMPT_ATTEMPT.$PREEMPT_TASK
		mkdir -p job/log job/ckpt
		save() {
			echo "save $1" >>"$log"
			until [ -e go ]; do sleep 0.02; done
			mkdir -p "job/ckpt/$1" && : >"job/ckpt/$1/$PREEMPT_TASK"
		}
		for ((s = 0; ; s++)); do
			preempt_step $s || { save $s && preempt_saved $s; } || exit
			echo "begin $s" >>"$log"
			sleep 0.01
		done
	EOT
	chmod +x gated
	rm -f go
	for ((i = 0; i < $1; i++)); do agent "$i" "$1" "${options[@]}" -- ./gated; done
}

teardown() {
	agents_teardown
	rm -rf "${theirs:-}"
	! mountpoint -q store || umount -l store
}

# times FILE TEXT COUNT: FILE has so many lines with TEXT.
times() { [ "$(grep -c "$2" "$1")" = "$3" ] || { cat "$1"; return 1; }; }

# Each saved one checkpoint of its own.
saved_alone() { # N
	for ((i = 0; i < $1; i++)); do
		[ "$(grep -c '^saved ' "job/log/$attempt.$i")" = 1 ]
	done
}

@test "the store's directory is unreachable when the notice comes: the noticed task saves by itself, 43" {
	quick=(--report-timeout 1s --save-timeout 10m --join-timeout 2m)
	options=(--period 1m) # the one that stays must not find the other one dead before its own notice
	count_agents 2 --steps 100000 --step-ms 5
	until_true 10 all_begun 2 10
	mv store away
	kill -TERM "${pids[0]}"
	ended 0 43 20
	saved_alone 1
	grep -q "trying again" err.0
	# The other one knows of nothing and runs on.
	at=$(tail -n 1 job/log/1.1)
	until_true 5 begun 1 $((${at#* } + 20))
	until_true 10 grep -q "trying again" err.1
	mv away store
	until_true 10 grep -q "the store answers again" err.1
	kill -TERM "${pids[1]}"
	ended 1 "42|43" 20
	nothing_left
}

@test "the store is lost before the notice, which names no deadline: saved at once; all tasks in one agent: 42" {
	quick=(--report-timeout 1s --save-timeout 10m --join-timeout 2m)
	one_agent 3 --steps 100000 --step-ms 5 --slow 1:40
	until_true 10 all_begun 3 10
	mv store away
	kill -TERM "${pids[0]}"
	ended 0 42 30
	mv away store
	# The same step, once, and no task went on from it.
	step=$(sed -n 's/^saved //p' job/log/1.0)
	saved_alone 3
	for i in 0 1 2; do
		[ -e "job/ckpt/$step/$i" ]
		never_after $i "$step"
	done
	grep -q "3 task(s) of this agent save at step $step by themselves" err.0
	times err.0 "trying again" 1
	times err.0 "answers again" 0
	nothing_left
}

@test "the store is lost before the notice: two agents save by themselves at once, and leave in time, 43" {
	quick=(--report-timeout 1s --save-timeout 10m --join-timeout 2m --period 1m)
	count_agents 2 --steps 100000 --step-ms 5
	until_true 10 all_begun 2 10
	mv store away
	kill -TERM "${pids[0]}" "${pids[1]}"
	all_ended 43 30
	saved_alone 2
	for i in 0 1; do
		times err.$i "trying again" 1
		times err.$i "answers again" 0
	done
	mv away store
	nothing_left
}

@test "the store takes no more writes, but can be read: saved at once, and not called back again and again" {
	mount -t tmpfs -o size=1m tmpfs store 2>/dev/null || skip "needs root, for a small tmpfs"
	chmod 700 store
	quick=(--report-timeout 1s --save-timeout 10m --join-timeout 2m)
	one_agent 2 --steps 100000 --step-ms 5
	until_true 10 all_begun 2 10
	head -c 4m /dev/zero >store/filler 2>/dev/null || :
	kill -TERM "${pids[0]}"
	ended 0 42 30
	saved_alone 2
	times err.0 "answers again" 0
	nothing_left
}

@test "a program that saves on a signal gets it when the store is lost before the notice" {
	quick=(--report-timeout 1s --save-timeout 1m --join-timeout 2m)
	echo 'trap "touch saved; exit 0" USR1; touch runs; while :; do sleep 0.02; done' >program
	options=(--on-notice signal:USR1)
	agent 0 1 "${options[@]}" -- bash program
	until_true 10 test -e runs
	mv store away
	kill -TERM "${pids[0]}"
	ended 0 43 30
	[ -e saved ]
	mv away store
	nothing_left
}

@test "the store goes away right after the claim: every task that saw it saves by itself, 43" {
	options+=(-v) # each says what it has seen
	count_agents 3 --steps 100000 --step-ms 5 --slow 2:400
	until_true 10 all_begun 3 3
	kill -TERM "${pids[0]}"
	for i in 0 1 2; do until_true 10 grep -q "claimed by" err.$i; done
	mv store away
	for i in 0 1; do ended $i "42|43" 25; done
	mv away store
	ended 2 "42|43" 25
	for i in 0 1 2; do
		[ "$(grep -c '^saved ' job/log/1.$i)" -le 2 ]
	done
	nothing_left
}

@test "the store goes away after the decision: its save needs no store; who cannot say so leaves with 43" {
	quick=(--report-timeout 20s --save-timeout 7s --join-timeout 2m)
	gated_agents 2
	until_true 10 all_begun 2 10
	kill -TERM "${pids[0]}"
	until_true 10 grep -qs "^save " job/log/1.0
	until_true 10 grep -qs "^save " job/log/1.1
	mv store away
	touch go
	for i in 0 1; do ended $i 43 25; done
	mv away store
	step=$(field RUN_TO_CHECKPOINT step)
	for i in 0 1; do
		[ -e "job/ckpt/$step/$i" ]
		never_after $i "$step"
	done
	nothing_left
}

@test "the store is back before the time is over: the agreement goes on as if nothing had been" {
	quick=(--report-timeout 4m --save-timeout 2m) # the store is missed for half of that
	for stage in notice saving; do
		gated_agents 3
		until_true 10 all_begun 3 10
		if [ $stage = saving ]; then
			kill -TERM "${pids[0]}"
			until_true 10 grep -qs "^save " "job/log/$attempt.1"
		fi
		mv store away
		[ $stage = saving ] || kill -TERM "${pids[0]}"
		until_true 10 grep -q "trying again" err.0
		mv away store
		touch go
		all_ended 42 25
		saved_at_agreed 0 1 2
		attempt=$((attempt + 1))
	done
	nothing_left
}

@test "cut off from the store, alone: it ends itself with 44 when the others have given it up, and they name it" {
	own_mounts=(unshare --mount --propagation private)
	"${own_mounts[@]}" true 2>/dev/null || skip "needs root, for mounts of its own"
	quick=(--report-timeout 20s --save-timeout 2m --join-timeout 2m --period 400ms --limit 25)
	agent 0 2 -- "$COUNT" --dir job --steps 1000000 --step-ms 5
	interruptible+=("${own_mounts[@]}")
	agent 1 2 --cut-off 3s -- "$COUNT" --dir job --steps 1000000 --step-ms 5
	until_true 20 all_begun 2 10
	nsenter --target "${pids[1]}" --mount mount -t tmpfs -o mode=700 tmpfs "$PWD/store"
	ended 1 44 60
	grep -q "the store has taken no beat for .* s, so the other tasks must have given up" err.1
	grep -q "cut off from the store: run me again (44)" err.1
	# Its agent is gone with it, which the other one may see before its silence.
	ended 0 44 60
	grep -Eq "task 1 on .* is (dead: no heartbeat since|gone)" err.0
	nothing_left
}

@test "the store is unreachable for all, and comes back before --cut-off: no task is ended" {
	quick=(--report-timeout 20s --save-timeout 2m --join-timeout 2m --period 400ms --limit 25 --cut-off 10m)
	count_agents 2 --steps 1000000 --step-ms 5
	until_true 20 all_begun 2 10
	mv store away
	for i in 0 1; do
		at=$(tail -n 1 job/log/1.$i)
		until_true 20 begun $i $((${at#* } + 600))
	done
	mv away store
	preempt-claim --outside
	all_ended 42 30
	nothing_left
}

@test "--cut-off 0, and a task that no task watches: never ended for the store that is unreachable" {
	quick=(--report-timeout 20s --save-timeout 2m --join-timeout 2m --period 100ms --cut-off 100ms)
	count_agents 1 --steps 1600 --step-ms 5 # 8 s, and two periods and a timeout are 2.2 s
	until_true 20 all_begun 1 10
	mv store away
	ended 0 0 60
	mv away store
	attempt=2
	rm -rf job/ckpt job/log
	options=(--cut-off 0)
	count_agents 2 --steps 1600 --step-ms 5
	until_true 20 all_begun 2 10
	mv store away
	all_ended 0 60
	mv away store
	nothing_left
}

@test "cut off under a notice: --on-store-loss decides, not --cut-off" {
	quick=(--report-timeout 20s --save-timeout 15s --join-timeout 2m --period 100ms --cut-off 100ms)
	gated_agents 2
	until_true 20 all_begun 2 10
	kill -TERM "${pids[0]}"
	for i in 0 1; do until_true 20 grep -qs "^save " job/log/1.$i; done
	mv store away
	read -r -t 6 <>"$(echo boards/*/pause | cut -d' ' -f1)" || : # longer than it would take
	touch go
	all_ended 43 60
	mv away store
	for i in 0 1; do
		[ -e "job/ckpt/$(field RUN_TO_CHECKPOINT step)/$i" ]
		[ "$(grep -c "no beat for" err.$i)" = 0 ]
	done
	nothing_left
}

@test "a task that hangs while it is cut off ends itself: --progress-timeout goes on counting" {
	quick=(--join-timeout 2m --kill-after 1s --period 100ms --limit 2 --cut-off 0 --progress-timeout 2s)
	echo '. "$CLIENTS/preempt.sh"; for s in 0 1 2 3; do preempt_step $s; done; touch hangs; sleep 1000' >program
	agent 0 1 -- bash program
	until_true 20 test -e hangs
	mv store away
	ended 0 44 60
	mv away store
	nothing_left
}

@test "--on-store-loss end: no save of its own, 43" {
	options=(--on-store-loss end)
	count_agents 1 --steps 100000 --step-ms 5
	until_true 10 all_begun 1 10
	mv store away
	kill -TERM "${pids[0]}"
	ended 0 43 25
	[ -z "$(ls job/ckpt)" ]
	mv away store
	nothing_left
}

@test "with a deadline: the task saves by itself in time for it" {
	# At the deadline the command is ended; without one it would wait for the other time.
	# A save is said to have taken long before, so it begins after 2 s.
	preempt-store put run/job/MEASURE '{"save_ms": 6000}' >/dev/null
	options=(--grace 10s --save-timeout 10m)
	count_agents 1 --steps 100000 --step-ms 5 --save-ms 200
	until_true 10 all_begun 1 10
	mv store away
	kill -TERM "${pids[0]}"
	until_true 20 grep -qs "^saved " job/log/1.0
	mv away store
	ended 0 "42|43" 25
	nothing_left
}

@test "without the store a task that finishes says so and ends with 0, one that fails with its code" {
	count_agents 1 --steps 200 --step-ms 5
	until_true 10 all_begun 1 10
	mv store away
	ended 0 0 25
	mv away store
	attempt=2
	count_agents 1 --steps 400 --step-ms 5 --fail 0:200:9
	until_true 10 begun 0 10
	mv store away
	ended 0 9 25
	mv away store
	nothing_left
}

@test "a full filesystem under the store: every task saves by itself or is saved together, no task hangs" {
	mount -t tmpfs -o size=1m tmpfs store 2>/dev/null || skip "needs root, for a small tmpfs"
	chmod 700 store
	options=(--report-timeout 1s --save-timeout 10s --period 1m) # as above
	count_agents 2 --steps 100000 --step-ms 5
	until_true 10 all_begun 2 10
	head -c 4m /dev/zero >store/filler 2>/dev/null || :
	kill -TERM "${pids[0]}"
	ended 0 "42|43" 20
	rm store/filler
	kill -TERM "${pids[1]}" 2>/dev/null || :
	ended 1 "42|43" 20
	saved_alone 2
	nothing_left
}

@test "a store that cannot be opened at all: 75 or 77, one message, the command is not started" {
	run -75 --separate-stderr preempt-run --store "$PWD/no/such/dir/db" --task 0 --tasks 1 -- touch started
	[[ $stderr == preempt-run:* ]]
	chmod 777 store
	run -77 --separate-stderr preempt-run --task 0 --tasks 1 -- touch started
	[[ $stderr == preempt-run:* ]]
	chmod 700 store
	echo "not a database, whatever its name" >store/db
	run -65 --separate-stderr preempt-run --task 0 --tasks 1 -- touch started
	[[ $stderr == preempt-run:* ]]
	[ ! -e started ]
	[ "$(cat store/db)" = "not a database, whatever its name" ]
}

@test "the store is unreachable while a task waits for the others to join: it waits on, and all start" {
	agent 0 2 -- touch started.0
	until_true 20 has TASK/0
	mv store away
	until_true 20 grep -q "; trying again" err.0
	mv away store
	agent 1 2 -- touch started.1
	all_ended 0 20
	[ -e started.0 ]
	[ -e started.1 ]
	grep -q "the store answers again" err.0
}

@test "the store is unreachable while a task waits for the others to join, until --join-timeout: 75, and nothing is tried again" {
	# On a machine that stalls the time may be over before the store is unreachable: 44.
	for patience in 3s 10s 40s; do
		quick=(--join-timeout "$patience")
		agent 0 2 -- touch started
		until_true 20 has TASK/0
		mv store away
		ended 0 "75|44" 20
		! grep -q "missing: 1" err.0 || { mv away store; attempt=$((attempt + 1)); continue; }
		break
	done
	[ -e away ]
	grep -q "$PWD/store" err.0
	[[ $(tail -n 1 err.0) != *"trying again"* ]]
	[ ! -e started ]
	mv away store
}

@test "a notice while the store is unreachable and a task waits for the others to join: 42" {
	quick=(--join-timeout 10m)
	agent 0 2 -- touch started
	until_true 20 has TASK/0
	mv store away
	until_true 20 grep -q "; trying again" err.0
	kill -TERM "${pids[0]}"
	ended 0 42 20
	[ ! -e started ]
	mv away store
}

# One more time; true: one of them has seen that the revision went back.
put_back() {
	for i in 1 2 3; do preempt-store put other $i >/dev/null; done
	# In one write: no task may read half of it.
	dd if=copy of=store/db bs=16M conv=notrunc status=none
	grep -q "went back from revision .* older copy" err.0 err.1
}

@test "an older copy of the store is put back under running agents: they say so, and see the next claim" {
	options=(--period 1m --save-timeout 2m)
	count_agents 2 --steps 100000 --step-ms 5
	until_true 10 all_begun 2 10
	cp store/db copy
	until_true 20 put_back
	preempt-claim --run "$PREEMPT_RUN" --outside
	ended 0 42 20
	ended 1 42 20
}

@test "the permission for the store is taken away when the notice comes: saved by itself in time, 42" {
	[ "$(id -u)" = 0 ] || skip "needs root, to be another user"
	as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	"${as_nobody[@]}" test -x "$(command -v preempt-run)" || skip "another user may not run the programs here"
	theirs=$(mktemp -d) # where others can come, too
	mkdir "$theirs/store"
	cat >"$theirs/trainer" <<-'EOT'
		. ./preempt.sh
		for ((s = 0; s < 100000; s++)); do
			preempt_step $s || { echo "$s" >saved && preempt_saved $s; } || exit
			: >runs
			sleep 0.02
		done
	EOT
	cp "$BATS_TEST_DIRNAME/../../lib/client/preempt.sh" "$theirs"
	chown -R 65534:65534 "$theirs"
	(cd "$theirs" && exec "${as_nobody[@]}" preempt-run --store "$PWD/store/s.db" \
		--run denied "${quick[@]}" --grace 10s -- bash trainer) 2>err.0 3>&- &
	pids=($!)
	until_true 20 test -e "$theirs/runs"
	chmod 0 "$theirs/store"
	kill -TERM "${pids[0]}"
	ended 0 42 25 # it is the only task, so its checkpoint is complete
	[ -s "$theirs/saved" ]
	grep -q 'Permission denied' err.0
	rm -rf "$theirs"
}
