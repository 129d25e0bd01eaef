#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# ckpt-rotate reads and prunes what training frameworks wrote, and touches nothing else. (That no part of a save is a
# save, for any part: ckpt-rotate-whole.bats.)
# takes: 60
# shellcheck disable=SC2012,SC2016,SC2030,SC2031,SC2034,SC2086,SC2154
bats_require_minimum_version 1.5.0
load ../support/ckpt

# left: the steps of which something is there, but for a word of the framework's beside it.
left() {
	local step
	for step in 100 200 300 400 500; do
		! ls ck | grep -vE '(unfinished|incomplete|ok|lock)$' | grep -qE "(^|[^1-9])$step([^0-9]|$)" || printf '%s ' "$step"
	done
}

# breaks [STEP...]: of rows STATE|FORM|CHANGE|OPTIONS. Of three saves the change breaks one, $n: the newest, then the
# one before it. It has this state, and no other has; the newest other one is offered, and why; prune removes an
# incomplete or damaged one if a newer one is complete, and no doubtful or unknown one.
breaks() {
	local row=0 state form change words n
	local -A codes=([incomplete]=1 [damaged]=65 [doubtful]=75 ["unknown form"]=1)
	while IFS='|' read -r state form change words; do
		row=$((row + 1))
		read -ra options <<<"$words"
		for n in ${@:-300 200}; do
			in=ck fresh "$form" 100 200 300
			(cd ck && eval "$change") && age && broken || { echo "row $row: $state|$form|$change, of $n"; return 1; }
		done
	done
	[ "$row" -gt 0 ]
}

broken() {
	local -A all=([100]=complete [200]=complete [300]=complete [$n]=$state)
	local stays="200 300 "
	found=$(steps_and_states "${options[@]}")
	[ "$found" = "100 complete 200 ${all[200]} 300 ${all[300]} " ] || { echo "$found"; why $n; return 1; }
	run "-${codes[$state]}" --separate-stderr ckpt-rotate verify ck $n "${options[@]}" || return
	run -0 --separate-stderr ckpt-rotate latest ck --step "${options[@]}" || return
	[ "$output" = $((n == 300 ? 200 : 300)) ] || return
	[ $n = 200 ] || [[ $stderr == *" is ${state/unknown/of an unknown} and was skipped: "* ]] || { echo "$stderr"; return 1; }
	ckpt-rotate prune -q --keep-last 1 ck "${options[@]}" || return
	[ $n = 300 ] || [[ $state == doubtful || $state == unknown* ]] || stays="300 "
	[ "$(left)" = "$stays" ] || { left; return 1; }
}

steps_and_states() {
	ckpt-rotate list --json ck "$@" 2>/dev/null |
		sed -n 's/.*"step": \([0-9]*\),.*"state": "\([a-z ]*\)".*/\1 \2/p' | tr '\n' ' '
}

