#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# ckpt-rotate begin, commit, latest, list and verify: a half-written checkpoint is never offered.
# takes: 30
# mounts: private
# shellcheck disable=SC2012,SC2016,SC2030,SC2031,SC2034,SC2086,SC2154
bats_require_minimum_version 1.5.0
load ../support/ckpt

@test "a checkpoint is written, committed, found and verified" {
	run -0 ckpt-rotate begin ck 120 --attempt 3
	[ "$output" = ck/.tmp-step-00000120-attempt-3 ]
	echo weights >"$output/model"
	ckpt-rotate commit ck 120 --attempt 3
	[ "$(ckpt-rotate latest ck)" = ck/step-00000120 ]
	[ "$(ckpt-rotate latest ck/ --step)" = 120 ]
	[ "$(ckpt-rotate latest ck --verify)" = ck/step-00000120 ]
	[ "$(cat ck/latest/model)" = weights ]
	[ "$(names -A ck ck/latest/)" = "ck: latest step-00000120 ck/latest/: .ckpt-manifest.json model" ]
	run -0 ckpt-rotate list ck
	[[ ${lines[1]} =~ ^\ +120\ +3\ +1\ +8\ B\ +[0-9]+s\ +complete$ ]]
	run -0 ckpt-rotate verify ck
	[ "$output" = "step-00000120 verified: 1 files, 8 B" ]
	# Nor is an answer one that cannot be written.
	[ ! -e /dev/full ] || run -75 bash -c 'ckpt-rotate latest ck >/dev/full'
}

@test "names with blanks, newlines and bytes that are not UTF-8; hard links" {
	d=$(ckpt-rotate begin ck 1)
	mkdir -p "$d/-deep/ dir"
	for name in "a b" "new"$'\n'"line" $'not\xffutf8' "quote\"back\\slash" "-deep/ dir/.hidden"; do
		echo 1 >"$d/$name"
	done
	ln "$d/a b" "$d/linked"
	ckpt-rotate commit ck 1
	[ "$(ckpt-rotate verify ck)" = "step-00000001 verified: 6 files, 12 B" ]
	overwrite "ck/step-00000001/"$'not\xffutf8'
	fails 65 'not\xffutf8' ckpt-rotate verify ck 1
	rm "ck/step-00000001/new"$'\n'"line"
	fails 1 'new\nline is missing' ckpt-rotate latest ck
}

@test "latest is the highest step, not the last in the alphabet; the link follows, and one of the user's stays" {
	saves 99999999 100000001 5
	[ "$(ckpt-rotate latest ck --step)" = 100000001 ]
	[ "$(readlink ck/latest)" = step-100000001 ]
	ln -sfn /somewhere ck/latest
	run -0 --separate-stderr save 6
	[[ $stderr == *"was not made by ckpt-rotate"* ]]
	[ "$(readlink ck/latest)" = /somewhere ]
	rm ck/latest
	echo mine >ck/latest
	save 7
	[ "$(cat ck/latest)" = mine ]
}

@test "PH-6 a save that writes nothing is not committed and not offered" {
	save 10
	d=$(ckpt-rotate begin ck 20)
	fails 1 "wrote nothing" ckpt-rotate commit ck 20
	: >"$d/empty"
	mkdir "$d/sub"
	fails 1 "wrote nothing" ckpt-rotate commit ck 20
	shard begin 30 0 1
	fails 1 "wrote nothing" shard commit 30 0 1
	[ "$(ckpt-rotate latest ck --step)" = 10 ]
}

@test "commit without begin; commit again after an unknown outcome; begin again starts over" {
	mkdir ck
	fails 1 "comes first" ckpt-rotate commit ck 20
	d=$(ckpt-rotate begin ck 20 --attempt 1)
	echo x >"$d/x"
	fails 1 "comes first" ckpt-rotate commit ck 20 --attempt 2
	[ "$(steps)" = "" ]
	PREEMPT_ATTEMPT=3 save 10
	[ "$(ckpt-rotate commit ck 10 --attempt 3)" = complete ]
	fails 1 "by attempt 3" ckpt-rotate commit ck 10 --attempt 4
	# Also from another process of this shell's.
	d=$(ckpt-rotate begin ck 30)
	mkdir "$d/old"
	echo old >"$d/old/file"
	[ "$(bash -c 'ckpt-rotate begin ck 30; :')" = "$d" ]
	[ "$(ls -A "$d")" = .ckpt-writer.json ]
	save 30
	[ "$(find ck -name 'old*')" = "" ]
}

# synced PATH: a line of ./trace, and of the last time that this file was synced.
synced() { grep -n "fsync([0-9]*<$1>" trace | tail -n 1 | cut -d: -f1; }

@test "everything is synced before it is published, and the publishing after" {
	d=$(ckpt-rotate begin ck 20)
	mkdir -p "$d/sub/empty"
	echo model >"$d/model"
	echo state >"$d/sub/state"
	strace -f -y -o trace -e trace=fsync,renameat2 ckpt-rotate commit ck 20
	published=$(grep -n 'renameat2(.*step-00000020.*\(= 0\|unfinished\)' trace | cut -d: -f1)
	for path in /model /sub/state /sub /sub/empty '/.ckpt-manifest.json.[^>]*' ''; do
		[ "$(synced "[^>]*attempt-0$path")" -lt "$published" ]
	done
	[ "$(synced "$PWD/ck")" -gt "$published" ]
	# A shard that waits is as durable as one that publishes.
	shards 30 2
	strace -f -y -o trace -e trace=fsync,rename ckpt-rotate commit ck 30 --sharded --task 0 --tasks 2 --attempt 1 --life $one
	for path in ck/.tmp-step-00000030-attempt-1-life-$one ck; do
		[ "$(synced "$PWD/$path")" -gt "$(grep -n 'rename(.*shard-0-of-2' trace | cut -d: -f1)" ]
	done
	[ -n "$(synced '[^>]*task-0/part')" ]
	[ -n "$(synced '[^>]*task-0')" ]
}

