#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# takes: 10

@test "of histories made by hand, the checker says each fault in its words" {
	python3 "$BATS_TEST_DIRNAME/check_test.py" examples
}

@test "of random histories, the checker says what trying all orders of their operations says" {
	python3 "$BATS_TEST_DIRNAME/check_test.py" random
}
