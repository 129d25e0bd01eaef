#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What a store promises, at each place where it may be: see place.bash. One place by hand:
#   tests/run tests/places/suite.bats:gluster
# A longer history: HISTORY_OPERATIONS=100000 HISTORY_KILLS=40.
# places: disk etcd gluster bindfs cephfs
# soak places: sshfs
# takes: 130
# asan: no (it is the places that are tested; all programs run with sanitizers in tests/programs)
# mounts: private

# shellcheck disable=SC2154,SC2034 # bats sets output, stderr, status
bats_require_minimum_version 1.5.0
load place

setup_file() { place_start; }
teardown_file() { place_end; }

setup() {
	programs
	unset PREEMPT_STORE
	PATH=$OUT/tests/support:$OUT/tests/history:$OUT/examples:$PATH
	place_store
}

teardown() {
	end_started
	[ ! -d "${here:-/nonexistent}.away" ] || place_mend
	# shellcheck disable=SC2086 # several numbers
	[ "$PLACE" != etcd ] || kill -CONT $place_members
}

# side N: the URL through which task, worker or process N sees the store, and the directory.
side() { (($1 % 2)) && echo "$b" || echo "$a"; }
directory() { (($1 % 2)) && echo "$there" || echo "$here"; }

# background NAME COMMAND...: its output in NAME, its number in $!
background() {
	local name=$1
	shift
	"$@" >"$name" 2>&1 3>&- &
	started+=($!)
}

# ---- The store ----

@test "the contract of a store" {
	PREEMPT_TEST_SLOW=1 PREEMPT_TEST_STORE=$all run -0 "$OUT/unit/store"
	[ "$(grep -c '^ok' <<<"$output")" -gt 30 ]
}

@test "the tests of preempt-store that are for every store" {
	[ "$PLACE" != disk ] || skip "this is programs/preempt-store.bats itself"
	run -0 env -i HOME="$HOME" PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin BIN="$BIN" OUT="$OUT" LC_ALL=C.UTF-8 \
		TMPDIR="$BATS_TEST_TMPDIR" PREEMPT_TEST_STORE="$all" bats --tap "$REPO/tests/programs/preempt-store.bats"
	[ "$(grep -c '^ok' <<<"$output")" -gt 10 ]
	(($(grep -c '^ok .* # skip' <<<"$output") < 5))
}

# disturb: while they work, the leader dies and comes back, and another member stops and goes on.
disturb() {
	local leader
	eventually test -s logs/0.0.log
	leader=$(etcd_leader)
	etcd_kill "$leader"
	etcd_restart "$leader"
	etcd_await
	leader=$(etcd_leader)
	etcd_pause "$leader"
	etcd_endpoints=${etcd_client[leader % 3 + 1]} etcd_await
	etcd_continue "$leader"
}

@test "8 processes on both sides, some killed, some stopped, while others look: what they are answered is linearizable" {
	# With a token a holder that is killed may hold the other side up for 5 s.
	local patience=240 operations=1200 kills=${HISTORY_KILLS:-8} stops=4 seed=$((RANDOM + 1)) options=() more=()
	case $PLACE in
	disk) operations=4000 ;;
	cephfs) operations=400 ;; # eight a second, with others that look
	etcd)
		# A cluster of its own, whose members are killed. It makes revisions itself: of fences, by which a client
		# makes sure that a request whose answer was lost is not carried out late.
		operations=1500 stops=0 more=(--shared)
		etcd_start 3
		a=etcd://$etcd_endpoints/history b=$a
		;;
	esac
	operations=${HISTORY_OPERATIONS:-$operations}
	! is_file || options=(--look)
	mkdir logs
	background recorded store_history record -n $((operations / 8)) -t 120000 --kill "$kills" --stop $stops \
		"${options[@]}" -s $seed logs "$a" "$b"
	[ "$PLACE" != etcd ] || disturb
	code_of "${started[0]}"
	sed "s/^/# -s $seed: /" recorded >&3
	[ "$code" = 0 ]
	[[ $(<recorded) =~ \ refused\ 0\ unknown\ ([0-9]+)\ kills\ $kills\ stops\ $stops\ failed\ 0\  ]]
	# Of a member that dies answers are lost. A process that is killed leaves one operation without an answer.
	[[ $PLACE = etcd || ${BASH_REMATCH[1]} = 0 ]]
	run -0 "$BATS_TEST_DIRNAME/../history/check" --answered $((operations / 8 * 8 - kills - BASH_REMATCH[1])) "${more[@]}" logs
	[[ $output =~ revisions\ ([0-9]+) ]]
	[ "${BASH_REMATCH[1]}" -gt $((operations / 8)) ]
	if [ "$PLACE" = etcd ]; then etcd_stop; else
		[ "$(sqlite3 "$(database_of "$a")" 'PRAGMA integrity_check')" = ok ]
		[[ $PLACE != bindfs && $PLACE != sshfs ]] || [ -d "$a.lock" ]
	fi
}