@test "OB-4 saving an existing step is refused and its content stays" {
	save 10
	before=$(stat -c %i ck/step-00000010 ck/step-00000010/model)
	for attempt in 0 1; do
		fails 1 "saved already" ckpt-rotate begin ck 10 --attempt $attempt
	done
	# Begun by an attempt that did not see it: the other content is refused, too.
	mv ck/step-00000010 away
	d=$(ckpt-rotate begin ck 10 --attempt 7)
	echo other >"$d/model"
	mv away ck/step-00000010
	fails 1 "other content" ckpt-rotate commit ck 10 --attempt 7
	[ "$(cat ck/step-00000010/model)" = "model of 10" ]
	[ "$(stat -c %i ck/step-00000010 ck/step-00000010/model)" = "$before" ]
	# The same content is no quarrel, and leaves nothing.
	cp -r ck/step-00000010/{model,sub} "$d"
	[ "$(ckpt-rotate commit ck 10 --attempt 7)" = complete ]
	[ "$(names -A ck)" = "latest step-00000010" ]
}

@test "OB-3 a planted or unfinished temporary directory is never offered, its step can be saved" {
	save 10
	mkdir -p ck/.tmp-step-00000020-attempt-0/planted ck/step-00000020.tmp ck/.tmp-step-20
	cp ck/step-00000010/.ckpt-manifest.json ck/.tmp-step-00000020-attempt-0/
	d=$(ckpt-rotate begin ck 30)
	echo half >"$d/model"
	[ "$(ckpt-rotate latest ck --step)" = 10 ]
	[ "$(steps)" = "10 " ]
	save 20
	[ "$(ckpt-rotate latest ck --step --verify)" = 20 ]
	[ ! -e ck/step-00000020/planted ]
	[ -d ck/step-00000020.tmp ]
	[ -d ck/.tmp-step-20 ]
}

@test "what cannot be in a checkpoint is refused" {
	for what in "ln -s /etc/passwd ODD" "ln -s nowhere ODD" "mkfifo ODD" "mknod -m 600 ODD c 1 3"; do
		[[ $what != mknod* || $(id -u) = 0 ]] || continue
		d=$(ckpt-rotate begin ck 10)
		mkdir "$d/sub"
		echo x >"$d/model"
		${what/ODD/$d/sub/odd}
		fails 1 "sub/odd is a" ckpt-rotate commit ck 10
		[[ $stderr == *"only files and directories"* ]]
	done
	[ "$(steps)" = "" ]
	rm "$d/sub/odd"
	ckpt-rotate commit ck 10
}

@test "a removed file that is still open, as NFS shows it, is not part of a checkpoint" {
	local open=.nfs0000000000abc12300000001
	d=$(ckpt-rotate begin ck 20)
	mkdir "$d/sub"
	# The last name was given by a user.
	for name in model $open sub/$open .nfs-settings; do echo old >"$d/$name"; done
	[ "$(ckpt-rotate commit ck 20)" = complete ]
	# It is closed.
	rm ck/step-00000020/$open ck/step-00000020/sub/$open
	[ "$(ckpt-rotate verify ck)" = "step-00000020 verified: 2 files, 8 B" ]
}

@test "CK-8 the newest is incomplete or damaged: the one before it is used" {
	saves 10 20 30 40 50
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
	overwrite ck/step-00000020/model
	[ "$(ckpt-rotate latest ck --step 2>/dev/null)" = 20 ]
	[ "$(ckpt-rotate latest ck --step --verify 2>/dev/null)" = 10 ]
	run -65 --separate-stderr ckpt-rotate verify ck --all
	[ "${#lines[@]}" = 5 ]
	run -0 ckpt-rotate verify ck 10
	# A damaged step can be saved again.
	save 50
	no_debris 50
}

@test "a manifest in the wrong place, of garbage, or of a newer format" {
	saves 10 20
	cp -r ck/step-00000010 ck/step-00000030
	run -0 --separate-stderr ckpt-rotate latest ck --step
	[ "$output" = 20 ]
	[[ $stderr == *"its manifest is of step 10"* ]]
	rm -r ck/step-00000030
	m=ck/step-00000020/.ckpt-manifest.json
	cp $m good
	for edit in 's/"model"/"..\/model"/' 's/"bytes": 12/"bytes": "12"/' 's/"files"/"fils"/'; do
		sed "$edit" good >$m
		run -1 cmp -s good $m
		[ "$(ckpt-rotate latest ck --step 2>/dev/null)" = 10 ]
	done
	for size in 0 1 100 $(($(stat -c %s good) - 4)); do
		head -c "$size" good >$m
		[ "$(ckpt-rotate latest ck --step 2>/dev/null)" = 10 ]
	done
	# Newer: nothing may be concluded, so nothing older is offered either.
	sed 's/"format": 1/"format": 2/' good >$m
	fails 65 newer ckpt-rotate latest ck --step --or 0
	[ "$output" = "" ]
	fails 65 newer ckpt-rotate begin ck 20
	ckpt-rotate prune --keep-last 1 ck
	[ -d ck/step-00000020 ]
}

