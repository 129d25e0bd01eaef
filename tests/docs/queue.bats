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
	mkdir data
	touch data/{a,b,c}.txt
	printf '#!/bin/sh\necho "$@" >>ran\n[ -z "$FAIL" ] || exit 3\n' >prepare
	cp prepare train
	printf '#!/bin/sh\necho "loss of $1"; exit 5\n' >evaluate
	chmod +x prepare train evaluate
	# Whatever cloud this is.
	export PREEMPT_PLATFORM=generic
}

@test "the examples of preempt-queue(1) run as they stand there" {
	make_place
	# Schedule a command for each file, and look.
	example preempt-queue.1 1 >1.sh
	grep -q . 1.sh
	run -0 bash -e 1.sh
	[ "$(grep -c 'waiting .* prepare .*\./prepare data/.*txt\.out' <<<"$output")" = 3 ]
	# Workers, one in each task of an array; no worker waits for the minute here.
	{
		echo export SLURM_ARRAY_TASK_ID=7
		example preempt-queue.1 2 | sed 's/--idle-exit 1m/--idle-exit 0/'
	} >2.sh
	grep -q 'preempt-queue work --slots 4 --idle-exit 0' 2.sh
	run -0 bash -e 2.sh
	[ "$(sort ran)" = "$(for i in a b c; do echo "data/$i.txt data/$i.txt.out"; done)" ]
	[ "$(what 1 worker)" = 7 ]
	# Join, and put back what failed and what was cancelled.
	example preempt-queue.1 3 >3.sh
	grep -q 'retry --failed' 3.sh
	run -0 bash -e 3.sh
	FAIL=1 preempt-queue schedule --env FAIL=1 -- ./prepare
	preempt-queue schedule -- ./prepare last
	sed -i 's/--slots 4/--slots 1/' 2.sh
	run -44 bash -e 2.sh
	run -0 --separate-stderr bash -e 3.sh
	[ "$(sort <<<"$output" | tr '\n' ' ')" = '4 5 ' ]
	preempt-queue cancel 4
	run -0 bash -e 2.sh
	is 5 succeeded
	# The output and the code of one.
	example preempt-queue.1 4 >4.sh
	PREEMPT_PLATFORM='' worker w
	run -5 --separate-stderr timeout 180 bash 4.sh
	[ "$output" = 'loss of model.pt' ]
	expect 44 preempt-queue join
	expect 0 preempt-queue forget --finished
	# Scheduled from a script that may run again.
	example preempt-queue.1 5 >5.sh
	bash -e 5.sh >once
	bash -e 5.sh >again
	[ "$(wc -l <once)" = 100 ]
	cmp once again
	expect 0 preempt-queue join
	[ "$(grep -c -e '^--seed' ran)" = 100 ]
	[ "$(examples preempt-queue.1)" = 5 ]
}

@test "README's section on queues runs as it stands there" {
	make_place
	{
		echo 'srun() { "$@"; }'
		sed -n '/^## Many commands/,/^## /p' "$REPO/README.md" | sed -n '/^```bash/,/^```$/p' | sed '/^```/d'
	} | sed "s|/shared/\$USER/sweep.db|$PREEMPT_STORE|; s/--idle-exit 1m/--idle-exit 3s/" >readme.sh
	grep -q 'preempt-queue join' readme.sh
	run -0 timeout 240 bash -e readme.sh
	[ "$(grep -c -e '^--seed' ran)" = 100 ]
	[ "$(preempt-queue list --state succeeded --tag sweep --json | wc -l)" = 100 ]
}
