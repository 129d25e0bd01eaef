#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# ckpt-rotate reads and prunes what training frameworks wrote, and touches nothing else.
# takes: 60
# shellcheck disable=SC2012,SC2016,SC2030,SC2031,SC2034,SC2086,SC2154
bats_require_minimum_version 1.5.0
load ../support/ckpt

@test "each framework's: listed, found, verified and pruned" {
	for kind in hf hf:kind={sharded,bin,adapter,named,named_bin,fsdp,deepspeed} deepspeed deepspeed:stage=3,data=4 \
		deepspeed:model=2,data=3 deepspeed:data=0,stage=1 deepspeed:data=0,stage=0 megatron megatron:pipeline=1 \
		megatron:tensor=1,pipeline=4 megatron_dist megatron_dcp orbax dcp dcp:word=checkpoint_ dcp:word=; do
		echo "$kind"
		fresh "$kind" 100 200 300
		echo mine | tee ck/model.safetensors >ck/events.out.tfevents.1
		newest=$(cd ck && echo *300) left=$(cd ck && GLOBIGNORE='*100*' && echo *)
		[ "$(states)" = "100 complete 200 complete 300 complete " ]
		[ "$(ckpt-rotate latest ck)" = "ck/$newest" ]
		run -0 ckpt-rotate verify ck
		[[ $output == "$newest complete: "*"no checksums"* ]]
		run -0 ckpt-rotate prune --keep-last 2 ck
		[[ ${lines[1]} == *"removed "*"100: 2 newer ones are complete"* ]]
		[ "$(names -A ck)" = "$left" ]
	done
}

