#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# First mistakes, and what is said about them: options and commands that do not exist, words in the wrong
# place, help asked for in other ways. One parser serves all programs (lib/base/args.c).

bats_require_minimum_version 1.5.0
load ../support/programs

setup() {
	programs
	mkdir -m 700 store
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
	local program ask shown
	for program in preempt-run preempt-queue preempt-store preempt-watch ckpt-rotate preempt-step; do
		run -0 --separate-stderr "$program" --help
		[[ $output = usage:* ]]
		shown=$output
		for ask in -h help; do
			run -0 --separate-stderr "$program" $ask
			[ "$output$stderr" = "$shown" ]
		done
		run -0 "$program" --version
		[[ $output = "$program "[0-9]* ]]
		shown=$output
		run -0 "$program" -V
		[ "$output" = "$shown" ]
	done
	run -0 preempt-store put --help
	shown=$output
	for ask in "help put" "-q help put"; do
		# shellcheck disable=SC2086 # several words
		run -0 preempt-store $ask
		[ "$output" = "$shown" ]
	done
}

@test "what is wrong is said in one line, and what was probably meant: 2" {
	local text command
	while IFS='|' read -r text command; do
		eval "refused '$text' $command"
	done <<-'END'
		"true" is not an option; if the command begins here, write -- before it: -- true|preempt-run true
		write -- before it: -- echo|preempt-queue schedule echo hello
		a command is missing: write -- COMMAND|preempt-run
		unexpected argument "c"|preempt-claim --reason a c
		there is no option --notise; did you mean --notice?|preempt-run --notise signal:TERM -- true
		--shield: "" is not a signal|preempt-run --shield TERM, -- true
		there is no option --xyzzy; see preempt-run --help|preempt-run --xyzzy -- true
		there is no option -Z|preempt-store list -Z
		there is no command "gett"; did you mean get?|preempt-store gett k
		there is no command "sched"; did you mean schedule?|preempt-queue sched
		"echo a" is one word, and no program has such a name: for a shell, add --shell|preempt-queue schedule -- "echo a"
		there is no option --keep-going; see preempt-queue schedule --help|preempt-queue schedule --keep-going -- true
		there is no command "frobnicate"; see preempt-store --help|preempt-store frobnicate
		there is no command "frobnicate"|preempt-store help frobnicate
		the command comes first, then --values|preempt-store --values list
		a command is missing|preempt-store --run r
		a command is missing|preempt-store
		--task|preempt-store --task 1 list
		there is no option --jso; did you mean --json?|preempt-store list --jso
		--json takes no value|preempt-store list --json=1
		--task needs a value|preempt-run --task
		--store: the value is empty|preempt-store list --store ""
		--store: the value is empty|preempt-store list --store=
		--run|preempt-claim --run --help
		need --restarts|preempt-run --max-crashes 2 -- true
		need --restarts|preempt-run --max-hangs 2 -- true
		need --restarts|preempt-run --max-no-progress 2 -- true
	END
	run -0 preempt-run --restarts 2 --max-crashes 2 -- true
	run -0 preempt-run --restarts --max-crashes 2 -- true
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
	run -0 preempt-store put k v --store "$path$(head -c $((460 - ${#path})) /dev/zero | tr '\0' s)"
}
