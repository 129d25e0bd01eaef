#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# ckpt-rotate: what is kept and why, marks and pins, who waits for whom, and its use from cron.
# takes: 30
# shellcheck disable=SC2154,SC2016,SC2030,SC2031,SC2012,SC2103,SC2164,SC2034
bats_require_minimum_version 1.5.0
load ../support/programs
load ../support/stop_at

setup() {
	PATH=${BIN:-$BATS_TEST_DIRNAME/../../bin}:$PATH
	cd "$BATS_TEST_TMPDIR"
	unset PREEMPT_ATTEMPT PREEMPT_LIFE PREEMPT_TASK PREEMPT_TASKS
	# Leak checks do not work under strace.
	export ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0
	pids=()
}

teardown() {
	local pid
	for pid in $(jobs -p) "${pids[@]}" ${stopped-}; do kill -KILL "$pid" 2>/dev/null || :; done
}

# save STEP [OPTION...]: one checkpoint, committed with these options.
save() {
	local d step=$1
	shift
	d=$(ckpt-rotate begin ck "$step") && echo "model of $step" >"$d/model" &&
		[ "$(ckpt-rotate commit ck "$step" "$@")" = complete ]
}

steps() {
	ckpt-rotate list --json ck | grep -o '{"step": [0-9]*.*"state": "complete"' |
		grep -o '^{"step": [0-9]*' | grep -o '[0-9]*' | tr '\n' ' '
}

prune() { ckpt-rotate prune ck "$@"; }
# reason STEP: what the table in $output says of it.
reason() { sed -n "s/^ *$1 .*  \(kept\|removed\): //p" <<<"$output"; }

hour=3600 noon=1700000000

@test "CK-1 keep 3, four saves: 2, 3, 4" {
	for step in 1 2 3 4; do
		save $step
		prune -q --keep-last 3
	done
	[ "$(steps)" = "2 3 4 " ]
}

@test "CK-2 three are kept, the limit is the same: still all until the next save" {
	for step in 1 2 3; do save $step; done
	prune -q --keep-last 3
	[ "$(steps)" = "1 2 3 " ]
	prune -q --keep-last 3
	[ "$(steps)" = "1 2 3 " ]
	save 4
	[ "$(steps)" = "1 2 3 4 " ]
	prune -q --keep-last 3
	[ "$(steps)" = "2 3 4 " ]
}

@test "CK-7 what is empty or broken beside the checkpoints changes no answer" {
	save 10
	save 20
	# The link is for users: no program reads it.
	for broken in 'ln -sfn nowhere ck/latest' 'ln -sfn step-00000010 ck/latest' 'rm ck/latest; : >ck/latest' \
		'rm ck/latest; echo garbage >ck/latest' 'rm ck/latest; mkdir ck/latest' 'rmdir ck/latest'; do
		eval "$broken"
		[ "$(ckpt-rotate latest ck --step --verify)" = 20 ]
	done
	save 30
	[ "$(readlink ck/latest)" = step-00000030 ]
	for content in '' '{' '[]' '{"reason": 7}'; do
		printf '%s' "$content" >ck/step-00000010/.ckpt-pin.json
		printf '%s' "$content" >ck/step-00000030/.ckpt-bad.json
		run -0 --separate-stderr ckpt-rotate latest ck --step
		[ "$output" = 20 ]
		prune -q --keep-last 1
		[ -e ck/step-00000010/model ]
	done
	rm ck/step-00000010/.ckpt-pin.json
	prune -q --keep-last 1
	[ "$(steps)" = "20 " ]
	: >ck/step-00000020/.ckpt-manifest.json
	run -1 --separate-stderr ckpt-rotate latest ck
	[[ $stderr == *"step-00000020 is damaged"* && $stderr == *"step-00000030 is bad"* ]]
}

@test "OB-1 interval 4, preempted at 2: 0, 2, 4, 8" {
	# Periodic saves every 4 steps, one of a preemption at 2.
	for step in 0 2 4 8; do save $step; done
	[ "$(steps)" = "0 2 4 8 " ]
	# All that is kept by the interval, and the newest.
	run -0 prune --keep-every-steps 4 --keep-step 2
	[ "$(steps)" = "0 2 4 8 " ]
	[ "$(reason 2)" = "named by --keep-step" ]
	[ "$(reason 4)" = "every 4 steps" ]
	prune -q --keep-every-steps 4
	[ "$(steps)" = "0 4 8 " ]
}

@test "OB-2 keep the last 2 and one in 3 hours, hourly saves 0 to 9: 0, 3, 6, 8, 9" {
	for step in 0 1 2 3 4 5 6 7 8 9; do save $step --time @$((noon + step * hour)); done
	run -0 --separate-stderr prune --keep-last 2 --keep-every 3h --now @$((noon + 10 * hour)) --dry-run
	dry=$output
	[ "$(steps)" = "0 1 2 3 4 5 6 7 8 9 " ]
	run -0 --separate-stderr prune --keep-last 2 --keep-every 3h --now @$((noon + 10 * hour))
	[ "$output" = "$dry" ]
	[ "$(steps)" = "0 3 6 8 9 " ]
	[[ ${lines[0]} =~ STEP.*SIZE.*AGE.*WHAT ]]
	[[ ${lines[1]} =~ ^\ +0\ .*\ 11\ B\ +10h00m\ +kept:\ every\ 3h$ ]]
	[[ ${lines[2]} =~ removed:\ 8\ newer\ ones\ are\ complete$ ]]
	[ "$(reason 9)" = "the newest complete one, every 3h" ]
	[ "$(reason 8)" = "one of the last 2" ]
	# After each save, as a program does it: the same.
	rm -r ck
	for step in 0 1 2 3 4 5 6 7 8 9; do
		save $step --time @$((noon + step * hour))
		prune -q --keep-last 2 --keep-every 3h --now @$((noon + step * hour))
	done
	[ "$(steps)" = "0 3 6 8 9 " ]
}

