#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# tests/run itself, in a small house: what it counts as failed, and what its last line says.
# asan: no (nothing of ours is built)
# shellcheck disable=SC2016 # text for another shell

bats_require_minimum_version 1.5.0

setup() {
	house="$BATS_TEST_TMPDIR/a house"
	mkdir -p "$house/tests/rig" "$house/tests/unit"
	cp "$BATS_TEST_DIRNAME/run" "$house/tests"
	cp "$BATS_TEST_DIRNAME"/../support/{takes,jobs}.bash "$house/tests/rig"
	printf '#!/bin/sh\n' >"$house/tests/support/packages"
	printf '#!/bin/sh\necho "ok 1 - tidy"; echo 1..1\n' >"$house/tests/support/lint"
	chmod +x "$house"/tests/*
	chmod +x "$house/tests/support/packages"
	printf 'everything:\n\t@true\n' >"$house/Makefile"
}

# A unit test, which is a shell script here: unit NAME SCRIPT
unit() {
	local build
	touch "$house/tests/unit/$1.c"
	for build in plain asan; do
		mkdir -p "$house/build/$build/unit"
		printf '#!/bin/bash\n%s\n' "$2" >"$house/build/$build/unit/$1"
		chmod +x "$house/build/$build/unit/$1"
	done
}

# A bats file of one test: bats_file NAME SCRIPT [COMMENT], the test a smoke test unless SMOKE is empty.
bats_file() {
	printf '# %s\n%s\n@test "%s" {\n%s\n}\n' "${3-}" "${SMOKE-# bats test_tags=smoke}" "$1" "$2" >"$house/tests/$1.bats"
}

# The last line, and nothing else on it.
ends_with() {
	[ "${lines[-1]}" = "$1" ] || {
		echo "$output"
		return 1
	}
}

# The process whose number is in the file child has ended, whether or not its parent has noticed.
child_is_gone() {
	local child end=$((SECONDS + 60))
	child=$(cat "$BATS_TEST_TMPDIR/child")
	[ -n "$child" ]
	# KILL takes effect when its turn comes.
	while grep -q '^State:[[:space:]]*[^ZX[:space:]]' "/proc/$child/status" 2>/dev/null; do
		((SECONDS < end)) || return 1
		sleep 0.05
	done
}

run_tests() {
	run "-$1" env -u BATS_TMPDIR -u BATS_RUN_TMPDIR "$house/tests/run" "${@:2}"
}

# bats test_tags=smoke
@test "what passes is summed: the check set, all, files by name" {
	unit good 'echo "ok 1 - a"; echo "ok 2 - b"; echo 1..2'
	bats_file fine true
	printf '@test "more" { true; }\n' >>"$house/tests/fine.bats"
	run_tests 0
	ends_with "4 passed, 0 failed, 0 skipped"
	[[ $output = *"unit/good asan "* && $output = *"fine.bats smoke asan "* && $output != *"fine.bats plain"* ]]
	run_tests 0 --all
	ends_with "9 passed, 0 failed, 0 skipped"
	[[ $output = *"fine.bats rest asan "*"unit/good plain "* || $output = *"unit/good plain "*"fine.bats rest asan "* ]]
	run_tests 0 --quick
	ends_with "4 passed, 0 failed, 0 skipped"
	run_tests 0 "$house/tests/fine.bats"
	ends_with "4 passed, 0 failed, 0 skipped"
	run_tests 0 --quick "$house/tests/fine.bats"
	ends_with "2 passed, 0 failed, 0 skipped"
}

@test "a file without smoke tests, and one that takes no sanitizers" {
	SMOKE='' bats_file slow true
	bats_file fragile true 'asan: no (why not)'
	run_tests 0
	ends_with "2 passed, 0 failed, 0 skipped"
	[[ $output = *"fragile.bats plain "* && $output != *slow.bats* ]]
	run_tests 0 --all
	ends_with "4 passed, 0 failed, 0 skipped"
	[[ $output = *"slow.bats plain "* && $output = *"slow.bats asan "* ]]
}

@test "--within: what does not fit is named, is no failure, and has its turn on another day" {
	local name day first=''
	for name in a b c d e; do
		SMOKE='' bats_file "$name" false 'takes: 100'
	done
	for day in {20001..20012}; do
		CHECK_DAY=$day run_tests 0 --within 60
		ends_with "1 passed, 0 failed, 0 skipped"
		[[ $output = *"left out, as the time was over:"* ]]
		first+=$(sed -n '/^left out/ { n; s/,.*//p }' <<<"$output")
	done
	echo "$first"
	[ "$(grep -o '[a-e].bats [a-z]*' <<<"$first" | sort -u | wc -l)" -ge 5 ]
}