@test "what was looked at without the lock is not believed under it" {
	local i
	for i in 1 2 3; do
		place_store
		preempt-store put --store "$b" first x
		! is_file || stat "$here" "${a%\?*}" >/dev/null
		preempt-store put --store "$b" second y
		# A client could answer with the file as it was at that look.
		[ "$(preempt-store get --store "$a" second)" = y ]
		preempt-store put --store "$a" third z
		[ "$(preempt-store get --store "$b" third)" = z ]
		[ "$(preempt-store list --store "$b" "" | wc -l)" = 3 ]
	done
}

@test "the process that holds the lock is killed: both sides go on, and what it was at is not there" {
	local point
	files_only
	preempt-store put --store "$a" k v
	for point in begin database; do
		background holder hold_store "$a" "held-$point" $point
		eventually is_stopped "${started[-1]}"
		kill -KILL "${started[-1]}"
		preempt-store put --store "$b" "$point/b" v --timeout 60s
		preempt-store put --store "$a" "$point/a" v --timeout 60s
	done
	[ "$(preempt-store list --store "$b" | tr '\n' ' ')" = "begin/a begin/b database/a database/b k " ]
}

@test "both sides make the same store at the same time: every put is answered, and one wins" {
	local i n won
	for i in 1 2 3 4 5; do
		place_store
		started=()
		for n in 1 2 3 4; do
			background "put.$n" preempt-store put --store "$(side $n)" "key/$n" v --timeout 120s
			background "won.$n" preempt-store put --store "$(side $n)" one "$n" --if-absent --timeout 120s
		done
		won=0
		for n in "${!started[@]}"; do
			code_of "${started[n]}"
			[ "$code" = 0 ] || { ((n % 2)) && [ "$code" = 1 ]; }
			won=$((won + (n % 2 && code == 0)))
		done
		[ $won = 1 ]
		[ "$(preempt-store list --store "$b" "" | wc -l)" = 5 ]
	done
}

@test "a size that one side remembers from before the other one wrote is not believed" {
	[ "$PLACE" != etcd ] || skip "there is no file"
	preempt-store put k v --store "$a"
	cp "$here/s.db" kept
	: >"$here/s.db"
	stat "$there/s.db"
	cat kept >"$here/s.db"
	[ "$(preempt-store get k --store "$b")" = v ]
}

# ---- A run ----

# start_job N MS [DIRECTORY]: four agents, two on each side; so long is a step at least. They have so much $grace.
start_job() {
	local task directory
	started=()
	mkdir "boards.$1"
	for task in 0 1 2 3; do
		directory=${3:-$(directory $((task / 2)))}
		background "task.$1.$task" preempt-run -q --store "$(side $((task / 2)))" --board "boards.$1" --run demo \
			--task $task --tasks 4 --report-timeout 2m --grace "${grace:-8s}" -- \
			train --dir "$directory/job" "${training[@]}" --step-ms "$2" --done-model "model.$task"
	done
}
boards_with() { find "boards.$1" -name "$2" -size +0 | wc -l; }
all_step() { [ "$(boards_with "$1" step)" = 4 ]; }

# all_end WITH...: with one of these codes.
all_end() {
	local pid
	for pid in "${started[@]}"; do
		code_of "$pid"
		[[ " $* " = *" $code "* ]] || { echo "$pid: $code"; tail -n 20 task.*; return 1; }
	done
	started=()
}

training=(--hidden 16 --batch 32 --steps 400 --save-every 60)

@test "a job on both sides: preempted, all save one step and leave with 42; resumed, its model is the same bit for bit" {
	local step grace=0 # no deadline: an election may take as long as it takes
	mkdir "$here/job" reference
	preempt-run -q --store reference.db --run reference -n 4 -- \
		train --dir reference "${training[@]}" --step-ms 0 --done-model model
	start_job 1 100
	eventually all_step 1
	# A member that stands still, perhaps the leader, holds nothing up.
	[ "$PLACE" != etcd ] || kill -STOP "${place_members%% *}"
	kill -TERM "${started[1]}"
	all_end 42
	[ "$PLACE" != etcd ] || kill -CONT "${place_members%% *}"
	step=$(ckpt-rotate latest "$here/job/ckpt" --step)
	[ "$step" -gt 0 ]
	[ "$step" = "$(ckpt-rotate latest "$there/job/ckpt" --step)" ]
	[ "$(ckpt-rotate list "$there/job/ckpt" --json | grep -c "\"step\": $step,")" = 1 ]
	start_job 2 0
	all_end 0
	cmp model model.0
}

@test "the store is away at a notice: each task saves by itself, 43; it is back in the next start: 42" {
	mkdir job
	start_job 1 100 "$PWD"
	eventually all_step 1
	place_break
	kill -TERM "${started[@]}"
	all_end 43
	place_mend
	grace=0 start_job 2 100 "$PWD"
	eventually all_step 2
	kill -TERM "${started[2]}"
	all_end 42
}

