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

# loops [EVERY]: what a reader makes of the loops; 30 steps here, and a periodic save every 10.
loops() {
	local every=${1-10}
	{
		echo 'state=0'
		echo 'train() { sh hook $1 && state=$(((state * 31 + $1) % 1000003)) || exit; }'
		echo 'write_state() { [ ! -e fails ] && echo "$state" >"$1/state"; }'
		echo 'read_state() { read -r state <"$1/state"; }'
		fenced bash | sed "s|/usr/local/share/preempt|$REPO/lib/client|"
		echo 'echo "task $PREEMPT_TASK: $state"'
	} >in_bash
	cat - <(fenced python) >in_python <<-'END'
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
	echo "print('task', os.environ['PREEMPT_TASK'] + ':', state)" >>in_python
	cat - <(example libpreempt.3 1) >in_c.c <<-'END'
		#include <stdbool.h>
		#include <stdio.h>
		#include <stdlib.h>
		#include <unistd.h>
		static unsigned long state;
		static void train(unsigned long s)
		{
			char command[64];
			snprintf(command, sizeof command, "sh hook %lu", s);
			if (system(command) != 0)
				exit(EXIT_FAILURE);
			state = (state * 31 + s) % 1000003;
		}
		static bool write_state(const char *directory)
		{
			char command[4200];
			snprintf(command, sizeof command, "[ ! -e fails ] && echo %lu >'%s/state'", state, directory);
			return system(command) == 0;
		}
		static bool read_state(const char *directory)
		{
			char path[4200];
			snprintf(path, sizeof path, "%s/state", directory);
			FILE *file = fopen(path, "r");
			return file && fscanf(file, "%lu", &state) == 1 && fclose(file) == 0;
		}
	END
	echo 'int main(void) { run(); printf("task %s: %lu", getenv("PREEMPT_TASK"), state); puts(""); }' >>in_c.c
	sed -i "s/total=1000 every=100/total=30 every=$every/; s/\"ckpt\", 1000, 100/\"ckpt\", 30, $every/; s/total = 1000, every = 100/total = 30, every = $every/" in_*
	"${CC:-cc}" "${sanitize[@]}" -Wall -Wextra -Werror -o in_c -I "$REPO/lib/client" in_c.c "$OUT/libpreempt.a" -lpthread
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
	for ((i = 0; i < 30; i++)); do state=$(((state * 31 + i) % 1000003)); done
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

@test "the loops: after a crash in step 0 they start again, run to the end, and save every ten steps" {
	local program
	loops
	for program in "${all[@]}"; do
		fresh
		# Neither task saves before that.
		cat >hook <<-'END'
			[ "$1" = 0 ] && [ ! -e crashed ] || exit 0
			[ "$PREEMPT_TASK" = 0 ] || exec sleep 1000
			touch crashed
			exit 3
		END
		started 0 "$program" --restarts
		[ -e crashed ]
		ended
		complete 10 20
	done
}

@test "the loops: preempted at a periodic save: 42; asked at once where they resumed: 42; then to the same end" {
	local program
	loops 1
	for program in "${all[@]}"; do
		fresh
		preempted_at 9
		started 42 "$program"
		saved_newest 10 11
		: >hook
		asked_at_once "$newest" "$program"
		started 0 "$program"
		ended
	done
}

@test "the loops: preempted between two periodic saves, also in step 0: 42; a save that fails: 43" {
	local program first
	loops
	for program in "${all[@]}"; do
		fresh
		preempted_at 0
		started 42 "$program"
		saved_newest 1 2
		first=$newest
		preempted_at 13
		echo 'touch fails' >>hook
		started 43 "$program"
		rm fails
		complete "$first" 10
		preempted_at 15
		started 42 "$program"
		saved_newest 16 17
		: >hook
		started 0 "$program"
		ended
		complete "$first" 10 "$newest" 20
	done
}

@test "examples/loop.sh, loop.py, loop.c: two tasks run them to the end" {
	local loop
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
	{
		echo ". '$REPO/lib/client/preempt.sh'"
		echo 'start=0 total=1000000; save() { [ ! -e fails ]; }; train() { touch "trained.$PREEMPT_TASK"; sleep 0.01; }'
	} | tee short_sh >short_step
	cut_out "$REPO/lib/client/preempt.sh" 'for ((s = start;' 'done' >>short_sh
	cut_out "$REPO/man/preempt-step.1" 'for ((s = start;' 'done' >>short_step
	cat - <(cut_out "$REPO/lib/client/preempt.py" 'for s in range(start, total):' '    train(s)') >short_python <<-'END'
		import os, time
		import preempt
		start, total = 0, 1000000
		def save(s):
		    if os.path.exists("fails"):
		        raise OSError("no space left")
		def train(s):
		    open("trained." + os.environ["PREEMPT_TASK"], "w").close()
		    time.sleep(0.01)
	END
	{
		cat <<-'END'
			#include <preempt.h>
			#include <stdbool.h>
			#include <stdio.h>
			#include <stdlib.h>
			#include <unistd.h>
			static bool save(uint64_t s) { (void)s; return access("fails", F_OK) != 0; }
			static void train(uint64_t s)
			{
				char name[64];
				(void)s;
				snprintf(name, sizeof name, "trained.%s", getenv("PREEMPT_TASK"));
				FILE *file = fopen(name, "w");
				if (file) fclose(file);
				usleep(10000);
			}
			int main(void)
			{
				uint64_t start = 0, total = 1000000;
		END
		cut_out "$REPO/lib/client/preempt.h" 'for (uint64_t s = start;' '}'
		echo 'return 0; }'
	} >short_c.c
	"${CC:-cc}" "${sanitize[@]}" -o short_c -I"$REPO/lib/client" short_c.c "$OUT/libpreempt.a" -lpthread
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

@test "the short loops of preempt.sh, preempt-step(1) and --help, preempt.py, preempt.h: a save that fails is 43, never reported as saved" {
	local program
	diff <(cut_out "$REPO/man/preempt-step.1" 'for ((s = start;' 'done') <(cut_out <(preempt-step --help) 'for ((s = start;' 'done')
	short_loops
	touch fails
	for program in "bash short_sh" "bash short_step" "python3 short_python" ./short_c; do
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
