#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# ckpt-rotate: commit, find and prune checkpoints; a half-written one is never offered.
# takes: 50
# shellcheck disable=SC2154,SC2016,SC2030,SC2031,SC2012,SC2103,SC2164,SC2034
bats_require_minimum_version 1.5.0
load ../support/programs
load ../support/stop_at

setup() {
	PATH=${BIN:-$BATS_TEST_DIRNAME/../../bin}:$PATH
	cd "$BATS_TEST_TMPDIR"
	unset PREEMPT_ATTEMPT PREEMPT_LIFE PREEMPT_TASK PREEMPT_TASKS
	# Leak checks do not work under strace.
	export ASAN_OPTIONS=detect_leaks=0
}

teardown() {
	local pid
	for pid in $(jobs -p) ${stopped-}; do kill -KILL "$pid" 2>/dev/null || :; done
	if [ "${elsewhere-}" ]; then rm -rf "$elsewhere"; fi
	if mountpoint -q "$BATS_TEST_TMPDIR/disk"; then umount -l "$BATS_TEST_TMPDIR/disk"; fi
}

# save STEP [ATTEMPT]: one checkpoint of two files, whose content tells the step.
save() {
	local d
	d=$(ckpt-rotate begin ck "$1" --attempt "${2:-0}") &&
		echo "model of $1" >"$d/model" && mkdir -p "$d/sub" &&
		echo "state of $1" >"$d/sub/state" &&
		[ "$(ckpt-rotate commit ck "$1" --attempt "${2:-0}")" = complete ]
}

# shard COMMAND STEP TASK TASKS [ATTEMPT]: of the life $one.
one=0123456789ab0123456789ab
shard() {
	ckpt-rotate "$1" ck "$2" --sharded --task "$3" --tasks "$4" --attempt "${5:-1}" --life $one
}

steps() {
	ckpt-rotate list --json ck | grep -o '{"step": [0-9]*.*"state": "complete"' |
		grep -o '^{"step": [0-9]*' | grep -o '[0-9]*' | tr '\n' ' '
}

needs_root() { [ "$(id -u)" = 0 ] || skip "needs root"; }

small_disk() { # a filesystem of $1 bytes on ./disk
	needs_root
	mkdir -p disk
	mount -t tmpfs -o "size=$1" ckpt-test disk || skip "cannot mount a tmpfs"
}

@test "a checkpoint is written, committed, found and verified" {
	run -0 ckpt-rotate begin ck 120 --attempt 3
	[ "$output" = ck/.tmp-step-00000120-attempt-3 ]
	echo weights >"$output/model"
	ckpt-rotate commit ck 120 --attempt 3
	[ "$(ckpt-rotate latest ck)" = ck/step-00000120 ]
	[ "$(ckpt-rotate latest ck/ --step)" = 120 ]
	[ "$(ckpt-rotate latest ck --verify)" = ck/step-00000120 ]
	[ "$(cat ck/latest/model)" = weights ]
	[ "$(ls -A ck)" = "$(printf '%s\n' latest step-00000120)" ]
	[ "$(ls -A ck/latest/)" = "$(printf '%s\n' .ckpt-manifest.json model)" ]
	run -0 ckpt-rotate list ck
	[[ ${lines[1]} =~ ^\ +120\ +3\ +1\ +8\ B\ +[0-9]+s\ +complete$ ]]
	run -0 ckpt-rotate verify ck
	[ "$output" = "step-00000120 verified: 1 files, 8 B" ]
}

@test "names with blanks, newlines and bytes that are not UTF-8; hard links" {
	d=$(ckpt-rotate begin ck 1)
	echo 1 >"$d/a b"
	echo 2 >"$d/new"$'\n'"line"
	echo 3 >"$d/"$'not\xffutf8'
	echo 4 >"$d/quote\"back\\slash"
	mkdir -p "$d/-deep/ dir"
	echo 5 >"$d/-deep/ dir/.hidden"
	ln "$d/a b" "$d/linked"
	ckpt-rotate commit ck 1
	[ "$(ckpt-rotate verify ck)" = "step-00000001 verified: 6 files, 12 B" ]
	printf X | dd of="ck/step-00000001/"$'not\xffutf8' conv=notrunc status=none
	run -65 --separate-stderr ckpt-rotate verify ck 1
	rm "ck/step-00000001/new"$'\n'"line"
	run -1 --separate-stderr ckpt-rotate latest ck
	[[ $stderr == *'new\nline is missing'* ]]
}

@test "latest is the highest step, not the last in the alphabet, and the link follows" {
	save 99999999
	save 100000001
	save 5
	[ "$(ckpt-rotate latest ck --step)" = 100000001 ]
	[ "$(readlink ck/latest)" = step-100000001 ]
}

@test "a link or file of the user's called latest stays" {
	mkdir ck
	ln -s /somewhere ck/latest
	run -0 --separate-stderr save 1
	[[ $stderr == *"was not made by ckpt-rotate"* ]]
	[ "$(readlink ck/latest)" = /somewhere ]
	rm ck/latest
	echo mine >ck/latest
	save 2
	[ "$(cat ck/latest)" = mine ]
}

@test "PH-6 a save that writes nothing is not committed and not offered" {
	save 10
	d=$(ckpt-rotate begin ck 20)
	run -1 --separate-stderr ckpt-rotate commit ck 20
	[[ $stderr == *"wrote nothing"* ]]
	: >"$d/empty"
	mkdir "$d/sub"
	run -1 --separate-stderr ckpt-rotate commit ck 20
	[[ $stderr == *"wrote nothing"* ]]
	[ "$(ckpt-rotate latest ck --step)" = 10 ]
	d=$(shard begin 30 0 1)
	run -1 --separate-stderr shard commit 30 0 1
	[[ $stderr == *"wrote nothing"* ]]
}

@test "commit without begin" {
	mkdir ck
	run -1 --separate-stderr ckpt-rotate commit ck 20
	[[ $stderr == *"comes first"* ]]
	ckpt-rotate begin ck 20 --attempt 1
	echo x >ck/.tmp-step-00000020-attempt-1/x
	run -1 --separate-stderr ckpt-rotate commit ck 20 --attempt 2
	[[ $stderr == *"comes first"* ]]
	[ "$(steps)" = "" ]
}

