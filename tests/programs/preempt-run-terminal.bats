#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-run as a job of an interactive shell: reading the terminal, Ctrl-C, Ctrl-Z, fg and bg.
# takes: 15

load ../support/agents

# person: does at a terminal, in an interactive bash, what stdin says (support/screen.py).
person() {
	run -0 python3 -B "$REPO/tests/support/screen.py" 24 200 -- \
		env PS1='READY> ' TERM=dumb bash --norc --noprofile --noediting -i 3>&-
	nothing_left
}

# (Python does not notice a signal that comes just before a sleep until that is over: many short ones.)
@test "in the foreground the command reads the terminal, and gets Ctrl-C" {
	person <<-'EOT'
		see READY>
		enter preempt-run -q -- python3 -q -i; echo "code $?"
		see >>>
		enter print(6 * 7)
		see 42
		enter import time; print("lo" + "op"); [time.sleep(0.1) for _ in iter(int, 1)]
		see loop
		key c
		see KeyboardInterrupt
		enter exit(5)
		see code 5
		see READY>
		enter preempt-run -q -- sh -c 'echo "here"we; exec sleep 1000'; echo "code $?"
		see herewe
		key c
		see code 130
		see READY>
		enter preempt-run -q -- /nonexistent/program; echo "code $?"
		see code 127
		see READY>
		enter cat | tr a b
		enter aha
		see bhb
		key d
		see READY>
		enter exit 0
	EOT
}

@test "Ctrl-Z stops command and agent, fg and bg continue them" {
	person <<-'EOT'
		see READY>
		enter preempt-run -q -- sh -c 'echo "here"we; while read -r x; do echo "<$x>"; done'; echo "code $?"
		see herewe
		enter one
		see <one>
		key z
		see Stopped
		see READY>
		enter echo "shell"here
		see shellhere
		enter fg
		see preempt-run
		enter two
		see <two>
		key z
		see Stopped
		see READY>
		enter bg; sleep 0.1
		see READY>
		enter fg
		see preempt-run
		enter three
		see <three>
		key d
		see READY>
		enter echo "shell"again
		see shellagain
		enter exit 0
	EOT
}

@test "in the background it leaves the terminal alone; in a pipe the command gets it when it asks" {
	person <<-'EOT'
		see READY>
		enter preempt-run -q -- sh -c 'until [ -e go ]; do sleep 0.1; done; echo "job"done' &
		see READY>
		enter echo "shell"here
		see shellhere
		enter touch go; wait
		see jobdone
		see READY>
		enter preempt-run -q -- sh -c 'read -r x; echo "<$x>"' | cat
		enter piped
		see <piped>
		see READY>
		enter preempt-run -q -n 2 -- sh -c '[ $PREEMPT_TASK = 1 ] || { read -r x; echo "<$x>"; }'
		enter several
		see <several>
		see READY>
		enter exit 0
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
		enter bash lines
		see here
		key c
		see trapped
		see code 130
		see there
		key c
		see trapped
		see ended 130
		see READY>
		enter exit 0
	EOT
}

@test "a command that dies because its terminal hangs up is not run again" {
	cat >lines <<-'EOT'
		preempt-run --restarts -- sh -c 'echo run >>runs; echo "her"e; exec sleep 1000' 2>said
		echo not reached
	EOT
	person <<-'EOT'
		see READY>
		enter exec sh lines
		see here
	EOT
	[ "$(cat runs)" = run ]
	run ! grep "running again" said
}
