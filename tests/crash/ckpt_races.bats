#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# ckpt-rotate, held at a call while another process acts.
# takes: 30
# shellcheck disable=SC2012,SC2016,SC2030,SC2031,SC2034,SC2086,SC2154
bats_require_minimum_version 1.5.0
load ../support/ckpt

# ends CODE: what was held goes on, and ends so.
ends() {
	go_on
	[ "$code" = "$1" ] || { echo "exit code $code"; cat error; return 1; }
}

# held CALL ACT CODE COMMAND...: COMMAND is held at CALL, ACT is done, and COMMAND ends with CODE.
held() {
	stop_at "$1" "${@:4}"
	eval "$2"
	ends "$3"
}

# stop_before_rename NAME COMMAND...: hold a command that has looked at ck/NAME for the last time before it renames
# it away; a first run, on a copy, tells which look that is.
stop_before_rename() {
	local nth
	cp -a ck template
	strace -f -o trace -e trace=newfstatat,renameat "${@:2}"
	nth=$(($(grep -n -m 1 "renameat([0-9]*, \"$1\"" trace | cut -d: -f1) - 1))
	rm -r ck
	mv template ck
	stop_at newfstatat "${@:2}"
	[ -e "ck/$1" ]
}

# ---- commit ----

@test "a file changes, appears or vanishes, or the directory does, while it is committed" {
	save 10
	for change in "echo more >>model" "touch -d 2001-01-01 model" "echo new >new" "rm model" \
		"mv sub/state state" "cp model copy; mv copy model"; do
		d=$(ckpt-rotate begin ck 20)
		mkdir "$d/sub"
		head -c 300000 /dev/zero >"$d/model"
		echo 12345 >"$d/sub/state"
		stop_at sync_file_range ckpt-rotate commit ck 20
		(cd "$d" && eval "$change")
		ends 1
		grep -q 'changed\|missing\|vanished' error
		[ "$(ckpt-rotate latest ck --step)" = 10 ]
	done
	held sync_file_range "mv ck away" 75 ckpt-rotate commit ck 20
	[ "$(ckpt-rotate latest away --step)" = 10 ]
	mv away ck
	[ "$(ckpt-rotate commit ck 20)" = complete ]
	ckpt-rotate verify -q ck
}

# begin_elsewhere: another process begins step 20; its answer is in ./other.
begin_elsewhere() {
	rm -f other
	setsid bash -c 'ckpt-rotate begin ck 20 >other 2>&1; echo $? >>other' 3>&- &
	eventually grep -qs '^[0-9]*$' other
}

@test "DIR that another task makes after it was not found is there" {
	mkdir ck
	strace -o trace -P ck -e trace=openat -e inject=openat:error=ENOENT:when=1 ckpt-rotate begin ck 20
	grep -q INJECTED trace
	[ -d ck/.tmp-step-00000020-attempt-0 ]
	ln -s nowhere link
	fails 75 "link is a symbolic link whose target does not exist" ckpt-rotate begin link 20
}

@test "begin while the same start commits: what is published, or has a committed shard, is not emptied" {
	export PREEMPT_ATTEMPT=1 PREEMPT_LIFE=$one PREEMPT_TASK=0 PREEMPT_TASKS=1
	for how in "" --sharded; do
		# Begin has opened it, and not yet made its record; or made it, and empties.
		for call in "openat 75 0" "flock 0 75"; do
			read -r call begun committed <<<"$call"
			rm -rf ck
			d=$(ckpt-rotate begin ck 20 $how)
			echo x >"$d/model"
			only='' nth=1
			[ $call = flock ] || only=$PWD/${d%/task-0}
			[ $call$how != openat--sharded ] || nth=2 # its shard is looked for before
			stop_at $call ckpt-rotate begin ck 20 $how
			run -"$committed" ckpt-rotate commit ck 20 $how
			ends "$begun"
			[ "$committed" != 0 ] || ckpt-rotate verify -q ck 20
		done
		# Commit has read the files.
		rm -rf ck
		d=$(ckpt-rotate begin ck 20 $how)
		echo x >"$d/model"
		only='' nth=1
		stop_at sync_file_range ckpt-rotate commit ck 20 $how
		run -1 ckpt-rotate begin ck 20 $how
		ends 0
		ckpt-rotate verify -q ck 20
	done
}

