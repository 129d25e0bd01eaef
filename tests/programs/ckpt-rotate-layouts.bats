#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# ckpt-rotate reads and prunes what training frameworks wrote, and touches nothing else.
# takes: 80
# shellcheck disable=SC2154,SC2030,SC2031,SC2012,SC2034
bats_require_minimum_version 1.5.0
load ../support/programs
load ../support/stop_at
load ../support/layouts/sweep.bash

setup() {
	PATH=${BIN:-$BATS_TEST_DIRNAME/../../bin}:$PATH
	cd "$BATS_TEST_TMPDIR" || return
	export ASAN_OPTIONS=detect_leaks=0
	mkdir ck
}

teardown() {
	local pid
	for pid in ${stopped-}; do kill -KILL "$pid" 2>/dev/null || :; done
}

# make LAYOUT STEP...: checkpoints in ck, written an hour ago.
make() {
	local layout=$1
	shift
	python3 "$BATS_TEST_DIRNAME/../support/layouts/frameworks.py" "$layout" ck "$@" && age
}

age() {
	find ck -exec touch -h -d '1 hour ago' {} +
}

# steps STATE: the steps that list shows in that state.
steps() {
	local state=$1
	shift
	ckpt-rotate list --json "$@" ck 2>/dev/null |
		sed -n "s/.*\"step\": \([0-9]*\),.*\"state\": \"$state\".*/\1/p" | tr '\n' ' '
}

# why STEP: what list says of one.
why() {
	ckpt-rotate list "${@:2}" ck 2>/dev/null | awk -v step="$1" '$1 == step'
}

# breaks LAYOUT COMMAND: three checkpoints, COMMAND breaks the one of step 300: it is damaged, 200
# is offered, and prune keeps what would be needed.
breaks() {
	rm -rf ck
	mkdir ck
	make "$1" 100 200 300
	[ "$(steps complete)" = "100 200 300 " ] || { why 300; return 1; }
	(cd ck && eval "$2") || return 1
	age
	[ "$(steps complete)" = "100 200 " ] || { echo "not noticed: $2"; why 300; return 1; }
	[ "$(ckpt-rotate latest ck --step 2>/dev/null)" = 200 ]
	run "-${3-65}" --separate-stderr ckpt-rotate verify ck
}

# doubts LAYOUT COMMAND: the same, but nothing shows that anything is missing in the one of step 300.
doubts() {
	breaks "$1" "$2" 75 && [ "$(steps unproven)" = "300 " ]
}

@test "Hugging Face: listed, found, verified and pruned" {
	for kind in plain sharded bin adapter named named_bin fsdp deepspeed; do
		rm -rf ck && mkdir ck
		make "hf:kind=$kind" 100 200 300 400
		echo mine >ck/model.safetensors
		[ "$(steps complete)" = "100 200 300 400 " ]
		[ "$(ckpt-rotate latest ck)" = ck/checkpoint-400 ]
		run -0 ckpt-rotate verify ck
		[[ $output == "checkpoint-400 complete: "*"no checksums"* ]]
		run -0 ckpt-rotate prune --keep-last 2 ck
		[[ ${lines[1]} == *"removed checkpoint-100: 3 newer ones are complete"* ]]
		[ "$(ls ck | tr '\n' ' ')" = "checkpoint-300 checkpoint-400 model.safetensors " ]
		[ "$(ls -A ck | wc -l)" = 3 ]
	done
}

@test "Hugging Face: half-written ones (CK-8)" {
	breaks hf "rm checkpoint-300/trainer_state.json"
	breaks hf "head -c 40 checkpoint-200/trainer_state.json >checkpoint-300/trainer_state.json"
	breaks hf "cp checkpoint-200/trainer_state.json checkpoint-300/"
	breaks hf "rm checkpoint-300/model.safetensors"
	breaks hf "truncate -s -1 checkpoint-300/model.safetensors"
	breaks hf "truncate -s 20 checkpoint-300/model.safetensors"
	breaks hf "truncate -s -1 checkpoint-300/optimizer.pt"
	breaks hf ": >checkpoint-300/rng_state.pth"
	breaks hf:kind=sharded "rm checkpoint-300/model-00002-of-00003.safetensors"
	breaks hf:kind=sharded "truncate -s 99 checkpoint-300/model.safetensors.index.json"
	breaks hf:kind=bin "truncate -s 500 checkpoint-300/pytorch_model.bin"
	breaks hf:kind=sharded "echo '{\"weight_map\": {}}' >checkpoint-300/model.safetensors.index.json"
	breaks hf:kind=named "rm checkpoint-300/mine/adapter_model*"
	breaks hf:kind=named "truncate -s -1 checkpoint-300/mine/adapter_model*"
	# Accelerate's other files end in .bin, too.
	breaks hf:kind=fsdp "rm checkpoint-300/pytorch_model_fsdp.bin"
	# Without the index the names still say how many there are.
	breaks hf:kind=sharded "rm checkpoint-300/model.safetensors.index.json checkpoint-300/*-00003-of*"
	breaks hf:kind=sharded "rm checkpoint-300/model.safetensors.index.json checkpoint-300/*-00001-of*"
	breaks hf:kind=deepspeed "rm checkpoint-300/latest"
	doubts hf:kind=deepspeed "rm checkpoint-300/global_step300/zero_pp_rank_1*"
	breaks hf:kind=deepspeed "rm checkpoint-300/global_step300/zero_pp_rank_0*"
}

@test "Hugging Face: the best one stays, because the Trainer breaks without it" {
	make hf 100 200
	make hf:best=200 300 400 500
	run -0 ckpt-rotate prune --keep-last 1 ck
	[[ ${lines[2]} == *"kept checkpoint-200: the newest one calls it the best"* ]]
	[ "$(steps complete)" = "200 500 " ]
}

@test "checkpoint-500/global_step500 is Hugging Face's, not DeepSpeed's" {
	make hf:kind=deepspeed 400 500
	run -0 ckpt-rotate list ck
	[[ $output == *"checkpoint-500"* && $output != *global_step* ]]
	# The path of one checkpoint in place of the directory: a message, and nothing is removed.
	for command in "list" "latest" "prune --keep-last 1"; do
		# shellcheck disable=SC2086
		run -2 --separate-stderr ckpt-rotate $command ck/checkpoint-500
		[[ $stderr == *"is itself a checkpoint of Hugging Face's"* ]]
	done
	[ -d ck/checkpoint-500/global_step500 ]
}