@test "CK-8 half-written ones: the one before is offered, and what is only unknown is not called damaged" {
	# The state of 300, the layout, and what breaks 300 of three. Of the highest ranks no gap tells, only siblings,
	# which have more of them and more bytes: "unproven".
	while IFS='|' read -r state kind breaks; do
		fresh "$kind" 100 200 300
		(cd ck && eval "$breaks") || return 1
		age
		code=65
		[ "$state" = damaged ] || code=75
		[ "$(states)" = "100 complete 200 complete 300 $state " ] || { echo "$kind: $breaks"; why 300; return 1; }
		[ "$(ckpt-rotate latest ck --step 2>/dev/null)" = 200 ]
		run "-$code" --separate-stderr ckpt-rotate verify ck
	done <<-'END'
		damaged|hf|rm checkpoint-300/trainer_state.json
		damaged|hf|head -c 40 checkpoint-200/trainer_state.json >checkpoint-300/trainer_state.json
		damaged|hf|cp checkpoint-200/trainer_state.json checkpoint-300/
		damaged|hf|rm checkpoint-300/model.safetensors
		damaged|hf|truncate -s -1 checkpoint-300/model.safetensors
		damaged|hf|truncate -s 20 checkpoint-300/model.safetensors
		damaged|hf|truncate -s -1 checkpoint-300/optimizer.pt
		damaged|hf|: >checkpoint-300/rng_state.pth
		damaged|hf:kind=sharded|rm checkpoint-300/model-00002-of-00003.safetensors
		damaged|hf:kind=sharded|truncate -s 99 checkpoint-300/model.safetensors.index.json
		damaged|hf:kind=sharded|echo '{"weight_map": {}}' >checkpoint-300/model.safetensors.index.json
		damaged|hf:kind=sharded|rm checkpoint-300/model.safetensors.index.json checkpoint-300/*-00003-of*
		damaged|hf:kind=sharded|rm checkpoint-300/model.safetensors.index.json checkpoint-300/*-00001-of*
		damaged|hf:kind=sharded|sed -i s/model-00002-of-00003/other/ checkpoint-300/model.safetensors.index.json
		damaged|hf:kind=bin|truncate -s 500 checkpoint-300/pytorch_model.bin
		damaged|hf:kind=named|rm checkpoint-300/mine/adapter_model*
		damaged|hf:kind=named|truncate -s -1 checkpoint-300/mine/adapter_model*
		damaged|hf:kind=fsdp|rm checkpoint-300/pytorch_model_fsdp.bin
		damaged|hf:kind=deepspeed|rm checkpoint-300/latest
		damaged|hf:kind=deepspeed|rm checkpoint-300/global_step300/zero_pp_rank_0*
		unproven|hf:kind=deepspeed|rm checkpoint-300/global_step300/zero_pp_rank_1*
		damaged|lightning|truncate -s -1 epoch=1-step=300.ckpt
		damaged|lightning|truncate -s 700 epoch=1-step=300.ckpt
		damaged|lightning|: >epoch=1-step=300.ckpt
		damaged|deepspeed|rm global_step300/zero_pp_rank_0_*
		damaged|deepspeed|rm global_step300/mp_rank_00*
		damaged|deepspeed|truncate -s -3 global_step300/zero_pp_rank_1_*
		damaged|deepspeed:model=2,data=2|rm global_step300/mp_rank_00*
		damaged|deepspeed:model=2,data=2|rm global_step300/mp_rank_01*
		damaged|deepspeed:model=2,data=3|rm global_step300/zero_pp_rank_2_mp_rank_01*
		damaged|deepspeed:stage=3,data=3|rm global_step300/zero_pp_rank_1*_model_states.pt
		damaged|deepspeed:stage=3,data=3|rm global_step300/zero_pp_rank_2*_model_states.pt
		unproven|deepspeed:data=4|rm global_step300/zero_pp_rank_[23]_*
		unproven|deepspeed:data=4|rm global_step300/zero_pp_rank_*
		unproven|deepspeed:model=2,data=2|rm global_step300/*mp_rank_01*
		unproven|deepspeed:stage=3,data=4|rm global_step300/zero_pp_rank_[23]_*
		unproven|deepspeed:model=2,data=0,stage=0|rm global_step300/mp_rank_01*
		unproven|deepspeed:layers=3|rm global_step300/layer_02*
		damaged|megatron|rm -r iter_0000300/mp_rank_01_001
		damaged|megatron|rm iter_0000300/mp_rank_00_001/model_optim_rng.pt
		damaged|megatron|rm iter_0000300/mp_rank_00_001/distrib_optim.pt
		damaged|megatron|truncate -s 600 iter_0000300/mp_rank_00_001/distrib_optim.pt
		unproven|megatron|rm -r iter_0000300/mp_rank_01_*
		unproven|megatron|rm -r iter_0000300/mp_rank_*_001
		unproven|megatron:tensor=4,pipeline=1|rm -r iter_0000300/mp_rank_0[123]
		unproven|megatron:pipeline=1,expert=2|rm -r iter_0000300/mp_rank_*_001
		unproven|megatron:expert=2|rm -r iter_0000300/mp_rank_*_*_001
		unproven|megatron:optimizer=0,layers=4|rm iter_0000300/*/layer_wise_optimizer_[23].pt
		damaged|megatron_dist|rm iter_0000300/__1_0.distcp
		damaged|megatron_dist|truncate -s -1 iter_0000300/.metadata
		damaged|megatron_dist|rm iter_0000300/metadata.json
		damaged|megatron_dist|rm iter_0000300/.metadata
		damaged|megatron_dist|rm iter_0000300/.metadata iter_0000300/*.distcp
		damaged|megatron_dcp|rm iter_0000300/__1_0.distcp
		damaged|megatron_dcp|rm iter_0000300/.metadata
		damaged|megatron_dcp|truncate -s 20 iter_0000300/.metadata
		damaged|tensorflow|rm ckpt-300.index
		damaged|tensorflow|truncate -s -1 ckpt-300.index
		damaged|tensorflow|: >ckpt-300.index
		damaged|tensorflow|rm ckpt-300.data-00000-of-00002
		damaged|tensorflow|rm ckpt-300.data-00001-of-00002
		damaged|tensorflow|mv ckpt-300.data-00001-of-00002 ckpt-300.data-00001-of-00003
		damaged|tensorflow|: >ckpt-300.data-00000-of-00002; : >ckpt-300.data-00001-of-00002
		damaged|tensorflow:shards=1|: >ckpt-300.data-00000-of-00001
		unproven|tensorflow|: >ckpt-300.data-00001-of-00002
		damaged|orbax|rm 300/default/manifest.ocdbt
		damaged|orbax|head -c 20 200/_CHECKPOINT_METADATA >300/_CHECKPOINT_METADATA
		damaged|orbax|sed -i 's/nsecs": 2/nsecs": null/' 300/_CHECKPOINT_METADATA
		damaged|orbax|mkdir 300/more.orbax-checkpoint-tmp-5; echo x >300/more.orbax-checkpoint-tmp-5/x
		damaged|orbax|mkdir 300/more.orbax-checkpoint-tmp-5
		damaged|orbax|mkdir -p 300/a/more.orbax-checkpoint-tmp
		damaged|orbax|: >300/default/manifest.ocdbt
		damaged|orbax|: >300/default/d/0123456789abcdef
		damaged|orbax|rm -r 300/default
		damaged|dcp|rm step-300/.metadata
		damaged|dcp|rm step-300/__1_0.distcp
		damaged|dcp|: >step-300/__0_0.distcp
		damaged|dcp|truncate -s -1 step-300/.metadata
		damaged|dcp|printf . >step-300/.metadata
		damaged|dcp|truncate -s -1 step-300/__1_0.distcp
		damaged|dcp|truncate -s 20 step-300/__0_0.distcp
		damaged|dcp:ranks=300,protocol=4|truncate -s -1 step-300/__299_0.distcp
	END
}

@test "Hugging Face: the best one stays, because the Trainer breaks without it; its DeepSpeed files are its own" {
	make hf 100 200
	make hf:best=200 300 400 500
	run -0 ckpt-rotate prune --keep-last 1 ck
	[[ ${lines[2]} == *"kept checkpoint-200: the newest one calls it the best"* ]]
	[ "$(steps)" = "200 500 " ]
	fresh hf:kind=deepspeed 400 500
	run -0 ckpt-rotate list ck
	[[ $output == *"checkpoint-500"* && $output != *global_step* ]]
	# The path of one checkpoint in place of the directory: a message, and nothing is removed.
	for command in "list" "latest" "prune --keep-last 1"; do
		fails 2 "is itself a checkpoint of Hugging Face's" ckpt-rotate $command ck/checkpoint-500
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
	[ "$(steps)" = "100 150 200 300 300 300 " ]
	[ "$(ckpt-rotate latest ck)" = "ck/epoch=2-step=300-v1.ckpt" ]
	# A copy that is newer than all of them is the newest there is, and is never removed.
	make last 70000
	[ "$(ckpt-rotate latest ck)" = "ck/last.ckpt" ]
	[ "$(ckpt-rotate latest ck --step)" = 70000 ]
	make last 300
	[ "$(ckpt-rotate latest ck)" = "ck/epoch=2-step=300-v1.ckpt" ]
	ckpt-rotate prune -q --keep-last 1 ck
	# (All of step 300: last.ckpt is of that step.)
	[ "$(names ck)" = "best-model.ckpt epoch=1-step=300.ckpt epoch=2-step=300-v1.ckpt epoch=2-step=300.ckpt last.ckpt" ]
	fresh lightning 100 200 300
	ln -s epoch=1-step=200.ckpt ck/last.ckpt
	ckpt-rotate prune -q --keep-last 1 ck
	[ "$(steps)" = "200 300 " ]
	# A directory of such a name is none. Nothing but a copy is one.
	rm ck/*
	mkdir ck/epoch=1-step=300.ckpt
	[ "$(steps)" = "" ]
	make last 12
	[ "$(ckpt-rotate latest --layout lightning ck --step)" = 12 ]
	# A copy that is no checkpoint (yet) is not "none", and nothing is removed.
	truncate -s 40 ck/last.ckpt
	run -65 --separate-stderr ckpt-rotate latest --layout lightning ck --or 0
	[ "$output" = "" ]
	make lightning 100 200
	run -65 --separate-stderr ckpt-rotate prune --keep-last 1 ck
	[ "$(steps)" = "100 200 " ]
}

@test "DeepSpeed and Megatron: what the tracker does not name yet is not offered, and stays" {
	make deepspeed 100 200 300 400
	echo global_step200 >ck/latest
	[ "$(ckpt-rotate latest ck --step 2>/dev/null)" = 200 ]
	[[ $(why 300) == *"newer than global_step200, which latest names still"* ]]
	ckpt-rotate prune -q --keep-last 1 ck
	[ "$(names ck)" = "global_step200 global_step300 global_step400 latest" ]
	[ "$(cat ck/latest)" = global_step200 ]
	fresh megatron 100 200 300 400
	echo 300 >ck/latest_checkpointed_iteration.txt
	[ "$(ckpt-rotate latest ck 2>/dev/null)" = ck/iter_0000300 ]
}

# (Which siblings decide: tests/unit/ckpt_shards.c.)
@test "how many ranks: the number in the files decides, else siblings; an unproven one counts for nothing, and stays" {
	# Rank 0 writes latest before the others have saved.
	make deepspeed:data=2 100 200
	make deepspeed:data=4 300
	[ "$(steps)" = "100 200 300 " ]
	rm ck/global_step300/zero_pp_rank_[23]_*
	age
	[ "$(steps) $(steps unproven)" = "100 200  300 " ]
	[[ $(why 300) == *"2 optimizer states are there, but the files say that 4 belong to it"* ]]
	ckpt-rotate prune -q --keep-last 1 ck
	[ "$(names ck)" = "global_step200 global_step300 latest" ]
	# A job that is started again with fewer ranks, and with more; with another form of the optimizer.
	for stage in 2 3; do
		fresh deepspeed:data=4,stage=$stage 100
		make deepspeed:data=2,stage=$stage 200
		make deepspeed:model=2,data=2,stage=$stage 300
		[ "$(steps)" = "100 200 300 " ]
	done
	fresh megatron:pipeline=4 100
	make megatron:optimizer=0,layers=4 300
	make megatron 400
	make megatron:optimizer=0,layers=4 500
	[ "$(steps)" = "100 300 400 500 " ]
	rm ck/iter_0000500/*/layer_wise*
	age
	[ "$(steps unproven)" = "500 " ]
	# Where the files do not say it: what shows that 200 is complete stays, too.
	fresh deepspeed:data=4,silent=1 100 200 300
	rm ck/latest ck/global_step300/zero_pp_rank_[23]_*
	age
	[[ $(why 300) == *"unproven global_step300: global_step"*"00 has more optimizer states than the 2 here"* ]]
	fails 75 "global_step300 is unproven: " ckpt-rotate verify ck
	run -0 ckpt-rotate prune --keep-last 1 ck
	[[ $output == *"kept global_step100: shows of how many ranks the newest one is"* ]]
	[[ $output == *"kept global_step300: not known to be complete"* ]]
	[ "$(steps)" = "100 200 " ]
	# Nothing at all says it: offered only where there is no other, with a code that is neither yes nor no.
	rm -r ck/global_step[12]00
	[[ $(why 300) == *"unproven global_step300: nothing says whether the 2 optimizer states are all that belong to it"* ]]
	fails 75 "global_step300 is offered because no checkpoint is known to be complete" ckpt-rotate latest ck --step --or 0
	[ "$output" = 300 ]
	in=known make hf 7
	[ "$(ckpt-rotate latest ck known 2>/dev/null)" = known/checkpoint-7 ]
	# The one of more ranks, though older.
	make deepspeed:data=4,silent=1 100
	rm ck/latest
	run -75 --separate-stderr ckpt-rotate latest ck --step
	[ "$output" = 100 ]
}