@test "latest --or on a first start: task 0 says once that there is none, the other tasks only with -v" {
	latest() { ckpt-rotate latest missing --step --or 0 "$@"; }
	for i in 0 1 2 3; do [ "$(PREEMPT_TASK=$i latest 2>>err)" = 0 ]; done
	[ "$(cat err)" = 'ckpt-rotate: there is no directory missing; the answer is "0" (--or)' ]
	# Below no agent: by the launcher's number. A rank of torchrun below one is a task of its own.
	for i in 0 1 2 3; do PREEMPT_RUN=job OMPI_COMM_WORLD_RANK=$i OMPI_COMM_WORLD_SIZE=4 latest; done 2>err
	[ "$(wc -l <err)" = 1 ]
	for i in 0 1 2 3; do PREEMPT_TASK=0 PREEMPT_RANKS=4 LOCAL_RANK=$i latest; done 2>err
	[ "$(wc -l <err)" = 1 ]
	PREEMPT_TASK=3 latest -v 2>&1 | grep 'there is no directory missing'
	# Without --or it is the reason of the exit code, which each task needs.
	PREEMPT_TASK=3 fails 1 "there is no directory missing" ckpt-rotate latest missing
}

@test "none is said only where it is certain" {
	run -1 --separate-stderr ckpt-rotate latest missing
	[ "$(ckpt-rotate latest missing --step --or 0)" = 0 ]
	mkdir empty
	run -1 --separate-stderr ckpt-rotate latest empty
	[ "$(ckpt-rotate latest empty --or none)" = none ]
	for or in "--or none" "--or=" "--or ''"; do
		# A parent that is missing, too; a link to what is unreachable.
		ln -sfn /nowhere/ck away
		for dir in missing/ck away away/ck; do
			eval "run -75 --separate-stderr ckpt-rotate latest $dir $or"
			[ "$output" = "" ]
		done
	done
	run -0 --separate-stderr ckpt-rotate latest empty --or= --step -q
	[ "$output$stderr" = "" ]
	# A file; an unset variable; a word that is missing.
	: >file
	for words in "file --or 0" "'' --or 0" "empty --or" "empty --layout ''"; do
		eval "run -2 --separate-stderr ckpt-rotate latest $words"
		[ "$output" = "" ]
	done
	run -1 --separate-stderr ckpt-rotate list missing
	run -75 --separate-stderr ckpt-rotate list missing/ck
	run -75 --separate-stderr ckpt-rotate begin missing/ck 1
	[ ! -e missing ]
}

@test "before the first save: prune and verify --all have nothing to do, and with -q say nothing" {
	mkdir empty
	for words in "missing" "empty" "missing --layout hf" "empty --layout hf"; do
		run -0 --separate-stderr ckpt-rotate prune -q --keep-last 1 $words
		[ -z "$output$stderr" ]
	done
	run -0 --separate-stderr ckpt-rotate prune --keep-last 1 missing
	[[ $stderr = *"there is no directory missing, so nothing to prune" ]]
	ckpt-rotate prune --json --keep-last 1 missing | json 'c == []'
	[ ! -e missing ]
	run -75 --separate-stderr ckpt-rotate prune -q --keep-last 1 missing/ck
	run -0 --separate-stderr ckpt-rotate verify -q --all empty
	[ -z "$output$stderr" ]
	# What is asked for and is not there is said, and 1.
	fails 1 "there is no checkpoint in empty" ckpt-rotate verify -q empty
	fails 1 "there is no directory missing" ckpt-rotate verify -q --all missing
}

@test "a directory that may not be read: 77, and no word of none" {
	needs_root
	# Where another user may come, too.
	elsewhere=$(mktemp -d /tmp/ckpt-test.XXXXXX)
	chmod 755 "$elsewhere"
	install -m 755 "$(command -v ckpt-rotate)" "$elsewhere"
	cd "$elsewhere"
	save 10
	as_nobody() { setpriv --reuid 65534 --clear-groups ./ckpt-rotate "$@"; }
	for dir in ck ck/step-00000010; do
		chmod 700 $dir
		run -77 --separate-stderr as_nobody latest ck --or 0
		[ "$output" = "" ]
		chmod 755 $dir
	done
	run -77 --separate-stderr as_nobody begin ck 20
	cd "$BATS_TEST_TMPDIR"
	rm -r "$elsewhere"
}

@test "a full disk is 75 and a read-only one 77: nothing appears by halves, and a rerun finishes" {
	in=$PWD/near saves 10 20
	head -c 400K /dev/urandom >"$(ckpt-rotate begin near 30)/part" && ckpt-rotate commit near 30
	small_disk 700k
	cd disk
	saves 5 10 20
	echo x >"$(ckpt-rotate begin ck 30)/x"
	ckpt-rotate copy -q ../near far 20
	head -c 350K /dev/zero >room
	head -c 1m /dev/zero >filler 2>/dev/null || :
	full=("ckpt-rotate commit ck 30" "ckpt-rotate begin ck 40" "ckpt-rotate pin ck 10"
		"ckpt-rotate mark ck 20 bad --reason full")
	for command in "${full[@]}"; do fails 75 "No space left" $command; done
	[ "$(ckpt-rotate latest ck --step --verify)" = 20 ]
	[ -z "$(find ck -name '.ckpt-pin*' -o -name '.ckpt-bad*')" ]
	ckpt-rotate prune -q --keep-last 2 ck
	[ "$(names ck)" = "latest step-00000010 step-00000020" ]
	rm room
	fails 75 "No space left" ckpt-rotate copy ../near far
	[ "$(ckpt-rotate latest far --step --verify)" = 20 ]
	rm filler
	# On another filesystem, as in the same one.
	ckpt-rotate copy -q --move ../near far
	diff -r ../near/step-00000030 far/step-00000030
	[ "$(names ../near)" = "latest step-00000010 step-00000030" ]
	mount -o remount,ro .
	[ "$(ckpt-rotate latest ck --step --verify)" = 20 ]
	for command in "begin ck 40" "commit ck 30" "prune --keep-last 1 ck" "copy ../near far 10"; do
		run -77 --separate-stderr ckpt-rotate $command
	done
	mount -o remount,rw .
	[ "$(ckpt-rotate commit ck 30)" = complete ]
	no_debris 30
}