@test "everything is synced before it is published, and the publishing after" {
	d=$(ckpt-rotate begin ck 20)
	mkdir -p "$d/sub/empty"
	echo model >"$d/model"
	echo state >"$d/sub/state"
	strace -f -y -o trace -e trace=fsync,renameat2 ckpt-rotate commit ck 20
	published=$(grep -n 'renameat2(.*step-00000020.*\(= 0\|unfinished\)' trace | cut -d: -f1)
	for path in model sub/state sub sub/empty; do
		synced=$(grep -n "fsync([0-9]*<[^>]*attempt-0/$path>" trace | cut -d: -f1)
		[ "$synced" -lt "$published" ]
	done
	for path in 'attempt-0/.ckpt-manifest.json.[^>]*' 'attempt-0'; do
		synced=$(grep -n "fsync([0-9]*<[^>]*$path>" trace | tail -n 1 | cut -d: -f1)
		[ "$synced" -lt "$published" ]
	done
	[ "$(grep -n "fsync([0-9]*<$PWD/ck>" trace | tail -n 1 | cut -d: -f1)" -gt "$published" ]
	# A shard that waits is as durable as one that publishes.
	d=$(shard begin 30 0 2)
	echo part >"$d/part"
	strace -f -y -o trace -e trace=fsync,rename ckpt-rotate commit ck 30 --sharded --task 0 \
		--tasks 2 --attempt 1 --life $one
	for path in ck/.tmp-step-00000030-attempt-1-life-$one ck; do
		[ "$(grep -n "fsync([0-9]*<$PWD/$path>" trace | tail -n 1 | cut -d: -f1)" -gt \
			"$(grep -n 'rename(.*shard-0' trace | cut -d: -f1)" ]
	done
	grep -q "fsync([0-9]*<[^>]*task-0/part>" trace
	grep -q "fsync([0-9]*<[^>]*task-0>" trace
}

@test "OB-4 saving an existing step is refused and its content stays" {
	save 10
	before=$(stat -c %i ck/step-00000010 ck/step-00000010/model)
	for attempt in 0 1; do
		run -1 --separate-stderr ckpt-rotate begin ck 10 --attempt $attempt
		[[ $stderr == *"saved already"* ]]
	done
	# Begun by an attempt that did not see it: the other content is refused, too.
	mv ck/step-00000010 away
	d=$(ckpt-rotate begin ck 10 --attempt 7)
	echo other >"$d/model"
	mv away ck/step-00000010
	run -1 --separate-stderr ckpt-rotate commit ck 10 --attempt 7
	[[ $stderr == *"other content"* ]]
	[ "$(cat ck/step-00000010/model)" = "model of 10" ]
	[ "$(stat -c %i ck/step-00000010 ck/step-00000010/model)" = "$before" ]
	# The same content is no quarrel, and leaves nothing.
	echo "model of 10" >"$d/model"
	mkdir "$d/sub"
	echo "state of 10" >"$d/sub/state"
	[ "$(ckpt-rotate commit ck 10 --attempt 7)" = complete ]
	[ "$(ls -A ck)" = "$(printf '%s\n' latest step-00000010)" ]
}

@test "commit again after an unknown outcome" {
	save 10 3
	[ "$(ckpt-rotate commit ck 10 --attempt 3)" = complete ]
	run -1 --separate-stderr ckpt-rotate commit ck 10 --attempt 4
	[[ $stderr == *"by attempt 3"* ]]
}

@test "begin again starts over" {
	d=$(ckpt-rotate begin ck 10)
	mkdir "$d/old"
	echo old >"$d/old/file"
	[ "$(ckpt-rotate begin ck 10)" = "$d" ]
	[ "$(ls -A "$d")" = .ckpt-writer.json ]
	save 10
	[ "$(find ck -name 'old*')" = "" ]
}

@test "OB-3 a planted or unfinished temporary directory is never offered, its step can be saved" {
	save 10
	mkdir -p ck/.tmp-step-00000020-attempt-0/sub ck/step-00000020.tmp ck/.tmp-step-20
	echo planted >ck/.tmp-step-00000020-attempt-0/sub/planted
	cp ck/step-00000010/.ckpt-manifest.json ck/.tmp-step-00000020-attempt-0/
	d=$(ckpt-rotate begin ck 30)
	echo half >"$d/model"
	[ "$(ckpt-rotate latest ck --step)" = 10 ]
	[ "$(steps)" = "10 " ]
	save 20
	[ "$(ckpt-rotate latest ck --step --verify)" = 20 ]
	[ ! -e ck/step-00000020/sub/planted ]
	[ -d ck/step-00000020.tmp ]
	[ -d ck/.tmp-step-20 ]
}

@test "what cannot be in a checkpoint is refused" {
	for what in "ln -s /etc/passwd" "ln -s nowhere" mkfifo "mknod -m 600"; do
		d=$(ckpt-rotate begin ck 10)
		echo x >"$d/model"
		mkdir "$d/sub"
		if [ "${what%% *}" = mknod ]; then
			[ "$(id -u)" = 0 ] || continue
			mknod "$d/sub/odd" c 1 3
		else
			$what "$d/sub/odd"
		fi
		run -1 --separate-stderr ckpt-rotate commit ck 10
		[[ $stderr == *"sub/odd is a"*"only files and directories"* ]]
	done
	[ "$(steps)" = "" ]
	rm "$d/sub/odd"
	ckpt-rotate commit ck 10
}

@test "a removed file that is still open, as NFS shows it, is not part of a checkpoint" {
	save 10
	d=$(ckpt-rotate begin ck 20)
	mkdir "$d/sub"
	echo model >"$d/model"
	for name in "$d" "$d/sub"; do echo old >"$name/.nfs0000000000abc12300000001"; done
	# This name was given by a user.
	echo own >"$d/.nfs-settings"
	[ "$(ckpt-rotate commit ck 20)" = complete ]
	# It is closed.
	rm ck/step-00000020/.nfs0* ck/step-00000020/sub/.nfs0*
	[ "$(ckpt-rotate verify ck)" = "step-00000020 verified: 2 files, 10 B" ]
	# A framework's checkpoint of one file in each is not judged by them either.
	for step in 1 2; do mkdir -p out/m-$step && echo x >out/m-$step/x; done
	echo old >out/m-2/.nfs0000000000abc12300000001
	ckpt-rotate copy --pattern 'm-{step}' out far
	[ "$(ls -A far/m-2)" = x ]
}

@test "CK-8 the newest is incomplete or damaged: the one before it is used" {
	save 10
	save 20
	save 30
	save 40
	save 50
	rm ck/step-00000050/model
	echo longer >>ck/step-00000040/sub/state
	printf '{"format": 1, "st' >ck/step-00000030/.ckpt-manifest.json
	run -0 --separate-stderr ckpt-rotate latest ck --step
	[ "$output" = 20 ]
	[[ $stderr == *"step-00000050 is damaged"*"model is missing"* ]]
	[[ $stderr == *"step-00000040 is damaged"*"sub/state has 19 bytes instead of 12"* ]]
	[[ $stderr == *"step-00000030 is damaged"*"manifest is not readable"* ]]
	[ "${#stderr_lines[@]}" = 3 ]
	# Same size, other content: only checksums tell.
	printf M | dd of=ck/step-00000020/model conv=notrunc status=none
	[ "$(ckpt-rotate latest ck --step 2>/dev/null)" = 20 ]
	[ "$(ckpt-rotate latest ck --step --verify 2>/dev/null)" = 10 ]
	run -65 --separate-stderr ckpt-rotate verify ck --all
	[ "${#lines[@]}" = 5 ]
	run -0 ckpt-rotate verify ck 10
	# A damaged step can be saved again.
	save 50
	[ "$(ckpt-rotate latest ck --step --verify)" = 50 ]
	[ "$(find ck -name '.gone*' -o -name '.tmp*')" = "" ]
}

@test "a manifest in the wrong place, of garbage, or of a newer format" {
	save 10
	save 20
	cp -r ck/step-00000010 ck/step-00000030
	run -0 --separate-stderr ckpt-rotate latest ck --step
	[ "$output" = 20 ]
	[[ $stderr == *"its manifest is of step 10"* ]]
	rm -r ck/step-00000030
	m=ck/step-00000020/.ckpt-manifest.json
	cp $m good
	for edit in 's/"model"/"..\/model"/' 's/"model"/"\/model"/' 's/"bytes": 12/"bytes": -12/' \
		's/"bytes": 12/"bytes": "12"/' 's/"step": 20/"step": 20.5/' 's/^{/[/' \
		's/xxh3_128": "../xxh3_128": "/' 's/"files"/"fils"/'; do
		sed "$edit" good >$m
		run -1 cmp -s good $m
		run -0 --separate-stderr ckpt-rotate latest ck --step
		[ "$output" = 10 ]
	done
	for size in 0 1 100 $(($(stat -c %s good) - 4)); do
		head -c "$size" good >$m
		[ "$(ckpt-rotate latest ck --step 2>/dev/null)" = 10 ]
	done
	# Newer: nothing may be concluded, so nothing older is offered either.
	sed 's/"format": 1/"format": 2/' good >$m
	run -65 --separate-stderr ckpt-rotate latest ck --step --or 0
	[ "$output" = "" ]
	[[ $stderr == *newer* ]]
	run -65 --separate-stderr ckpt-rotate begin ck 20
	ckpt-rotate prune --keep-last 1 ck
	[ -d ck/step-00000020 ]
}

@test "latest --or on a first start: task 0 says once that there is none, the other tasks only with -v" {
	local i
	latest() { ckpt-rotate latest "$@" --step --or 0; }
	for i in 0 1 2 3; do [ "$(PREEMPT_TASK=$i latest missing 2>>err)" = 0 ]; done
	[ "$(cat err)" = 'ckpt-rotate: there is no directory missing; the answer is "0" (--or)' ]
	# Below no agent: by the launcher's number. A rank of torchrun below one is a task of its own.
	for i in 0 1 2 3; do PREEMPT_RUN=job OMPI_COMM_WORLD_RANK=$i OMPI_COMM_WORLD_SIZE=4 latest missing; done \
		>/dev/null 2>err
	[ "$(wc -l <err)" = 1 ]
	for i in 0 1 2 3; do PREEMPT_TASK=0 PREEMPT_RANKS=4 LOCAL_RANK=$i latest missing; done >/dev/null 2>err
	[ "$(wc -l <err)" = 1 ]
	PREEMPT_TASK=3 latest missing -v 2>err
	grep -q 'there is no directory missing' err
	# Without --or it is the reason of the exit code, which each task needs.
	PREEMPT_TASK=3 run -1 --separate-stderr ckpt-rotate latest missing
	[[ $stderr = *"there is no directory missing" ]]
}

@test "none is said only where it is certain" {
	run -1 --separate-stderr ckpt-rotate latest missing
	[ "$(ckpt-rotate latest missing --step --or 0)" = 0 ]
	mkdir empty
	run -1 --separate-stderr ckpt-rotate latest empty
	[ "$(ckpt-rotate latest empty --or none)" = none ]
	# A parent that is missing, too; a link to what is unreachable; a file; an unset variable.
	ln -s /nowhere/ck away
	for dir in missing/ck away away/ck; do
		run -75 --separate-stderr ckpt-rotate latest "$dir" --or 0
		[ "$output" = "" ]
	done
	: >file
	run -2 --separate-stderr ckpt-rotate latest file --or 0
	run -2 --separate-stderr ckpt-rotate latest "" --or 0
	[ "$output" = "" ]
	run -1 --separate-stderr ckpt-rotate list missing
	run -75 --separate-stderr ckpt-rotate list missing/ck
	run -75 --separate-stderr ckpt-rotate begin missing/ck 1
	[ ! -e missing ]
}

@test "before the first save: prune and verify --all have nothing to do, and with -q say nothing" {
	mkdir empty
	for directory in missing empty; do
		for layout in auto hf; do
			run -0 --separate-stderr ckpt-rotate prune -q --keep-last 1 --layout "$layout" "$directory"
			[ -z "$output$stderr" ]
		done
	done
	run -0 --separate-stderr ckpt-rotate prune --keep-last 1 missing
	[[ $stderr = *"there is no directory missing, so nothing to prune" ]]
	run -0 --separate-stderr ckpt-rotate prune --json --keep-last 1 missing
	[ "${output//[[:space:]]/}" = "[]" ]
	[ ! -e missing ]
	run -75 --separate-stderr ckpt-rotate prune -q --keep-last 1 missing/ck
	run -0 --separate-stderr ckpt-rotate verify -q --all empty
	[ -z "$output$stderr" ]
	# What is asked for and is not there is said, and 1.
	run -1 --separate-stderr ckpt-rotate verify -q empty
	[[ $stderr = *"there is no checkpoint in empty" ]]
	run -1 --separate-stderr ckpt-rotate verify -q --all missing
	[[ $stderr = *"there is no directory missing" ]]
}

# break_reads DIR: call "latest DIR --step --or 0" with an I/O error at each of its calls that touch
# DIR, its parent or what is in it, and call "judge" for each answer, in $code and $answer.
break_reads() {
	local paths=() path call n
	for path in . "$1" $(find . -path "./$1/*" -printf '%P '); do
		paths+=(-P "$path" -P "$PWD/$path")
	done
	points=0
	for call in newfstatat openat getdents64 read; do
		# (The C library looks at a stream's file, too, and can do without.)
		if [ $call = openat ]; then paths+=(-P /etc/fstab); fi
		for ((n = 1; n < 80; n++)); do
			code=0
			answer=$(strace -f -o trace "${paths[@]}" -e trace=$call \
				-e inject=$call:error=EIO:when=$n \
				ckpt-rotate latest "$1" --step --or 0 2>/dev/null) || code=$?
			grep -q INJECTED trace || break
			points=$((points + 1))
			judge || { cat trace >&2; return 1; }
		done
	done
	echo "# $points calls failed" >&3
}

@test "an I/O error at any call never gives none, nor an older checkpoint" {
	save 10
	save 20
	# Some errors hurt nothing: the answer is right or there is none.
	judge() { [ "$code $answer" = "0 20" ] || [ "$code $answer" = "75 " ]; }
	break_reads ck
	[ $points -gt 8 ]
	mkdir empty
	judge() { [ "$code $answer" = "75 " ]; }
	break_reads empty
	[ $points -gt 4 ]
	break_reads missing
	[ $points -gt 2 ]
}

@test "a directory that may not be read: 77, and no word of none" {
	needs_root
	save 10
	# Where another user may come, too.
	elsewhere=$(mktemp -d /tmp/ckpt-test.XXXXXX)
	chmod 755 "$elsewhere"
	install -m 755 "$(command -v ckpt-rotate)" "$elsewhere"
	cp -r ck "$elsewhere/ck"
	cd "$elsewhere"
	as_nobody() { setpriv --reuid 65534 --clear-groups ./ckpt-rotate "$@"; }
	chmod 700 ck
	run -77 --separate-stderr as_nobody latest ck --or 0
	[ "$output" = "" ]
	chmod 755 ck
	chmod 700 ck/step-00000010
	run -77 --separate-stderr as_nobody latest ck --or 0
	[ "$output" = "" ]
	chmod 755 ck/step-00000010
	run -77 --separate-stderr as_nobody begin ck 20
	cd "$BATS_TEST_TMPDIR"
}

@test "a read-only filesystem: 77, and what is present is still found" {
	small_disk 4m
	cd disk
	save 9
	save 10
	d=$(ckpt-rotate begin ck 20)
	echo x >"$d/x"
	mount -o remount,ro .
	[ "$(ckpt-rotate latest ck --step --verify)" = 10 ]
	run -77 --separate-stderr ckpt-rotate begin ck 30
	run -77 --separate-stderr ckpt-rotate commit ck 20
	run -77 --separate-stderr ckpt-rotate prune --keep-last 1 ck
	mount -o remount,rw .
	[ "$(ckpt-rotate commit ck 20)" = complete ]
	cd ..
}

@test "a full disk: 75, nothing is published, and a rerun finishes" {
	small_disk 256k
	cd disk
	save 10
	d=$(ckpt-rotate begin ck 20)
	echo model >"$d/model"
	head -c 1m /dev/zero >filler 2>/dev/null || :
	run -75 --separate-stderr ckpt-rotate commit ck 20
	[[ $stderr == *"No space left"* ]]
	[ "$(ckpt-rotate latest ck --step --verify)" = 10 ]
	run -75 --separate-stderr ckpt-rotate begin ck 30
	rm filler
	[ "$(ckpt-rotate commit ck 20)" = complete ]
	save 30
	[ "$(ckpt-rotate latest ck --step --verify)" = 30 ]
	[ "$(find ck -name '.latest*' -o -name '.tmp*' -o -name '*.json.*')" = "" ]
	cd ..
}

# stop_before_rename PATH COMMAND...: start a command that stops itself when it has looked at PATH for
# the last time before it renames it away; a first run, on a copy, tells which look that is.
stop_before_rename() {
	local renamed=$1 nth
	shift
	cp -a ck template
	strace -f -o trace -e trace=newfstatat,renameat "$@"
	nth=$(($(grep -n -m 1 "renameat([0-9]*, \"${renamed##*/}\"" trace | cut -d: -f1) - 1))
	rm -r ck
	mv template ck
	stop_at newfstatat "$@"
	[ -e "$renamed" ]
}

@test "a file that changes, appears or vanishes while it is committed" {
	save 10
	for change in "echo more >>model" "touch -d 2001-01-01 model" "echo new >new" "rm model" \
		"mv sub/state state" "cp model copy; mv copy model"; do
		d=$(ckpt-rotate begin ck 20)
		mkdir "$d/sub"
		head -c 300000 /dev/zero >"$d/model"
		echo 12345 >"$d/sub/state"
		stop_at sync_file_range ckpt-rotate commit ck 20
		(cd "$d" && eval "$change")
		go_on
		[ "$code" = 1 ]
		grep -q 'changed\|missing\|vanished' error
		[ "$(ckpt-rotate latest ck --step)" = 10 ]
	done
	ckpt-rotate commit ck 20
	[ "$(ckpt-rotate verify ck)" != "" ]
}

@test "the directory vanishes in the middle of a commit" {
	d=$(ckpt-rotate begin ck 20)
	head -c 300000 /dev/zero >"$d/model"
	stop_at sync_file_range ckpt-rotate commit ck 20
	mv ck away
	go_on
	[ "$code" = 75 ]
	run -1 --separate-stderr ckpt-rotate latest away
	mv away ck
	[ "$(ckpt-rotate commit ck 20)" = complete ]
}

# The calls of the commands under test that change a filesystem. (A file is made by openat, which
# the loader calls, too; right after it comes fchmod or write.)
changing="mkdir fchmod write sync_file_range fsync rename renameat renameat2 symlinkat unlinkat rmdir"

# sweep LEAST COMMAND...: kill COMMAND at each of its calls that change the filesystem, each time
# from the state in ./template, and check that the newest is whole and at least LEAST; then call
# "rerun", which must finish the job.
sweep() {
	local least=$1 call n now points=0
	shift
	for call in $changing; do
		for ((n = 1; n < 300; n++)); do
			rm -rf ck
			cp -a template ck
			run --separate-stderr strace -f -o trace -e trace="$call" \
				-e inject="$call:signal=KILL:when=$n" "$@"
			if [ "$status" != 137 ]; then break; fi
			points=$((points + 1))
			now=$(ckpt-rotate latest ck --step --verify) || return 1
			[ "$now" -ge "$least" ] || return 1
			rerun || { echo "# rerun failed after $call $n" >&2; return 1; }
		done
	done
	echo "# killed at $points calls" >&3
	[ $points -gt 5 ]
}

# no_debris STEP: nothing but what is meant to be there.
no_debris() {
	[ "$(find ck -name '.tmp*' -o -name '.gone*' -o -name '.latest*' -o -name '.ckpt-writer*' \
		-o -name '.ckpt-shard*' -o -name '*.json.*')" = "" ] &&
		[ "$(readlink ck/latest)" = "step-000000$1" ] &&
		[ "$(ckpt-rotate latest ck --step --verify)" = "$1" ]
}

@test "kill -9 at every call of begin" {
	save 10
	d=$(ckpt-rotate begin ck 20)
	mkdir -p "$d/old/x"
	echo old >"$d/old/x/file"
	mv ck template
	rerun() { save 20 && no_debris 20 && [ ! -e ck/step-00000020/old ]; }
	sweep 10 ckpt-rotate begin ck 20
}

@test "kill -9 at every call of begin where a dead writer left something" {
	save 10
	setsid bash -c 'd=$(ckpt-rotate begin ck 20); mkdir -p "$d/old/x"; echo old >"$d/old/x/file"'
	mv ck template
	rerun() { save 20 && no_debris 20 && [ ! -e ck/step-00000020/old ]; }
	sweep 10 ckpt-rotate begin ck 20
}

@test "kill -9 at every call of begin of the first checkpoint" {
	rerun() { save 20 && no_debris 20; }
	for call in mkdir fchmod write fsync rename; do
		for ((n = 1; n < 20; n++)); do
			rm -rf ck
			run strace -o trace -e trace=$call -e inject=$call:signal=KILL:when=$n \
				ckpt-rotate begin ck 20
			if [ "$status" != 137 ]; then break; fi
			run -1 ckpt-rotate latest ck
			rerun
		done
	done
}

@test "kill -9 at every call of commit" {
	save 10
	d=$(ckpt-rotate begin ck 20)
	mkdir "$d/sub"
	echo model >"$d/model"
	echo state >"$d/sub/state"
	mv ck template
	rerun() { [ "$(ckpt-rotate commit ck 20)" = complete ] && no_debris 20; }
	sweep 10 ckpt-rotate commit ck 20
}

@test "kill -9 at every call of a commit in the place of a damaged checkpoint" {
	save 10
	save 20
	rm ck/step-00000020/model
	d=$(ckpt-rotate begin ck 20)
	echo model >"$d/model"
	mv ck template
	rerun() { [ "$(ckpt-rotate commit ck 20)" = complete ] && no_debris 20; }
	sweep 10 ckpt-rotate commit ck 20
}

@test "kill -9 at every call of the commit of the last shard" {
	save 10
	for task in 0 1 2; do
		d=$(shard begin 20 $task 3)
		echo "shard $task" >"$d/part"
	done
	[ "$(shard commit 20 0 3)" = "waiting for 2 of 3" ]
	[ "$(shard commit 20 2 3)" = "waiting for 1 of 3" ]
	mv ck template
	rerun() { [ "$(shard commit 20 1 3)" = complete ] && no_debris 20; }
	sweep 10 ckpt-rotate commit ck 20 --sharded --task 1 --tasks 3 --attempt 1 --life $one
}

@test "kill -9 at every call of prune" {
	for step in 10 20 30 40; do save $step; done
	rm ck/step-00000040/model
	setsid bash -c 'd=$(ckpt-rotate begin ck 50); for f in a b c d e f; do echo x >"$d/$f"; done'
	mv ck template
	rerun() {
		ckpt-rotate prune -q --keep-last 1 ck &&
			[ "$(find ck -name '.tmp*' -o -name '.gone*')" = "" ] &&
			[ "$(ckpt-rotate latest ck --step --verify 2>/dev/null)" = 30 ] &&
			[ "$(ls ck)" = "$(printf '%s\n' latest step-00000030 step-00000040)" ]
	}
	sweep 30 ckpt-rotate prune --keep-last 1 ck
}

@test "nothing that was renamed away is deleted before the directory is synced, nor when that fails" {
	local fails=(-f -o trace -e "trace=fsync,unlinkat" -e inject=fsync:error=EIO)
	for step in 10 20 30; do save $step; done
	run -75 --separate-stderr strace "${fails[@]}" ckpt-rotate prune --keep-last 1 ck
	[[ $output == *FAILED*FAILED* && $stderr == *"cannot sync directory ck"* ]]
	# What another one left, too: the next prune, and the commit of the same step.
	run -75 --separate-stderr strace "${fails[@]}" ckpt-rotate prune --keep-last 1 ck
	run ! grep unlinkat trace
	[ "$(find ck -name '.gone*' | wc -l)" = 2 ]
	d=$(ckpt-rotate begin ck 10)
	echo new >"$d/model"
	for call in "commit ck 10" "prune -q --keep-last 2 ck"; do
		eval "strace -f -y -o trace -e trace=fsync,renameat2,unlinkat ckpt-rotate $call"
		grep -q 'unlinkat(.*gone-' trace
		awk '/unlinkat\(.*gone-/ {exit !synced} /renameat2/ {synced = 0} /fsync\([0-9]*<[^>]*\/ck>/ {synced = 1}' trace
	done
	[ "$(find ck -name '.gone*')" = "" ]
}

@test "prune of what a dead writer left and its commit, at once: never both" {
	save 10
	setsid bash -c 'd=$(ckpt-rotate begin ck 20) && echo model >"$d/model" && echo x >"$d/x"'
	# The pruner has decided, and is held at the first deletion.
	stop_at unlinkat ckpt-rotate prune -q --keep-last 2 ck
	run -75 --separate-stderr ckpt-rotate commit ck 20
	[[ $stderr == *"a prune or a copy is at work in ck/.tmp-step-00000020-attempt-0; try again" ]]
	go_on
	[ "$code" = 0 ]
	run -1 --separate-stderr ckpt-rotate commit ck 20
	no_debris 10
	# The other way round: the commit stands.
	setsid bash -c 'd=$(ckpt-rotate begin ck 20) && echo model >"$d/model"'
	stop_at fsync ckpt-rotate commit ck 20
	ckpt-rotate prune -q --keep-last 2 ck
	go_on
	[ "$(cat answer)" = complete ]
	no_debris 20
}

# taken_by_mistake INJECTION: a pruner that is about to rename the damaged step 20 away gets the new
# one that was committed in that moment.
taken_by_mistake() {
	local later=$1
	rm -rf ck
	for step in 10 20 30; do save $step; done
	rm ck/step-00000020/model
	d=$(ckpt-rotate begin ck 20)
	echo new >"$d/model"
	stop_before_rename ck/step-00000020 ckpt-rotate prune -q --keep-last 1 --keep-step 10 ck
	[ "$(ckpt-rotate commit ck 20)" = complete ]
	go_on
	grep -q 'renameat2.*INJECTED\|killed by SIGKILL' trace
}

@test "prune renames away what was just committed: it is given back, whatever the filesystem knows" {
	# NFS knows no RENAME_NOREPLACE.
	taken_by_mistake renameat2:error=EINVAL
	ckpt-rotate verify -q ck 20
	# Killed before it could: the next one, of whatever kind, does it.
	taken_by_mistake renameat2:signal=KILL:when=1
	[ ! -e ck/step-00000020 ]
	ckpt-rotate prune -q --keep-last 3 ck
	ckpt-rotate verify -q ck 20
	[ "$(find ck -name '.gone*')" = "" ]
}

@test "prune that cannot give back what was just committed: 75, it names it, and does not delete it" {
	taken_by_mistake renameat2:error=EIO
	[ "$code" = 75 ]
	local gone
	gone=$(cd ck && echo .gone*)
	grep "cannot give back $gone: Input/output error" error
	[ "$(<"ck/$gone/model")" = new ]
	mv "ck/$gone" ck/step-00000020
	ckpt-rotate verify -q --all ck
}

@test "prune that is killed when it finds a pin: the pinned one is given back by the next" {
	for step in 10 20 30; do save $step; done
	local later=renameat2:signal=KILL:when=1
	stop_before_rename ck/step-00000010 ckpt-rotate prune -q --keep-last 2 ck
	ckpt-rotate pin ck 10
	go_on
	grep -q 'killed by SIGKILL' trace
	[ ! -e ck/step-00000010 ]
	ckpt-rotate prune -q --keep-last 1 ck
	[ "$(cd ck && echo step-*)" = "step-00000010 step-00000030" ]
	ckpt-rotate verify -q --all ck
}

@test "sharded: complete only when all are committed, whichever process is last" {
	save 10 1
	for task in 0 1 2 3; do
		[ "$(shard begin 20 $task 4)" = ck/.tmp-step-00000020-attempt-1-life-$one/task-$task ]
		echo "shard $task" >ck/.tmp-step-00000020-attempt-1-life-$one/task-$task/part
	done
	[ "$(shard commit 20 3 4)" = "waiting for 3 of 4" ]
	[ "$(shard commit 20 0 4)" = "waiting for 2 of 4" ]
	[ "$(shard commit 20 0 4)" = "waiting for 2 of 4" ]
	run -0 ckpt-rotate list ck
	[[ ${lines[2]} == *"incomplete: missing 2 of 4 tasks: 1, 2; life $one; its writer runs" ]]
	[ "$(ckpt-rotate latest ck --step)" = 10 ]
	# A task that begins again empties its own place and no other.
	echo half >ck/.tmp-step-00000020-attempt-1-life-$one/task-1/half
	shard begin 20 1 4
	echo "shard 1" >ck/.tmp-step-00000020-attempt-1-life-$one/task-1/part
	[ "$(shard commit 20 1 4)" = "waiting for 1 of 4" ]
	[ "$(shard commit 20 2 4)" = complete ]
	for task in 0 1 2 3; do
		[ "$(cat ck/step-00000020/task-$task/part)" = "shard $task" ]
		[ "$(shard commit 20 $task 4)" = complete ]
	done
	no_debris 20
	[ "$(ckpt-rotate verify ck)" = "step-00000020 verified: 4 files, 32 B" ]
}

@test "sharded: what does not fit together is refused" {
	shard begin 20 0 2
	echo x >ck/.tmp-step-00000020-attempt-1-life-$one/task-0/x
	run -2 --separate-stderr ckpt-rotate commit ck 20 --attempt 1 --life $one
	run -2 --separate-stderr shard commit 20 0 3
	run -2 --separate-stderr shard begin 20 1 3
	run -2 --separate-stderr shard commit 20 2 2
	run -2 --separate-stderr ckpt-rotate commit ck 20 --sharded --attempt 1 --life $one
	run -2 --separate-stderr ckpt-rotate begin ck 20 --sharded --task 0 --tasks 2
	[[ $stderr == *"--attempt"* ]]
	[ "$(shard commit 20 0 2)" = "waiting for 1 of 2" ]
	# Committed is committed: not changed.
	echo more >>ck/.tmp-step-00000020-attempt-1-life-$one/task-0/x
	run -1 --separate-stderr shard commit 20 0 2
	[[ $stderr == *"changed since"* ]]
	echo x >ck/.tmp-step-00000020-attempt-1-life-$one/task-0/x
	# Shards of two attempts never mix.
	d=$(shard begin 20 1 2 2)
	echo y >"$d/y"
	[ "$(shard commit 20 1 2 2)" = "waiting for 1 of 2" ]
	# Something outside of the tasks' places.
	d=$(shard begin 20 1 2)
	echo y >"$d/y"
	echo stray >"$d/../stray"
	run -1 --separate-stderr shard commit 20 1 2
	[[ $stderr == *"outside of the tasks' own directories"* ]]
	rm "$d/../stray"
	[ "$(shard commit 20 1 2)" = complete ]
}

# A periodic save and an agreed one may be of one step.
@test "a step that this start has saved is saved again: yes, and the first content stays" {
	mine() { ckpt-rotate "$1" ck "$2" --attempt 1 --life $one; }
	d=$(mine begin 10)
	echo first >"$d/w"
	[ "$(mine commit 10)" = complete ]
	before=$(stat -c %i ck/step-00000010 ck/step-00000010/w)
	d=$(mine begin 10)
	echo second >"$d/w"
	[ "$(ckpt-rotate latest ck --step)" = 10 ]
	[ "$(mine commit 10)" = complete ]
	[ "$(mine commit 10)" = complete ]
	no_debris 10
	[ "$(cat ck/step-00000010/w)" = first ]
	[ "$(stat -c %i ck/step-00000010 ck/step-00000010/w)" = "$before" ]
	# One that is never committed is what any killed writer leaves.
	d=$(mine begin 10)
	echo third >"$d/w"
	[[ $(ckpt-rotate list ck) == *"which is discarded"* ]]
	d=$(mine begin 10)
	[ ! -e "$d/w" ]
	[ "$(mine commit 10)" = complete ]
	no_debris 10
	# Marked as bad, it is saved again.
	ckpt-rotate mark -q ck 10 bad
	d=$(mine begin 10)
	echo fourth >"$d/w"
	[ "$(mine commit 10)" = complete ]
	[ "$(cat ck/step-00000010/w)" = fourth ]
	# Another start, one of another life, and one without a life, did not save it.
	for other in "2 --life $one" "1 --life ba98765432100123456789ab" 1; do
		# shellcheck disable=SC2086
		run -1 --separate-stderr ckpt-rotate begin ck 10 --attempt $other
		[[ $stderr == *"saved already"* ]]
	done
}

@test "sharded: a shard that this start has committed is committed again: yes, and the first one stays" {
	d=$(shard begin 20 0 2)
	echo first >"$d/w"
	[ "$(shard commit 20 0 2)" = "waiting for 1 of 2" ]
	d=$(shard begin 20 0 2)
	echo second >"$d/w"
	[ "$(shard commit 20 0 2)" = "waiting for 1 of 2" ]
	d=$(shard begin 20 0 2)
	echo third >"$d/w"
	other=$(shard begin 20 1 2)
	echo other >"$other/w"
	[ "$(shard commit 20 1 2)" = complete ]
	# It was begun before that, and is committed after it.
	[ "$(shard commit 20 0 2)" = complete ]
	d=$(shard begin 20 1 2)
	echo more >"$d/w"
	[ "$(shard commit 20 1 2)" = complete ]
	no_debris 20
	[ "$(cat ck/step-00000020/task-0/w ck/step-00000020/task-1/w | tr '\n' ' ')" = "first other " ]
	run -1 --separate-stderr shard begin 20 0 2 2
}

@test "preempted exactly at a periodic save: it is one save, and the job leaves with 42" {
	cat >train.sh <<-'END'
		. "$CLIENT"
		save() { d=$(ckpt-rotate begin ck $1 $how) && echo $1 >"$d/w" && ckpt-rotate commit -q ck $1 $how; }
		for ((s = 0; s < 600; s++)); do
			((s == 0)) || save $s || exit
			preempt_step $s || { save $s && preempt_saved $s; } || exit
			[ $s != 3 ] || kill -TERM "$(cat agent)"
			sleep 0.1
		done
	END
	for how in "" --sharded; do
		rm -rf ck
		export how CLIENT=$BATS_TEST_DIRNAME/../../lib/client/preempt.sh PREEMPT_STORE=$PWD/run.db
		run -42 --separate-stderr bash -c 'echo $$ >agent; exec preempt-run --run "one$how" --grace 60s -- bash train.sh'
		[[ $stderr == *"is saved and complete: run me again (42)"* ]]
		[ "$(ckpt-rotate latest ck --step)" -gt 2 ]
	done
}

# A job of two tasks in which only task $2 saves step 20 before the job is lost.
lost_job() {
	run -0 --separate-stderr preempt-run --run "$1" -n 2 -- bash -c '
		[ "$PREEMPT_TASK" = "$1" ] || exit 0
		d=$(ckpt-rotate begin ck 20 --sharded) && echo "$PREEMPT_RUN" >"$d/part" &&
			ckpt-rotate commit ck 20 --sharded' - "$2"
}

@test "shards of two jobs never make one checkpoint: list names what they left, prune removes it" {
	export XDG_STATE_HOME=$PWD/state
	save 10
	lost_job slurm-71 0
	[ "$output" = "waiting for 1 of 2" ]
	lost_job slurm-72 1
	[ "$output" = "waiting for 1 of 2" ]
	[ "$(ckpt-rotate latest ck --step)" = 10 ]
	run -0 ckpt-rotate list ck
	[ "${#lines[@]}" = 4 ]
	[[ $output == *"20       1     2 "*"incomplete: missing 1 of 2 tasks: 1; life "*"; its writer is gone"* ]]
	[[ $output == *"20       1     2 "*"incomplete: missing 1 of 2 tasks: 0; life "*"; its writer is gone"* ]]
	[ "$(ckpt-rotate list --json ck | grep -o '"life": "[0-9a-f]*"' | sort -u | wc -l)" = 2 ]
	# Its other task may begin yet.
	run -0 ckpt-rotate prune --keep-last 1 ck
	[ "$(grep -c "kept: a task has not begun, and no newer one is complete" <<<"$output")" = 2 ]
	# A whole job saves it.
	run -0 preempt-run --run slurm-73 -n 2 -- bash -c '
		d=$(ckpt-rotate begin ck 20 --sharded) && echo "$PREEMPT_RUN" >"$d/part" &&
			ckpt-rotate commit -q ck 20 --sharded --timeout 60s'
	[ "$(cat ck/step-00000020/task-*/part | sort -u)" = slurm-73 ]
	ckpt-rotate prune -q --keep-last 1 ck
	no_debris 20
	ckpt-rotate verify -q ck
}

@test "a shard's record of another life or attempt makes nothing complete" {
	local two=ba98765432100123456789ab other
	for task in 0 1; do
		d=$(shard begin 20 $task 2)
		echo "$task" >"$d/part"
	done
	shard commit 20 0 2
	for other in "s/$one/$two/" 's/"attempt": 1/"attempt": 2/' 's/"life": "[0-9a-f]*", //'; do
		cp ck/.tmp-step-00000020-attempt-1-life-$one/.ckpt-shard-0.json kept
		sed -i "$other" ck/.tmp-step-00000020-attempt-1-life-$one/.ckpt-shard-0.json
		run -1 --separate-stderr shard commit 20 1 2
		[[ $stderr == *"task 0"*"is of another start"* ]]
		run -1 --separate-stderr shard commit 20 0 2
		[[ $stderr == *"another start's shard"* ]]
		mv kept ck/.tmp-step-00000020-attempt-1-life-$one/.ckpt-shard-0.json
	done
	[ "$(shard commit 20 1 2)" = complete ]
	grep -q "\"life\": \"$one\"" ck/step-00000020/.ckpt-manifest.json
	# The same attempt of another life has not saved this.
	run -1 --separate-stderr ckpt-rotate commit ck 20 --sharded --task 0 --tasks 2 --attempt 1 --life $two
	[[ $stderr == *"saved already in ck/step-00000020 by attempt 1 of life $one"* ]]
	# Nor is a manifest right whose life is none.
	sed -i "s/$one/${one}0/" ck/step-00000020/.ckpt-manifest.json
	run -1 ckpt-rotate latest ck
}

@test "sharded: refused where nothing tells this start from others; the cure helps" {
	run -2 --separate-stderr env -u SLURM_JOB_ID -u TORCHELASTIC_RUN_ID \
		ckpt-rotate begin ck 20 --sharded --task 0 --tasks 2 --attempt 1
	[ "${#stderr_lines[@]}" = 1 ]
	[[ $stderr == *"use preempt-run"*'PREEMPT_LIFE=$(uuidgen)'* ]]
	[ ! -e ck ]
	PREEMPT_LIFE="any word" run -0 ckpt-rotate begin ck 20 --sharded --task 0 --tasks 2 --attempt 1
}

@test "a checkpoint of version 0.1.0, and what was being written then" {
	save 10 1
	run -1 grep life ck/step-00000010/.ckpt-manifest.json
	mkdir -p ck/.tmp-step-00000020-attempt-1/task-0
	cp ck/step-00000010/.ckpt-manifest.json ck/.tmp-step-00000020-attempt-1/.ckpt-shard-0.json
	[ "$(ckpt-rotate latest ck --verify)" = ck/step-00000010 ]
	# Nothing of it comes into what is written now.
	d=$(shard begin 20 1 2)
	echo x >"$d/part"
	[ "$(shard commit 20 1 2)" = "waiting for 1 of 2" ]
	run -0 ckpt-rotate list ck
	[ "${#lines[@]}" = 4 ]
}

@test "a pruner that comes while a begin writes its record: it is begun all the same" {
	save 10
	stop_at fchmod ckpt-rotate begin ck 20
	[ "$(find ck/.tmp* -name ".ckpt-writer.json.*" | wc -l)" = 1 ]
	ckpt-rotate prune -q --keep-last 1 ck
	no_debris 10
	go_on
	[ "$code" = 0 ]
	echo x >"$(cat answer)/part"
	[ "$(ckpt-rotate commit ck 20)" = complete ]
}

@test "a begin whose record is slow to become durable lives for a pruner" {
	save 10
	stop_at fsync ckpt-rotate begin ck 20
	ckpt-rotate prune -q --keep-last 1 ck
	[ "$(ls ck/.tmp*/.ckpt-writer.json)" ]
	go_on
	[ "$code" = 0 ]
}

@test "ten tasks commit at once, twenty times: complete exactly once each" {
	export PREEMPT_ATTEMPT=1 PREEMPT_TASKS=10 PREEMPT_LIFE=$one
	for ((step = 10; step < 30; step++)); do
		for ((task = 0; task < 10; task++)); do
			d=$(ckpt-rotate begin ck $step --sharded --task $task)
			echo "$step $task" >"$d/part"
		done
		inode=$(stat -c %i "${d%/*}")
		pids=()
		for ((task = 0; task < 10; task++)); do
			ckpt-rotate commit ck $step --sharded --task $task >answer.$task 3>&- &
			pids+=($!)
		done
		for pid in "${pids[@]}"; do wait "$pid"; done
		grep -q '^complete$' answer.*
		run -1 grep -v '^complete$\|^waiting for [1-9] of 10$' answer.*
		[ "$(stat -c %i "ck/step-000000$step")" = "$inode" ]
		no_debris $step
	done
	[ "$(ckpt-rotate verify --all ck | grep -c 'verified: 10 files')" = 20 ]
}

@test "prune keeps the last N complete ones; damaged ones do not count" {
	for step in 10 20 30 40 50; do save $step; done
	rm ck/step-00000040/model ck/step-00000010/model
	run -0 --separate-stderr ckpt-rotate prune --keep-last 2 --now @4000000000 --dry-run ck
	[ "${#lines[@]}" = 6 ]
	[[ ${lines[1]} == *"removed: "*"damaged"* && ${lines[2]} == *"removed: "*"2 newer ones are complete"* ]]
	[[ ${lines[3]} == *"kept: "*"one of the last 2"* && ${lines[4]} == *"kept: "*damaged* ]]
	[[ ${lines[5]} == *"kept: "*"newest"* ]]
	[[ $stderr == *"nothing was removed"* ]]
	[ "$(ls ck | wc -l)" = 6 ]
	# The real run prints the same table.
	said=$output
	run -0 --separate-stderr ckpt-rotate prune --keep-last 2 --now @4000000000 ck
	[ "$output" = "$said" ]
	[ "$stderr" = "" ]
	[ "$(ls ck | tr '\n' ' ')" = "latest step-00000030 step-00000040 step-00000050 " ]
	run -0 --separate-stderr ckpt-rotate prune -q --keep-last 1 ck
	[ "$output$stderr" = "" ]
	[ "$(ls ck | tr '\n' ' ')" = "latest step-00000050 " ]
}

@test "prune never removes the newest complete one, nor the one committed last" {
	save 10
	ckpt-rotate prune --keep-last 1 ck
	[ "$(steps)" = "10 " ]
	for step in 200 210 220; do save $step; done
	# The run was set back to an earlier step.
	save 100
	ckpt-rotate prune --keep-last 1 ck
	[ "$(steps)" = "100 220 " ]
	rm ck/step-*/model
	ckpt-rotate prune --keep-last 1 ck
	[ "$(ls ck | wc -l)" = 3 ]
}

@test "prune refuses a number that cannot be meant" {
	save 10
	save 20
	for n in 0 -1 -- "" x 1x " 1" 0x1 1.5 18446744073709551616 99999999999999999999 10000000000; do
		run -2 --separate-stderr ckpt-rotate prune ck --keep-last "$n"
		[ "${#stderr_lines[@]}" = 1 ]
	done
	run -2 --separate-stderr ckpt-rotate prune ck
	[[ $stderr == *"--keep-last"* ]]
	[ "$(steps)" = "10 20 " ]
	ckpt-rotate prune ck --keep-last 1000000000
	[ "$(steps)" = "10 20 " ]
}

@test "prune: what a link in DIR leads to, or into, stays, and no link is left dangling" {
	local link
	for link in step-00000010 ../ck/step-00000010 "$PWD/ck/step-00000010" step-00000010/sub/state; do
		rm -rf ck
		for step in 10 20 30; do save $step; done
		mkdir -p ck/other
		ln -s "$link" ck/best
		ln -s best ck/second
		# These lead to nothing of DIR's.
		ln -s . ck/here
		ln -s .. ck/up
		ln -s / ck/top
		ln -s loop ck/loop
		ln -s nowhere ck/dangling
		run -0 --separate-stderr ckpt-rotate prune --keep-last 1 ck
		[[ $output == *"kept: a symbolic link leads to it"* ]]
		[ "$(steps)" = "10 30 " ]
		[ -e ck/best ]
		rm ck/best
		ckpt-rotate prune -q --keep-last 1 ck
		[ "$(steps)" = "30 " ]
	done
}

@test "CK-9 foreign files are never touched" {
	for step in 10 20 30; do save $step; done
	mkdir -p ck/step-40 ck/step-00000005 ck/checkpoint-500 ck/.tmp-mine ck/.gone-mine \
		ck/.gone-0123456789abcdef-mine ck/step-00000001.bak
	for dir in ck/step-40 ck/step-00000005 ck/checkpoint-500 ck/.tmp-mine; do echo mine >$dir/model; done
	echo mine >ck/notes.txt
	echo mine >ck/step-00000007
	ln -s /etc ck/step-00000008
	ln -s notes.txt ck/best
	find ck -not -path 'ck/step-000000[123]0*' -not -name latest | sort >before
	run -0 --separate-stderr ckpt-rotate prune --keep-last 1 ck
	find ck -not -path 'ck/step-000000[123]0*' -not -name latest | sort | diff before -
	[ "$(steps)" = "30 " ]
	[ "$(ckpt-rotate latest ck --step 2>/dev/null)" = 30 ]
	# Nor are checkpoints offered where another file has the name of a save.
	for step in 5 7 8; do
		run -1 --separate-stderr ckpt-rotate begin ck $step
		[[ $stderr == *"is not a checkpoint of ours"* ]]
	done
	[ "$(cat ck/step-00000005/model)" = mine ]
}

@test "prune leaves what a living writer writes and removes what a dead one left" {
	save 10
	d=$(ckpt-rotate begin ck 20)
	echo half >"$d/model"
	mkfifo go
	setsid bash -c 'd=$(ckpt-rotate begin ck 30); echo half >"$d/model"; : >begun; read -r _ <go' 3>&- &
	other=$!
	until_true 10 test -e begun
	run -0 ckpt-rotate prune --keep-last 1 ck
	[ "$(grep -c 'kept: being written' <<<"$output")" = 2 ]
	[ -e ck/.tmp-step-00000030-attempt-0/model ]
	echo >go
	wait $other
	run -0 ckpt-rotate prune --keep-last 1 ck
	[[ ${lines[3]} == *"removed: "*"writer is gone"* ]]
	[ ! -e ck/.tmp-step-00000030-attempt-0 ]
	[ -e "$d/model" ]
	[ "$(ckpt-rotate commit ck 20)" = complete ]
}

@test "prune keeps what is written elsewhere until a later attempt has saved" {
	save 10 3
	ckpt-rotate begin ck 20 --attempt 3
	record=ck/.tmp-step-00000020-attempt-3/.ckpt-writer.json
	sed -i 's/"host":"[^"]*"/"host":"othernode"/; s/"boot":"[^"]*"/"boot":"00000000-0"/' $record
	run -0 ckpt-rotate list ck
	[[ ${lines[2]} == *"cannot be checked from here" ]]
	ckpt-rotate prune --keep-last 9 ck
	[ -e $record ]
	save 15 4
	run -0 ckpt-rotate prune --keep-last 9 ck
	[[ ${lines[3]} == *"removed: "*"attempt 4 has saved since"* ]]
	[ ! -e ck/.tmp-step-00000020-attempt-3 ]
	# Attempts of another run's lives do not follow on its own.
	PREEMPT_LIFE=$one ckpt-rotate begin ck 20 --attempt 3
	sed -i 's/"host":"[^"]*"/"host":"othernode"/; s/"boot":"[^"]*"/"boot":"00000000-0"/' \
		ck/.tmp-step-00000020-attempt-3-life-$one/.ckpt-writer.json
	run -0 ckpt-rotate prune --keep-last 9 ck
	[[ ${lines[3]} == *"kept: "*"cannot be checked from here" ]]
	PREEMPT_LIFE=ba9876543210000000000000 save 16 4
	ckpt-rotate prune --keep-last 9 ck
	[ -e ck/.tmp-step-00000020-attempt-3-life-$one ]
	PREEMPT_LIFE=${one::12}000000000000 save 17 4
	ckpt-rotate prune --keep-last 9 ck
	[ ! -e ck/.tmp-step-00000020-attempt-3-life-$one ]
	rm -r ck/step-0000001[67]
	# A copy of what attempt 3 had saved may well be made after attempt 4.
	ckpt-rotate begin ck 20 --attempt 3
	sed -i 's/"host":"[^"]*"/"host":"othernode"/; s/"boot":"[^"]*"/"boot":"00000000-0"/' $record
	cp ck/step-00000010/.ckpt-manifest.json ck/.tmp-step-00000020-attempt-3/.ckpt-copy.json
	run -0 ckpt-rotate prune --keep-last 9 ck
	[[ ${lines[3]} == *"kept: "*"cannot be checked from here"* ]]
	[ -e $record ]
}

@test "a pipe in the place of a record does not block a command" {
	save 10
	mkdir ck/.tmp-step-00000020-attempt-0
	for name in .ckpt-writer.json .ckpt-manifest.json; do
		mkfifo ck/.tmp-step-00000020-attempt-0/$name
	done
	for words in "latest ck" "list ck" "prune -n --keep-last 1 ck" "prune --keep-last 1 ck" \
		"begin ck 20"; do
		# shellcheck disable=SC2086
		run -0 timeout 60 ckpt-rotate $words
	done
	# In a published one: damaged, and skipped.
	save 30
	rm ck/step-00000030/.ckpt-manifest.json
	mkfifo ck/step-00000030/.ckpt-manifest.json
	[ "$(timeout 60 ckpt-rotate latest ck --step)" = 10 ]
	run -65 --separate-stderr timeout 60 ckpt-rotate verify ck 30
	mkfifo ck/step-00000010/.ckpt-bad.json
	run -1 --separate-stderr timeout 60 ckpt-rotate latest ck
}

@test "a directory of a checkpoint that is a symbolic link: damaged, and not copied" {
	save 10
	save 20
	mv ck/step-00000020/sub outside
	ln -s "$PWD/outside" ck/step-00000020/sub
	[ "$(ckpt-rotate latest ck --step)" = 10 ]
	run -65 --separate-stderr ckpt-rotate verify ck 20
	[[ $stderr == *"sub is a symbolic link instead of a directory"* ]]
	run -1 --separate-stderr ckpt-rotate copy ck far 20
	[ ! -e far/step-00000020 ]
	rm ck/step-00000020/sub
	mv outside ck/step-00000020/sub
	[ "$(ckpt-rotate latest ck --step --verify)" = 20 ]
}

@test "a second living writer of the same step is refused" {
	mkfifo go
	setsid bash -c 'd=$(ckpt-rotate begin ck 20); echo first >"$d/model"; : >begun; read -r _ <go' 3>&- &
	other=$!
	until_true 10 test -e begun
	run -1 --separate-stderr ckpt-rotate begin ck 20
	[[ $stderr == *"being written by another process"* ]]
	[ "$(cat ck/.tmp-step-00000020-attempt-0/model)" = first ]
	echo >go
	wait $other
	save 20
}

@test "a second living writer of the same step is refused in one process group, too" {
	mkfifo go
	setsid bash -c '
		(ckpt-rotate begin ck 20 >path; echo first >"$(cat path)/model"; : >begun; read -r _ <go; : >"$(cat path)/end") &
		until [ -e begun ]; do sleep 0.02; done
		(ckpt-rotate begin ck 20 2>error; echo $? >refused)
		# What its child has begun, it may begin again.
		ckpt-rotate begin ck 20; echo $? >parent
		echo >go
		wait
		(ckpt-rotate begin ck 20; echo $? >after)' 3>&-
	[ "$(cat refused)" = 1 ]
	[[ $(cat error) == *"being written by another process"*"--chief-only"* ]]
	[ "$(cat parent)" = 0 ]
	# The script itself is one writer with all that it starts, one after another.
	[ "$(cat after)" = 0 ]
	[ "$(ls -A ck/.tmp-step-00000020-attempt-0)" = .ckpt-writer.json ]
	for _ in 1 2; do
		ckpt-rotate begin ck 30
		(bash -c 'ckpt-rotate begin ck 30; :')
	done
	save 30
}

@test "begin on one machine, commit on another, also if an earlier save was cut short" {
	for content in half whole; do
		d=$(ckpt-rotate begin ck 20)
		echo $content >"$d/model"
		sed -i 's/"host":"[^"]*"/"host":"othernode"/; s/"boot":"[^"]*"/"boot":"00000000-0"/' \
			"$d/.ckpt-writer.json"
	done
	[ "$(ckpt-rotate commit ck 20)" = complete ]
	[ "$(cat ck/step-00000020/model)" = whole ]
	no_debris 20
}

@test "--or may be an empty word" {
	for words in "--or" "--or="; do
		if [ "$words" = --or ]; then set -- --or ''; else set -- --or=; fi
		run -0 --separate-stderr ckpt-rotate latest "$@" ck
		[ "$output" = "" ]
		run -0 --separate-stderr ckpt-rotate latest ck "$@" --step -q
		[ "$output$stderr" = "" ]
		run -75 ckpt-rotate latest missing/ck "$@"
	done
	run -2 --separate-stderr ckpt-rotate latest ck --or
	run -2 --separate-stderr ckpt-rotate latest ck --layout ''
}

@test "records of the writing that cannot be removed are told, and go the next time" {
	d=$(ckpt-rotate begin ck 20)
	echo model >"$d/model"
	run -0 --separate-stderr strace -o trace -e trace=unlinkat -e inject=unlinkat:error=EIO:when=3 \
		ckpt-rotate commit ck 20
	[ "$output" = complete ]
	grep -q 'ckpt-writer.json.*INJECTED' trace
	[[ $stderr == *"cannot remove all records of the writing in ck/step-00000020: Input/output error"* ]]
	[ "$(ckpt-rotate commit ck 20)" = complete ]
	no_debris 20
}

@test "the same group begins again after its leader has ended" {
	# shellcheck disable=SC2016
	setsid bash -c '(
		until [ ! -e /proc/$$ ]; do sleep 0.02; done
		(ckpt-rotate begin ck 20; :)
		(ckpt-rotate begin ck 20 || exit)
		echo $? >code.new && mv code.new code
	) >begun 3>&- &'
	until_true 20 test -e code
	[ "$(cat code)" = 0 ]
	[ "$(wc -l <begun)" = 2 ]
	# And where it had not ended yet when the record was made.
	rm -rf ck code
	# shellcheck disable=SC2016
	setsid bash -c '(
		(ckpt-rotate begin ck 20; :)
		: >first
		until [ ! -e /proc/$$ ]; do sleep 0.02; done
		(ckpt-rotate begin ck 20 || exit)
		echo $? >code.new && mv code.new code
	) >begun 3>&- & until [ -e first ]; do sleep 0.02; done'
	until_true 20 test -e code
	[ "$(cat code)" = 0 ]
}

