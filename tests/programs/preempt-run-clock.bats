#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-run while the wall clock jumps by an hour, either way.
# asan: no (the clock is set forward by LD_PRELOAD)
# shellcheck disable=SC2030,SC2031,SC2034,SC2154 # each test is a subshell with its own variables
# shellcheck disable=SC2012,SC2086 # numbers

bats_require_minimum_version 1.5.0

setup_file() {
	load ../support/trainers/agents
	agents_setup_file
	"${CC:-cc}" -shared -fPIC -O -D_GNU_SOURCE -o "$BATS_FILE_TMPDIR/clock.so" -x c "$TRAINERS/clock.c.txt"
}

setup() {
	load ../support/trainers/agents
	agents_setup
	quick=(--report-timeout 60s --save-timeout 120s --join-timeout 120s --kill-after 1s)
	head -c 8 /dev/zero >clock
	export CLOCK_OFFSET=$PWD/clock
	interruptible=(env "LD_PRELOAD=$BATS_FILE_TMPDIR/clock.so")
}

teardown() { agents_teardown; }

# clock_is SECONDS [FILE]: the wall clock of all agents (that look at FILE) is so much ahead.
clock_is() {
	local i bytes=''
	for ((i = 0; i < 8; i++)); do bytes+=$(printf '\\x%02x' $((($1 >> (8 * i)) & 255))); done
	printf '%b' "$bytes" | dd of="${2:-clock}" conv=notrunc status=none
}

# machines SECONDS...: an agent each, on a machine of its own whose clock is so much ahead.
machines() {
	local i=0 ahead
	for ahead; do
		clock_is "$ahead" "clock.$i"
		printf '%08d-0000-4000-8000-000000000000\n' "$i" >"boot.$i"
		interruptible=(env "LD_PRELOAD=$BATS_FILE_TMPDIR/clock.so" "CLOCK_OFFSET=$PWD/clock.$i" "CLOCK_BOOT=$PWD/boot.$i" "CLOCK_HOST=n$i")
		agent "$i" $# "${options[@]}" -- "$COUNT" --dir job --steps 100000 --step-ms 5
		i=$((i + 1))
	done
}

