#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# ckpt-rotate prune, mark, pin and copy: what is kept and why, and nothing else is removed.
# takes: 30
# mounts: private
# shellcheck disable=SC2012,SC2016,SC2030,SC2031,SC2034,SC2086,SC2154
bats_require_minimum_version 1.5.0
load ../support/ckpt

prune() { ckpt-rotate prune ck "$@"; }
# kept OPTION...: the steps that prune would keep with these.
kept() {
	run -0 --separate-stderr prune -n "$@"
	awk '/ kept: / { printf "%s ", $1 }' <<<"$output"
}

hour=3600 noon=1700000000

# ---- Rules ----

@test "CK-1, CK-2 keep the last 3: after each save, and a damaged one does not count" {
	for step in 1 2 3 4; do
		[ "$step" != 4 ] || [ "$(steps)" = "1 2 3 " ]
		save $step
		prune -q --keep-last 3
	done
	[ "$(steps)" = "2 3 4 " ]
	rm -r ck
	saves 10 20 30 40 50 60
	rm ck/step-000000[146]0/model
	run -0 --separate-stderr prune --keep-last 2 --now @4000000000 --dry-run
	[ "${#lines[@]}" = 7 ]
	[ "$(reason 10)" = "damaged, and a newer one is complete" ]
	[ "$(reason 20)" = "2 newer ones are complete" ]
	[ "$(reason 30)" = "one of the last 2" ]
	[ "$(reason 40)" = "damaged, and a newer one is complete" ]
	[ "$(reason 60)" = "damaged, and no newer one is complete" ]
	[[ ${lines[1]} == *" removed: "* && ${lines[5]} == *" kept: the newest complete one" ]]
	[[ $stderr == *"nothing was removed"* ]]
	[ "$(ls ck | wc -l)" = 7 ]
	# The real run prints the same table.
	said=$output
	run -0 --separate-stderr prune --keep-last 2 --now @4000000000
	[ "$output" = "$said" ]
	[ "$stderr" = "" ]
	[ "$(names ck)" = "latest step-00000030 step-00000050 step-00000060" ]
	run -0 --separate-stderr prune -q --keep-last 1
	[ "$output$stderr" = "" ]
	[ "$(names ck)" = "latest step-00000050 step-00000060" ]
}

@test "prune never removes the newest complete one, nor the one committed last" {
	save 10
	prune --keep-last 1
	[ "$(steps)" = "10 " ]
	# The run was set back to an earlier step.
	saves 200 210 220 100
	prune --keep-last 1
	[ "$(steps)" = "100 220 " ]
	rm ck/step-*/model
	prune --keep-last 1
	[ "$(ls ck | wc -l)" = 3 ]
}

@test "OB-1 interval 4, preempted at 2: 0, 2, 4, 8" {
	# Periodic saves every 4 steps, one of a preemption at 2.
	saves 0 2 4 8
	run -0 prune --keep-every-steps 4 --keep-step 2
	[ "$(steps)" = "0 2 4 8 " ]
	[ "$(reason 2)" = "named by --keep-step" ]
	[ "$(reason 4)" = "every 4 steps" ]
	prune -q --keep-every-steps 4
	[ "$(steps)" = "0 4 8 " ]
}

@test "OB-2 keep the last 2 and one in 3 hours, hourly saves 0 to 9: 0, 3, 6, 8, 9" {
	for step in 0 1 2 3 4 5 6 7 8 9; do save $step --time @$((noon + step * hour)); done
	run -0 --separate-stderr prune --keep-last 2 --keep-every 3h --now @$((noon + 10 * hour))
	[ "$(steps)" = "0 3 6 8 9 " ]
	[[ ${lines[0]} =~ STEP.*SIZE.*AGE.*WHAT ]]
	[[ ${lines[1]} =~ ^\ +0\ .*\ 22\ B\ +10h00m\ +kept:\ every\ 3h$ ]]
	[[ ${lines[2]} =~ removed:\ 8\ newer\ ones\ are\ complete$ ]]
	[ "$(reason 9)" = "the newest complete one, every 3h" ]
	[ "$(reason 8)" = "one of the last 2" ]
}

