#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-store doctor between two mounts and between nodes: GlusterFS and bindfs.
#
# takes: 60
# mounts: private
# limit: 1200
# asan: no (a minute, mostly of waiting; doctor.bats has it)

# shellcheck disable=SC2154 # bats and doctor.bash set them
bats_require_minimum_version 1.5.0
load rig/mounts
load doctor/doctor

setup_file() { mounts_start gluster bindfs; }
teardown_file() { mounts_stop; }
setup() { doctor_setup; }
teardown() { doctor_teardown; }

# ---- What it finds ----

notices() {
	answers 0 preempt-store doctor "$a" --other "$b" --json
	[ "$(value noticed_ms)" != null ]
}

@test "two mounts of GlusterFS are coherent: nothing acknowledged is lost, soon" {
	pair gluster
	# Where the machine has no time for it for two seconds nothing is noticed: then once more.
	until_there notices
	[ "$(value verdict) $(value clients) $(value form)" = "safe 2 two" ]
	[ "$(value checks locks_ofd answer) $(value checks take answer)" = "yes yes" ]
	[ "$(value load lock) $(value load answer) $(value load several)" = "fcntl yes 0" ]
	[ "$(value load acknowledged)" -ge 2 ] # a busy machine does no more
	[ "$(value load acknowledged)" = "$(value load present)" ]
	[ "$(value load claims)" -gt 0 ]
	[[ $(value scope) == *'mounts of one machine'* ]]
	empty "$a"
}

@test "two mounts of bindfs are incoherent in mode fcntl, and safe in mode link, soon" {
	pair bindfs
	answers 1 preempt-store doctor --store "$a/run.db?lock=fcntl" --other "$b" --quick --timeout 60s --json
	[ "$(value verdict) $(value clients)" = "unsafe 2" ]
	[ "$(value checks locks_ofd answer) $(value checks locks_posix answer)" = "no no" ]
	[ "$(value load)" = null ] # not tried: it is known to be wrong
	[ "$(value other_load lock) $(value other_load answer)" = "link yes" ]
	[[ $(value change 0) == *'?lock=link'* ]]
	answers 0 preempt-store doctor --store "$a/run.db" --other "$b" --json
	[ "$(value verdict) $(value lock)" = "safe link" ]
	[ "$(value load acknowledged)" -ge 2 ] # a busy machine does no more
	[ "$(value load acknowledged)" = "$(value load present)" ]
	# A page that is read through a file kept open is never dropped there.
	[ "$(value stale_ms open)" = null ]
	empty "$a"
}

@test "a store that was made with the wrong mode for this mount is unsafe" {
	pair bindfs
	preempt-store put --store "$a/run.db?lock=fcntl&assume=local" k v
	answers 1 preempt-store doctor --store "$a/run.db" --other "$b" --quick --timeout 60s
	[[ $output == *'recorded in the store'*'verdict         unsafe'* ]]
	[[ $output == *"doctor --fix --store"* ]]
	# The user's word for locks that do not reach is not taken.
	answers 1 preempt-store doctor --store "$a/run.db?assume=shared" --other "$b" --quick --timeout 60s
}

@test "on a filesystem that is not known one machine cannot tell, and is told what can" {
	pair bindfs
	answers 75 preempt-store doctor --store "$a/run.db?lock=fcntl" --quick --timeout 60s
	[[ $output == *'could not tell'*'--nodes 2'* ]] || [[ $output == *'unsafe'*'lock=link'* ]]
	answers 0 preempt-store doctor "$a" --quick --timeout 60s
	[[ $output == *'safe: lock=link'*'not shown'* ]]
}

# ---- Several machines ----

@test "two nodes find each other, see what is wrong, and both say the same" {
	pair bindfs
	node one preempt-store doctor --store "$a/run.db?lock=fcntl" --nodes 2 --quick --timeout 100s
	answers 1 preempt-store doctor --store "$b/run.db?lock=fcntl" --nodes 2 --quick --timeout 100s
	wait "$job"
	[ "$(cat "$BATS_TEST_TMPDIR/one.code")" = 1 ]
	# Which of the two leads, and prints all, is chance.
	local verdict
	verdict=$(sed -n '/^verdict /,$p' "$BATS_TEST_TMPDIR/one")
	[ -n "$verdict" ]
	[ "$(sed -n '/^verdict /,$p' <<<"$output")" = "$verdict" ]
	output=$(cat "$BATS_TEST_TMPDIR/one" - <<<"$output")
	[[ $output == *'DO NOT EXCLUDE'*" on $(uname -n) got it while "*" on $(uname -n) held it"* ]]
	[ "$(grep -c '^locks ' <<<"$output")" = 1 ]
	empty "$a"
}

says_hello() {
	session=$(compgen -G "$a/.preempt-doctor-meet-*/hello.*" | sed -n '1s|.*/hello\.\([0-9a-f]*\)\..*|\1|p')
	[ -n "$session" ]
}

