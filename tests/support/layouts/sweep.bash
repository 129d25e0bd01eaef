# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# What sweeps over many system calls, or over many files, share.

# A directory to work in: in memory where there is room, as it is not the disk that is tested.
enter_memory() {
	place=$BATS_TEST_TMPDIR
	if [ "$(df --output=avail /dev/shm 2>/dev/null | tail -n 1)" -gt 2000000 ] 2>/dev/null; then
		place=$(mktemp -d /dev/shm/ckpt-test.XXXXXX)
	fi
	cd "$place" || return
}

leave_memory() {
	cd /
	[ "$place" = "$BATS_TEST_TMPDIR" ] || rm -rf "$place"
}

# sampled N: whether point N of a sweep is taken. Every second one, from the first or the second on,
# as $CKPT_SWEEP_SEED says; all of them with CKPT_SWEEP=all.
: "${CKPT_SWEEP_SEED:=$RANDOM}"
sampled() { [ "${CKPT_SWEEP-}" = all ] || [ $((($1 + CKPT_SWEEP_SEED) % 2)) = 0 ]; }
