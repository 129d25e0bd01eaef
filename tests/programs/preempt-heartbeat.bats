#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-heartbeat: beats of tasks that have joined by hand, and what happens when one is lost.
# takes: 65
# shellcheck disable=SC2030,SC2031,SC2034,SC2154 # each test is a subshell with its own variables
# shellcheck disable=SC2016 # other shells expand it

bats_require_minimum_version 1.5.0

load ../support/group

# beat I [OPTION...]: task I's heartbeat, in the background; its words in err.I. Silence of ten seconds is
# death: no task that is only slow is called dead. Where a task is to die of silence, the test says how soon.
beat() {
	local task=$1
	shift
	PREEMPT_TASK=$task PREEMPT_TASKS=$tasks PREEMPT_DIR=${boards[task]-} preempt-heartbeat --period 400ms --limit 25 \
		"$@" >"out.$task" 2>"err.$task" 3>&- &
	hearts[task]=$!
	started+=("$!")
}


hearts=()
# group_of N [OPTION...]: N tasks have joined; each beats for the process that stands for it.
group_of() {
	local i n=$1
	shift
	join "$n"
	for ((i = 0; i < n; i++)); do beat "$i" --pid "${agents[i]}" "$@"; done
	for ((i = 0; i < n; i++)); do eventually beats_of "$i"; done
}

# end CODE I...: the heartbeats of these tasks do, with this code.
end() {
	local i
	for i in "${@:2}"; do
		code_of "${hearts[i]}" || return
		[ "$code" = "$1" ] || { echo "task $i: $code, not $1"; cat "err.$i"; return 1; } >&2
	done
}

# beats_of I: how often task I has beaten, where that can be read; 1 while it has not, or has said farewell.
beats_of() {
	local token sequence hosts=${PREEMPT_STORE#etcd://}
	hosts=${hosts%%\?*}
	case $PREEMPT_STORE in
	etcd://*) read -r token sequence < <(
		ETCDCTL_API=3 etcdctl --endpoints "${hosts%%/*}" get --print-value-only \
			"${hosts#*/}/b/r/000001/$(printf %08d "$1")" | sed 's/^\(.\{16\}\)\(.\{16\}\).*/\1 \2/'
	) ;;
	*) read -r token sequence _ <"s.db.beats/r/000001/$1" ;;
	esac && [ -n "$token" ] &&
		[ "${sequence: -10}" != ffffffffff ] && echo $((0x${sequence: -10}))
}

# more_beats I N: wait until task I has beaten N times more.
more_beats() {
	needs_store_file
	local have now
	have=$(eventually beats_of "$1")
	eventually eval "now=\$(beats_of $1) && ((now >= $((have + $2))))"
}

dead() { preempt-store list run/r/000001/DEAD/ | sed 's|.*/||' | sort -n | xargs; }

dead_by() { preempt-store get "run/r/000001/DEAD/$1" | field by; }

@test "HB-2: of a task that is gone, and has never beaten, no step is known" {
	join 2
	end_agent 1
	beat 0 --pid "${agents[0]}" --limit 100
	end 44 0
	grep -q "task 1 on .* is gone; last seen .*Z, no step known" err.0
	run ! grep '"step"' <(preempt-store get run/r/000001/DEAD/1)
}

@test "a task that joined and never beats is dead after --join-timeout, and said so" {
	join 3
	for i in 0 1; do beat $i --pid "${agents[i]}" --period 200ms --join-timeout 2s --limit 30; done
	end 44 0 1
	for i in 0 1; do grep -q "task 2 on .* is dead: no heartbeat since .*Z, no step known" "err.$i"; done
	[ "$(dead)" = 2 ]
	[ "$(dead_by 2)" = silent ]
}

@test "HB-3, CS-1: silent for less than the limit: nothing; for longer: dead and named, the monitor, too; one that returns learns that, and leaves" {
	group_of 5 --limit 14
	kill -STOP "${hearts[1]}"
	more_beats 0 4
	kill -CONT "${hearts[1]}"
	more_beats 1 2
	[ -z "$(dead)" ]
	# The monitor leaves. The next one is stopped, of the one after it only the heartbeat is KILLed: its process runs on.
	kill -TERM "${hearts[0]}"
	end 0 0
	stopped "${hearts[1]}" "${hearts[2]}"
	kill -KILL "${hearts[2]}"
	end 44 3 4
	grep -q "task [12] on .* is dead: no heartbeat since" err.3
	eventually eval '[ "$(dead)" = "1 2" ]'
	[ "$(dead_by 2)" = silent ]
	kill -CONT "${hearts[1]}"
	end 44 1
	[ "$(dead)" = "1 2" ]
}

