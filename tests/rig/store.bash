# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# The store of one test. PREEMPT_TEST_STORE is the URL of stores with %s where a fresh name goes
# ("etcd://127.0.0.1:2379/test/%s"); without it, each test has a file of its own.

# store_for_test FILE: exports PREEMPT_STORE. Nothing else of PREEMPT_* and SLURM_* is left.
store_for_test() {
	local url=${PREEMPT_TEST_STORE:-$1}
	unset "${!PREEMPT_@}" "${!SLURM_@}"
	export PREEMPT_STORE=${url//\%s/bats-$$-$BATS_TEST_NUMBER}
}

# An empty one in its place.
another_store() {
	case $PREEMPT_STORE in
	etcd://*) PREEMPT_STORE=${PREEMPT_STORE//bats-/bats-a} ;;
	*) rm -rf "$PREEMPT_STORE"* ;;
	esac
}

# For a test that breaks, moves or measures the file of a store.
needs_store_file() {
	[[ $PREEMPT_STORE != etcd://* ]] || skip "this is about the file of a store"
}
