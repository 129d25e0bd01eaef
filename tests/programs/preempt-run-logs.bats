#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What preempt-run says: which agent says it, --log-format, --on-event, the last line.
# takes: 50
# shellcheck disable=SC2016 # text for other shells
# shellcheck disable=SC2030,SC2031,SC2034,SC2154 # each test is a subshell with its own variables

bats_require_minimum_version 1.5.0

setup_file() {
	load ../support/trainers/agents
	agents_setup_file
}

setup() {
	load ../support/trainers/agents
	agents_setup
	# No task is given up who is only slow.
	quick=(--report-timeout 60s --save-timeout 120s --join-timeout 120s --kill-after 1s)
}

teardown() { agents_teardown; }

# train TASKS OPTION...: one agent for each of TASKS tasks; once all have begun the last one gets TERM.
train() {
	local i
	for ((i = 0; i < $1; i++)); do
		agent $i "$1" "${@:2}" -- "$COUNT" --dir job --steps 100000 --step-ms 5
	done
	until_true 20 all_begun "$1" 5
}

# words FILE: the events of lines of JSON.
words() { python3 -c 'import json, sys; print(*(json.loads(line)["event"] for line in sys.stdin))' <"$1"; }

@test "4 agents of a task each: the first one tells each event of the job, as JSON, and runs --on-event once for it" {
	train 4 --log-format json --on-event 'cat >>told; echo "$PREEMPT_EVENT $PREEMPT_RUN $PREEMPT_ATTEMPT" \
		"$PREEMPT_EVENT_STEP$PREEMPT_EVENT_CODE" >>variables'
	kill -TERM "${pids[3]}"
	all_ended 42
	saved_together 4
	[ ! -s err.1 ] && [ ! -s err.2 ] && [ ! -s err.3 ]
	[ "$(words err.0)" = "claim agreed saved all-saved end" ]
	[ "$(words told)" = "joined claim agreed all-saved end" ]
	[ "$(sed -n 3p variables)" = "agreed job 1 $saved_step" ]
	[[ $(tail -n 1 variables) = "end job 1 "*42 ]]
	python3 - "$HOSTNAME" "$saved_step" <<-'EOT'
		import json, re, sys
		claim, agreed, saved, together, end = [json.loads(line) for line in open("err.0")]
		for line in claim, agreed, saved, together, end:
		    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"]), line
		    assert (line["level"], line["program"], line["run"]) == ("info", "preempt-run", "job"), line
		    assert (line["attempt"], line["tasks"]) == (1, "0"), line
		assert (claim["task"], claim["host"], claim["source"]) == (3, sys.argv[1], "signal:TERM"), claim
		assert (agreed["step"], agreed["count"]) == (int(sys.argv[2]), 4), agreed
		assert end["code"] == 42 and end["attempts"] == 1 and end["lost_ms"] >= 0, end
		assert end["step"] == int(sys.argv[2]), end
		assert end["text"].startswith("step %s is saved and complete: run me again (42); " % sys.argv[2]), end
	EOT
	nothing_left
}

@test "the agent of task 0 is killed: the next one says what happened, and runs --on-event" {
	train 3 --period 500ms --on-event 'echo "$PREEMPT_EVENT" >>told.$PPID'
	kill -KILL "${pids[0]}"
	ended 0 137
	for i in 1 2; do ended $i 44; done
	told_by 1 "run job attempt 1 is broken: task 0 on $HOSTNAME is gone"
	told_by 1 "another task broke: run me again (44)"
	[ "$(cat "told.${pids[1]}")" = $'broken\nend' ]
	[ ! -e "told.${pids[2]}" ]
	nothing_left
}

@test "the agent of task 0 is killed after the claim: the next one says that, too, and what was agreed" {
	train 3 --period 500ms
	# It does not save, so the others wait for it until the agent is gone.
	kill -STOP "$(command_of 2)"
	kill -TERM "${pids[0]}"
	until_true 10 grep -q "agreed: all 3 save at step" err.0
	kill -KILL "${pids[0]}"
	until_true 20 grep -q "declared dead: task 0; the others go on" err.1
	kill -CONT "$(command_of 2)"
	ended 0 137
	for i in 1 2; do ended $i "42|43"; done
	told_by "0 1" "claimed by task 0 on $HOSTNAME (signal:TERM: sent by process"
	told_by "0 1" "agreed: all 3 save at step"
	told_by 1 ": run me again (4"
}

