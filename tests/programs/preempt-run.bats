#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-run: tasks that stop together at one step, each under an agent of its own, with real processes. All
# interleavings are in the simulator (tests/sim/group/scenarios.c).
# takes: 60
# shellcheck disable=SC2016,SC2034 # text for other shells; what agents.bash uses

load ../support/agents

@test "PH-1, PH-9: TERM to one of 4 agents: all save once at one step, 42; PH-8, SY-1: again: nothing is saved, lost or left" {
	local i victim=$((RANDOM % 4))
	count_agents 4 --steps 100000 --step-ms 5
	eventually all_begun 4 20
	kill -TERM "${pids[victim]}"
	all_ended 42
	saved_together 4
	[ "$(ls job/ckpt)" = "$saved_step" ]
	told_by 0 "claimed by task $victim on $HOSTNAME (signal:TERM: sent by process"
	[ "$(field SEAL text)" = "claimed by task $victim on $HOSTNAME" ]
	told_by 0 "step $saved_step is saved and complete: run me again (42); 1 attempt in "
	for i in 0 1 2 3; do [ "$(field "LEFT/$i" reason)" = saved ]; done
	[ "$(field CLOSED state) $(field CLOSED step)" = "preempted $saved_step" ]

	attempt=2
	count_agents 4 --steps $((saved_step + 100)) --step-ms 1
	all_ended 0
	for i in 0 1 2 3; do grep -qx "start $saved_step" "job/log/2.$i"; done
	counted 4 $((saved_step + 100))
	[ "$(ls job/ckpt)" = "$saved_step" ]
	[ "$(field CLOSED state)" = completed ]
	[ "$(keys "" | sed 's|.*/000002/||; s|/.*||' | sort -u | xargs)" = "ALL_JOINED CLOSED LEFT OPEN TASK" ]
	nothing_left
}

@test "PH-1: one task alone, without --run, leaves with 42" {
	unset PREEMPT_RUN
	one_agent 1 --steps 100000 --step-ms 5
	eventually begun 0 5
	kill -TERM "${pids[0]}"
	all_ended 42
	nothing_left
}

@test "PH-2: one task fails with a message: every other one is ended and leaves with 44; its agent and the first print that message" {
	# Not before all have begun: who comes later says it in other words.
	cat >trainer <<-'EOT'
		for i in 0 1 3; do
			until [ "$PREEMPT_TASK" != 2 ] || [ -s "job/log/1.$i" ]; do sleep 0.02; done
		done
		exec "$COUNT" --dir job --steps 100000 --step-ms 5 --fail 2:30:7
	EOT
	agents_of 4 sh trainer
	ended 2 7
	for i in 0 1 3; do ended $i 44; done
	told_by "0 2" "task 2 failed on $HOSTNAME with 7: count: task 2: the loss is not a number at step 30"
	told_by 0 "another task broke: run me again (44)"
	[ "$(field ERROR task) $(field ERROR code)" = "2 7" ]
	[ "$(field CLOSED state)" = failed ]
	[ -z "$(ls job/ckpt)" ]
	nothing_left
}

# fails_together COMMAND...: it starts four tasks. Once all are there task 3 is killed, and its peers fail of it at
# once, as in a synchronous training: who comes first to the store may be any. The error names task 3.
fails_together() {
	local i try
	cat >trainer <<-'EOT'
		cd job
		touch here.$PREEMPT_TASK
		until [ -e go ]; do sleep 0.01; done
		[ "$PREEMPT_TASK" != 3 ] || kill -KILL $$
		echo "peer of task $PREEMPT_TASK is gone" >&2
		exit 1
	EOT
	# Who fails because of another waits for a moment until that one's death is known: where the machine has just
	# stalled for longer, it may name the other one, and it is tried once more, in the next attempt.
	for try in 1 2; do
		rm -f job/go job/here.*
		pids=()
		"$@" bash trainer
		eventually test -e job/here.0 -a -e job/here.1 -a -e job/here.2 -a -e job/here.3
		touch job/go
		eventually has ERROR
		[ "$(field ERROR task)" != 3 ] || break
		all_ended "1|44|137"
		attempt=$((attempt + 1))
	done
	[ "$(field ERROR task) $(field ERROR code)" = "3 137" ]
}

@test "PH-2: the error of a task that was killed is reported, too, and the peers that fail of it are not blamed" {
	fails_together agents_of 4
	ended 3 137
	for i in 0 1 2; do ended $i 44; done
	told_by "0 3" "task 3 failed on $HOSTNAME with 137"
	attempt=$((attempt + 1))
	fails_together alone -n 4 --
	ended 0 137
	nothing_left
}

@test "PH-3, PH-5, PH-19: every task noticed again and again, also while it saves: one claim, one checkpoint" {
	count_agents 4 --steps 100000 --step-ms 5 --save-ms 300
	eventually all_begun 4 10
	until none_left; do
		for pid in "${pids[@]}"; do kill -TERM "$pid" 2>/dev/null || :; done
		sleep 0.01
	done
	all_ended 42
	saved_together 4
	[ "$(ls job/ckpt)" = "$saved_step" ]
	grep -q 'preempt-run: notice:' err.?
	run ! grep -v ':[01]$' <(grep -c 'preempt-run: notice:' err.?)
	nothing_left
}