@test "commits, three pruners and a reader at once: the newest never falls and is always whole" {
	save 100
	: >running
	pids=()
	for n in 1 2 3; do
		(while [ -e running ]; do ckpt-rotate prune -q --keep-last $n ck || exit; done) 3>&- &
		pids+=($!)
	done
	(
		last=100
		while [ -e running ]; do
			now=$(ckpt-rotate latest ck --step --verify) || exit
			[ "$now" -ge "$last" ] || exit 1
			last=$now
		done
	) 3>&- &
	pids+=($!)
	for ((step = 101; step <= 160; step++)); do save $step; done
	rm running
	for pid in "${pids[@]}"; do wait "$pid"; done
	ckpt-rotate prune -q --keep-last 1 ck
	[ "$(steps)" = "160 " ]
	[ "$(find ck -name '.gone*' -o -name '.tmp*')" = "" ]
	[ "$(readlink ck/latest)" = step-00000160 ]
}

@test "a pruner that slept while its decision grew old removes nothing that matters" {
	for step in 10 20 30; do save $step; done
	stop_at renameat ckpt-rotate prune --keep-last 1 ck
	save 40
	go_on
	[ "$code" = 0 ]
	[ "$(steps)" = "30 40 " ]
	[ "$(ckpt-rotate latest ck --step --verify)" = 40 ]
}

