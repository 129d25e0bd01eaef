#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# As history.bats, on a disk of this machine: needs neither root nor FUSE.

bats_require_minimum_version 1.5.0
load ../support/history

setup() { history_setup; }
teardown() { history_teardown; }

@test "SQLite on a disk: 4,000 operations of 8 processes, some killed, are linearizable" {
	linearizable 4000 "$BATS_TEST_TMPDIR/s.db" "sqlite:$BATS_TEST_TMPDIR/s.db"
}

# A process that is killed there would take the store's lock with it.
@test "the store in memory: 20,000 operations of 8 processes are linearizable" {
	HISTORY_KILLS=0 linearizable 20000 'memory:history?shared'
}