@test "keep by age, by metric, by name; and what has no metric" {
	save 1 --time @$((noon - 10)) --metric loss=0.5
	save 2 --time @$((noon - 9)) --metric loss=0.25 --metric score=7
	save 3 --time @$((noon - 8)) --metric loss=nan
	save 4 --time @$((noon - 7))
	save 5 --time @$((noon - 1)) --metric loss=0.75 --metric score=-1e3
	save 6 --time @$noon --metric loss=0.6
	dry() { run -0 --separate-stderr prune -n --now @$noon "$@"; }
	dry --keep-within 1s
	[ "$(grep -o '^ *[0-9]* .*kept' <<<"$output" | awk '{printf "%s ", $1}')" = "5 6 " ]
	[ "$(reason 5)" = "within 1s" ]
	kept() { dry "$@" && awk '/ kept: /{printf "%s ", $1}' <<<"$output"; }
	[ "$(kept --keep-best 2 --metric loss --mode min)" = "1 2 6 " ]
	[ "$(kept --keep-best 1 --metric loss --mode max)" = "5 6 " ]
	[ "$(kept --keep-best 1 --metric score --mode min)" = "5 6 " ]
	[ "$(kept --keep-best 9 --metric score --mode min)" = "2 5 6 " ]
	[ "$(kept --keep-best 1 --metric loss --mode min --keep-unmeasured)" = "2 3 4 6 " ]
	# A metric that none has would keep nothing: refused, and nothing is removed.
	run -2 --separate-stderr prune --keep-best 1 --metric lost --mode min --keep-last 1
	[ "$output" = "" ]
	[[ $stderr == *'no checkpoint has the metric "lost" (they have loss, score'*"nothing was removed"* ]]
	[ "$(kept --keep-best 1 --metric lost --mode min --keep-unmeasured)" = "1 2 3 4 5 6 " ]
	[ "$(kept --keep-step 3,1 --keep-step 4)" = "1 3 4 6 " ]
	dry --keep-best 1 --metric loss --mode min
	[ "$(reason 2)" = "one of the best 1 by loss" ]
	run -0 ckpt-rotate list ck
	[[ $output == *"complete: loss=0.25 score=7"* && $output == *"complete: loss=-"* ]]
	ckpt-rotate list --json ck | python3 -c '
import json, sys
found = {c["step"]: c.get("metrics") for c in json.load(sys.stdin)}
assert found[2] == {"loss": 0.25, "score": 7} and found[3] == {"loss": None}, found
assert found[4] is None and found[5] == {"loss": 0.75, "score": -1000}, found'
}

@test "metrics are exact, and what is none is refused before anything is committed" {
	for value in 0.1 1e300 -2.5e-310 3 0 -0.0 123456789012345678 0.30000000000000004; do
		rm -rf ck
		save 1 --metric "m=$value"
		ckpt-rotate list --json ck | python3 -c '
import json, sys
assert json.load(sys.stdin)[0]["metrics"]["m"] == float(sys.argv[1])' "$value"
	done
	rm -rf ck
	d=$(ckpt-rotate begin ck 1)
	echo x >"$d/x"
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
	ckpt-rotate commit ck 1 --metric "größe/loss(2)=1e999" --metric b=inf
	ckpt-rotate list --json ck | python3 -c '
import json, sys
assert json.load(sys.stdin)[0]["metrics"] == {"größe/loss(2)": None, "b": None}'
}

@test "limits: the oldest that may go goes, what must stay stays and is said" {
	for step in 1 2 3 4 5; do save $step --metric "loss=$step"; done # 11 bytes each
	run -0 --separate-stderr prune -n --max-bytes 33
	[ "$(awk '/ kept: /{printf "%s ", $1}' <<<"$output")" = "3 4 5 " ]
	[ "$(reason 2)" = "over --max-bytes, and it is the oldest that may be removed" ]
	[ "$(reason 3)" = "there is room" ]
	run -0 --separate-stderr prune -n --keep-last 4 --max-bytes 32
	[ "$(awk '/ kept: /{printf "%s ", $1}' <<<"$output")" = "4 5 " ]
	best=(--keep-best 1 --metric loss --mode min)
	run -0 --separate-stderr prune -n --keep-last 4 "${best[@]}" --max-bytes 33 --must keep-best
	[ "$(awk '/ kept: /{printf "%s ", $1}' <<<"$output")" = "1 4 5 " ]
	ckpt-rotate pin ck 2
	run -1 --separate-stderr prune --keep-last 4 "${best[@]}" --max-bytes 32 --must keep-best
	[[ $stderr == *"--max-bytes cannot be met"* ]]
	[ "$(steps)" = "1 2 5 " ]
	# From cron: only that.
	run -1 --separate-stderr prune -q "${best[@]}" --max-bytes 32 --must all
	[ "$output" = "" ]
	[ "${#stderr_lines[@]}" = 1 ]
	# Everything else may go, whatever that frees.
	run -1 --separate-stderr prune -q --min-free 16000000G --keep-last 9
	[[ $stderr == *"--min-free cannot be met"* ]]
	[ "$(steps)" = "2 5 " ]
	run -0 prune -q --min-free 1 --keep-last 9
	[ "$(steps)" = "2 5 " ]
}

