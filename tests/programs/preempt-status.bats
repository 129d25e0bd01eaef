#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-status: a run that trains, is preempted and is over; tables, JSON, metrics, the terminal, the timeline.
# takes: 20

bats_require_minimum_version 1.5.0
load ../support/programs

setup() {
	programs
	unset NO_COLOR
	export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
	# Saves when there is a file "go".
	cat >train.sh <<-END
		#!/bin/bash
		. "$REPO/lib/client/preempt.sh"
		for ((s = 0; s < 100000; s++)); do
			preempt_step \$s || { until [ -e go ]; do sleep 0.05; done; preempt_saved \$s; } || exit
			sleep 0.01
		done
	END
	chmod +x train.sh
}

teardown() { end_started; }

# start [OPTION...]: three tasks, until they run.
start() {
	preempt-run --run r -n 3 "$@" -- ./train.sh >log 2>&1 3>&- &
	job=$!
	started+=("$job")
	eventually shows ' 3 tasks  running'
}

# shows TEXT: the table of the run has it.
shows() {
	preempt-status --run r 2>/dev/null | grep -qF -- "$1"
}

# follow: each new state as a line of JSON, in states.
follow() {
	preempt-status --run r --follow --json >states 2>err 3>&- &
	follower=$!
	started+=("$follower")
	eventually test -s states
}

# on_terminal ROWS COLUMNS COMMAND...: with lines for tests/support/screen.py on stdin.
on_terminal() {
	TERM=xterm python3 "$REPO/tests/support/screen.py" "$1" "$2" -- "${@:3}"
}