@test "--within: the check set is run whole, however long it takes" {
	bats_file long true 'takes: 1000'
	run_tests 0 --within 1
	ends_with "2 passed, 0 failed, 0 skipped"
	# In the other build it belongs to the rest.
	[[ $output = *"  long.bats asan "*"left out, as the time was over:"$'\n'"  long.bats plain"$'\n'* ]]
}

@test "--within: a file that is not through when the time is over is ended, named, and no failure" {
	# On a loaded machine it takes seconds to begin.
	local within
	for within in 10 60; do
		SMOKE='' bats_file slow 'setsid sleep 1234 & echo $! >"'"$BATS_TEST_TMPDIR/child"'"; sleep 1234' 'takes: 1'
		run_tests 0 --within $within
		ends_with "1 passed, 0 failed, 0 skipped"
		[ ! -s "$BATS_TEST_TMPDIR/child" ] || break
	done
	[[ $output = *"left out, as the time was over:"*"slow.bats plain (not finished)"* ]]
	child_is_gone
}

# bats test_tags=smoke
@test "a failed test is shown with its output, those that pass are not" {
	bats_file bad 'echo because; false'
	bats_file fine 'echo silence'
	run_tests 1 --quick
	ends_with "2 passed, 1 failed, 0 skipped"
	[[ $output = *"not ok 1 bad"*because* ]]
	[[ $output != *silence* ]]
	grep -q because "$house/build/check.log"
}

@test "what failed is named once more at the end, with where and why, in few lines" {
	bats_file bad 'echo because; false'
	bats_file fine true
	unit early 'echo 1..5; echo "# of many"; echo "not ok 1 - a"'
	unit later 'echo "ok 1 - a"; echo 1..1'
	run_tests 1 --quick
	ends_with "3 passed, 6 failed, 0 skipped"
	local last
	last=$(printf '%s\n' "${lines[@]}" | sed '1,/^failed:$/d')
	[ "$(grep -c . <<<"$last")" -le 14 ]
	[[ $last = *"unit/early plain"*"# of many"*"not ok 1 - a"*"4 of 5 tests did not run"*"bad.bats plain"*"not ok 1 bad"*"\`"*"failed"*because* ]]
	[[ $last != *fine* && $last != *later* ]]
	grep -q 'not ok 1 bad' "$house/build/failed"
}

@test "of very many failures the end tells the first" {
	unit bad 'for i in {1..70}; do echo "not ok $i - a"; done; echo 1..70'
	run_tests 1 --quick
	ends_with "1 passed, 70 failed, 0 skipped"
	local last
	last=$(printf '%s\n' "${lines[@]}" | sed '1,/^failed:$/d')
	[ "$(grep -c . <<<"$last")" = 62 ]
	[[ $last = *"more lines in build/failed"* ]]
}

@test "a build that fails, and then nothing runs" {
	printf 'everything:\n\t@echo bad source >&2; false\n' >"$house/Makefile"
	run_tests 1
	ends_with "0 passed, 1 failed, 0 skipped"
	[[ $output = *"bad source"* ]]
}

@test "skipped tests are counted, and why is said" {
	bats_file lazy 'skip "needs a moon"'
	run_tests 0 --quick
	ends_with "1 passed, 0 failed, 1 skipped"
	[[ $output = *"needs a moon"* ]]
}

@test "nothing ran is not passed" {
	bats_file lazy 'skip "needs a moon"'
	run_tests 1 --quick "$house/tests/lazy.bats"
	ends_with "0 passed, 0 failed, 1 skipped"
}

# bats test_tags=smoke
@test "a unit test that crashes, stops early, or has a plan it does not keep" {
	unit crash 'echo "ok 1 - a"; kill -SEGV $$'
	unit early 'echo 1..5; echo "ok 1 - a"'
	unit more 'echo 1..1; echo "ok 1 - a"; echo "ok 2 - b"'
	unit late 'echo "ok 1 - a"; echo 1..1; exit 3'
	run_tests 1 --quick
	ends_with "6 passed, 7 failed, 0 skipped"
	[[ $output = *"exit code 139"* ]]
	[[ $output = *"4 of 5 tests did not run"* ]]
}

@test "a bats file that cannot be read, or whose setup_file fails" {
	bats_file broken 'if'
	bats_file unset true
	sed -i '1i setup_file() { false; }' "$house/tests/unset.bats"
	run_tests 1 --quick
	ends_with "1 passed, 2 failed, 0 skipped"
}