@test "sharded: complete only when all are committed, whichever process is last" {
	PREEMPT_ATTEMPT=1 save 10
	local made=ck/.tmp-step-00000020-attempt-1-life-$one
	[ "$(shard begin 20 3 4)" = $made/task-3 ]
	shards 20 4
	[ "$(shard commit 20 3 4)" = "waiting for 3 of 4" ]
	[ "$(shard commit 20 0 4)" = "waiting for 2 of 4" ]
	[ "$(shard commit 20 0 4)" = "waiting for 2 of 4" ]
	run -0 ckpt-rotate list ck
	[[ ${lines[2]} == *"incomplete: missing 2 of 4 tasks: 1, 2; life $one; unchanged for "*s ]]
	[ "$(ckpt-rotate latest ck --step)" = 10 ]
	# A task that begins again empties its own place and no other.
	echo half >$made/task-1/half
	shard begin 20 1 4
	echo 1 >$made/task-1/part
	[ "$(shard commit 20 1 4)" = "waiting for 1 of 4" ]
	[ "$(shard commit 20 2 4)" = complete ]
	for task in 0 1 2 3; do
		[ "$(cat ck/step-00000020/task-$task/part)" = $task ]
		[ "$(shard commit 20 $task 4)" = complete ]
	done
	no_debris 20
	[ "$(ckpt-rotate verify ck)" = "step-00000020 verified: 4 files, 8 B" ]
}

@test "sharded: what does not fit together is refused" {
	d=$(shard begin 20 0 2)
	echo x >"$d/x"
	run -2 --separate-stderr ckpt-rotate commit ck 20 --attempt 1 --life $one
	run -2 --separate-stderr shard commit 20 0 3
	run -2 --separate-stderr shard begin 20 1 3
	run -2 --separate-stderr shard commit 20 2 2
	run -2 --separate-stderr ckpt-rotate commit ck 20 --sharded --attempt 1 --life $one
	fails 2 "--attempt" ckpt-rotate begin ck 20 --sharded --task 0 --tasks 2
	[ "$(shard commit 20 0 2)" = "waiting for 1 of 2" ]
	# Committed is committed: not changed.
	echo more >>"$d/x"
	fails 1 "changed since" shard commit 20 0 2
	echo x >"$d/x"
	# Shards of two attempts never mix.
	echo y >"$(shard begin 20 1 2 2)/y"
	[ "$(shard commit 20 1 2 2)" = "waiting for 1 of 2" ]
	# Something outside of the tasks' places.
	echo y >"$(shard begin 20 1 2)/y"
	echo stray >"$d/../stray"
	fails 1 "outside of the tasks' own directories" shard commit 20 1 2
	rm "$d/../stray"
	[ "$(shard commit 20 1 2)" = complete ]
}

# A periodic save and an agreed one may be of one step.
@test "a step, or a shard, that this start has saved is saved again: yes, and the first content stays" {
	mine() { ckpt-rotate "$1" ck 10 --attempt 1 --life $one; }
	echo first >"$(mine begin)/w"
	[ "$(mine commit)" = complete ]
	before=$(stat -c %i ck/step-00000010 ck/step-00000010/w)
	echo second >"$(mine begin)/w"
	[ "$(ckpt-rotate latest ck --step)" = 10 ]
	[ "$(mine commit)" = complete ]
	[ "$(mine commit)" = complete ]
	no_debris 10
	[ "$(cat ck/step-00000010/w)" = first ]
	[ "$(stat -c %i ck/step-00000010 ck/step-00000010/w)" = "$before" ]
	# One that is never committed is what any killed writer leaves.
	echo third >"$(mine begin)/w"
	[[ $(ckpt-rotate list ck) == *"which is discarded"* ]]
	d=$(mine begin)
	[ ! -e "$d/w" ]
	[ "$(mine commit)" = complete ]
	no_debris 10
	# Marked as bad, it is saved again.
	ckpt-rotate mark -q ck 10 bad
	echo fourth >"$(mine begin)/w"
	[ "$(mine commit)" = complete ]
	[ "$(cat ck/step-00000010/w)" = fourth ]
	# Another start, one of another life, and one without a life, did not save it.
	for other in "2 --life $one" "1 --life ba98765432100123456789ab" 1; do
		fails 1 "saved already" ckpt-rotate begin ck 10 --attempt $other
	done
	# Shards.
	for content in first second; do
		echo $content >"$(shard begin 20 0 2)/w"
		[ "$(shard commit 20 0 2)" = "waiting for 1 of 2" ]
	done
	echo third >"$(shard begin 20 0 2)/w"
	echo other >"$(shard begin 20 1 2)/w"
	[ "$(shard commit 20 1 2)" = complete ]
	# It was begun before that, and is committed after it.
	[ "$(shard commit 20 0 2)" = complete ]
	echo more >"$(shard begin 20 1 2)/w"
	[ "$(shard commit 20 1 2)" = complete ]
	no_debris 20
	[ "$(cat ck/step-00000020/task-?/w | xargs)" = "first other" ]
	run -1 --separate-stderr shard begin 20 0 2 2
}