@test "a command of --on-event that hangs delays neither the save nor the end; one that fails is a warning" {
	train 2 --on-event 'echo "$PREEMPT_EVENT" >>begun; until [ -e go ]; do sleep 0.02; done; echo >>ended; exit 3'
	until_true 10 test -s begun
	kill -TERM "${pids[1]}"
	# Both have left their commands with the first event in it, or with the next one if that took its 10 s.
	until_true 20 has LEFT/0
	until_true 20 has LEFT/1
	[ ! -e ended ]
	[ "$(field LEFT/0 reason) $(field LEFT/1 reason)" = "saved saved" ]
	touch go
	all_ended 42
	saved_together 2
	told_by 0 'warning: --on-event: the command failed with 3 for the event "end"'
	[ "$(tail -n 1 begun)" = end ]
	nothing_left
}

@test "an agent of 4 tasks: one line for their saves; --log-format text says the time; of a failure only the codes" {
	PREEMPT_LOG_FORMAT=text preempt-run -n 4 "${quick[@]}" -- "$COUNT" --dir job --steps 100000 --step-ms 5 \
		2>err.0 3>&- &
	pids=($!)
	until_true 20 all_begun 4 5
	kill -TERM "${pids[0]}"
	ended 0 42
	run ! grep -vE '^20[0-9-]+T[0-9:]+\.[0-9]{3}Z preempt-run: ' err.0
	[ "$(grep -cE 'preempt-run: all 4 have saved step [0-9]+ in [0-9.]+ (to [0-9.]+ )?s$' err.0)" = 1 ]
	run ! grep -qE 'tasks? [0-3-]+: saved' err.0
	# What all of a loop come to, and what a first start has to say.
	run -7 --separate-stderr preempt-run --log-format text -- sh -c 'exit 7'
	[[ ${stderr_lines[-1]} =~ ^20.*'Z preempt-run: failed (7); 1 attempt in '[0-9.]+' s'$ ]]
	run -0 --separate-stderr preempt-run --run other -- true
	[[ $stderr =~ ^'preempt-run: finished (0); 1 attempt in '[0-9.]+' s'$ ]]
	run -0 --separate-stderr preempt-run -q --run third -- true
	[ -z "$stderr" ]
	run -2 --separate-stderr preempt-run --log-format xml -- true
	[[ $stderr == *'--log-format: "xml" is neither text nor json'* ]]
}

# said_once TEXT: the first agent alone says it, and once.
said_once() { told_by 0 "$1" && [ "$(grep -cF -- "$1" err.0)" = 1 ]; }

@test "who is waited for is named after 5 seconds, once: to join, to save" {
	cat >trainer.sh <<-END
		. "$BATS_TEST_DIRNAME/../../lib/client/preempt.sh"
		for ((s = 0; s < 100000; s++)); do
			preempt_step \$s || { until [ \$PREEMPT_TASK = 0 ] || [ -e saved ]; do sleep 0.05; done; preempt_saved \$s || exit; }
			touch begun.\$PREEMPT_TASK
			until [ \$PREEMPT_TASK = 0 ] || [ -e stepped ]; do sleep 0.05; done
			sleep 0.05
		done
	END
	agent 0 2 -- bash trainer.sh
	until_true 20 grep -q 'waiting for task 1 to join' err.0
	agent 1 2 -- bash trainer.sh
	until_true 20 test -e begun.0 -a -e begun.1
	kill -TERM "${pids[0]}"
	until_true 20 grep -q 'waiting for task 1 to save' err.0
	touch stepped saved
	all_ended 42
	for what in join save; do said_once "waiting for task 1 to $what"; done
	nothing_left
}

@test "a store that does not answer is named after 5 seconds, once" {
	export PREEMPT_STORE=$PWD/store/s.db
	preempt-store put held 1
	"$OUT/tests/support/hold_store" "$PREEMPT_STORE" run/r/held database >/dev/null 3>&- &
	holder=$!
	until_true 20 grep -q '^State:.T' "/proc/$holder/status" 2>/dev/null
	agent 0 1 -- true
	until_true 20 grep -q 'preempt-run: store .*s.db has not answered since 20.*Z; waiting$' err.0
	kill -KILL "$holder"
	all_ended 0
	[ "$(grep -c 'has not answered' err.0)" = 1 ]
}
