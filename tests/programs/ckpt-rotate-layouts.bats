#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# ckpt-rotate reads and prunes what training frameworks wrote, and touches nothing else. (That no part of a save is a
# save, for any part: ckpt-rotate-whole.bats. The layout of a run, and its store: preempt-run-anew.bats.)
# takes: 100
# shellcheck disable=SC2010,SC2012,SC2015,SC2016,SC2030,SC2031,SC2034,SC2046,SC2054,SC2059,SC2086,SC2154
bats_require_minimum_version 1.5.0
load ../support/ckpt

# A form of frameworks.py, and what list needs to find it.
forms=(hf hf:kind=sharded hf:kind=fsdp_sharded,ranks=2 hf:kind=deepspeed accelerate diffusers lightning lightning:kind=fsdp
	nemo nemo:kind=two verl deepspeed deepspeed:stage=3,data=4 megatron megatron_dist tensorflow:name=cp-{}.ckpt keras
	keras:name=ep.{}.keras orbax:kind=commit composer:kind=ranks dcp dcp:word= 'fsdp --pattern model-{step}.pt'
	'neuronx --pattern step_{step} --done done')

# make_form "FORM [OPTIONS]" STEP...: these and no others are in ck; r COMMAND and are STATE use the options.
make_form() {
	local words
	read -ra words <<<"$1"
	options=("${words[@]:1}")
	fresh "${words[0]}" "${@:2}"
}
r() { ckpt-rotate "$1" "${in-ck}" "${@:2}" "${options[@]}"; }
are() { steps "$1" "${options[@]}"; }

# named STEP: the entries of ck of this step, but for a word of the framework's beside it. left: the steps that have one.
named() {
	local name word='(unfinished|incomplete|ok|lock)$' of="[^1-9]$1([^0-9]|"'$)'
	for name in "${in-ck}"/*; do [[ $name =~ $word || ! $name =~ $of ]] || echo "${name#*/}"; done
}
left() {
	local step
	for step in 100 200 300 400 500; do [ -z "$(named $step)" ] || printf '%s ' $step; done
}

# do_each STEPS CODE: run CODE in ck for each step n; then all was written an hour ago.
do_each() {
	local n
	for n in $1; do (mkdir -p "${in-ck}" && cd "${in-ck}" && eval "$2") || return; done
	age
}

# breaks [STEP...]: for each change in rows KIND (cases.rows) on stdin. Only the changed save has the state, and the
# newest other one is offered; prune removes an incomplete or damaged one if a newer one is complete, and no doubtful or
# unknown one. All are made first, each in a directory of its own, and listed together; verify and prune are asked of
# the first of each state.
rows() { sed -n "s/^$1|//p" "$REPO/tests/support/layouts/cases.rows"; }
breaks() {
	local state form changes change words n number=0 steps=${*:-300 200} in
	local -A state_of=() told_of=() asked=() directories=() broken_last=()
	while IFS='|' read -r state form changes; do
		IFS='|' read -ra changes <<<"$changes"
		for change in "${changes[@]}"; do
			for n in $steps; do
				in=c$((++number))
				make_form "$form" 100 200 300 && do_each $n "$change" || return
				state_of[$in.$n]=$state told_of[$in]="$state|$form|$change, of $n"
				directories[list ${options[*]}]+=" $in"
				[ $n != 300 ] || broken_last[latest ${options[*]}]+=" $in"
				[ -n "${asked[$state.$n]-}" ] || { asked[$state.$n]=1 && broken; } ||
					{ echo "${told_of[$in]}: $(left)"; r list; return 1; }
			done
		done
	done
	[ $number -gt 0 ]
	for words in "${!broken_last[@]}"; do
		[ "$(ckpt-rotate $words --step ${broken_last[$words]} 2>/dev/null)" = 200 ]
	done
	for words in "${!directories[@]}"; do
		ckpt-rotate $words --json ${directories[$words]} |
			sed -n 's/.*"step": \([0-9]*\),.*"state": "\([a-z ]*\)".*"path": "\(c[0-9]*\)\/.*/\3 \1 \2/p'
	done | sort >found
	for in in "${!told_of[@]}"; do
		for n in 100 200 300; do echo "$in $n ${state_of[$in.$n]-complete}"; done
	done | sort | diff - found >wrong && rm -r c[0-9]* && return
	cat wrong
	grep -o '\bc[0-9]*' wrong | sort -u | while read -r in; do echo "$in: ${told_of[$in]}"; done
	return 1
}