@test "preempted exactly at a periodic save: it is one save, and the job leaves with 42" {
	cat >train.sh <<-'END'
		. "$REPO/lib/client/preempt.sh"
		save() { d=$(ckpt-rotate begin ck $1 $how) && echo $1 >"$d/w" && ckpt-rotate commit -q ck $1 $how; }
		for ((s = 0; s < 600; s++)); do
			((s == 0)) || save $s || exit
			preempt_step $s || { save $s && preempt_saved $s; } || exit
			[ $s != 3 ] || kill -TERM "$(cat agent)"
			sleep 0.1
		done
	END
	export how REPO
	for how in "" --sharded; do
		rm -rf ck
		fails 42 "is saved and complete: run me again (42)" \
			bash -c 'echo $$ >agent; exec preempt-run --run "one$how" --grace 0 -- bash train.sh'
		[ "$(ckpt-rotate latest ck --step)" -gt 2 ]
	done
}

@test "shards of two jobs never make one checkpoint" {
	# A job of two tasks in which only task $2 saves step 20 before the job is lost.
	lost_job() {
		preempt-run --run "$1" -n 2 -- bash -c '[ "$PREEMPT_TASK" = "$1" ] || exit 0
			d=$(ckpt-rotate begin ck 20 --sharded) && echo "$PREEMPT_RUN" >"$d/part" &&
				ckpt-rotate commit ck 20 --sharded' - "$2" 2>/dev/null
	}
	save 10
	[ "$(lost_job slurm-71 0)" = "waiting for 1 of 2" ]
	[ "$(lost_job slurm-72 1)" = "waiting for 1 of 2" ]
	[ "$(ckpt-rotate latest ck --step)" = 10 ]
	run -0 ckpt-rotate list ck
	for task in 0 1; do
		[[ $output == *"20       1     2 "*"incomplete: missing 1 of 2 tasks: $task; life "*"; unchanged for "* ]]
	done
	# A whole job saves it.
	run -0 preempt-run --run slurm-73 -n 2 -- bash -c '
		d=$(ckpt-rotate begin ck 20 --sharded) && echo "$PREEMPT_RUN" >"$d/part" &&
			ckpt-rotate commit -q ck 20 --sharded --timeout 60s'
	[ "$(cat ck/step-00000020/task-*/part | sort -u)" = slurm-73 ]
	unseen '61 minutes'
	ckpt-rotate prune -q --keep-last 1 ck
	no_debris 20
}

@test "a shard with the content that another start has saved meanwhile is saved; with other content it is refused" {
	shards 20 2 1
	shards 20 2 2
	for task in 0 1; do shard commit 20 $task 2 1; done
	for task in 0 1; do [ "$(shard commit 20 $task 2 2)" = complete ]; done
	echo other >"$(ls -d ck/.tmp*attempt-2*/task-1)/part"
	fails 1 "with other content" shard commit 20 1 2 2
	[ "$(cat ck/step-00000020/task-1/part)" = 1 ]
}

@test "a shard's record of another life or attempt makes nothing complete" {
	local two=ba98765432100123456789ab
	shards 20 2
	shard commit 20 0 2
	local record=ck/.tmp-step-00000020-attempt-1-life-$one/.ckpt-shard-0-of-2.json
	cp $record kept
	for other in "s/$one/$two/" 's/"attempt": 1/"attempt": 2/'; do
		sed "$other" kept >$record
		fails 1 "is of another start" shard commit 20 1 2
		fails 1 "another start's shard" shard commit 20 0 2
	done
	cp kept $record
	[ "$(shard commit 20 1 2)" = complete ]
	grep -q "\"life\": \"$one\"" ck/step-00000020/.ckpt-manifest.json
	# The same attempt of another life has not saved this.
	fails 1 "saved already in ck/step-00000020 by attempt 1 of life $one" \
		ckpt-rotate commit ck 20 --sharded --task 0 --tasks 2 --attempt 1 --life $two
	# Nor is a manifest right whose life is none.
	sed -i "s/$one/${one}0/" ck/step-00000020/.ckpt-manifest.json
	run -1 ckpt-rotate latest ck
}

@test "sharded: refused where nothing tells this start from others; the cure helps" {
	fails 2 "use preempt-run" ckpt-rotate begin ck 20 --sharded --task 0 --tasks 2 --attempt 1
	[ "${#stderr_lines[@]}" = 1 ]
	[[ $stderr == *'PREEMPT_LIFE=$(uuidgen)'* ]]
	[ ! -e ck ]
	PREEMPT_LIFE="any word" run -0 ckpt-rotate begin ck 20 --sharded --task 0 --tasks 2 --attempt 1
}

