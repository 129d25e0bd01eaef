#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-watch: the sources of notices, what it tells of them, and the claim of the group.
# takes: 25
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2154 # text for another shell; a test is a subshell of its own

bats_require_minimum_version 1.5.0
load ../support/group

# A source needs no store and no run: of_run says which.
setup() {
	programs
	store=$PREEMPT_STORE
	unset PREEMPT_STORE
	agents=() boards=() joins=() tasks=1
}

lines() {
	[ "$(wc -l <"$1")" -ge "$2" ]
}

# watch_ends CODE
watch_ends() {
	code_of "$watch"
	[ "$code" = "$1" ] || { echo "code $code, not $1"; cat out err; return 1; } >&2
}

# sources WORD...: the words of out in field 2.
sources() { [ "$(cut -d' ' -f2 out | xargs)" = "$*" ]; }

# written TEXT FILE: whole, at once; "echo >FILE" makes it empty first, and its line may come late.
written() {
	echo "$1" >"$2.new"
	mv "$2.new" "$2"
}

utc='[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z'

# ---- Signals ----

@test "a signal is one line that says who sent it, and exit 0; TERM by default; --grace is the time left, --json the same as JSON" {
	start_watch
	kill -TERM "$watch"
	watch_ends 0
	[ "$(wc -l <out)" = 1 ]
	grep -Eq "^$utc signal:TERM left=unknown sent by process [0-9]+ \(.*\) of user $UID\$" out
	[ ! -s err ]
	start_watch --grace 30s --json --source signal:USR1
	kill -USR1 "$watch"
	watch_ends 0
	[ "$(wc -l <out)" = 1 ]
	[ "$(field source <out) $(field left_ms <out)" = "signal:USR1 30000" ]
	[[ $(field reason <out) = "sent by process $$ "* && $(field utc <out) =~ ^$utc$ ]]
	# One that the platform's source catches may be given, too: one notice of it.
	PREEMPT_PLATFORM=generic start_watch --follow --source signal:TERM,TERM,USR1 --source signal:USR1
	kill -TERM "$watch"
	eventually grep -q 'signal:TERM' out
	kill -USR1 "$watch"
	eventually grep -q 'signal:USR1\|signal:TERM,USR1.*USR1' out
	[ "$(wc -l <out)" = 2 ]
}

@test "each signal is told by its name, --follow goes on; INT ends it with 130, HUP with 129, TERM with 143 where it is no source" {
	local n=0 signal ending
	start_watch --follow --source signal:TERM,USR1
	for signal in TERM USR1 TERM; do
		kill -$signal "$watch"
		eventually lines out $((++n))
	done
	sources signal:TERM signal:USR1 signal:TERM
	kill -INT "$watch"
	watch_ends 130
	[ ! -s err ]
	for ending in INT:130 HUP:129 TERM:143; do
		start_watch --source file:flag
		kill -"${ending%:*}" "$watch"
		watch_ends "${ending#*:}"
		[ ! -s out ]
	done
	# What whoever started it ignored does not end it, but is a notice.
	(
		trap '' TERM HUP
		exec env --default-signal=QUIT preempt-watch >out 2>err 3>&-
	) &
	watch=$!
	started+=("$watch")
	eventually catches "$watch" 3 # QUIT is the last
	kill -HUP "$watch"
	kill -TERM "$watch"
	watch_ends 0
	grep -q signal:TERM out
}

# ---- Slurm, deadlines ----

# squeue_says TEXT: a squeue with this shell text, for job 9.
squeue_says() {
	mkdir -p fake
	printf '#!/bin/sh\necho >>asked\n%s\n' "$1" >fake/squeue
	chmod +x fake/squeue
	[[ $PATH = $PWD/fake:* ]] || PATH=$PWD/fake:$PATH
	export SLURM_JOB_ID=9
	rm -f asked
}

# term_told REGEX [OPTION...]: a TERM is told so, once it is asked for the end where $begun says how that is seen.
# squeue has 3 s for its answer; a machine that stands still for so long does so once.
term_told() {
	local told=$1
	shift
	for _ in 1 2 3; do
		rm -rf old ${begun-}
		start_watch --source slurm "$@"
		eventually test -e "${begun:-.}"
		kill -TERM "$watch"
		touch old
		watch_ends 0
		grep -Eq 'squeue.* (has not answered in time|took longer than)' out || break
	done
	grep -Eq "^$utc signal:TERM $told" out || { cat out; return 1; }
	[ "$(wc -l <out)" = 1 ]
}