@test "a pruner whose newest checkpoint goes while it looks removes nothing" {
	for step in 10 20 30; do save $step; done
	# It looks a second time before it begins.
	only=$PWD/ck/step-00000030/.ckpt-manifest.json nth=3 # two reads for each look
	stop_at read ckpt-rotate prune --keep-last 1 ck
	rm ck/step-00000030/model
	go_on
	[ "$code" = 75 ]
	run -1 grep removed answer
	[ "$(ls ck)" = "$(printf '%s\n' latest step-00000010 step-00000020 step-00000030)" ]
}

@test "a pruner whose newest checkpoint is marked as bad while it renames gives all back" {
	for step in 10 20 30; do save $step; done
	stop_at renameat ckpt-rotate prune --keep-last 1 ck
	ckpt-rotate mark ck 30 bad
	go_on
	[ "$code" = 75 ]
	run -1 grep removed: answer
	grep 'step-00000030 is no longer complete, so no checkpoint is removed; try again' error
	[ "$(steps)" = "10 20 " ]
	# Of several files, the one that makes them a checkpoint is the last.
	local later=renameat2:delay_exit=1
	mkdir tf
	python3 "$BATS_TEST_DIRNAME/../support/layouts/frameworks.py" tensorflow tf 100 200
	find tf -exec touch -h -d '1 hour ago' {} +
	stop_at renameat ckpt-rotate prune --keep-last 1 tf
	mv tf/ckpt-200.index index
	go_on
	[ "$code" = 75 ]
	mv index tf/ckpt-200.index
	ckpt-rotate verify -q --all tf
	[ "$(find tf -name '.gone*')" = "" ]
	[[ $(grep renameat2 trace | tail -n 1) == *'"ckpt-100.index"'* ]]
}