@test "two that begin at once, also where there is the record of one that is gone: one of them is refused" {
	for call in "flock" "ftruncate" "write" "flock gone" "write gone"; do
		rm -rf ck other
		[[ $call != *gone ]] || bash -c 'ckpt-rotate begin ck 20; :'
		stop_at "${call% gone}" ckpt-rotate begin ck 20
		begin_elsewhere
		[ "$(tail -n 1 other)" = 1 ]
		grep -q "is being written by another process since just now" other
		ends 0
		[ "$(ls -A ck/.tmp*)" = .ckpt-writer.json ]
	done
}

@test "prune and commit of what was given up, at once: what is committed stays" {
	save 10
	given_up model ckpt-rotate begin ck 20
	stop_before_rename .tmp-step-00000020-attempt-0 ckpt-rotate prune -q --keep-last 2 ck
	[ "$(ckpt-rotate commit ck 20)" = complete ]
	ends 0
	no_debris 20
	rm -r ck/step-00000020
	# It was renamed away.
	given_up model ckpt-rotate begin ck 20
	stop_at renameat ckpt-rotate prune -q --keep-last 2 ck
	fails 1 "comes first" ckpt-rotate commit ck 20
	ends 0
	[ "$(names -A ck)" = "latest step-00000010" ]
	# The other way round.
	given_up model ckpt-rotate begin ck 20
	held fsync "ckpt-rotate prune -q --keep-last 2 ck" 0 ckpt-rotate commit ck 20
	no_debris 20
}

@test "what was given up is being pruned when it is begun again: it stays, or is made anew" {
	export PREEMPT_LIFE=$one PREEMPT_ATTEMPT=1
	for options in "" "--sharded --task 0 --tasks 1"; do
		for call in renameat unlinkat; do
			rm -rf ck
			save 10
			given_up "a b c" ckpt-rotate begin ck 20 $options
			stop_at $call ckpt-rotate prune -q --keep-last 1 ck
			d=$(ckpt-rotate begin ck 20 $options)
			echo new >"$d/a"
			ends 0
			[ "$(cd "$d" && grep . -- *)" = new ]
			[ "$(ckpt-rotate commit ck 20 $options)" = complete ]
			ckpt-rotate prune -q --keep-last 2 ck
			no_debris 20
		done
	done
}

# ---- prune ----

# taken_by_mistake FAULT: a pruner that is about to rename the damaged step 20 away gets the new one that was
# committed in that moment.
taken_by_mistake() {
	local later=$1
	rm -rf ck
	saves 10 20 30
	rm ck/step-00000020/model
	echo new >"$(ckpt-rotate begin ck 20)/model"
	stop_before_rename step-00000020 ckpt-rotate prune -q --keep-last 1 --keep-step 10 ck
	[ "$(ckpt-rotate commit ck 20)" = complete ]
	go_on
	grep -q 'renameat2.*INJECTED\|killed by SIGKILL' trace
}

@test "what was just committed is renamed away: it is given back, by the next one, or named and not deleted" {
	# NFS knows no RENAME_NOREPLACE.
	taken_by_mistake renameat2:error=EINVAL
	ckpt-rotate verify -q ck 20
	taken_by_mistake renameat2:signal=KILL:when=1
	[ ! -e ck/step-00000020 ]
	ckpt-rotate prune -q --keep-last 3 ck
	ckpt-rotate verify -q ck 20
	[ "$(find ck -name '.gone*')" = "" ]
	taken_by_mistake renameat2:error=EIO
	[ "$code" = 75 ]
	gone=$(cd ck && echo .gone*)
	grep "cannot rename ck/$gone back to step-00000020: Input/output error" error
	[ "$(<"ck/$gone/model")" = new ]
	ckpt-rotate prune -q --keep-last 9 ck
	ckpt-rotate verify -q --all ck
}