@test "PH-4: grace 9 s, every task noticed: exactly two checkpoints" {
	options=(--grace 9s --on-event 'cat >>told')
	# So long did a save take in earlier attempts: the final round begins so much earlier, which leaves a machine that stalls
	# the time for it.
	preempt-store put run/job/MEASURE '{"save_ms": 1500}'
	# Where the machine stalls, the time may allow for less: tried again.
	for try in 1 2 3 4; do
		rm -rf job/log job/ckpt
		count_agents 4 --steps 100000 --step-ms 5 --save-ms 200 --sync
		eventually all_begun 4 10
		kill -TERM "${pids[@]}"
		all_ended "42|43"
		[ "$(count_keys SAVED/)" != 8 ] || break
		attempt=$((attempt + 1))
	done
	[ "$(count_keys SAVED/)" = 8 ]
	[ "$(find job/ckpt -mindepth 1 -maxdepth 1 | wc -l)" = 2 ]
	[ "$(field RUN_TO_CHECKPOINT kind) $(field LAST_RUN_TO_CHECKPOINT/2 kind)" = "save exit" ]
	for i in 0 1 2 3; do [ "$(field "LEFT/$i" reason)" = saved ]; done
	told_by 0 "run me again (42)"
	# What of the grace period was used, but for training, and what was not.
	tail -n 1 told | python3 -c 'import json, sys; end = json.load(sys.stdin)
assert 200 <= end["lost_ms"] and 0 < end["left_ms"] and end["lost_ms"] + end["left_ms"] < 8000, end'
	nothing_left
}

# Each row: one agent or one for each task, an option, how it is ended, which task cannot save ("9": there is none), how
# many saves are known then, the code of all, and what is said.
@test "PH-6: no task can save, or one cannot: 43, and no checkpoint is offered; asked to stop: 93; what is left is said" {
	local start option how fails saves code says
	while IFS='|' read -r start option how fails saves code says; do
		pids=()
		# shellcheck disable=SC2206 # words
		options=($option)
		"$start" 2 --steps 100000 --step-ms 5 --save-fails "$fails"
		eventually all_begun 2 10
		case $how in
		notice) kill -TERM "${pids[0]}" ;;
		stop) preempt-claim --run job --then stop --outside ;;
		esac
		all_ended "$code"
		grep -qF "$says" err.0
		for i in 0 1; do grep -qx "start 0" "job/log/$attempt.$i"; done
		[ -z "$saves" ] || [ "$(count_keys SAVED/)" = "$saves" ]
		attempt=$((attempt + 1))
	done <<-'END'
		count_agents||notice|all|0|43|stopped without a new complete checkpoint: run me again (43)
		count_agents|--exit-code 9|notice|1|1|43|stopped without a new complete checkpoint: run me again (43)
		one_agent|--per-task|notice|1||43|
		count_agents||stop|1|1|93|asked to stop, without a new complete checkpoint: do not run me again (93)
		count_agents||stop|9|2|93|is saved and complete; asked to stop: do not run me again (93)
	END
	nothing_left
}

@test "PH-17: the user's wrapper or the training script traps TERM itself: its trap still runs with --forward" {
	cat >wrapper <<-'EOT'
		trap 'echo trapped >>job/trapped' TERM
		"$COUNT" --dir job --steps 100000 --step-ms 5 &
		child=$!
		code=143
		# A trap interrupts wait, the command goes on.
		while [ $code = 143 ]; do code=0; wait $child || code=$?; done
		exit $code
	EOT
	cat >script <<-'EOT'
		trap 'echo trapped >>trapped' TERM
		. "$TRAINERS/count.sh"
	EOT
	options=(--forward)
	for trainer in wrapper script; do
		agents_of 2 bash $trainer job 100000 0.01
		eventually all_begun 2 $((attempt * 40))
		kill -TERM "${pids[0]}"
		all_ended 42
		[ "$(cat job/trapped)" = trapped ]
		saved_together 2
		rm job/trapped
		attempt=$((attempt + 1))
	done
	nothing_left
}

@test "without --run: the store of the name that is made up goes with the run, however that ends; others stay" {
	export XDG_STATE_HOME=$PWD/state
	unset PREEMPT_STORE PREEMPT_RUN
	mkdir -p state/preempt
	touch state/preempt/solo-of-another.db
	run -0 preempt-run -- true
	run -7 preempt-run -- sh -c 'ls state/preempt >seen; exit 7'
	run -137 preempt-run -- sh -c 'kill -KILL $$'
	grep -q '^solo-.*\.db$' seen
	[ "$(ls state/preempt)" = solo-of-another.db ]
	run -0 preempt-run --run named -- true
	[ -f state/preempt/named.db ]
	run -0 preempt-run --store other.db -- true
	[ -f other.db ]
}

@test "--no-heartbeat: no task beats, no task is missed" {
	quick=(--no-heartbeat --kill-after 1s)
	count_agents 2 --steps 60 --step-ms 5
	all_ended 0
	run ! grep -q '[0-9a-f]' store/db.beats/job/000001/[0-9]*
}

@test "boards are not made in a full /dev/shm, as in a read-only one" {
	[ "$(id -u)" = 0 ] && unshare --mount true 2>/dev/null || skip "needs root, to mount a /dev/shm"
	run -0 --separate-stderr env -u XDG_RUNTIME_DIR TMPDIR="$PWD" unshare --mount sh -c '
		mount -t tmpfs -o size=64k none /dev/shm && { head -c 1m /dev/zero >/dev/shm/all 2>/dev/null
		exec preempt-run --run r --store s.db -- sh -c "echo \$PREEMPT_DIR"; }'
	[[ $output = "$PWD"/preempt-board-* ]]
}
