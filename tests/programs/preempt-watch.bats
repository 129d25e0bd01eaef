#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-watch and the sources of notices.
# shellcheck disable=SC2016,SC2030,SC2031,SC2154 # text for another shell; a test is a subshell of its own

bats_require_minimum_version 1.5.0
load ../support/programs

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	PATH=${BIN:-$BATS_TEST_DIRNAME/../../bin}:$PATH
	unset PREEMPT_GRACE
	started=()
}

teardown() {
	local pid
	for pid in "${started[@]}"; do
		kill -KILL "$pid" 2>/dev/null || :
		wait "$pid" 2>/dev/null || :
	done
}

# Start preempt-watch in the background: out, err, $watch. Interruptible, as from a terminal.
start() {
	env --default-signal=INT,QUIT,PIPE preempt-watch "$@" >out 2>err 3>&- &
	watch=$!
	started+=("$watch")
	# QUIT is the last of the signals that end it.
	eventually is_ready "$watch"
}

is_ready() {
	[ "$(cat "/proc/$1/comm")" = preempt-watch ] && catches "$1" 3
}

# Whether process $1 has a handler for signal number $2.
catches() {
	local mask
	mask=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$1/status")
	((0x$mask >> ($2 - 1) & 1))
}

lines() {
	[ "$(wc -l <"$1")" -ge "$2" ]
}

# The exit code of the watch, within a minute.
code_of() {
	eventually ended "$1"
	code=0
	wait "$1" || code=$?
}

# Of our own child. Bash knows it by its job: its process number may belong to another process by now.
ended() {
	! jobs -rp | grep -qx "$1"
}