@test "each layout's: listed, offered, verified, pinned, marked and pruned" {
	while IFS='|' read -r form words; do
		read -ra options <<<"$words"
		fresh "$form" 100 200 300 400 500
		echo mine | tee ck/notes >ck/events.out.tfevents.1
		others=$(ls ck | grep -v '[1-5]00')
		r() { ckpt-rotate "$1" ck "${@:2}" "${options[@]}"; }
		[ "$(steps complete "${options[@]}")" = "100 200 300 400 500 " ] || { echo "$form"; return 1; }
		[[ $(r latest) == ck/*500* ]]
		run -0 r verify
		[[ $output == *500*" complete: "*"no checksums"* ]]
		# A mark counts until a file is newer.
		r mark 400 bad --reason "the loss is NaN"
		r mark 500 bad
		r pin 100
		[ "$(r latest --step 2>/dev/null)" = 300 ]
		[[ $(r list) == *"loss is NaN"* || $(r list) == *marked* ]]
		r mark 500 good
		[ "$(r latest --step)" = 500 ]
		run -0 r prune --keep-last 2
		[ "$(left)" = "100 300 500 " ] || { echo "$form: $output"; return 1; }
		[[ $output == *pinned* ]]
		[ ! -e ck/.ckpt-bad-400 ] && [ -e ck/.ckpt-pin-100 ]
		r mark 300 bad
		touch -d '+2 seconds' ck/*300*
		[ "$(steps complete "${options[@]}")" = "100 300 500 " ]
		r unpin 100
		r prune -q --keep-last 1
		[ "$(left)" = "300 500 " ] || { left; return 1; } # (300 seems to be written)
		[ "$(ls ck | grep -v '[1-5]00')" = "$others" ]
	done <<-'END'
		hf
		hf:kind=sharded
		hf:kind=fsdp_sharded,ranks=2
		hf:kind=deepspeed
		accelerate
		diffusers
		lightning
		lightning:kind=fsdp
		nemo
		nemo:kind=two
		verl
		deepspeed
		deepspeed:stage=3,data=4
		megatron
		megatron_dist
		tensorflow:name=cp-{}.ckpt
		keras
		keras:name=ep.{}.keras
		orbax:kind=commit
		composer:kind=ranks
		dcp
		dcp:word=
		fsdp|--pattern model-{step}.pt
		neuronx|--pattern step_{step} --done done
	END
}

@test "K1 all files of a step are one checkpoint, and go together" {
	while IFS='|' read -r make words; do
		read -ra options <<<"$words"
		rm -rf ck
		mkdir ck
		for n in 100 200 300; do (cd ck && eval "$make"); done
		age
		[ "$(steps complete "${options[@]}")" = "100 200 300 " ] || { echo "$make"; ckpt-rotate list ck "${options[@]}"; return 1; }
		before=$(ls ck | grep -cE '[23]00')
		[ "$before" -gt 2 ]
		ckpt-rotate prune -q --keep-last 2 ck "${options[@]}"
		[ "$(left) $(ls ck | grep -cE '[23]00')" = "200 300  $before" ] || { echo "$make"; ls ck; return 1; }
		[[ $(ckpt-rotate latest ck "${options[@]}") == ck/*300* ]]
	done <<-'END'
		in=. make composer:kind=ranks,ranks=4 $n; rm latest*
		in=. make composer:kind=ranks,ranks=3 $n; rm latest*|--pattern ep*-ba{step}-rank*.pt
		in=. make nemo:kind=ema $n
		in=. make tensorflow:graph=1 $n
		in=. make tensorflow:name=cp-{}.ckpt,shards=3 $n
		in=. make lightning $n; in=. make lightning:epoch=2 $n; cp epoch=1-step=$n.ckpt epoch=1-step=$n-v1.ckpt
		in=. make keras $n; cp weights.0$n-0.23.hdf5 weights.0$n-0.22.hdf5
		in=. make fairseq:ranks=2 $n; rm *last*|--pattern checkpoint_*_{step}-shard*.pt
		in=. make fsdp $n; mv model-$n.pt training_state_epoch_$n.th; cp *_$n.th model_state_epoch_$n.th|--pattern *_state_epoch_{step}.th
		mkdir model-$n optimizer-$n; in=. make fsdp $n; cp model-$n.pt model-$n; mv model-$n.pt optimizer-$n|--pattern *-{step}
	END
	# A part that is broken breaks the whole, whose other parts stay with it.
	breaks <<-'END'
		damaged|composer:kind=ranks|truncate -s -1 ep0-ba$n-rank1.pt
		incomplete|composer:kind=ranks|rm ep0-ba$n-rank0.pt
		doubtful|composer:kind=ranks|rm ep0-ba$n-rank1.pt
		damaged|nemo:kind=ema|truncate -s -1 *step=$n-*-EMA.ckpt
		incomplete|nemo:kind=ema|rm *step=$n-*0.ckpt
		doubtful|nemo:kind=ema|rm *step=$n-*-EMA.ckpt
		doubtful|fairseq:ranks=2|rm *_$n-shard1.pt|--pattern checkpoint_*_{step}-shard*.pt
		damaged|fairseq:ranks=2|truncate -s -1 *_$n-shard1.pt|--pattern checkpoint_*_{step}-shard*.pt
	END
	# Of several saves of one step, one has to be whole.
	fresh lightning 100 200
	truncate -s -1 ck/epoch=1-step=200.ckpt
	make lightning:epoch=2 200
	age
	[ "$(ckpt-rotate latest ck)" = ck/epoch=2-step=200.ckpt ]
}

@test "K2 the framework's own word is heard" {
	breaks <<-'END'
		incomplete|nemo|g=(*step=$n-*); : >"${g%.ckpt}-unfinished"
		incomplete|nemo:kind=ema|g=(*step=$n-*0.ckpt); : >"${g%.ckpt}-unfinished"
		incomplete|nemo:kind=dist|g=(*step=$n-*); : >"$g-unfinished"
		incomplete|nemo:kind=two|g=(*step=$n-*); : >"$g-unfinished"
		incomplete|nemo:kind=two|rm *step=$n-*/weights/metadata.json
		incomplete|hf|: >checkpoint-$n/model.safetensors.incomplete
		incomplete|hf|: >checkpoint-$n.incomplete
		incomplete|accelerate|: >checkpoint_$n-unfinished
		incomplete|keras|g=(*$n*); : >$g.incomplete
		incomplete|dcp|: >step-$n/.metadata.tmp
		incomplete|lightning:kind=fsdp|rm *step=$n.ckpt/meta.pt
		incomplete|lightning:kind=fsdp|rm *step=$n.ckpt/.metadata
		incomplete|lightning:kind=deepspeed|rm *step=$n.ckpt/latest
		incomplete|hf:kind=deepspeed|rm checkpoint-$n/latest
		incomplete|accelerate:kind=deepspeed|rm checkpoint_$n/latest
		doubtful|orbax:kind=commit|rm $n/commit_success.txt $n/default/commit_success.txt
		doubtful|orbax:kind=commit|rm $n/default/commit_success.txt
		incomplete|orbax|sed -i 's/nsecs": 2/nsecs": null/' $n/_CHECKPOINT_METADATA
		incomplete|orbax|mkdir $n/more.orbax-checkpoint-tmp-5
		incomplete|orbax:name=ckpt_{}|mv ckpt_$n/default{,.orbax-checkpoint-tmp-17}|--pattern ckpt_{step}
		incomplete|verl|rm global_step_$n/data.pt
		incomplete|megatron_dist|rm iter_0000$n/metadata.json
		incomplete|neuronx|rm step_$n/done|--pattern step_{step} --done done
		incomplete|litgpt|rm step-*$n/model_config.yaml|--pattern step-{step} --done model_config.yaml
		incomplete|olmo:kind=unsharded|mkdir step$n-unsharded/.tmp|--pattern step{step}-unsharded --undone .tmp
		incomplete|fsdp|touch model-100.ok model-$((500-n)).ok|--pattern model-{step}.pt --done model-{step}.ok
		incomplete|fsdp|touch model-$n.pt.lock|--pattern model-{step}.pt --undone model-{step}.pt.lock
	END
	fails 2 "go with --pattern" ckpt-rotate list --done done ck
}

@test "K3 what every sibling has and this one has not: doubtful" {
	breaks <<-'END'
		doubtful|hf|rm checkpoint-$n/training_args.bin
		doubtful|hf|rm checkpoint-$n/scheduler.pt
		doubtful|hf:ranks=3|rm checkpoint-$n/rng_state_2.pth
		doubtful|hf|rm checkpoint-$n/{optimizer.pt,scheduler.pt,rng_state.pth}
		doubtful|accelerate|rm checkpoint_$n/custom_checkpoint_0.pkl
		doubtful|accelerate|rm checkpoint_$n/random_states_1.pkl
		doubtful|diffusers|rm -r checkpoint-$n/unet_ema
		doubtful|verl|rm -r global_step_$n/critic
		doubtful|verl|rm global_step_$n/*/optim_*
		doubtful|megatron:layers=2|rm iter_0000$n/*/layer_wise_optimizer_1.pt
		doubtful|deepspeed:layers=3|rm global_step$n/layer_02*
		doubtful|deepspeed:data=4,silent=1|rm global_step$n/zero_pp_rank_[23]_*
		doubtful|deepspeed|rm global_step$n/zero_pp_rank_1_*|--pattern global_step{step}
		doubtful|neuronx|rm step_$n/optim/dp_rank_01*|--pattern step_{step} --done done
		doubtful|olmo:kind=local|rm step$n/model/rank1.pt|--pattern step{step} --done config.yaml
		doubtful|orbax|rm $n/default/d/0123456789abcdef
		doubtful|orbax:loss=1|rm -r $n/metrics
		doubtful|tensorflow:graph=1|rm ckpt-$n.meta
		doubtful|nemo:kind=two|rm *step=$n-*/context/model.yaml
	END
	while IFS='|' read -r form change words; do
		read -ra options <<<"$words"
		r() { ckpt-rotate "$1" ck "${@:2}" "${options[@]}"; }
		again() {
			fresh "$form" 100 200 300
			for n in ${1-300}; do (cd ck && eval "$change"); done
			age
		}
		# The user says that it is complete; until a file is newer.
		again
		[ "$(steps doubtful "${options[@]}")" = "300 " ] || { echo "$form"; return 1; }
		fails 75 "300" ckpt-rotate verify ck "${options[@]}" 300
		r mark 300 good
		[ "$(r latest --step)" = 300 ]
		touch -d '+2 seconds' ck/*300*
		[ "$(r latest --step 2>/dev/null)" = 200 ]
		# The run's store says that it was saved.
		preempt-store put saved/r '{"step":300,"attempt":1}'
		[ "$(PREEMPT_RUN=r r latest --step)" = 300 ]
		[ "$(PREEMPT_RUN=other r latest --step 2>/dev/null)" = 200 ]
		# A second save of the same names: a smaller world.
		again "200 300"
		[ "$(steps complete "${options[@]}")" = "100 200 300 " ] || { echo "$form"; return 1; }
		# There is no older one that is complete: it is nothing but complete.
		rm -r ck/*[12]00*
		[ "$(r latest --step 2>/dev/null)" = 300 ]
	done <<-'END'
		hf|rm checkpoint-$n/scheduler.pt
		composer:kind=ranks,ranks=3|rm ep0-ba$n-rank2.pt
		deepspeed:layers=3|rm global_step$n/layer_02*
		verl|rm -r global_step_$n/critic
		neuronx|rm step_$n/optim/dp_rank_01*|--pattern step_{step} --done done
	END
	# Sizes: from 1 MiB on, less than half of it. Small files may shrink, and all may grow.
	while read -r state older newer; do
		rm -rf ck/*
		mkdir ck/a-{1,2}
		truncate -s "$older" ck/a-1/x
		truncate -s "$newer" ck/a-2/x
		for n in 1 2; do printf x >>ck/a-$n/x; done
		[ "$(steps "$state" --pattern 'a-{step}')" = "$([ $state = doubtful ] || printf '1 ')2 " ] || { echo "$state $older"; return 1; }
	done <<-'END'
		doubtful 3M 1M
		doubtful 1M 400K
		complete 900K 100K
		complete 3M 2M
		complete 1M 9M
	END
	# With no older complete one, it is offered, and the warning says why.
	fresh deepspeed:data=2,silent=1 100 200
	rm ck/global_step200/zero_pp_rank_1* ck/global_step100/mp_rank*
	[ "$(ckpt-rotate latest ck --step 2>/dev/null)" = 200 ]
}

@test "K4 impossible content is damage" {
	zeros() { for file; do truncate -s "$(stat -c %s "$file")" zero && mv zero "$file"; done; }
	pointer() { for file; do printf 'version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 4404\n' >"$file"; done; }
	page() { for file; do printf '\n<!DOCTYPE html>\n<html><head><title>504</title></head></html>' >"$file"; done; }
	cut() { truncate -s -1 "$@"; }
	half() { for file; do truncate -s $(($(stat -c %s "$file") / 2)) "$file"; done; }
	while IFS='|' read -r form file words; do
		for how in zeros pointer page cut half; do echo "damaged|$form|$how $file|$words"; done
	done >rows <<-'END'
		hf|checkpoint-$n/optimizer.pt
		hf|checkpoint-$n/model.safetensors
		hf|checkpoint-$n/rng_state.pth
		hf:kind=bin|checkpoint-$n/pytorch_model.bin
		hf:kind=sharded|checkpoint-$n/model-00002-of-00003.safetensors
		accelerate|checkpoint_$n/random_states_0.pkl
		lightning|*step=$n.ckpt
		deepspeed|global_step$n/zero_pp_rank_1*
		deepspeed:old=1|global_step$n/mp_rank*
		megatron|iter_0000$n/*/distrib_optim.pt
		dcp|step-$n/__1_0.distcp
		dcp|step-$n/.metadata
		tensorflow|ckpt-$n.index
		tensorflow|ckpt-$n.data-00001-of-00002
		keras|*$n*.hdf5
		keras:name=ep.{}.keras|ep*$n.keras
		keras:name={}.weights.h5|*$n.weights.h5
		orbax|$n/default/manifest.ocdbt
		fsdp|model-$n.pt|--pattern model-{step}.pt
		fsdp|model-$n.tar|--pattern model-{step}.tar
		fsdp|model-$n.npz|--pattern model-{step}.npz
	END
	sed -i 's/^\(damaged|fsdp|\)\(.*model-$n\.\(tar\|npz\)\)/\1for f in 1 2 3; do mv model-${f}00.{pt,\3}; done; \2/' rows
	breaks 300 <rows
	breaks <<-'END'
		damaged|hf|: >checkpoint-$n/rng_state.pth
		damaged|hf|head -c 40 checkpoint-100/trainer_state.json >checkpoint-$n/trainer_state.json
		incomplete|hf|cp checkpoint-100/trainer_state.json checkpoint-$n/
		damaged|hf:kind=sharded|half checkpoint-$n/model.safetensors.index.json
		incomplete|hf:kind=sharded|sed -i s/model-00002-of-00003/other/ checkpoint-$n/model.safetensors.index.json
		damaged|keras|head -c 5000 /dev/urandom >>$(echo *$n*)
		damaged|fsdp|head -c 5000 /dev/urandom >model-$n.pt|--pattern model-{step}.pt
	END
	# A word that is no prefix of a signature says nothing, nor do pages under a page's name.
	fresh hf 100 200
	echo ok >ck/checkpoint-200/more.pt
	cp ck/checkpoint-200/more.pt ck/checkpoint-100
	for step in 100 200; do page ck/checkpoint-$step/model_card.html ck/checkpoint-$step/README.md; done
	age
	[ "$(steps)" = "100 200 " ]
}

@test "K5 what a link names stays, in every layout" {
	named() { ls ck | grep -E "(^|[^1-9])$1([^0-9]|$)"; }
	while IFS='|' read -r form words; do
		read -ra options <<<"$words"
		rm -rf ck
		if [ "$form" = native ]; then saves 100 200 300 400 500; else make "$form" 100 200 300 400 500; fi
		ln -sfT "$(named 100 | tail -n1)" ck/latest-rank1.pt
		ln -s "$PWD/ck/./$(cd ck && find "$(named 200 | tail -n1)" -type f | tail -n1)" ck/into
		ln -s into ck/second
		(cd ck/*500* 2>/dev/null && ln -s "../$(cd ../.. && named 300 | tail -n1)" teacher) || ln -s "$(named 300 | tail -n1)" ck/teacher
		# These lead to nothing of DIR's.
		for nothing in . .. / nowhere loop; do ln -s $nothing "ck/to-$(echo "$nothing" | tr ./ dr)"; done
		ln -s loop ck/loop
		age
		run -0 ckpt-rotate prune --keep-last 1 ck "${options[@]}"
		[[ $output == *"a link, leads to it"* ]]
		[ "$(left)" = "100 200 300 500 " ] || { echo "$form"; left; return 1; }
		[ "$(named 100 | wc -l)" = "$(named 500 | wc -l)" ]
		rm -f ck/{into,second,teacher,latest-rank*.pt} ck/*500*/teacher
		age
		ckpt-rotate prune -q --keep-last 1 ck "${options[@]}"
		[ "$(left)" = "500 " ] || { echo "$form: $(left)"; return 1; }
	done <<-'END'
		native
		hf
		accelerate
		lightning
		lightning:kind=fsdp
		nemo:kind=ema
		nemo:kind=two
		verl
		deepspeed
		megatron
		tensorflow
		keras
		orbax
		composer:kind=ranks
		dcp
		fsdp|--pattern model-{step}.pt
		neuronx|--pattern step_{step} --done done
	END
	# An entry that is a link is read as what it leads to, and stays, and so does that; what is away is never touched.
	fresh hf 100 200 300
	mkdir away
	mv ck/checkpoint-100 away
	ln -s ../away/checkpoint-100 ck/checkpoint-100
	ln -s checkpoint-200 ck/checkpoint-150
	age
	[ "$(steps)" = "100 150 200 300 " ]
	ckpt-rotate prune -q --keep-last 1 --settled 0s ck
	[ "$(names ck)" = "checkpoint-100 checkpoint-150 checkpoint-200 checkpoint-300" ]
	[ -e away/checkpoint-100/trainer_state.json ]
}

@test "symbolic links inside are read as files, a dangling one is a missing file" {
	while IFS='|' read -r form file; do
		fresh "$form" 100 200
		rm -rf blobs
		mkdir blobs
		mv ck/$file blobs/content
		ln -s "$PWD/blobs/content" ck/$file
		age
		[ "$(steps)" = "100 200 " ] || { echo "$form"; why 200; return 1; }
		truncate -s -1 blobs/content
		[ "$(steps damaged)" = "200 " ]
		rm blobs/content
		[ "$(steps)" = "100 " ]
		ckpt-rotate prune -q --keep-last 1 ck
		[ "$(steps)" = "100 " ]
	done <<-'END'
		hf|checkpoint-200/model.safetensors
		accelerate|checkpoint_200/optimizer.bin
		deepspeed|global_step200/zero_pp_rank_1_mp_rank_00_optim_states.pt
		dcp|step-200/.metadata
		orbax|200/default/manifest.ocdbt
	END
}

@test "K6 what looks like checkpoints and no layout reads is 75, with names and the options" {
	while IFS='|' read -r make pattern; do
		rm -rf ck
		mkdir ck
		for n in 100 200 300 400; do (cd ck && eval "$make"); done
		age
		for command in list latest "latest --step --or 0" "latest --verify"; do
			fails 75 "no layout reads " ckpt-rotate $command ck || { echo "$make: $command: $stderr"; return 1; }
			[[ $stderr == *100*,*200*,*300*" ..."*--pattern*--layout* || $stderr == *,*,*" ..."*--pattern*--layout* ]]
			[ "$output" = "" ]
		done
		fails 75 "no layout reads " preempt-run --run "r$((++run))" --checkpoints ck -- touch started
		[ ! -e started ]
		[ -z "$pattern" ] || [ "$(ckpt-rotate latest --step ck $pattern)" = 400 ]
		[ -z "$pattern" ] || [ "$(ckpt-rotate latest --step --or 0 ck --layout hf 2>/dev/null)" = "" ]
	done <<-'END'
		in=. make olmo:kind=local $n; rm latest|--pattern step{step} --done config.yaml
		in=. make neuronx $n|--pattern step_{step} --done done
		in=. make litgpt $n|--pattern step-{step} --done model_config.yaml
		head -c 2M /dev/urandom >model_$n.th|--pattern model_{step}.th
		head -c 2M /dev/urandom >params-$n.raw; echo >params-latest.raw|--pattern params-{step}.raw
		mkdir run-$n; echo x >run-$n/weights|
	END
	# Other entries are told, and --or holds.
	while IFS='|' read -r make told; do
		rm -rf ck
		mkdir ck
		(cd ck && eval "$make")
		run -0 --separate-stderr ckpt-rotate latest --step --or 0 ck
		[ "$output" = 0 ]
		fails 1 "$told" ckpt-rotate latest ck
		run -0 ckpt-rotate list ck
		run -0 preempt-run --run "r$((++run))" --checkpoints ck -- true
	done <<-'END'
		mkdir runs logs; echo x | tee runs/events.out.tfevents.1 >logs/1.log|logs, runs
		echo {} | tee config.json >vocab.txt; echo x >README.md|config.json
		mkdir version_0 checkpoint-5; echo x >slurm-4711.out|slurm-4711.out
		echo x >events.out.tfevents.1752509697.node17.4711.0|events.out
	END
}

@test "K7 what no rule knows has an unknown form: it is told, not offered, and stays" {
	breaks <<-'END'
		unknown form|hf|mkdir checkpoint-$n/0_Transformer; mv checkpoint-$n/model.safetensors checkpoint-$n/0_Transformer
		unknown form|hf|find checkpoint-$n -type f ! -name 'model*' ! -name config.json -delete
		unknown form|hf|rm -r checkpoint-$n/*; echo x >checkpoint-$n/notes
		unknown form|hf|rm -r checkpoint-$n; echo x >checkpoint-$n
		unknown form|accelerate|mkdir checkpoint_$n/old; mv checkpoint_$n/model.safetensors checkpoint_$n/old/model.npz
		unknown form|megatron|rm -r iter_0000$n; cd ..; make megatron_zarr $n
		unknown form|megatron_dist|find iter_0000$n -type f -delete; echo x >iter_0000$n/model.raw
		unknown form|orbax|rm -r $n/*; echo x >$n/notes
		unknown form|dcp|rm -r step-$n/* step-$n/.m*; echo x >step-$n/notes
		unknown form|keras|rm *$n*; mkdir weights.0$n-0.23.hdf5
		unknown form|nemo:kind=two|rm -r *step=$n-*/*; echo x >$(echo *step=$n-*)/notes
		unknown form|tensorflow|rm *-$n.*; mkdir ckpt-$n.index
	END
	# If there is no other, it is not "none": a person has to look.
	for form in megatron_zarr hf:kind=only; do
		fresh $form 100 200
		for d in ck/checkpoint-*; do [ ! -d $d ] || (cd $d && mkdir 0_T && mv model.safetensors 0_T); done
		fails 75 "may be checkpoints" ckpt-rotate latest ck --or 0
		ckpt-rotate prune -q --keep-last 1 ck
		[ "$(left)" = "100 200 " ]
	done
}

@test "K8 CK-7 a tracker proves nothing: what it names stays, and what is newer until two are newer still" {
	trackers='
		deepspeed|latest|global_step%d|
		megatron|latest_checkpointed_iteration.txt|%d|
		verl|latest_checkpointed_iteration.txt|%d|
		tensorflow|checkpoint|model_checkpoint_path: "/scratch/x/ckpt-%d"|
		fsdp|latest.txt|model-%d.pt|--pattern model-{step}.pt --tracker latest.txt
		fsdp|last_checkpoint|%d|--pattern model-{step}.pt --tracker last_checkpoint'
	# left_by NAMED [BROKEN...]: what prune leaves of five, of which these are damaged.
	left_by() {
		fresh "$form" 100 200 300 400 500
		local n
		for n in "${@:2}"; do find $(ls -d ck/*${n}*) -type f -exec truncate -s 20 {} +; done
		printf "$line\n" "$1" >"ck/$tracker"
		age
		[ "$(ckpt-rotate latest --step ck "${options[@]}" 2>/dev/null)" = "$newest" ] && p && left
	}
	p() { ckpt-rotate prune -q --keep-last 1 ck "${options[@]}"; }
	while IFS='|' read -r form tracker line words; do
		[ "$form" ] || continue
		form=${form//[$'\t']/}
		read -ra options <<<"$words"
		newest=500
		[ "$(left_by 500)" = "500 " ] || { echo "$form"; left_by 500; return 1; }
		[ "$(left_by 100)" = "100 400 500 " ] || { echo "$form"; return 1; }
		newest=400
		[ "$(left_by 500 500)" = "400 500 " ] || { echo "$form"; return 1; }
		[ "$(left_by 200 500)" = "200 300 400 500 " ]
		newest=100
		[ "$(left_by 300 200 300 400 500)" = "100 200 300 400 500 " ]
		# It names nothing that is there.
		newest=500
		[ "$(left_by 150)" = "400 500 " ]
		fails 0 "which is not there" ckpt-rotate latest ck --step "${options[@]}"
		# Broken: nothing is removed, and the newest complete one is found, with a warning.
		for breaks in ': >' 'printf "nothing\n" >' 'printf "\0\0\0\0" >' 'head -c 300 /dev/urandom | tr -d "[:alnum:]" >' 'mkdir' 'ln -sfT nowhere'; do
			fresh "$form" 100 200 300
			rm -f "ck/$tracker"
			eval "$breaks" "ck/$tracker"
			fails 65 "cannot parse the tracker" p || { echo "$form: $breaks: $stderr"; return 1; }
			[ "$(left)" = "100 200 300 " ]
			fails 0 "cannot parse the tracker" ckpt-rotate latest ck --step "${options[@]}"
			[ "$output" = 300 ]
		done
		# None: by their files.
		rm -f "ck/$tracker"
		p
		[ "$(left)" = "300 " ]
	done <<<"$trackers"
	# Rank 0 writes it before the others have saved: the files say how many belong to it, else those of the one before.
	breaks 300 <<-'END'
		incomplete|deepspeed:data=4|rm global_step$n/zero_pp_rank_[23]_*
		incomplete|deepspeed:data=4|rm global_step$n/zero_pp_rank_*
		incomplete|deepspeed:stage=3,data=4|rm global_step$n/zero_pp_rank_3_*
		incomplete|deepspeed:model=2,data=2|rm global_step$n/*mp_rank_01*
		incomplete|megatron:tensor=4,pipeline=1|rm -r iter_0000$n/mp_rank_0[23]
		incomplete|megatron:expert=2|rm -r iter_0000$n/mp_rank_*_001
		incomplete|verl:ranks=4|rm global_step_$n/actor/*_rank_3.pt
		doubtful|deepspeed:data=4,silent=1|rm global_step$n/zero_pp_rank_[23]_*
	END
	# A restart with fewer ranks, more, and another form of the optimizer.
	for stage in 2 3; do
		fresh deepspeed:data=4,stage=$stage 100
		for next in "data=2 200" "model=2,data=2 300" "data=8 400"; do make deepspeed:stage=$stage,${next% *} ${next#* }; done
		[ "$(steps) $(steps doubtful)" = "100 400  200 300 " ] || [ "$(steps)" = "100 200 300 400 " ] || { states; return 1; }
	done
}

@test "K9 Lightning: last.ckpt, its versions and names without a number are the trainer's own" {
	last() { in=new make lightning:name=$1 $2 && mv new/* ck && age; }
	make lightning 100 200 300
	for name in last last-v1 last-v2 best-model hpc_ckpt; do last $name 50; done
	# Of an older step: never removed, not offered, not counted.
	[ "$(ckpt-rotate latest ck)" = ck/epoch=1-step=300.ckpt ]
	ckpt-rotate prune -q --keep-last 1 ck
	[ "$(names ck)" = "best-model.ckpt epoch=1-step=300.ckpt hpc_ckpt.ckpt last-v1.ckpt last-v2.ckpt last.ckpt" ]
	# The newest is offered, and again after the trainer has replaced it.
	for newest in "last 700" "last-v1 800" "best-model 900" "last 1100" "hpc_ckpt 1200"; do
		last $newest
		[ "$(ckpt-rotate latest ck) $(ckpt-rotate latest ck --step)" = "ck/${newest% *}.ckpt ${newest#* }" ]
		run -0 ckpt-rotate verify ck
		[[ $output == "${newest% *}.ckpt complete"* ]]
		ckpt-rotate list ck | grep -q " ${newest% *}.ckpt"
	done
	ckpt-rotate prune -q --keep-last 1 ck
	[ "$(names ck)" = "best-model.ckpt epoch=1-step=300.ckpt hpc_ckpt.ckpt last-v1.ckpt last-v2.ckpt last.ckpt" ]
	# Without any numbered one: it is a checkpoint all the same.
	rm ck/epoch*
	[ "$(ckpt-rotate latest ck --step)" = 1200 ]
	# As a link it is another name; as a directory it has its step inside.
	fresh lightning 100 200 300
	ln -s epoch=1-step=200.ckpt ck/last.ckpt
	ckpt-rotate prune -q --keep-last 1 ck
	[ "$(steps)" = "200 300 " ]
	for kind in fsdp deepspeed deepspeed3; do
		fresh lightning:kind=$kind 100 200
		make lightning:kind=$kind,name=last 300
		[ "$(ckpt-rotate latest ck)" = ck/last.ckpt ] || { echo $kind; return 1; }
		rm -r ck/last.ckpt/{meta.pt,latest} 2>/dev/null || :
		age
		[ "$(ckpt-rotate latest ck --step 2>/dev/null)" = 200 ] || { echo $kind; return 1; }
	done
	# Cut short, it is neither "none" nor removed.
	rm -r ck
	mkdir ck
	last last 12
	[ "$(ckpt-rotate latest ck --step)" = 12 ]
	truncate -s 40 ck/last.ckpt
	run ! ckpt-rotate latest --layout lightning ck
	make lightning 100 200
	ckpt-rotate prune -q --keep-last 1 ck
	[ -e ck/last.ckpt ]
	# Saves of one step: the later version, the plain name before words at its end.
	fresh lightning 300
	for name in epoch=1-step=300-v1 epoch=1-step=300-v12 epoch=1-step=300-last; do last $name 300; done
	[ "$(ckpt-rotate latest ck)" = ck/epoch=1-step=300-v12.ckpt ]
	rm ck/*v1*
	[ "$(ckpt-rotate latest ck)" = ck/epoch=1-step=300.ckpt ]
}