@test "HB-4, CS-2: a peer that beats as another incarnation ends the group, at once" {
	group_of 3 --limit 1000
	more_beats 0 2
	kill -KILL "${hearts[2]}"
	code_of "${hearts[2]}"
	sleep 1000 3>&- &
	started+=("$!")
	beat 2 --limit 1000 --pid "$!"
	end 44 0 1 2
	grep -q "task 2 on .* was restarted" err.0
	[ "$(dead_by 2)" = restarted ]
}

@test "CS-2: the same incarnation, guarded again: fine; HB-6: started twice it is one stream of beats, with a command it only runs that" {
	group_of 2 --limit 1000
	as 0 run -0 --separate-stderr preempt-heartbeat --pid "${agents[0]}"
	[[ $stderr = *"task 0 beats already"* ]]
	as 0 run -7 --separate-stderr preempt-heartbeat -- sh -c 'echo ran; exit 7'
	[ "$output" = ran ]
	for how in KILL TERM; do
		kill -$how "${hearts[1]}"
		code_of "${hearts[1]}"
		beat 1 --limit 1000 --pid "${agents[1]}"
		more_beats 1 2
		more_beats 0 2
	done
	[ -z "$(dead)" ]
	[ ! -s err.0 ]
}

@test "HB-6: under preempt-run another heartbeat for the same task is ignored" {
	needs_store_file
	preempt-run --run pair --task 1 --tasks 2 -- true 2>/dev/null 3>&- &
	started+=("$!")
	run -0 --separate-stderr preempt-run --run pair --task 0 --tasks 2 -- sh -c '
		until grep -q "[0-9a-f]" "$PREEMPT_STORE.beats/pair/000001/0"; do sleep 0.05; done
		exec preempt-heartbeat -- echo ran'
	[ "$output" = ran ]
	[[ $stderr = *"task 0 beats already"* ]]
}

@test "another user who takes the name of its socket switches no heartbeat off" {
	[ "$(id -u)" = 0 ] || skip "needs root, to be another user"
	join 1
	beat 0 --pid "${agents[0]}"
	eventually eval 'name=$(ss -lxp | grep "pid=${hearts[0]}," | grep -o "@preempt-heartbeat-[^ ]*")'
	kill "${hearts[0]}"
	code_of "${hearts[0]}"
	python3 -c 'import os, socket, sys, time
os.setuid(65534)
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.bind("\0" + sys.argv[1][1:]); s.listen()
print("bound", flush=True); time.sleep(600)' "$name" >bound 3>&- &
	started+=("$!")
	eventually test -s bound
	beat 0 --pid "${agents[0]}"
	more_beats 0 3
	grep -q "another user holds the socket $name" err.0
}

@test "HB-8: stopped during the wait: 0 at once, and the others think nothing of it" {
	group_of 3 --limit 10
	for i in 1 0; do
		kill -TERM "${hearts[i]}"
		end 0 $i
		run ! beats_of "$i" # it has said farewell
	done
	more_beats 2 12
	[ -z "$(dead)" ]
	run ! gone "${agents[0]}"
	# A long period is not waited for.
	beat 0 --pid "${agents[0]}" --period 1h
	eventually beats_of 0 # no farewell any more
	kill -TERM "${hearts[0]}"
	end 0 0
}

@test "HB-10: failure ends the guarded process, after the hook, which need not succeed, and leaves with 44" {
	join 3
	beat 0 --kill-after 1500ms --on-failure 'kill -0 $PREEMPT_GUARDED && echo "$PREEMPT_FAILURE" >hook' -- \
		sh -c 'trap "echo term >>ended" TERM; (trap "" TERM; exec sleep 100) & echo $! >child; while :; do sleep 0.1; done'
	beat 1 --pid "${agents[1]}"
	beat 2 --on-failure 'exit 9' -- sleep 1000
	for i in 0 1 2; do eventually beats_of "$i"; done
	eventually test -s child
	kill -KILL "${hearts[1]}" "${agents[1]}"
	end 44 0 2
	grep -q "task 1 .* is gone" hook
	grep -qx term ended
	eventually gone "$(cat child)"
}

