#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What bash, zsh and fish offer when TAB is pressed: what candidates.sh says, and that the shells show it.
# asan: no (the shells read --help and lists; the programs have tests of their own)
# takes: 10
# shellcheck disable=SC2016 # text for another shell

bats_require_minimum_version 1.5.0

setup_file() {
	ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	export ROOT REAL="${BIN:-$ROOT/bin}" PREFIX=$BATS_FILE_TMPDIR/usr
	export PATH="$REAL:$PATH"
	local program to=$PREFIX/share
	# As make install does it. On a terminal, the programs only say how they were called.
	install -D -m 644 "$ROOT/completions/preempt.zsh" "$to/zsh/site-functions/_preempt"
	install -D -m 644 -t "$to/preempt" "$ROOT"/completions/*.sh
	for program in "$REAL"/*; do
		program=${program##*/}
		install -D -m 644 "$ROOT/completions/preempt.bash" "$to/bash-completion/completions/$program"
		install -D -m 644 "$ROOT/completions/preempt.fish" "$to/fish/vendor_completions.d/$program.fish"
		install -D /dev/stdin "$PREFIX/bin/$program" <<-'EOF'
			#!/bin/sh
			[ -t 0 ] || exec "$REAL/${0##*/}" "$@"
			printf 'ran:'
			printf '<%s>' "$@"
			printf ':end\n'
		EOF
	done
	# What there is to complete.
	cd "$BATS_FILE_TMPDIR" || return
	mkdir room 'a room'
	touch rope
	preempt-run -q --store s.db --run myrun -- true
	preempt-queue schedule --store s.db --tag big -- true
	for step in 100 200; do
		echo "$step" >"$(ckpt-rotate begin ck $step)/model"
		ckpt-rotate commit ck $step
	done
}

setup() { cd "$BATS_FILE_TMPDIR" || return; }

candidates() { sh "$ROOT/completions/candidates.sh" "$@"; }

# offers LINE WORD...: what is offered for the words of LINE (one "_" at its end: an empty word) is this.
offers() {
	local words
	read -ra words <<<"$1"
	[ "${words[-1]}" != _ ] || words[-1]=
	shift
	diff <(printf '%s\n' "$@" | grep . | sort) \
		<(candidates "${words[@]}" | cut -f 1 | grep -e "^${words[-1]}" -e '^:' | sort) || {
		echo "for: ${words[*]}"
		return 1
	}
}

# unknown PROGRAM...: the values that --help and the usage lines name and that candidates.sh does not know,
# and the commands of whose options it misses one.
unknown() {
	sed '/^program=/,$d' "$ROOT/completions/candidates.sh" >functions.sh
	sh -c '
		. ./functions.sh
		ask() { :; }
		table= prefix= current= first= store= run= queue= layout= pattern=
		for program in "$@"; do
			for command in "" $("$program" --help | sed -n "/^commands:/,/^$/s/^  \([a-z-]*\) .*/\1/p"); do
				help=$("$program" $command --help)
				table=$(options)
				printf "%s\n" "$table" | sed "s/^[^|]*|//"
				positional | sed -n "s/\.\.\.\$//; s/^[A-Z]/|&/p"
				[ "$(printf "%s\n" "$table" | grep -c .)" = "$(printf "%s\n" "$help" | grep -cE "^ +(-., )?--")" ] ||
					echo "|options of $program $command|"
			done
		done | LC_ALL=C sort -u | while IFS="|" read -r option value text; do
			[ -z "$value" ] || (values "$option" "$value" "$text") >/dev/null || echo "$option $value"
		done' sh "$@"
}

@test "every option and every kind of value that --help names is known to candidates.sh" {
	run -0 --separate-stderr unknown "$REAL"/*
	[ -z "$output$stderr" ]
	# That it would tell what is not known:
	install /dev/stdin new <<-'EOF'
		#!/bin/sh
		echo "usage: new PLANET VALUE|-"
		echo "      --star STAR            a new kind of value"
		echo "      --savers WHO           help that names no words"
		echo "      --Odd                  not an option as candidates.sh reads them"
	EOF
	diff <(unknown ./new | sort) <(printf '%s\n' ' PLANET' '--savers WHO' '--star STAR' ' options of ./new ' | sort)
}

@test "options, commands, values; those that are asked for: runs, tags, ids, steps, keys" {
	local words offered
	while IFS='|' read -r words offered; do
		# shellcheck disable=SC2086 # several words
		offers "$words" $offered
	done <<-'END'
		preempt-step -|--saved -q --quiet -v --verbose -h --help -V --version
		preempt-store g|get gc
		preempt-store get --js|--json
		preempt-store --run r -q get --js|--json
		no-such-program -|
		preempt-run --savers _|all chief
		preempt-claim --then _|exit stop continue
		ckpt-rotate prune --mode _|min max
		ckpt-rotate mark ck 100 _|bad good
		preempt-queue schedule --halt _|now soon never
		preempt-queue list --state waiting,fa|waiting,failed
		ckpt-rotate pin ck --layout l|lightning
		ckpt-rotate list --layout ne|nemo
		preempt-watch --source g|gce group
		preempt-run --notice g|gce
		preempt-run --notice signal:TERM,USR|signal:TERM,USR1 signal:TERM,USR2
		preempt-run --on-notice s|signal:
		preempt-run --rehearse TER|TERM@
		preempt-run --platform slurm,a|slurm,aws slurm,azure slurm,alibaba
		preempt-run --join-timeout _|
		preempt-run --store s.db --run _|myrun
		preempt-queue join --store s.db --tag _|big
		preempt-queue cancel --store s.db _|1
		ckpt-rotate pin ck _|100 200
		preempt-store get --store s.db r|run/
		preempt-store get --store s.db run/myrun/L|run/myrun/LAST
		preempt-run --store absent.db --run _|
		preempt-queue show --store absent.db _|
	END
	offers "preempt-run --board ro" ":directories "
	offers "preempt-claim --from=ro" ":files --from="
	[ -z "$(find . -name 'absent*')" ] # nothing is made
}

# in_shell SHELL: press TAB behind each of these lines in the real shell, on a terminal, and compare.
in_shell() {
	command -v "$1" >/dev/null || skip "needs $1"
	command -v python3 >/dev/null || skip "needs python3"
	cat >expected <<-'EOF'
		preempt-run --noti | <--notice>
		preempt-store --run r ge | <--run><r><get>
		preempt-run --notice signal:USR1,TER | <--notice><signal:USR1,TERM>
		preempt-run --store s.db --run my | <--store><s.db><--run><myrun>
		preempt-run --checkpoints=a | <--checkpoints=a room>
		preempt-watch --source file:rop | <--source><file:rope>
		preempt-run -n 2 -- ckpt-rot | <-n><2><--><ckpt-rotate>
	EOF
	sed 's/ | .*//' expected |
		PATH=$PREFIX/bin:$PATH python3 "$ROOT/tests/support/press_tab.py" "$PREFIX" "$1" >words
	diff <(sed 's/.* | //' expected) <(sed 's|/>$|>|' words)
}

@test "TAB in bash" { in_shell bash; }

@test "TAB in zsh" { in_shell zsh; }

@test "TAB in fish" { in_shell fish; }