@test "a pin comes while a pruner has renamed another, or is about to rename, or is killed then: it counts" {
	saves 10 20 30
	held renameat "ckpt-rotate pin ck 20" 0 ckpt-rotate prune --keep-last 1 ck
	[ "$(steps)" = "20 30 " ]
	ckpt-rotate unpin ck 20
	# So does a link that comes then.
	stop_before_rename step-00000020 ckpt-rotate prune --keep-last 1 ck
	ln -s step-00000020/model ck/best
	ends 0
	[ "$(steps)" = "20 30 " ]
	rm ck/best
	stop_before_rename step-00000020 ckpt-rotate prune --keep-last 1 ck
	ckpt-rotate pin ck 20
	ends 0
	grep -q 'kept: pinned since it was listed' answer
	[ "$(steps)" = "20 30 " ]
	saves 10 40
	local later=renameat2:signal=KILL:when=1
	stop_before_rename step-00000010 ckpt-rotate prune -q --keep-last 3 ck
	ckpt-rotate pin ck 10
	go_on
	grep -q 'killed by SIGKILL' trace
	[ ! -e ck/step-00000010 ]
	ckpt-rotate prune -q --keep-last 1 ck
	[ "$(steps)" = "10 20 40 " ]
	ckpt-rotate verify -q --all ck
}

@test "a pruner that slept while its decision grew old removes nothing that matters" {
	saves 10 20 30
	held renameat "save 40" 0 ckpt-rotate prune --keep-last 1 ck
	[ "$(steps)" = "30 40 " ]
	no_debris 40
}

@test "a damaged one is saved again after a pruner has looked at it: what is there now stays" {
	local nth
	saves 10 20
	rm ck/step-00000010/model
	cp -a ck template
	strace -f -o trace -e trace=newfstatat ckpt-rotate prune -q --keep-last 3 ck
	# The last is before it is renamed, and the one before is for links.
	nth=$(($(grep -n '"step-00000010"' trace | tail -n 2 | head -n 1 | cut -d: -f1) - 1))
	rm -r ck
	mv template ck
	stop_at newfstatat ckpt-rotate prune -q --keep-last 3 ck
	save 10
	ends 0
	[ "$(steps)" = "10 20 " ]
	ckpt-rotate verify -q --all ck
}

@test "the newest one goes while a pruner looks, or is marked as bad while it renames: it removes nothing" {
	saves 10 20 30
	# It looks a second time before it deletes.
	only=$PWD/ck/step-00000030/.ckpt-manifest.json nth=3 # two reads for each look
	held read "mv ck/step-00000030/model model" 75 ckpt-rotate prune --keep-last 1 ck
	run -1 grep removed: answer
	mv model ck/step-00000030/model
	unset only nth
	held renameat "ckpt-rotate mark ck 30 bad" 75 ckpt-rotate prune --keep-last 1 ck
	run -1 grep removed: answer
	grep 'step-00000030 is no longer complete, so no checkpoint is removed; try again' error
	[ "$(steps)" = "10 20 " ]
	fresh tensorflow 100 200
	held renameat "mv ck/ckpt-200.index index" 75 ckpt-rotate prune --keep-last 1 ck
	mv index ck/ckpt-200.index
	ckpt-rotate verify -q --all ck
	[ "$(find ck -name '.gone*')" = "" ]
}

@test "what a pruner cannot give back it does not delete, and the next one gives it back" {
	saves 10 20 30
	local later=renameat2:error=EIO
	held renameat "touch ck/step-00000030/.ckpt-bad.json" 75 ckpt-rotate prune --keep-last 1 ck
	rm ck/step-00000030/.ckpt-bad.json
	grep FAILED answer
	[ "$(find ck -name '.gone*' | wc -l)" = 2 ]
	ckpt-rotate prune -q --keep-last 9 ck
	[ "$(steps)" = "10 20 30 " ]
	ckpt-rotate verify -q --all ck
}

@test "several pruners: each waits for the other, not for ever, and a dry run does not" {
	saves 10 20 30 40
	stop_at renameat ckpt-rotate prune --keep-last 1 ck
	fails 75 "another prune of ck is still at work" timeout 30 ckpt-rotate prune -q --keep-last 1 --timeout 100ms ck
	[ "${#stderr_lines[@]}" = 1 ]
	run -0 ckpt-rotate prune -n --keep-last 1 ck
	ckpt-rotate prune -q --keep-last 1 ck 3>&- &
	second=$!
	go_on
	wait $second
	[ "$(steps)" = "40 " ]
}