@test "a command's own end is its exit code; its last words travel with the leave that follows, or those of the script; without a board there are none" {
	join 2
	beat 0 --pid "${agents[0]}" --on-failure 'echo "$PREEMPT_ERROR_CLASS" >class'
	# Its end is no failure here: that is for preempt-store leave to say.
	as 1 run -6 --separate-stderr preempt-heartbeat --period 400ms -- sh -c '
		echo starting >&2; echo "torch.OutOfMemoryError: CUDA" >&2; echo =====
		(sleep 0.1; echo "=====" >&2) & exit 6'
	[[ $stderr = *starting*"torch.OutOfMemoryError: CUDA"* && $output = ===== ]]
	as 1 preempt-store leave --code 6 >/dev/null
	end 44 0
	grep -q "task 1 failed on .* with 6: torch.OutOfMemoryError: CUDA" err.0
	[ "$(cat class)" = OutOfMemoryError ]
	another_store
	join 2
	beat 0 --pid "${agents[0]}"
	as 1 run -6 preempt-heartbeat --period 400ms -- sh -c 'echo "words of the command" >&2; exit 6'
	as 1 preempt-store leave --code 6 --reason "disk full on the node$(printf '%600s' .)" >/dev/null
	end 44 0
	grep -q "task 1 failed on .* with 6: disk full on the node" err.0
	run ! grep "words of the command" err.0
	PREEMPT_RUN=other PREEMPT_TASK=0 PREEMPT_TASKS=1 preempt-store join --no-board >/dev/null
	PREEMPT_RUN=other as 0 env -u PREEMPT_DIR preempt-store leave --code 6 >/dev/null
	[ -z "$(preempt-store get run/other/000001/ERROR | field line)" ]
}

@test "cut off from the store: the guarded command is ended with 44, when the others have given it up" {
	needs_store_file
	own_mounts=(unshare --mount --propagation private)
	"${own_mounts[@]}" true 2>/dev/null || skip "needs root, for mounts of its own"
	join 2
	beat 0 --pid "${agents[0]}" --limit 12
	PREEMPT_TASK=1 PREEMPT_TASKS=2 "${own_mounts[@]}" preempt-heartbeat --period 400ms --limit 12 --cut-off 3s \
		--on-failure 'echo "$PREEMPT_FAILURE" >hook' -- sh -c 'echo $$ >pid; exec sleep 1000' 2>err.1 3>&- &
	hearts[1]=$!
	started+=("$!")
	eventually beats_of 1
	eventually test -s pid
	nsenter --target "${hearts[1]}" --mount mount -t tmpfs -o mode=700 tmpfs "$PWD"
	end 44 1
	grep -q "broken: the store has taken no beat for .* s, so the other tasks must have given this one up" err.1
	grep -q "no beat for" hook
	gone "$(cat pid)"
	end 44 0
}

@test "--progress-timeout: a task that does not advance hangs, is declared so, and all leave" {
	join 2
	beat 0 --kill-after 500ms --progress-timeout 2s -- bash -c '
		. "$0"; for _ in {1..9}; do preempt_step 2; sleep 0.5; done; touch evaluated; sleep 1000' \
		"$REPO/lib/client/preempt.sh"
	beat 1 --pid "${agents[1]}"
	end 44 0 1
	grep -q "task 0 on .* is hung: no progress since .*, last step 2" err.1
	[ -e evaluated ] # asking again at the same step is progress
	[ "$(preempt-store get run/r/000001/SEAL | field by)" = hung ]
	[[ $(preempt-status --json | tr -d ' ') = *'"state":"dead"'* ]]
}

@test "it ends by itself when the attempt is over, or its task has left" {
	join 2
	for i in 0 1; do beat "$i"; done
	for i in 0 1; do eventually beats_of "$i"; done
	for i in 0 1; do
		as "$i" preempt-store leave --code 0 >/dev/null
		end 0 $i
	done
}

