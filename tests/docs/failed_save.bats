#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The short loops that clients, preempt-step(1) and --help show, run as they are printed there: a save that
# fails is never reported as saved. loops.bats has those of README, preempt(7) and libpreempt(3).
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2154 # text for other shells; a test is a subshell of its own

bats_require_minimum_version 1.5.0
load ../support/programs

setup() {
	REPO=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	OUT=${OUT:-$REPO/build/plain}
	[[ $OUT = /* ]] || OUT=$REPO/$OUT
	cd "$BATS_TEST_TMPDIR" || return
	PATH=${BIN:-$REPO/bin}:$PATH
	unset "${!PREEMPT_@}" "${!SLURM_@}"
	mkdir -m 700 job
	export PREEMPT_STORE=$PWD/job/s.db PREEMPT_RUN=r REPO XDG_RUNTIME_DIR=$PWD PYTHONDONTWRITEBYTECODE=1
	agent='' tasks=() sanitize=()
	[[ $OUT != */asan ]] || sanitize=(-fsanitize=address -fsanitize=undefined)
}

teardown() {
	[ -n "${BATS_TEST_COMPLETED:-}" ] || cat err program* >&2 || :
	local pid
	for pid in $agent "${tasks[@]}"; do kill -KILL "$pid" 2>/dev/null || :; done
}

# cut_out FILE FIRST LAST: the one block of lines from FIRST to LAST (both without what is before them
# in each line: a comment's mark, an indentation), with roff's minus signs as they are shown.
cut_out() {
	awk -v first="$2" -v last="$3" '
		at = index($0, first) { if (!found) { found = 1; on = 1; indent = at } }
		on { print substr($0, indent) }
		on && substr($0, indent, length(last)) == last && substr($0, indent) != first { on = 0 }
	' "$1" | sed 's/\\-/-/g'
}

# The loops, one file each, as programs whose save says no while there is a file "fails".
shell_programs() {
	local file i=0
	preempt-step --help >help
	for file in lib/client/preempt.sh man/preempt-step.1 "$PWD/help"; do
		[[ $file = /* ]] || file=$REPO/$file
		i=$((i + 1))
		{
			echo '. "$REPO/lib/client/preempt.sh"'
			echo 'start=0 total=1000000'
			echo 'save() { [ ! -e fails ]; }'
			echo 'train() { touch "trained.$PREEMPT_TASK"; sleep 0.01; }'
			cut_out "$file" 'for ((s = start;' 'done'
		} >"program.$i"
		grep -q 'save \$s' "program.$i"
		programs+=("bash program.$i")
	done
}

python_programs() {
	cat - <(cut_out "$REPO/lib/client/preempt.py" 'for s in range(start, total):' '    train(s)') >"program.py" <<-'END'
		import os, sys, time
		sys.path.insert(0, os.environ["REPO"] + "/lib/client")
		import preempt
		start, total = 0, 1000000
		def save(s):
		    if os.path.exists("fails"):
		        raise OSError("no space left")
		def train(s):
		    open("trained." + os.environ["PREEMPT_TASK"], "w").close()
		    time.sleep(0.01)
	END
	grep -q '  save(s)' "program.py"
	programs+=("python3 program.py")
}

c_programs() {
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
	} >"program.c"
	grep -q 'save(s)' "program.c"
	"${CC:-cc}" "${sanitize[@]}" -o in_c -I"$REPO/lib/client" "program.c" "$OUT/libpreempt.a" -lpthread
	programs+=(./in_c)
}

# start COMMAND...: two tasks of it under an agent, that train.
start() {
	rm -f trained.*
	preempt-run -n 2 -- "$@" 2>err 3>&- &
	agent=$!
	eventually test -e trained.0
	eventually test -e trained.1
}

gone() { [[ $(cat "/proc/$1/stat" 2>/dev/null || echo ") Z ") = *") Z "* ]]; }

code() {
	local code=0
	eventually gone "$agent"
	wait "$agent" || code=$?
	agent=
	[ "$code" = "$1" ] || { echo "$program: code $code, not $1" >&2; return 1; }
}

cause() {
	attempt=$(preempt-store get "run/$PREEMPT_RUN/LAST" | sed 's/[^0-9]//g')
	preempt-store get "run/$PREEMPT_RUN/$(printf %06d "$attempt")/CLOSED" | sed 's/.*"cause":"\([a-z]*\)".*/\1/'
}

# After a notice: 42 where the save does what it should, 43 where it fails.
all_tell_the_truth() {
	local program
	[ "${#programs[@]}" -ge 1 ]
	for program in "${programs[@]}"; do
		rm -f fails
		# shellcheck disable=SC2086 # several words
		start $program
		kill -TERM "$agent"
		code 42
		[ "$(cause)" = preempted ]
		touch fails
		# shellcheck disable=SC2086
		start $program
		kill -TERM "$agent"
		code 43
		[ "$(cause)" = unsaved ]
		[ -z "$(preempt-store list "run/r/$(printf %06d "$attempt")/SAVED/")" ]
	done
}

@test "shell: a failed save is 43, in each loop that is shown" {
	programs=()
	shell_programs
	all_tell_the_truth
}

@test "Python: a failed save is 43, in each loop that is shown" {
	programs=()
	python_programs
	all_tell_the_truth
}

@test "C: a failed save is 43, in each loop that is shown" {
	programs=()
	c_programs
	all_tell_the_truth
}

@test "without a notice a failed save is the task's own failure: a checkpoint on demand, a periodic one" {
	programs=()
	shell_programs
	touch fails
	# shellcheck disable=SC2086
	start ${programs[0]}
	preempt-claim --then continue
	program=${programs[0]}
	code 1
	[ "$(cause)" = crashed ]
	program=periodic
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
	start bash periodic
	touch now
	code 1
	[ "$(cause)" = crashed ]
}

@test "composed: asked to stop, a task leaves with 93 whatever it says, except one that has finished" {
	local code
	for code in 42 43 44 93 7 0; do
		PREEMPT_TASK=0 PREEMPT_TASKS=1 bash -c 'eval "$(preempt-store join --no-board)"
			preempt-claim --outside --then stop >/dev/null && preempt-store leave --code "$0"' "$code" >left
		[ "$(cat left)" = $((code ? 93 : 0)) ] || { echo "$code: $(cat left)" >&2; return 1; }
		[ "$(cause)" = "$([ "$code" = 0 ] && echo completed || echo stopped)" ]
	done
}

@test "composed: asked to stop, the script leaves with 93" {
	programs=()
	shell_programs
	PREEMPT_TASK=0 PREEMPT_TASKS=1 "$REPO/examples/composed.sh" bash program.1 2>err 3>&- &
	agent=$!
	program=composed.sh
	eventually test -e trained.0
	preempt-claim --outside --then stop
	code 93
	[ "$(cause)" = stopped ]
}

@test "composed: a training whose save fails after the claim leaves with 43" {
	programs=()
	shell_programs
	touch fails
	PREEMPT_TASK=0 PREEMPT_TASKS=1 "$REPO/examples/composed.sh" bash program.1 2>err 3>&- &
	agent=$!
	program=composed.sh
	eventually test -e trained.0
	kill -TERM "$agent"
	code 43
	[ "$(cause)" = unsaved ]
}