@test "CS-3: the wall clock jumps by an hour, both ways, while training and while agreeing: nothing happens" {
	for hours in 1 -1; do
		count_agents 3 --steps 100000 --step-ms 5 --save-ms 300
		until_true 10 all_begun 3 $((attempt * 5))
		clock_is $((hours * 3600))
		# As many steps as it likes: no task thinks that any task is dead or late.
		at=$(tail -n 1 "job/log/$attempt.0")
		until_true 10 begun 0 $((${at#* } + 100))
		[ "$(keys "" | sed 's|.*/00000./||; s|/.*||' | sort -u | xargs)" = "ALL_JOINED OPEN TASK" ]
		kill -TERM "${pids[0]}"
		until_true 10 has RUN_TO_CHECKPOINT
		clock_is 0
		all_ended 42
		saved_together 3
		attempt=$((attempt + 1))
		nothing_left
	done
}

# outlives_term PROGRAM: this piece of the script no longer dies of TERM.
outlives_term() {
	local pid mask
	pid=$(pgrep -P "${pids[0]}" -x "$1") || return
	while read -r mask; do
		((mask & 1 << 14)) && return
	done < <(sed -n 's/^Sig\(Blk\|Ign\|Cgt\):\t/0x/p' "/proc/$pid/status")
	return 1
}

@test "composed: the wall clock jumps by an hour while the task saves: its deadline stays, and it leaves with 42" {
	export PREEMPT_GRACE=32s PREEMPT_TASK=0 PREEMPT_TASKS=1
	preempt-store put run/job/MEASURE '{"save_ms": 12000}' >/dev/null
	"${interruptible[@]}" "$REPO/examples/composed.sh" "$COUNT" --dir job --steps 100000 --step-ms 5 --save-ms 2000 2>err.0 3>&- &
	pids=($!)
	until_true 10 begun 0 5
	for piece in preempt-watch preempt-claim preempt-ack; do until_true 10 outlives_term $piece; done
	kill -TERM "${pids[0]}"
	until_true 10 has RUN_TO_CHECKPOINT
	clock_is 3600
	ended 0 42
	saved_at_agreed 0
	left=$(field DEADLINE left)
	((left > 20000 && left <= 32000))
	nothing_left
}

@test "machines whose clocks are 35 s, an hour and a day apart: with a grace period all save, whichever task claims" {
	# The final round begins at once, because a save is said to have taken long before. With -v each agent
	# says what it did with its grace period; without it, one says it for all.
	options=(-v --grace 32s)
	# Once as on a disk of this machine, once as where changes have to be looked for.
	disks=(local shared)
	for claimer in 0 1; do
		export PREEMPT_STORE="$PWD/store/db.$claimer?assume=${disks[claimer]}"
		attempt=1
		rm -rf job/log job/ckpt
		preempt-store put run/job/MEASURE '{"save_ms": 12000}' >/dev/null
		machines -35 86400 -86400 3600
		until_true 10 all_begun 4 $((attempt * 5))
		kill -TERM "${pids[claimer]}"
		all_ended 42
		saved_at_agreed 0 1 2 3
		# What crosses machines is what was left; each has its own idea of the date.
		left=$(field DEADLINE left)
		((left > 20000 && left <= 32000))
		# No task has taken it to be later.
		sed -n 's/.*: \([0-9]*\)\.\([0-9]\) s of grace: .*/\1\2/p' err.* >graces
		[ "$(wc -l <graces)" = 4 ]
		[ "$(sort -n graces | tail -n 1)" -le 320 ]
		nothing_left
	done
}

@test "a job of Slurm on a machine whose clock is two hours ahead trains on, and says why" {
	mkdir fake
	# shellcheck disable=SC2016 # for the script
	printf '#!/bin/sh\ntouch asked\necho "RUNNING $SLURM_JOB_END_TIME"\n' >fake/squeue
	chmod +x fake/squeue
	export SLURM_JOB_ID=9 SLURM_JOB_END_TIME=$(($(date +%s) + 3600)) SLURM_NTASKS=1 PATH=$PWD/fake:$PATH
	clock_is 7200
	options=(--notice slurm)
	agent 0 1 "${options[@]}" -- "$COUNT" --dir job --steps 100000 --step-ms 5
	until_true 20 grep -q "one of the clocks is wrong" err.0
	until_true 20 test -e asked
	until_true 20 begun 0 1
	at=$(tail -n 1 job/log/1.0)
	until_true 20 begun 0 $((${at#* } + 100))
	run -1 grep 'notice:' err.0
	kill -TERM "${pids[0]}"
	ended 0 42
	saved_at_agreed 0
	nothing_left
}

@test "CS-3: the last line of a command, and the end of an agent, do not wait for the wall clock" {
	preempt-run -- true
	"${interruptible[@]}" preempt-run --task 0 --tasks 1 -- sh -c 'setsid sleep 3 & echo last >&2; exit 3' 2>err.0 3>&- &
	pids=($!)
	clock_is -3600
	ended 0 3
	grep -q last err.0
	nothing_left
}

@test "prune on a machine whose clock is a day ahead: what is written now is not treated as settled" {
	mkdir ck
	python3 "$BATS_TEST_DIRNAME/../support/layouts/frameworks.py" hf ck 100
	find ck -exec touch -h -d '1 hour ago' {} +
	python3 "$BATS_TEST_DIRNAME/../support/layouts/frameworks.py" hf ck 200
	python3 "$BATS_TEST_DIRNAME/../support/layouts/frameworks.py" hf ck 300
	rm ck/checkpoint-300/trainer_state.json
	clock_is 86400
	prune() { run "$1" "${@:2}" env "LD_PRELOAD=$BATS_FILE_TMPDIR/clock.so" ckpt-rotate prune --keep-last 1 ck; }
	prune -0
	[[ $output = *"still being written"*"300: trainer_state.json is missing; changed "* ]]
	[ -z "$(find ck -name '.ckpt-clock*')" ]
	# No file can be made; nor the time of the directory set.
	mkdir ck/.ckpt-clock
	prune -0
	[[ $output = *"still being written"*"300: trainer_state.json is missing; changed "* ]]
	prune -75 strace -f -o trace -e trace=utimensat -e inject=utimensat:error=EIO
	[[ $output = *"cannot measure the clock of ck: Input/output error"* ]]
	[ "$(ls ck | tr '\n' ' ')" = "checkpoint-100 checkpoint-200 checkpoint-300 " ]
}