@test "a checkpoint of version 0.1.0, and what was being written then" {
	PREEMPT_ATTEMPT=1 save 10
	run -1 grep life ck/step-00000010/.ckpt-manifest.json
	mkdir -p ck/.tmp-step-00000020-attempt-1/task-0
	cp ck/step-00000010/.ckpt-manifest.json ck/.tmp-step-00000020-attempt-1/.ckpt-shard-0.json
	[ "$(ckpt-rotate latest ck --verify)" = ck/step-00000010 ]
	# Nothing of it comes into what is written now.
	echo x >"$(shard begin 20 1 2)/part"
	[ "$(shard commit 20 1 2)" = "waiting for 1 of 2" ]
	run -0 ckpt-rotate list ck
	[ "${#lines[@]}" = 4 ]
}

# opens TASKS TASK: how many files task number TASK opens in begin and in commit, and how many of another task's.
opens() {
	local options="ck 20 --sharded --attempt 1 --life $one --tasks $1 --task $2"
	strace -f -o begin -e trace=open,openat,openat2 ckpt-rotate begin $options >path
	echo x >"$(cat path)/part"
	strace -f -o commit -e trace=open,openat,openat2 ckpt-rotate commit $options >answer
	echo "$(wc -l <begin) $(wc -l <commit)" "$(cat begin commit | grep -v "task-$2\b\|-$2-of-" | grep -c 'task-\|-of-')"
}

@test "sharded: what a task opens is the same however many tasks there are" {
	for tasks in 8 64; do
		rm -rf ck
		shards 20 $tasks
		for ((task = 2; task < tasks; task++)); do shard commit 20 $task $tasks >answer; done
		opens $tasks 0 >opens.$tasks
		[ "$(cat answer)" = "waiting for 1 of $tasks" ]
		[ "$(shard commit 20 1 $tasks)" = complete ]
	done
	cat opens.*
	cmp opens.8 opens.64
	[ "$(cut -d' ' -f3 opens.8)" = 0 ]
}

@test "ten tasks commit at once, five times: complete exactly once each" {
	for step in 10 11 12 13 14; do
		shards $step 10
		inode=$(stat -c %i ck/.tmp*)
		pids=()
		for ((task = 0; task < 10; task++)); do
			shard commit $step $task 10 >answer.$task 3>&- &
			pids+=($!)
		done
		for pid in "${pids[@]}"; do wait "$pid"; done
		grep -q '^complete$' answer.*
		run -1 grep -v '^complete$\|^waiting for [1-9] of 10$' answer.*
		[ "$(stat -c %i "ck/step-000000$step")" = "$inode" ]
		no_debris $step
	done
	[ "$(ckpt-rotate verify --all ck | grep -c 'verified: 10 files')" = 5 ]
}

@test "--chief-only: one checkpoint, what the others write disappears" {
	save 10
	[ "$(replica begin 20 0 3)" = ck/.tmp-step-00000020-attempt-1 ]
	for task in 1 2; do
		[ "$(replica begin 20 $task 3)" = ck/.tmp-step-00000020-attempt-1-workertemp_$task ]
	done
	for d in ck/.tmp-*; do echo "the same" >"$d/model"; done
	run -0 ckpt-rotate list ck
	[[ ${lines[3]} == *"incomplete: task 1's own copy, which is discarded; unchanged for "* ]]
	ckpt-rotate prune -q --keep-last 1 ck
	[ "$(replica commit 20 1 3)" = "waiting for 1 of 3" ]
	[ ! -e ck/.tmp-step-00000020-attempt-1-workertemp_1 ]
	[ "$(ckpt-rotate latest ck --step)" = 10 ]
	[ "$(replica commit 20 0 3)" = complete ]
	[ "$(replica commit 20 2 3)" = complete ]
	[ "$(replica commit 20 2 3)" = complete ]
	# Late: its chief has finished already.
	echo late >"$(replica begin 20 1 3)/model"
	[ "$(replica commit 20 1 3)" = complete ]
	[ "$(cat ck/step-00000020/model)" = "the same" ]
	[ "$(names -A ck)" = "latest step-00000010 step-00000020" ]
	fails 2 "--chief-only needs --task" ckpt-rotate begin ck 30 --chief-only
	run -2 --separate-stderr ckpt-rotate begin ck 30 --chief-only --sharded --task 0 --tasks 1 --attempt 1
	# What a killed task left is removed when it begins again.
	echo half >"$(replica begin 40 1 2)/half"
	replica begin 40 1 2
	[ ! -e ck/.tmp-step-00000040-attempt-1-workertemp_1/half ]
	# A step that was marked as bad is not complete before task 0 has saved it again.
	ckpt-rotate mark ck 20 bad
	again() { ckpt-rotate "$1" ck 20 --chief-only --task "$2" --tasks 2 --attempt 2 "${@:3}"; }
	echo 2 >"$(again begin 1)/model"
	run -124 --separate-stderr again commit 1 --timeout 200ms
	[ "$output" = "" ]
	echo 1 >"$(again begin 0)/model"
	[ "$(again commit 0)" = complete ]
	echo 2 >"$(again begin 1)/model"
	[ "$(again commit 1 --timeout 10s)" = complete ]
}