@test "a trainer writes again what prune is about to remove, or sets its tracker back: that stays" {
	make hf 100 200 300
	held renameat "touch ck/checkpoint-200/model.safetensors" 0 ckpt-rotate prune -q --keep-last 1 ck
	[ "$(steps)" = "200 300 " ]
	fresh deepspeed 100 200 300 400
	# It has read the tracker, and reads the directory.
	only=$PWD/ck
	held getdents64 "echo global_step200 >ck/latest" 0 ckpt-rotate prune --layout deepspeed -q --keep-last 1 ck
	[ "$(names ck)" = "global_step200 global_step300 global_step400 latest" ]
}

@test "what a killed prune renamed away is given back, unless another has its name" {
	for kind in hf tensorflow; do
		fresh $kind 100 200 300
		for file in ck/*100*; do mv "$file" "ck/.gone-0000000000000001-${file#ck/}"; done
		[ "$(steps)" = "200 300 " ]
		for file in ck/*200*; do
			cp -r "$file" "ck/.gone-0000000000000002-${file#ck/}"
			cp -r "$file" "ck/.gone-8000000000000003-${file#ck/}"
		done
		age
		ckpt-rotate prune -q --keep-last 9 ck
		[ "$(steps)" = "100 200 300 " ]
		[ "$(find ck -name '.gone*')" = "" ]
	done
}

# ---- latest and list ----

@test "what is replaced or removed while it is judged is judged again" {
	saves 10 20
	rm ck/step-00000020/model
	only=$PWD/ck/step-00000020
	held newfstatat "save 20" 0 ckpt-rotate latest ck --step
	[ "$(cat answer)" = 20 ]
	[ ! -s error ]
	# Gone, when a newer one is there.
	stop_at newfstatat ckpt-rotate latest ck --step
	save 30
	ckpt-rotate prune -q --keep-last 1 ck
	ends 0
	[ "$(cat answer)" = 30 ]
	# Damaged, and then gone: nothing to warn of.
	save 10
	rm ck/step-00000010/model
	only=$PWD/ck/step-00000010
	held newfstatat "ckpt-rotate prune -q --keep-last 1 ck" 0 ckpt-rotate list ck
	[ "$(grep -c 'damaged\|unknown' answer)" = 0 ]
}

@test "a file vanishes while latest looks at the newest: that one is offered, or none" {
	mkdir -p ck/step-{1,2}
	for step in 1 2; do echo x | tee ck/step-$step/{a,b,c} >/dev/null; done
	age
	vanishing=(strace -f -o trace -P "$PWD/ck/step-2" -e trace=newfstatat)
	for ((n = 1; n < 20; n++)); do
		run -0 --separate-stderr "${vanishing[@]}" -e inject=newfstatat:error=ENOENT:when=$n \
			ckpt-rotate latest --pattern 'step-{step}' ck
		grep -q INJECTED trace || break
		[ "$output" = ck/step-2 ]
	done
	[ "$n" -gt 2 ]
	run -75 --separate-stderr "${vanishing[@]}" -e inject=newfstatat:error=ENOENT \
		ckpt-rotate latest --pattern 'step-{step}' ck
	[ "$output" = "" ]
}

# ---- copy ----

@test "copy: what does not come out as it went in is not published, and is copied again" {
	in=near save 20
	stop_at sync_file_range ckpt-rotate copy -q near far
	printf XXX | dd of="$(find far -name model)" conv=notrunc status=none
	ends 75
	grep -q 'reads back with different content; check that disk' error
	run -1 ckpt-rotate latest far
	ckpt-rotate copy -q near far
	same 20
	no_debris
}

@test "copy: the original goes or changes in the middle of it: no, and nothing is published" {
	in=near saves 10 20
	held sync_file_range "rm -r near/step-00000020/sub" 1 ckpt-rotate copy -q near far
	grep -q 'sub/state is missing' error
	# One of many was pruned: that is no fault. If it was the one that was asked for, it is said.
	for call in "3 0 --last 2" "1 75 10"; do
		rm -rf near far
		in=near saves 10 20
		read -r nth answer what <<<"$call"
		held ftruncate "rm -r near/step-00000010" "$answer" ckpt-rotate copy near far $what
		grep -q "near/step-00000010 was removed while it was copied" error
		[ ! -e far/step-00000010 ]
	done
}

@test "copy: a second one is told to wait, and a prune lets the first one live" {
	in=near saves 10 20
	ckpt-rotate copy -q near far 10
	nth=2
	stop_at sync_file_range ckpt-rotate copy -q near far
	fails 75 "is at work" ckpt-rotate copy near far
	run -0 ckpt-rotate prune --keep-last 1 far
	[[ $output == *"kept: not committed; perhaps still being written"* ]]
	[ "$(ckpt-rotate latest far --step)" = 10 ]
	ends 0
	same 20
	no_debris
}

@test "copy: where directories have no locks, a second one takes the place of the first, which publishes nothing" {
	in=near save 20
	local later=flock:error=EBADF
	stop_at sync_file_range ckpt-rotate copy -q near far
	strace -f -o other -e trace=flock -e inject=flock:error=EBADF ckpt-rotate copy -q near far
	[ "$(stat -c %i far/step-00000020)" ]
	before=$(stat -c %i far/step-00000020)
	ends 0
	[ "$(stat -c %i far/step-00000020)" = "$before" ]
	same 20
	no_debris
}

@test "copy --move leaves the link to a checkpoint that is committed during it" {
	in=near save 10
	ckpt-rotate copy -q near far
	only=latest
	stop_at readlinkat ckpt-rotate copy -q --move --all near far
	in=near save 20
	ends 0
	[ "$(names near)" = "latest step-00000020" ]
	[ "$(readlink near/latest)" = step-00000020 ]
}

@test "copy --move while another prunes the copies: an original without a copy stays, and the code is 75" {
	in=near saves 1 2 3 4
	ckpt-rotate copy -q near far --all
	nth=4 # the newest, twice, the link, the next one
	held renameat "ckpt-rotate prune -q --keep-last 1 far" 75 ckpt-rotate copy --move --all near far
	# Those that were not moved yet are copied again.
	[ "$(in=far steps) $(in=near steps)" = "1 2 4  3 " ]
	grep -q 'another process removed the copy' error
	# And of the originals.
	rm -rf near far
	in=near saves 1 2 3 4
	unset nth
	held renameat "ckpt-rotate prune -q --timeout 0s --keep-last 1 near || :" 0 ckpt-rotate copy -q --move --all near far
	[ "$(ckpt-rotate latest near far --step --verify)" = 4 ]
}

# copy_vanishes [FAULT]: what a view through a cache does: the copy is there when it is read, and goes with the
# original.
copy_vanishes() {
	local later=${1-renameat2:delay_exit=1}
	rm -rf near far away
	in=near saves 10 20
	cp -a near far
	stop_at renameat ckpt-rotate copy -q --move near far
	mv far/step-00000010 away
	go_on
}

@test "copy --move: a copy that vanishes with the original was it, which is given back, or named and not deleted" {
	copy_vanishes
	[ "$code" = 75 ]
	grep -q 'got its name back' error
	ckpt-rotate verify near 10
	copy_vanishes renameat2:error=EIO
	[ "$code" = 75 ]
	gone=$(cd near && echo .gone*)
	grep "cannot rename near/$gone back to step-00000010: Input/output error" error
	ckpt-rotate copy -q --move near far
	[ "$(in=near steps) $(in=far steps)" = "10 20  20 " ]
	ckpt-rotate verify near 10
}

@test "copy: the step appears while it is copied: it is there already, or has other content; nothing is left" {
	in=near save 20
	held sync_file_range "cp -a near/step-00000020 far" 0 ckpt-rotate copy near far
	[ "$(<answer)" = "step-00000020 is there already" ]
	no_debris
	rm -r far
	held sync_file_range 'echo other >"$(ckpt-rotate begin far 20)/model"; ckpt-rotate commit far 20' 1 ckpt-rotate copy near far
	grep -q "other content" error
	no_debris
}
