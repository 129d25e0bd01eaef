#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What preempt-run says: which agent says it, --log-format, --on-event, the last line.
# takes: 40
# shellcheck disable=SC2016,SC2034 # text for other shells; what agents.bash uses

load ../support/agents

# train TASKS OPTION...: one agent for each of TASKS tasks, until all have begun.
train() {
	options=("${@:2}")
	count_agents "$1" --steps 100000 --step-ms 5
	eventually all_begun "$1" 5
}

# words FILE: the events of lines of JSON.
words() { python3 -c 'import json, sys; print(*(json.loads(line)["event"] for line in sys.stdin))' <"$1"; }

@test "4 agents of a task each: the first one tells each event of the job, as JSON, and runs --on-event once for it" {
	train 4 --log-format json --on-event 'cat >>told; echo "$PREEMPT_EVENT $PREEMPT_RUN $PREEMPT_ATTEMPT" \
		"$PREEMPT_EVENT_STEP$PREEMPT_EVENT_CODE" >>variables'
	kill -TERM "${pids[3]}"
	all_ended 42
	saved_together 4
	[ ! -s err.1 ]
	[ ! -s err.2 ]
	[ ! -s err.3 ]
	[ "$(words err.0)" = "claim agreed saved all-saved end" ]
	[ "$(words told)" = "joined claim agreed all-saved end" ]
	[ "$(sed -n 3p variables)" = "agreed job 1 $saved_step" ]
	[[ $(tail -n 1 variables) = "end job 1 "*42 ]]
	python3 - "$HOSTNAME" "$saved_step" <<-'EOT'
		import json, re, sys
		host, step = sys.argv[1], int(sys.argv[2])
		lines = claim, agreed, saved, together, end = [json.loads(line) for line in open("err.0")]
		for line in lines:
		    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"]), line
		    assert (line["level"], line["program"], line["run"]) == ("info", "preempt-run", "job"), line
		    assert (line["attempt"], line["tasks"]) == (1, "0"), line
		assert (claim["task"], claim["host"], claim["source"]) == (3, host, "signal:TERM"), claim
		assert (agreed["step"], agreed["count"]) == (step, 4), agreed
		assert (end["code"], end["attempts"], end["step"]) == (42, 1, step) and end["lost_ms"] >= 0, end
		assert end["text"].startswith(f"step {step} is saved and complete: run me again (42); "), end
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

@test "the exception that has ended a task is named in the event and in the store" {
	run preempt-run --run job -n 2 --on-event 'echo "$PREEMPT_EVENT ${PREEMPT_EVENT_CLASS-}" >>told' -- sh -c '
		[ $PREEMPT_TASK = 0 ] || exec sleep 1000
		exec python3 -c "class OutOfMemoryError(RuntimeError): pass
raise OutOfMemoryError(\"no room\")"'
	[ "$status" = 1 ]
	grep -qx "broken OutOfMemoryError" told
	[[ $(key ERROR) == *'"class":"OutOfMemoryError"'* ]]
}

@test "PH-10: the agent of task 0 is killed after the claim: the next one says that, too, and what was agreed" {
	train 3 --period 500ms
	# It does not save, so the others wait for it until the agent is gone.
	kill -STOP "$(command_of 2)"
	kill -TERM "${pids[0]}"
	eventually grep -q "agreed: all 3 save at step" err.0
	kill -KILL "${pids[0]}"
	eventually grep -q "declared dead: task 0; the others go on" err.1
	kill -CONT "$(command_of 2)"
	ended 0 137
	for i in 1 2; do ended $i "42|43"; done
	told_by "0 1" "claimed by task 0 on $HOSTNAME (signal:TERM: sent by process"
	told_by "0 1" "agreed: all 3 save at step"
	told_by 1 ": run me again (4"
}

@test "a command of --on-event that hangs delays neither the save nor the end; one that fails is a warning" {
	train 2 --on-event 'echo "$PREEMPT_EVENT" >>begun; until [ -e go ]; do sleep 0.02; done; echo >>ended; exit 3'
	eventually test -s begun
	kill -TERM "${pids[1]}"
	# Both have left their commands with the first event in it, or with the next one if that took its 10 s.
	for i in 0 1; do eventually has LEFT/$i; done
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
	PREEMPT_LOG_FORMAT=text one_agent 4 --steps 100000 --step-ms 5
	eventually all_begun 4 5
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

@test "who is waited for is named after 5 seconds, once: to join, to save" {
	cat >trainer.sh <<-'END'
		. "$CLIENTS/preempt.sh"
		waits() { until [ $PREEMPT_TASK = 0 ] || [ -e go ]; do sleep 0.05; done; }
		for ((s = 0; ; s++)); do
			preempt_step $s || { waits; preempt_saved $s || exit; }
			touch begun.$PREEMPT_TASK
			waits
			sleep 0.05
		done
	END
	agent 0 2 -- bash trainer.sh
	eventually grep -q 'waiting for task 1 to join' err.0
	agent 1 2 -- bash trainer.sh
	eventually test -e begun.0 -a -e begun.1
	kill -TERM "${pids[0]}"
	eventually grep -q 'waiting for task 1 to save' err.0
	touch go
	all_ended 42
	for what in join save; do
		told_by 0 "waiting for task 1 to $what"
		[ "$(grep -c "waiting for task 1 to $what" err.0)" = 1 ]
	done
	nothing_left
}

@test "a store that does not answer is named after 5 seconds, once" {
	export PREEMPT_STORE=$PWD/store/s.db
	preempt-store put held 1
	"$OUT/tests/support/hold_store" "$PREEMPT_STORE" run/r/held database >/dev/null 3>&- &
	holder=$!
	eventually is_stopped "$holder"
	agent 0 1 -- true
	eventually grep -q 'preempt-run: store .*db has not answered since 20.*Z; waiting$' err.0
	kill -KILL "$holder"
	all_ended 0
	[ "$(grep -c 'has not answered' err.0)" = 1 ]
}
