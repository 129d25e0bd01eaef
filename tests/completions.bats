#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What bash, zsh and fish offer when TAB is pressed. The same cases for each.
# asan: no (the shells read --help; they run nothing else of ours)
# shellcheck disable=SC2016 # text for another shell

bats_require_minimum_version 1.5.0

setup_file() {
	ROOT=$(cd "$BATS_TEST_DIRNAME/.." && pwd)
	export ROOT PATH="${BIN:-$ROOT/bin}:$PATH"
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	mkdir room # a directory and a file
	touch rope
	shells=(bash)
	for shell in zsh fish; do
		! command -v "$shell" >/dev/null || shells+=("$shell")
	done
}

# What each shell offers for a command line of words, the last one being typed.
offers_bash() {
	bash --norc -c '
		. "$ROOT/completions/preempt.bash"
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
		_preempt "$1"
		printf "%s\n" "${COMPREPLY[@]}"' bash "$@"
}

offers_fish() {
	fish --no-config -c '
		cp $ROOT/completions/preempt.fish ./$argv[1].fish
		source ./$argv[1].fish
		rm ./$argv[1].fish
		complete -C (string join " " -- $argv)' -- "$@" | cut -f 1
}

# The line editor of zsh needs a terminal: its functions that show something are played here.
offers_zsh() {
	zsh -f -c '
		function _describe { local name; for name in "$@"; do
			case $name in
			-* | options | option | command) ;;
			\(*\)) print -l -- ${=name[2,-2]} ;;
			*) print -l -- ${${(P)name}%%:*} ;;
			esac; done }
		function _files { print -l -- $PREFIX*(N) }
		function _directories { print -l -- $PREFIX*(N/) }
		function _command_names { print -l -- ${(k)commands} }
		function _normal { [[ $CURRENT = 1 ]] && print -l -- ${(k)commands} || print -l -- *(N) }
		function compadd { [[ $1 != -S ]] || shift 2; shift; print -l -- "$@" }
		function compset { PREFIX=${PREFIX#*=} }
		function _preempt { source $ROOT/completions/preempt.zsh }
		words=("$@") CURRENT=$# PREFIX=${@[-1]}
		_preempt' zsh "$@" | grep -- "^$(cut -d = -f 2 <<<"${!#}")"
}

# offers LINE WORD...: in each shell, what is offered for the words of LINE (one "_" at its end: an
# empty word) is exactly this.
offers() {
	local shell words
	read -ra words <<<"$1"
	[ "${words[-1]}" != _ ] || words[-1]=
	shift
	for shell in "${shells[@]}"; do
		diff <(printf '%s\n' "$@" | grep . | sort -u) <("offers_$shell" "${words[@]}" | sed '/^$/d; s|/$||' | sort -u) || {
			echo "in $shell, for: ${words[*]}"
			return 1
		}
	done
}

# options PROGRAM [COMMAND]: what --help names.
options() {
	"$@" --help | grep -oE '^ +(-[a-zA-Z0-9], )?--[a-z][a-z-]*' | grep -oE -- '-[-a-zA-Z0-9]+'
}

# bats test_tags=smoke
@test "every option of every program and command, and no other" {
	local program command
	for program in "${BIN:-$ROOT/bin}"/*; do
		program=${program##*/}
		for command in '' $("$program" --help | sed -n '/^commands:/,/^$/s/^  \([a-z-]*\) .*/\1/p'); do
			[ -n "$command" ] || ! "$program" --help | grep -q '^commands:' || continue
			# shellcheck disable=SC2046,SC2086 # words, or none
			offers "$program $command -" $(options "$program" $command)
		done
	done
}

# bats test_tags=smoke
@test "the commands of a program" {
	offers "preempt-store g" get gc
	offers "preempt-store get --js" --json
	offers "preempt-queue s" schedule show
	offers "preempt-store --run r g" get gc
	offers "preempt-store --run r -q get --js" --json
}

# bats test_tags=smoke
@test "values: words, prefixes, directories, files" {
	offers "preempt-run --savers _" all chief
	offers "preempt-run --savers c" chief
	offers "preempt-claim --then _" exit stop continue
	offers "ckpt-rotate prune --mode _" min max
	offers "preempt-run --board ro" room
	offers "preempt-claim --from rop" rope
	offers "preempt-watch --source s" signal:
	offers "preempt-queue list --state r" running
	offers "preempt-queue schedule --directory ro" room
}

# bats test_tags=smoke
@test "after -- it is the other command's turn" {
	offers "preempt-run -n 4 -- preempt-sto" preempt-store
	offers "preempt-run --join-timeout _"
	offers "preempt-queue schedule --lines -- preempt-sto" preempt-store
}

# bats test_tags=smoke
@test "zsh registers it for the programs by their names" {
	command -v zsh >/dev/null || skip "needs zsh"
	mkdir functions
	cp "$ROOT/completions/preempt.zsh" functions/_preempt
	run -0 zsh -f -c 'fpath=($PWD/functions $fpath); autoload -Uz compinit; compinit -D -u
		print ${_comps[ckpt-rotate]} ${_postpatcomps[preempt-*]}'
	[ "$output" = "_preempt _preempt" ]
}

# bats test_tags=smoke
@test "completion needs no bash-completion, and a program that is missing offers nothing" {
	run -0 offers_bash no-such-program --
	[ -z "$output" ]
}
