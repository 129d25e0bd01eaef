# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# The store of one test. PREEMPT_TEST_STORE is a URL with %s in place of a new name
# ("etcd://127.0.0.1:2379/test/%s"); if it is not set, each test has a file of its own.

# store_for_test FILE: export PREEMPT_STORE, and unset all other variables PREEMPT_* and SLURM_*.
store_for_test() {
	local url=${PREEMPT_TEST_STORE:-$1}
	unset "${!PREEMPT_@}" "${!SLURM_@}"
	export PREEMPT_STORE=${url//\%s/bats-$$-$BATS_TEST_NUMBER}
}

# Replace the store by an empty one.
another_store() {
	case $PREEMPT_STORE in
	etcd://*) PREEMPT_STORE=${PREEMPT_STORE//bats-/bats-a} ;;
	*) rm -rf "$PREEMPT_STORE"* ;;
	esac
}

# Call it in a test that breaks, moves or measures the file of a store.
needs_store_file() {
	[[ $PREEMPT_STORE != etcd://* ]] || skip "this is about the file of a store"
}
