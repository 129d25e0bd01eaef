#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The loops that README, manual, clients, --help and examples/ show are one loop for each language, and run as they are
# printed there. What a reader has to add is here: train, save, write_state and read_state. preempt.py is found.
# takes: 45
# shellcheck disable=SC2016,SC2030,SC2031,SC2154 # text for other shells; a test is a subshell of its own

bats_require_minimum_version 1.5.0
load ../support/programs
load ../support/manual

setup() {
	programs
	unset PYTHONPATH
	export PREEMPT_RUN=r PREEMPT_PLATFORM=generic REPO
	sanitize=()
	[[ $OUT != */asan ]] || sanitize=(-fsanitize=address -fsanitize=undefined)
	# What a test makes the training do, at step $1, in both tasks.
	touch hook
}

teardown() { end_started; }

# fenced LANGUAGE: the block of README in this language.
fenced() { sed -n "/^## The loop/,/^## [^T]/{/^\`\`\`$1\$/,/^\`\`\`\$/{/^\`\`\`/!p}}" "$REPO/README.md"; }

# begun FROM FILE: the file from the line that begins so.
begun() { sed -n "/^$1/,\$p" "$2"; }

# added_in LANGUAGE: what a reader adds to a loop. train does what the file "hook" says; a save fails while there is a
# file "fails".
added_in() {
	case $1 in
	bash) cat <<-'END' ;;
		state=0
		train() { sh hook $1 && state=$(((state * 31 + $1) % 1000003)) || exit; }
		write_state() { [ ! -e fails ] && echo "$state" >"$1/state"; }
		read_state() { read -r state <"$1/state"; }
	END
	python) cat <<-'END' ;;
		import os, subprocess, sys
		state = 0
		def train(s):
		    global state
		    subprocess.run(["sh", "hook", str(s)], check=True)
		    state = (state * 31 + s) % 1000003
		def write_state(directory):
		    if os.path.exists("fails"):
		        raise OSError("no space left")
		    print(state, file=open(directory + "/state", "w"))
		def read_state(directory):
		    global state
		    state = int(open(directory + "/state").read())
	END
	c) cat <<-'END' ;;
		#include <stdbool.h>
		#include <stdio.h>
		#include <stdlib.h>
		#include <unistd.h>
		unsigned long state;
		void train(unsigned long s)
		{
			char command[64];
			snprintf(command, sizeof command, "sh hook %lu", s);
			if (system(command) != 0)
				exit(EXIT_FAILURE);
			state = (state * 31 + s) % 1000003;
		}
		bool write_state(const char *directory)
		{
			char command[4200];
			snprintf(command, sizeof command, "[ ! -e fails ] && echo %lu >'%s/state'", state, directory);
			return system(command) == 0;
		}
		bool read_state(const char *directory)
		{
			char path[4200];
			snprintf(path, sizeof path, "%s/state", directory);
			FILE *file = fopen(path, "r");
			return file && fscanf(file, "%lu", &state) == 1 && fclose(file) == 0;
		}
	END
	esac
}

# compiled NAME: the program NAME of NAME.c.
compiled() {
	"${CC:-cc}" "${sanitize[@]}" -Wall -Wextra -Werror -o "$1" -I "$REPO/lib/client" "$1.c" "$OUT/libpreempt.a" -lpthread
}

# loops TOTAL EVERY: what a reader makes of the loops: so many steps, and a periodic save every so many.
loops() {
	total=$1
	{
		added_in bash
		fenced bash | sed "s|/usr/local/share/preempt|$REPO/lib/client|"
		echo 'echo "task $PREEMPT_TASK: $state"'
	} >in_bash
	{
		added_in python
		fenced python
		echo "print('task', os.environ['PREEMPT_TASK'] + ':', state)"
	} >in_python
	{
		added_in c
		example libpreempt.3 1
		echo 'int main(void) { run(); printf("task %s: %lu", getenv("PREEMPT_TASK"), state); puts(""); }'
	} >in_c.c
	sed -i "s/total=1000 every=100/total=$1 every=$2/; s/\"ckpt\", 1000, 100/\"ckpt\", $1, $2/
		s/total = 1000, every = 100/total = $1, every = $2/" in_*
	compiled in_c
	all=("bash in_bash" "python3 in_python" ./in_c)
}

# started CODE PROGRAM OPTION...: two tasks of it end with this code.
started() {
	local code=$1 program=$2
	shift 2
	# shellcheck disable=SC2086 # a program and its argument
	run "-$code" --separate-stderr timeout 120 preempt-run -n 2 --kill-after 1s "$@" -- $program
}

# ended: both tasks have come to what an uninterrupted loop comes to.
ended() {
	local i state=0
	for ((i = 0; i < total; i++)); do state=$(((state * 31 + i) % 1000003)); done
	[ "$(sort -u <<<"$output")" = "task 0: $state"$'\n'"task 1: $state" ] || { echo "$output" "$stderr"; return 1; }
}

