#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# tests/run itself, in a small house: what it runs, what it counts as failed, and what its last line says.
# asan: no (nothing of ours is built)
# shellcheck disable=SC2016 # text for another shell

bats_require_minimum_version 1.5.0

setup() {
	house="$BATS_TEST_TMPDIR/a house"
	mkdir -p "$house"/tests/{support,unit,programs,docs,fuzz,sim,crash,places} "$house/src"
	cp "$BATS_TEST_DIRNAME/../run" "$house/tests"
	printf '#!/bin/sh\n' >"$house/tests/support/packages"
	for file in support/lint fuzz/run sim/simulate crash/sweep; do
		printf '#!/bin/sh\necho "ok 1 - tidy $1"; echo 1..1\n' >"$house/tests/$file"
		chmod +x "$house/tests/$file"
	done
	chmod +x "$house/tests/support/packages"
	printf 'everything:\n\t@true\n' >"$house/Makefile"
	touch "$house/src/small.c"
}

# A unit test, which is a shell script here: unit NAME SCRIPT
unit() {
	touch "$house/tests/unit/$1.c"
	mkdir -p "$house/build/asan/unit"
	printf '#!/bin/bash\n%s\n' "$2" >"$house/build/asan/unit/$1"
	chmod +x "$house/build/asan/unit/$1"
}

# bats_file NAME SCRIPT [MARK...]: a file of one test in tests/programs.
bats_file() {
	printf '# %s\n' "${@:3}" >"$house/tests/programs/$1.bats"
	printf '@test "%s" {\n%s\n}\n' "$1" "$2" >>"$house/tests/programs/$1.bats"
}

# counts CODE LAST [OPTION...]: run it; the exit code, and the last line.
counts() {
	run "-$1" env -u BATS_TMPDIR -u BATS_RUN_TMPDIR "$house/tests/run" "${@:3}"
	echo "$output"
	[ "${lines[-1]}" = "$2" ]
}

# The process whose number is in the file child has ended, whether or not its parent has noticed.
child_is_gone() {
	local child end=$((SECONDS + 60))
	child=$(cat "$BATS_TEST_TMPDIR/child")
	while grep -q '^State:[[:space:]]*[^ZX[:space:]]' "/proc/$child/status" 2>/dev/null; do
		((SECONDS < end))
		sleep 0.05
	done
}

@test "what fails, crashes, ends early or is not what was planned is counted, shown, and named once more at the end" {
	bats_file bad 'echo because; false'
	bats_file fine 'echo silence'
	bats_file lazy 'skip "needs a moon"'
	bats_file broken 'if'
	bats_file unset true
	sed -i '1i setup_file() { false; }' "$house/tests/programs/unset.bats"
	unit crash 'echo "ok 1 - a"; kill -SEGV $$'
	unit early 'echo 1..5; echo "# of many"; echo "not ok 1 - a"'
	unit more 'echo 1..1; echo "ok 1 - a"; echo "ok 2 - b"'
	unit late 'echo "ok 1 - a"; echo 1..1; exit 3'
	counts 1 "9 passed, 11 failed, 1 skipped" all
	[[ $output = *"exit code 139"* && $output = *"2 tests ran, not 1"* && $output = *"needs a moon"* && $output != *silence* ]]
	local last
	last=$(printf '%s\n' "${lines[@]}" | sed '1,/^failed:$/d')
	[[ $last = *"unit/early"*"# of many"*"not ok 1 - a"*"4 of 5 tests did not run"* ]]
	[[ $last = *"programs/bad.bats"*"not ok 1 bad"*because* && $last != *fine* ]]
	grep -q because "$house/build/check.log"
	counts 1 "0 passed, 0 failed, 1 skipped" "$house/tests/programs/lazy.bats"
}

@test "a file that hangs, a process left behind, and a sanitizer's report that nobody saw are failures" {
	local stays='setsid sleep 1234 >/dev/null 2>&1 3>&- & echo $! >"'"$BATS_TEST_TMPDIR/child"'"'
	bats_file messy "$stays"
	CHECK_PATIENCE=1 counts 1 "1 passed, 1 failed, 0 skipped" "$house/tests/programs/messy.bats"
	[[ $output = *"left processes behind"*"sleep 1234"* ]]
	child_is_gone
	bats_file hangs "$stays; sleep 1234" 'takes: 0'
	sed -i 's/limit=\$((120 /limit=$((10 /' "$house/tests/run"
	CHECK_PATIENCE=1 counts 1 "0 passed, 1 failed, 0 skipped" "$house/tests/programs/hangs.bats"
	[[ $output = *"did not end within "* ]]
	child_is_gone
	cat >"$BATS_TEST_TMPDIR/leak.c" <<-'END'
		#include <stdlib.h>
		int main(void) { volatile char *p = malloc(1); free((void *)p); return *p; }
	END
	gcc -fsanitize=address,undefined -o "$BATS_TEST_TMPDIR/leak" "$BATS_TEST_TMPDIR/leak.c"
	bats_file quiet '"'"$BATS_TEST_TMPDIR/leak"'" >/dev/null 2>&1 || true'
	counts 1 "1 passed, 1 failed, 0 skipped" "$house/tests/programs/quiet.bats"
	[[ $output = *heap-use-after-free* ]]
}