@test "preempt-run --checkpoints: an unproven one is no new complete checkpoint, and that is reported" {
	export PREEMPT_RUN=r FRAMEWORKS=$REPO/tests/support/layouts/frameworks.py SAVE
	cat >job <<-'END'
		echo "$PREEMPT_RESUME" >resumed
		python3 "$FRAMEWORKS" deepspeed:data=4,silent=1 ck "$SAVE"
		rm ck/latest
	END
	mkdir ck
	# --done-if false: it only stopped, so that its checkpoints count.
	go() { preempt-run --checkpoints ck --done-if false -- bash job; }
	SAVE=100 fails 43 "ck/global_step100 may be incomplete: nothing says whether " go
	[[ $stderr == *"; it does not count as a new complete checkpoint"* ]]
	[ "$(cat resumed)" = "" ]
	# It is all there is: rather than from the beginning. With a second one like it both are complete.
	SAVE=200 fails 42 "the tasks resume from it, because no checkpoint is known to be complete" go
	[ "$(cat resumed)" = ck/global_step100 ]
}

@test "TensorFlow: several files are one checkpoint" {
	make tensorflow 8 9 10 11
	: >ck/ckpt-8.meta
	: >ck/events.out.tfevents.1
	: >ck/ckpt-9.data-00000-of-00002.tempstate123
	age
	[ "$(steps)" = "8 9 10 11 " ]
	[ "$(ckpt-rotate latest ck)" = ck/ckpt-11 ]
	ckpt-rotate prune -q --keep-last 2 --settled 0s ck
	[ "$(names ck)" = "checkpoint ckpt-10.data-00000-of-00002 ckpt-10.data-00001-of-00002 ckpt-10.index ckpt-11.data-00000-of-00002 ckpt-11.data-00001-of-00002 ckpt-11.index ckpt-9.data-00000-of-00002.tempstate123 events.out.tfevents.1" ]
	# A path of another machine names the same.
	printf 'model_checkpoint_path: "/scratch/x/ckpt-10"\n' >ck/checkpoint
	[ "$(ckpt-rotate latest ck --step 2>/dev/null)" = 10 ]
	# One of several files may be empty, where no sibling has fewer of them. A directory of such a name is none.
	fresh tensorflow 100 200 300
	for step in 100 200 300; do : >ck/ckpt-$step.data-00001-of-00002; done
	age
	[ "$(steps)" = "100 200 300 " ]
	mkdir ck/ckpt-400.index
	[ "$(steps foreign)" = "400 " ]
	rm ck/ckpt-[123]*
	fails 1 "ckpt-400 is foreign and was skipped: it is a directory" ckpt-rotate latest ck --layout tensorflow
}