broken() {
	local stays="200 300 "
	local -A codes=([incomplete]=1 [damaged]=65 [doubtful]=75 ["unknown form"]=1)
	cp -a "$in" pruned
	local in=pruned
	if [ $n = 300 ]; then
		fails ${codes[$state]} "" r verify $n || return
		fails 0 " is ${state/unknown/of an unknown} and was skipped: " r latest --step && [ "$output" = 200 ] || return
	elif [[ $state == incomplete || $state == damaged ]]; then
		stays="300 "
	elif [ "$state" = doubtful ]; then
		stays="100 200 300 " # 100 is what 200 is compared with
	fi
	r prune -q --keep-last 1 && [ "$(left)" = "$stays" ] && rm -r pruned
}

@test "each layout's: listed, offered, verified, pinned, marked and pruned" {
	for form in "${forms[@]}"; do
		echo "$form"
		make_form "$form" 100 200 300 400 500
		echo mine | tee ck/notes >ck/events.out.tfevents.1
		others=$(ls ck | grep -v '[1-5]00')
		[ "$(are complete)" = "100 200 300 400 500 " ]
		[[ $(r latest) == ck/*500* ]]
		run -0 r verify
		[[ $output == *500*" complete: "*"no checksums"* ]]
		r mark 400 bad
		r mark 500 bad
		r pin 100
		[ "$(r latest --step 2>/dev/null) $(are bad)" = "300 400 500 " ]
		r mark 500 good
		run -0 r prune --keep-last 2
		[ "$(left)" = "100 300 500 " ]
		[[ $output == *pinned* ]]
		[ "$(echo ck/.ckpt-*)" = ck/.ckpt-pin-100 ] # the mark of 400 went with it
		r unpin 100
		# A mark counts until a file is newer; and what changed a moment ago is not touched.
		r mark 300 bad
		touch -d '+2 seconds' ck/*300*
		[ "$(are complete)" = "100 300 500 " ]
		r prune -q --keep-last 1
		[ "$(left)" = "300 500 " ]
		[ "$(ls ck | grep -v '[1-5]00')" = "$others" ]
	done
}

@test "K1 all files of a step are one checkpoint, and go together" {
	while IFS='|' read -r make options; do
		rm -rf ck
		read -ra options <<<"$options"
		do_each "100 200 300" "in=.; $make"
		echo "$make: $(are complete)"
		before=$(ls ck | grep -cE '[23]00')
		[[ $(are complete) == "100 200 300 " && $before -gt 2 ]]
		r prune -q --keep-last 2
		[ "$(left) $(ls ck | grep -cE '[23]00')" = "200 300  $before" ]
		[[ $(r latest) == ck/*300* ]]
	done < <(rows K1-whole)
	# A part that is broken breaks the whole. But of several saves of a step one has to be whole.
	rows K1 | breaks
	make_form lightning 100 200
	do_each 200 'in=. make lightning:epoch=2 200; for v in 1 9 12; do cp epoch=2-step=200{,-v$v}.ckpt; done; truncate -s -1 epoch=1-step=200.ckpt'
	[ "$(ckpt-rotate latest ck)" = ck/epoch=2-step=200-v12.ckpt ]
}

@test "K2 the framework's own word is heard" {
	rows K2 | breaks
	fails 2 "go with --pattern" ckpt-rotate list --done "done" ck
}

@test "K3 what every sibling has and this one has not: doubtful" {
	rows K3 | breaks
	while IFS='|' read -r form change; do
		make_form "$form" 100 200 300
		do_each 300 "$change"
		echo "$form: $(are doubtful)"
		# The user says that it is complete (until a file is newer); or the run's store.
		r mark 300 good
		[ "$(r latest --step)" = 300 ]
		touch -d '+2 seconds' ck/*300*
		[ "$(r latest --step 2>/dev/null)" = 200 ]
		preempt-store put saved/r '{"step":300,"attempt":1}'
		[ "$(PREEMPT_RUN=r r latest --step) $(PREEMPT_RUN=other r latest --step 2>/dev/null)" = "300 200" ]
		# Another save has the same names, as of a smaller world.
		do_each 200 "$change"
		[ "$(are complete)" = "100 200 300 " ]
	done < <(rows K3-cleared)
	# Each save of Lightning's is whole by itself, whatever its name says.
	make_form lightning 100
	for name in best-step=200-loss=1e-05 epoch=1-step=300 best-step=300-loss=-inf step=400-loss=nan step=500; do
		cp ck/epoch=1-step=100.ckpt ck/$name.ckpt
	done
	[ "$(steps)" = "100 200 300 400 500 " ]
	# From 1 MiB on, less than half of the size. Small files may shrink, and all may grow.
	while read -r older newer complete; do
		rm -rf ck
		mkdir -p ck/a-{1,2}
		truncate -s $older ck/a-1/x
		truncate -s $newer ck/a-2/x
		echo x | tee -a ck/a-1/x >>ck/a-2/x
		[ "$(steps complete --pattern 'a-{step}')" = "$complete " ]
	done <<<$'3M 1M 1\n1M 400K 1\n900K 100K 1 2\n3M 2M 1 2\n1M 9M 1 2'
}

@test "K4 CK-8 impossible content is damage, also half of a document" {
	zeros() { for file; do truncate -s "$(stat -c %s "$file")" zero && mv zero "$file"; done; }
	pointer() { for file; do printf 'version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 4404\n' >"$file"; done; }
	page() { for file; do printf '\n<!DOCTYPE html>\n<html><head><title>504</title></head></html>' >"$file"; done; }
	cut() { truncate -s -1 "$@"; }
	half() { for file; do truncate -s $(($(stat -c %s "$file") / 2)) "$file"; done; }
	while IFS='|' read -r form file ready; do
		for how in zeros pointer page cut half; do echo "damaged|$form|$ready$how $file"; done
	done < <(rows K4-files) | breaks 300
	rows K4 | breaks
	# A word that is no prefix of a signature says nothing, nor does a page under a page's name.
	make_form hf 100 200
	do_each "100 200" 'cd checkpoint-$n; echo ok >more.pt; page card.html README.md'
	[ "$(steps)" = "100 200 " ]
}

@test "K5 CK-9 what a link names stays, in every layout, and what is away is never touched" {
	for form in native "${forms[@]}"; do
		echo "$form"
		if [ "$form" = native ]; then saves 100 200 300 400 500; else make_form "$form" 100 200 300 400 500; fi
		ln -sfT "$(named 100 | tail -n1)" ck/latest-rank1.pt
		ln -s "$PWD/ck/./$(cd ck && find $(cd .. && named 200 | tail -n1) -type f | tail -n1)" ck/into
		ln -s into ck/second
		newest=ck/$(named 500 | tail -n1)
		[ -d $newest ] && below=$newest/teacher || below=ck/teacher
		ln -s "$PWD/ck/$(named 300 | tail -n1)" $below
		(cd ck && ln -s . here && ln -s .. above && ln -s / root && ln -s nowhere gone && ln -s loop loop) # these protect nothing
		age
		run -0 r prune --keep-last 1
		[[ $output == *"a link, leads to it"* ]]
		[ "$(left)" = "100 200 300 500 " ]
		[ "$(named 100 | wc -l)" = "$(named 500 | wc -l)" ]
		rm -f ck/{into,second,latest-rank*.pt} $below
		age
		r prune -q --keep-last 1
		[ "$(left)" = "500 " ]
	done
	# An entry that is a link is read as what it leads to; both stay.
	make_form hf 100 200 300
	mkdir away
	do_each 100 'mv checkpoint-100 ../away; ln -s ../away/checkpoint-100 .; ln -s checkpoint-200 checkpoint-150'
	[ "$(steps) $(steps incomplete)" = "100 200 300  150 " ] # (its files are of step 200)
	ckpt-rotate prune -q --keep-last 1 --settled 0s ck
	[ "$(names ck)" = "checkpoint-100 checkpoint-150 checkpoint-200 checkpoint-300" ]
	[ -e away/checkpoint-100/trainer_state.json ]
	# Links inside are read as files.
	rows K5 | breaks
	make_form hf 100 200 300
	do_each 300 'cd checkpoint-$n; mv model.safetensors ../../away; ln -s ../../away/model.safetensors .'
	[ "$(steps)" = "100 200 300 " ]
}

@test "K6 what looks like checkpoints and no layout reads is 75, with names and the options" {
	while IFS='|' read -r make told options; do
		rm -rf ck
		do_each "100 200 300 400" "in=.; $make"
		for command in "ckpt-rotate list ck" "ckpt-rotate latest --or 0 ck" "preempt-run --run r --checkpoints ck -- touch started"; do
			fails 75 "no layout reads $told ..., which may be checkpoints: say how with --pattern or --layout" $command
		done
		read -ra options <<<"$options"
		[ "$(r latest --step)" = 400 ]
	done < <(rows K6)
	[ ! -e started ]
	# Other entries are told, and --or holds.
	while IFS='|' read -r told make; do
		rm -rf ck
		do_each "1 2" "$make"
		[ "$(ckpt-rotate list ck) $(ckpt-rotate latest --or none ck)" = " none" ]
		fails 1 "$told" ckpt-rotate latest ck
		preempt-run --run r$((++runs)) --checkpoints ck -- true
	done < <(rows K6-others)
}

@test "K7 what no rule knows has an unknown form: it is told, not offered, and stays" {
	rows K7 | breaks
	# If there is no other, a person has to look.
	for form in megatron_zarr litgpt; do
		make_form $form 100 200
		fails 75 "may be checkpoints" ckpt-rotate latest ck --or 0
		ckpt-rotate prune -q --keep-last 1 ck
		[ "$(left)" = "100 200 " ]
	done
}

@test "K8 CK-7 a tracker proves nothing: what it names stays, and what is newer until two are newer still" {
	# leaves NEWEST NAMED DAMAGED LEFT: the tracker names it, some of five are damaged; what latest prints, what prune leaves.
	leaves() {
		make_form "$form" 100 200 300 400 500
		for n in $3; do (cd ck && find $(cd .. && named $n) -type f -exec truncate -s 20 {} +); done
		printf "$line\n" "$2" >"ck/$tracker"
		age
		echo "$form: $*"
		[ "$(r latest --step 2>/dev/null)" = "$1" ] && r prune -q --keep-last 1 && [ "$(left)" = "$4 " ]
	}
	while IFS='|' read -r form tracker line; do
		leaves 500 500 "" "500"
		leaves 500 100 "" "100 400 500"
		leaves 500 150 "" "400 500"
		fails 0 "which is not there" r latest
		leaves 400 500 "500" "400 500"
		leaves 400 200 "500" "200 300 400 500"
		leaves 100 300 "200 300 400 500" "100 200 300 400 500"
		# Broken: nothing is removed, and what is complete is found, with a warning.
		make_form "$form" 100 200 300
		for content in : 'printf "nothing\n"' 'printf "%s\0" "$line"' 'echo a/../300x' 'mkdir "ck/$tracker"' 'ln -s nowhere "ck/$tracker"'; do
			rm -rf "ck/$tracker"
			if [[ $content == *ck* ]]; then eval "$content"; else eval "$content" >"ck/$tracker"; fi
			fails 65 "$tracker: cannot parse the tracker" r prune --keep-last 1
			fails 0 "$tracker: cannot parse the tracker" r latest --step
			[ "$output $(left)" = "300 100 200 300 " ]
		done
		rm "ck/$tracker"
		r prune -q --keep-last 1
		[ "$(left)" = "300 " ]
	done < <(rows K8-trackers)
	# Rank 0 writes it before the others have saved: the files say how many belong to it, else the save before it.
	rows K8 | breaks
}

@test "K9 Lightning: last.ckpt, its versions and names without a number are the trainer's own" {
	own() { for name; do in=new make lightning:name=${name%:*} ${name#*:} && mv new/* ck; done; }
	make lightning 100 200 300
	own last:50 last-v1:51 last-v2:52 best-model:53 hpc_ckpt:54
	left="best-model.ckpt epoch=1-step=300.ckpt hpc_ckpt.ckpt last-v1.ckpt last-v2.ckpt last.ckpt"
	[ "$(ckpt-rotate latest ck)" = ck/epoch=1-step=300.ckpt ]
	ckpt-rotate prune -q --keep-last 1 ck
	[ "$(names ck)" = "$left" ]
	# The newest is offered, and again after the trainer has replaced it; it does not count.
	for newest in last:700 last-v1:800 best-model:900 last:1100 hpc_ckpt:1200; do
		own $newest
		[ "$(ckpt-rotate latest ck) $(ckpt-rotate latest ck --step)" = "ck/${newest%:*}.ckpt ${newest#*:}" ]
		[[ $(ckpt-rotate verify ck) == "${newest%:*}.ckpt complete"* ]]
	done
	age
	ckpt-rotate prune -q --keep-last 1 ck
	[ "$(names ck)" = "$left" ]
	# Cut short, it is skipped, and not removed.
	truncate -s 40 ck/last.ckpt ck/hpc_ckpt.ckpt
	age
	[ "$(ckpt-rotate latest ck 2>/dev/null)" = ck/best-model.ckpt ]
	make lightning 1000 1100
	ckpt-rotate prune -q --keep-last 1 ck
	[ "$(names ck)" = "${left/step=300/step=1100}" ]
	# A link is another name. A directory has its step inside.
	make_form lightning 100 200 300
	do_each 200 'ln -s epoch=1-step=$n.ckpt last.ckpt'
	ckpt-rotate prune -q --keep-last 1 ck
	[ "$(steps)" = "200 300 " ]
	for kind in fsdp deepspeed deepspeed3; do
		make_form lightning:kind=$kind 100 200
		make lightning:kind=$kind,name=last 300
		[ "$(ckpt-rotate latest ck)" = ck/last.ckpt ]
		find ck/last.ckpt \( -name latest -o -name .metadata \) -delete
		[ "$(ckpt-rotate latest ck --step 2>/dev/null)" = 200 ]
	done
}

@test "Hugging Face: the best one stays, because the Trainer breaks without it; --keep-best compares" {
	make_form hf 100 200
	make hf:best=200 300 400
	run -0 ckpt-rotate prune --keep-last 1 ck
	[[ $output == *"kept checkpoint-200: the newest one calls it the best"* ]]
	[ "$(left)" = "200 400 " ]
	best() { # METRIC LEFT: of the lowest two stay, and the newest
		ckpt-rotate prune -q --keep-best 2 --metric "$1" --mode min ck && [ "$(left)" = "$2 " ]
	}
	rm -r ck
	for loss in 4:100 0.5:200 -0.25:300 NaN:400 2:500; do make "hf:loss=${loss%:*}" "${loss#*:}"; done
	best eval_loss "200 300 500"
	rm -r ck
	for loss in 4:100 1:200 2:300 3:400; do make "orbax:loss=${loss%:*}" "${loss#*:}"; done
	best loss "200 300 400"
	make_form lightning 100 200 300 400 500
	do_each 1 'for n in 100:0.30 200:1e-05 300:-0.50 400:4x; do mv epoch=1-step=${n%:*}{,-val_loss=${n#*:}}.ckpt; done'
	best val_loss "200 300 500"
}

@test "a newline in a name, pipes, other names: no checkpoints, not printed, not touched" {
	local nl=$'\n' name
	make_form lightning 100 200
	mkfifo ck/pipe
	for name in "a${nl}x-step=300.ckpt" "step=300${nl}.ckpt" "${nl}step=300.ckpt" "step=300.ckpt${nl}" $'tab\t-step=300.ckpt' \
		$'esc\e[1m-step=300.ckpt' .step=300.ckpt step=300.ckpt.bak; do cp ck/epoch=1-step=200.ckpt "ck/$name"; done
	age
	[ "$(steps)$(steps complete --pattern '*-step={step}.ckpt')" = "100 200 100 200 " ]
	ckpt-rotate prune -q --keep-last 1 ck
	[ "$(ls -Aq ck | wc -l)" = 10 ]
	# In a name that is printed for other reasons it is escaped.
	make_form hf 100 200
	: >"ck/checkpoint-200/config.json${nl}.incomplete"
	run -0 ckpt-rotate list ck
	[ ${#lines[@]} = 3 ]
	for name in model.pt '{step}{step}' 'a/{step}' '{step}*' '*{step}' '1{step}' ''; do
		fails 2 "--pattern" ckpt-rotate prune --keep-last 1 --pattern "$name" ck
	done
}

@test "two layouts in one directory: auto refuses and names both; several directories" {
	make_form hf 100 200
	make megatron 100 200
	for command in list latest verify "prune --keep-last 1"; do
		fails 2 "two layouts, hf (checkpoint-" ckpt-rotate $command ck
		[[ $stderr == *") and megatron (iter_0000"*"--layout"* ]]
	done
	ckpt-rotate prune -q --layout megatron --keep-last 1 ck
	[ "$(names ck)" = "checkpoint-100 checkpoint-200 iter_0000200 latest_checkpointed_iteration.txt" ]
	# What the Trainer leaves beside, and what has a more special layout, is none of two.
	while read -r form beside newest; do
		make_form $form 100
		make $beside 100
		[ "$(ckpt-rotate latest ck)" = ck/$newest ]
	done <<<$'hf deepspeed checkpoint-100\nmegatron_dcp dcp iter_0000100\nhf:kind=deepspeed dcp checkpoint-100'
	fails 2 "is itself a checkpoint" ckpt-rotate prune --keep-last 1 ck/checkpoint-100
	# What lies deep in another directory with a number is not looked at.
	mkdir -p c/400/data/deep
	in=c save 250
	[ "$(strace -o trace ckpt-rotate latest c --step)" = 250 ]
	run ! grep '"deep' trace
	# Of several directories the highest step; one that cannot be read is not "none".
	in=a make hf 100 200 300
	in=b save 250
	[ "$(ckpt-rotate latest a b missing)" = a/checkpoint-300 ]
	rm a/checkpoint-300/trainer_state.json
	[ "$(ckpt-rotate latest a b 2>/dev/null)" = b/step-00000250 ]
	run -75 --separate-stderr ckpt-rotate latest a b missing/deep
	ckpt-rotate list --json a b | json '[d["step"] for d in c] == [100, 200, 300, 250]'
}

@test "preempt-run --checkpoints DIR:LAYOUT and DIR:PATTERN; a misspelt layout is refused, a colon in a name is not" {
	resumes() { preempt-run --run r$((++runs)) --checkpoints "$1" -- sh -c 'echo "$PREEMPT_RESUME" >resumed' && [ "$(cat resumed)" = "$2" ]; }
	make_form hf 100 200
	do_each 200 'echo x >checkpoint-200/trainer_state.json'
	for dir in ck ck:hf ck:auto; do resumes $dir ck/checkpoint-100; done
	make fsdp 7
	resumes 'ck:model-{step}.pt' ck/model-7.pt
	for word in hff HF magatron lighting pytorch; do
		fails 2 "there is no layout \"$word\"" preempt-run --run r --checkpoints "ck:$word" -- touch started
		[[ $stderr == *"with a slash at the end: ck:$word/"* && ! -e started ]]
	done
	fails 2 'did you mean "deepspeed"?' ckpt-rotate list --layout deepsped ck
	mkdir ck:hff
	mv ck/checkpoint-100 ck:hff
	for dir in ck:hff ck:hff:hf; do resumes $dir ck:hff/checkpoint-100; done
	resumes ck:4/ ""
}

@test "files that PyTorch itself wrote" {
	python3 -c 'import torch' 2>/dev/null || skip "needs python3-torch"
	export FRAMEWORKS_TORCH=1
	rows torch | breaks 300
	make last 70000
	[ "$(ckpt-rotate latest ck --step --layout lightning)" = 70000 ]
}
