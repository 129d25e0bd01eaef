#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-run while the store is unreachable: no task invents an agreed step, no task hangs, every task saves by
# itself; when the store is back in time it goes on.
# takes: 90
# shellcheck disable=SC2016,SC2034 # text for other shells; what agents.bash uses

load ../support/agents

setup() {
	agents
	# A save of its own comes after a second; one that may take long does not end for that.
	quick=(--report-timeout 1s --save-timeout 10m --join-timeout 2m)
}

teardown() {
	end_agents
	rm -rf "${theirs:-}"
	! mountpoint -q store || umount -l store
}

# With it, each may wait for the store for so long; without it, who has no deadline saves by itself at once.
patient() { quick=(--report-timeout 20s --save-timeout "$1" --join-timeout 2m); }

# gated_agents N: as count_agents, with a trainer whose saves last until there is a file "go".
gated_agents() {
	cat >gated <<-'EOT'
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
	rm -f go
	agents_of "$1" bash gated
	eventually all_begun "$1" 10
}

# counting N [COUNT OPTION...]: N tasks train, each under an agent.
counting() {
	count_agents "$1" --steps 100000 --step-ms 5 "${@:2}"
	eventually all_begun "$1" 10
}

# times FILE TEXT COUNT: FILE has so many lines with TEXT.
times() { [ "$(grep -c "$2" "$1")" = "$3" ] || { cat "$1"; return 1; }; }

# Each of N saved one checkpoint of its own.
saved_alone() {
	for ((i = 0; i < $1; i++)); do
		[ "$(grep -c '^saved ' "job/log/$attempt.$i")" = 1 ]
	done
}

saving() { eventually grep -qs "^save " "job/log/$attempt.$1"; }

# ---- Lost before the notice ----

@test "the store's directory is unreachable when the notice comes: the noticed task saves by itself, 43" {
	options=(--period 1m) # the one that stays must not find the other one dead before its own notice
	counting 2
	mv store away
	kill -TERM "${pids[0]}"
	ended 0 43
	saved_alone 1
	times err.0 "trying again" 1
	times err.0 "answers again" 0
	# The other one knows of nothing and runs on.
	trains_on 1
	eventually grep -q "trying again" err.1
	mv away store
	eventually grep -q "the store answers again" err.1
	kill -TERM "${pids[1]}"
	ended 1 "42|43"
	nothing_left
}

@test "a program that saves on a signal gets it when the store is lost before the notice" {
	quick=(--report-timeout 1s --save-timeout 1m)
	agent 0 1 --on-notice signal:USR1 -- bash -c 'trap "touch saved; exit 0" USR1; touch runs; while :; do sleep 0.02; done'
	eventually test -e runs
	mv store away
	kill -TERM "${pids[0]}"
	ended 0 43
	[ -e saved ]
	mv away store
	nothing_left
}

@test "--on-store-loss end: no save of its own, 43" {
	patient 2s
	options=(--on-store-loss end)
	counting 1
	mv store away
	kill -TERM "${pids[0]}"
	ended 0 43
	[ -z "$(ls job/ckpt)" ]
	mv away store
	nothing_left
}

# ---- Lost later, and back ----

@test "without the store a task that finishes says so and ends with 0, one that fails with its code" {
	patient 2s
	count_agents 1 --steps 200 --step-ms 5
	eventually all_begun 1 10
	mv store away
	ended 0 0
	mv away store
	attempt=2
	count_agents 1 --steps 400 --step-ms 5 --fail 0:200:9
	eventually begun 0 10
	mv store away
	ended 0 9
	mv away store
	nothing_left
}

# ---- Cut off ----

@test "cut off from the store, alone: it ends itself with 44 when the others have given it up, and they name it" {
	own_mounts=(unshare --mount --propagation private)
	"${own_mounts[@]}" true 2>/dev/null || skip "needs root, for mounts of its own"
	patient 2m
	options=(--period 400ms --limit 25)
	agent 0 2 -- "$COUNT" --dir job --steps 1000000 --step-ms 5
	interruptible+=("${own_mounts[@]}")
	agent 1 2 --cut-off 3s -- "$COUNT" --dir job --steps 1000000 --step-ms 5
	eventually all_begun 2 10
	nsenter --target "${pids[1]}" --mount mount -t tmpfs -o mode=700 tmpfs "$PWD/store"
	ended 1 44
	grep -q "the store has taken no beat for .* s, so the other tasks must have given up" err.1
	grep -q "cut off from the store: run me again (44)" err.1
	# Its agent is gone with it, which the other one may see before its silence.
	ended 0 44
	grep -Eq "task 1 on .* is (dead: no heartbeat since|gone)" err.0
	nothing_left
}

@test "--cut-off 0, and a task that no task watches: never ended for the store that is unreachable" {
	patient 2s
	# One alone, and two; they take 8 s, and would be ended after 2.2 s, and 5.2 s.
	alone --run one --period 100ms --cut-off 100ms -- "$COUNT" --dir job --steps 1600 --step-ms 5
	options=(--period 100ms --limit 30 --cut-off 0)
	for i in 0 1; do
		"${interruptible[@]}" preempt-run --task $i --tasks 2 "${quick[@]}" "${options[@]}" -- sh -c 'touch runs.$PREEMPT_TASK; sleep 8' \
			2>"err.2$i" 3>&- &
		pids+=($!)
	done
	eventually test -e runs.0 -a -e runs.1
	eventually begun 0 10
	mv store away
	all_ended 0
	mv away store
	nothing_left
}

@test "cut off under a notice: --on-store-loss decides, not --cut-off" {
	patient 8s
	options=(--period 100ms --cut-off 100ms)
	gated_agents 2
	kill -TERM "${pids[0]}"
	for i in 0 1; do saving $i; done
	mv store away
	sleep 3 # longer than it would take
	touch go
	all_ended 43
	mv away store
	for i in 0 1; do
		[ -e "job/ckpt/$(field RUN_TO_CHECKPOINT step)/$i" ]
		times err.$i "no beat for" 0
	done
	nothing_left
}

@test "a task that hangs while it is cut off ends itself: --progress-timeout goes on counting" {
	quick=(--kill-after 1s --save-timeout 2s --period 100ms --limit 2 --cut-off 0 --progress-timeout 2s)
	agent 0 1 -- bash -c '. "$CLIENTS/preempt.sh"; for s in 0 1 2 3; do preempt_step $s; done; touch hangs; sleep 1000'
	eventually test -e hangs
	mv store away
	ended 0 44
	mv away store
	nothing_left
}

# ---- At the start ----

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

# joining TIMEOUT: task 0 of a new run waits for task 1 to join, so long at most; the store is away.
joining() {
	export PREEMPT_RUN=joins-$1
	quick=(--join-timeout "$1")
	agent 0 2 -- touch started.0
	eventually has TASK/0
	mv store away
	eventually grep -q "; trying again" err.0
}

@test "the store is unreachable while a task waits for the others to join: a notice: 42; --join-timeout: 75; else all start" {
	joining 11m
	kill -TERM "${pids[0]}"
	ended 0 42
	mv away store
	joining 5s
	ended 0 75
	grep -q "$PWD/store" err.0
	[[ $(tail -n 1 err.0) != *"trying again"* ]]
	[ ! -e started.0 ]
	mv away store
	joining 10m
	mv away store
	agent 1 2 -- touch started.1
	all_ended 0
	[ -e started.0 ]
	[ -e started.1 ]
	grep -q "the store answers again" err.0
}