@test "what a pruner cannot give back it does not delete when it looks at the limits" {
	for step in 10 20 30; do save $step; done
	local later=renameat2:error=EIO:signal=STOP gone
	stop_at renameat ckpt-rotate prune --keep-last 1 --min-free 1 ck
	touch ck/step-00000030/.ckpt-bad.json
	kill -CONT "$stopped"
	until_true 20 grep -q '(INJECTED)' trace
	rm ck/step-00000030/.ckpt-bad.json
	go_on
	[ "$code" = 75 ]
	grep 'cannot rename .* back to step-.*: Input/output error; do so yourself' error
	for gone in ck/.gone*; do mv "$gone" "ck/${gone#*-*-}"; done
	[ "$(steps)" = "10 20 30 " ]
}

@test "a pruner sees that a task begins again where a dead one left something" {
	save 10
	save 20
	PREEMPT_LIFE=$one setsid bash -c 'd=$(ckpt-rotate begin ck 30 --attempt 1 --sharded --task 0 --tasks 2)
		for f in a b c; do echo old >"$d/$f"; done'
	stop_at renameat ckpt-rotate prune --keep-last 1 ck
	d=$(shard begin 30 0 2)
	echo new >"$d/a"
	go_on
	[ "$code" = 0 ]
	[ "$(ls "$d")" = a ]
	[ "$(cat "$d/a")" = new ]
	[ "$(steps)" = "20 " ]
}