@test "keep by age, by metric, by name" {
	save 1 --time @$((noon - 10)) --metric loss=0.5
	save 2 --time @$((noon - 9)) --metric loss=0.25 --metric score=7
	save 3 --time @$((noon - 8)) --metric loss=nan
	save 4 --time @$((noon - 7))
	save 5 --time @$((noon - 1)) --metric loss=0.75 --metric score=-1e3
	save 6 --time @$noon --metric loss=0.6
	while IFS='|' read -r options wanted; do
		[ "$(kept --now @$noon $options)" = "$wanted " ] || { echo "$options"; return 1; }
	done <<-'END'
		--keep-within 1s|5 6
		--keep-best 2 --metric loss --mode min|1 2 6
		--keep-best 1 --metric loss --mode max|5 6
		--keep-best 1 --metric score --mode min|5 6
		--keep-best 9 --metric score --mode min|2 5 6
		--keep-step 3,1 --keep-step 4|1 3 4 6
	END
	run -0 prune -n --now @$noon --keep-within 1s --keep-best 1 --metric loss --mode min
	[ "$(reason 5)" = "within 1s" ]
	[ "$(reason 2)" = "one of the best 1 by loss" ]
	# A metric that none has would keep nothing: refused, and nothing is removed.
	fails 2 'no checkpoint has the metric "lost" (they have loss, score' prune --keep-best 1 --metric lost --mode min --keep-last 1
	[ "$output" = "" ]
	[[ $stderr == *"nothing was removed"* ]]
	run -0 ckpt-rotate list ck
	[[ $output == *"complete: loss=0.25 score=7"* && $output == *"complete: loss=-"* ]]
	ckpt-rotate list --json ck |
		json '[d.get("metrics") for d in c[1:5]] == [dict(loss=0.25, score=7), dict(loss=None), None, dict(loss=0.75, score=-1000)]'
}

@test "--max-bytes: the oldest that may go goes, what must stay stays and is said" {
	for step in 1 2 3 4 5; do save $step --metric "loss=$step"; done # 22 bytes each
	[ "$(kept --max-bytes 66)" = "3 4 5 " ]
	run -0 prune -n --max-bytes 66
	[ "$(reason 2)" = "over --max-bytes, and it is the oldest that may be removed" ]
	[ "$(reason 3)" = "there is room" ]
	[ "$(kept --keep-last 4 --max-bytes 65)" = "4 5 " ]
	# From cron: only that.
	saves 6
	ckpt-rotate pin ck 1
	fails 1 "--max-bytes cannot be met" prune -q --keep-last 1 --max-bytes 32
	[ "$output" = "" ]
	[ "${#stderr_lines[@]}" = 1 ]
	[ "$(steps)" = "1 6 " ]
}

@test "rules that cannot be meant are refused, and nothing is removed" {
	saves 1 2 3
	best="--keep-best 1 --metric a"
	for words in "" "--keep-last ''" "--keep-last ' 1'" "--keep-last --" "--keep-last 0x1" "--keep-last 1.5" "--keep-last x" \
		"--keep-last 1x" "--keep-last 0" "--keep-last -1" "--keep-last 18446744073709551616" "--keep-last 10000000000" \
		"--keep-every-steps 0" "--keep-every 0" "--keep-last 2 --keep-every 0s" "--keep-within 0" "--keep-within -1" \
		"--keep-within 3x" "$best" "--keep-last 1 --metric a" "--keep-last 1 --mode max" "--keep-best 1 --mode min" \
		"--keep-best 0 --metric a --mode min" "$best --mode best" "--keep-step x" "--keep-step 1,,2" "--keep-step -1" \
		"--keep-step ''" "--keep-step ," "--keep-step 1," "--keep-step 1x" "--keep-step 0x1" \
		"--max-bytes 0" "--max-bytes -1" "--max-bytes 1X" "--max-bytes 99999999T" "--keep-last 1 --now 5" \
		"--keep-last 1 --now @x"; do
		eval "run -2 --separate-stderr ckpt-rotate prune ck $words"
		[ "$output" = "" ]
		[ "${#stderr_lines[@]}" = 1 ]
	done
	prune -q --keep-last 1000000000 --keep-every-steps 999999999999999999 --keep-every 36500d
	[ "$(steps)" = "1 2 3 " ]
}

