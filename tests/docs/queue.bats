#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# takes: 15
# asan: no (the programs' own tests do that)
# What README and preempt-queue(1) show is run as it stands there.
# shellcheck disable=SC2016 # text for another shell

bats_require_minimum_version 1.5.0
load ../support/queue
load ../support/manual

# As its user would have it: the programs that the examples name.
make_place() {
	touch {a,b,c}.txt
	printf '%s\n' '0.1 8' '0.2 16' >grid
	# Slow enough to be killed in; the one with seed 17 fails until "good" is there.
	printf '#!/bin/sh\nsleep 0.02\n[ "$2" != 17 ] || [ -e good ] || { echo diverged >&2; exit 3; }\necho "$@" >>ran\n' >train
	printf '#!/bin/sh\ntr a-z A-Z\necho read >>ran\n' >prepare
	printf '#!/bin/sh\necho "loss of $1"; exit 5\n' >evaluate
	printf '#!/bin/sh\necho chosen >>ran\n' >choose
	chmod +x prepare train evaluate choose
	# Whatever cloud this is.
	export PREEMPT_PLATFORM=generic
}

# the N: what the Nth example shows, in the file N.sh
the() {
	example preempt-queue.1 "$1" Examples >"$1.sh"
	[ -s "$1.sh" ]
}

@test "200 commands on two workers, one of which is killed: four commands of preempt-queue(1), and all are done" {
	make_place
	: >good
	the 1
	[ "$(grep -c . 1.sh)" = 4 ]
	# The killer knows the first worker by its number.
	sed -i '0,/idle-exit 0 &/s//idle-exit 0 \& first=$!; (until [ -s ran ]; do sleep 0.02; done; kill -KILL $first) \&/' 1.sh
	run -0 --separate-stderr timeout 240 bash 1.sh
	[[ $stderr = *'200 commands: 200 succeeded'* ]]
	[ "$(sort -u ran | wc -l)" = 200 ]
	[ "$(preempt-queue list --json | grep -c '"lost":0')" -lt 200 ]
}

@test "the examples of preempt-queue(1) run as they stand there" {
	make_place
	# What failed: where, why, and once more.
	the 1
	run -44 --separate-stderr timeout 240 bash 1.sh
	[[ $stderr = *'1 failed; the first: command 17 '*'diverged'* ]]
	the 2
	run -0 --separate-stderr bash -e 2.sh
	[[ $output = *' 17 failed '*'(ended with exit code 3: diverged)'*$'\n'diverged ]]
	# Fields, and one that comes after.
	: >good
	the 3
	run -0 bash -e 3.sh
	# Text for a shell.
	the 4
	run -0 bash -e 4.sh
	# Workers of an array; no worker waits for the minute here.
	the 5
	{ echo export SLURM_ARRAY_TASK_ID=7; sed 's/--idle-exit 1m/--idle-exit 0/' 5.sh; } >array.sh
	grep -q 'preempt-queue work --slots 4 --idle-exit 0' array.sh
	run -0 bash -e array.sh
	expect 0 preempt-queue join
	[ "$(what 17 worker)" = 7 ]
	[ "$(grep -x -e '0.. .*' -e chosen ran | sort | tr '\n' ' ')" = '0.1 8 0.2 16 chosen ' ]
	[ "$(grep -n chosen ran | cut -d : -f 1)" -gt "$(grep -n '^0' ran | tail -n 1 | cut -d : -f 1)" ]
	[ "$(<best)" = 'loss of model.pt' ]
	[ "$(echo *.out)" = 'a.txt.out b.txt.out c.txt.out' ]
	# The output and the code of one.
	the 6
	worker w --idle-exit 5s
	run -5 --separate-stderr timeout 180 bash 6.sh
	[ "$output" = 'loss of model.pt' ]
	# Scheduled from a script that may run again.
	the 7
	bash -e 7.sh >once
	bash -e 7.sh >again
	[ "$(wc -l <once)" = 100 ]
	cmp once again
	[ "$(example preempt-queue.1 0 Examples)" = 7 ]
}

@test "README's section on queues runs as it stands there" {
	make_place
	: >good
	{
		echo 'srun() { "$@"; }'
		sed -n '/^## Many commands/,/^## /p' "$REPO/README.md" | sed -n '/^```bash/,/^```$/p' | sed '/^```/d'
	} | sed "s|/shared/\$USER/sweep.db|$PREEMPT_STORE|; s/--idle-exit 1m/--idle-exit 3s/" >readme.sh
	grep -q 'preempt-queue join' readme.sh
	run -0 timeout 240 bash -e readme.sh
	[ "$(grep -c -e '^--seed' ran)" = 100 ]
	[ "$(preempt-queue list --state succeeded --tag sweep --json | wc -l)" = 100 ]
}