@test "a pruner that comes between two tasks leaves the first one's shard: the second completes it" {
	save 10
	PREEMPT_LIFE=$one setsid bash -c 'options=(--attempt 1 --sharded --task 0 --tasks 2)
		d=$(ckpt-rotate begin ck 20 "${options[@]}") && echo 0 >"$d/part" &&
			ckpt-rotate commit ck 20 "${options[@]}"'
	run -0 ckpt-rotate prune --keep-last 1 ck
	[[ $output == *"kept: a task has not begun, and no newer one is complete"* ]]
	d=$(shard begin 20 1 2)
	echo 1 >"$d/part"
	[ "$(shard commit 20 1 2)" = complete ]
	no_debris 20
}

@test "a shard waits for a task that has not begun only until a later attempt begins" {
	save 10
	for attempt in 1 2 3; do
		PREEMPT_LIFE=$one setsid bash -c 'options=(--attempt "$1" --sharded --task 0 --tasks 2)
			d=$(ckpt-rotate begin ck 20 "${options[@]}") && echo 0 >"$d/part" &&
				ckpt-rotate commit ck 20 "${options[@]}"' bash $attempt
		ckpt-rotate prune -q --keep-last 1 ck
		[ "$(cd ck && echo .tmp*)" = .tmp-step-00000020-attempt-$attempt-life-$one ]
	done
}