# complete STEP...: these checkpoints are, and no others.
complete() {
	local steps
	steps=$(ckpt-rotate list ckpt | awk '$NF == "complete" { print $1 }' | xargs)
	[ "$steps" = "$*" ] || { echo "complete: $steps"; echo "$stderr"; return 1; }
}

# saved_newest STEP...: the newest checkpoint, of one of these steps, is what the run says it has saved.
saved_newest() {
	newest=$(ckpt-rotate latest ckpt --step)
	[[ " $* " == *" $newest "* && $stderr == *"step $newest is saved and complete"* ]] || { echo "$newest: $stderr"; return 1; }
}

# fresh: as before the first start.
fresh() {
	rm -rf ckpt s.db* fails crashed
	: >hook
}

# preempted_at STEP: a notice comes when both tasks are between this boundary and the next: they save at the next, or at
# the one after it.
preempted_at() {
	rm -f at.?
	cat >hook <<-END
		[ \$1 = $1 ] || exit 0
		touch at.\$PREEMPT_TASK
		until [ -e at.0 ] && [ -e at.1 ]; do sleep 0.01; done
		[ "\$PREEMPT_TASK" != 0 ] || kill -TERM "\$(cat "\$PREEMPT_DIR/agent")"
		until [ -e "\$PREEMPT_DIR/hold" ]; do sleep 0.01; done
	END
}

# asked_at_once STEP PROGRAM: asked to save the step that it starts from, it reports it, and leaves as the agent says. This
# test plays the agent.
asked_at_once() {
	local code=0
	rm -rf board
	mkdir board
	echo "exit $1 $$" >board/hold
	# shellcheck disable=SC2086 # a program and its argument
	PYTHONPATH=$REPO/lib/client PREEMPT_DIR=$PWD/board PREEMPT_TASK=0 PREEMPT_TASKS=2 PREEMPT_ATTEMPT=9 PREEMPT_LIFE=a timeout 60 $2 >log 2>&1 3>&- &
	eventually test -s board/saved || { cat log; return 1; }
	echo "leave 42" >board/hold.new
	mv board/hold.new board/hold
	wait $! || code=$?
	[ "$code" = 42 ] || { cat log; return 1; }
}

@test "each language has one loop: that of README, of the manual and of examples/" {
	diff <(fenced bash) <(example preempt.7 1 "The loop")
	diff <(fenced python) <(example libpreempt.3 2)
	diff <(fenced bash | begun 'save() {' -) <(begun 'save() {' "$REPO/examples/loop.sh" | sed '$d')
	diff <(fenced python | begun 'def rotate' -) <(begun 'def rotate' "$REPO/examples/loop.py" | sed '$d')
	diff <(example libpreempt.3 1 | begun 'static uint64_t saved' -) \
		<(begun 'static uint64_t saved' "$REPO/examples/loop.c" | sed '/^int main/,$d' | sed '$d')
}

@test "the loops: a crash in step 0, then a notice in step 0: 42; a save that fails: 43; then to the same end" {
	local program first
	loops 15 5
	for program in "${all[@]}"; do
		fresh
		preempted_at 0
		# Neither task saves before that.
		cat - hook >crash <<-'END'
			if [ "$1" = 0 ] && [ ! -e crashed ]; then
				[ "$PREEMPT_TASK" = 0 ] || exec sleep 1000
				touch crashed
				exit 3
			fi
		END
		mv crash hook
		started 42 "$program" --restarts
		[ -e crashed ]
		saved_newest 1 2
		first=$newest
		preempted_at 6
		echo 'touch fails' >>hook
		started 43 "$program"
		rm fails
		complete "$first" 5
		: >hook
		started 0 "$program"
		ended
		complete "$first" 5 10
	done
}

@test "the loops: preempted at a periodic save: 42; asked at once where they resumed: 42; then to the same end" {
	local program
	loops 6 1
	for program in "${all[@]}"; do
		fresh
		preempted_at 2
		started 42 "$program"
		saved_newest 3 4
		: >hook
		asked_at_once "$newest" "$program"
		started 0 "$program"
		ended
	done
}

@test "examples/loop.sh, loop.py, loop.c: two tasks run them to the end" {
	local loop total=30
	export PREEMPT_SH=$REPO/lib/client/preempt.sh
	"${CC:-cc}" "${sanitize[@]}" -I "$REPO/lib/client" -o loop "$REPO/examples/loop.c" "$OUT/libpreempt.a" -lpthread
	for loop in "$REPO/examples/loop.sh" "$REPO/examples/loop.py" ./loop; do
		fresh
		run -0 --separate-stderr preempt-run -n 2 -- "$loop" ckpt 30
		ended
	done
}

@test "import preempt works in the command of preempt-run, and what PYTHONPATH had comes first" {
	mkdir mine
	echo 'raise SystemExit(7)' >mine/other.py
	run -0 --separate-stderr preempt-run -n 1 -- python3 -c 'import preempt; print(preempt.__file__)'
	[ "$output" = "$REPO/lib/client/preempt.py" ]
	PYTHONPATH=$PWD/mine run -7 preempt-run -n 1 -- python3 -c 'import preempt, other'
	cp "$REPO/lib/client/preempt.py" mine
	PYTHONPATH=$PWD/mine run -0 --separate-stderr preempt-run -n 1 -- python3 -c 'import preempt; print(preempt.__file__)'
	[ "$output" = "$PWD/mine/preempt.py" ]
}

