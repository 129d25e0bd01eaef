#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-run as a job of an interactive shell: reading the terminal, Ctrl-C, Ctrl-Z, fg and bg.
# takes: 15

load ../support/agents

# person: does at a terminal what stdin says (support/trainers/terminal.py).
person() {
	cat >person.script
	run -0 python3 -B "$TRAINERS/terminal.py" person.script 3>&-
	nothing_left
}

# (Python does not notice a signal that comes just before a sleep until that is over: many short ones.)
@test "in the foreground the command reads the terminal, and gets Ctrl-C" {
	person <<-'EOT'
		see READY>
		type preempt-run -q -- python3 -q -i; echo "code $?"
		see >>>
		type print(6 * 7)
		see 42
		type import time; print("lo" + "op"); [time.sleep(0.1) for _ in iter(int, 1)]
		see loop
		key c
		see KeyboardInterrupt
		type exit(5)
		see code 5
		see READY>
		type preempt-run -q -- sh -c 'echo "here"we; exec sleep 1000'; echo "code $?"
		see herewe
		key c
		see code 130
		see READY>
		type preempt-run -q -- /nonexistent/program; echo "code $?"
		see code 127
		see READY>
		type cat | tr a b
		type aha
		see bhb
		key d
		see READY>
		type exit 0
	EOT
}

@test "Ctrl-Z stops command and agent, fg and bg continue them" {
	person <<-'EOT'
		see READY>
		type preempt-run -q -- sh -c 'echo "here"we; while read -r x; do echo "<$x>"; done'; echo "code $?"
		see herewe
		type one
		see <one>
		key z
		see Stopped
		see READY>
		type echo "shell"here
		see shellhere
		type fg
		see preempt-run
		type two
		see <two>
		key z
		see Stopped
		see READY>
		type bg; sleep 0.1
		see READY>
		type fg
		see preempt-run
		type three
		see <three>
		key d
		see READY>
		type echo "shell"again
		see shellagain
		type exit 0
	EOT
}

@test "Ctrl-Z stops all commands, also where they do not have the terminal" {
	cat >count.sh <<-'EOT'
		while sleep 0.05; do echo >>"$1"; done
	EOT
	cat >still.sh <<-'EOT'
		sleep 0.2; before=$(cat "$@" | wc -l); sleep 0.4; [ "$(cat "$@" | wc -l)" = "$before" ] && echo "all ""still" || echo "they ""run"
	EOT
	person <<-'EOT'
		see READY>
		type preempt-run -q -n 2 -- sh -c 'echo "here"we; exec sh count.sh count.$PREEMPT_TASK'
		see herewe
		see herewe
		key z
		see Stopped
		see READY>
		type sh still.sh count.0 count.1
		see all still
		type bg; sleep 0.1
		see READY>
		type sh still.sh count.0 count.1
		see they run
		type kill -9 %1; wait
		see READY>
		type (sleep 1; echo >count.begun) & preempt-run -q -- sh -c 'until [ -e count.begun ]; do sleep 0.1; done; echo "here"we >&2; exec sh count.sh count.2' >log
		see herewe
		key z
		see Stopped
		see READY>
		type sh still.sh count.2
		see all still
		type fg
		see preempt-run
		key c
		see READY>
		type exit 0
	EOT
}

@test "in the background it leaves the terminal alone; in a pipe the command gets it when it asks" {
	person <<-'EOT'
		see READY>
		type preempt-run -q -- sh -c 'until [ -e go ]; do sleep 0.1; done; echo "job"done' &
		see READY>
		type echo "shell"here
		see shellhere
		type touch go; wait
		see jobdone
		see READY>
		type preempt-run -q -- sh -c 'read -r x; echo "<$x>"' | cat
		type piped
		see <piped>
		see READY>
		type preempt-run -q -n 2 -- sh -c '[ $PREEMPT_TASK = 1 ] || { read -r x; echo "<$x>"; }'
		type several
		see <several>
		see READY>
		type exit 0
	EOT
}

@test "Ctrl-C reaches the script that preempt-run is a line of, and is no crash to run again" {
	cat >lines <<-'EOT'
		trap 'echo "tra"pped' INT
		preempt-run -q --restarts -- sh -c 'echo "her"e; exec sleep 1000'
		echo "co"de $?
		preempt-run -q --restarts -- sh -c 'trap "exit 130" INT; echo "the"re; sleep 1000 & wait'
		echo "en"ded $?
	EOT
	person <<-'EOT'
		see READY>
		type bash lines
		see here
		key c
		see trapped
		see code 130
		see there
		key c
		see trapped
		see ended 130
		see READY>
		type exit 0
	EOT
}

@test "a command that dies because its terminal hangs up is not run again" {
	cat >lines <<-'EOT'
		preempt-run --restarts -- sh -c 'echo run >>runs; echo "her"e; exec sleep 1000' 2>said
		echo not reached
	EOT
	person <<-'EOT'
		see READY>
		type exec sh lines
		see here
	EOT
	[ "$(cat runs)" = run ]
	run ! grep "running again" said
}

@test "of several commands that read the terminal, one has it at a time" {
	person <<-'EOT'
		see READY>
		type preempt-run -q -n 2 -- sh -c 'read -r x; echo "<$x>"; sleep 1'; echo "code $?"
		type one
		see <one>
		type two
		see <two>
		see code 0
		see READY>
		type exit 0
	EOT
}
