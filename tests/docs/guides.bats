#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The scripts of the guides in docs/, as they are printed there, from a preemption to the resumed training.
# takes: 10
# shellcheck disable=SC2030,SC2031,SC2016 # text of another shell

bats_require_minimum_version 1.5.0
load ../support/programs

setup() {
	ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	PATH=${BIN:-$ROOT/bin}:$PATH
	cd "$BATS_TEST_TMPDIR" || return
	unset "${!PREEMPT_@}" "${!SLURM_@}"
	mkdir ck
	cat >train.sh <<-END
		#!/bin/bash
		. "$ROOT/lib/client/preempt.sh"
		start=\$(ckpt-rotate latest ck --step --or 0) || exit
		save() {
			d=\$(ckpt-rotate begin ck \$1 --chief-only) && { [ \$PREEMPT_TASK != 0 ] || echo \$1 >\$d/model; } &&
				ckpt-rotate commit ck \$1 --chief-only >/dev/null
		}
		echo "start \$start" >>starts
		[ \$start = 0 ] || exit 0
		for ((s = start; s < 50000; s++)); do
			preempt_step \$s || { save \$s && preempt_saved \$s; } || exit
			touch trains
		done
	END
	chmod +x train.sh
}

teardown() {
	[ -z "${job-}" ] || { pkill -KILL -P "$job"; kill -KILL "$job"; } 2>/dev/null || :
}

# script PAGE: the first script of a guide.
script() {
	sed -n '/^```bash/,/^```/p' "$ROOT/docs/$1" | sed '/^```/d' >"$1.sh"
}

# ended WITH: the job ends with this code.
ended() {
	local code=0
	wait "$job" || code=$?
	job=
	[ "$code" = "$1" ] || { cat log; return 1; }
}

# machines: the script of the guide for ssh with four machines, each of which is a shell of this one.
machines() {
	script ssh.md
	printf '%s\n' one two three four >hosts
	mkdir path
	printf '#!/bin/sh\nexec sh -c "$3"\n' >path/ssh
	chmod +x path/ssh
	sed -i "s|/shared/\$USER|$PWD|; s/sleep 10/sleep 0.1/" ssh.md.sh
}

@test "the guide for ssh: a training that crashes each time is not started for ever, also if a connection breaks" {
	machines
	printf '#!/bin/sh\necho start >>starts\nexit 1\n' >train.sh
	# The connection to the first machine breaks at the end.
	sed -i 's/^exec.*/code=0; sh -c "$3" || code=$?; [ "$2" != one ] || exit 255; exit $code/' path/ssh
	PATH=$PWD/path:$PATH timeout 120 bash ssh.md.sh >log 2>&1 3>&- &
	job=$!
	ended 93
	(($(wc -l <starts) <= 16))
}

@test "the guide for ssh: four machines, one is drained, all start again at the saved step" {
	machines
	PATH=$PWD/path:$PATH bash ssh.md.sh >log 2>&1 3>&- &
	job=$!
	until_true 60 test -e trains
	preempt-claim --store "$PWD/run.db" --run mymodel
	ended 0
	[ "$(grep -c 'start 0' starts)" = 4 ]
	[ "$(wc -l <starts)" = 8 ]
	[ "$(sed -n 5,8p starts | sort -u)" = "start $(ckpt-rotate latest ck --step)" ]
}

@test "the guide for spot machines: saved, and left for the next machine" {
	script cloud.md
	sed -i "s|/disk/|$PWD/|; s/-n 8/-n 2/" cloud.md.sh
	for expected in 2 4; do
		bash cloud.md.sh >log 2>&1 3>&- &
		job=$!
		[ "$expected" = 4 ] || { until_true 60 test -e trains && preempt-claim --store "$PWD/run.db" --run mymodel; }
		ended 0
		[ "$(wc -l <starts)" = "$expected" ]
	done
}

@test "the guide for Slurm shows the script of the README" {
	diff <(sed -n '/^exec preempt-requeue/p' "$ROOT/docs/slurm.md") <(sed -n '/^exec preempt-requeue/p' "$ROOT/README.md")
}
