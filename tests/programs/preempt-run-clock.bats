#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-run, and a prune, while the wall clock jumps or is wrong.
# takes: 15
# asan: no (the clock is set forward by LD_PRELOAD)
# shellcheck disable=SC2012,SC2034 # numbers; what agents.bash uses

load ../support/agents

setup_file() {
	"${CC:-cc}" -shared -fPIC -O -D_GNU_SOURCE -o "$BATS_FILE_TMPDIR/clock.so" \
		-x c "$REPO/tests/support/trainers/clock.c.txt"
}

setup() {
	agents
	head -c 8 /dev/zero >clock
	interruptible=(env "LD_PRELOAD=$BATS_FILE_TMPDIR/clock.so" "CLOCK_OFFSET=$PWD/clock")
}

# clock_is SECONDS [FILE]: the wall clock of all agents (that look at FILE) is so much ahead.
clock_is() { python3 -c 'import struct, sys; sys.stdout.buffer.write(struct.pack("q", int(sys.argv[1])))' "$1" 1<>"${2:-clock}"; }

@test "CS-3: the wall clock jumps by an hour, forward while training and back while agreeing: nothing happens" {
	count_agents 3 --steps 100000 --step-ms 5 --save-ms 300
	eventually all_begun 3 5
	clock_is 3600
	# As many steps as it likes: no task thinks that any task is dead or late.
	trains_on 0 100
	[ "$(keys "" | sed 's|.*/00000./||; s|/.*||' | sort -u | xargs)" = "ALL_JOINED OPEN TASK" ]
	kill -TERM "${pids[0]}"
	eventually has RUN_TO_CHECKPOINT
	clock_is 0
	all_ended 42
	saved_together 3
	nothing_left
}

@test "prune on a machine whose clock is a day ahead: what is written now is not treated as settled" {
	mkdir ck
	python3 "$REPO/tests/support/layouts/frameworks.py" hf ck 100
	find ck -exec touch -h -d '1 hour ago' {} +
	python3 "$REPO/tests/support/layouts/frameworks.py" hf ck 200
	python3 "$REPO/tests/support/layouts/frameworks.py" hf ck 300
	rm ck/checkpoint-300/trainer_state.json
	clock_is 86400
	prune() { run "$1" "${@:2}" env "LD_PRELOAD=$BATS_FILE_TMPDIR/clock.so" ckpt-rotate prune --keep-last 1 ck; }
	prune -0
	[[ $output = *"still being written"*"300: perhaps still being written: changed "* ]]
	# The time of the directory cannot be set.
	prune -75 strace -f -o trace -e trace=utimensat -e inject=utimensat:error=EIO
	[[ $output = *"cannot measure the clock of ck: Input/output error"* ]]
	[ "$(ls ck | tr '\n' ' ')" = "checkpoint-100 checkpoint-200 checkpoint-300 " ]
}
