#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# History decides whether a run may begin at step 0: the store knows whether it has ever saved, which step and where.

# shellcheck disable=SC2016,SC2154 # inner shells expand; bats sets stderr
bats_require_minimum_version 1.5.0
load ../support/programs

setup() {
	PATH=${BIN:-$BATS_TEST_DIRNAME/../../bin}:$PATH
	cd "$(mktemp -d -p "$BATS_TEST_TMPDIR")" || return
	mkdir -m 700 home store
	unset PREEMPT_RUN PREEMPT_STORE PREEMPT_MOUNTS XDG_STATE_HOME "${!SLURM_@}"
	export HOME=$PWD/home store=$PWD/store/s.db client=$BATS_TEST_DIRNAME/../../lib/client/preempt.sh
}

teardown() {
	"$BATS_TEST_DIRNAME/../support/forget-stores" "$BATS_TEST_TMPDIR"
}

# saves STEP [DIR]: a program that writes a checkpoint of a framework and is then preempted.
saves() {
	cat >saves.sh <<-'END'
		echo "from ${PREEMPT_RESUME:-nothing}" >>starts
		d=$2/checkpoint-$1
		mkdir -p "$d"
		echo "{\"global_step\": $1}" >"$d/trainer_state.json"
		echo w >"$d/pytorch_model.bin"
		kill -TERM $PPID
		sleep 100
	END
	run --separate-stderr preempt-run --run r --store "$store" --on-notice signal:TERM --checkpoints "${2-out}:hf" \
		"${@:3}" -- bash saves.sh "$1" "${2-out}"
}
record() { preempt-store get --store "$store" saved/r; }

@test "the README's loop after a crash before any save: begins at 0, makes its directory, and saves" {
	cat >train.sh <<-'END'
		. "$client"
		save() { d=$(ckpt-rotate begin ckpt $1 --sharded) && echo "$1" >"$d/$PREEMPT_TASK" &&
			ckpt-rotate commit ckpt $1 --sharded >/dev/null; }
		start=$(ckpt-rotate latest ckpt --step --or 0) || exit
		echo "from $start" >>starts
		for ((s = start; s < 2000; s++)); do
			preempt_step $s || { save $s && preempt_saved $s; } || exit
			[ -e ok ] || { touch ok; exit 1; }
			((s < start + 3)) || touch trains
			sleep 0.02
		done
	END
	preempt-run --run r --store "$store" --restarts -- bash train.sh 2>err 3>&- &
	local run=$! code=0
	until_true 60 test -e trains
	kill -TERM $run
	wait $run || code=$?
	[ $code = 42 ] || { cat err >&2; false; }
	ckpt-rotate latest ckpt
	[ "$(cat starts)" = $'from 0\nfrom 0' ]
	record | grep -q '"attempt":2'
	# The directory is lost: latest says so before the first step; --or is for a run that never saved.
	mv ckpt away
	rm starts
	run -75 --separate-stderr env PREEMPT_RUN=r PREEMPT_STORE="$store" ckpt-rotate latest ckpt --step --or 0
	[ "$output" = "" ]
	[[ $stderr == *"run r has saved step "*" in attempt 2"*"no complete checkpoint in ckpt"*"--anew"* ]]
	run ! preempt-run --run r --store "$store" -- bash train.sh
	[ ! -e starts ]
	# Two directories are asked; without a run, the directory alone; a store that cannot be asked is not "none".
	run -0 env PREEMPT_RUN=r PREEMPT_STORE="$store" ckpt-rotate latest ckpt away --step --or 0
	[ "${lines[-1]}" -gt 0 ]
	run -0 ckpt-rotate latest ckpt --step --or 0
	run -75 env PREEMPT_RUN=r PREEMPT_STORE="$PWD/none/s.db" ckpt-rotate latest ckpt --step --or 0
	preempt-store anew --run r --store "$store"
	run -0 --separate-stderr env PREEMPT_RUN=r PREEMPT_STORE="$store" ckpt-rotate latest ckpt --step --or 0
	[ "$output" = 0 ]
}