@test "Lightning: names, versions, last.ckpt as a file and as a link" {
	make lightning 100 200 300
	make lightning:epoch=2 300
	cp ck/epoch=2-step=300.ckpt ck/epoch=2-step=300-v1.ckpt
	cp ck/epoch=1-step=100.ckpt ck/run-val_loss=-0.50-step=150-lr=1.ckpt
	cp ck/epoch=1-step=100.ckpt ck/best-model.ckpt
	age
	[ "$(steps complete)" = "100 150 200 300 300 300 " ]
	[ "$(ckpt-rotate latest ck)" = "ck/epoch=2-step=300-v1.ckpt" ]
	# A copy that is newer than all of them is the newest there is, and is never removed.
	make last 70000
	[ "$(ckpt-rotate latest ck)" = "ck/last.ckpt" ]
	[ "$(ckpt-rotate latest ck --step)" = 70000 ]
	make last 300
	[ "$(ckpt-rotate latest ck)" = "ck/epoch=2-step=300-v1.ckpt" ]
	ckpt-rotate prune -q --keep-last 1 ck
	# (All of step 300: last.ckpt is of that step.)
	[ "$(ls ck | tr '\n' ' ')" = "best-model.ckpt epoch=1-step=300.ckpt epoch=2-step=300-v1.ckpt epoch=2-step=300.ckpt last.ckpt " ]
	rm -r ck && mkdir ck
	make lightning 100 200 300
	ln -s epoch=1-step=200.ckpt ck/last.ckpt
	ckpt-rotate prune -q --keep-last 1 ck
	[ "$(steps complete)" = "200 300 " ]
	# Nothing but a copy.
	rm ck/*
	make last 12
	[ "$(ckpt-rotate latest --layout lightning ck --step)" = 12 ]
	# A copy that is no checkpoint (yet) is not "none", and nothing is removed.
	truncate -s 40 ck/last.ckpt
	run -65 --separate-stderr ckpt-rotate latest --layout lightning ck --or 0
	[ "$output" = "" ]
	make lightning 100 200
	run -65 --separate-stderr ckpt-rotate prune --keep-last 1 ck
	[ "$(steps complete)" = "100 200 " ]
}

@test "Lightning: half-written ones (CK-8)" {
	breaks lightning "truncate -s -1 epoch=1-step=300.ckpt"
	breaks lightning "truncate -s 700 epoch=1-step=300.ckpt"
	breaks lightning ": >epoch=1-step=300.ckpt"
	breaks lightning "rm epoch=1-step=300.ckpt; mkdir epoch=1-step=300.ckpt"
}

@test "DeepSpeed: listed, found and pruned; what latest does not name yet is not offered" {
	for kind in deepspeed deepspeed:stage=3,data=4 deepspeed:model=2,data=3 deepspeed:data=0,stage=1; do
		rm -rf ck && mkdir ck
		make "$kind" 100 200 300 400
		[ "$(steps complete)" = "100 200 300 400 " ]
		ckpt-rotate prune -q --keep-last 2 ck
		[ "$(ls ck | tr '\n' ' ')" = "global_step300 global_step400 latest " ]
		[ "$(cat ck/latest)" = global_step400 ]
	done
	# All is written, except latest: the next cron job must not touch what the trainer names.
	rm -rf ck && mkdir ck
	make deepspeed 100 200 300 400
	echo global_step200 >ck/latest
	[ "$(ckpt-rotate latest ck --step 2>/dev/null)" = 200 ]
	[[ $(why 300) == *"newer than global_step200, which latest names still"* ]]
	ckpt-rotate prune -q --keep-last 1 ck
	[ "$(ls ck | tr '\n' ' ')" = "global_step200 global_step300 global_step400 latest " ]
	[ "$(cat ck/latest)" = global_step200 ]
}

@test "DeepSpeed: half-written ones (CK-8)" {
	breaks deepspeed "rm global_step300/zero_pp_rank_0_*"
	breaks deepspeed "rm global_step300/mp_rank_00*"
	breaks deepspeed "truncate -s -3 global_step300/zero_pp_rank_1_*"
	breaks deepspeed:model=2,data=2 "rm global_step300/mp_rank_00*"
	breaks deepspeed:model=2,data=2 "rm global_step300/mp_rank_01*"
	breaks deepspeed:model=2,data=3 "rm global_step300/zero_pp_rank_2_mp_rank_01*"
	breaks deepspeed:stage=3,data=3 "rm global_step300/zero_pp_rank_1*_model_states.pt"
	breaks deepspeed:stage=3,data=3 "rm global_step300/zero_pp_rank_2*_model_states.pt"
	# The highest ranks, of which no gap tells, but siblings, which have more of them and more bytes.
	doubts deepspeed:data=4 "rm global_step300/zero_pp_rank_[23]_*"
	doubts deepspeed:data=4 "rm global_step300/zero_pp_rank_*"
	doubts deepspeed:model=2,data=2 "rm global_step300/*mp_rank_01*"
	doubts deepspeed:stage=3,data=4 "rm global_step300/zero_pp_rank_[23]_*"
	doubts deepspeed:model=2,data=0,stage=0 "rm global_step300/mp_rank_01*"
	# Rank 0 writes latest before the others have saved: the number in the files decides, also
	# against siblings.
	rm -r ck && mkdir ck
	make deepspeed:data=2 100 200
	make deepspeed:data=4 300
	[ "$(steps complete)" = "100 200 300 " ]
	rm ck/global_step300/zero_pp_rank_[23]_*
	age
	[ "$(steps complete)$(steps unproven)" = "100 200 300 " ]
	[[ $(why 300) == *"2 optimizer states are there, but the files say that 4 belong to it"* ]]
	[ "$(ckpt-rotate latest ck --step 2>/dev/null)" = 200 ]
	ckpt-rotate prune -q --keep-last 1 ck
	[ "$(ls ck | tr '\n' ' ')" = "global_step200 global_step300 latest " ]
	# One alone is complete by that number, without latest, and not by latest without that number.
	rm -r ck && mkdir ck
	make deepspeed:data=4 300
	rm ck/latest
	[ "$(steps complete)" = "300 " ]
	rm -r ck && mkdir ck
	make deepspeed:data=4,silent=1 300
	[ "$(steps unproven)" = "300 " ]
	# latest does not show either that none of them still writes.
	rm -r ck && mkdir ck
	make deepspeed:data=2 100
	make deepspeed:data=2,silent=1 200
	find ck/global_step200 -exec touch {} +
	ckpt-rotate prune -q --keep-last 1 ck
	[ "$(ls ck | tr '\n' ' ')" = "global_step100 global_step200 latest " ]
	# An optimizer without ZeRO is in the model states.
	rm -r ck && mkdir ck
	make deepspeed:data=0,stage=0 300
	[ "$(steps complete)" = "300 " ]
}

@test "DeepSpeed and Megatron: a job that is started again with fewer ranks, and with more" {
	for stage in 2 3; do
		rm -r ck && mkdir ck
		make deepspeed:data=4,stage=$stage 100
		make deepspeed:data=2,stage=$stage 200
		make deepspeed:data=8,stage=$stage 300
		make deepspeed:model=2,data=2,stage=$stage 400
		[ "$(steps complete)" = "100 200 300 400 " ]
	done
	rm -r ck && mkdir ck
	make megatron 100
	make megatron:tensor=1 200
	make megatron:pipeline=4 300
	[ "$(steps complete)" = "100 200 300 " ]
	# As many bytes for each rank: the first ones could be half-written, three of a kind are not.
	rm -r ck && mkdir ck
	make deepspeed:data=4,silent=1 100 200 300 400
	for step in 200 300 400; do
		rm ck/global_step$step/zero_pp_rank_[23]_*
		age
		[ "$(steps unproven)" = "$([ $step = 400 ] && echo 100 || seq -s' ' 200 100 $step) " ]
		[ $step = 400 ] || [ "$(ckpt-rotate latest ck --step 2>/dev/null)" = 400 ]
	done
	[ "$(steps complete)" = "200 300 400 " ]
	# What shows that the newest is complete stays with it.
	run -0 ckpt-rotate prune --keep-last 1 --keep-step 100 ck
	[[ $output == *"kept global_step300: shows of how many ranks the newest one is"* ]]
	[ "$(steps complete)" = "200 300 400 " ]
	ckpt-rotate prune -q --keep-last 1 ck
	[[ "$(steps complete)" == *"400 " ]]
}

@test "DeepSpeed: siblings are compared where the files do not say how many ranks there are" {
	make deepspeed:data=4,silent=1 100 200 300
	[ "$(steps complete)" = "100 200 300 " ]
	rm ck/global_step300/zero_pp_rank_[23]_*
	age
	[ "$(steps complete)" = "100 200 " ]
	[ "$(steps unproven)" = "300 " ]
	[[ $(why 300) == *"unproven global_step300: global_step"*"00 has more optimizer states than the 2 here"* ]]
	[ "$(ckpt-rotate latest ck --step 2>/dev/null)" = 200 ]
	run -75 --separate-stderr ckpt-rotate verify ck
	[[ $stderr == *"global_step300 is unproven: "* ]]
	# It does not count, and is not touched; nor is what shows that 200 is complete.
	rm ck/latest
	run -0 ckpt-rotate prune --keep-last 1 ck
	[[ $output == *"kept global_step100: shows of how many ranks the newest one is"* ]]
	[[ $output == *"kept global_step300: not known to be complete"* ]]
	[ "$(steps complete)" = "100 200 " ]
	# A layer of a pipeline that a sibling has.
	rm -r ck && mkdir ck
	make deepspeed:layers=3 100 200 300
	[ "$(steps complete)" = "100 200 300 " ]
	rm ck/global_step300/layer_02*
	age
	[ "$(steps complete) $(steps unproven)" = "100 200  300 " ]
}

@test "where nothing at all says how many ranks there are: unproven, offered last, and never counted" {
	make deepspeed:data=4,silent=1 300
	rm ck/latest
	[ "$(steps unproven)" = "300 " ]
	[[ $(why 300) == *"unproven global_step300: nothing says whether the 4 optimizer states are all that belong to it"* ]]
	# There is no other: it is printed, and the exit code is neither yes nor no.
	run -75 --separate-stderr ckpt-rotate latest ck --step --or 0
	[ "$output" = 300 ]
	[[ $stderr == *"global_step300 is offered because no checkpoint is known to be complete"* ]]
	run -75 --separate-stderr ckpt-rotate latest ck --json
	[[ $output == *'"state": "unproven"'* ]]
	# One that is known outweighs it, wherever it is and however old.
	mv ck silent
	mkdir ck
	make hf 7
	[ "$(ckpt-rotate latest silent ck 2>/dev/null)" = ck/checkpoint-7 ]
	[ "$(ckpt-rotate latest ck silent 2>/dev/null)" = ck/checkpoint-7 ]
	rm -r ck && mv silent ck
	make deepspeed:data=2,silent=1 100 200
	rm ck/latest
	age
	[ "$(ckpt-rotate latest ck --layout deepspeed --step 2>/dev/null)" = 200 ]
	ckpt-rotate prune -q --keep-last 1 ck
	[ "$(steps complete) $(steps unproven)" = "100 200  300 " ]
	# Two of one kind are compared.
	make deepspeed:data=4,silent=1 400
	rm ck/latest
	[ "$(steps complete)" = "100 200 300 400 " ]
	# Of two that differ rather the one of more ranks, though older.
	rm -r ck && mkdir ck
	make deepspeed:data=4,silent=1 100 200
	rm ck/latest ck/global_step200/zero_pp_rank_[23]_*
	age
	[ "$(steps unproven)" = "100 200 " ]
	run -75 --separate-stderr ckpt-rotate latest ck --step
	[ "$output" = 100 ]
}

@test "preempt-run --checkpoints: an unproven one is no new complete checkpoint, and that is reported" {
	export PREEMPT_STORE=$PWD/run.db PREEMPT_RUN=r
	make_silent() {
		python3 "$BATS_TEST_DIRNAME/../support/layouts/frameworks.py" "deepspeed:data=$1,silent=1" ck "$2"
		rm ck/latest
	}
	cat >job <<-'END'
		echo "$PREEMPT_RESUME" >resumed
		eval "$SAVE"
		exit 0
	END
	export -f make_silent
	export BATS_TEST_DIRNAME SAVE='make_silent 4 100'
	# --done-if false: it only stopped, so that its checkpoints count.
	go() { preempt-run --checkpoints ck --done-if false -- bash job; }
	run -43 --separate-stderr go
	[ "$(cat resumed)" = "" ]
	[[ $stderr == *"ck/global_step100 may be incomplete: nothing says whether "*"; it does not count as a new complete checkpoint"* ]]
	# It is all there is: rather than from the beginning.
	export SAVE=:
	run -43 --separate-stderr go
	[ "$(cat resumed)" = ck/global_step100 ]
	[[ $stderr == *"the tasks resume from it, because no checkpoint is known to be complete"* ]]
	# A second one like it: now both are complete.
	export SAVE='make_silent 4 200'
	run -42 --separate-stderr go
	export SAVE='make_silent 4 300; rm ck/global_step300/zero_pp_rank_[23]_*'
	run -43 --separate-stderr go
	[ "$(cat resumed)" = ck/global_step200 ]
	[[ $stderr == *"ck/global_step300 is unproven and was skipped: "*"; it does not count as a new complete checkpoint"* ]]
}

@test "Megatron: listed, found and pruned" {
	for kind in megatron megatron:pipeline=1 megatron:tensor=1,pipeline=4 megatron_dist megatron_dcp; do
		rm -rf ck && mkdir ck
		make "$kind" 100 200 300 400
		mkdir ck/release ck/iter_500
		[ "$(steps complete)" = "100 200 300 400 " ]
		ckpt-rotate prune -q --keep-last 2 ck
		[ "$(ls ck | tr '\n' ' ')" = "iter_0000300 iter_0000400 iter_500 latest_checkpointed_iteration.txt release " ]
		[ "$(cat ck/latest_checkpointed_iteration.txt)" = 400 ]
	done
	# Set back by hand, as people do: what is newer stays, and is not offered.
	echo 300 >ck/latest_checkpointed_iteration.txt
	[ "$(ckpt-rotate latest ck 2>/dev/null)" = ck/iter_0000300 ]
}

@test "Megatron: half-written ones (CK-8)" {
	breaks megatron "rm -r iter_0000300/mp_rank_01_001"
	breaks megatron "rm iter_0000300/mp_rank_00_001/model_optim_rng.pt"
	breaks megatron "rm iter_0000300/mp_rank_00_001/distrib_optim.pt"
	breaks megatron "truncate -s 600 iter_0000300/mp_rank_00_001/distrib_optim.pt"
	# The highest ranks, of which no gap tells.
	doubts megatron "rm -r iter_0000300/mp_rank_01_*"
	doubts megatron "rm -r iter_0000300/mp_rank_*_001"
	doubts megatron:tensor=4,pipeline=1 "rm -r iter_0000300/mp_rank_0[123]"
	doubts megatron:pipeline=1,expert=2 "rm -r iter_0000300/mp_rank_*_001"
	doubts megatron:expert=2 "rm -r iter_0000300/mp_rank_*_*_001"
	rm -r ck && mkdir ck
	make megatron 100 200 300
	[ "$(steps complete)" = "100 200 300 " ]
	rm -r ck/iter_0000300/mp_rank_01_*
	rm ck/iter_0000200/*/distrib_optim.pt
	age
	[ "$(steps complete) $(steps unproven)" = "100  200 300 " ]
	# Layer-wise optimizers: a file of each rank that optimizes something.
	doubts megatron:optimizer=0,layers=4 "rm iter_0000300/*/layer_wise_optimizer_[23].pt"
	ckpt-rotate prune -q --keep-last 1 ck
	[[ $(steps complete) == *"200 " ]]
	rm -r ck && mkdir ck
	make megatron:optimizer=0,layers=4 300
	[ "$(steps complete)" = "300 " ]
	# The optimizer was changed to the other form, and back.
	make megatron 400
	make megatron:optimizer=0,layers=4 500
	[ "$(steps complete)" = "300 400 500 " ]
	rm ck/iter_0000500/*/layer_wise*
	age
	[ "$(steps complete) $(steps unproven)" = "300 400  500 " ]
	breaks megatron_dist "rm iter_0000300/__1_0.distcp"
	breaks megatron_dist "truncate -s -1 iter_0000300/.metadata"
	breaks megatron_dist "rm iter_0000300/metadata.json"
	breaks megatron_dist "rm iter_0000300/.metadata"
	breaks megatron_dist "rm iter_0000300/.metadata iter_0000300/*.distcp"
	breaks megatron_dcp "rm iter_0000300/__1_0.distcp"
	breaks megatron_dcp "rm iter_0000300/.metadata"
	breaks megatron_dcp "truncate -s 20 iter_0000300/.metadata"
}

@test "TensorFlow: listed, found and pruned; several files are one checkpoint" {
	make tensorflow 8 9 10 11
	: >ck/ckpt-8.meta
	: >ck/events.out.tfevents.1
	: >ck/ckpt-9.data-00000-of-00002.tempstate123
	age
	[ "$(steps complete)" = "8 9 10 11 " ]
	[ "$(ckpt-rotate latest ck)" = ck/ckpt-11 ]
	ckpt-rotate prune -q --keep-last 2 --settled 0s ck
	[ "$(ls ck | tr '\n' ' ')" = "checkpoint ckpt-10.data-00000-of-00002 ckpt-10.data-00001-of-00002 ckpt-10.index ckpt-11.data-00000-of-00002 ckpt-11.data-00001-of-00002 ckpt-11.index ckpt-9.data-00000-of-00002.tempstate123 events.out.tfevents.1 " ]
	# A path of another machine names the same.
	printf 'model_checkpoint_path: "/scratch/x/ckpt-10"\n' >ck/checkpoint
	[ "$(ckpt-rotate latest ck --step 2>/dev/null)" = 10 ]
}

@test "TensorFlow: half-written ones (CK-8)" {
	breaks tensorflow "rm ckpt-300.index"
	breaks tensorflow "truncate -s -1 ckpt-300.index"
	breaks tensorflow ": >ckpt-300.index"
	breaks tensorflow "rm ckpt-300.data-00000-of-00002"
	breaks tensorflow "rm ckpt-300.data-00001-of-00002"
	breaks tensorflow "mv ckpt-300.data-00001-of-00002 ckpt-300.data-00001-of-00003"
	breaks tensorflow:shards=1 ": >ckpt-300.data-00000-of-00001"
	breaks tensorflow ": >ckpt-300.data-00000-of-00002; : >ckpt-300.data-00001-of-00002"
	# One of several may be empty: no sibling has fewer.
	rm -r ck && mkdir ck
	make tensorflow 100 200 300
	: >ck/ckpt-300.data-00001-of-00002
	age
	[ "$(steps complete) $(steps unproven)" = "100 200  300 " ]
	[ "$(ckpt-rotate latest ck --step 2>/dev/null)" = 200 ]
	: >ck/ckpt-100.data-00001-of-00002
	: >ck/ckpt-200.data-00001-of-00002
	age
	[ "$(steps complete)" = "100 200 300 " ]
	# A directory of such a name is none.
	mkdir ck/ckpt-400.index
	[ "$(steps foreign)" = "400 " ]
	rm ck/ckpt-[123]*
	run --separate-stderr ckpt-rotate latest ck --layout tensorflow
	[ "$status" = 1 ]
	[[ $stderr == *"ckpt-400 is foreign and was skipped: it is a directory"* ]]
}

@test "Orbax: listed, found and pruned" {
	make orbax 100 200 300 400
	mkdir ck/400.orbax-checkpoint-tmp-17 ck/7
	echo mine >ck/7/mine
	[ "$(steps complete)" = "100 200 300 400 " ]
	[ "$(steps foreign)" = "7 " ]
	ckpt-rotate prune -q --keep-last 2 ck
	[ "$(ls ck | tr '\n' ' ')" = "300 400 400.orbax-checkpoint-tmp-17 7 " ]
}

@test "Orbax: half-written ones (CK-8)" {
	breaks orbax "rm 300/default/manifest.ocdbt"
	breaks orbax "head -c 20 200/_CHECKPOINT_METADATA >300/_CHECKPOINT_METADATA"
	breaks orbax "sed -i 's/nsecs\": 2/nsecs\": null/' 300/_CHECKPOINT_METADATA"
	breaks orbax "mkdir 300/more.orbax-checkpoint-tmp-5; echo x >300/more.orbax-checkpoint-tmp-5/x"
	breaks orbax "mkdir 300/more.orbax-checkpoint-tmp-5"
	breaks orbax "mkdir -p 300/a/more.orbax-checkpoint-tmp"
	breaks orbax ": >300/default/manifest.ocdbt"
	breaks orbax ": >300/default/d/0123456789abcdef"
	breaks orbax "rm -r 300/default"
	# Where renaming is no promise, the last file is.
	make orbax 500
	sed -i 's/nsecs": 2/nsecs": null/' ck/500/_CHECKPOINT_METADATA
	echo "done" >ck/500/commit_success.txt
	age
	[ "$(ckpt-rotate latest ck --step)" = 500 ]
}

@test "torch.distributed.checkpoint by itself: listed, found and pruned; half-written ones" {
	for word in step- checkpoint_ ""; do
		rm -rf ck && mkdir ck
		make "dcp:word=$word" 100 200 300 400
		[ "$(steps complete)" = "100 200 300 400 " ]
		[ "$(ckpt-rotate latest ck)" = "ck/${word}400" ]
		ckpt-rotate prune -q --keep-last 2 ck
		[ "$(steps complete) $(ls ck | wc -l)" = "300 400  2" ]
	done
	breaks dcp "rm step-300/.metadata"
	breaks dcp "rm step-300/__1_0.distcp"
	breaks dcp ": >step-300/__0_0.distcp"
	breaks dcp "truncate -s -1 step-300/.metadata"
	breaks dcp "printf . >step-300/.metadata"
	# Each item is an archive, which has its directory at its end.
	breaks dcp "truncate -s -1 step-300/__1_0.distcp"
	breaks dcp "truncate -s 20 step-300/__0_0.distcp"
	breaks dcp:ranks=300,protocol=4 "truncate -s -1 step-300/__299_0.distcp"
	# Where others write such files they are these others'.
	rm -r ck && mkdir ck
	make megatron_dist 100 200
	[ "$(ckpt-rotate latest ck)" = ck/iter_0000200 ]
	# Inside one there is none: nothing is treated as a step, nothing is removed.
	rm -r ck && mkdir ck
	make dcp:word=optimizer_ 0
	run -1 ckpt-rotate latest --layout dcp ck
	rm -r ck && mkdir ck
	make dcp 100 200
	cp ck/step-100/.metadata ck
	run -2 --separate-stderr ckpt-rotate prune --keep-last 1 ck
	[[ $stderr == *"is itself a checkpoint of PyTorch's (it holds .metadata)"* ]]
	[ "$(ls ck | wc -l)" = 2 ]
}

@test "a pattern: what matches it exactly, and nothing else" {
	make fsdp 8 9 10
	cp ck/model-8.pt ck/model-8.pt.bak
	cp ck/model-8.pt ck/model-.pt
	cp ck/model-8.pt ck/xmodel-7.pt
	cp ck/model-8.pt ck/.model-7.pt
	cp ck/model-8.pt ck/model-7.pt$'\n'
	age
	p() { ckpt-rotate "$@" --pattern 'model-{step}.pt' ck; }
	[ "$(steps complete --pattern 'model-{step}.pt')" = "8 9 10 " ]
	[ "$(p latest)" = ck/model-10.pt ]
	p prune -q --keep-last 1
	[ "$(ls -Aq ck | wc -l)" = 6 ]
	[ -e ck/model-10.pt ]
	# Directories, and words that differ.
	mkdir ck/run{a,b}_11
	echo x | tee ck/runa_11/w >ck/runb_11/w
	age
	[ "$(steps complete --pattern 'run*_{step}')" = "11 11 " ]
	for bad in model.pt 'model-{step}-{step}' 'a/{step}' '{step}*' '*{step}' '1{step}' ''; do
		run -2 --separate-stderr ckpt-rotate prune --keep-last 1 --pattern "$bad" ck
		[ "${#stderr_lines[@]}" = 1 ]
	done
	run -2 ckpt-rotate list --pattern 'x{step}' --layout hf ck
	run -2 --separate-stderr ckpt-rotate list --layout keras ck
	[[ $stderr == *"hf"*"--pattern"* ]]
}

@test "a file that vanishes while latest looks at the newest: that one is offered, or none" {
	mkdir -p q/step-{1,2}
	for step in 1 2; do echo x | tee q/step-$step/{a,b,c} >/dev/null; done
	find q -exec touch -d '2 hours ago' {} +
	for ((n = 1; n < 20; n++)); do
		run -0 --separate-stderr strace -f -o trace -P "$PWD/q/step-2" -e trace=newfstatat \
			-e inject=newfstatat:error=ENOENT:when=$n ckpt-rotate latest --pattern 'step-{step}' q
		grep -q INJECTED trace || break
		[ "$output" = q/step-2 ]
	done
	[ "$n" -gt 2 ]
	run -75 --separate-stderr strace -f -o trace -P "$PWD/q/step-2" -e trace=newfstatat \
		-e inject=newfstatat:error=ENOENT ckpt-rotate latest --pattern 'step-{step}' q
	[ "$output" = "" ]
}

@test "what changed a moment ago is not touched, and does not count" {
	make hf 100 200 300
	make hf 400
	# 400 is new: complete, but perhaps more is to come; until then 300 counts as the newest.
	touch ck/checkpoint-400/trainer_state.json
	run -0 ckpt-rotate prune --keep-last 1 ck
	[[ $output == *"kept checkpoint-400: perhaps still being written: changed "* ]]
	[ "$(steps complete)" = "300 400 " ]
	# Incomplete and young: being written; incomplete and old: left over.
	make hf 350
	rm ck/checkpoint-350/trainer_state.json
	[[ $(why 350) == *"incomplete"*"trainer_state.json is missing; changed "* ]]
	touch -d '1 hour ago' ck/checkpoint-400/trainer_state.json
	ckpt-rotate prune -q --keep-last 1 ck
	[ -d ck/checkpoint-350 ]
	# A file that was renamed into its place shows in the directory's time only.
	touch -d '1 hour ago' ck/checkpoint-350
	: >ck/checkpoint-350/x.tmp
	touch -d '1 hour ago' ck/checkpoint-350/x.tmp
	mv ck/checkpoint-350/x.tmp ck/checkpoint-350/x
	ckpt-rotate prune -q --keep-last 1 ck
	[ -d ck/checkpoint-350 ]
	age
	ckpt-rotate prune -q --keep-last 1 ck
	[ "$(ls ck)" = checkpoint-400 ]
	# Where a tracker says that a young one is finished, it counts, but is not touched either.
	rm -r ck && mkdir ck
	make deepspeed 100 200 300 400
	touch ck/global_step[34]00/*
	run -0 ckpt-rotate prune --keep-last 1 ck
	[[ $output == *"removed global_step200"*"kept global_step300: perhaps still being written"* ]]
	[ "$(steps complete)" = "300 400 " ]
	rm -r ck && mkdir ck
	make hf 400
	# The newest that is not complete is never removed.
	make hf 500
	rm ck/checkpoint-500/model.safetensors
	age
	ckpt-rotate prune -q --keep-last 1 --settled 0s ck
	[ -d ck/checkpoint-500 ]
}

@test "CK-7 trackers: empty, garbage, of nothing, a directory, a link, out of the directory" {
	garbage() { # FILE CONTENT
		printf '%b' "$2" >"ck/$1"
		run -65 --separate-stderr ckpt-rotate prune --keep-last 1 ck
		[[ $stderr == *"$1: cannot parse the tracker file"* ]] || return 1
		[ "$(ls -d ck/*[0-9]00* | wc -l)" -ge 3 ] || return 1
		# What is complete by itself is still found, with a warning.
		run -0 --separate-stderr ckpt-rotate latest ck --step
		[[ $output == 300 && $stderr == *"$1: cannot parse the tracker file"* ]]
	}
	make deepspeed 100 200 300
	for content in "" "\n" "garbage" "global_step" "global_step300x" "global_step300\0" \
		"global_step1\nglobal_step2\n" "../global_step300" "global_step99999999999999999999"; do
		garbage latest "$content"
	done
	rm ck/latest && mkdir ck/latest
	run -65 --separate-stderr ckpt-rotate prune --keep-last 1 ck
	rmdir ck/latest && ln -s global_step300 ck/latest
	run -65 --separate-stderr ckpt-rotate prune --keep-last 1 ck
	# What it names is not there: still, nothing newer is touched.
	rm ck/latest
	echo global_step150 >ck/latest
	run -0 --separate-stderr ckpt-rotate latest ck --step
	[ "$output" = 100 ]
	[[ $stderr == *"latest names global_step150, which is not there"* ]]
	ckpt-rotate prune -q --keep-last 1 ck
	[ "$(ls ck | wc -l)" = 4 ]
	# No tracker: by themselves.
	rm ck/latest
	[ "$(ckpt-rotate latest ck --step)" = 300 ]
	rm -rf ck && mkdir ck
	make megatron 100 200 300
	for content in "" "x" "-1" "300 400" "0x12" "release" "300\n400"; do
		garbage latest_checkpointed_iteration.txt "$content"
	done
	rm -rf ck && mkdir ck
	make tensorflow 100 200 300
	for content in "" "model_checkpoint_path" "model_checkpoint_path: ckpt-300" \
		'model_checkpoint_path: "ckpt"' 'model_checkpoint_path: "ckpt-300' \
		'all_model_checkpoint_paths: "ckpt-300"' 'model_checkpoint_path: "x/"'; do
		garbage checkpoint "$content"
	done
}

@test "prune: what a link in DIR leads to stays, in every layout" {
	local layout name
	while read -r layout name; do
		rm -rf ck && mkdir ck
		make "$layout" 100 200 300
		ln -s "$name" ck/best
		ckpt-rotate prune -q --keep-last 1 ck
		[ -e ck/best ] || { echo "$layout"; return 1; }
		[ "$(steps complete)" = "100 300 " ]
	done <<-'END'
		hf checkpoint-100
		lightning epoch=1-step=100.ckpt
		deepspeed global_step100/mp_rank_00_model_states.pt
		megatron iter_0000100
		tensorflow ckpt-100.index
		orbax 100
		dcp step-100
	END
	rm -rf ck && mkdir ck
	make fsdp 100 200 300
	ln -s model-100.pt ck/best
	ckpt-rotate prune -q --keep-last 1 --pattern 'model-{step}.pt' ck
	[ -e ck/best ]
}

@test "CK-9 symbolic links are not followed, neither out of DIR nor inside" {
	make hf 100 200 300
	mkdir away
	mv ck/checkpoint-100 away/
	ln -s ../away/checkpoint-100 ck/checkpoint-100
	rm ck/checkpoint-200/optimizer.pt
	echo precious >away/optimizer.pt
	ln -s ../../away/optimizer.pt ck/checkpoint-200/optimizer.pt
	age
	[ "$(steps foreign)" = "100 200 " ]
	ckpt-rotate prune -q --keep-last 1 --settled 0s ck
	[ "$(ls ck | wc -l)" = 3 ]
	[ -e away/checkpoint-100/trainer_state.json ]
	[ "$(cat away/optimizer.pt)" = precious ]
	# A name of the layout's that is a file, a pipe, or holds nothing of the framework.
	echo mine >ck/checkpoint-50
	mkfifo ck/checkpoint-60
	mkdir ck/checkpoint-70 ck/checkpoint-0x50 ck/checkpoint-80$'\n' ck/checkpoint-
	echo mine >ck/checkpoint-70/notes
	age
	ckpt-rotate prune -q --keep-last 1 --settled 0s ck
	[ "$(ls -q ck | wc -l)" = 9 ]
}

@test "a newline in a name: not a checkpoint, not printed, not touched" {
	nl=$'\n'
	make lightning 100 200
	for name in "epoch=1${nl}x-step=300.ckpt" "step=300${nl}.ckpt" "${nl}step=300.ckpt" \
		"epoch=1-step=300.ckpt${nl}" $'tab\t-step=300.ckpt' $'esc\e[1m-step=300.ckpt'; do
		cp ck/epoch=1-step=200.ckpt "ck/$name"
	done
	age
	[ "$(ckpt-rotate latest ck)" = "ck/epoch=1-step=200.ckpt" ]
	[ "$(steps complete)" = "100 200 " ]
	[ "$(steps complete --pattern '*-step={step}.ckpt')" = "100 200 " ]
	ckpt-rotate prune -q --keep-last 1 ck
	[ "$(ls -q ck | wc -l)" = 7 ]
	# In a name that is printed for other reasons it is escaped.
	rm ck/*
	make hf 100
	mkdir "ck/checkpoint-200"
	echo x >"ck/checkpoint-200/config.json${nl}garbage"
	mkfifo "ck/checkpoint-200/new${nl}line"
	run -0 ckpt-rotate list ck
	[ "${#lines[@]}" = 3 ]
}

@test "two layouts in one directory: auto refuses and names both" {
	make hf 100 200
	make megatron 100 200
	for command in list latest verify "prune --keep-last 1"; do
		# shellcheck disable=SC2086
		run -2 --separate-stderr ckpt-rotate $command ck
		[[ $stderr == *"two layouts, hf (checkpoint-"*") and megatron (iter_0000"*"--layout"* ]]
	done
	ckpt-rotate prune -q --layout megatron --keep-last 1 ck
	[ "$(ls ck | tr '\n' ' ')" = "checkpoint-100 checkpoint-200 iter_0000200 latest_checkpointed_iteration.txt " ]
	rm -r ck/iter*
	d=$(ckpt-rotate begin ck 5) && echo x >"$d/x" && ckpt-rotate commit ck 5
	run -2 --separate-stderr ckpt-rotate latest ck
	[[ $stderr == *"native (step-00000005)"*"hf (checkpoint-"* ]]
	[ "$(ckpt-rotate latest ck --layout native --step)" = 5 ]
	[ "$(ckpt-rotate latest ck --layout hf --step)" = 200 ]
	[ "$(ckpt-rotate list ck --layout orbax)" = "" ]
}

@test "--keep-best compares what the frameworks wrote" {
	best() { # METRIC: two of the lowest, beside the newest
		ckpt-rotate prune -q --keep-best 2 --metric "$1" --mode min ck
	}
	for loss in 4:100 0.5:200 3:300 -0.25:400 NaN:500 2:600; do make "hf:loss=${loss%:*}" "${loss#*:}"; done
	[[ $(why 200) == *"eval_loss=0.5"* ]]
	[ "$(steps complete)" = "100 200 300 400 500 600 " ]
	best eval_loss
	[ "$(steps complete)" = "200 400 600 " ]
	rm -r ck && mkdir ck
	make lightning 1 2 3 4 5
	mv ck/epoch=1-step=1.ckpt ck/epoch=1-step=1-val_loss=0.30.ckpt
	mv ck/epoch=1-step=2.ckpt ck/epoch=1-val_loss=1e-05-step=2-v1.ckpt
	mv ck/epoch=1-step=3.ckpt ck/val_loss=-0.50-step=3-lr=2.ckpt
	mv ck/epoch=1-step=4.ckpt ck/epoch=1-step=4-val_loss=4x.ckpt
	age
	[[ $(why 3) == *"val_loss=-0.5 lr=2"* ]]
	best val_loss
	[ "$(steps complete)" = "2 3 5 " ]
	rm -r ck && mkdir ck
	for loss in 4:100 1:200 2:300 3:400; do make "orbax:loss=${loss%:*}" "${loss#*:}"; done
	best loss
	[ "$(steps complete)" = "200 300 400 " ]
}

@test "several directories at once" {
	make hf 100 200 300
	mv ck a
	mkdir ck
	make deepspeed 100 200
	mv ck b
	d=$(ckpt-rotate begin c 250) && echo x >"$d/x" && ckpt-rotate commit c 250
	mkdir ck
	[ "$(ckpt-rotate latest a b c ck)" = a/checkpoint-300 ]
	rm a/checkpoint-300/trainer_state.json
	touch -d '1 hour ago' a/checkpoint-300
	[ "$(ckpt-rotate latest a b c ck missing 2>/dev/null)" = c/step-00000250 ]
	run -75 --separate-stderr ckpt-rotate latest a b c missing/deep
	[ "$output" = "" ]
	run -1 --separate-stderr ckpt-rotate latest ck missing
	run -0 ckpt-rotate list b c
	[ "${lines[0]}" = b: ]
	[[ $output == *$'\nc:\n'*"250"* ]]
	ckpt-rotate list --json a b c | python3 -c '
import json, sys
assert [c["step"] for c in json.load(sys.stdin)] == [100, 200, 300, 100, 200, 250]'
	ckpt-rotate prune --json --keep-last 1 a b c | python3 -c 'import json, sys; json.load(sys.stdin)'
	[ "$(ls -d a/* b/g* | wc -l)" = 3 ]
	# One that fails does not keep the others from being pruned.
	run -65 --separate-stderr ckpt-rotate verify a b c --all
}

# The calls of prune that change a filesystem.
@test "what a killed prune renamed away by mistake is given back, and only that" {
	for kind in hf tensorflow; do
		rm -rf ck && mkdir ck
		make $kind 100 200 300
		# Another one than was meant: it has another inode than its name says.
		for file in ck/*100*; do mv "$file" "ck/.gone-0000000000000001-${file#ck/}"; done
		[ "$(steps complete)" = "200 300 " ]
		# What was meant, and one whose place another has taken.
		for file in ck/*200*; do
			cp -r "$file" "ck/.gone-0000000000000002-${file#ck/}"
			cp -r "$file" ck/copy
			mv ck/copy "ck/.gone-$(printf %016x "$(stat -c %i ck/copy)")-${file#ck/}"
		done
		age
		ckpt-rotate prune -q --keep-last 9 ck
		[ "$(steps complete)" = "100 200 300 " ]
		[ "$(find ck -name '.gone*')" = "" ]
	done
}

@test "kill -9 at every call of prune: the newest stays whole, a rerun finishes" {
	for kind in hf tensorflow; do
		rm -rf ck template && mkdir ck
		make $kind 100 200 300
		mv ck template
		points=0
		for call in renameat fsync unlinkat; do
			for ((n = 1; n < 100; n++)); do
				sampled $n || continue
				rm -rf ck
				cp -a template ck
				run strace -f -o trace -e trace=$call -e inject=$call:signal=KILL:when=$n \
					ckpt-rotate prune -q --keep-last 1 ck
				if [ "$status" != 137 ]; then break; fi
				points=$((points + 1))
				[ "$(ckpt-rotate latest ck --step 2>/dev/null)" = 300 ]
				[ "$(steps complete)" = "300 " ] || [ "$(steps complete)" = "200 300 " ] ||
					[ "$(steps complete)" = "100 200 300 " ]
				age
				ckpt-rotate prune -q --keep-last 1 ck
				[ "$(find ck -name '.gone*' -o -name '*00' -name 'checkpoint-[12]*' \
					-o -name 'ckpt-[12]*')" = "" ]
				[ "$(steps complete)" = "300 " ]
			done
		done
		echo "# $kind: killed at $points calls (CKPT_SWEEP_SEED=$CKPT_SWEEP_SEED)" >&3
		[ $points -gt 3 ]
	done
}

@test "a copy of a directory in which prune was killed: what it had half deleted does not come back" {
	for kind in hf tensorflow; do
		rm -rf ck twin && mkdir ck
		make $kind 100 200
		run -137 strace -f -o trace -e trace=unlinkat -e inject=unlinkat:signal=KILL:when=3 \
			ckpt-rotate prune -q --keep-last 1 ck
		[ -n "$(find ck -name '.gone*')" ]
		cp -a ck twin
		rm -r ck
		mv twin ck
		ckpt-rotate prune -q --keep-last 2 ck
		[ "$(steps .*)" = "200 " ]
		[ -z "$(find ck -name '.gone*')" ]
	done
}

@test "the file with which a killed prune measured the clock is removed by the next prune" {
	make hf 100
	run -137 strace -o trace -e trace=utimensat -e inject=utimensat:signal=KILL:when=1 \
		ckpt-rotate prune -q --keep-last 9 ck
	[ -n "$(find ck -name '.ckpt-*')" ]
	ckpt-rotate prune -q --keep-last 9 ck
	[ -z "$(find ck -name '.ckpt-*')" ]
}

@test "a trainer that writes again what prune was about to remove keeps it" {
	make hf 100 200 300
	: >trace
	strace -f -o trace -e trace=renameat -e inject=renameat:signal=STOP:when=1 \
		ckpt-rotate prune -q --keep-last 1 ck 3>&- &
	tracer=$!
	until_stopped
	touch ck/checkpoint-200/model.safetensors
	go_on
	[ "$code" = 0 ]
	[ "$(steps complete)" = "200 300 " ]
}

@test "a tracker that is set back while prune decides: what it names now stays" {
	make deepspeed 100 200 300 400
	: >trace
	# It has read the tracker, and reads the directory.
	strace -f -o trace -P "$PWD/ck" -e trace=getdents64 \
		-e inject=getdents64:signal=STOP:when=1 \
		ckpt-rotate prune --layout deepspeed -q --keep-last 1 ck 3>&- &
	tracer=$!
	until_stopped
	echo global_step200 >ck/latest
	go_on
	[ "$code" = 0 ]
	[ "$(ls ck | tr '\n' ' ')" = "global_step200 global_step300 global_step400 latest " ]
}

@test "preempt-run --checkpoints DIR:LAYOUT resumes from a framework's checkpoint" {
	make hf 100 200
	echo x >ck/checkpoint-200/trainer_state.json
	age
	cat >job <<-'END'
		echo "$PREEMPT_RESUME" >resumed
	END
	export PREEMPT_STORE=$PWD/run.db PREEMPT_RUN=r
	for dir in ck ck:hf ck:auto; do
		preempt-run --checkpoints $dir -- sh job
		[ "$(cat resumed)" = ck/checkpoint-100 ]
	done
	run -0 preempt-run --checkpoints ck:lightning -- sh job
	[ "$(cat resumed)" = "" ]
}

@test "preempt-run --checkpoints: a misspelt layout is refused, a name with a colon stays possible" {
	export PREEMPT_STORE=$PWD/run.db PREEMPT_RUN=r
	for word in hff HF magatron lighting pytorch; do
		run -2 --separate-stderr preempt-run --checkpoints "ck:$word" -- touch started
		[[ $stderr == *"--checkpoints: ck:$word: there is no layout \"$word\""* ]]
		[[ $stderr == *"with a slash at the end: ck:$word/"* ]]
	done
	[ ! -e started ]
	run -2 --separate-stderr preempt-run --checkpoints ck:hff -- touch started
	[[ $stderr == *'did you mean "hf"?'* ]]
	run -2 --separate-stderr ckpt-rotate list --layout deepsped ck
	[[ $stderr == *'did you mean "deepspeed"?'* ]]
	run -2 --separate-stderr ckpt-rotate list --layout keras ck
	[[ $stderr != *"did you mean"* ]]
	# A directory of that name is there, or it is written with a slash at the end.
	mkdir ck:hff
	make hf 100
	mv ck/checkpoint-100 ck:hff
	cat >job <<-'END'
		echo "$PREEMPT_RESUME" >resumed
	END
	preempt-run --checkpoints ck:hff -- sh job
	[ "$(cat resumed)" = ck:hff/checkpoint-100 ]
	preempt-run --checkpoints ck:hff:hf -- sh job
	[ "$(cat resumed)" = ck:hff/checkpoint-100 ]
	preempt-run --checkpoints ck:4/ -- sh job
	[ "$(cat resumed)" = "" ]
}

@test "files that PyTorch itself wrote" {
	python3 -c 'import torch' 2>/dev/null || skip "needs python3-torch"
	export FRAMEWORKS_TORCH=1
	breaks lightning "truncate -s -1 epoch=1-step=300.ckpt"
	make last 70000
	[ "$(ckpt-rotate latest ck --step 2>/dev/null)" = 70000 ]
	breaks hf:kind=bin "truncate -s 1000 checkpoint-300/pytorch_model.bin"
	breaks deepspeed "truncate -s -1 global_step300/zero_pp_rank_1_*"
	breaks megatron:tensor=1,pipeline=1 "truncate -s -1 iter_0000300/mp_rank_00/*optim.pt"
	rm -rf ck && mkdir ck
	make fsdp 1 2 3
	# The format of old versions tells nothing of its length.
	python3 -c 'import torch; torch.save({}, "ck/model-4.pt", _use_new_zipfile_serialization=False)'
	[ "$(steps complete --pattern 'model-{step}.pt')" = "1 2 3 4 " ]
}
