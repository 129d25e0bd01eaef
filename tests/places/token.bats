#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Stores with a token (lib/store/lock/token.h): processes that are killed and stopped, two mounts, containers, disks
# that are full. "Elsewhere" is another PID namespace with a /dev/shm of its own, and a bindfs mount
# whose locks and pages are its own: what another machine is to this one.
# takes: 60
# asan: no (it preloads a library)

# shellcheck disable=SC2154 # bats sets stderr and stderr_lines
bats_require_minimum_version 1.5.0
load ../support/programs

setup() {
	mkdir -m 700 "$BATS_TEST_TMPDIR/dir"
	dir=$BATS_TEST_TMPDIR/dir db=$dir/run.db mounted=()
	programs "$db"
	"$REPO/tests/support/token-store" "$db"
	chmod 700 .
	mkdir -m 700 a b
	PATH=$OUT/tests/support:$PATH
}

teardown() {
	local mount
	end_started
	# Those elsewhere are children of these.
	pkill -KILL -f "hold_store $BATS_TEST_TMPDIR/" || :
	"$REPO/tests/support/forget-stores" "$BATS_TEST_TMPDIR"
	for mount in "${mounted[@]}"; do
		umount "$mount" || umount -l "$mount" || :
	done
}

# The only file that the database can be in; and the token.
database() { find "$dir" -name run.db -o -name 'run.db.????????????????' ! -name '*lock.*'; }
token() { (cd "$db.lock" && echo *); }

milliseconds() {
	echo $(($(date +%s%N) / 1000000))
}

need_root() {
	[ "$(id -u)" = 0 ] || skip "needs root $1"
}

# The directory through two mounts, a and b, that know nothing of each other.
mount_twice() {
	need_root "to mount bindfs"
	command -v bindfs > /dev/null || skip "needs bindfs"
	[ -e /dev/fuse ] || skip "needs FUSE"
	local mount
	for mount in a b; do
		bindfs "$dir" "$PWD/$mount" 3>&- || skip "cannot mount bindfs"
		mounted+=("$PWD/$mount")
	done
	a=$PWD/a/run.db
	b=$PWD/b/run.db
}

# elsewhere COMMAND...: as if on another machine. Not as its first process, which cannot stop itself.
elsewhere() {
	# shellcheck disable=SC2016
	unshare --pid --fork --kill-child --mount --mount-proc \
		sh -c 'mount -t tmpfs none /dev/shm || exit; "$@"; exit $?' - "$@"
}

need_elsewhere() {
	need_root "to be in another PID namespace"
	elsewhere true 2>/dev/null || skip "cannot unshare a PID namespace"
}

# The only process of this test whose arguments end so is stopped. Its number is in $stopped.
holder_stopped() {
	stopped=$(ps -e -o pid=,stat=,args= | awk -v end="$1" -v ours="hold_store $BATS_TEST_TMPDIR/" \
		'$2 ~ /^T/ && index($0, ours) && substr($0, length($0) - length(end) + 1) == end { print $1 }')
	[ -n "$stopped" ]
}

# Begin to put KEY elsewhere through mount a, and stop on the way; then others work through b until
# the token was taken over and ten keys are acknowledged; then continue. Leaves $code and $said.
stop_and_overtake() {
	local point=$1 i holder
	elsewhere hold_store "$a" "lost-$point" "$point" >out 2>err 3>&- &
	started+=($!)
	holder=$!
	until_true 20 holder_stopped " lost-$point $point"
	preempt-store put "first-$point" v --store "$b" --timeout 60s
	for i in 1 2 3 4 5 6 7 8 9; do
		preempt-store put "row-$point/$i" v --store "$b"
	done
	kill -CONT "$stopped"
	code=0
	wait "$holder" || code=$?
	said=$(<out)
	[ "$(preempt-store list "row-$point/" --store "$b" | wc -l)" = 9 ]
	preempt-store get "first-$point" --store "$b"
	answers 1 preempt-store get "lost-$point" --store "$b"
	[ "$(sqlite3 "$(database)" 'PRAGMA integrity_check')" = ok ]
}

