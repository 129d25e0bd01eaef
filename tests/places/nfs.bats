#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Kernel NFS: a server and two clients in virtual machines, which are booted once for the file.
# Versions 4.2, 4.1, 4.0, 3 with locks and 3 without, each with a store that has a token.
# The times that are printed are those of emulated processors, several times slower than real ones.
#
# A longer history, of some stores, by hand; two processes on each client make so many operations each:
#   HISTORY_OPERATIONS=1000 HISTORY_STORES="v42/s.db v3/s.db" BIN=$PWD/bin OUT=$PWD/build/plain \
#     bats -T tests/places/nfs.bats -f "is linearizable"
# alone
# takes: 340
# asan: no (the filesystem is tested; the same programs run with sanitizers in the other files)
# shellcheck disable=SC2016 # what the machines run is theirs to expand
# soak (takes long)

bats_require_minimum_version 1.5.0
load ../support/programs
load ../support/nfs

setup_file() {
	export OUT=${OUT:-$BATS_TEST_DIRNAME/../../build/plain}
	nfs_start "$OUT/tests/support/trainers/count" "$OUT/tests/history/store_history"
	make_stores
}
teardown_file() { nfs_stop; }
setup() { cd "$BATS_TEST_TMPDIR" || exit; }
teardown() {
	nfs_dump_logs
	end_beside
	[ -n "${BATS_TEST_COMPLETED:-}" ] || find "$BATS_TEST_TMPDIR" -maxdepth 1 -type f -exec tail -n 30 {} + >&2
}

# The stores that all tests use. They have a token.
stores=(v42/s.db v41/s.db v40/s.db v3/s.db v3nolock/s.db)
make_stores() {
	on c1 "cd /mnt; for store in ${stores[*]}; do
		preempt-store put --store \$store made c1 && [ -d \$store.lock ] || exit
	done"
}

# ---- The store ----

@test "the contract of the store holds on versions 4.2 and 3" {
	local contract='mkdir -p ${PREEMPT_TEST_STORE%/*} && store'
	beside c1 c1 "export PREEMPT_TEST_SLOW=1 PREEMPT_TEST_STORE='/mnt/v42/contract/%s.db'; $contract"
	beside c2 c2 "export PREEMPT_TEST_SLOW=1 PREEMPT_TEST_STORE='/mnt/v3/contract/%s.db'; $contract"
	join_all
	run ! grep '^not ok' c1 c2
	local client
	for client in c1 c2; do [ "1..$(grep -c '^ok' $client)" = "$(grep '^1\.\.' $client)" ]; done
}

# examine VERSION [--quick]: the doctor on both clients at once. A verdict that was not found in time on a
# slow machine is asked for again.
examine() {
	local try
	for try in 1 2 3 4; do
		beside "$1.c1" c1 "preempt-store doctor ${2-} --nodes 2 --node 0 --session $1.$try --timeout 5m /mnt/$1"
		beside "$1.c2" c2 "preempt-store doctor ${2-} --nodes 2 --node 1 --session $1.$try --timeout 5m /mnt/$1"
		wait_beside
		cat "$1.c1" "$1.c2" | tee "$1"
		grep -qx 75 "$1.c1.code" "$1.c2.code" || break
	done
	[ "$(cat "$1.c1.code") $(cat "$1.c2.code")" = '0 0' ]
}

@test "the doctor on both clients finds each version safe" {
	local version
	examine v42
	examine v3nolock
	for version in v41 v40 v3; do examine $version --quick; done
	for version in v42 v41 v40 v3 v3nolock; do
		grep -q '^verdict  *safe: lock=token, for several machines' $version
		grep -q '^lock=token  *\([0-9]*\) of \1 acknowledged rows are there' $version
		grep -q '2 processes, 2 mounts' $version
	done
}

# A client keeps for a while that there is no such file.
@test "stores that both clients make at the same time: every put is answered" {
	local client
	for client in c1 c2; do
		beside $client $client "cd /mnt; mkdir -p {v42,v3}/made
			for ((i = 1; i <= 5; i++)); do for store in {v42,v3}/made/\$i; do for n in 1 2 3; do
				preempt-store put --timeout 10m --store \$store.db $client/\$n v &
			done; done; wait; done"
	done
	join_all
	run -0 on c1 'for store in /mnt/*/made/*.db; do preempt-store list --store $store "" | wc -l; done | sort | uniq -c'
	[[ $output =~ ^\ *10\ 6$ ]]
	run ! grep . c1 c2
}