# ---- What stays ----

@test "CK-7 what is empty or broken beside the checkpoints changes no answer" {
	saves 10 20
	# The link is for users: no program reads it.
	for broken in 'ln -sfn nowhere ck/latest' 'ln -sfn step-00000010 ck/latest' 'rm ck/latest; : >ck/latest' \
		'rm ck/latest; mkdir ck/latest' 'rmdir ck/latest'; do
		eval "$broken"
		[ "$(ckpt-rotate latest ck --step --verify)" = 20 ]
	done
	save 30
	[ "$(readlink ck/latest)" = step-00000030 ]
	for content in '' '{' '[]' '{"reason": 7}'; do
		printf '%s' "$content" | tee ck/step-00000010/.ckpt-pin.json >ck/step-00000030/.ckpt-bad.json
		[ "$(ckpt-rotate latest ck --step 2>/dev/null)" = 20 ]
		prune -q --keep-last 1
		[ -e ck/step-00000010/model ]
	done
	rm ck/step-00000010/.ckpt-pin.json
	prune -q --keep-last 1
	[ "$(steps)" = "20 " ]
	: >ck/step-00000020/.ckpt-manifest.json
	fails 1 "step-00000020 is damaged" ckpt-rotate latest ck
	[[ $stderr == *"step-00000030 is bad"* ]]
}

@test "CK-9 foreign files are never touched" {
	saves 10 20 30
	mkdir -p ck/step-40 ck/step-00000005 ck/checkpoint-500 ck/.tmp-mine ck/.gone-mine \
		ck/.gone-0123456789abcdef-mine ck/step-00000001.bak
	for dir in ck/step-40 ck/step-00000005 ck/checkpoint-500 ck/.tmp-mine; do echo mine >$dir/model; done
	echo mine | tee ck/notes.txt >ck/step-00000007
	ln -s /etc ck/step-00000008
	ln -s notes.txt ck/best
	foreign() { find ck -not -path 'ck/step-000000[123]0*' -not -name latest | sort; }
	foreign >before
	prune --keep-last 1
	foreign | diff before -
	[ "$(steps)" = "30 " ]
	[ "$(ckpt-rotate latest ck --step 2>/dev/null)" = 30 ]
	# Nor are checkpoints offered where another file has the name of a save.
	for step in 5 7 8; do fails 1 "is not a checkpoint of ours" ckpt-rotate begin ck $step; done
	[ "$(cat ck/step-00000005/model)" = mine ]
}

@test "what is not committed goes after a day, or after an hour if a newer one is complete" {
	unfinished() { # STEP AGE
		echo half >"$(ckpt-rotate begin ck "$1")/model"
		find "ck/.tmp-step-000000$1-attempt-0" -exec touch -d "$2 ago" {} +
	}
	saves 20
	unfinished 10 '59 minutes'
	unfinished 30 '23 hours'
	run -0 prune --keep-last 1
	[[ $(reason 10) == "not committed; perhaps still being written: changed 59m"*" ago" ]]
	[[ $(reason 30) == "not committed; perhaps still being written: changed 23h"*" ago" ]]
	[ -e ck/.tmp-step-00000010-attempt-0/model ]
	[ -e ck/.tmp-step-00000030-attempt-0/model ]
	unfinished 10 '61 minutes'
	unfinished 30 '25 hours'
	run -0 prune -n --keep-last 1 --keep-step 10
	[ "$(reason 10)" = "not committed, and not changed for an hour; a newer one is complete" ]
	[ "$(reason 30)" = "not committed, and not changed for a day" ]
	# One file deep below that is written is enough.
	mkdir -p ck/.tmp-step-00000030-attempt-0/a/b
	: >ck/.tmp-step-00000030-attempt-0/a/b/c
	find ck/.tmp-step-00000030-attempt-0 -not -name c -exec touch -d '25 hours ago' {} +
	prune -q --keep-last 1
	[ "$(names -A ck)" = ".tmp-step-00000030-attempt-0 latest step-00000020" ]
	find ck/.tmp-step-00000030-attempt-0 -exec touch -d '25 hours ago' {} +
	prune -q --keep-last 1
	[ "$(names -A ck)" = "latest step-00000020" ]
	# Alone it is judged in the same way.
	rm -r ck/step-00000020
	unfinished 30 '25 hours'
	prune -q --keep-last 1
	[ "$(names -A ck)" = "latest" ]
}