# point, whether the holder knows that nothing was changed, what it says
@test "a holder elsewhere that is stopped anywhere in its commit, and overtaken: refused, nothing is lost, its write reaches no process" {
	local point knows says
	need_elsewhere
	mount_twice
	preempt-store put k v --store "$a"
	while read -r point knows says; do
		stop_and_overtake "$point"
		[ $code = 75 ]
		[ "$said" = "$knows" ]
		grep -q "$says" err
		[ "$(find "$dir" -mindepth 1 -maxdepth 1 ! -name '*-journal' | wc -l)" = 2 ]
		[[ $(token) = f-* && $(database) = "$db".????????????????* ]]
	done <<-'END'
		begin    known   was taken over by others.*nothing was changed
		journal  unknown is not known
		database unknown is not known
		write    unknown is not known
	END
}

@test "a store of a group whose token was taken over by another member: both go on using it" {
	need_root "to be two users"
	local at=(--store "$db?shared-group")
	chmod o+x "$BATS_RUN_TMPDIR" "${BATS_TEST_TMPDIR%/*}" "$BATS_TEST_TMPDIR"
	rm -r "$db.lock"
	chgrp 3000 "$dir"
	chmod 2770 "$dir"
	"$REPO/tests/support/token-store" "$db"
	chmod 2770 "$db.lock"
	chmod 660 "$db.lock"/*
	member() {
		setpriv --reuid "$1" --regid "300$1" --groups 3000 env HOME=/nonexistent PATH="$PATH" "${@:2}"
	}
	member 1 true || skip "cannot be another user"
	member 1 test -x "$dir" || skip "another user cannot reach the tests"
	member 1 preempt-store put a v "${at[@]}"
	# The first dies with the token, the second takes it over.
	mv "$db.lock/$(token)" "$db.lock/h$(token | cut -c 2-)"
	member 2 preempt-store put b v "${at[@]}" --timeout 60s
	[ "$(stat -c '%g %a' "$(database)")" = "3000 660" ]
	[ "$(stat -c '%g %a' "$(database)-journal")" = "3000 660" ]
	member 1 preempt-store get b "${at[@]}"
}

@test "a holder elsewhere that is killed: after the time of observation, not before, and one that works is not taken over" {
	local began
	need_elsewhere
	mount_twice
	preempt-store put k v --store "$a"
	elsewhere hold_store "$a" killed begin 3>&- &
	started+=($!)
	until_true 20 holder_stopped " killed begin"
	began=$(milliseconds)
	kill -KILL "$stopped"
	answers 75 preempt-store put k w --store "$b" --timeout 1s
	[[ $stderr == *"on $(hostname) holds"*'after 5 s '*'taken over'* ]]
	answers 0 preempt-store put k w --store "$b" --timeout 60s
	[ $(($(milliseconds) - began)) -ge 5000 ]
	answers 1 preempt-store get killed --store "$b"
	[ ! -e "$db" ]
}

@test "a container of this host that is killed frees the lock for those in it at once" {
	need_elsewhere
	preempt-store put k v
	# shellcheck disable=SC2016
	answers 0 elsewhere sh -c '
		"$1" "$2" killed begin & until grep -q "^State:.T" /proc/$!/status; do :; done
		kill -KILL $!; wait $!
		preempt-store put k w --timeout 40s' - hold_store "$db"
	# From elsewhere it would be taken over after 5 s, and the database be copied.
	[ "$(database)" = "$db" ]
}

@test "who waits names the holder, also one on this machine that is stopped" {
	preempt-store put k v
	hold_store "$db" held begin 3>&- &
	started+=($!)
	until_true 20 holder_stopped " held begin"
	answers 75 preempt-store put k w --timeout 300ms
	[[ $stderr == *"process $stopped of this machine has held it"* ]]
	kill -CONT "$stopped"
	wait "${started[0]}"
	answers 0 preempt-store get held
}

@test "on a read-only mount it is refused with 77, even for reading, and says why" {
	need_root "to mount a tmpfs"
	mount -t tmpfs -o mode=700 none "$dir" || skip "needs to mount a tmpfs"
	mounted+=("$dir")
	"$REPO/tests/support/token-store" "$db"
	preempt-store put k v
	mount -o remount,ro "$dir"
	answers 77 preempt-store get k
	[[ $stderr == *'even reading it needs write permission'* ]]
	answers 77 preempt-store put k w
	[[ $stderr == *'ead-only'* ]]
}

@test "what is lost of a token: its file, its directory, the database" {
	local file
	rm -r "$db.lock"
	mount_twice
	preempt-store put k v --store "$a"
	# Beside exactly one database it is made again, and the database copied as after a takeover.
	rm "$db.lock"/*
	answers 0 preempt-store get k --store "$a" --timeout 60s
	file=$(database)
	[ "$file" != "$db" ]
	rm -r "$db.lock"
	answers 0 preempt-store get k --store "$b" --timeout 60s
	[[ $(database) != "$file" && $(token) = f-* ]]
	# Of two, it is not known which it was.
	rm -r "$db.lock"
	cp -a "$(database)" "$db"
	answers 65 preempt-store get k --store "$a"
	[[ $stderr == *'several files that could be the database'* ]]
	[ ! -e "$db.lock" ]
	rm "$db"
	answers 0 preempt-store get k --store "$a" --timeout 60s
	# A store whose database was deleted is not a new one.
	rm "$(database)"
	# Until the mount has forgotten its name, it cannot be asked.
	is_told() { ! preempt-store put k w --store "$a" 2>told && grep -q 'was deleted' told; }
	eventually is_told
}

@test "several tokens, or none and something else: nobody takes one, and it says so" {
	local name
	rm -r "$db.lock"
	mount_twice
	preempt-store put k v --store "$a"
	name=$(token)
	cp -p "$db.lock/$name" "$db.lock/f-1111111111111111${name:18}"
	answers 75 preempt-store get k --store "$b" --timeout 1s
	[[ $stderr == *'several tokens'* ]]
	rm "$db.lock"/f-1111111111111111*
	eventually preempt-store get k --store "$b" --timeout 1s
	rm "$db.lock/"*
	touch "$db.lock/probe-123456"
	answers 65 timeout 60 preempt-store get k --store "$b"
	[[ $stderr == *'has no token'* ]]
}

@test "a store that a link names is found after a takeover, too" {
	ln -s "$db" link.db
	preempt-store put k v
	mv "$db.lock/$(token)" "$db.lock/m$(token | cut -c 2-)"
	answers 0 preempt-store get k --timeout 60s
	[ ! -e "$db" ]
	answers 0 preempt-store get k --store link.db
	[ "$output" = v ]
}

@test "a takeover on a full disk: 75, nothing is left behind, and it goes on when there is space" {
	need_root "to mount a small tmpfs"
	mount -t tmpfs -o mode=700,size=512k none "$dir" || skip "needs to mount a tmpfs"
	mounted+=("$dir")
	"$REPO/tests/support/token-store" "$db"
	preempt-store put k "$(printf '%060000d' 1)"
	mv "$db.lock/$(token)" "$db.lock/m$(token | cut -c 2-)"
	head -c 1M /dev/zero >"$dir/filler" 2>/dev/null || :
	answers 75 preempt-store get k
	[[ $stderr == *'No space left on device'*'free space'* ]]
	[ "$(database)" = "$db" ]
	rm "$dir/filler"
	answers 0 preempt-store get k
	[ "$(database)" != "$db" ]
}

# What a server that loses answers does to a client: the rename was made, and it says that the name is not there.
@test "the answer that a token was taken or given back gets lost: it is looked for, and found" {
	for key in 1 2; do
		answers 0 env LD_PRELOAD="$OUT/tests/crash/without.so" WITHOUT=answer preempt-store put "$key" v
		[[ $(token) = f-* ]]
	done
	[ "$(preempt-store list | wc -l)" = 2 ]
}