@test "a pruner in the middle of what a dead writer left does not touch a new writer's files" {
	save 10
	setsid bash -c 'd=$(ckpt-rotate begin ck 20); for f in a b c d e f; do echo x >"$d/$f"; done'
	stop_at unlinkat ckpt-rotate prune --keep-last 1 ck
	d=$(ckpt-rotate begin ck 20)
	for f in a b c d e f model; do echo new >"$d/$f"; done
	go_on
	[ "$(cat "$d"/[a-f] "$d/model" | sort | uniq -c | tr -s ' ')" = " 7 new" ]
	[ "$(ckpt-rotate commit ck 20)" = complete ]
	no_debris 20
}

@test "a pruner in the middle of what a dead task left: another task begins when it has ended" {
	save 10
	PREEMPT_LIFE=$one setsid bash -c 'd=$(ckpt-rotate begin ck 20 --attempt 1 --sharded --task 0 --tasks 2)
		for f in a b c d e f; do echo x >"$d/$f"; done'
	stop_at unlinkat ckpt-rotate prune --keep-last 1 ck
	strace -o waiting -e trace=flock ckpt-rotate begin ck 20 --sharded --task 1 --tasks 2 --attempt 1 \
		--life $one >path-1 2>problem 3>&- &
	begin=$!
	until_true 10 grep -q EAGAIN waiting
	go_on
	[ "$code" = 0 ]
	wait $begin
	[ ! -s problem ]
	shard begin 20 0 2 >path-0
	for task in 1 0; do
		echo "$task" >"$(cat path-$task)/part"
		shard commit 20 $task 2
	done
	no_debris 20
	[ "$(ls -A ck/step-00000020)" = "$(printf '%s\n' .ckpt-manifest.json task-0 task-1)" ]
}