@test "where no more files can be watched (inotify is limited for each user) all goes on" {
	# (Leak checks do not work under strace.)
	export ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0
	unwatched=(strace -f -qq -A -o trace -e trace=inotify_init1 -e inject=inotify_init1:error=EMFILE)
	join 1
	as 0 run -3 "${unwatched[@]}" preempt-heartbeat -- sh -c 'exit 3'
	as 0 preempt-claim >/dev/null
	at 0 5
	as 0 "${unwatched[@]}" preempt-ack >agreed
	[[ $(cat agreed) = 6* ]]
	at 0 6
	rm -f trace
	as 0 "${unwatched[@]}" preempt-ack --saved --wait 3>&- &
	started+=("$!")
	until_true 60 grep -q INJECTED trace # it waits, and could not watch
	saves 0 6
	code_of "${started[-1]}"
	[ "$code" = 0 ]
	has_key SAVED/1/0
}

# finds PID: it asks the store for the attempt.
finds() { grep -qx find "/proc/$1/task/"*/comm; }

@test "TERM ends it at once, also while the store does not answer before the start: 143, and the command does not run" {
	join 1
	store_held
	PREEMPT_TASK=0 PREEMPT_TASKS=1 preempt-heartbeat -- touch ran 3>&- &
	started+=("$!")
	until_true 60 finds "$!"
	kill -TERM "$!"
	timeout 20 tail --pid="$!" -f /dev/null # one look at the store may take 30 s
	code_of "$!"
	[ "$code" = 143 ]
	[ ! -e ran ]
}

@test "wrong use is refused with the cure; HB-7: period 5 gives timeout 2, 30 gives 20" {
	run -2 preempt-heartbeat --pid 1 -- true
	run -2 preempt-heartbeat --progress-timeout 5s -- true
	[[ $output = *"--board"* ]]
	run -1 preempt-heartbeat --task 0 --tasks 1 -- true
	preempt-store put a b
	run -1 preempt-heartbeat --task 0 --tasks 1 -- true
	[[ $output = *"no attempt"* ]]
	join 1
	run -2 preempt-heartbeat --task 5 --tasks 9 -- true
	as 0 run -127 preempt-heartbeat -- no-such-command
	as 0 run -1 preempt-heartbeat --pid 2147483646
	as 0 run -2 preempt-heartbeat --board "$PWD" --progress-timeout 5s -- touch ran
	[ ! -e ran ] # refused before it, not after
	as 0 run -2 preempt-heartbeat --with $$ --pid $$
	as 0 run -2 preempt-heartbeat --with 1x -- true
	as 0 run -2 preempt-heartbeat --period 50ms -- true
	for what in "--pid ${agents[0]}" "-- true"; do
		# shellcheck disable=SC2086 # several words
		as 0 run -2 preempt-heartbeat --timeout 0 $what
		[[ $output = *"--timeout: must be greater than 0"* ]]
	done
	for row in "5 2" "30 20" "30 7 --timeout 7s"; do
		read -r period timeout option <<<"$row"
		# shellcheck disable=SC2086 # several words
		as 0 run -0 preempt-heartbeat -v --period "$period" $option -- true
		[[ $output = *"timeout $timeout s,"* ]]
	done
}

@test "HB-2, examples/heartbeat.sh: one is killed with its process, the others say who, and leave with 44; the next attempt ends well" {
	export PREEMPT_TASKS=3 HEARTBEAT_OPTIONS="--period 400ms --limit 25 --kill-after 500ms"
	local i
	for i in 0 1 2; do
		PREEMPT_TASK=$i "$REPO/examples/heartbeat.sh" sleep 1000 >"out.$i" 2>"err.$i" 3>&- &
		agents[i]=$!
	done
	for i in 0 1 2; do eventually beats_of "$i"; done
	heart=$(pgrep -P "${agents[1]}")
	kill -KILL "${agents[1]}" "$heart"
	for i in 0 2; do code_of "${agents[i]}"; [ "$code" = 44 ]; done
	grep -q "task 1 on $(hostname) is gone; last seen 2.*Z" err.0 err.2
	[ "$(dead)" = 1 ]
	[ "$(preempt-store get run/r/000001/SEAL | field by)" = death ]
	for i in 0 1 2; do
		PREEMPT_TASK=$i "$REPO/examples/heartbeat.sh" true >"out.$i" 2>"err.$i" 3>&- &
		agents[i]=$!
	done
	for i in 0 1 2; do code_of "${agents[i]}"; [ "$code" = 0 ]; done
	[ "$(preempt-store get run/r/000002/CLOSED | field state)" = completed ]
}

# ---- Serving an agent ----