@test "commit --timeout waits for all; a task that misses it is named, and nothing is offered" {
	save 10
	shards 20 3
	fails 124 "step 20 in ck is not complete: task 1, 2 has not committed" shard commit 20 0 3 1 --timeout 300ms
	[ "$output" = "" ]
	[ "$(ckpt-rotate latest ck --step)" = 10 ]
	shard commit 20 1 3 1 --timeout 60s >waited 3>&- &
	waiter=$!
	eventually test -e ck/.tmp-step-00000020-attempt-1-life-$one/.ckpt-shard-1-of-3.json
	[ "$(shard commit 20 2 3)" = complete ]
	wait $waiter
	[ "$(cat waited)" = complete ]
	[ "$(ckpt-rotate latest ck --step --verify)" = 20 ]
	# The others for their chief.
	echo x >"$(replica begin 30 0 2)/model"
	replica begin 30 1 2
	fails 124 "task 0 has not committed" replica commit 30 1 2 --timeout 100ms
	replica commit 30 1 2 --timeout 60s >waited 3>&- &
	waiter=$!
	replica commit 30 0 2 --timeout 60s
	wait $waiter
	[ "$(cat waited)" = complete ]
	# A bad checkpoint of that step is no answer.
	ckpt-rotate mark ck 20 bad
	shards 20 2 2
	run -124 --separate-stderr shard commit 20 0 2 2 --timeout 200ms
	[ "$(shard commit 20 1 2 2)" = complete ]
	[ "$(ls ck/step-00000020)" = $'task-0\ntask-1' ]
}

@test "commit --timeout: what was published and may not be read is not called missing: 77" {
	shards 20 2
	strace -f -o trace -P ck/step-00000020/.ckpt-manifest.json -e trace=openat \
		-e inject=openat:error=EACCES ckpt-rotate commit ck 20 --sharded --task 0 --tasks 2 --attempt 1 \
		--life $one --timeout 60s 2>err 3>&- &
	waiter=$!
	eventually test -e ck/.tmp-step-00000020-attempt-1-life-$one/.ckpt-shard-0-of-2.json
	[ "$(shard commit 20 1 2)" = complete ]
	code_of $waiter
	[ "$code" = 77 ]
	grep -q 'step-00000020: .*Permission denied' err
}

@test "the last commit was killed before it published: a waiter does, or it is said, kept, and published by another" {
	shards 20 2
	shard commit 20 0 2 1 --timeout 60s >waited 3>&- &
	waiter=$!
	eventually test -e ck/.tmp-step-00000020-attempt-1-life-$one/.ckpt-shard-0-of-2.json
	killed=(strace -o trace -e trace=renameat2 -e inject=renameat2:signal=KILL:when=1
		ckpt-rotate commit ck 20 --sharded --task 1 --tasks 2 --attempt 1 --life "$one")
	run "${killed[@]}"
	wait $waiter
	[ "$(cat waited)" = complete ]
	[ "$(ckpt-rotate latest ck --step --verify)" = 20 ]
	# There is no waiter.
	rm -r ck
	save 8
	shards 20 2
	shard commit 20 0 2
	run "${killed[@]}"
	run -0 ckpt-rotate list ck
	[[ $output = *"incomplete: all 2 shards are there, not published: run the commit of one task again; life $one; unchanged for "* ]]
	ckpt-rotate prune --keep-last 1 ck
	[ "$(shard commit 20 0 2)" = complete ]
	[ "$(ckpt-rotate latest ck --step --verify)" = 20 ]
}

@test "shards tell metrics and times, and whichever process publishes writes the same" {
	shards 20 2
	shard commit 20 1 2 1 --metric loss=2 --metric shard1=1 --time @1700000005
	shard commit 20 0 2 1 --metric loss=1 --time @1700000000
	ckpt-rotate list --json ck |
		json 'c[0]["metrics"] == {"loss": 1, "shard1": 1} and c[0]["utc"] == "2023-11-14T22:13:25.000Z"'
	json "c['uid'] == $(id -u)" <ck/latest/.ckpt-manifest.json
}

@test "metrics: what is none is refused before anything is committed" {
	echo x >"$(ckpt-rotate begin ck 1)/x"
	for metric in loss loss= =1 loss=x loss=0x10 loss=1,5 "loss= 1" "loss=1 " loss=1e "$(printf 'l\n=1')" \
		"$(printf '%048d=1' 0)"; do
		run -2 --separate-stderr ckpt-rotate commit ck 1 --metric "$metric"
		[ "${#stderr_lines[@]}" = 1 ]
	done
	run -2 --separate-stderr ckpt-rotate commit ck 1 --metric a=1 --metric a=2
	for time in 0 1700000000 @ @0 @-1 @1.5 @99999999999999 now; do
		run -2 --separate-stderr ckpt-rotate commit ck 1 --time "$time"
	done
	[ "$(steps)" = "" ]
	ckpt-rotate commit ck 1 --metric "größe/loss(2)=1e999" --metric b=inf --metric c=0.30000000000000004
	ckpt-rotate list --json ck | json 'c[0]["metrics"] == {"größe/loss(2)": None, "b": None, "c": 0.30000000000000004}'
}

@test "verify: contents, or --quick only what is present; -q says only what is wrong" {
	saves 10 20
	[ "$(ckpt-rotate verify --quick ck)" = "step-00000020 all there: 2 files, 24 B" ]
	run -0 --separate-stderr ckpt-rotate verify -q --all ck
	[ "$output$stderr" = "" ]
	overwrite ck/step-00000010/model
	run -0 --separate-stderr ckpt-rotate verify -q --quick --all ck
	fails 65 "step-00000010 is damaged: the checksum of model differs" ckpt-rotate verify -q --all ck
	[ "$output" = "" ]
	[ "${#stderr_lines[@]}" = 1 ]
	echo >>ck/step-00000010/model
	run -65 --separate-stderr ckpt-rotate verify --quick --all ck
	run -65 --separate-stderr ckpt-rotate verify --quick ck 10
	run -1 --separate-stderr ckpt-rotate verify ck 99
}

