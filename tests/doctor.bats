#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-store doctor: what it says of filesystems that are right and wrong, what it leaves behind.
#
# mounts: private
# limit: 600

# shellcheck disable=SC2154 # bats sets stderr and stderr_lines
bats_require_minimum_version 1.5.0
load rig/mounts

setup_file() { mounts_start gluster bindfs small; }
teardown_file() { mounts_stop; }

setup() {
	PATH=${BIN:-$BATS_TEST_DIRNAME/../bin}:$PATH
	unset PREEMPT_STORE PREEMPT_RUN XDG_STATE_HOME
	dir=$BATS_TEST_TMPDIR/dir
	mkdir -m 700 "$dir"
	job=''
}

teardown() {
	[ -z "$job" ] || kill -9 "$job" 2>/dev/null || :
	[ -z "${bound:-}" ] || umount --lazy "$bound" || :
	"$BATS_TEST_DIRNAME/rig/forget-stores" "$BATS_TEST_TMPDIR"
	[ -n "${BATS_TEST_COMPLETED:-}" ] || ! [[ ${a:-} == */gluster/* ]] || mounts_dump_logs
}

# pair KIND: $a and $b are one directory of this test's own, through its two mounts.
pair() {
	local name=t$BATS_TEST_NUMBER
	[ -d "$MOUNTS/$1/a/$name" ] || mkdir -m 700 "$MOUNTS/$1/a/$name"
	a=$MOUNTS/$1/a/$name b=$MOUNTS/$1/b/$name
}

# bind DIRECTORY OPTION...: a bindfs of this test's own, $job, on $bound.
bind() {
	bound=$BATS_TEST_TMPDIR/bound
	mkdir -m 700 "$bound"
	setpriv --pdeathsig KILL bindfs -f "${@:2}" "$1" "$bound" 3>&- &
	job=$!
	until_there mountpoint -q "$bound"
}

answers() {
	local code=$1
	shift
	run -"$code" --separate-stderr "$@"
}

# value PATH...: of the JSON object in $output.
value() {
	python3 -c 'import json, sys
value = json.loads(sys.argv[1])
for name in sys.argv[2:]: value = value[int(name) if isinstance(value, list) else name]
print(json.dumps(value).strip("\""))' "$output" "$@"
}

empty() {
	[ -z "$(ls -A "$1")" ] || { ls -lA "$1"; return 1; }
}

# until_there COMMAND...: at most 20 s.
until_there() {
	local end=$((SECONDS + 20))
	until "$@"; do
		((SECONDS < end)) || { echo "never: $*"; return 1; }
		sleep 0.02
	done
}
has() { compgen -G "$1" >/dev/null; }

# As on another node: in the background, what it says in $BATS_TEST_TMPDIR/NAME.
node() {
	local name=$1
	shift
	(
		code=0
		"$@" >"$BATS_TEST_TMPDIR/$name" 2>"$BATS_TEST_TMPDIR/$name.err" || code=$?
		echo "$code" >"$BATS_TEST_TMPDIR/$name.code"
	) 3>&- &
	job=$!
}
said() { cat "$BATS_TEST_TMPDIR/$1" "$BATS_TEST_TMPDIR/$1.err"; }

# ---- What it finds ----

@test "two mounts of GlusterFS are coherent: nothing acknowledged is lost, in under 20 s" {
	pair gluster
	local began=$SECONDS
	answers 0 preempt-store doctor "$a" --other "$b" --json
	[ $((SECONDS - began)) -lt 20 ]
	[ "$(value verdict) $(value clients) $(value form)" = "safe 2 two" ]
	[ "$(value checks locks_ofd answer) $(value checks take answer)" = "yes yes" ]
	[ "$(value load lock) $(value load answer) $(value load several)" = "fcntl yes 0" ]
	[ "$(value load acknowledged)" -gt 20 ]
	[ "$(value load acknowledged)" = "$(value load present)" ]
	[ "$(value load contested)" -gt 0 ]
	[ "$(value noticed_ms)" -lt 2500 ]
	[[ $(value scope) == *'mounts of one machine'* ]]
	empty "$a"
}

@test "two mounts of bindfs are incoherent in mode fcntl, and safe in mode link, in under 20 s" {
	pair bindfs
	answers 1 preempt-store doctor --store "$a/run.db?lock=fcntl" --other "$b" --quick --json
	[ "$(value verdict) $(value clients)" = "unsafe 2" ]
	[ "$(value checks locks_ofd answer) $(value checks locks_posix answer)" = "no no" ]
	[ "$(value load)" = null ] # not tried: it is known to be wrong
	[ "$(value other_load lock) $(value other_load answer)" = "link yes" ]
	[[ $(value change 0) == *'?lock=link'* ]]
	local began=$SECONDS
	answers 0 preempt-store doctor --store "$a/run.db" --other "$b" --json
	[ $((SECONDS - began)) -lt 20 ]
	[ "$(value verdict) $(value lock)" = "safe link" ]
	[ "$(value load acknowledged)" -gt 20 ]
	[ "$(value load acknowledged)" = "$(value load present)" ]
	# A page that is read through a file kept open is never dropped there.
	[ "$(value stale_ms open)" = null ]
	empty "$a"
}

@test "a store that was made with the wrong mode for this mount is unsafe" {
	pair bindfs
	preempt-store put --store "$a/run.db?lock=fcntl&assume=local" k v
	answers 1 preempt-store doctor --store "$a/run.db" --other "$b" --quick
	[[ $output == *'recorded in the store'*'verdict         unsafe'* ]]
	[[ $output == *"doctor --fix --store"* ]]
	# The user's word for locks that do not reach is not taken.
	answers 1 preempt-store doctor --store "$a/run.db?assume=shared" --other "$b" --quick
}

@test "a local disk is safe, and people and programs are told so" {
	answers 0 preempt-store doctor "$dir"
	[ -z "$stderr" ]
	[[ ${lines[0]} =~ ^'directory '\ +"$dir on" ]]
	[[ $output == *$'\nverdict         safe: lock=fcntl, for the processes of this machine' ]]
	answers 0 preempt-store doctor --store "$dir/run.db" --quick --json
	[ "${#lines[@]}" = 1 ]
	[ "$(value verdict) $(value exit) $(value exists) $(value lock_from)" = "safe 0 false the default there" ]
	[ "$(value sides 0 locks_reach) $(value sides 0 trusted)" = "local true" ]
	[ "$(value sides 0 free_bytes)" -gt 0 ]
	empty "$dir"
}

@test "on a filesystem that is not known one machine cannot tell, and is told what can" {
	pair bindfs
	answers 75 preempt-store doctor --store "$a/run.db?lock=fcntl" --quick
	[[ $output == *'could not tell'*'--nodes 2'* ]] || [[ $output == *'unsafe'*'lock=link'* ]]
	answers 0 preempt-store doctor "$a" --quick
	[[ $output == *'safe: lock=link'*'not shown'* ]]
}

@test "a store that is there is asked, and stays as it is" {
	preempt-store put --store "$dir/run.db" k v
	local before
	before=$(sha256sum "$dir"/run.db*)
	answers 0 preempt-store doctor --store "$dir/run.db" --quick
	[ "$(sha256sum "$dir"/run.db*)" = "$before" ]
	ln -s dir/run.db "$BATS_TEST_TMPDIR/link.db"
	answers 0 preempt-store doctor --store "$BATS_TEST_TMPDIR/link.db" --quick --json
	[ "$(value exists)" = true ]
	echo rubbish >"$dir/run.db.lock"
	answers 65 preempt-store doctor --store "$dir/run.db" --quick
	[[ $output == *'could not tell'*'is not the lock file of a store'* ]]
}

# ---- Places where nothing can be tried ----

@test "a directory that is missing: 75, is it mounted?" {
	answers 75 preempt-store doctor "$dir/none" --quick
	[[ $output == *'could not tell'*'is the filesystem mounted?'* ]]
	answers 75 preempt-store doctor --store "$dir/none/run.db" --quick --json
	[ "$(value exit)" = 75 ]
	touch "$dir/file"
	answers 75 preempt-store doctor "$dir/file" --quick
	[[ $output == *'Not a directory'* ]]
}

@test "a read-only mount: 77" {
	answers 77 preempt-store doctor "$MOUNTS/small/ro" --quick
	[[ $output == *'could not tell'*'mounted read-only'* ]]
}

@test "a full filesystem: 75, and nothing stays there" {
	mkdir -m 700 "$MOUNTS/small/rw/full"
	mounts_fill "$MOUNTS/small/rw"
	answers 75 preempt-store doctor "$MOUNTS/small/rw/full" --quick
	empty "$MOUNTS/small/rw/full"
	mounts_drain "$MOUNTS/small/rw"
	[[ $output == *'could not tell'*'No space left on device'* ]]
}

@test "a directory of somebody else: 77, and nothing is made in it" {
	chown 65534 "$dir"
	answers 77 preempt-store doctor "$dir" --quick
	[[ $output == *'belongs to user 65534'* ]]
	chown 0 "$dir"
	chmod 777 "$dir"
	answers 77 preempt-store doctor "$dir" --quick
	[[ $output == *'everybody can write'* ]]
	# Where names cannot be taken away it can be tried, but a store would be refused.
	chmod 1777 "$dir"
	answers 0 preempt-store doctor "$dir" --quick
	[[ $output == *'warning'*'mkdir -m 700'* ]]
	answers 77 preempt-store doctor --store "$dir/run.db" --quick
	empty "$dir"
}

@test "two directories that are not the same are refused with 2" {
	mkdir "$dir/x" "$dir/y"
	answers 2 preempt-store doctor "$dir/x" --other "$dir/y"
	[ -z "$output" ]
	[[ $stderr == *'not the same directory'* ]]
	empty "$dir/x"
	empty "$dir/y"
}

@test "options that make no sense together are refused with 2" {
	answers 2 preempt-store doctor
	answers 2 preempt-store doctor "$dir" --other "$dir" --nodes 2
	answers 2 preempt-store doctor --store "$dir/run.db" --quick --fix
	answers 2 preempt-store doctor "$dir" --nodes 1
	answers 2 preempt-store doctor "$dir" --fix
	answers 2 preempt-store doctor --store "$dir/run.db?lock=none"
	answers 2 preempt-store doctor --store "etcd://host/x"
}

# ---- In a prolog ----

@test "--quick needs no PATH, no environment and no terminal, and less than 3 s" {
	local program began=$EPOCHREALTIME took
	program=$(command -v preempt-store)
	answers 0 env -i "$program" doctor --quick "$dir"
	took=$(awk -v from="$began" -v to="$EPOCHREALTIME" 'BEGIN { print int((to - from) * 1000) }')
	echo "$took ms"
	[ "$took" -lt 3000 ]
	[[ $output == *'left out'* ]]
}

@test "a filesystem that hangs does not hang the doctor: 75 in time" {
	bind "$dir"
	kill -STOP "$job"
	local began=$SECONDS
	answers 75 preempt-store doctor "$bound" --quick
	local took=$((SECONDS - began))
	[ "$took" -le 4 ]
	[[ $stderr$output == *'did not answer in time'* ]]
}

@test "the example of a prolog drains a node only where a store is unsafe" {
	local prolog=$BATS_TEST_DIRNAME/../examples/prolog.sh
	bind "$dir" -o subtype=bindfs # so that it is known whose locks these are
	prolog_of() {
		env -i "PREEMPT_PROLOG_PROGRAM=$(command -v preempt-store)" "PREEMPT_PROLOG_STORE=$1" "$prolog"
	}
	answers 0 prolog_of "$dir/any.db"
	answers 0 prolog_of "$dir/none/any.db"
	answers 0 prolog_of "$bound/any.db"
	answers 1 prolog_of "$bound/any.db?lock=fcntl"
	[[ $output == *'verdict         unsafe'*'use ?lock=link'* ]]
	# One that was made where its locks do reach.
	preempt-store put --store "$dir/run.db?lock=fcntl" k v
	answers 1 prolog_of "$bound/run.db"
}

# ---- Several machines ----

@test "two nodes find each other, see what is wrong, and both say the same" {
	pair bindfs
	node one preempt-store doctor --store "$a/run.db?lock=fcntl" --nodes 2 --quick --timeout 20s
	answers 1 preempt-store doctor --store "$b/run.db?lock=fcntl" --nodes 2 --quick --timeout 20s
	wait "$job"
	[ "$(cat "$BATS_TEST_TMPDIR/one.code")" = 1 ]
	# Which of the two leads, and prints all, is chance.
	local verdict
	verdict=$(sed -n '/^verdict /,$p' "$BATS_TEST_TMPDIR/one")
	[ -n "$verdict" ]
	[ "$(sed -n '/^verdict /,$p' <<<"$output")" = "$verdict" ]
	output=$(cat "$BATS_TEST_TMPDIR/one" - <<<"$output")
	[[ $output == *'DO NOT EXCLUDE'* ]]
	[ "$(grep -c '^locks ' <<<"$output")" = 1 ]
	empty "$a"
}

@test "three nodes on two mounts of GlusterFS, among them what an earlier launch left: safe" {
	pair gluster
	local meet session left=$'call.%s.0000000000000001.1\nhello.%s.0000000000000001.7'
	node one preempt-store doctor "$a" --nodes 3 --session yesterday --timeout 20s --json
	until_there has "$a/.preempt-doctor-meet-*/hello.*"
	# Files of one that was killed, here as if on another machine.
	meet=$(echo "$a"/.preempt-doctor-meet-*)
	session=$(basename "$meet"/hello.*)
	session=${session#hello.}
	session=${session%%.*}
	echo '{"host":"old"}' >"$meet/hello.$session.0000000000000001.7"
	echo '{"members":["0000000000000001","0000000000000002"],"scratch":"x"}' \
		>"$meet/call.$session.0000000000000001.1"
	preempt-store doctor "$b" --nodes 3 --session yesterday --json >"$BATS_TEST_TMPDIR/two" 3>&- &
	answers 0 preempt-store doctor "$b" --nodes 3 --session yesterday --json
	wait
	# One object in all.
	output=$(cat "$BATS_TEST_TMPDIR/one" "$BATS_TEST_TMPDIR/two" - <<<"$output")
	[ "$(value clients) $(value form) $(value verdict)" = "2 nodes safe" ]
	[ "$(value load acknowledged)" = "$(value load present)" ]
	# Of those that live nothing is left.
	# shellcheck disable=SC2059
	[ "$(ls -A "$meet")" = "$(printf "$left" "$session" "$session")" ]
}

@test "launches with different sessions do not mix" {
	local session side
	for session in red blue; do
		for side in 1 2; do
			preempt-store doctor "$dir" --nodes 2 --session $session --quick --timeout 20s --json \
				>"$BATS_TEST_TMPDIR/$session.$side" 3>&- &
		done
	done
	wait
	for session in red blue; do
		output=$(cat "$BATS_TEST_TMPDIR/$session.1" "$BATS_TEST_TMPDIR/$session.2")
		[ "$(value verdict) $(value form) $(value clients)" = "safe nodes 1" ]
	done
	empty "$dir"
}

@test "one that never comes: 75, and who came is named" {
	answers 75 preempt-store doctor "$dir" --nodes 2 --timeout 1s
	[[ $output == *'2 nodes were to come'*'in time came 1: '"$(hostname)"* ]]
	empty "$dir"
}

@test "one that is killed in the middle, whichever leads: the other says so, 75, and cleans up" {
	pair bindfs
	local side victim other
	for side in 1 2; do
		preempt-store doctor "$a" --nodes 2 --timeout 20s >"$BATS_TEST_TMPDIR/v$side" 2>&1 3>&- &
		victim=$!
		node other preempt-store doctor "$b" --nodes 2 --timeout 20s
		other=$job
		# In the middle of the measurements: so many questions were asked.
		until_there has "$a/.preempt-doctor-??????/q.1.$((5 * side))" || {
			cat "$BATS_TEST_TMPDIR/v$side"
			said other
			false
		}
		# As a machine that loses power: all of it at once.
		end_tree "$victim"
		wait "$other"
		[ "$(cat "$BATS_TEST_TMPDIR/other.code")" = 75 ]
		[[ $(said other) == *'could not tell'* ]]
		# What a leader left is removed by the one who is left, or by the next doctor.
		answers 0 preempt-store doctor "$b" --quick
		empty "$a"
	done
}

# end_tree PID: it and all below it, the leaves last so that nothing can clean up.
end_tree() {
	local pid
	local -a all=("$1") more=("$1")
	kill -STOP "$1"
	while [ "${#more[@]}" -gt 0 ]; do
		mapfile -t more < <(for pid in "${more[@]}"; do pgrep -P "$pid" || :; done)
		[ "${#more[@]}" = 0 ] || kill -STOP "${more[@]}"
		all+=("${more[@]}")
	done
	kill -KILL "${all[@]}"
}

@test "one that is told to end tells the others: 75 at once" {
	pair bindfs
	preempt-store doctor "$a" --nodes 2 --timeout 20s >"$BATS_TEST_TMPDIR/victim" 2>&1 3>&- &
	local victim=$! began
	node other preempt-store doctor "$b" --nodes 2 --timeout 20s
	until_there has "$a/.preempt-doctor-??????/q.1.*"
	began=$SECONDS
	kill -TERM "$victim"
	local code=0
	wait "$victim" || code=$?
	[ "$code" = 143 ]
	wait "$job"
	[ $((SECONDS - began)) -lt 10 ]
	[ "$(cat "$BATS_TEST_TMPDIR/other.code")" = 75 ]
	empty "$a"
}

# ---- What stays ----

@test "ended by INT and TERM it cleans up and dies of the signal" {
	local signal pid code
	for signal in INT TERM; do
		# A shell lets what it runs in the background ignore INT.
		env --default-signal=INT preempt-store doctor "$dir" 3>&- &
		pid=$! code=0
		until_there has "$dir/.preempt-doctor-??????/*"
		kill -$signal $pid
		wait $pid || code=$?
		[ "$code" = $((128 + $(kill -l $signal))) ]
		empty "$dir"
	done
}

@test "killed it leaves nothing running; what it left is removed by the next, that of others is not" {
	preempt-store doctor "$dir" 3>&- &
	local pid=$! left
	until_there has "$dir/.preempt-doctor-??????/*"
	end_tree $pid
	has "$dir/.preempt-doctor-??????"
	# Of a machine that we know nothing of, and of one that lives.
	mkdir "$dir/.preempt-doctor-others"
	echo '{"host":"far","boot":"x","namespace":1,"pid":7,"start":9}' >"$dir/.preempt-doctor-others/owner"
	answers 0 preempt-store doctor "$dir" --quick
	[ "$(ls -A "$dir")" = .preempt-doctor-others ]
	# A day later.
	touch -d '2 days ago' "$dir/.preempt-doctor-others"
	answers 0 preempt-store doctor "$dir" --quick
	empty "$dir"
	left=$(preempt-store doctor "$dir" --quick | wc -l) && [ "$left" -gt 5 ]
}

@test "killed alone, its parts clean up and end" {
	preempt-store doctor "$dir" 3>&- &
	local pid=$!
	until_there has "$dir/.preempt-doctor-??????/*"
	kill -KILL $pid
	until_there empty "$dir"
}

# ---- --fix ----

# A store of mode fcntl where locks do not reach.
make_wrong() {
	pair bindfs
	store=$a/run.db
	rm -rf "$a"/run.db*
	preempt-store put --store "$store?lock=fcntl&assume=local" k v
}

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

@test "--fix does nothing where nothing is wrong, and nothing without a store" {
	preempt-store put --store "$dir/run.db" k v
	local before
	before=$(sha256sum "$dir"/run.db*)
	answers 0 preempt-store doctor --store "$dir/run.db" --fix --json
	[ "$(value fixed)" = nothing ]
	[ "$(sha256sum "$dir"/run.db*)" = "$before" ]
}

@test "--fix refuses a store that is open or changed by others: 75, and it is as before" {
	make_wrong
	local writer
	preempt-store wait --store "$store?assume=local" never 3>&- &
	writer=$!
	until_there holds_open $writer "$store.lock"
	answers 75 preempt-store doctor --store "$store" --other "$b" --fix
	kill $writer
	[[ $output == *"not fixed: "*"in use: process $writer (preempt-store)"* ]]
	# On another machine: its open files are not seen, its writes are.
	(
		while sleep 0.3; do
			sqlite3 "$b/run.db" "UPDATE meta SET revision=revision+1" || :
		done
	) 2>/dev/null 3>&- &
	writer=$!
	answers 75 preempt-store doctor --store "$store" --fix
	kill $writer
	[[ $output == *"not fixed: "*"was changed while we held its locks"* ]]
	grep -q '^mode fcntl$' "$store.lock"
}
holds_open() { readlink "/proc/$1/fd/"* | grep -qxF "$2"; }
