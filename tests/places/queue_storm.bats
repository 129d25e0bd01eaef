#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# A queue under workers that are killed, stopped and given notices at random (tests/support/storm), in each place
# where a store can be. More commands: queue_storm_many.bats. Full disks: queue_disk.bats.
# takes: 70
# mounts: private

bats_require_minimum_version 1.5.0
load storm

@test "workers killed, stopped and noticed at random: each of 300 commands has one result, the right one" {
	storm --store "$store/q.db" --commands 300 --workers 6 --every 100
}

@test "schedule and join killed at random: all that was acknowledged is there, once" {
	storm --store "$store/q.db" --commands 600 --workers 4 --slots 4 --schedulers 1 --kinds schedule,join --every 100
	[[ $output =~ 'schedule killed after it had printed ids '[1-9] && $output =~ 'join killed '[1-9] ]]
}
