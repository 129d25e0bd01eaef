#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# First mistakes, and what is said about them: options and commands that do not exist, words in the wrong
# place, help asked for in other ways. One parser serves all programs (lib/base/args.c).

bats_require_minimum_version 1.5.0

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	PATH=${BIN:-$BATS_TEST_DIRNAME/../../bin}:$PATH
	unset "${!PREEMPT_@}" "${!SLURM_@}"
	mkdir -m 700 -p store
	export PREEMPT_STORE=$PWD/store/db
}

# refused TEXT COMMAND...: exit code 2, nothing on stdout, one line on stderr with TEXT in it.
refused() {
	local text=$1
	shift
	run -2 --separate-stderr "$@"
	[ -z "$output" ]
	[ "${#stderr_lines[@]}" = 1 ]
	[[ $stderr = *"$text"* ]] || { echo "said: $stderr"; return 1; }
}

@test "-h and help show what --help shows, -V what --version shows" {
	local program
	for program in preempt-run preempt-queue preempt-store preempt-watch ckpt-rotate; do
		run -0 --separate-stderr "$program" --help
		shown=$output
		for ask in -h help; do
			run -0 --separate-stderr "$program" $ask
			[ "$output" = "$shown" ]
			[ -z "$stderr" ]
		done
		run -0 "$program" --version
		shown=$output
		run -0 "$program" -V
		[ "$output" = "$shown" ]
	done
	run -0 preempt-store put --help
	shown=$output
	run -0 preempt-store help put
	run -0 preempt-store -q help put
	[ "$output" = "$shown" ]
}

@test "a command without -- before it: the cure is named" {
	refused '"true" is not an option; if the command begins here, write -- before it: -- true' preempt-run true
	refused 'write -- before it: -- echo' preempt-queue schedule echo hello
	refused 'a command is missing: write -- COMMAND' preempt-run
	refused 'unexpected argument "c"' preempt-claim --reason a c
}

@test "an option or a command that does not exist: what was probably meant" {
	refused 'there is no option --notise; did you mean --notice?' preempt-run --notise signal:TERM -- true
	refused 'there is no option --xyzzy; see preempt-run --help' preempt-run --xyzzy -- true
	refused 'there is no option -Z' preempt-store list -Z
	refused 'there is no command "gett"; did you mean get?' preempt-store gett k
	refused 'there is no command "sched"; did you mean schedule?' preempt-queue sched
	refused 'there is no command "frobnicate"; see preempt-store --help' preempt-store frobnicate
	refused 'there is no command "frobnicate"' preempt-store help frobnicate
	refused 'the command comes first, then --values' preempt-store --values list
	refused 'a command is missing' preempt-store --run r
	refused 'a command is missing' preempt-store
	refused '--task' preempt-store --task 1 list
}

@test "options that several commands share may stand before the command, too" {
	preempt-store --store s.db put k v
	for before in "--store s.db" "--store=s.db" "-q --store s.db" "--timeout 1m --store s.db -v"; do
		# shellcheck disable=SC2086 # several words
		run -0 --separate-stderr preempt-store $before get k
		[ "$output" = v ]
	done
	run -0 preempt-store --json --store s.db get k
	[[ $output = '{"key":"k","value":"v",'* ]]
	run -0 preempt-queue --store s.db --queue q schedule -- true
	run -0 preempt-queue --queue q --store s.db list --json
	[[ $output = *true* ]]
	mkdir ck
	run -1 ckpt-rotate -q latest ck
	[ -z "$output" ]
	run -0 preempt-store --help get
	shown=$output
	run -0 preempt-store -q --help get
	[ "$output" = "$shown" ]
	run -0 preempt-store --store s.db --help
	[[ $output = *commands:* ]]
	run -0 preempt-store -q --version
	[[ $output = "preempt-store "* ]]
}

@test "options are not abbreviated, flags take no value, values are not empty" {
	refused 'there is no option --jso; did you mean --json?' preempt-store list --jso
	refused '--json takes no value' preempt-store list --json=1
	refused '--task needs a value' preempt-run --task
	refused '--store: the value is empty' preempt-store list --store ''
	refused '--store: the value is empty' preempt-store list --store=
	# The word after an option with a value is its value.
	refused '--run' preempt-claim --run --help
}

@test "limits of restarts without --restarts are refused" {
	local option
	for option in --max-crashes --max-hangs --max-no-progress; do
		refused 'need --restarts' preempt-run $option 2 -- true
	done
	run -0 preempt-run --restarts 2 --max-crashes 2 -- true
	run -0 preempt-run --restarts --max-crashes 2 -- true
}

@test "a path of a store that is too long is refused, not called missing" {
	local part path=$PWD/store
	part=$(printf 'p%.0s' {1..150})
	refused 'is too long' preempt-store put k v --store "$path/$part$part.db"
	for _ in 1 2 3; do
		path+=/$part
		mkdir -m 700 "$path"
	done
	refused 'is too long' preempt-store put k v --store "$path/s.db"
	refused 'is too long' env --chdir="$path" "$(command -v preempt-store)" get k --store s.db
	# The longest that is taken works.
	path=${path%/*}/
	run -0 preempt-store put k v --store "$path$(head -c $((480 - ${#path})) /dev/zero | tr '\0' s)"
}