@test "a guarded command ends with its heartbeat, with a process of --with, when its board says so; before it began, the store away: not started" {
	local what place expected text beats piece
	mkdir store
	export PREEMPT_STORE=$PWD/store/s.db
	# What happens, where the store is, the code, and what is said. TERM and USR1 are sent before: the process of --with
	# gets them, the command does not.
	while IFS='|' read -r what place expected text; do
		rm -f trains noticed listens told.*
		export PREEMPT_RUN=$what-$place
		join 1
		python3 -c '
import signal
for name in "TERM", "USR1":
    signal.signal(getattr(signal, "SIG" + name), lambda number, frame, name=name: open("told." + name, "w"))
open("listens", "w")
while True:
    signal.pause()' 3>&- &
		piece=$!
		started+=("$piece")
		eventually test -e listens
		# (Only what has joined waits for a store that is not there.)
		PREEMPT_LIFE=$(sed -n 's/^export PREEMPT_LIFE=//p' joined.0) PREEMPT_STORE=$PWD/$place/s.db serve 0 preempt-heartbeat --kill-after 300ms --with "$piece"$'\n'"$piece" -- bash -c '
			trap "touch noticed" TERM USR1; sleep 1000 & echo $! >child; touch trains; until [ -e enough ]; do sleep 0.05; done' 2>err
		beats=$!
		if [ "$place" = store ]; then eventually test -e trains; else eventually grep -q "trying again" err; fi
		kill -TERM "$beats"
		eventually test -e told.TERM
		kill -USR1 "$beats"
		eventually test -e told.USR1
		[ ! -e noticed ]
		case $what in
		killed) kill -KILL "$beats" ;;
		told) echo "leave 43" >"${boards[0]}/hold" ;;
		alone) kill -KILL "$piece" ;;
		deserted) kill -KILL "${agents[0]}" ;;
		back) touch enough && mv store away ;;
		esac
		code_of "$beats"
		[ "$code" = "$expected" ]
		[ -z "$text" ] || grep -q "$text" err
		if [[ $place = store || $what = back ]]; then eventually gone "$(cat child)"; else [ ! -e trains ]; fi
	done <<-'END'
		killed|store|137|
		told|store|43|told to leave with 43
		alone|store|75|process of --with has ended, .*: the command is ended
		told|away|43|told to leave with 43: the command is not started
		alone|away|75|process of --with has ended, .*: the command is not started
		deserted|away|1|process of PREEMPT_AGENT is gone: the command is not started
		back|away|0|the store answers again
	END
	# One that was gone before.
	rm -f trains
	mv away store
	PREEMPT_RUN=late join 1
	PREEMPT_RUN=late as 0 run -75 preempt-heartbeat --with "$beats" -- touch trains
	[[ $output = *"process of --with has ended, "*": the command is not started" ]]
	[ ! -e trains ]
}

@test "PREEMPT_AGENT is gone: the command is killed, and the others are told that it was seen until now, not since the last step" {
	join 2
	beat 1 --pid "${agents[1]}"
	PREEMPT_AGENT=${agents[0]} beat 0 --progress-timeout 1h -- bash -c '
		. "$0"; trap "" TERM; preempt_step 1; echo $$ >trains; while :; do sleep 0.05; done' "$REPO/lib/client/preempt.sh"
	eventually test -s trains
	eventually beats_of 0
	sleep 3
	from=$(date +%s)
	kill -KILL "${agents[0]}"
	end 44 0 1
	gone "$(cat trains)"
	seen=$(sed -n 's/.*task 0 on .*is gone; last seen \([^,; ]*Z\).*/\1/p' err.1)
	(($(date -d "$seen" +%s) >= from - 2))
}

@test "PREEMPT_AGENT is gone: with --pid of itself that is the end, 0; with another --pid the heartbeat says so, 1, and the process runs on" {
	join 2
	PREEMPT_AGENT=${agents[0]} beat 0 --pid "${agents[0]}"
	PREEMPT_AGENT=${agents[0]} beat 1 --pid "${agents[1]}"
	for i in 0 1; do eventually beats_of $i; done
	kill -KILL "${agents[0]}"
	end 0 0
	run ! grep "is gone" err.0
	end 1 1
	grep -q "process of PREEMPT_AGENT is gone: the heartbeat ends" err.1
	run ! gone "${agents[1]}"
}
