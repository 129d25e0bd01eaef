#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Properties, for each form in which a framework saves: no part of a save is a save, and prune keeps what it promises.
# tests/support/layouts/whole.py has the forms, and the few exceptions with their reasons (ckpt-layouts(7)).
# takes: 60
# asan: no (20,000 damaged saves are many: rows of ckpt-rotate-layouts.bats and fuzz/formats.c have the sanitizers)
bats_require_minimum_version 1.5.0
load ../support/ckpt

# whole WHAT COUNT: in memory, if possible, because it makes 100,000 small files.
whole() {
	local directory code=0
	directory=$(mktemp -d -p /dev/shm 2>/dev/null || mktemp -d)
	(cd "$directory" && python3 "$REPO/tests/support/layouts/whole.py" "$@") || code=$?
	rm -rf "$directory"
	return $code
}

@test "files of the newest of three saves are missing, cut, zeros, pages or pointers: it is not complete" {
	whole three "${WHOLE_SUBSETS:-25}"
}

@test "the same with the only save there is" {
	whole alone "${WHOLE_SUBSETS:-25}"
}

@test "the same with the first save of more ranks" {
	whole smaller "${WHOLE_SUBSETS:-10}"
}

@test "the same with the first save of fewer ranks" {
	whole larger "${WHOLE_SUBSETS:-10}"
}

@test "prune, for any history: the newest complete one stays, twice is once, a rule more never removes more" {
	whole prune "${WHOLE_HISTORIES:-140}"
}