@test "a pruner that comes between two tasks leaves the first one's shard: the second completes it" {
	save 10
	echo 0 >"$(shard begin 20 0 2)/part"
	shard commit 20 0 2
	run -0 prune --keep-last 1
	[[ $(reason 20) == "not committed; perhaps still being written: changed "*" ago" ]]
	echo 1 >"$(shard begin 20 1 2)/part"
	[ "$(shard commit 20 1 2)" = complete ]
	no_debris 20
}

@test "a checkpoint marked as bad is never offered again, and its step can be saved again" {
	saves 10 20 30
	before=$(stat -c '%i %y' ck/step-00000030/.ckpt-manifest.json)
	ckpt-rotate mark ck 30 bad --reason 'loss is nan since 25'
	run -0 --separate-stderr ckpt-rotate latest ck --step
	[ "$output" = 20 ]
	[[ $stderr == *"step-00000030 is bad and was skipped: loss is nan since 25"* ]]
	[ "$(stat -c '%i %y' ck/step-00000030/.ckpt-manifest.json)" = "$before" ]
	[[ $(ckpt-rotate list ck | tail -n 1) == *"bad: loss is nan since 25" ]]
	[[ $(ckpt-rotate verify ck 30) == *"verified: 2 files, 24 B; marked as bad: loss is nan since 25" ]]
	# Evidence while nothing is newer, then it goes.
	prune -q --keep-last 1
	[ -d ck/step-00000030 ]
	[ "$(steps)" = "20 " ]
	# Training comes by again.
	echo better >"$(ckpt-rotate begin ck 30)/model"
	[ "$(ckpt-rotate latest ck --step 2>/dev/null)" = 20 ]
	[ "$(ckpt-rotate commit ck 30)" = complete ]
	no_debris 30
	[ "$(cat ck/latest/model)" = better ]
	# Marked since: to commit it again after an unknown outcome is no quarrel.
	ckpt-rotate mark ck 30 bad
	[ "$(ckpt-rotate commit ck 30)" = complete ]
	d=$(ckpt-rotate begin ck 30)
	fails 1 "wrote nothing" ckpt-rotate commit ck 30
	rm -r "$d"
	# Marked, and that is taken back.
	ckpt-rotate mark ck 30 bad
	ckpt-rotate mark ck 30 bad --reason again
	[ "$(ckpt-rotate latest ck --step --or none 2>/dev/null)" = 20 ]
	ckpt-rotate mark ck 30 good
	ckpt-rotate mark ck 30 good
	[ "$(ckpt-rotate latest ck --step)" = 30 ]
	# All are bad: there is none.
	for step in 20 30; do ckpt-rotate mark ck $step bad; done
	[ "$(ckpt-rotate latest ck --or none 2>/dev/null)" = none ]
	prune -q --keep-last 1
	[ "$(ls ck | wc -l)" = 3 ]
}