@test "slurm: a TERM is told with what squeue says then of this job; with --grace 0 it is not asked" {
	local begun=first near='left=(1[0-9]+|200)(s|[0-9]{3}ms) sent by .*; the job is'
	squeue_says 'if mkdir first; then until [ -e old ]; do sleep 0.02; done; echo "RUNNING NONE"
		else echo "RUNNING $(($(date +%s) + 200))"; fi 2>/dev/null'
	# It asks for the end at the start, too: that is not the one that counts.
	term_told "$near near its time limit"
	begun=''
	export SLURM_JOB_END_TIME=$(($(date +%s) + 36000))
	# A task of an array asks for itself, although its job id is also the array's.
	squeue_says 'case " $* " in *" -j 9_3 "*) ;; *) echo "PENDING $(($(date +%s) + 72000))" ;; esac
		echo "RUNNING $(($(date +%s) + 200))"'
	SLURM_ARRAY_JOB_ID=9 SLURM_ARRAY_TASK_ID=3 term_told "$near preempted"
	squeue_says 'echo "slurm_load_jobs error: away" >&2; exit 1'
	term_told 'left=unknown sent by .*; squeue: slurm_load_jobs error: away$'
	rm asked
	term_told 'left=unknown sent by' --grace 0
	[ ! -e asked ]
}

@test "slurm, deadline: an end that is over by our clock from the start is no known end, in words with both times" {
	local now
	now=$(date +%s)
	export SLURM_JOB_END_TIME=$((now - 7200)) SLURM_NTASKS=1
	squeue_says 'echo "RUNNING $SLURM_JOB_END_TIME"'
	start_watch --source slurm
	eventually grep -q 'job 9 ends at .*, but this machine.s clock says .*: one of the clocks is wrong' err
	eventually test -e asked
	kill -TERM "$watch"
	watch_ends 0
	[ "$(wc -l <out)" = 1 ]
	grep -q ' signal:TERM left=unknown sent by' out
	# The time is counted from the job's start.
	squeue_says 'echo "RUNNING $SLURM_JOB_END_TIME $SLURM_JOB_START_TIME"'
	SLURM_JOB_START_TIME=$((now - 7200)) SLURM_JOB_END_TIME=$((now - 7198)) start_watch --source slurm
	watch_ends 0
	grep -q " slurm:end left=unknown the job.s time is up at .*Z, but this machine.s clock says 20.*Z: the time left is not" out
	# A time limit that was removed.
	squeue_says 'echo "RUNNING NONE $SLURM_JOB_START_TIME"'
	SLURM_JOB_START_TIME=$((now - 7200)) SLURM_JOB_END_TIME=$(($(date +%s) + 3)) run -124 --separate-stderr \
		preempt-watch --source slurm --grace 60s --timeout 2s
	[ -z "$output" ]
	run -0 --separate-stderr preempt-watch --source deadline:2020-01-31T12:00:00Z --timeout 5m
	[[ $output = *"left=unknown the deadline was 2020-01-31T12:00:00.000Z, but this machine's clock says 20"* ]]
}

# ---- Files and commands ----