@test "rules that cannot be meant are refused, and nothing is removed" {
	for step in 1 2 3; do save $step; done
	for words in "" "--must keep-last" "--must all --max-bytes 1" "--keep-last 0" "--keep-last -1" "--keep-last 1 --must keep-best" \
		"--keep-last 1 --must last" "--keep-every-steps 0" "--keep-every 0" "--keep-last 2 --keep-every 0s" \
		"--keep-within 0" "--keep-within -1" "--keep-within 3x" "--keep-best 1 --metric a" \
		"--keep-last 1 --metric a" "--keep-last 1 --mode max" \
		"--keep-unmeasured --metric a --mode max" "--keep-best 0 --metric a --mode min" "--keep-best 1 --mode min" \
		"--keep-best 1 --metric a --mode best" "--keep-unmeasured" "--keep-step x" "--keep-step 1,,2" \
		"--keep-step -1" "--max-bytes 0" "--max-bytes -1" "--max-bytes 1X" "--max-bytes 99999999T" \
		"--min-free 10%" "--keep-last 1 --now 5" "--keep-last 1 --now @x"; do
		# shellcheck disable=SC2086
		run -2 --separate-stderr ckpt-rotate prune ck $words
		[ "$output" = "" ]
		[ "${#stderr_lines[@]}" = 1 ]
	done
	[ "$(steps)" = "1 2 3 " ]
	run -0 prune -q --keep-last 1000000000 --keep-every-steps 999999999999999999 --keep-every 36500d
	[ "$(steps)" = "1 2 3 " ]
}

@test "clocks: equal times, a clock that goes backwards, a run set back to an early step" {
	for step in 10 20 30; do save $step --time @$noon; done
	run -0 prune -q --keep-every 1s --now @$noon
	[ "$(steps)" = "10 30 " ]
	save 40 --time @$((noon - 9 * hour))
	save 50 --time @$((noon - 9 * hour + 60))
	save 60 --time @$((noon + 60))
	run -0 prune -q --keep-every 1h --now @$((noon - hour))
	[ "$(steps)" = "10 40 60 " ]
	# Back to step 5, committed last: it stays until another is.
	save 5
	prune -q --keep-last 1
	[ "$(steps)" = "5 60 " ]
	save 6
	prune -q --keep-last 1
	[ "$(steps)" = "6 60 " ]
	prune -q --max-bytes 1 || [ $? = 1 ]
	[ "$(steps)" = "6 60 " ]
}