@test "a mark that cannot be read: nothing is known of that checkpoint, and it stays" {
	saves 10 20
	ckpt-rotate mark ck 20 bad
	run -0 strace -f -o trace -P "$PWD/ck/step-00000020/.ckpt-bad.json" -e trace=read -e inject=read:error=EIO \
		ckpt-rotate prune --keep-last 1 ck
	[[ $output == *"kept: could not be read"* ]]
	[ -d ck/step-00000020 ]
}

@test "what is pinned is never pruned; marks do not come along in a copy" {
	saves 10 20 30
	ckpt-rotate pin ck 10
	ckpt-rotate pin ck 10
	ckpt-rotate mark ck 10 bad
	rm ck/step-00000020/model
	ckpt-rotate pin ck 20
	run -0 prune --keep-last 1
	[ "$(reason 10) $(reason 20)" = "pinned pinned" ]
	[ "$(ls ck | wc -l)" = 4 ]
	[[ $(ckpt-rotate list ck) == *"bad, pinned: marked"* ]]
	ckpt-rotate list --json ck | json '[d.get("pinned", False) for d in c] == [True, True, False]'
	for step in 10 20 20; do ckpt-rotate unpin ck $step; done
	prune -q --keep-last 1
	[ "$(ls ck | wc -l)" = 2 ]
	ckpt-rotate pin ck 30
	ckpt-rotate mark ck 30 bad
	cp -r ck/step-00000030/. "$(ckpt-rotate begin ck 40)"
	[ "$(ckpt-rotate commit ck 40)" = complete ]
	[ "$(ckpt-rotate latest ck --step)" = 40 ]
	[ "$(names -A ck/step-00000040)" = ".ckpt-manifest.json model sub" ]
	mkdir ck/step-00000050
	fails 1 "not ours" ckpt-rotate pin ck 50
	for words in "1 pin ck 99" "1 mark ck 99 bad" "1 unpin ck 99" "1 pin missing 1" \
		"2 mark ck 40" "2 mark ck 40 worse" "2 mark ck 40 good --reason x" "2 pin ck" "2 pin ck x"; do
		run "-${words%% *}" --separate-stderr ckpt-rotate ${words#* }
		[ "${#stderr_lines[@]}" = 1 ]
	done
}

# ---- Removing ----

@test "commits, three pruners and a reader at once, without locks, too: the newest never falls and is always whole" {
	for locks in yes no; do
		rm -rf ck
		save 100
		: >running
		if [ $locks = yes ]; then
			one_prune() { ckpt-rotate prune -q "$@"; }
		else
			# As on NFS: no locks on directories. 75: the newest that it had seen is gone, taken by another.
			one_prune() {
				strace --seccomp-bpf -f -o /dev/null -e trace=flock -e inject=flock:error=EBADF \
					ckpt-rotate prune -q "$@" 2>>error || [ $? = 75 ]
			}
		fi
		pids=()
		for n in 1 2 3; do
			(while [ -e running ]; do one_prune --keep-last "$n" ck || exit; done) 3>&- &
			pids+=($!)
		done
		(
			last=100
			while [ -e running ] && [ $locks = yes ]; do
				now=$(ckpt-rotate latest ck --step --verify) && [ "$now" -ge "$last" ] || exit
				last=$now
			done
		) 3>&- &
		pids+=($!)
		for ((step = 101; step <= 120; step++)); do save $step; done
		rm running
		for pid in "${pids[@]}"; do wait "$pid"; done
		one_prune --keep-last 1 ck
		[ "$(steps)" = "120 " ]
		[ "$(find ck -name '.gone*' -o -name '.tmp*')" = "" ]
		[ "$(readlink ck/latest)" = step-00000120 ]
	done
}

@test "what is being removed is not looked at again for each that is" {
	saves {10..60..10}
	strace -f -o trace -e trace=readlinkat ckpt-rotate prune -q --keep-last 1 ck
	run ! grep '"\.gone' trace
}

@test "nothing is deleted before the directory is synced; when that fails, all get their names back" {
	saves 10 20 30
	# The fourth: one of two is to be deleted by its name now.
	for fault in "sync=fsync:error=EIO" "rename in=renameat:error=EIO:when=4"; do
		fails 75 "cannot ${fault%%=*} directory ck" strace -f -o trace -e trace=fsync,unlinkat,renameat \
			-e inject="${fault#*=}" ckpt-rotate prune --keep-last 1 ck
		[[ $output == *FAILED*FAILED* ]]
		run ! grep 'unlinkat.*gone' trace
		[ "$(names -A ck)" = "latest step-00000010 step-00000020 step-00000030" ]
	done
	strace -f -y -o trace -e trace=fsync,renameat,renameat2,unlinkat ckpt-rotate prune -q --keep-last 1 ck
	grep -q 'unlinkat(.*gone-' trace
	awk '/unlinkat\(.*gone-/ {exit !synced} /renameat/ {synced = 0} /fsync\([0-9]*<[^>]*\/ck>/ {synced = 1}' trace
	[ "$(names -A ck)" = "latest step-00000030" ]
}

@test "what a killed prune has renamed away gets its name back; what it began to delete is deleted" {
	saves 10 20 30
	hidden() { mv "ck/$1" "ck/.gone-$2-$3"; }
	hidden step-00000010 0123456789abcdef step-00000010
	hidden step-00000020 fedcba9876543210 step-00000020
	rm ck/.gone-fedcba9876543210-step-00000020/model
	# Its name is taken again.
	cp -r ck/step-00000030 ck/.gone-00000000000000ff-step-00000030
	mkdir ck/.gone-0123456789abcdef-mine ck/.gone-mine
	run -0 --separate-stderr prune -n --keep-last 9
	[[ $stderr == *"ck: 3 entries that a killed prune had renamed away will get their names back"* ]]
	[ "$(names -A ck)" = ".gone-00000000000000ff-step-00000030 .gone-0123456789abcdef-mine .gone-0123456789abcdef-step-00000010 .gone-fedcba9876543210-step-00000020 .gone-mine latest step-00000030" ]
	run -0 --separate-stderr prune --keep-last 9
	[[ $stderr == *"ck: 3 entries that a killed prune had renamed away"* ]]
	[ "$(names -A ck)" = ".gone-0123456789abcdef-mine .gone-mine latest step-00000010 step-00000030" ]
	[ "$(steps)" = "10 30 " ]
}

# while_away COMMAND...: prune renames two away; then, before it looks once more, COMMAND runs.
while_away() {
	nth=2 stop_at renameat ckpt-rotate prune --keep-last 1 ck
	"$@"
	go_on
}

@test "prune looks again: what was pinned, or what a link names meanwhile, gets its name back; without the newest, all do" {
	saves 10 20 30
	cp -r ck whole
	pin_it() { : >"$(echo ck/.gone-*-step-00000010)/.ckpt-pin.json"; }
	while_away pin_it
	[ "$code $(names ck)" = "0 latest step-00000010 step-00000030" ]
	grep -q 'kept: pinned since it was listed' answer
	ckpt-rotate unpin ck 10
	rm -r ck
	cp -r whole ck
	while_away ln -s step-00000020/model ck/best
	[ "$code $(names ck)" = "0 best latest step-00000020 step-00000030" ]
	for change in 'rm ck/step-00000030/model' 'ckpt-rotate mark ck 30 bad' 'rm -r ck/step-00000030'; do
		rm -r ck
		cp -r whole ck
		while_away eval "$change"
		[ "$code" = 75 ]
		grep -q 'ck/step-00000030 is no longer complete, so no checkpoint is removed; try again' error
		[ "$(ckpt-rotate latest ck --step 2>/dev/null)" = 20 ]
		[ "$(find ck -name '.gone*')" = "" ]
	done
	# A tracker that names another one; a pin beside; a tracker that breaks.
	fresh deepspeed 100 200 300
	while_away sh -c 'echo global_step200 >ck/latest'
	[ "$code $(names ck)" = "0 global_step200 global_step300 latest" ]
	fresh deepspeed 100 200 300
	while_away touch ck/.ckpt-pin-100
	[ "$code $(names ck)" = "0 global_step100 global_step300 latest" ]
	fresh deepspeed 100 200 300
	while_away sh -c ': >ck/latest'
	[ "$code $(names ck)" = "75 global_step100 global_step200 global_step300 latest" ]
}

# ---- Frameworks ----

@test "a framework's checkpoint that changed a short time ago stays and does not count" {
	fresh hf 100 200 300
	touch ck/checkpoint-300/trainer_state.json
	run -0 prune --keep-last 1 --layout hf
	[[ $(reason 300) == "the newest complete one, perhaps still being written: changed "*" ago" ]]
	[ "$(reason 200)" = "the newest complete one that is settled" ]
	[ "$(names ck)" = "checkpoint-200 checkpoint-300" ]
	prune -q --keep-last 1 --settled 0s
	[ "$(names ck)" = "checkpoint-300" ]
}

@test "what is incomplete stays until a newer one is complete and nothing has changed; what is unknown always stays" {
	fresh hf 100 200 300
	rm ck/checkpoint-{100,300}/trainer_state.json
	mkdir ck/checkpoint-50
	echo '{}' >ck/checkpoint-50/config.json
	in=ck age
	run -0 prune --keep-last 1
	[ "$(reason 300)" = "incomplete, and no newer one is complete" ]
	[ "$(reason 100)" = "incomplete, and a newer one is complete" ]
	[ "$(reason 50)" = "of an unknown form" ]
	[ "$(names ck)" = "checkpoint-200 checkpoint-300 checkpoint-50" ]
	rm -rf ck
	fresh hf 100 200
	rm ck/checkpoint-100/trainer_state.json
	# A file that was renamed into its place shows in the directory's time only.
	touch ck/checkpoint-100
	prune -q --keep-last 1
	[ "$(names ck)" = "checkpoint-100 checkpoint-200" ]
	prune -q --keep-last 1 --settled 0s
	[ "$(names ck)" = "checkpoint-200" ]
}

@test "without others the newest one would be doubtful: one of them stays" {
	fresh hf 100 200 300
	echo x >ck/checkpoint-100/extra
	age
	[ "$(steps)" = "100 200 300 " ]
	run -0 prune --keep-last 1 --keep-step 100
	[ "$(reason 200)" = "without it, the newest one is doubtful" ]
	make hf 400
	prune -q --keep-last 1 --keep-step 100
	[ "$(steps)" = "100 300 400 " ]
}

@test "the clock of the filesystem counts, not that of this machine; a dry run changes nothing" {
	fresh hf 100 200 300
	ckpt-rotate prune -q --keep-last 1 --now @1 ck
	[ "$(names -A ck)" = "checkpoint-300" ]
	before=$(stat -c '%y %z' ck)
	prune -n --keep-last 1
	[ "$(stat -c '%y %z' ck)" = "$before" ]
}

@test "many are deleted at once, and one that cannot be is named, and goes the next time" {
	save 1000
	many() { # NUMBER: of checkpoints, by copying
		local name step
		for ((step = 1; step <= $1; step++)); do
			name=$(printf 'ck/step-%08d' $step)
			cp -r ck/step-00001000 "$name"
			sed -i "s/\"step\": 1000/\"step\": $step/" "$name/.ckpt-manifest.json"
		done
	}
	many 60
	run -0 --separate-stderr prune --keep-last 3
	[ "$(grep -c 'removed: ' <<<"$output")" = 58 ]
	[ "$(ls -A ck | wc -l)" = 4 ]
	many 30
	fails 75 "ck: cannot remove .gone-" strace -f -o trace -e trace=unlinkat -e inject=unlinkat:error=EIO:when=20 \
		ckpt-rotate prune --keep-last 3 ck
	[[ $stderr == *"Input/output error"* && $output == *"FAILED: "* ]]
	prune -q --keep-last 3
	[ "$(find ck -name '.gone*')" = "" ]
}

