#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The scripts of the guides in docs/, as they are printed there, from a preemption to the resumed training.
# takes: 10
# shellcheck disable=SC2030,SC2031,SC2016 # text of another shell

bats_require_minimum_version 1.5.0
load ../support/programs

setup() {
	programs
	unset PREEMPT_STORE
	mkdir ck
	cat >train.sh <<-END
		#!/bin/bash
		. "$REPO/lib/client/preempt.sh"
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
	for job in "${started[@]}"; do pkill -KILL -P "$job" || :; done
	end_started
}

# script PAGE: the first script of a guide.
script() {
	sed -n '/^```bash/,/^```/p' "$REPO/docs/$1" | sed '/^```/d' >"$1.sh"
}

# begin COMMAND...: in the background.
begin() {
	"$@" >log 2>&1 3>&- &
	job=$!
	started+=("$job")
}

# ended WITH: the job ends with this code.
ended() {
	code_of "$job"
	[ "$code" = "$1" ] || { cat log; return 1; }
}

@test "the guide for ssh: four machines, one is drained, all start again; what crashes each time is not started for ever" {
	script ssh.md
	printf '%s\n' one two three four >hosts
	mkdir path
	printf '#!/bin/sh\nexec sh -c "$3"\n' >path/ssh
	chmod +x path/ssh
	sed -i "s|/shared/\$USER|$PWD|; s/sleep 10/sleep 0.1/" ssh.md.sh
	PATH=$PWD/path:$PATH
	begin bash ssh.md.sh
	until_true 60 test -e trains
	preempt-claim --store "$PWD/run.db" --run mymodel
	ended 0
	[ "$(grep -c 'start 0' starts)" = 4 ]
	[ "$(wc -l <starts)" = 8 ]
	[ "$(sed -n 5,8p starts | sort -u)" = "start $(ckpt-rotate latest ck --step)" ]
	# Also if the connection to the first machine breaks at the end.
	rm -r run.db* starts
	printf '#!/bin/sh\necho start >>starts\nexit 1\n' >train.sh
	sed -i 's/^exec.*/code=0; sh -c "$3" || code=$?; [ "$2" != one ] || exit 255; exit $code/' path/ssh
	begin timeout 120 bash ssh.md.sh
	ended 93
	(($(wc -l <starts) <= 16))
}

@test "the guide for spot machines: saved, and left for the next machine" {
	script cloud.md
	sed -i "s|/disk/|$PWD/|; s/-n 8/-n 2/" cloud.md.sh
	for expected in 2 4; do
		begin bash cloud.md.sh
		[ "$expected" = 4 ] || { until_true 60 test -e trains && preempt-claim --store "$PWD/run.db" --run mymodel; }
		ended 0
		[ "$(wc -l <starts)" = "$expected" ]
	done
}

@test "the guide for Slurm shows the script of the README" {
	diff <(sed -n '/^exec preempt-requeue/p' "$REPO/docs/slurm.md") <(sed -n '/^exec preempt-requeue/p' "$REPO/README.md")
}