@test "a checkpoint marked as bad is never offered again, and its step can be saved again" {
	for step in 10 20 30; do save $step; done
	before=$(stat -c '%i %y' ck/step-00000030/.ckpt-manifest.json)
	ckpt-rotate mark ck 30 bad --reason 'loss is nan since 25'
	run -0 --separate-stderr ckpt-rotate latest ck --step
	[ "$output" = 20 ]
	[[ $stderr == *"step-00000030 is bad and was skipped: loss is nan since 25"* ]]
	[ "$(stat -c '%i %y' ck/step-00000030/.ckpt-manifest.json)" = "$before" ]
	run -0 ckpt-rotate list ck
	[[ ${lines[3]} == *"bad: loss is nan since 25" ]]
	run -0 --separate-stderr ckpt-rotate verify ck 30
	[[ $output == *"verified: 1 files, 12 B; marked as bad: loss is nan since 25" ]]
	# Evidence while nothing is newer, then it goes.
	prune -q --keep-last 1
	[ -d ck/step-00000030 ]
	[ "$(steps)" = "20 " ]
	# Training comes by again.
	d=$(ckpt-rotate begin ck 30)
	echo better >"$d/model"
	[ "$(ckpt-rotate latest ck --step 2>/dev/null)" = 20 ]
	[ "$(ckpt-rotate commit ck 30)" = complete ]
	[ "$(ckpt-rotate latest ck --step --verify)" = 30 ]
	[ "$(cat ck/latest/model)" = better ]
	[ "$(find ck -name '.gone*' -o -name '.tmp*')" = "" ]
	# Marked since: to commit it again after an unknown outcome is no quarrel.
	ckpt-rotate mark ck 30 bad
	[ "$(ckpt-rotate commit ck 30)" = complete ]
	run -0 --separate-stderr ckpt-rotate begin ck 30
	run -1 --separate-stderr ckpt-rotate commit ck 30
	[[ $stderr == *"wrote nothing"* ]]
	rm -r ck/.tmp-step-00000030-attempt-0
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

@test "what is pinned is never pruned; marks do not come along in a copy" {
	for step in 10 20 30; do save $step; done
	ckpt-rotate pin ck 10
	ckpt-rotate pin ck 10
	ckpt-rotate mark ck 10 bad
	rm ck/step-00000020/model
	ckpt-rotate pin ck 20
	run -0 prune --keep-last 1
	[ "$(reason 10)" = pinned ]
	[ "$(reason 20)" = pinned ]
	[ "$(ls ck | wc -l)" = 4 ]
	run -0 ckpt-rotate list ck
	[[ ${lines[1]} == *"bad, pinned: marked" ]]
	ckpt-rotate list --json ck | python3 -c '
import json, sys
assert [c.get("pinned", False) for c in json.load(sys.stdin)] == [True, True, False]'
	ckpt-rotate unpin ck 10
	ckpt-rotate unpin ck 20
	ckpt-rotate unpin ck 20
	prune -q --keep-last 1
	[ "$(ls ck | wc -l)" = 2 ]
	ckpt-rotate pin ck 30
	ckpt-rotate mark ck 30 bad
	d=$(ckpt-rotate begin ck 40)
	cp -r ck/step-00000030/. "$d"
	[ "$(ckpt-rotate commit ck 40)" = complete ]
	[ "$(ckpt-rotate latest ck --step)" = 40 ]
	[ "$(ls -A ck/step-00000040)" = "$(printf '%s\n' .ckpt-manifest.json model)" ]
	for words in "pin ck 99" "mark ck 99 bad" "unpin ck 99" "pin missing 1"; do
		# shellcheck disable=SC2086
		run -1 --separate-stderr ckpt-rotate $words
		[ "${#stderr_lines[@]}" = 1 ]
	done
	mkdir ck/step-00000050
	run -1 --separate-stderr ckpt-rotate pin ck 50
	[[ $stderr == *"not ours"* ]]
	for words in "mark ck 40" "mark ck 40 worse" "mark ck 40 good --reason x" "pin ck" "pin ck x"; do
		# shellcheck disable=SC2086
		run -2 --separate-stderr ckpt-rotate $words
		[ "${#stderr_lines[@]}" = 1 ]
	done
}

@test "a pin that comes while a pruner is about to remove counts" {
	for step in 10 20 30; do save $step; done
	# It has renamed 10 away, and then looks at 20.
	stop_at renameat ckpt-rotate prune --keep-last 1 ck
	ckpt-rotate pin ck 20
	go_on
	[ "$code" = 0 ]
	[ "$(steps)" = "20 30 " ]
	ckpt-rotate unpin ck 20
	# It has looked for the pin for the last time, and is about to rename: the last but one of
	# its looks at 20 (that it is the same directory).
	cp -a ck template
	strace -o trace -P step-00000020 -e trace=newfstatat ckpt-rotate prune --keep-last 1 ck
	looks=$(grep -n '"step-00000020"' trace | tail -n 1 | cut -d: -f1)
	rm -r ck
	mv template ck
	only=step-00000020 nth=$looks
	stop_at newfstatat ckpt-rotate prune --keep-last 1 ck
	ckpt-rotate pin ck 20
	go_on
	[ "$code" = 0 ]
	grep -q 'kept: pinned since it was listed' answer
	[ "$(steps)" = "20 30 " ]
}

@test "kill -9 at every call of mark and of pin: all or nothing, and a rerun finishes" {
	save 10
	save 20
	mv ck template
	local call n command
	for command in "mark ck 20 bad --reason why" "pin ck 20"; do
		points=0
		for call in fchmod write fsync rename unlinkat; do
			for ((n = 1; n < 20; n++)); do
				rm -rf ck
				cp -a template ck
				# shellcheck disable=SC2086
				run strace -o trace -e trace=$call -e inject=$call:signal=KILL:when=$n ckpt-rotate $command
				if [ "$status" != 137 ]; then break; fi
				points=$((points + 1))
				now=$(ckpt-rotate latest ck --step --verify 2>/dev/null)
				[[ $command = mark* && $now = 10 ]] || [ "$now" = 20 ]
				ckpt-rotate verify -q ck 20
				# shellcheck disable=SC2086
				ckpt-rotate $command
				[ "$(find ck -name '*.json.*')" = "" ]
			done
		done
		[ $points -ge 5 ]
	done
	[ "$(ckpt-rotate latest ck --step)" = 20 ]
	prune -q --keep-last 1 --max-bytes 1 || [ $? = 1 ]
	[ -d ck/step-00000020 ]
}

# replica COMMAND STEP TASK TASKS [OPTION...]
replica() {
	ckpt-rotate "$1" ck "$2" --chief-only --task "$3" --tasks "$4" --attempt 1 "${@:5}"
}

@test "--chief-only: one checkpoint, what the others write disappears" {
	save 10
	[ "$(replica begin 20 0 3)" = ck/.tmp-step-00000020-attempt-1 ]
	for task in 1 2; do
		[ "$(replica begin 20 $task 3)" = ck/.tmp-step-00000020-attempt-1-workertemp_$task ]
	done
	for d in ck/.tmp-*; do echo "the same" >"$d/model"; done
	run -0 ckpt-rotate list ck
	[[ ${lines[3]} == *"incomplete: task 1's own copy, which is discarded; its writer runs" ]]
	prune -q --keep-last 1
	[ "$(replica commit 20 1 3)" = "waiting for 1 of 3" ]
	[ ! -e ck/.tmp-step-00000020-attempt-1-workertemp_1 ]
	[ "$(ckpt-rotate latest ck --step)" = 10 ]
	[ "$(replica commit 20 0 3)" = complete ]
	[ "$(replica commit 20 2 3)" = complete ]
	[ "$(replica commit 20 2 3)" = complete ]
	# Late: its chief has finished already.
	d=$(replica begin 20 1 3)
	echo late >"$d/model"
	[ "$(replica commit 20 1 3)" = complete ]
	[ "$(cat ck/step-00000020/model)" = "the same" ]
	[ "$(ls -A ck)" = "$(printf '%s\n' latest step-00000010 step-00000020)" ]
	run -2 --separate-stderr ckpt-rotate begin ck 30 --chief-only
	[[ $stderr == *"--chief-only needs --task"* ]]
	run -2 --separate-stderr ckpt-rotate begin ck 30 --chief-only --sharded --task 0 --tasks 1 --attempt 1
}

@test "--chief-only: a step that was marked as bad is not complete before task 0 has saved it again" {
	scratch() { ckpt-rotate "$1" ck 10 --chief-only --task "$2" --tasks 2 --attempt "$3" "${@:4}"; }
	echo 1 >"$(scratch begin 0 1)/model"
	[ "$(scratch commit 0 1)" = complete ]
	ckpt-rotate mark ck 10 bad
	echo 2 >"$(scratch begin 1 2)/model"
	run -124 --separate-stderr scratch commit 1 2 --timeout 200ms
	[ "$output" = "" ]
	echo 1 >"$(scratch begin 0 2)/model"
	[ "$(scratch commit 0 2)" = complete ]
	echo 2 >"$(scratch begin 1 2)/model"
	[ "$(scratch commit 1 2 --timeout 10s)" = complete ]
}

@test "--chief-only: what a killed task left goes when its writer is gone" {
	save 10
	setsid bash -c 'd=$(ckpt-rotate begin ck 20 --chief-only --task 1 --tasks 2 --attempt 1); echo half >"$d/model"'
	[ -e ck/.tmp-step-00000020-attempt-1-workertemp_1/model ]
	prune -q --keep-last 5
	[ ! -e ck/.tmp-step-00000020-attempt-1-workertemp_1 ]
	# Begun again: emptied.
	setsid bash -c 'd=$(ckpt-rotate begin ck 20 --chief-only --task 1 --tasks 2 --attempt 1); echo half >"$d/half"'
	d=$(replica begin 20 1 2)
	[ "$(ls -A "$d")" = .ckpt-writer.json ]
}

@test "kill -9 at every call of a commit of --chief-only" {
	save 10
	d=$(replica begin 20 1 2)
	echo half >"$d/model"
	mkdir "$d/sub"
	mv ck template
	for call in renameat unlinkat; do
		for ((n = 1; n < 20; n++)); do
			rm -rf ck
			cp -a template ck
			run strace -o trace -e trace=$call -e inject=$call:signal=KILL:when=$n \
				ckpt-rotate commit ck 20 --chief-only --task 1 --tasks 2 --attempt 1
			if [ "$status" != 137 ]; then break; fi
			[ "$(ckpt-rotate latest ck --step --verify)" = 10 ]
			[ "$(replica commit 20 1 2)" = "waiting for 1 of 2" ]
			[ "$(ls -A ck)" = "$(printf '%s\n' latest step-00000010)" ]
		done
		[ $n -gt 1 ]
	done
}

one=0123456789ab0123456789ab
shard() {
	ckpt-rotate "$1" ck "$2" --sharded --task "$3" --tasks "$4" --attempt "${5:-1}" --life $one "${@:6}"
}

@test "commit --timeout waits for all; a task that misses it is named, and nothing is offered" {
	save 10
	for task in 0 1 2; do
		d=$(shard begin 20 $task 3)
		echo "$task" >"$d/part"
	done
	run -124 --separate-stderr shard commit 20 0 3 1 --timeout 300ms
	[[ $stderr == *"step 20 in ck is not complete: task 1, 2 has not committed"* ]]
	[ "$output" = "" ]
	[ "$(ckpt-rotate latest ck --step)" = 10 ]
	shard commit 20 1 3 1 --timeout 60s >waited 3>&- &
	waiter=$!
	until_true 10 test -e ck/.tmp-step-00000020-attempt-1-life-$one/.ckpt-shard-1.json
	[ "$(shard commit 20 2 3)" = complete ]
	wait $waiter
	[ "$(cat waited)" = complete ]
	[ "$(ckpt-rotate latest ck --step --verify)" = 20 ]
	# The others for their chief.
	d=$(replica begin 30 0 2)
	echo x >"$d/model"
	replica begin 30 1 2
	run -124 --separate-stderr replica commit 30 1 2 --timeout 100ms
	[[ $stderr == *"task 0 has not committed"* ]]
	replica commit 30 1 2 --timeout 60s >waited 3>&- &
	waiter=$!
	replica commit 30 0 2 --timeout 60s
	wait $waiter
	[ "$(cat waited)" = complete ]
}

@test "commit --timeout: what was published and may not be read is not called missing: 77" {
	for task in 0 1; do
		d=$(shard begin 20 $task 2)
		echo "$task" >"$d/part"
	done
	strace -f -o trace -P ck/step-00000020/.ckpt-manifest.json -e trace=openat \
		-e inject=openat:error=EACCES ckpt-rotate commit ck 20 --sharded --task 0 --tasks 2 --attempt 1 \
		--life $one --timeout 60s 2>err 3>&- &
	waiter=$!
	until_true 10 test -e ck/.tmp-step-00000020-attempt-1-life-$one/.ckpt-shard-0.json
	[ "$(shard commit 20 1 2)" = complete ]
	code=0
	wait $waiter || code=$?
	[ "$code" = 77 ]
	grep -q 'step-00000020: .*Permission denied' err
}

@test "commit --timeout: the last one was killed before it published; a waiter does" {
	for task in 0 1; do
		d=$(shard begin 20 $task 2)
		echo "$task" >"$d/part"
	done
	shard commit 20 0 2 1 --timeout 60s >waited 3>&- &
	waiter=$!
	until_true 10 test -e ck/.tmp-step-00000020-attempt-1-life-$one/.ckpt-shard-0.json
	run strace -o trace -e trace=renameat2 -e inject=renameat2:signal=KILL:when=1 \
		ckpt-rotate commit ck 20 --sharded --task 1 --tasks 2 --attempt 1 --life $one
	wait $waiter
	[ "$(cat waited)" = complete ]
	[ "$(ckpt-rotate latest ck --step --verify)" = 20 ]
}

@test "all shards are there, the last commit was killed before it published: said, kept, and published by another" {
	save 8
	PREEMPT_LIFE=$one PREEMPT_ATTEMPT=1 setsid -w bash -c '
		for task in 0 1; do
			d=$(ckpt-rotate begin ck 10 --sharded --task $task --tasks 2)
			echo "$task" >"$d/part"
		done
		ckpt-rotate commit -q ck 10 --sharded --task 0 --tasks 2
		strace -o trace -e trace=renameat2 -e inject=renameat2:signal=KILL:when=1 \
			ckpt-rotate commit -q ck 10 --sharded --task 1 --tasks 2 || :'
	run -0 ckpt-rotate list ck
	[[ $output = *"incomplete: all 2 shards are there, not published: run the commit of one task again; life $one; its writer is gone"* ]]
	run -0 ckpt-rotate prune --keep-last 1 ck
	[ -d ck/.tmp-step-00000010-attempt-1-life-$one ]
	cp -a ck other
	[ "$(ckpt-rotate commit ck 10 --sharded --task 0 --tasks 2 --attempt 1 --life $one)" = complete ]
	[ "$(ckpt-rotate latest ck --step --verify)" = 10 ]
	# Not for ever.
	rm -rf ck
	mv other ck
	save 12
	run -0 ckpt-rotate prune --keep-last 1 ck
	[ ! -e ck/.tmp-step-00000010-attempt-1-life-$one ]
}

@test "commit --timeout: a bad checkpoint of that step is no answer" {
	for task in 0 1; do
		d=$(shard begin 20 $task 2)
		echo "$task" >"$d/part"
		shard commit 20 $task 2
	done
	ckpt-rotate mark ck 20 bad
	for task in 0 1; do
		d=$(shard begin 20 $task 2 2)
		echo "better $task" >"$d/part"
	done
	run -124 --separate-stderr shard commit 20 0 2 2 --timeout 200ms
	[ "$(shard commit 20 1 2 2)" = complete ]
	[ "$(cat ck/latest/task-0/part)" = "better 0" ]
	[ "$(ckpt-rotate latest ck --step --verify)" = 20 ]
}

@test "shards tell metrics and times, and whichever process publishes writes the same" {
	for task in 0 1; do
		d=$(shard begin 20 $task 2)
		echo "$task" >"$d/part"
	done
	shard commit 20 1 2 1 --metric loss=2 --metric shard1=1 --time @$((noon + 5))
	shard commit 20 0 2 1 --metric loss=1 --time @$noon
	ckpt-rotate list --json ck | python3 -c '
import json, sys
c = json.load(sys.stdin)[0]
assert c["metrics"] == {"loss": 1, "shard1": 1} and c["utc"] == "2023-11-14T22:13:25.000Z", c'
	python3 -c 'import json; m = json.load(open("ck/latest/.ckpt-manifest.json")); assert m["uid"] == '"$(id -u)"', m'
}

@test "verify: contents, or --quick only what is present; -q says only what is wrong" {
	save 10
	save 20
	[ "$(ckpt-rotate verify --quick ck)" = "step-00000020 all there: 1 files, 12 B" ]
	run -0 --separate-stderr ckpt-rotate verify -q --all ck
	[ "$output$stderr" = "" ]
	printf M | dd of=ck/step-00000010/model conv=notrunc status=none
	run -0 --separate-stderr ckpt-rotate verify -q --quick --all ck
	run -65 --separate-stderr ckpt-rotate verify -q --all ck
	[ "$output" = "" ]
	[[ $stderr == *"step-00000010 is damaged: the checksum of model differs" ]]
	[ "${#stderr_lines[@]}" = 1 ]
	echo >>ck/step-00000010/model
	run -65 --separate-stderr ckpt-rotate verify --quick --all ck
	run -65 --separate-stderr ckpt-rotate verify --quick ck 10
	run -1 --separate-stderr ckpt-rotate verify ck 99
}

@test "verify shows its progress on a terminal, and nowhere else" {
	d=$(ckpt-rotate begin ck 1)
	head -c 30000000 /dev/zero >"$d/a"
	head -c 30000000 /dev/zero >"$d/b"
	ckpt-rotate commit ck 1
	run -0 --separate-stderr ckpt-rotate verify ck
	[ "$stderr" = "" ]
	command -v script >/dev/null || skip "no script(1) here"
	# Slow enough that there is something to tell.
	script -qec "strace -f -o trace -e trace=read -e inject=read:delay_enter=4000 ckpt-rotate verify ck" /dev/null \
		</dev/null >seen
	grep -q '%, .* MiB of 57.2 MiB, ' seen
	grep -q 'step-00000001 verified: 2 files, 57.2 MiB' seen
	script -qec "strace -f -o trace -e trace=read -e inject=read:delay_enter=4000 ckpt-rotate verify -q ck" /dev/null \
		</dev/null >seen
	[ ! -s seen ]
}

@test "a large file is read ahead by a thread: damage anywhere in it, and an error while it is read" {
	d=$(ckpt-rotate begin ck 1)
	head -c 50000001 /dev/zero >"$d/a"
	ckpt-rotate commit ck 1
	[ "$(ckpt-rotate verify ck)" = "step-00000001 verified: 1 files, 47.7 MiB" ]
	for at in 0 262143 262144 20000000 50000000; do
		printf X | dd of=ck/step-00000001/a bs=1 seek=$at conv=notrunc status=none
		run -65 --separate-stderr ckpt-rotate verify ck
		printf '\0' | dd of=ck/step-00000001/a bs=1 seek=$at conv=notrunc status=none
	done
	ckpt-rotate verify -q ck
	run -75 --separate-stderr strace -f -o trace -P "$PWD/ck/step-00000001/a" -e trace=read \
		-e inject=read:error=EIO:when=100 ckpt-rotate verify ck
	[[ $stderr == *"cannot read a"*"Input/output error"* ]]
}

@test "several pruners at once: each waits for the other, not for ever; where there are no locks, side by side" {
	for step in 10 20 30 40; do save $step; done
	stop_at renameat ckpt-rotate prune --keep-last 1 ck
	run -75 --separate-stderr timeout 30 ckpt-rotate prune -q --keep-last 1 --timeout 100ms ck
	[[ $stderr == *"another prune of ck is still at work"* ]]
	[ "${#stderr_lines[@]}" = 1 ]
	# A dry run does not wait.
	run -0 --separate-stderr prune -n --keep-last 1
	ckpt-rotate prune -q --keep-last 1 ck 3>&- &
	second=$!
	go_on
	wait $second
	[ "$(steps)" = "40 " ]
	# As on NFS: no locks on directories.
	save 100
	: >running
	unlocked() { strace --seccomp-bpf -f -o /dev/null -e trace=flock -e inject=flock:error=EBADF ckpt-rotate "$@"; }
	for n in 1 2 3; do
		# 75: the newest that it had seen is gone, taken by another.
		(while [ -e running ]; do unlocked prune -q --keep-last $n ck 2>>error || [ $? = 75 ] || exit; done) 3>&- &
		pids+=($!)
	done
	for ((step = 101; step <= 120; step++)); do save $step; done
	rm running
	for pid in "${pids[@]}"; do wait "$pid"; done
	pids=()
	unlocked prune -q --keep-last 1 ck
	[ "$(steps)" = "120 " ]
	[ "$(find ck -name '.gone*')" = "" ]
}

@test "many are deleted at once, and one that cannot be is named" {
	save 1000
	for ((step = 1; step <= 100; step++)); do
		cp -r ck/step-00001000 "ck/step-$(printf %08d $step)"
		sed -i "s/\"step\": 1000/\"step\": $step/" "ck/step-$(printf %08d $step)/.ckpt-manifest.json"
	done
	run -0 --separate-stderr prune --keep-last 3
	[ "$(grep -c 'removed: ' <<<"$output")" = 98 ]
	[ "$(ls -A ck | wc -l)" = 4 ]
	for ((step = 1; step <= 50; step++)); do
		cp -r ck/step-00001000 "ck/step-$(printf %08d $step)"
		sed -i "s/\"step\": 1000/\"step\": $step/" "ck/step-$(printf %08d $step)/.ckpt-manifest.json"
	done
	run -75 --separate-stderr strace -f -o trace -e trace=unlinkat -e inject=unlinkat:error=EIO:when=20 \
		ckpt-rotate prune --keep-last 3 ck
	[[ $stderr == *"ck: cannot remove .gone-"*"Input/output error"* ]]
	[[ $output == *"FAILED: "* ]]
	# What is left is deleted by the next.
	run -0 prune --keep-last 3
	[ "$(find ck -name '.gone*')" = "" ]
}

# units FILE: what a unit would run, its %-signs replaced, one command a line.
units() { sed -n 's/^ExecStart=//p' "$1" | sed "s|%f|ck|g; s|/usr/local/bin/||g; s|%%|%|g"; }

@test "the crontab and the systemd units of the examples are right, and their commands run" {
	examples=$BATS_TEST_DIRNAME/../../examples
	for step in 10 20 30 40 50; do save $step; done
	grep -v '^#\|^PATH=' "$examples/ckpt-rotate.crontab" >lines
	[ "$(wc -l <lines)" = 2 ]
	while read -r m h dom mon dow command; do
		[[ "$m $h $dom $mon $dow" =~ ^[0-9*/,-]+(\ [0-9*/,-]+){4}$ ]]
		command=${command//\/shared\/run7\/ck/ck}
		run -0 --separate-stderr sh -c "$command"
		[ "$output$stderr" = "" ]
	done <lines
	# The first of six hours, and the last three.
	[ "$(steps)" = "10 30 40 50 " ]
	for unit in ckpt-prune@.service ckpt-verify@.service; do
		units "$examples/$unit" >commands
		[ "$(wc -l <commands)" = 1 ]
		run -0 --separate-stderr sh -c "$(cat commands)"
		[ "$stderr" = "" ]
	done
	for timer in ckpt-prune@.timer ckpt-verify@.timer; do
		grep -q '^OnCalendar=' "$examples/$timer"
		grep -q '^WantedBy=timers.target' "$examples/$timer"
	done
	command -v systemd-analyze >/dev/null || skip "systemd-analyze is not here: only parsed by hand"
	mkdir units
	cp "$examples"/ckpt-*@.* units
	sed -i "s|/usr/local/bin/ckpt-rotate|$(command -v ckpt-rotate)|" units/*.service
	run -0 systemd-analyze verify units/ckpt-prune@x.timer units/ckpt-verify@x.timer
	[[ $output != *ckpt-* ]]
}

@test "a full disk or a quota: no mark, no debris, and what is present is still found and pruned" {
	[ "$(id -u)" = 0 ] || skip "needs root"
	unshare -m true 2>/dev/null || skip "cannot make a mount namespace"
	for step in 10 20; do save $step; done
	mkdir disk
	cat >filled <<-'FILLED'
		set -eu
		mount -t tmpfs -o size=256k ckpt-test disk
		cp -a ck disk/ck
		head -c 1m /dev/zero >disk/filler 2>/dev/null || :
		for command in "pin disk/ck 10" "mark disk/ck 20 bad --reason full"; do
			code=0
			ckpt-rotate $command 2>error || code=$?
			[ "$code" = 75 ] && grep -q "No space left" error
		done
		[ -z "$(find disk/ck -name '.ckpt-pin*' -o -name '.ckpt-bad*')" ]
		[ "$(ckpt-rotate latest disk/ck --step --verify)" = 20 ]
		ckpt-rotate prune -q --keep-last 1 disk/ck
		[ "$(ckpt-rotate latest disk/ck --step --verify)" = 20 ]
		[ ! -e disk/ck/step-00000010 ]
	FILLED
	run -0 unshare -m bash filled
	# A quota says it elsewhere, and with another word.
	d=$(ckpt-rotate begin ck 30)
	echo x >"$d/model"
	for call in write fsync; do
		run -75 --separate-stderr strace -f -o trace -e trace=$call -e inject=$call:error=EDQUOT:when=1 \
			ckpt-rotate commit ck 30
		[[ $stderr == *"quota exceeded"* ]]
		[ "$(ckpt-rotate latest ck --step --verify)" = 20 ]
	done
	run -75 --separate-stderr strace -o trace -e trace=mkdirat -e inject=mkdirat:error=EDQUOT ckpt-rotate begin ck 40
	[ "$(ckpt-rotate commit ck 30)" = complete ]
	[ "$(find ck -name '.tmp*' -o -name '*.json.*')" = "" ]
}

@test "--min-free: space that becomes free without it costs no checkpoint" {
	[ "$(id -u)" = 0 ] || skip "needs root"
	unshare -m true 2>/dev/null || skip "cannot make a mount namespace"
	mkdir disk
	cat >pruned <<-'PRUNED'
		set -eu
		mount -t tmpfs -o size=20m ckpt-test disk
		save() { head -c "$2" /dev/zero >"$(ckpt-rotate begin disk/ck "$1")/model"; ckpt-rotate commit -q disk/ck "$1"; }
		save 0 5M
		for step in 1 2 3; do save $step 1M; done
		# A prune was killed while it deleted step 0; a save of step 4 was killed; step 1 is damaged.
		mv disk/ck/step-00000000 "disk/ck/.gone-$(printf %016x "$(stat -c %i disk/ck/step-00000000)")-step-00000000"
		setsid bash -c 'head -c 5M /dev/zero >"$(ckpt-rotate begin disk/ck 4)/model"'
		echo >>disk/ck/step-00000001/model
		ckpt-rotate prune --min-free 17M disk/ck
		ls -A disk/ck
	PRUNED
	run -0 unshare -m bash pruned
	[[ $output == *"  2  "*"kept: there is room"* ]]
	[[ $output == *$'\nlatest\nstep-00000002\nstep-00000003' ]]
	sed -i 's/17M/18M/' pruned
	run -0 unshare -m bash pruned
	[[ $output == *"removed: less than --min-free, and it is the oldest that may be removed"* ]]
	[[ $output == *$'\nlatest\nstep-00000003' ]]
}

@test "an error while marks are read never offers what might be bad, and prunes nothing" {
	save 10
	save 20
	ckpt-rotate mark ck 20 bad
	only=$PWD/ck/step-00000020
	for call in newfstatat openat read; do
		for ((n = 1; n < 20; n++)); do
			code=0
			answer=$(strace -f -o trace -P "$only" -P "$only/.ckpt-bad.json" -e trace=$call \
				-e inject=$call:error=EIO:when=$n ckpt-rotate latest ck --step 2>/dev/null) || code=$?
			grep -q INJECTED trace || break
			[ "$code $answer" = "0 10" ] || [ "$code $answer" = "75 " ]
		done
	done
	run -0 strace -f -o trace -P "$only/.ckpt-bad.json" -e trace=read -e inject=read:error=EIO \
		ckpt-rotate prune --keep-last 1 ck
	[[ $output == *"kept: could not be read"* ]]
	[ -d ck/step-00000020 ]
}