@test "--checkpoints without what the run has saved: 75 before the first step, until --anew" {
	saves 40
	[ "$status" = 42 ]
	record | grep -q "\"step\":40,\"attempt\":1,\"where\":\"$PWD/out\""
	saves 20 outt
	[ "$status" = 75 ]
	[[ $stderr == *"run r has saved step 40 in attempt 1, in $PWD/out "*"no complete checkpoint in outt:hf"*"--anew"* ]]
	saves 20 outt --restarts
	[ "$status" = 75 ]
	[ "$(cat starts)" = "from nothing" ]
	[ ! -e outt ]
	# No attempt was opened, so the budgets know of no crash.
	[ "$(preempt-store runs --store "$store" --json | grep -o '"attempts":[0-9]*')" = '"attempts":1' ]
	# It outlives gc.
	preempt-store gc --older-than 0s --store "$store"
	run -0 preempt-store runs --store "$store" --json
	[ "$output" = "" ]
	saves 20 outt
	[ "$status" = 75 ]
	# What is there counts, not its path; an older one is used, and told.
	mv out moved
	saves 60 moved
	[ "$status" = 42 ]
	[[ $stderr != *"is used"* ]]
	mkdir older
	cp -a moved/checkpoint-40 older
	saves 50 older
	[ "$status" = 42 ]
	[[ $stderr == *"has saved step 60"*"older/checkpoint-40, of step 40: it is used"* ]]
	[ "$(cat starts)" = $'from nothing\nfrom moved/checkpoint-40\nfrom older/checkpoint-40' ]
	saves 20 outt --anew
	[ "$status" = 42 ]
	[ "$(tail -n1 starts)" = "from nothing" ]
	record | grep -q '"step":20'
	# A missing parent is 75, saved or not.
	saves 20 none/out --anew
	[ "$status" = 75 ]
	# A run that has finished has nothing that must be there.
	run -0 preempt-run --run r --store "$store" --checkpoints outt:hf -- true
	run -1 record
}

@test "neither a restart count nor an attempt's number proves anything: what is missing is made" {
	local variable
	for variable in SLURM_RESTART_COUNT=1 PREEMPT_ATTEMPT=2; do
		run -0 env "$variable" preempt-store put --store "store/${variable%=*}.db" k v
		run -0 --separate-stderr env "$variable" ckpt-rotate latest ck --or 0
		[ "$output" = 0 ]
		run -0 env "$variable" ckpt-rotate begin ck 1
		run -75 env "$variable" ckpt-rotate begin none/ck 1
		rm -r ck
	done
	export SLURM_JOB_ID=7 SLURM_RESTART_COUNT=3
	run -0 preempt-requeue --platform none --run r --store "$store" -- preempt-run -- true
}

@test "a store that is missing, but was there at an earlier start of the job: 75, and not made" {
	export SLURM_JOB_ID=7 PREEMPT_RUN=r PREEMPT_STORE=$store
	local trace=home/.local/state/preempt/slurm-7.db.trace
	preempt-requeue --platform none -- preempt-run -- sh -c 'exit 1' || :
	[ "$(cat $trace)" = "$store" ]
	mv store away
	mkdir -m 700 store
	run -75 --separate-stderr preempt-run -- touch started
	[[ $stderr == *"$store is missing, but an earlier start of this job had it ($PWD/$trace)"* ]]
	run preempt-requeue --platform none -- preempt-run -- touch started
	[ -z "$(ls -A store)" ]
	[ ! -e started ]
	# Another job, another store, or no job: nothing is known of it.
	SLURM_JOB_ID=8 run -0 preempt-run --store "$PWD/away/8.db" -- true
	run -0 preempt-run --store "$PWD/away/other.db" -- true
	# The job finishes: its id may come again.
	rmdir store
	mv away store
	run -0 preempt-requeue --platform none -- preempt-run -- true
	[ ! -e $trace ]
}

@test "what ckpt-rotate commit has published is known at once, also when all are killed; and could not ask is not none" {
	cat >train.sh <<-'END'
		d=$(ckpt-rotate begin ckpt 5) && echo 5 >"$d/f" && ckpt-rotate commit ckpt 5 >/dev/null && touch saved
		sleep 100
	END
	setsid preempt-run --run r --store "$store" -- bash train.sh 2>err 3>&- &
	local run=$!
	until_true 60 test -e saved
	kill -KILL -- -$run || kill -KILL $run
	wait $run || :
	record | grep -q '"step":5,"attempt":1,"where":"'"$PWD"'/ckpt"'
	mv ckpt elsewhere
	export PREEMPT_RUN=r PREEMPT_STORE=$store
	run -75 --separate-stderr ckpt-rotate latest ckpt --or 0
	[[ $stderr == *"run r has saved step 5 in attempt 1, in $PWD/ckpt"* ]]
	[ "$(ckpt-rotate latest elsewhere --step)" = 5 ]
	# A store that cannot be read is no store that knows nothing.
	mv store away
	run -75 --separate-stderr ckpt-rotate latest ckpt --or 0
	[ "$(ckpt-rotate latest elsewhere --step)" = 5 ]
	mv away store
	echo garbage >"$store"
	run -65 --separate-stderr ckpt-rotate latest ckpt --or 0
}

@test "a start that finds a checkpoint makes it known" {
	mkdir -p out/checkpoint-40
	echo '{"global_step": 40}' >out/checkpoint-40/trainer_state.json
	echo w >out/checkpoint-40/pytorch_model.bin
	preempt-run --run r --store "$store" --checkpoints out:hf -- bash -c 'kill -9 $PPID' 3>&- || :
	record | grep -q '"step":40'
}