@test "three nodes on two mounts of GlusterFS, among them what an earlier launch left: safe" {
	pair gluster
	local meet session left=$'call.%s.0000000000000001.1\nhello.%s.0000000000000001.7'
	node one preempt-store doctor "$a" --nodes 3 --session yesterday --timeout 100s --json
	# It is renamed all the time, so that a look may find none of them, or two.
	until_there says_hello
	# Files of one that was killed, here as if on another machine.
	meet=$(echo "$a"/.preempt-doctor-meet-*)
	echo '{"host":"old"}' >"$meet/hello.$session.0000000000000001.7"
	echo '{"members":["0000000000000001","0000000000000002"],"scratch":"x"}' \
		>"$meet/call.$session.0000000000000001.1"
	preempt-store doctor "$b" --nodes 3 --session yesterday --timeout 100s --json >"$BATS_TEST_TMPDIR/two" 3>&- &
	answers 0 preempt-store doctor "$b" --nodes 3 --session yesterday --timeout 100s --json
	wait
	# One object in all.
	output=$(cat "$BATS_TEST_TMPDIR/one" "$BATS_TEST_TMPDIR/two" - <<<"$output")
	[ "$(value clients) $(value form) $(value verdict)" = "2 nodes safe" ]
	[ "$(value load acknowledged)" = "$(value load present)" ]
	# Of those that live nothing is left.
	# shellcheck disable=SC2059
	[ "$(ls -A "$meet")" = "$(printf "$left" "$session" "$session")" ]
}

# One, $pid, and the other, $job.
two_nodes() {
	preempt-store doctor "$a" --nodes 2 --timeout 100s >"$BATS_TEST_TMPDIR/victim" 2>&1 3>&- &
	pid=$!
	node other preempt-store doctor "$b" --nodes 2 --timeout 100s
}
# TERM waits for it.
is_told() {
	local mask
	mask=$(sed -n 's/^ShdPnd:[[:space:]]*//p' "/proc/$1/status")
	[ $((0x${mask:-0} >> 14 & 1)) = 1 ]
}

@test "one that is killed in the middle, whichever leads: the other says so, 75, and cleans up" {
	pair bindfs
	local side pid
	for side in 1 2; do
		# In the middle of the measurements: so many questions were asked.
		in_the_middle "$a/.preempt-doctor-??????/q.1.$((5 * side))" two_nodes
		# As a machine that loses power: all of it at once.
		end_tree
		wait "$job"
		[ "$(cat "$BATS_TEST_TMPDIR/other.code")" = 75 ]
		# On one machine that is seen, not waited for ("did not answer in time").
		[[ $(said other) == *'could not tell'*'ended before it was done'* ]]
		# What a leader left is removed by the one who is left, or by the next doctor.
		until_there swept "$b" ''
		empty "$a"
	done
}

@test "one that is told to end tells the others: 75 at once" {
	pair bindfs
	local pid code try
	for ((try = 0; try < 5; try++)); do
		in_the_middle "$a/.preempt-doctor-??????/q.1.2" two_nodes
		# The one who was called first, then those who work for him: they know before they go on.
		kill -TERM "$pid"
		kill -CONT "$pid"
		until_there is_told "$(pgrep -P "$pid")"
		continue_tree
		code=0
		wait "$pid" || code=$?
		[ "$code" = 143 ]
		wait "$job"
		[ "$(cat "$BATS_TEST_TMPDIR/other.code")" = 75 ]
		# Whoever ends waits for a few seconds until the others have heard it; the machine may have
		# stood still for as long.
		[[ $(said other) == *'it was stopped by a signal'* ]] && empty "$a" && break
		[[ $(said other) == *'it was stopped by a signal'* || $(said other) == *'ended before it was done'* ]]
		until_there swept "$b" ''
	done
	((try < 5))
}

# ---- --fix ----

@test "--fix records the safe mode, and the store is used with it" {
	make_wrong
	answers 2 preempt-store get --store "$store" k
	answers 0 preempt-store doctor --store "$store" --other "$b" --fix --json
	[[ $(value fixed) == *'recorded lock=link'* ]]
	[ "$(value lock) $(value verdict) $(value load answer)" = "link safe yes" ]
	answers 0 preempt-store get --store "$b/run.db" k
	[ "$output" = v ]
	grep -q '^mode link$' "$store.lock"
	[ "$(ls -A "$a")" = $'run.db\nrun.db-journal\nrun.db.lock' ]
}

@test "--fix refuses a store that is open or changed by others: 75, and it is as before" {
	make_wrong
	local writer
	preempt-store wait --store "$store?assume=local" never 3>&- &
	writer=$! job=$!
	until_there holds_open $writer "$store.lock"
	answers 75 preempt-store doctor --store "$store" --other "$b" --fix
	kill $writer
	wait $writer || :
	[[ $output == *"not fixed: "*"in use: process $writer (preempt-store)"* ]]
	# On another machine: its open files are not seen, its writes are.
	(
		while sleep 0.3; do
			sqlite3 "$b/run.db" "UPDATE meta SET revision=revision+1" || :
		done
	) 2>/dev/null 3>&- &
	writer=$! job=$!
	answers 75 preempt-store doctor --store "$store" --fix
	kill $writer
	[[ $output == *"not fixed: "*"was changed while we held its locks"* ]]
	grep -q '^mode fcntl$' "$store.lock"
}
