#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Stores made with lock=link: processes that are killed and stopped, two mounts, containers, disks
# that are full. "Elsewhere" is another PID namespace with a /dev/shm of its own, and a bindfs mount
# whose locks and pages are its own: what another machine is to this one.
# A holder whose clock stands still: unit/lock_link.c.
# takes: 40

# shellcheck disable=SC2154 # bats sets stderr and stderr_lines
bats_require_minimum_version 1.5.0
load ../support/programs

setup() {
	mkdir -m 700 "$BATS_TEST_TMPDIR/dir"
	dir=$BATS_TEST_TMPDIR/dir db=$dir/run.db mounted=()
	programs "$db?lock=link"
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

milliseconds() {
	echo $(($(date +%s%N) / 1000000))
}

answers() {
	local code=$1
	shift
	run -"$code" --separate-stderr "$@"
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
# the lock was taken over and ten keys are acknowledged; then continue. Leaves $code and $said.
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
	[ "$(sqlite3 "$db" 'PRAGMA integrity_check')" = ok ]
}

# point, whether the holder knows that nothing was changed, what it says
@test "a holder elsewhere that is stopped anywhere in its commit, and overtaken: refused, nothing is lost, its write reaches no process" {
	local point knows says
	need_elsewhere
	mount_twice
	preempt-store put k v --store "$a?takeover=2s"
	while read -r point knows says; do
		stop_and_overtake "$point"
		[ $code = 75 ]
		[ "$said" = "$knows" ]
		grep -q "$says" err
		[ "$(cd "$dir" && echo *)" = 'run.db run.db-journal run.db.lock' ]
	done <<-'END'
		begin    known   was taken over by others.*nothing was changed
		journal  known   nothing was changed
		database unknown is not known
		write    unknown is not known
	END
}

@test "a store of a group whose lock was taken over by another member: both go on using it" {
	need_root "to be two users"
	local at=(--store "$db?lock=link&shared-group&takeover=2s")
	chmod o+x "$BATS_RUN_TMPDIR" "${BATS_TEST_TMPDIR%/*}" "$BATS_TEST_TMPDIR"
	chgrp 3000 "$dir"
	chmod 2770 "$dir"
	member() {
		setpriv --reuid "$1" --regid "300$1" --groups 3000 env HOME=/nonexistent "${@:2}"
	}
	member 1 true || skip "cannot be another user"
	member 1 test -x "$dir" || skip "another user cannot reach the tests"
	member 1 env PATH="$PATH" preempt-store put a v "${at[@]}"
	# The first dies in the lock, the second takes it over.
	member 1 sh -c "umask 0; mkdir -m 2770 '$db.lock.held'; : > '$db.lock.held/abandoned-0123456789abcdef'"
	member 2 env PATH="$PATH" preempt-store put b v "${at[@]}"
	[ "$(stat -c '%g %a' "$db")" = "3000 660" ]
	[ "$(stat -c '%g %a' "$db-journal")" = "3000 660" ]
	answers 0 member 1 env PATH="$PATH" preempt-store get b "${at[@]}"
}

@test "a holder elsewhere that is killed: after the takeover time, not before" {
	need_elsewhere
	mount_twice
	local takeover began
	for takeover in 60 2; do
		preempt-store put k v --store "${a%/*}/$takeover.db?takeover=${takeover}s"
		elsewhere hold_store "${a%/*}/$takeover.db" "killed$takeover" begin 3>&- &
		started+=($!)
		until_true 20 holder_stopped " killed$takeover begin"
		began=$(milliseconds)
		kill -KILL "$stopped"
	done
	# A put that is held up may be one after two seconds, but not after a minute.
	answers 75 preempt-store put k w --store "${b%/*}/60.db" --timeout 1s
	[[ $stderr == *"on $(hostname) holds"*'after 60 s it is taken over'* ]]
	answers 0 preempt-store put k w --store "${b%/*}/2.db" --timeout 60s
	[ $(($(milliseconds) - began)) -ge 2000 ]
	answers 1 preempt-store get killed2 --store "${b%/*}/2.db"
}

@test "a container of this host that is killed frees the lock for those in it at once" {
	need_elsewhere
	preempt-store put k v --store "$db?lock=link&takeover=60s"
	# shellcheck disable=SC2016
	answers 0 elsewhere sh -c '
		"$1" "$2" killed begin & until grep -q "^State:.T" /proc/$!/status; do :; done
		kill -KILL $!; wait $!
		began=$(date +%s%N)
		preempt-store put k w --timeout 40s && echo $((($(date +%s%N) - began) / 1000000))' - hold_store "$db"
	# From elsewhere it would be taken over after 60 s.
	echo "# $output ms" >&3
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
	preempt-store put k v
	mount -o remount,ro "$dir"
	answers 77 preempt-store get k
	[[ $stderr == *'lock=link'*'use a writable mount'* ]]
	answers 77 preempt-store put k w
	[[ $stderr == *'ead-only'* ]]
}

@test "what is not ours in the place of the held directory: 65, named, left as it is" {
	preempt-store put k v --store "$db?lock=link&takeover=2s"
	touch "$db.lock.held"
	answers 65 preempt-store get k --store "$db" --timeout 60s
	[[ $stderr == *"$db.lock.held is not a directory"*'delete it'* ]]
	rm "$db.lock.held"
	mkdir "$BATS_TEST_TMPDIR/else"
	ln -s "$BATS_TEST_TMPDIR/else" "$db.lock.held"
	answers 65 preempt-store put k w --store "$db" --timeout 60s
	[ -L "$db.lock.held" ]
	rm "$db.lock.held"
	mkdir -p "$db.lock.held/below"
	answers 65 preempt-store put k w --store "$db" --timeout 60s
	[[ $stderr == *"$db.lock.held"*'"below"'*'delete it'* ]]
	rmdir "$db.lock.held/below"
	answers 0 preempt-store put k w --store "$db"
	[ "$(cd "$dir" && echo *)" = 'run.db run.db-journal run.db.lock' ]
}

@test "names that are not ours in the held directory: 75, named, then taken over" {
	preempt-store put k v --store "$db?lock=link"
	mkdir "$db.lock.held"
	touch "$db.lock.held/.nfs0000001"
	answers 75 preempt-store get k --store "$db" --timeout 300ms
	[[ $stderr == *'".nfs0000001", which is not a lock of this version'*'after 5 s it is removed'* ]]
	local began new=$dir/new.db
	preempt-store put k v --store "$new?lock=link&takeover=2s"
	began=$(milliseconds)
	mkdir "$new.lock.held"
	touch "$new.lock.held/.nfs0000001"
	answers 0 preempt-store get k --store "$new" --timeout 60s
	[ $(($(milliseconds) - began)) -ge 2000 ]
}