@test "a file, a directory, a file moved into place: there already or told at once; its first line is the reason, as it is (PH-18)" {
	local make
	mkdir "my dir"
	printf 'a\033[2J\tb\n' >"my dir/flag"
	printf 'node is drained\nmore\n' >flag
	printf 'TERMINATE\r\n' >crlf
	printf 'Terminate' >bare
	: >empty
	while IFS='|' read -r file told; do
		run -0 --separate-stderr preempt-watch --source "file:$file" --timeout 5m
		[[ $output =~ ^$utc\ $told\ ?$ ]] || { echo "$file: $output" >&2; return 1; }
	done <<-'END'
		flag|file:flag left=unknown node is drained
		my dir/flag|file:my\\x20dir/flag left=unknown a\\x1b\[2J\\tb
		crlf|file:crlf left=unknown TERMINATE
		bare|file:bare left=unknown Terminate
		empty|file:empty left=unknown
	END
	rm flag
	# Long before the next look.
	for make in 'touch flag' 'mkdir flag' 'mv ready flag'; do
		echo moved >ready
		start_watch --source file:flag --period 1h
		$make
		watch_ends 0
		rm -rf flag
	done
	grep -Eq "^$utc file:flag left=unknown moved\$" out
	# A line that comes a moment later is waited for for half a second, which a writer that stalls may miss, once.
	for _ in 1 2 3 4 5; do
		start_watch --source file:flag --period 1h
		exec 6>flag
		sleep 0.1
		echo drain >&6
		exec 6>&-
		watch_ends 0
		! grep -q ' left=unknown drain$' out || break
		rm flag
	done
	grep -q ' left=unknown drain$' out
}

@test "a file's directory may be missing, go away and come back; a file is reported once, again only when it came back or was replaced" {
	start_watch --follow --source file:a/b/flag --source signal:USR1 --period 10ms
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
	echo changed >>a/b/flag
	kill -USR1 "$watch"
	eventually lines out 4
	written four a/b/flag
	eventually lines out 5
	rm a/b/flag
	written five a/b/flag
	eventually lines out 6
	[ "$(sed 's/ sent by.*/ USR1/; s/.* //' out | xargs)" = "one two three USR1 four five" ]
}

@test "a command that exits 0 is a notice, its first line the reason; it is asked again until then, and more than one notice only after a no" {
	run -0 preempt-watch --source 'command:echo going away; echo more' --timeout 5m
	[[ $output =~ ^$utc\ .*\ left=unknown\ going\ away$ ]]
	run -0 preempt-watch --source 'command:head -c 3000000 /dev/zero | tr "\0" x' --timeout 5m
	[ "${#output}" -lt 500 ]
	run -0 preempt-watch --period 20ms --timeout 5m --source 'command:echo x >>asked; test "$(wc -l <asked)" -ge 4'
	[ "$(wc -l <asked)" = 4 ]
	echo one >reason
	start_watch --follow --period 20ms --source 'command:echo x >>asked; cat reason 2>/dev/null || exit 1'
	eventually lines asked 9
	[ "$(wc -l <out)" = 1 ]
	written two reason
	eventually lines out 2
	rm reason
	eventually lines asked $(($(wc -l <asked) + 3))
	written two reason
	eventually lines out 3
	[ "$(sed 's/.* //' out | xargs)" = "one two two" ]
}

@test "--once: 0 a notice, 1 none, 75 could not ask, also beside one that says no; 124 when the answer takes longer than --timeout" {
	local row code told
	ln -s loop loop
	while IFS='|' read -r code told row; do
		# shellcheck disable=SC2086 # several sources
		eval "run -$code --separate-stderr preempt-watch --once $row"
		[[ $stderr = *"$told"* && ( -n $told || -z $stderr ) ]] || { echo "$row: $stderr" >&2; return 1; }
		[ "$(grep -c . <<<"$output")" = $((code == 0)) ]
	done <<-'END'
		0||--source command:true
		0|it ended with 2|--source 'command:exit 2' --source command:true
		1||--source command:false --source file:flag --source signal:TERM
		75|it ended with 2: bad weather|--source 'command:echo bad weather >&2; exit 2' --source command:false
		75|cannot ask command:|--source command:/nowhere/command
		75|cannot ask command:|--source 'command:kill -KILL $$'
		75|cannot look for loop/flag|--source file:loop/flag
		75|longer than 300 ms and was killed|--look-timeout 300ms --source 'command:sleep 1000 & echo $! >child; echo $$ >shell; wait'
		1||--source 'command:sleep 1000 & echo $! >child1; exit 1'
		124|command:sleep 1000 did not answer within --timeout|--timeout 200ms --source 'command:sleep 1000'
	END
	for child in child shell child1; do eventually gone "$(cat $child)"; done
	# Another source could not be asked. A machine that is slow gets more time to ask it.
	for limit in 300ms 3s 15s; do
		run preempt-watch --once --timeout $limit --source 'command:exit 2' --source 'command:sleep 1000'
		[ "$status" = 124 ] || break
	done
	[ "$status" = 75 ]
	run -124 --separate-stderr preempt-watch --timeout 100ms
	[ -z "$output" ]
	[[ $stderr == *"no notice came"* ]]
	echo one >flag
	run -0 --separate-stderr preempt-watch --follow --timeout 300ms --source file:flag
	[ "${#lines[@]}" = 1 ]
	[ -z "$stderr" ]
}

@test "one that cannot be asked, or hangs, never stops the others; it is reported once, and its return too" {
	start_watch --follow --period 20ms --source 'command:echo x >>asked; test -e good && exit 1; exit 3' \
		--source file:flag --source signal:TERM
	eventually grep -q 'could not be asked three times in a row: it ended with 3; retrying' err
	eventually lines asked 8
	echo one >flag
	eventually lines out 1
	touch good
	eventually grep -q 'answers again' err
	[ "$(wc -l <err)" = 2 ]
	kill -INT "$watch"
	watch_ends 130
	rm flag
	# On a slow machine any command would take so long: one that always does.
	start_watch --follow --period 20ms --look-timeout 100ms --source 'command:sleep 1000' \
		--source file:flag --source signal:TERM
	eventually grep -q 'three times in a row: .*longer than 100 ms' err
	kill -TERM "$watch"
	eventually lines out 1
	written two flag
	eventually lines out 2
	[ "$(wc -l <err)" = 1 ]
	kill -INT "$watch" # so that it ends the command
	watch_ends 130
}

@test "a source's command is ended when the watch ends, however it ends" {
	local ending
	for ending in INT TERM; do
		rm -f child shell
		start_watch --source 'command:sleep 1000 & echo $! >child; echo $$ >shell; wait'
		eventually test -s shell
		kill -"$ending" "$watch"
		code_of "$watch"
		eventually gone "$(cat child)"
		eventually gone "$(cat shell)"
	done
}

# ---- What is done with a notice ----

@test "--exec: the notice in variables and as JSON on stdin, its exit code passed on, nothing printed, no signal ignored or blocked" {
	local as_they_were
	printf '$(touch pwned)"; touch pwned; `touch pwned`\n' >flag
	run -7 --separate-stderr preempt-watch --source file:flag --grace 10m --timeout 5m --exec '
		printf "%s|" "$PREEMPT_NOTICE_SOURCE" "$PREEMPT_NOTICE_REASON" "$PREEMPT_NOTICE_UTC" "$PREEMPT_NOTICE_LEFT_MS"
		cat >event
		exit 7'
	[[ $output =~ ^file:flag\|(.*)\|$utc\|([0-9]+)\|$ ]]
	[ "${BASH_REMATCH[1]}" = "$(cat flag)" ]
	((BASH_REMATCH[2] <= 600000 && BASH_REMATCH[2] > 300000))
	[ "$(field left_ms <event)" = 600000 ]
	[ ! -e pwned ]
	run -0 preempt-watch --source file:flag --timeout 5m --exec 'test -z "$PREEMPT_NOTICE_LEFT_MS"'
	run -127 preempt-watch --source file:flag --timeout 5m --exec /nowhere/command
	# Not all zeros: below make, libc's own signals 32 and 33 are ignored.
	as_they_were=$(env --default-signal grep -E "^Sig(Blk|Ign)" /proc/self/status)
	run -0 env --default-signal preempt-watch --source file:flag --timeout 5m --exec 'exec grep -E "^Sig(Blk|Ign)" /proc/self/status'
	[ "$output" = "$as_they_were" ]
}

@test "--exec: a second TERM while the command runs changes nothing, with --follow it is the next; INT is passed on, and ends the watch" {
	start_watch --exec 'kill -TERM $PPID; kill -TERM $PPID; exit 5'
	kill -TERM "$watch"
	watch_ends 5
	start_watch --follow --exec 'echo run; test -e twice || { touch twice; kill -TERM $PPID; }'
	kill -TERM "$watch"
	eventually lines out 2
	start_watch --source file:flag --exec 'trap "echo interrupted; kill \$!; exit 3" INT; echo ready; sleep 1000 & wait'
	touch flag
	eventually grep -q ready out
	kill -INT "$watch"
	watch_ends 130
	grep -q interrupted out
}

@test "a pipe gets each line at once, and its end ends the watch quietly; an answer that cannot be written is an error" {
	mkfifo pipe
	env --default-signal=HUP,INT,QUIT,PIPE preempt-watch --follow >pipe 2>err 3>&- &
	watch=$!
	started+=("$watch")
	exec 5<pipe
	eventually watch_is_ready
	kill -TERM "$watch"
	read -r -t 60 line <&5
	[[ $line == *signal:TERM* ]]
	exec 5<&-
	code_of "$watch"
	[ "$code" = 141 ]
	[ ! -s err ]
	touch flag
	for full in ' >/dev/full' ' --follow >/dev/full' ' >&-'; do
		run -75 --separate-stderr bash -c "preempt-watch --source file:flag --timeout 5m $full"
		[[ $stderr == *"cannot write the notice to stdout"* ]]
		[ "${#stderr_lines[@]}" = 1 ]
	done
}

@test "wrong usage names what is right" {
	run -2 preempt-watch --source cloud:gce
	[[ $output == *'no source "cloud:gce"; known are signal:TERM,USR1, file:PATH, command:TEXT'* ]]
	local spec
	for spec in '' signal signal: file: command: "signal:TERM," signal:,TERM signal:term signal:TERM,BOGUS \
		signal:-1 signal:0 signal:15x signal:33 signal:64 signal:KILL signal:SIGSTOP signal:CHLD \
		$'sig\033nal:TERM' group:0 group:x; do
		run -2 preempt-watch --source "$spec" --timeout 5m
		[ "${#lines[@]}" = 1 ]
		[[ $output != *$'\033'* ]]
	done
	for wrong in "--once --follow" "--period 0" "--timeout -1s" "--grace 1x" "--exec=" --no-such-option word \
		"--source group --source group" "--until-exit --source signal:TERM" "--until-exit --follow"; do
		# shellcheck disable=SC2086 # several words
		run -2 preempt-watch $wrong
	done
}

# ---- The claim of the group ----

# of_run N: a run of N tasks; 0: it has not begun.
of_run() {
	export PREEMPT_RUN=r PREEMPT_STORE=$store
	[ "$1" = 0 ] || join "$1"
}

@test "PH-9 --until-exit returns when the claimer's process is gone, and not before; at once where it has left, never joined, or is outside" {
	of_run 2
	run -1 --separate-stderr preempt-watch --until-exit --once
	start_watch --until-exit
	as 1 preempt-claim
	eventually test -s out
	in_vain preempt-watch --until-exit
	kill -0 "$watch"
	kill "${agents[1]}"
	watch_ends 0
	run -0 --separate-stderr preempt-watch --until-exit --once
	another_store
	join 2
	as 0 preempt-claim
	serve 0 preempt-store leave --code 42 # stays for the other one, which has not saved
	eventually has_key LEFT/0
	run -0 --separate-stderr preempt-watch --until-exit --timeout 30s
	for key in LEFT/0 TASK/0 ALL_JOINED; do preempt-store rm "run/r/000001/$key"; done
	run -0 --separate-stderr preempt-watch --until-exit --timeout 30s
	preempt-store put run/r/000001/TERMINATED_WORKER '{"then":"exit","host":"elsewhere"}'
	run -0 --separate-stderr preempt-watch --until-exit --timeout 30s
}

@test "group: a store and a run that do not exist yet are waited for, and the claim is told at once; in a job it is a default, with TERM" {
	of_run 0
	start_watch --source group
	sleep 0.3
	kill -0 "$watch"
	join 1
	as 0 preempt-claim
	patience=14 watch_ends 0 # it looks by itself every 15 s
	[[ $(cat out) = *" group left=unknown claimed by task 0"* ]]
	another_store
	join 1
	start_watch
	kill -TERM "$watch"
	watch_ends 0
	grep -q " signal:TERM " out
	start_watch
	as 0 preempt-claim
	watch_ends 0
	grep -q " group " out
	# A bare signal source needs no store.
	PREEMPT_STORE=$PWD/not/mounted/s.db start_watch --source signal:TERM
	kill -TERM "$watch"
	watch_ends 0
	[ ! -s err ]
}

# cannot_be_asked OPTION...: the watch says why, 75; the same with its first answer.
cannot_be_asked() {
	local limit
	for limit in 500ms 15s 60s; do
		run -75 --separate-stderr preempt-watch "$@" --store "$PWD/not/mounted/s.db" --timeout $limit
		[[ $stderr = *"did not answer in that time"* ]] || break
	done
	[[ $stderr = *"the group could not be asked: "*"$PWD/not/mounted"* ]]
}

@test "group: could not ask is never no claim; a store that refuses us ends it with its own code" {
	of_run 0
	run -75 --separate-stderr preempt-watch --once --source group --store "$PWD/not/mounted/s.db"
	cannot_be_asked --source group
	cannot_be_asked --until-exit
	needs_store_file
	join 1
	chmod 666 s.db
	run -77 --separate-stderr preempt-watch --once --source group
	run -77 --separate-stderr preempt-watch --source group --timeout 30s
	chmod 600 s.db
	echo "this is no database, and is long enough to be looked at as one" >broken.db
	chmod 600 broken.db
	run -65 --separate-stderr preempt-watch --source group --store "$PWD/broken.db" --timeout 30s
}

@test "group: the attempt it was asked for broke: 44; is over: 1, also for group:N after a claim; the newest: another may come" {
	of_run 2
	as 1 preempt-store leave --code 9
	run -44 --separate-stderr preempt-watch --source group --attempt 1 --timeout 30s
	[[ $stderr = *"task 1 failed"* ]]
	in_vain preempt-watch --source group
	as 0 preempt-store leave --code 0
	join 1
	as 0 preempt-claim >/dev/null
	start_watch --source group:2 --attempt 2
	as 0 preempt-store leave --code 42 >/dev/null
	watch_ends 1
	grep -q "is over" err
	join 1
	as 0 preempt-store leave --code 0
	run -1 --separate-stderr preempt-watch --source group --attempt 3 --timeout 30s
	[[ $stderr = *"is over (completed)"* ]]
}

@test "group: --follow tells the claim of each attempt once; started before join, the claim of the attempt before is no notice" {
	local late
	of_run 1
	start_watch --follow --source group
	as 0 preempt-claim --reason one
	eventually test -s out
	as 0 preempt-claim --reason again --grace 1m
	as 0 preempt-store leave --code 42
	preempt-watch --source group --json >event 3>&- &
	late=$!
	started+=("$late")
	join 1
	as 0 preempt-claim --reason two
	eventually grep -q two out
	[ "$(wc -l <out)" = 2 ]
	code_of "$late"
	[ "$code" = 0 ]
	[ "$(field attempt <event)" = 2 ]
}

@test "serving an agent: it ends when the agent is gone, or its task has left; HUP is no notice" {
	local watches=()
	of_run 3
	for task in 0 1 2; do
		serve "$task" preempt-watch --follow --source signal:TERM >"event.$task"
		watches[task]=$!
	done
	for watch in "${watches[@]}"; do eventually watch_is_ready; done
	kill -KILL "${agents[0]}"
	as 1 preempt-store leave --code 0 >/dev/null
	kill -HUP "${watches[2]}"
	for task in 0:1 1:1 2:129; do
		code_of "${watches[${task%:*}]}"
		[ "$code" = "${task#*:}" ]
	done
	[ ! -s event.2 ]
}

@test "PREEMPT_AGENT: its process must exist (preempt-ack, preempt-claim, preempt-watch); below preempt-run (PID.START) it is none" {
	local none=2147483647 # more than a process number can be
	of_run 2
	echo "$(date -u +%FT%T.000Z) signal:TERM left=1h" >event
	mkdir board
	written gone.soon n
	agents[0]=$none
	for command in "preempt-ack --serve --attempt 1" "preempt-claim --from event"; do
		# shellcheck disable=SC2086 # several words
		as 0 run -1 --separate-stderr $command
		[[ $stderr = *"process $none (PREEMPT_AGENT) does not exist: unset PREEMPT_AGENT, or join again"* ]]
	done
	# With --once it serves none, else it watches on and says so; --follow ends once the board is gone, too.
	as 0 run -0 --separate-stderr preempt-watch --once --source file:n
	[[ $output = *"gone.soon" && -z $stderr ]]
	as 0 run -0 --separate-stderr preempt-watch --source file:n
	[[ $output = *"gone.soon" ]]
	[[ $stderr = *"process $none (PREEMPT_AGENT) does not exist: unset PREEMPT_AGENT, or join again"* ]]
	PREEMPT_AGENT=$none PREEMPT_DIR=$PWD/board start_watch --follow --source signal:TERM
	rmdir board
	watch_ends 1
	PREEMPT_AGENT=$none.1 PREEMPT_DIR=$PWD/board run -124 --separate-stderr \
		preempt-watch --follow --source file:m --timeout 500ms
	[[ $stderr != *PREEMPT_AGENT* ]]
	# Without task 1 nothing is decided yet.
	at 0 4
	agents[0]=$none.1
	as 0 run -0 preempt-claim --from event
	in_vain as 0 preempt-ack --report-timeout 10m
	agents[0]=$none
	as 0 run -43 preempt-ack --report-timeout 10m
	unset 'agents[0]'
}