@test "verify and copy show their progress on a terminal, and nowhere else" {
	head -c 8000000 /dev/zero >"$(ckpt-rotate begin ck 1)/a"
	ckpt-rotate commit ck 1
	for command in "verify ck" "copy ck far"; do
		run -0 --separate-stderr ckpt-rotate $command
		[ "$stderr" = "" ]
	done
	command -v script >/dev/null || skip "no script(1) here"
	# seen COMMAND: what a terminal shows of it; slow enough that there is something to tell.
	seen() {
		rm -rf far
		script -qec "strace -f -o trace -e trace=read -e inject=read:delay_enter=15000 ckpt-rotate $1" /dev/null </dev/null
	}
	seen "verify ck" | tr '\r' '\n' | grep -a '%, .* MiB of 7.6 MiB, '
	seen "copy ck far" | tr '\r' '\n' | grep -a '%, .* of 7.6 MiB, .*/s'
	[ -z "$(seen "verify -q ck")" ]
}

@test "a file that appears during the commit: refused, and committed when it is written" {
	d=$(ckpt-rotate begin ck 10)
	truncate -s 300M "$d/model"
	(for ((i = 0; i < 600; i++)); do [ ! -e stop ] && : >"$d/$i" && sleep 0.01 || exit 0; done) 3>&- &
	fails 1 "changed while it was being committed; commit when all is written" ckpt-rotate commit ck 10
	: >stop
	wait
	[ "$(ckpt-rotate commit ck 10)" = complete ]
}

@test "a large file: damage anywhere in it, and an error while it is read" {
	head -c 12000001 /dev/zero >"$(ckpt-rotate begin ck 1)/a"
	ckpt-rotate commit ck 1
	[ "$(ckpt-rotate verify ck)" = "step-00000001 verified: 1 files, 11.4 MiB" ]
	for at in 0 262144 12000000; do
		printf X | dd of=ck/step-00000001/a bs=1 seek=$at conv=notrunc status=none
		run -65 --separate-stderr ckpt-rotate verify ck
		printf '\0' | dd of=ck/step-00000001/a bs=1 seek=$at conv=notrunc status=none
	done
	ckpt-rotate verify -q ck
	fails 75 "cannot read a" strace -f -o trace -P "$PWD/ck/step-00000001/a" -e trace=read -e inject=read:error=EIO:when=20 \
		ckpt-rotate verify ck
	[[ $stderr == *"Input/output error"* ]]
}

@test "a pipe in the place of a record does not block a command" {
	save 10
	mkdir ck/.tmp-step-00000020-attempt-0
	mkfifo ck/.tmp-step-00000020-attempt-0/.ckpt-{writer,manifest}.json
	for words in "latest ck" "list ck" "prune -n --keep-last 1 ck" "prune --keep-last 1 ck" "begin ck 20"; do
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
	saves 10 20
	mv ck/step-00000020/sub outside
	ln -s "$PWD/outside" ck/step-00000020/sub
	[ "$(ckpt-rotate latest ck --step)" = 10 ]
	fails 65 "sub is a symbolic link instead of a directory" ckpt-rotate verify ck 20
	run -1 --separate-stderr ckpt-rotate copy ck far 20
	[ ! -e far/step-00000020 ]
}

@test "a second living writer of the same step is refused" {
	mkfifo go
	setsid bash -c 'd=$(ckpt-rotate begin ck 20); echo first >"$d/model"; : >begun; read -r _ <go' 3>&- &
	other=$!
	eventually test -e begun
	fails 1 "ck/.tmp-step-00000020-attempt-0 is being written by pid $other on $(hostname) since " ckpt-rotate begin ck 20
	[ "$(cat ck/.tmp-step-00000020-attempt-0/model)" = first ]
	echo >go
	wait $other
	save 20
}

@test "begin on one machine, commit on another, also if an earlier save was cut short" {
	for content in half whole; do
		d=$(ckpt-rotate begin ck 20)
		echo $content >"$d/model"
		sed -i 's/"host":"[^"]*"/"host":"othernode"/; s/"boot":"[^"]*"/"boot":"00000000-0"/' "$d/.ckpt-writer.json"
	done
	[ "$(ckpt-rotate commit ck 20)" = complete ]
	[ "$(cat ck/step-00000020/model)" = whole ]
	no_debris 20
}

@test "wrong usage: one line, code 2, nothing made" {
	for words in "" "frobnicate" "begin" "begin ck" "begin ck x" "begin ck -1" "begin ck 1x" \
		"begin ck 1000000000000000000" "begin ck 1 2" "begin ck 1 --attempt -1" \
		"begin ck 1 --attempt x" "begin ck 1 --frob" "commit ck" "latest" "latest a --layout x" \
		"list" "list ck --pattern x" "prune" "prune ck" "verify ck 1 --all" \
		"begin ck 1 --tasks 0" "begin ck 1 --sharded --task 4 --tasks 4 --attempt 1"; do
		run -2 --separate-stderr ckpt-rotate $words
		[ "$output" = "" ]
		[ "${#stderr_lines[@]}" = 1 ]
	done
	PREEMPT_ATTEMPT=x fails 2 PREEMPT_ATTEMPT ckpt-rotate begin ck 1
	[ ! -e ck ]
}

@test "JSON: list, latest and prune are documents" {
	save 10
	ckpt-rotate begin ck 20
	for command in "list" "latest" "prune --keep-last 1 --dry-run"; do
		ckpt-rotate $command --json ck | json True
	done
	mkdir empty
	ckpt-rotate list --json empty | json 'c == []'
}