# recorded CLIENT DIRECTORY OPERATIONS STORE...: a command for the client: two processes ask each store, in a
# new directory, so many questions each, on all stores at the same time. Prints the logs, each behind a
# line "file NAME".
recorded() {
	echo "rm -rf /tmp/history; for store in ${*:4}; do
		logs=/tmp/history/\${store/\//.} new=/mnt/\${store%/*}/$2 name=\${store#*/}
		mkdir -p \$logs \$new
		store_history record -p 2 -n $3 -t 600000 -s \$RANDOM --join --first $((${1#c} * 100)) \
			\$logs \$new/\$name >\$logs.told 2>&1 || echo failed >>\$logs.told &
	done; wait; cd /tmp/history; for file in *.told */*.log; do echo file \$file; cat \$file; done"
}

# linearizable OPERATIONS STORE...: what all are answered is what one store can answer. A few questions may be
# refused: where a machine stands still for 5 s, the other one takes its lock over.
linearizable() {
	local client store logs new=history.$RANDOM
	read_clocks before
	for client in c1 c2; do beside $client $client "$(recorded $client $new "$@")"; done
	join_all
	read_clocks after
	for store in "${@:2}"; do mkdir -p "logs/${store/\//.}"; done
	for client in c1 c2; do
		awk -v client=$client '$1 == "file" { file = "logs/" $2; if (file ~ /told$/) file = file "." client; next }
			{ print >file }' $client
		add_clocks before after ${client#c} logs/*/"${client#c}"??.*.log
	done
	for store in "${@:2}"; do
		logs=logs/${store/\//.}
		cat "$logs.told".c[12]
		run ! grep -v ' failed 0 ' "$logs.told".c[12]
		# Of four processes.
		run "$BATS_TEST_DIRNAME/../history/check" --answered $((3 * $1)) "$logs"
		echo "# $store: $output" | tee /dev/fd/3
		[ "$status" = 0 ]
	done
}

@test "what processes on both clients ask a store at once, and are answered, is linearizable" {
	local in
	read -ra in <<<"${HISTORY_STORES:-v42/s.db v40/s.db v3/s.db v3nolock/s.db}"
	linearizable "${HISTORY_OPERATIONS:-10}" "${in[@]}"
}

# ---- Disturbances ----

# hold CLIENT: one process there for each store, which holds its lock and stands still.
hold() {
	on "$1" "cd /mnt; for store in ${stores[*]}; do hold_store \$store held begin </dev/null >/tmp/hold.\$((n += 1)) 2>&1 & done
		for ((i = 0; i < 3000; i++)); do
			[ \$(grep -l '^State:.T' \$(pidof hold_store | sed 's,[0-9]*,/proc/&/status,g') | wc -l) != ${#stores[@]} ] || exit 0
			sleep 0.1
		done
		grep . /tmp/hold.*; exit 1"
}

@test "kill -9 of the process that holds the lock: both clients go on" {
	hold c1
	run -75 on c1 'preempt-store put --store /mnt/v41/s.db killed no --timeout 20s'
	[[ $output == *"busy: process "*" of this machine has held it"* ]]
	on c1 'kill -9 $(pidof hold_store)'
	local client
	for client in c1 c2; do
		beside $client $client "cd /mnt; for store in ${stores[*]}; do
			preempt-store put --timeout 10m --store \$store killed/$client yes || exit; done"
	done
	join_all
	run -0 on c2 "cd /mnt; for store in ${stores[*]}; do preempt-store list --store \$store killed/; preempt-store list --store \$store held; done"
	[ "$(sort <<<"$output" | uniq -c | tr -s ' ' | paste -sd,)" = " ${#stores[@]} killed/c1, ${#stores[@]} killed/c2" ]
}

# putting NAME: on each client, over and over into each store, until /tmp/stop is there. Prints what was
# acknowledged, what was refused and why, and after each round its number.
putting() {
	local client
	for client in c1 c2; do
		beside $client $client "cd /mnt; rm -f /tmp/stop; for ((n = 1; ; n++)); do for store in ${stores[*]}; do
			if said=\$(preempt-store put --timeout 10m --store \$store $1/$client/\$n v 2>&1); then
				echo put \$store $1/$client/\$n
			else
				echo refused \$store $1/$client/\$n: \$said
			fi
			[ ! -e /tmp/stop ] || exit 0; done; echo round \$n; done"
	done
}
rounds() { grep -c '^round' "$1" || :; }
rounds_are() { [ "$(rounds c1)" -ge "$1" ] && [ "$(rounds c2)" -ge "$2" ]; }
some_put() { grep -q ^put c1 && grep -q ^put c2; }

# all_there: after a whole round of puts that began after the disturbance, what was acknowledged is there, and
# every put was answered. A put is refused only where the client was unreachable for so long that the other one took
# its lock over; it is not there, then, unless the refusal says that this is not known.
all_there() {
	local began=$SECONDS
	patience=1200 eventually rounds_are $(($(rounds c1) + 2)) $(($(rounds c2) + 2))
	echo "# two more rounds took $((SECONDS - began)) s"
	for client in c1 c2; do on $client 'touch /tmp/stop'; done
	join_all
	on c1 "cd /mnt; for store in ${stores[*]}; do preempt-store list --store \$store $1/ | sed \"s,^,put \$store ,\"; done" | sort >there
	cat c1 c2 | grep ^put | sort >acknowledged
	[ -s acknowledged ]
	[ -z "$(comm -23 acknowledged there)" ]
	grep -v '^put\|^round\|^refused .* was taken over by others: ' c1 c2 >others || :
	sed 's/^/# /' others
	[ ! -s others ]
	sed -n 's/^refused \([^:]*\): .*nothing was changed: try again$/put \1/p' c1 c2 | sort >refused
	[ -z "$(comm -12 refused there)" ]
}

# Each row: what is done to whom, and how it is mended after 2 s.
@test "the server stands still, the cable of a client is pulled, the server loses its power: every put is answered, and nothing is lost" {
	local name disturb mend
	while IFS=, read -r -u 9 name disturb mend; do
		rm -f c1 c2
		putting "$name"
		patience=600 eventually some_put
		# shellcheck disable=SC2086 # words
		rig $disturb
		sleep 2
		# shellcheck disable=SC2086 # words
		rig $mend
		all_there "$name"
		forget_beside
	done 9<<-'END'
		stopped,stop s,continue s
		cable,net c1 off,net c1 on
		power,cut s,boot s
	END
}
rig() { "$nfs_rig" "$1" "$NFS" "${@:2}"; }

@test "a client that holds the lock loses its power: the other goes on" {
	hold c1
	"$nfs_rig" cut "$NFS" c1
	on c2 "cd /mnt; for store in ${stores[*]}; do
			{ began=\$SECONDS; preempt-store put --timeout 10m --store \$store cut/c2 yes; echo \$store answered \$? after \$((SECONDS - began)) s; } &
		done; wait" >answers
	sed 's/^/# /' answers >&3
	local store
	for store in "${stores[@]}"; do
		grep -q "^$store answered 0 " answers
	done
	"$nfs_rig" boot "$NFS" c1
	run -0 on c1 "cd /mnt; for store in ${stores[*]}; do preempt-store list --store \$store cut/; preempt-store list --store \$store held; done"
	[ "$(uniq -c <<<"$output" | tr -s ' ')" = " ${#stores[@]} cut/c2" ]
}

# ---- A whole job ----

# start_job DIRECTORY STEPS: four tasks, two on each client; store and checkpoints on NFS.
start_job() {
	local n
	for n in 1 2; do
		beside c$n c$n "mkdir -p /tmp/boards && cd $1 && preempt-run -n 2 --store $1/store.db --run demo \
			--task $((n - 1)) --tasks 2 --board /tmp/boards --report-timeout 10m --join-timeout 10m --save-timeout 10m \
			--period 30s --startup 1h -- count --dir . --steps $2 --step-ms 100"
	done
}
# Every task has made a step.
all_step() { on c1 "cd $1/log && [ \$(grep -l '^begin [1-9]' 1.[0-3] | wc -l) = 4 ]" 2>/dev/null >&2; }

@test "four tasks on two clients are preempted: all save at one step, exit with 42, and resume from there" {
	local step client job
	job=$(on c1 "mktemp -d /mnt/v42/job.XXXXXX")
	start_job "$job" 1000000
	patience=600 eventually all_step "$job"
	on c2 'kill -TERM $(pidof preempt-run)'
	wait_beside
	for client in c1 c2; do
		[ "$(cat $client.code)" = 42 ] || { cat $client; return 1; }
	done
	# One checkpoint, of one step, with the part of each task.
	step=$(on c1 "ls $job/ckpt")
	[[ $step =~ ^[0-9]+$ ]]
	[ "$(on c2 "cd $job/ckpt/$step && cat 0 1 2 3" | sort -u)" = "$step" ]
	[ "$(on c2 "cd $job/log && grep -h '^save ' 1.0 1.1 1.2 1.3" | sort | uniq -c | tr -s ' ')" = " 4 save $step" ]

	forget_beside
	start_job "$job" $((step + 3))
	join_all
	[ "$(on c1 "cd $job && grep -h ^start log/2.[0-3] && cat end/[0-3]" | sort -n | uniq -c | tr -s ' ' | sort)" = \
		"$(printf ' 4 %s\n' "$((step + 3))" "start $step" | sort)" ]
}
