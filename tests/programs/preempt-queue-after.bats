#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-queue schedule --after: commands that come after others.
# takes: 15
# shellcheck disable=SC2016 # text for another shell

bats_require_minimum_version 1.5.0
load ../support/queue

@test "--after: each is run when all that it names have succeeded; what is done already is none" {
	local one two both last
	schedule one -- ./gated go
	schedule two --after "$one" -- ./item
	schedule both --after "$one" --after "$two" --priority 5 -- ./item
	schedule last --after "$one-$both" -- ./item
	[ "$(states)" = "waiting blocked blocked blocked " ]
	[ "$(what "$both" after blocked_by)" = "[1, 2] [1, 2]" ]
	[ "$(what "$last" after blocked_by)" = "[1, 2, 3] [1, 2, 3]" ]
	expect 1 preempt-queue "done" "$last"
	worker a
	eventually begun "$one"
	: >go
	expect 0 preempt-queue join
	[ "$(tr '\n' ' ' <ran)" = "$one $two $both $last " ]
	schedule last --after "$one,$two" -- ./item
	[ "$(what "$last" state)" != blocked ]
	expect 2 preempt-queue schedule --after "$one,77" -- ./item
	says "no command 77"
	expect 0 preempt-queue join
	[ "$(grep -c . ran)" = 5 ]
}

@test "--after: one fails, and what comes after it is cancelled, and that after that; retry puts all back" {
	local one two three other
	schedule one --keep-going -- test -e good
	schedule two --keep-going --after "$one" -- ./item
	schedule three --keep-going --after "$two" -- ./item
	schedule other --keep-going -- ./item
	worker a
	expect 44 preempt-queue join
	says "because command $one failed"
	[ "$(states)" = "failed cancelled cancelled succeeded " ]
	preempt-queue list | grep "command $two was cancelled)"
	preempt-queue show "$two" | grep "cancelled because command $one failed"
	# It comes after one that has failed already.
	schedule other --after "$two" -- ./item
	expect 44 preempt-queue join
	[ "$(what "$other" state)" = cancelled ]
	: >good
	preempt-queue forget "$other"
	preempt-queue retry --failed --cancelled
	expect 0 preempt-queue join
	[ "$(states)" = "succeeded succeeded succeeded succeeded " ]
	[ "$(grep -x -e "$two" -e "$three" ran | tr '\n' ' ')" = "$two $three " ]
}

@test "--after: without a worker, too, join ends when a user cancels what others wait for" {
	local one two three
	schedule one -- ./item
	schedule two --after "$one" -- ./item
	schedule three --after "$two" -- ./item
	preempt-queue cancel "$two"
	[ "$(states)" = "waiting cancelled cancelled " ]
	preempt-queue retry "$two" "$three"
	[ "$(states)" = "waiting blocked blocked " ]
	preempt-queue cancel "$one"
	expect 0 preempt-queue join
	[ "$(states)" = "cancelled cancelled cancelled " ]
	# What was forgotten no longer counts; what has failed does.
	preempt-queue forget "$one"
	preempt-queue retry "$two" "$three"
	[ "$(states)" = "waiting blocked " ]
	preempt-queue cancel --all
	[ "$(preempt-store list | grep -c -e /blocked/ -e /after/ -e /pending/)" = 0 ]
}

@test "--after: more than one transaction can have, and one failure that ends them all" {
	local one last
	schedule one --keep-going -- false
	seq 1100 | preempt-queue schedule --lines --keep-going --after "$one" -- ./item >ids
	[ "$(wc -l <ids)" = 1100 ]
	schedule last --keep-going --after "$(head -n 1 ids)-$(sed -n 1000p ids)" -- ./item
	expect 2 preempt-queue schedule --after "1-1001" -- ./item
	says "at most 1000"
	worker a --idle-exit 0
	expect 44 preempt-queue join
	worker_ends a 0
	[ "$(preempt-queue list --state cancelled | wc -l)" = 1102 ]
	[ ! -s ran ]
	[ "$(preempt-store list | grep -c -e /blocked/ -e /after/ -e /pending/)" = 0 ]
}