@test "what is replaced or removed while it is judged is judged again" {
	save 10
	save 20
	rm ck/step-00000020/model
	only=$PWD/ck/step-00000020
	stop_at newfstatat ckpt-rotate latest ck --step
	save 20
	go_on
	[ "$(cat answer)" = 20 ]
	[ ! -s error ]
	# Damaged, and then gone: nothing to warn of.
	rm ck/step-00000010/model
	only=$PWD/ck/step-00000010
	stop_at newfstatat ckpt-rotate list ck
	ckpt-rotate prune -q --keep-last 1 ck
	go_on
	[ "$code" = 0 ]
	[ "$(grep -c 'damaged\|foreign' answer)" = 0 ]
}

@test "wrong usage: one line, code 2, nothing made" {
	for words in "" "frobnicate" "begin" "begin ck" "begin ck x" "begin ck -1" "begin ck 1x" \
		"begin ck 1000000000000000000" "begin ck 1 2" "begin ck 1 --attempt -1" \
		"begin ck 1 --attempt x" "begin ck 1 --frob" "commit ck" "latest" "latest a --layout x" \
		"list" "list ck --pattern x" "prune" "prune ck" "verify ck 1 --all" \
		"begin ck 1 --tasks 0" "begin ck 1 --sharded --task 4 --tasks 4 --attempt 1"; do
		# shellcheck disable=SC2086
		run -2 --separate-stderr ckpt-rotate $words
		[ "$output" = "" ]
		[ "${#stderr_lines[@]}" = 1 ]
	done
	PREEMPT_ATTEMPT=x run -2 --separate-stderr ckpt-rotate begin ck 1
	[[ $stderr == *PREEMPT_ATTEMPT* ]]
	[ ! -e ck ]
}

@test "JSON: list, latest and prune are documents" {
	save 10
	d=$(ckpt-rotate begin ck 20)
	for command in "list" "latest" "prune --keep-last 1 --dry-run"; do
		# shellcheck disable=SC2086
		ckpt-rotate $command --json ck | python3 -c 'import json, sys; json.load(sys.stdin)'
	done
	mkdir empty
	[ "$(ckpt-rotate list --json empty | tr -d '\n')" = "[]" ]
}

@test "an answer that cannot be written is an error" {
	save 10
	[ -e /dev/full ] || skip "no /dev/full"
	run -75 bash -c 'ckpt-rotate latest ck >/dev/full'
}