gone() {
	local state
	state=$(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$1/status" 2>/dev/null) || :
	[ -z "$state" ] || [ "$state" = Z ]
}

# written TEXT FILE: whole, at once; "echo >FILE" makes it empty first, and its line may come late.
written() {
	echo "$1" >"$2.new"
	mv "$2.new" "$2"
}

utc='[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z'

@test "TERM is a notice by default: one line that says who sent it, exit 0" {
	start
	kill -TERM "$watch"
	code_of "$watch"
	[ "$code" = 0 ]
	[ "$(wc -l <out)" = 1 ]
	grep -Eq "^$utc signal:TERM left=unknown sent by process $$ \(bash\) of user $UID\$" out ||
		grep -Eq "^$utc signal:TERM left=unknown sent by process [0-9]+ \(.*\) of user $UID\$" out
	[ ! -s err ]
}

@test "--grace is the time left, --json the same as JSON" {
	start --grace 30s --json --source signal:USR1
	kill -USR1 "$watch"
	code_of "$watch"
	[ "$code" = 0 ]
	python3 - <<-'EOF'
		import json
		lines = open("out").read().splitlines()
		assert len(lines) == 1, lines
		event = json.loads(lines[0])
		assert event["source"] == "signal:USR1" and event["left_ms"] == 30000, event
		assert event["utc"].endswith("Z") and event["reason"].startswith("sent by"), event
	EOF
}

# A job of Slurm, and a squeue with this shell text.
slurm_job() {
	export SLURM_JOB_ID=9 SLURM_JOB_END_TIME=$(($(date +%s) + 36000))
	mkdir fake
	printf '#!/bin/sh\necho >>asked\n%s\n' "$1" >fake/squeue
	chmod +x fake/squeue
	PATH=$PWD/fake:$PATH
}

# if_answered COMMAND...: whose watch asks squeue after a signal, for 3 s. A machine that stands still
# for so long does so once.
if_answered() {
	for _ in 1 2 3; do
		"$@" || return
		grep -Eq 'squeue.* (has not answered in time|took longer than)' out || return 0
	done
}
watch_told_term() {
	start "$@"
	kill -TERM "$watch"
	code_of "$watch"
}

@test "slurm: a TERM is told with the end that squeue says then, not with one asked for before it" {
	slurm_job 'if mkdir first; then until [ -e old ]; do sleep 0.02; done; echo "RUNNING NONE"
		else echo "RUNNING $(($(date +%s) + 200))"; fi 2>/dev/null'
	unset SLURM_JOB_END_TIME # so it asks for it at the start
	term_told() {
		rm -rf first old
		start --source slurm
		eventually test -d first
		kill -TERM "$watch"
		touch old
		code_of "$watch"
		cat out
	}
	if_answered term_told
	grep -Eq ' signal:TERM left=(1[0-9]+|200)(s|[0-9]{3}ms) sent by .*; the job is near its time limit' out
}

@test "slurm: a task of an array asks for itself, although its job id is also the array's" {
	slurm_job 'case " $* " in *" -j 9_3 "*) ;; *) echo "PENDING $(($(date +%s) + 72000))" ;; esac
		echo "RUNNING $(($(date +%s) + 200))"'
	export SLURM_ARRAY_JOB_ID=9 SLURM_ARRAY_TASK_ID=3
	if_answered watch_told_term --source slurm
	grep -Eq ' signal:TERM left=(1[0-9]+|200)(s|[0-9]{3}ms) sent by .*; the job is preempted' out
}

@test "slurm: no end is announced after the job's time limit was removed" {
	slurm_job 'echo "RUNNING NONE $SLURM_JOB_START_TIME"'
	local now
	now=$(date +%s)
	export SLURM_JOB_START_TIME=$((now - 7200)) SLURM_JOB_END_TIME=$((now + 5)) SLURM_NTASKS=1
	run -124 --separate-stderr preempt-watch --source slurm --grace 60s --timeout 2s
	[ -z "$output" ]
}

@test "slurm: an end that is over by our clock when it is first told is no notice; a TERM then has no known end" {
	slurm_job 'echo "RUNNING $SLURM_JOB_END_TIME"'
	export SLURM_JOB_END_TIME=$(($(date +%s) - 7200)) SLURM_NTASKS=1
	start --source slurm
	eventually grep -q 'job 9 ends at .*, but this machine.s clock says .*: one of the clocks is wrong' err
	eventually test -e asked
	kill -TERM "$watch"
	code_of "$watch"
	[ "$(wc -l <out)" = 1 ]
	grep -q ' signal:TERM left=unknown sent by' out
	# Preempted then, by a controller that is two hours behind: both times are said.
	printf '#!/bin/sh\necho "PREEMPTED $SLURM_JOB_END_TIME"\n' >fake/squeue
	if_answered watch_told_term --source slurm
	grep -q ' signal:TERM left=unknown sent by .*; the job is preempted at .*Z, but this machine.s clock says .*Z: the time left is not known' out
}

@test "slurm: with an end that is over by our clock, the time is counted from the job's start" {
	slurm_job 'echo "RUNNING $SLURM_JOB_END_TIME $SLURM_JOB_START_TIME"'
	local now
	now=$(date +%s)
	export SLURM_JOB_START_TIME=$((now - 7200)) SLURM_JOB_END_TIME=$((now - 7198)) SLURM_NTASKS=1
	start --source slurm
	code_of "$watch"
	grep -q ' slurm:end left=unknown the job.s time is up at .*Z, but this machine.s clock says .*Z: the time left is not known' out
}

@test "deadline: a time that is over from the start is a notice without a known end, in words with both times" {
	run -0 --separate-stderr preempt-watch --source deadline:2020-01-31T12:00:00Z --timeout 5m
	[[ $output = *"left=unknown the deadline was 2020-01-31T12:00:00.000Z, but this machine's clock says 20"* ]]
}

@test "slurm: why squeue did not tell the end is said; with --grace 0 it is not asked, as the answer would change nothing" {
	slurm_job 'echo "slurm_load_jobs error: away" >&2; exit 1'
	if_answered watch_told_term --source slurm
	grep -q ' left=unknown sent by .*; squeue ended with 1: slurm_load_jobs error: away$' out
	rm asked
	start --source slurm --grace 0
	kill -TERM "$watch"
	code_of "$watch"
	grep -q ' signal:TERM left=unknown sent by' out
	[ ! -e asked ]
}

@test "two signals: each is told by its name, --follow goes on, INT ends it with 130" {
	start --follow --source signal:TERM,USR1
	kill -TERM "$watch"
	eventually lines out 1
	kill -USR1 "$watch"
	eventually lines out 2
	kill -TERM "$watch"
	eventually lines out 3
	[ "$(cut -d' ' -f2 out | tr '\n' ' ')" = "signal:TERM signal:USR1 signal:TERM " ]
	kill -INT "$watch"
	code_of "$watch"
	[ "$code" = 130 ]
	[ ! -s err ]
}

@test "INT ends it with 130, HUP with 129, and TERM with 143 where it is no source" {
	local ending
	for ending in INT:130 HUP:129 TERM:143; do
		start --source file:flag
		kill -"${ending%:*}" "$watch"
		code_of "$watch"
		[ "$code" = "${ending#*:}" ]
		[ ! -s out ]
	done
}

@test "a signal that was ignored by whichever process started it does not end it, but is a notice" {
	(
		trap '' TERM HUP
		exec env --default-signal=QUIT preempt-watch >out 2>err 3>&-
	) &
	watch=$!
	started+=("$watch")
	eventually is_ready "$watch"
	kill -HUP "$watch"
	kill -TERM "$watch"
	code_of "$watch"
	[ "$code" = 0 ]
	grep -q signal:TERM out
}

@test "a file that is there already: its first line is the reason" {
	printf 'node is drained\nmore\n' >flag
	run -0 --separate-stderr preempt-watch --source file:flag --timeout 5m
	[[ $output =~ ^$utc\ file:flag\ left=unknown\ node\ is\ drained$ ]]
}

@test "a file that appears is told at once, long before the next look" {
	start --source file:flag --period 1h
	written drain flag
	code_of "$watch"
	[ "$code" = 0 ]
	grep -Eq "^$utc file:flag left=unknown drain\$" out
}

@test "a file whose line comes a moment after it: the line is the reason" {
	# It is waited for half a second, which a writer that stalls may miss, but not every time.
	for _ in {1..20}; do
		start --source file:flag --period 1h
		exec 6>flag
		sleep 0.1
		echo drain >&6
		exec 6>&-
		code_of "$watch"
		[ "$code" = 0 ]
		! grep -q ' left=unknown drain$' out || return 0
		rm flag
	done
	false
}

@test "an empty file, a directory and a file moved into place are notices, too" {
	local make
	for make in 'touch flag' 'mkdir flag' 'mv ready flag'; do
		echo moved >ready
		start --source file:flag --period 1h
		$make
		code_of "$watch"
		[ "$code" = 0 ]
		rm -rf flag
	done
	grep -q 'moved$' out
}

@test "the file's directory may be missing at first, and go away and come back" {
	start --follow --source file:a/b/flag --period 50ms
	mkdir -p a/b
	written one a/b/flag
	eventually lines out 1
	rm -r a
	mkdir -p a/b
	written two a/b/flag
	eventually lines out 2
	mv a old
	mkdir -p a/b
	written three a/b/flag
	eventually lines out 3
	[ "$(sed 's/.* //' out | tr '\n' ' ')" = "one two three " ]
}

@test "a file is reported once; again only when it came back or was replaced" {
	echo one >flag
	start --follow --source file:flag --source signal:USR1 --period 10ms
	eventually lines out 1
	echo changed >>flag
	kill -USR1 "$watch"
	eventually lines out 2
	echo two >new
	mv new flag
	eventually lines out 3
	rm flag
	written three flag
	eventually lines out 4
	[ "$(cut -d' ' -f2 out | tr '\n' ' ')" = "file:flag signal:USR1 file:flag file:flag " ]
	[ "$(grep -c ' three$' out)" = 1 ]
}

@test "names with blanks stay one word, control characters are escaped" {
	mkdir "my dir"
	printf 'a\033[2J\tb\n' >"my dir/flag"
	run -0 preempt-watch --source "file:my dir/flag" --timeout 5m
	[[ $output =~ ^$utc\ 'file:my\x20dir/flag'\ left=unknown\ 'a\x1b[2J\tb'$ ]]
}

@test "a command that exits 0 is a notice, its first line the reason" {
	run -0 preempt-watch --source 'command:echo going away; echo more' --timeout 5m
	[[ $output =~ ^$utc\ .*\ left=unknown\ going\ away$ ]]
}

@test "PH-18: values with a newline, a carriage return, no newline or nothing, in other case: as they are" {
	printf 'TERMINATE\r\n' >crlf
	printf 'Terminate' >bare
	: >empty
	for value in crlf:'TERMINATE' bare:Terminate empty:; do
		for spec in "file:${value%%:*}" "command:cat ${value%%:*}"; do
			run -0 --separate-stderr preempt-watch --source "$spec" --timeout 5m
			[ "${output#*left=unknown}" = "${value#*:}" ] ||
				[ "${output#*left=unknown }" = "${value#*:}" ] || { echo "$spec: $output" >&2; return 1; }
		done
	done
}

@test "a command is asked again and again until it says yes" {
	run -0 preempt-watch --period 20ms --timeout 5m \
		--source 'command:echo x >>asked; test "$(wc -l <asked)" -ge 4'
	[ "$(wc -l <asked)" = 4 ]
}

@test "a command that goes on saying yes is one notice; after a no, or with another reason, one more" {
	echo one >reason
	start --follow --period 20ms --source 'command:echo x >>asked; cat reason 2>/dev/null || exit 1'
	eventually lines asked 5
	[ "$(wc -l <out)" = 1 ]
	echo two >new
	mv new reason
	eventually lines out 2
	rm reason
	eventually lines asked $(($(wc -l <asked) + 3))
	echo two >new
	mv new reason
	eventually lines out 3
	[ "$(sed 's/.* //' out | tr '\n' ' ')" = "one two two " ]
}

@test "--once: 0 a notice, 1 none, 75 could not ask, also beside one that says no" {
	run -0 preempt-watch --once --source command:true
	[ "${#lines[@]}" = 1 ]
	run -1 --separate-stderr preempt-watch --once --source command:false --source file:flag --source signal:TERM
	[ -z "$output$stderr" ]
	run -75 --separate-stderr preempt-watch --once --source 'command:echo bad weather >&2; exit 2' --source command:false
	[ -z "$output" ]
	[[ $stderr == *"cannot ask command:"*"it ended with 2: bad weather"* ]]
	run -0 --separate-stderr preempt-watch --once --source 'command:exit 2' --source command:true
	[ "${#lines[@]}" = 1 ]
	run -75 preempt-watch --once --source command:/nowhere/command
	run -75 preempt-watch --once --source 'command:kill -KILL $$'
}

@test "--once asks a hanging command no longer than --look-timeout, and ends all it started" {
	run -75 --separate-stderr preempt-watch --once --look-timeout 300ms \
		--source 'command:sleep 1000 & echo $! >child; echo $$ >shell; wait'
	[[ $stderr == *"longer than 300 ms and was killed"* ]]
	eventually gone "$(cat child)"
	eventually gone "$(cat shell)"
	run -1 preempt-watch --once --source 'command:sleep 1000 & echo $! >child; exit 1'
	eventually gone "$(cat child)"
}

@test "--once --timeout: 124 when the answer takes longer; 75 if another source could not be asked" {
	run -124 --separate-stderr preempt-watch --once --timeout 200ms --source 'command:sleep 1000'
	[[ $stderr = *"command:sleep 1000 did not answer within --timeout" ]]
	# A machine that is slow gets more time to ask the first one.
	for limit in 1s 15s; do
		run preempt-watch --once --timeout $limit --source 'command:exit 2' --source 'command:sleep 1000'
		[ "$status" = 124 ] || break
	done
	[ "$status" = 75 ]
}

@test "one that cannot be asked, or hangs, never stops the others; it is reported once, and its return too" {
	start --follow --period 20ms --source 'command:echo x >>asked; test -e good && exit 1; exit 3' \
		--source file:flag --source signal:TERM
	eventually grep -q 'could not be asked three times in a row: it ended with 3; retrying' err
	eventually lines asked 8
	echo one >flag
	eventually lines out 1
	touch good
	eventually grep -q 'answers again' err
	[ "$(wc -l <err)" = 2 ]
	kill -INT "$watch"
	code_of "$watch"
	rm flag
	# On a slow machine any command would take so long: one that always does.
	start --follow --period 20ms --look-timeout 100ms --source 'command:sleep 1000' \
		--source file:flag --source signal:TERM
	eventually grep -q 'three times in a row: .*longer than 100 ms' err
	kill -TERM "$watch"
	eventually lines out 1
	written two flag
	eventually lines out 2
	[ "$(wc -l <err)" = 1 ]
	kill -INT "$watch" # so that it ends the command
	code_of "$watch"
}

@test "a file that cannot be looked for is could not ask, not none" {
	ln -s loop loop
	run -75 --separate-stderr preempt-watch --once --source file:loop/flag
	[[ $stderr == *"cannot look for loop/flag"* ]]
}

@test "a command's own endless output neither blocks nor kills the watch" {
	run -0 preempt-watch --source 'command:head -c 3000000 /dev/zero | tr "\0" x' --timeout 5m
	[ "${#output}" -lt 500 ]
}

@test "a source's command is ended when the watch ends, however it ends" {
	local ending
	for ending in INT TERM; do
		rm -f child shell
		start --source 'command:sleep 1000 & echo $! >child; echo $$ >shell; wait'
		eventually test -s shell
		kill -"$ending" "$watch"
		code_of "$watch"
		eventually gone "$(cat child)"
		eventually gone "$(cat shell)"
	done
}

@test "--timeout: 124 when no notice came, 0 after one with --follow" {
	run -124 --separate-stderr preempt-watch --timeout 100ms
	[ -z "$output" ]
	[[ $stderr == *"no notice came"* ]]
	echo one >flag
	run -0 --separate-stderr preempt-watch --follow --timeout 1s --source file:flag
	[ "${#lines[@]}" = 1 ]
	[ -z "$stderr" ]
}

@test "--exec: the notice in variables and as JSON on stdin, its exit code passed on, nothing printed" {
	printf '$(touch pwned)"; touch pwned; `touch pwned`\n' >flag
	run -7 --separate-stderr preempt-watch --source file:flag --grace 10m --timeout 5m --exec '
		printf "%s|" "$PREEMPT_NOTICE_SOURCE" "$PREEMPT_NOTICE_REASON" "$PREEMPT_NOTICE_UTC" "$PREEMPT_NOTICE_LEFT_MS"
		cat >event
		exit 7'
	[[ $output =~ ^file:flag\|(.*)\|$utc\|([0-9]+)\|$ ]]
	[ "${BASH_REMATCH[1]}" = "$(cat flag)" ]
	((BASH_REMATCH[2] <= 600000 && BASH_REMATCH[2] > 300000))
	python3 -c 'import json; assert json.load(open("event"))["left_ms"] == 600000'
	[ ! -e pwned ]
	run -0 preempt-watch --source file:flag --timeout 5m --exec 'test -z "$PREEMPT_NOTICE_LEFT_MS"'
	run -127 preempt-watch --source file:flag --timeout 5m --exec /nowhere/command
}

@test "--exec: a second TERM while the command runs changes nothing; with --follow it is the next" {
	start --exec 'kill -TERM $PPID; kill -TERM $PPID; exit 5'
	kill -TERM "$watch"
	code_of "$watch"
	[ "$code" = 5 ]
	start --follow --exec 'echo run; test -e twice || { touch twice; kill -TERM $PPID; }'
	kill -TERM "$watch"
	eventually lines out 2
}

@test "--exec: INT is passed on to the command, the watch ends after it" {
	start --source file:flag --exec 'trap "echo interrupted; kill \$!; exit 3" INT; echo ready; sleep 1000 & wait'
	touch flag
	eventually grep -q ready out
	kill -INT "$watch"
	code_of "$watch"
	[ "$code" = 130 ]
	grep -q interrupted out
}

@test "--exec: the command has the signals as they were, none ignored or blocked" {
	touch flag
	# Not all zeros: below make, libc's own signals 32 and 33 are ignored.
	local as_they_were
	as_they_were=$(env --default-signal grep -E "^Sig(Blk|Ign)" /proc/self/status)
	run -0 env --default-signal preempt-watch --source file:flag --timeout 5m --exec 'exec grep -E "^Sig(Blk|Ign)" /proc/self/status'
	[ "$output" = "$as_they_were" ]
}

@test "the reader of a pipe gets each line at once, and its end ends the watch quietly" {
	mkfifo pipe
	env --default-signal=INT,QUIT,PIPE preempt-watch --follow >pipe 2>err 3>&- &
	watch=$!
	started+=("$watch")
	exec 5<pipe
	eventually is_ready "$watch"
	kill -TERM "$watch"
	read -r -t 60 line <&5
	[[ $line == *signal:TERM* ]]
	exec 5<&-
	code_of "$watch"
	[ "$code" = 141 ]
	[ ! -s err ]
}

@test "an answer that cannot be written is an error" {
	touch flag
	run -75 --separate-stderr bash -c 'preempt-watch --source file:flag --timeout 5m >/dev/full'
	[[ $stderr == *"cannot write the notice to stdout: No space left"* ]]
	[ "${#stderr_lines[@]}" = 1 ]
	run -75 --separate-stderr bash -c 'preempt-watch --follow --source file:flag --timeout 5m >/dev/full'
	run -75 --separate-stderr bash -c 'preempt-watch --source file:flag --timeout 5m >&-'
	[[ $stderr == *"cannot write the notice to stdout"* ]]
	# With descriptor 0 closed, too, the next pipe would become its stdout.
	run -75 bash -c 'preempt-watch --source signal:USR1 --source file:flag --timeout 5m <&- >&-'
	run -0 bash -c 'preempt-watch --source file:flag --source "command:exit 1" --timeout 5m <&- 2>&-'
}

@test "stdout is a full pipe that another process has made non-blocking: the notice is written once there is room" {
	touch flag
	# (Leak checks do not work under strace.)
	ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 strace -f -o trace -e trace=write \
		-e inject=write:error=EAGAIN:when=1 preempt-watch --source file:flag >out
	grep -q 'write(1, .*INJECTED' trace
	[[ $(<out) == *file:*flag* ]]
}

@test "a signal that the platform's source catches may be given, too: one notice of it" {
	PREEMPT_PLATFORM=generic start --follow --source signal:TERM,TERM,USR1 --source signal:USR1
	kill -TERM "$watch"
	eventually grep -q 'signal:TERM' out
	kill -USR1 "$watch"
	eventually grep -q 'signal:USR1\|signal:TERM,USR1.*USR1' out
	[ "$(wc -l <out)" = 2 ]
}

@test "wrong usage names what is right" {
	run -2 preempt-watch --source cloud:gce
	[[ $output == *'no source "cloud:gce"; known are signal:TERM,USR1, file:PATH, command:TEXT'* ]]
	local spec
	for spec in '' signal signal: file: command: "signal:TERM," signal:,TERM signal:term signal:TERM,BOGUS \
		signal:-1 signal:0 signal:15x signal:33 signal:64 signal:KILL signal:SIGSTOP signal:CHLD \
		$'sig\033nal:TERM'; do
		run -2 preempt-watch --source "$spec" --timeout 5m
		[ "${#lines[@]}" = 1 ]
		[[ $output != *$'\033'* ]]
	done
	run -2 preempt-watch --once --follow
	run -2 preempt-watch --period 0
	run -2 preempt-watch --timeout -1s
	run -2 preempt-watch --grace 1x
	run -2 preempt-watch --exec ''
	run -2 preempt-watch --no-such-option
	run -2 preempt-watch word
}

@test "with signals only it never wakes up" {
	start --source signal:TERM,USR1
	# Its last step before it sleeps may still be under way.
	eventually grep -q '^State:[[:space:]]*S' "/proc/$watch/status"
	sleep 0.2
	local before after
	before=$(grep ctxt_switches "/proc/$watch/status")
	sleep 2
	after=$(grep ctxt_switches "/proc/$watch/status")
	[ "$before" = "$after" ]
}

# More than a process number can be.
no_process=2147483647

@test "PREEMPT_AGENT names a process that does not exist: --once serves none, else it watches on and says so" {
	written gone.soon n
	PREEMPT_AGENT=$no_process run -0 --separate-stderr preempt-watch --once --source file:n
	[[ $output = *"gone.soon" ]]
	[ -z "$stderr" ]
	PREEMPT_AGENT=$no_process run -0 --separate-stderr preempt-watch --source file:n
	[[ $output = *"gone.soon" ]]
	[[ $stderr = *"process $no_process (PREEMPT_AGENT) does not exist: unset PREEMPT_AGENT, or join again"* ]]
}

@test "where the process of PREEMPT_AGENT was killed before, --follow ends once the board is gone, too" {
	mkdir board
	PREEMPT_AGENT=$no_process PREEMPT_DIR=$PWD/board start --follow --source signal:TERM
	rmdir board
	code_of "$watch"
	[ "$code" = 1 ]
	PREEMPT_AGENT=$no_process PREEMPT_DIR=$PWD/board run -1 timeout 60 preempt-watch --follow --source signal:TERM
}

@test "below preempt-run (PREEMPT_AGENT=PID.START) it serves no process and no board" {
	PREEMPT_AGENT=$no_process.1 PREEMPT_DIR=$PWD/board run -124 --separate-stderr \
		preempt-watch --follow --source file:n --timeout 2500ms
	[[ $stderr != *PREEMPT_AGENT* ]]
}