@test "Orbax and torch.distributed.checkpoint: what only looks like one" {
	make orbax 100 200
	mkdir ck/200.orbax-checkpoint-tmp-17 ck/7
	echo mine >ck/7/mine
	[ "$(steps) $(steps foreign)" = "100 200  7 " ]
	ckpt-rotate prune -q --keep-last 1 ck
	[ "$(names ck)" = "200 200.orbax-checkpoint-tmp-17 7" ]
	# Where renaming is no promise, the last file is.
	make orbax 500
	sed -i 's/nsecs": 2/nsecs": null/' ck/500/_CHECKPOINT_METADATA
	echo "done" >ck/500/commit_success.txt
	age
	[ "$(ckpt-rotate latest ck --step)" = 500 ]
	# Where others write files of PyTorch's they are these others'. Inside one there is none.
	fresh megatron_dist 100 200
	[ "$(ckpt-rotate latest ck)" = ck/iter_0000200 ]
	fresh dcp:word=optimizer_ 0
	run -1 ckpt-rotate latest --layout dcp ck
	fresh dcp 100 200
	cp ck/step-100/.metadata ck
	fails 2 "is itself a checkpoint of PyTorch's (it holds .metadata)" ckpt-rotate prune --keep-last 1 ck
	[ "$(ls ck | wc -l)" = 2 ]
}