@test "a task fails: the others leave with 44 and say why; an agent is killed: the others notice it, 44" {
	local task
	for task in 0 1; do
		background "fails.$task" preempt-run --store "$(side $task)" --run fails --task $task --tasks 2 -- \
			sh -c "[ $task = 1 ] || exec sleep 1000; exit 3"
	done
	code_of "${started[1]}"
	[ "$code" = 3 ]
	code_of "${started[0]}"
	[ "$code" = 44 ]
	grep -q 'task 1.*3' fails.0
	started=()
	for task in 0 1; do
		background "dies.$task" preempt-run --store "$(side $task)" --run dies --task $task --tasks 2 --period 300ms -- \
			sh -c "echo begun; exec sleep 1000"
	done
	eventually grep -q begun dies.0
	eventually grep -q begun dies.1
	kill -KILL "${started[1]}"
	code_of "${started[0]}"
	[ "$code" = 44 ]
	grep -q 'task 1' dies.0
}

@test "composed programs on both sides: join, a claim from outside, acknowledge, leave; a watcher is told" {
	local task
	export PREEMPT_RUN=r PREEMPT_TASKS=2
	for task in 0 1; do
		sleep 1000 3>&- &
		agents[task]=$!
		started+=($!)
		PREEMPT_TASK=$task background "joined.$task" preempt-store join --store "$(side $task)" --pid "${agents[task]}"
		joins[task]=$!
	done
	for task in 0 1; do
		code_of "${joins[task]}"
		[ "$code" = 0 ]
		boards[task]=$(sed -n 's/^export PREEMPT_DIR=//p' "joined.$task")
		printf '%020d %020d\n' 5 6 1<>"${boards[task]}/step"
	done
	preempt-claim --store "$b" --outside --reason maintenance
	for task in 0 1; do
		PREEMPT_TASK=$task PREEMPT_DIR=${boards[task]} PREEMPT_AGENT=${agents[task]} \
			background "agreed.$task" preempt-ack --store "$(side $task)" --report-timeout 60s
		acks[task]=$!
	done
	for task in 0 1; do
		code_of "${acks[task]}"
		[ "$code" = 0 ]
	done
	grep -q 6 agreed.0
	cmp agreed.0 agreed.1
	for task in 0 1; do
		printf '%020d %020d\n' 6 7 1<>"${boards[task]}/step"
		printf '%020d\n' 6 1<>"${boards[task]}/saved"
		PREEMPT_TASK=$task PREEMPT_DIR=${boards[task]} PREEMPT_AGENT=${agents[task]} \
			preempt-ack --store "$(side $task)" --saved
		PREEMPT_TASK=$task preempt-store leave --store "$(side $task)" --task $task --tasks 2
	done
	preempt-store list --store "$b" --values run/r/ | grep maintenance
}

@test "64 claims from both sides: one wins; a claim of an attempt is nothing to the next" {
	local i won=0
	export PREEMPT_RUN=r
	preempt-store join --store "$a" --task 0 --tasks 1 --pid $$ --no-board >/dev/null
	for ((i = 0; i < 64; i++)); do
		background "claim.$i" preempt-claim --store "$(side $i)" --reason "number $i" --timeout 120s
	done
	for i in "${started[@]}"; do
		code_of "$i"
		[[ $code = [01] ]]
		won=$((won + (code == 0)))
	done
	[ $won = 1 ]
	preempt-store leave --store "$b" --task 0 --tasks 1
	preempt-store join --store "$b" --task 0 --tasks 1 --pid $$ --no-board >/dev/null
	preempt-store list --store "$a" run/r/000002/ >second
	run ! grep TERMINATED_WORKER second
}

# ---- A queue, and the doctor ----

@test "a queue, workers on both sides that are killed, stopped and preempted: each command has one result" {
	local commands=300
	[ "$PLACE" != etcd ] || skip "a queue is kept on a filesystem"
	mkdir storm
	cd storm
	# Where a transaction takes long, so does each misfortune.
	[ "$PLACE" = disk ] || commands=40
	run -0 "$REPO/tests/support/storm" --store "$a" --store "$b" --commands "${STORM_COMMANDS:-$commands}"
	echo "$output" | tail -n 3 | sed 's/^/# /' >&3
	[[ $PLACE != disk || $output == *' killed '[1-9]* && $output == *'noticed '[1-9]* ]]
}

@test "the doctor finds it safe, and why" {
	preempt-store put --store "$a" k v
	run -0 preempt-store doctor --store "$a" --json
	echo "$output" >report
	[ "$(field verdict <report)" = safe ]
	[[ $PLACE != disk && $PLACE != etcd ]] || return 0
	run -0 preempt-store doctor "$here" --other "$there" --timeout 2m
	[[ $output =~ \ ([0-9]+)\ of\ ([0-9]+)\ acknowledged\ rows\ are\ there ]]
	[ "${BASH_REMATCH[1]}" = "${BASH_REMATCH[2]}" ]
	[ "$PLACE" = bindfs ] || return 0
	run -1 preempt-store doctor --store "$there/shared.db?assume=shared" --other "$here" --timeout 2m
}