@test "a run that trains, is preempted, saves, and is over" {
	start --period 200ms
	run -0 preempt-status --run r --exit-code
	[ "$(grep -c ' running ' <<<"$output")" = 3 ]
	# How far they are is in their beats.
	advance() { preempt-status --run r --json | python3 -c 'import json, sys
sys.exit(not all(t["state"] == "running" and t.get("step", 0) > 3 for t in json.load(sys.stdin)["tasks"]))'; }
	eventually advance
	kill -TERM "$job"
	eventually shows ' saving '
	run -0 preempt-status --run r
	[[ $output == *"claim: task 0 on "*"signal:TERM"* ]]
	[[ $output == *"round 1: all save at step "*"of 3: 3 reported, 0 acked, 0 saved"* ]]
	touch go
	code_of "$job"
	[ "$code" = 42 ]
	run -42 preempt-status --run r --exit-code
	[[ $output == *"of 3: 3 reported, 3 acked, 3 saved"* ]]
	[[ $output == *"3 tasks  preempted after "*"saved step "* ]]
	[ "$(grep -c ' left ' <<<"$output")" = 3 ]
	preempt-status --run r --json | python3 -c '
import json, sys
run = json.load(sys.stdin)
assert run["state"] == "preempted" and run["code"] == 42 and run["claim"]["task"] == 0, run
assert [task["task"] for task in run["tasks"]] == [0, 1, 2]
for task in run["tasks"]:
    assert task["step"] == run["saved"] and task["held_utc"] <= task["saved_utc"] <= task["left_utc"], task'
	# The next attempt shows how this one ended.
	rm go
	start
	run -0 preempt-status --run r
	[[ $output == *"attempt 2  "* && $output == *$'\n      1 preempted '* ]]
	run -0 preempt-status --run r --attempt 1
	[[ $output == *"attempt 1  "*preempted* ]]
}

@test "the last step of a run is read when its command has ended: the last line, the end event, status" {
	cat >steps.sh <<-END
		. "$REPO/lib/client/preempt.sh"
		for ((s = 0; s < 200; s++)); do preempt_step \$s; done
	END
	run -0 preempt-run --run short -n 2 --log-format json --on-event "printenv PREEMPT_EVENT PREEMPT_EVENT_STEP | xargs >>told" -- \
		bash steps.sh
	[[ $output == *", trained to step 199"* ]]
	[ "$(tail -n 1 told)" = "end 199" ]
	run -0 preempt-status --run short
	[ "$(grep -c ' finished       199 ' <<<"$output")" = 2 ]
}

@test "what a script composes is shown, too; all runs of a store" {
	for task in 0 1; do
		preempt-store join --run composed --task $task --tasks 2 --pid $$ --no-board >/dev/null 3>&- &
	done
	wait
	run -0 preempt-status --run composed
	[[ $output == *"2 tasks  running"* ]]
	[ "$(grep -c "$(hostname | cut -c 1-12)" <<<"$output")" = 2 ]
	preempt-claim --run composed --reason 'a drill' --grace 1h
	preempt-store join --run other --task 0 --tasks 1 --pid $$ --no-board >/dev/null
	run -0 preempt-status
	[[ $output == "run composed "*"from outside"*"a drill"*"deadline: "*" left"*$'\n\n'"run other "* ]]
	run -0 preempt-status --metrics
	[ "$(grep -c '^# TYPE preempt_run_attempt gauge$' <<<"$output")" = 1 ]
	[ "$(grep -c '^preempt_run_attempt{run="[a-z]*"} 1$' <<<"$output")" = 2 ]
	metrics=$output
	# Each line is a comment or a sample, and no sample comes twice.
	run -1 grep -vE '^# (HELP|TYPE) |^[a-z_]+\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")?\} [0-9.]+$' <<<"$metrics"
	[ "$(grep -v '^#' <<<"$metrics" | cut -d ' ' -f 1 | sort | uniq -d)" = "" ]
}

@test "no such run: 1; a store that cannot be reached: 75; nothing is made" {
	run -1 --separate-stderr preempt-status --run nothing
	[ ! -e s.db ]
	preempt-store join --run one --task 0 --tasks 1 --pid $$ --no-board >/dev/null
	run -1 --separate-stderr preempt-status --run nothing
	[[ $stderr == *nothing* ]]
	run -1 --separate-stderr preempt-status --run one --attempt 7
	run -75 --separate-stderr preempt-status --store 'etcd://127.0.0.1:1/x' --run one --timeout 1s
	run -2 --separate-stderr preempt-status --metrics --follow
	run -2 --separate-stderr preempt-status --attempt 0
}

@test "beats that cannot be read: the run is not said to be alive" {
	preempt-store join --run one --task 0 --tasks 1 --pid $$ --no-board >/dev/null
	rm s.db.beats/one/000001/0
	mkdir s.db.beats/one/000001/0
	run -75 --separate-stderr preempt-status --run one --exit-code
	[[ $stderr == *s.db.beats/one/000001/0* ]]
}

@test "follow on a terminal: drawn in place, other sizes, keys, colours, and the terminal as it was" {
	start
	run -0 on_terminal 24 80 preempt-status --run r -f <<-'END'
		expect     2 
		show
		size 6 40
		expect STATE
		show
		type q
		wait
	END
	[[ $output == *"running"* ]]
	[ "$(awk '{ print (length > 80) }' <<<"$output" | sort -u)" = 0 ]
	[[ $output == *$'exit 0\nnormal cursor' ]]
	kill -TERM "$job"
	touch go
	run -0 on_terminal 24 80 preempt-status --run r -f <<-'END'
		expect preempted after
		colours
		type \x03
		wait
	END
	[[ $output == *$'colours\nexit 130\nnormal cursor' ]]
	[[ $output != *"no colours"* ]]
	for variable in NO_COLOR=1 TERM=dumb; do
		run -0 on_terminal 24 80 env $variable preempt-status --run r <<<$'expect attempt\ncolours\nwait'
		[[ $output == *"no colours"* ]]
	done
}

@test "follow into a pipe: each new state once" {
	start
	follow
	touch go
	kill -TERM "$job"
	eventually grep -q '"state":"preempted"' states
	# A run that is over is looked at each second for the next attempt, and not printed again.
	known=$(wc -l <states)
	sleep 2
	[ "$(wc -l <states)" = "$known" ]
	kill -TERM "$follower"
	code_of "$follower"
	[ "$code" = 143 ]
	head -n 1 states | grep -q '"state":"running"'
}

@test "follow: a store that cannot be read any more is reported once, and asked once a second" {
	start
	follow
	rm -r s.db*
	eventually test -s err
	sleep 2
	# In hundredths of a second, also if each of two readings takes long.
	[ "$(awk '{ print $14 + $15 }' "/proc/$follower/stat")" -lt 100 ]
	kill -TERM "$follower"
	code_of "$follower"
	grep -q 'not up to date: store .*s.db' err || { cat err; return 1; }
	[ "$(wc -l <err)" = 1 ]
}

@test "follow into a pipe: a task that falls silent is a new state" {
	start --period 100ms
	follow
	eventually grep -q '"state":"running"' states
	kill -STOP "$job"
	eventually grep -q '"code":44.*"silent"' states
}

@test "--timeline: a preempted run as a page: a lane per task, the claim as text; no page of another kind, of no run, into no directory" {
	touch go
	start
	preempt-claim --run r --reason '<script>&"'
	code_of "$job"
	run -0 preempt-status --run r --timeline page.html
	[ "$output" = '' ]
	run -42 preempt-status --run r --timeline page.svg --all --exit-code
	for page in page.html page.svg; do
		python3 -c 'import sys, xml.etree.ElementTree as tree; tree.fromstring(sys.stdin.read().replace("<!DOCTYPE html>", ""))' <$page
		[ "$(grep -o 'class="lane"' $page | wc -l)" = 3 ]
		grep -q 'attempt 1: preempted' $page
		run ! grep '<script' $page
	done
	run -2 --separate-stderr preempt-status --run r --timeline page.png
	[[ $stderr == *".svg or .html"* ]]
	run -2 preempt-status --run r --timeline other.svg --json
	run -1 preempt-status --run other --timeline other.svg
	run -75 --separate-stderr preempt-status --run r --timeline none/page.svg
	[[ $stderr == *"none/page.svg"* ]]
	[ ! -e other.svg ]
}