@test "a pattern: what matches it exactly, and nothing else" {
	make fsdp 8 9 10
	for name in model-8.pt.bak model-.pt xmodel-7.pt .model-7.pt model-7.pt$'\n'; do cp ck/model-8.pt "ck/$name"; done
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
}

@test "what changed a moment ago is not touched, and does not count" {
	make hf 100 200 300 400
	# 400 is new: complete, but perhaps more is to come; until then 300 counts as the newest.
	touch ck/checkpoint-400/trainer_state.json
	run -0 ckpt-rotate prune --keep-last 1 ck
	[[ $output == *"kept checkpoint-400: perhaps still being written: changed "* ]]
	[ "$(steps)" = "300 400 " ]
	# Incomplete and young: being written; incomplete and old: left over.
	make hf 350
	rm ck/checkpoint-350/trainer_state.json
	[[ $(why 350) == *"incomplete"*"trainer_state.json is missing; changed "* ]]
	touch -d '1 hour ago' ck/checkpoint-400/trainer_state.json
	ckpt-rotate prune -q --keep-last 1 ck
	[ -d ck/checkpoint-350 ]
	# A file that was renamed into its place shows in the directory's time only.
	: >ck/checkpoint-350/x.tmp
	touch -d '1 hour ago' ck/checkpoint-350{,/x.tmp}
	mv ck/checkpoint-350/x.tmp ck/checkpoint-350/x
	ckpt-rotate prune -q --keep-last 1 ck
	[ -d ck/checkpoint-350 ]
	age
	ckpt-rotate prune -q --keep-last 1 ck
	[ "$(ls ck)" = checkpoint-400 ]
	# The newest that is not complete is never removed.
	make hf 500
	rm ck/checkpoint-500/model.safetensors
	age
	ckpt-rotate prune -q --keep-last 1 --settled 0s ck
	[ -d ck/checkpoint-500 ]
	# Where a tracker says that a young one is finished, it counts, but is not touched either.
	fresh deepspeed 100 200 300 400
	touch ck/global_step[34]00/*
	run -0 ckpt-rotate prune --keep-last 1 ck
	[[ $output == *"removed global_step200"*"kept global_step300: perhaps still being written"* ]]
	[ "$(steps)" = "300 400 " ]
	# A tracker does not show that none of them still writes.
	fresh deepspeed:data=2 100
	make deepspeed:data=2,silent=1 200
	find ck/global_step200 -exec touch {} +
	ckpt-rotate prune -q --keep-last 1 ck
	[ "$(names ck)" = "global_step100 global_step200 latest" ]
}

@test "CK-7 trackers: empty, garbage, of nothing, a directory, a link, out of the directory" {
	# Nothing is removed. What is complete by itself is still found, with a warning.
	while IFS='|' read -r kind file content; do
		[ -e "ck/$file" ] || fresh "$kind" 100 200 300
		printf '%b' "$content" >"ck/$file"
		fails 65 "$file: cannot parse the tracker file" ckpt-rotate prune --keep-last 1 ck
		[ "$(ls -d ck/*[0-9]00* | wc -l)" -ge 3 ]
		fails 0 "$file: cannot parse the tracker file" ckpt-rotate latest ck --step
		[ "$output" = 300 ]
	done <<-'END'
		deepspeed|latest|
		deepspeed|latest|global_step300x
		deepspeed|latest|global_step300\0
		deepspeed|latest|global_step1\nglobal_step2\n
		deepspeed|latest|../global_step300
		megatron|latest_checkpointed_iteration.txt|
		megatron|latest_checkpointed_iteration.txt|300 400
		tensorflow|checkpoint|
		tensorflow|checkpoint|model_checkpoint_path: ckpt-300
		tensorflow|checkpoint|model_checkpoint_path: "ckpt-300
		tensorflow|checkpoint|model_checkpoint_path: "x/"
	END
	fresh deepspeed 100 200 300
	for instead in "mkdir ck/latest" "ln -sfT global_step300 ck/latest"; do
		rm -rf ck/latest
		$instead
		run -65 --separate-stderr ckpt-rotate prune --keep-last 1 ck
	done
	# What it names is not there: still, nothing newer is touched.
	rm ck/latest
	echo global_step150 >ck/latest
	fails 0 "latest names global_step150, which is not there" ckpt-rotate latest ck --step
	[ "$output" = 100 ]
	ckpt-rotate prune -q --keep-last 1 ck
	[ "$(ls ck | wc -l)" = 4 ]
	# No tracker: by themselves.
	rm ck/latest
	[ "$(ckpt-rotate latest ck --step)" = 300 ]
}

@test "prune: what a link in DIR leads to, or into, stays, and no link is left dangling" {
	for link in step-00000100 ../ck/step-00000100 "$PWD/ck/step-00000100" step-00000100/sub/state; do
		rm -rf ck
		saves 100 200 300
		ln -s "$link" ck/best
		ln -s best ck/second
		# These lead to nothing of DIR's.
		for nothing in . .. / nowhere; do ln -s $nothing "ck/to${nothing//\//top}"; done
		ln -s loop ck/loop
		run -0 --separate-stderr ckpt-rotate prune --keep-last 1 ck
		[[ $output == *"kept: a symbolic link leads to it"* ]]
		[ "$(steps)" = "100 300 " ]
		[ -e ck/best ]
		rm ck/best
		ckpt-rotate prune -q --keep-last 1 ck
		[ "$(steps)" = "300 " ]
	done
	while IFS='|' read -r kind link pattern; do
		fresh "$kind" 100 200 300
		ln -s "$link" ck/best
		ckpt-rotate prune -q --keep-last 1 ${pattern:+"--pattern=$pattern"} ck
		[ -e ck/best ] || { echo "$kind"; return 1; }
		[ "$(steps complete ${pattern:+"--pattern=$pattern"})" = "100 300 " ]
	done <<-'END'
		hf|checkpoint-100
		lightning|epoch=1-step=100.ckpt
		deepspeed|global_step100/mp_rank_00_model_states.pt
		megatron|iter_0000100
		tensorflow|ckpt-100.index
		orbax|100
		dcp|step-100
		fsdp|model-100.pt|model-{step}.pt
	END
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
	mkfifo ck/checkpoint-60
	mkdir ck/checkpoint-70 ck/checkpoint-0x50 ck/checkpoint-80$'\n' ck/checkpoint-
	echo mine | tee ck/checkpoint-50 >ck/checkpoint-70/notes
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
	[ "$(steps)" = "100 200 " ]
	[ "$(steps complete --pattern '*-step={step}.ckpt')" = "100 200 " ]
	ckpt-rotate prune -q --keep-last 1 ck
	[ "$(ls -q ck | wc -l)" = 7 ]
	# In a name that is printed for other reasons it is escaped.
	fresh hf 100
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
		run -2 --separate-stderr ckpt-rotate $command ck
		[[ $stderr == *"two layouts, hf (checkpoint-"*") and megatron (iter_0000"*"--layout"* ]]
	done
	ckpt-rotate prune -q --layout megatron --keep-last 1 ck
	[ "$(names ck)" = "checkpoint-100 checkpoint-200 iter_0000200 latest_checkpointed_iteration.txt" ]
	rm -r ck/iter*
	save 5
	fails 2 "native (step-00000005)" ckpt-rotate latest ck
	[[ $stderr == *"hf (checkpoint-"* ]]
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
	[ "$(steps)" = "100 200 300 400 500 600 " ]
	best eval_loss
	[ "$(steps)" = "200 400 600 " ]
	fresh lightning 1 2 3 4 5
	mv ck/epoch=1-step=1.ckpt ck/epoch=1-step=1-val_loss=0.30.ckpt
	mv ck/epoch=1-step=2.ckpt ck/epoch=1-val_loss=1e-05-step=2-v1.ckpt
	mv ck/epoch=1-step=3.ckpt ck/val_loss=-0.50-step=3-lr=2.ckpt
	mv ck/epoch=1-step=4.ckpt ck/epoch=1-step=4-val_loss=4x.ckpt
	age
	[[ $(why 3) == *"val_loss=-0.5 lr=2"* ]]
	best val_loss
	[ "$(steps)" = "2 3 5 " ]
	rm -r ck
	for loss in 4:100 1:200 2:300 3:400; do make "orbax:loss=${loss%:*}" "${loss#*:}"; done
	best loss
	[ "$(steps)" = "200 300 400 " ]
}

@test "several directories at once" {
	in=a make hf 100 200 300
	in=b make deepspeed 100 200
	in=c save 250
	mkdir empty
	[ "$(ckpt-rotate latest a b c empty)" = a/checkpoint-300 ]
	rm a/checkpoint-300/trainer_state.json
	touch -d '1 hour ago' a/checkpoint-300
	[ "$(ckpt-rotate latest a b c empty missing 2>/dev/null)" = c/step-00000250 ]
	run -75 --separate-stderr ckpt-rotate latest a b c missing/deep
	[ "$output" = "" ]
	run -1 --separate-stderr ckpt-rotate latest empty missing
	run -0 ckpt-rotate list b c
	[ "${lines[0]}" = b: ]
	[[ $output == *$'\nc:\n'*"250"* ]]
	ckpt-rotate list --json a b c | json '[d["step"] for d in c] == [100, 200, 300, 100, 200, 250]'
	ckpt-rotate prune --json --keep-last 1 a b c | json True
	[ "$(ls -d a/* b/g* | wc -l)" = 3 ]
	# One that fails does not keep the others from being verified.
	run -65 --separate-stderr ckpt-rotate verify a b c --all
}

@test "preempt-run --checkpoints DIR:LAYOUT resumes from it; a misspelt layout is refused, a colon in a name is not" {
	export PREEMPT_RUN=r
	echo 'echo "$PREEMPT_RESUME" >resumed' >job
	# resumes DIR FROM
	resumes() { preempt-run --checkpoints "$1" -- sh job && [ "$(cat resumed)" = "$2" ]; }
	make hf 100 200
	echo x >ck/checkpoint-200/trainer_state.json
	age
	for dir in ck ck:hf ck:auto; do resumes $dir ck/checkpoint-100; done
	resumes ck:lightning ""
	for word in hff HF magatron lighting pytorch; do
		fails 2 "--checkpoints: ck:$word: there is no layout \"$word\"" preempt-run --checkpoints "ck:$word" -- touch started
		[[ $stderr == *"with a slash at the end: ck:$word/"* ]]
	done
	[ ! -e started ]
	fails 2 'did you mean "hf"?' preempt-run --checkpoints ck:hff -- touch started
	fails 2 'did you mean "deepspeed"?' ckpt-rotate list --layout deepsped ck
	fails 2 "--pattern" ckpt-rotate list --layout keras ck
	[[ $stderr != *"did you mean"* ]]
	# A directory of that name is there, or it is written with a slash at the end.
	mkdir ck:hff
	mv ck/checkpoint-100 ck:hff
	resumes ck:hff ck:hff/checkpoint-100
	resumes ck:hff:hf ck:hff/checkpoint-100
	resumes ck:4/ ""
}

@test "files that PyTorch itself wrote" {
	python3 -c 'import torch' 2>/dev/null || skip "needs python3-torch"
	export FRAMEWORKS_TORCH=1
	while IFS='|' read -r kind file; do
		fresh "$kind" 100 200 300
		[ "$(steps)" = "100 200 300 " ]
		truncate -s -1 ck/$file
		age
		[ "$(steps)" = "100 200 " ]
	done <<-'END'
		lightning|epoch=1-step=300.ckpt
		hf:kind=bin|checkpoint-300/pytorch_model.bin
		deepspeed|global_step300/zero_pp_rank_1_*
		megatron:tensor=1,pipeline=1|iter_0000300/mp_rank_00/*optim.pt
	END
	rm -r ck
	make last 70000
	[ "$(ckpt-rotate latest ck --step --layout lightning 2>/dev/null)" = 70000 ]
	fresh fsdp 1 2 3
	# The format of old versions tells nothing of its length.
	python3 -c 'import torch; torch.save({}, "ck/model-4.pt", _use_new_zipfile_serialization=False)'
	[ "$(steps complete --pattern 'model-{step}.pt')" = "1 2 3 4 " ]
}