@test "pip install ./packaging/python installs preempt.py, without network" {
	python3 -m venv venv >/dev/null 2>&1 && venv/bin/pip --version >/dev/null || skip "Python has no venv with pip: apt-get install python3-venv"
	cp -r --parents "$REPO"/{VERSION,lib/client/preempt.py,packaging/python} .
	run -0 venv/bin/pip install --no-index --disable-pip-version-check ".$REPO/packaging/python"
	cd /
	run -0 "$BATS_TEST_TMPDIR/venv/bin/python" -I -c 'import preempt; print(preempt.__file__)'
	[[ $output = "$BATS_TEST_TMPDIR"/venv/lib/*/site-packages/preempt.py ]]
	run -0 "$BATS_TEST_TMPDIR/venv/bin/pip" show preempt-tools
	[[ $output = *"Version: $(cat "$REPO/VERSION")"* ]]
}

# ---- The short loops, in which the reader's save is one word ----

# cut_out FILE FIRST LAST: the one block of lines from FIRST to LAST (both without what is before them
# in each line: a comment's mark, an indentation), with roff's minus signs as they are shown.
cut_out() {
	awk -v first="$2" -v last="$3" '
		at = index($0, first) { if (!found) { found = 1; on = 1; indent = at } }
		on { print substr($0, indent) }
		on && substr($0, indent, length(last)) == last && substr($0, indent) != first { on = 0 }
	' "$1" | sed 's/\\-/-/g'
}

# short_loops: for each client a program whose save says no while there is a file "fails".
short_loops() {
	echo 'touch "trained.$PREEMPT_TASK"; sleep 0.01' >hook
	{
		added_in bash
		echo ". '$REPO/lib/client/preempt.sh'; start=0 total=1000000; save() { [ ! -e fails ]; }"
	} | tee short_sh >short_step
	cut_out "$REPO/lib/client/preempt.sh" 'for ((s = start;' 'done' >>short_sh
	cut_out "$REPO/man/preempt-step.1" 'for ((s = start;' 'done' >>short_step
	{
		added_in python
		printf '%s\n' 'import preempt' 'start, total, save = 0, 1000000, lambda s: write_state(".")'
		cut_out "$REPO/lib/client/preempt.py" 'for s in range(start, total):' '    train(s)'
	} >short_python
	{
		echo '#include <preempt.h>'
		added_in c
		echo 'bool save(uint64_t s) { return s && access("fails", F_OK) != 0; }'
		echo 'int main(void) { uint64_t start = 0, total = 1000000;'
		cut_out "$REPO/lib/client/preempt.h" 'for (uint64_t s = start;' '}'
		echo 'return 0; }'
	} >short_c.c
	compiled short_c
}

# trains COMMAND...: two tasks of it under an agent, that train.
trains() {
	rm -f trained.*
	preempt-run -n 2 -- "$@" 2>err 3>&- &
	agent=$!
	started+=("$agent")
	eventually test -e trained.0
	eventually test -e trained.1
}

# closed CODE CAUSE: the agent leaves with this code, and the attempt has this cause.
closed() {
	code_of "$agent"
	[ "$code" = "$1" ] || { cat err; return 1; } >&2
	attempt=$(printf %06d "$(preempt-store get run/r/LAST | field attempt)")
	[ "$(preempt-store get "run/r/$attempt/CLOSED" | field cause)" = "$2" ]
}

@test "the short loops of preempt.sh, preempt-step(1) and --help, preempt.py, preempt.h: 42 after a save; one that fails is 43, never reported as saved" {
	local program
	diff <(cut_out "$REPO/man/preempt-step.1" 'for ((s = start;' 'done') <(cut_out <(preempt-step --help) 'for ((s = start;' 'done')
	short_loops
	for program in "bash -euo pipefail short_sh" "bash short_step" "python3 short_python" ./short_c; do
		rm -f fails
		# shellcheck disable=SC2086 # several words
		trains $program
		kill -TERM "$agent"
		closed 42 preempted
		touch fails
		# shellcheck disable=SC2086 # several words
		trains $program
		kill -TERM "$agent"
		closed 43 unsaved
		[ -z "$(preempt-store list "run/r/$attempt/SAVED/")" ]
	done
}

@test "without a notice a failed save is the task's own failure: a checkpoint on demand, a periodic one" {
	short_loops
	touch fails
	trains bash short_sh
	preempt-claim --then continue
	closed 1 crashed
	cat >periodic <<-'END'
		. "$REPO/lib/client/preempt.sh"
		save() { return 43; } # even with the words of an agent
		for ((s = 0; ; s++)); do
			preempt_step $s || { save $s && preempt_saved $s; } || exit
			touch "trained.$PREEMPT_TASK"
			[ ! -e now ] || { save $s && preempt_saved $s; } || exit
			sleep 0.01
		done
	END
	trains bash periodic
	touch now
	closed 1 crashed
}
