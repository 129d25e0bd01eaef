#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# takes: 3

@test "of histories made by hand, the checker says each fault in its words" {
	python3 "$BATS_TEST_DIRNAME/check_test.py"
}
