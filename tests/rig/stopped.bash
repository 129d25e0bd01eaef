# SPDX-License-Identifier: MIT
# shellcheck shell=bash

# stopped PID: STOP, but not while it holds the lock of the queue's store: no process could go on then.
stopped() {
	kill -STOP "$1"
	until preempt-store list --timeout 3s queue/ >/dev/null 2>&1; do
		kill -CONT "$1"
		sleep 0.01
		kill -STOP "$1"
	done
}