@test "a file that hangs is ended with all it started" {
	# On a loaded machine it takes more than a second to begin.
	local limit
	for limit in 1 60; do
		bats_file hang 'setsid sleep 1234 & echo $! >"'"$BATS_TEST_TMPDIR/child"'"; sleep 1234' "limit: $limit"
		CHECK_PATIENCE=1 run_tests 1 --quick
		[[ $output = *"did not end within $limit s"* ]]
		[ ! -s "$BATS_TEST_TMPDIR/child" ] || break
	done
	ends_with "1 passed, 1 failed, 0 skipped"
	child_is_gone
}

# bats test_tags=smoke
@test "a process left behind is a failure, and is ended" {
	bats_file messy 'setsid sleep 1234 >/dev/null 2>&1 3>&- & echo $! >"'"$BATS_TEST_TMPDIR/child"'"'
	CHECK_PATIENCE=1 run_tests 1 --quick
	ends_with "2 passed, 1 failed, 0 skipped"
	[[ $output = *"left processes behind"*"sleep 1234"* ]]
	child_is_gone
}

# bats test_tags=smoke
@test "a sanitizer's report of any process is a failure, even where no task looks at its exit" {
	cat >"$BATS_TEST_TMPDIR/leak.c" <<-'END'
		#include <stdlib.h>
		int main(void) { volatile char *p = malloc(1); free((void *)p); return *p; }
	END
	gcc -fsanitize=address,undefined -o "$BATS_TEST_TMPDIR/leak" "$BATS_TEST_TMPDIR/leak.c"
	bats_file quiet '"'"$BATS_TEST_TMPDIR/leak"'" >/dev/null 2>&1 || true'
	run_tests 1 --quick
	ends_with "2 passed, 1 failed, 0 skipped"
	[[ $output = *heap-use-after-free* ]]
}

@test "alone: never beside another; asan: no: only once" {
	local note='[ "$(ls '"$BATS_TEST_TMPDIR"'/running | wc -l)" -lt 2 ]'
	local stay='touch '"$BATS_TEST_TMPDIR"'/running/$$; sleep 0.3; '"$note"'; rm '"$BATS_TEST_TMPDIR"'/running/$$'
	mkdir "$BATS_TEST_TMPDIR/running"
	bats_file one "$stay" alone
	bats_file two "$stay" alone
	bats_file three "$stay" 'alone (it measures)'
	bats_file four true 'asan: no (why not)'
	run_tests 0 --all
	ends_with "8 passed, 0 failed, 0 skipped"
}

@test "a file that mounts has a mount namespace of its own, another has not" {
	unshare --mount true 2>/dev/null || skip "needs root that may make one"
	local here
	here=$(readlink /proc/self/ns/mnt)
	bats_file inside '[ "$(readlink /proc/self/ns/mnt)" != "'"$here"'" ]' 'mounts: private'
	bats_file outside '[ "$(readlink /proc/self/ns/mnt)" = "'"$here"'" ]'
	run_tests 0 --quick
	ends_with "3 passed, 0 failed, 0 skipped"
}

@test "nothing of the caller's job reaches a test, and its home is not used" {
	bats_file clean '[ -z "$(env | grep -E "^(PREEMPT_|SLURM_|RANK=|SANITIZE=)")" ]; [ "$HOME" != /root ]; [ ! -t 0 ]; [[ $BIN = /*/bin && $OUT = /*/build/plain ]]'
	PREEMPT_RUN=mine SLURM_PROCID=3 RANK=1 SANITIZE=1 run_tests 0 --quick
	ends_with "2 passed, 0 failed, 0 skipped"
}

@test "interrupted: it says so, ends what runs, and leaves nothing" {
	bats_file hang 'echo $$ >"'"$BATS_TEST_TMPDIR/child"'"; sleep 1234'
	env --default-signal=INT,TERM "$house/tests/run" --quick >"$BATS_TEST_TMPDIR/output" 2>&1 3>&- &
	local runner=$! deadline=$((SECONDS + 120))
	until [ -s "$BATS_TEST_TMPDIR/child" ]; do
		((SECONDS < deadline))
		sleep 0.05
	done
	kill -TERM "$runner"
	local code=0
	wait "$runner" || code=$?
	[ "$code" = 1 ]
	[ "$(tail -n 1 "$BATS_TEST_TMPDIR/output")" = "1 passed, 1 failed, 0 skipped" ]
	child_is_gone
}

@test "wrong usage" {
	run_tests 2 --fast
	run_tests 2 --within soon
	run_tests 2 --all tests/support/lint
	run_tests 2 tests/none.bats
	[[ $output = *"there is no tests/none.bats"* ]]
}
