# SPDX-License-Identifier: MIT
# shellcheck shell=bash

# stopped PID: send STOP, but not while PID holds the lock of the queue's store, which would stop all processes.
stopped() {
	kill -STOP "$1"
	until preempt-store list --timeout 3s queue/ >/dev/null 2>&1; do
		kill -CONT "$1"
		sleep 0.01
		kill -STOP "$1"
	done
}
