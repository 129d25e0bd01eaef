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

@test "--after: of two causes, join names that of the command which it names" {
	local one two after_one after_two
	schedule one --keep-going -- sh -c 'exit 3'
	schedule after_one --keep-going --after "$one" -- ./item
	worker a
	expect 44 preempt-queue join "$after_one"
	expect 44 preempt-queue join
	expect 3 preempt-queue join --exit-status
	schedule two --keep-going -- false
	schedule after_two --keep-going --after "$two" -- ./item
	expect 44 preempt-queue join "$after_one" "$after_two"
	says "command $after_one (./item) and others were cancelled because command $one failed"
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

# nth NAME N: the id that was printed for this line
nth() { sed -n "$2p" "$1.out" | grep .; }

@test "--after with slow lines: what has succeeded by a line may be forgotten before the next one" {
	local one two
	# slowly NAME ID: schedule a command after ID, and one more when NAME.2 appears, and NAME.3.
	slowly() {
		aside "$1" bash -c 'for n in 1 2 3; do
				until [ $n = 1 ] || [ -e "$1.$n" ]; do sleep 0.02; done
				echo "line $n"
			done | preempt-queue schedule --lines --after "$2" -- ./item {}' . "$@"
	}
	schedule one -- ./gated go
	schedule two -- ./gated go
	slowly early "$one"
	slowly late "$two"
	eventually nth early 1
	eventually nth late 1
	: >go
	worker a --slots 2
	eventually is "$one" succeeded
	: >early.2
	eventually nth early 2
	eventually is "$(nth early 2)" succeeded
	preempt-queue forget "$one"
	: >early.3
	aside_ends early 0
	eventually is "$(nth early 3)" succeeded
	is "$(nth early 1)" succeeded
	# It was forgotten before it was seen to have succeeded.
	eventually is "$(nth late 1)" succeeded
	preempt-queue forget "$two"
	touch late.2 late.3
	aside_ends late 2
	grep -q -e "--after: queue default has no command $two" late.err
	[ "$(grep -c . late.out)" = 1 ]
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
