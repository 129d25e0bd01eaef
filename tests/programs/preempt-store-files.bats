#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-store on files: who may use them, what is refused, what full disks do.

# shellcheck disable=SC2154 # bats sets stderr and stderr_lines
bats_require_minimum_version 1.5.0
load ../support/programs

setup() {
	PATH=${BIN:-$BATS_TEST_DIRNAME/../../bin}:$PATH
	chmod 700 "$BATS_TEST_TMPDIR"
	dir=$BATS_TEST_TMPDIR/dir
	mkdir -m 700 "$dir"
	db=$dir/run.db
	export PREEMPT_STORE=$db
	unset PREEMPT_RUN XDG_STATE_HOME
	mounted=
}

teardown() {
	"$BATS_TEST_DIRNAME/../support/forget-stores" "$BATS_TEST_TMPDIR"
	[ -z "$mounted" ] || umount "$mounted"
	# Another test may be using it at this moment.
	[ -z "${remove:-}" ] || rm -rf "$remove" 2>/dev/null || :
	[ -z "${holder:-}" ] || kill -9 "$holder" 2>/dev/null || :
}

answers() {
	local code=$1
	shift
	run -"$code" --separate-stderr "$@"
}

# Refused with this code: one message, nothing on stdout, and the files are as before.
refused() {
	local code=$1 before
	shift
	before=$(cd "$dir" && find . -type f | sort | xargs -r sha256sum)
	answers "$code" "$@"
	[ -z "$output" ]
	[ "${#stderr_lines[@]}" = 1 ]
	[ "$(cd "$dir" && find . -type f | sort | xargs -r sha256sum)" = "$before" ]
}

# The store is to be made again.
start_over() {
	"$BATS_TEST_DIRNAME/../support/forget-stores" "$dir"
	rm -rf "$db"*
}

# It waits for a change of the database: inotify watches, and it sleeps.
is_waiting() {
	grep -qs '^inotify' "/proc/$1/fdinfo/"* && grep -q '^State:.S' "/proc/$1/status"
}

is_stopped() {
	grep -q '^State:[[:space:]]*T' "/proc/$1/status"
}

need_root() {
	[ "$(id -u)" = 0 ] || skip "needs root $1"
}

@test "on a shared filesystem, where no thread is to be had: the lock is asked for all the same" {
	need_root "to be another user, for whom ulimit -u counts"
	[ -z "${ASAN_OPTIONS:-}" ] || skip "the sanitizer needs a thread, too"
	chmod o+x "$BATS_RUN_TMPDIR" "${BATS_TEST_TMPDIR%/*}" "$BATS_TEST_TMPDIR"
	chown 54321 "$dir"
	other() {
		setpriv --reuid 54321 --regid 54321 --clear-groups env HOME=/nonexistent PATH="$PATH" "$@"
	}
	other test -x "$dir" || skip "another user cannot reach the tests"
	other preempt-store put k v --store "$db?assume=shared"
	answers 0 prlimit --nproc=1:1 setpriv --reuid 54321 --regid 54321 --clear-groups \
		env HOME=/nonexistent preempt-store get k --store "$db?assume=shared" --timeout 2s
}

@test "the files are made 0600, and 0660 with shared-group, whatever the umask" {
	umask 0
	preempt-store put k v
	[ "$(stat -c %a "$db" "$db.lock" "$db-journal" | sort -u)" = 600 ]
	preempt-store put --store "$dir/group.db?shared-group" k v
	umask 077
	preempt-store put --store "$dir/group2.db?shared-group" k v
	[ "$(stat -c %a "$dir"/group*.db* | sort -u)" = 660 ]
}

@test "nothing is left beside the store but its own four names" {
	preempt-store put k v
	[ "$(ls "$dir")" = $'run.db\nrun.db-journal\nrun.db.lock' ]
}

@test "a store whose database or directory others can write is refused with 77" {
	preempt-store put k v
	chmod o+w "$db"
	refused 77 preempt-store get k
	[[ $stderr == *'writable by everyone'*'chmod o-w'* ]]
	chmod 660 "$db"
	refused 77 preempt-store get k
	[[ $stderr == *'?shared-group'* ]]
	answers 0 preempt-store get k --store "$db?shared-group"
	chmod 600 "$db"
	chmod 777 "$dir"
	refused 77 preempt-store get k
	refused 77 preempt-store get k --store "$db?shared-group"
	chmod 1777 "$dir"
	refused 77 preempt-store get k
	[[ $stderr == *'mkdir -m 700'* ]]
	chmod 770 "$dir"
	refused 77 preempt-store get k
	answers 0 preempt-store get k --store "$db?shared-group"
	chmod 700 "$dir"
	chmod 666 "$db-journal"
	refused 77 preempt-store get k
	chmod 600 "$db-journal"
	chmod 622 "$db.lock"
	refused 77 preempt-store get k
}

@test "a store of another user is refused with 77" {
	need_root "to be two users"
	cp "$(command -v preempt-store)" "$BATS_TEST_TMPDIR"
	chmod 755 "$BATS_RUN_TMPDIR" "$BATS_TEST_TMPDIR" "$BATS_TEST_TMPDIR/.." "$dir"
	local as_nobody="setpriv --reuid 65534 --regid 65534 --clear-groups"
	local as_daemon="setpriv --reuid 1 --regid 1 --clear-groups"
	[ -e /dev/shm/preempt-65534 ] || remove=/dev/shm/preempt-65534
	chown 65534:65534 "$dir"
	$as_nobody "$BATS_TEST_TMPDIR/preempt-store" put k v --store "$db"
	refused 77 preempt-store get k
	[[ $stderr == *'belongs to user 65534 and we are user 0'* ]]
	# shellcheck disable=SC2086
	refused 77 $as_daemon "$BATS_TEST_TMPDIR/preempt-store" get k --store "$db"
	# A directory of root is trusted, a database in it of another user is not.
	chown 0:0 "$dir"
	refused 77 preempt-store get k
	# shellcheck disable=SC2086
	answers 0 $as_nobody "$BATS_TEST_TMPDIR/preempt-store" get k --store "$db"
}

@test "a journal that another user put there is refused with 77" {
	need_root "to be two users"
	preempt-store put k v
	rm "$db-journal"
	cp /bin/true "$db-journal"
	chown 65534 "$db-journal"
	refused 77 preempt-store get k
}

@test "a symbolic link or a directory in the place of database or lock is refused" {
	preempt-store put k v
	mv "$db.lock" "$dir/elsewhere"
	ln -s elsewhere "$db.lock"
	refused 65 preempt-store get k
	rm "$db.lock"
	mkdir "$dir/sub.db"
	refused 65 preempt-store put k v --store "$dir/sub.db"
	ln -s "$dir/nowhere" "$dir/dangling.db"
	refused 65 preempt-store put k v --store "$dir/dangling.db"
	[ ! -e "$dir/nowhere" ]
}

@test "two names of one database are one store with one lock" {
	preempt-store put k v
	ln -s run.db "$dir/alias.db"
	answers 0 preempt-store get k --store "$dir/alias.db"
	[ ! -e "$dir/alias.db.lock" ]
}

@test "no store and not asked to make one: 1; no directory: 75; both name it" {
	refused 1 preempt-store get k
	[[ $stderr == *"$db"*'does not exist'* ]]
	refused 1 preempt-store list
	refused 75 preempt-store put k v --store "$dir/none/run.db"
	[[ $stderr == *'is the filesystem mounted?'* ]]
	refused 75 preempt-store get k --store "$dir/none/run.db"
}

@test "a store is made on a disk whose syncs take long, and within no time to wait for others" {
	local mode
	for mode in fcntl link; do
		answers 0 strace -f -o /dev/null -e trace=fsync -e inject=fsync:delay_exit=700000 \
			preempt-store put k v --store "$dir/$mode.db?lock=$mode"
		answers 0 strace -f -o /dev/null -e trace=fsync -e inject=fsync:delay_exit=200000 \
			preempt-store put k v --store "$dir/soon-$mode.db?lock=$mode" --timeout 100ms
	done
}

@test "files that cannot be looked at for a moment, as on GlusterFS while another process closes them" {
	local mode at code file
	for mode in fcntl link; do
		preempt-store put first v --store "$dir/$mode.db?lock=$mode"
		for file in "" -journal .lock; do
			for ((at = 1; ; at++)); do
				code=0
				strace -f -o "$dir/trace" -P "$dir/$mode.db$file" -e trace=newfstatat \
					-e inject=newfstatat:error=EBADFD:when=$at preempt-store put "$at" v --store "$dir/$mode.db?lock=$mode" || code=$?
				[ "$code" = 0 ]
				grep -q INJECTED "$dir/trace" || break
			done
			[ "$at" -gt 1 ]
		done
	done
	preempt-store put k v
	refused 75 strace -f -o /dev/null -P "$db" -e trace=newfstatat -e inject=newfstatat:error=EBADFD preempt-store put k v
	[[ $stderr == *"$db"*'File descriptor in bad state'* ]]
}

@test "a damaged database is refused with 65" {
	preempt-store put k v
	cp "$db" "$dir/whole"
	head -c 16384 /dev/urandom > "$db"
	refused 65 preempt-store get k
	[[ $stderr == *"$db"*'damaged or not a store'* ]]
	: > "$db"
	refused 65 preempt-store put k v
	head -c 5000 "$dir/whole" > "$db"
	refused 65 preempt-store put k v
	cp "$dir/whole" "$db"
	answers 0 preempt-store get k
	# Pages within: the first one that is read says so.
	dd if=/dev/urandom of="$db" bs=4096 seek=2 count=1 conv=notrunc status=none
	refused 65 preempt-store get k
}

@test "a database of another program is refused with 65 and left alone" {
	sqlite3 "$db" 'CREATE TABLE t(x)'
	chmod 600 "$db"
	refused 65 preempt-store put k v
	preempt-store put k v --store "$dir/ours.db"
	cp "$dir/ours.db.lock" "$db.lock"
	refused 65 preempt-store put k v
	[[ $stderr == *'not a store of preempt-tools'* ]]
}

@test "a newer format of database or lock file is refused with 65" {
	preempt-store put k v
	sqlite3 "$db" 'PRAGMA user_version=4; ALTER TABLE meta RENAME TO metadata'
	refused 65 preempt-store get k
	[[ $stderr == *'has format 4 and this version uses 3'*'newer preempt-tools'* ]]
	preempt-store put k v --store "$dir/other.db"
	sed -i 's/^format 3$/format 4/; s/^mode .*/mode quantum/' "$dir/other.db.lock"
	refused 65 preempt-store get k --store "$dir/other.db"
	[[ $stderr == *'has format 4 and this version uses 3'* ]]
}

@test "a store from before the first release, format 1 or 2, is refused with 65 and left alone" {
	preempt-store put k v
	sqlite3 "$db" 'PRAGMA user_version=2'
	refused 65 preempt-store put k w
	[[ $stderr == *'has format 2 and this version uses 3'*'make a new store'* ]]
	sqlite3 "$db" 'PRAGMA user_version=1; ALTER TABLE meta DROP COLUMN floor; DROP TABLE gone'
	refused 65 preempt-store get k
	[[ $stderr == *'has format 1 and this version uses 3'* ]]
	sed -i 's/^format 3$/format 1/; /^takeover/d' "$db.lock"
	refused 65 preempt-store get k
	[[ $stderr == *"$db.lock has format 1 and this version uses 3"* ]]
	[ "$(sqlite3 "$db" 'PRAGMA user_version; SELECT count(*) FROM keys')" = $'1\n1' ]
}

@test "a garbage lock file is refused with 65" {
	preempt-store put k v
	: > "$db.lock"
	refused 65 preempt-store get k
	echo hello > "$db.lock"
	refused 65 preempt-store put k v
}

@test "a lock file that was deleted, or belongs to another store, is refused with 65" {
	preempt-store put k v
	preempt-store put k v --store "$dir/other.db"
	cp "$db.lock" "$dir/kept"
	rm "$db.lock"
	refused 65 preempt-store get k
	refused 65 preempt-store put k v
	[[ $stderr == *"$db.lock was deleted"* ]]
	cp "$dir/other.db.lock" "$db.lock"
	refused 65 preempt-store put k v
	[[ $stderr == *'not made together'* ]]
	cp "$dir/kept" "$db.lock"
	answers 0 preempt-store get k
}

# Sites delete what was not changed for some days: every file of a store must look used.
@test "a purge of old files leaves a store in use alone, also one that is only read" {
	local mode
	for mode in fcntl link; do
		start_over
		export PREEMPT_STORE="$db?lock=$mode"
		preempt-store put k v
		find "$dir" -exec touch -d '40 days ago' {} +
		answers 0 preempt-store get k
		find "$dir" -mindepth 1 -mtime +30 -delete
		answers 0 preempt-store put other w
		[ "$(preempt-store get k)" = v ]
	done
}

@test "wait: a store that stays busy is asked no longer than --timeout" {
	preempt-store put k v
	"${OUT:-$BATS_TEST_DIRNAME/../../build/plain}/tests/support/hold_store" "$db" held begin &
	holder=$!
	eventually is_stopped "$holder"
	# A question may take 30 s otherwise.
	answers 75 timeout 20 preempt-store wait absent --timeout 200ms
}

@test "a lock file that is deleted or replaced while a process waits: 65" {
	local case pid
	for case in delete replace; do
		start_over
		preempt-store put k v
		preempt-store wait other --timeout 100s 2> "$BATS_TEST_TMPDIR/err" &
		pid=$!
		holder=$pid
		until is_waiting $pid; do
			kill -0 $pid
			sleep 0.01
		done
		cp "$db.lock" "$dir/copy"
		rm "$db.lock"
		[ $case = delete ] || mv "$dir/copy" "$db.lock"
		# Any write to the database makes it look.
		sqlite3 -cmd '.timeout 60000' "$db" 'UPDATE meta SET revision=revision+1'
		local code=0
		wait $pid || code=$?
		holder=
		[ $code = 65 ]
		grep -q 'was deleted or replaced while it was in use' "$BATS_TEST_TMPDIR/err"
	done
}

@test "a database that was deleted under its lock file is not silently made again" {
	preempt-store put k v
	rm "$db"
	refused 65 preempt-store put k v
	[[ $stderr == *'was deleted'* ]]
	start_over
	answers 0 preempt-store put k v
}

@test "a read-only directory: making a store there is refused with 77" {
	if [ "$(id -u)" = 0 ]; then
		mount -t tmpfs -o mode=700,ro none "$dir" || skip "needs to mount a tmpfs"
		mounted=$dir
	else
		chmod 500 "$dir"
	fi
	refused 77 preempt-store put k v
	[[ $stderr == *"$db"* ]]
	chmod 700 "$dir" 2>/dev/null || :
}

@test "a store on a read-only filesystem can be read, and not written" {
	need_root "to mount a tmpfs"
	mount -t tmpfs -o mode=700 none "$dir" || skip "needs to mount a tmpfs"
	mounted=$dir
	preempt-store put k v
	mount -o remount,ro "$dir"
	answers 0 preempt-store get k
	[ "$output" = v ]
	refused 77 preempt-store put k w
	[[ $stderr == *'read-only'* ]]
}

@test "a full disk: 75, says so, changes nothing, and goes on when there is space" {
	need_root "to mount a small tmpfs"
	mount -t tmpfs -o mode=700,size=256k none "$dir" || skip "needs to mount a tmpfs"
	mounted=$dir
	preempt-store put k v
	head -c 1M /dev/zero > "$dir/filler" 2>/dev/null || :
	head -c 60000 /dev/zero | tr '\0' x > "$BATS_TEST_TMPDIR/value"
	run -75 --separate-stderr preempt-store put large - < "$BATS_TEST_TMPDIR/value"
	[[ $stderr == *"$db"*'No space left on device'*'free space'* ]]
	answers 0 preempt-store get k
	[ "$output" = v ]
	answers 1 preempt-store get large
	answers 75 preempt-store put k v --store "$dir/new.db"
	[[ $stderr == *'No space left on device'* ]]
	rm "$dir/filler"
	answers 0 preempt-store put large - < "$BATS_TEST_TMPDIR/value"
	answers 0 preempt-store put k v --store "$dir/new.db"
	[ "$(sqlite3 "$db" 'PRAGMA integrity_check')" = ok ]
}

@test "a mode or takeover time other than the recorded one is refused" {
	answers 0 preempt-store put k v --store "$db?lock=fcntl&takeover=5s"
	grep -qx 'mode fcntl' "$db.lock"
	answers 0 preempt-store get k --store "$db?lock=auto"
	refused 2 preempt-store get k --store "$db?lock=link"
	[[ $stderr == *'made with lock=fcntl'* ]]
	start_over
	answers 0 preempt-store put k v --store "$db?lock=link"
	grep -qx 'mode link' "$db.lock"
	grep -qx 'takeover 5000' "$db.lock"
	answers 0 preempt-store get k
	answers 0 preempt-store get k --store "$db?lock=link&takeover=5s"
	refused 2 preempt-store get k --store "$db?lock=fcntl"
	[[ $stderr == *'made with lock=link'* ]]
	refused 2 preempt-store get k --store "$db?takeover=6s"
	[[ $stderr == *'made with takeover=5000ms'* ]]
	for wrong in 1999ms 61m x ''; do
		refused 2 preempt-store get k --store "$db?takeover=$wrong"
	done
}

@test "a lock file of mode link that is not whole is refused with 65" {
	preempt-store put k v --store "$db?lock=link"
	cp "$db.lock" "$dir/kept"
	for edit in '/^takeover/d' 's/^takeover .*/takeover 5/' 's/^takeover .*/takeover x/' 's/^format 3/format 1/' 's/^format 3/format 4/' \
		's/^mode .*/mode fcntl/'; do
		sed "$edit" "$dir/kept" > "$db.lock"
		refused 65 preempt-store get k
	done
	cp "$dir/kept" "$db.lock"
	answers 0 preempt-store get k
}

@test "a filesystem whose locks stay on one mount: lock=link by itself, never fcntl" {
	need_root "to mount bindfs"
	command -v bindfs > /dev/null && [ -e /dev/fuse ] || skip "needs bindfs and FUSE"
	mkdir -m 700 "$BATS_TEST_TMPDIR/under"
	bindfs "$BATS_TEST_TMPDIR/under" "$dir" || skip "cannot mount bindfs"
	mounted=$dir
	refused 2 preempt-store put k v --store "$db?lock=fcntl"
	[[ $stderr == *'FUSE'*'two machines could hold the lock at once'* ]]
	answers 0 preempt-store put k v
	grep -qx 'mode link' "$db.lock"
	# The mode is followed where locks would do, too.
	answers 0 preempt-store get k --store "$BATS_TEST_TMPDIR/under/run.db"
	answers 0 preempt-store put k v --store "$dir/other.db?assume=local"
	grep -qx 'mode fcntl' "$dir/other.db.lock"
	# Made in a safe way below, it is still refused through the unsafe mount.
	answers 2 preempt-store get k --store "$dir/other.db"
	answers 0 preempt-store get k --store "$BATS_TEST_TMPDIR/under/other.db"
}

@test "what the queue of this machine needs may be missing or wrong: it goes without" {
	need_root "to unshare /dev/shm"
	local wrong
	for wrong in 'mount -t tmpfs -o ro none /dev/shm' \
		'mkdir /dev/shm/preempt-0 && chmod 777 /dev/shm/preempt-0' \
		'touch /dev/shm/preempt-0'; do
		# shellcheck disable=SC2016
		answers 0 unshare -m sh -c "mount -t tmpfs none /dev/shm && $wrong"'
			for i in 1 2 3 4 5 6 7 8; do preempt-store put k$i v --timeout 120s & done; wait
			preempt-store list | wc -l'
		[ "$output" = 8 ]
		start_over
	done
}

@test "without --store: one store per run below XDG_STATE_HOME or ~/.local/state" {
	unset PREEMPT_STORE
	refused 2 preempt-store put k v
	[[ $stderr == *'--store'*'PREEMPT_STORE'* ]]
	export HOME=$dir/home
	mkdir "$HOME"
	answers 0 preempt-store put k v --run nightly
	[ -f "$HOME/.local/state/preempt/nightly.db" ]
	[ "$(stat -c %a "$HOME/.local/state/preempt")" = 700 ]
	PREEMPT_RUN=nightly answers 0 preempt-store get k
	XDG_STATE_HOME=$dir/state PREEMPT_RUN=nightly answers 1 preempt-store get k
	answers 2 preempt-store get k --run ../evil
	# Every program finds the same one, or refuses: options of a store's URL begin with "?".
	answers 0 preempt-run --run same -- true
	answers 0 preempt-store get --run same run/same/LAST
	mkdir "$dir/ho?me" "$dir/ho"
	for command in "preempt-store put k v --run r" "preempt-queue schedule -- true" "preempt-run --run r -- true"; do
		# shellcheck disable=SC2086 # words
		HOME="$dir/ho?me" refused 2 $command
		[[ $stderr == *'"?"'*'--store'* ]]
	done
	[ -z "$(find "$dir/ho" "$dir/ho?me" -mindepth 1)" ]
}

@test "a claim that is lost writes nothing and syncs nothing" {
	preempt-store put k v
	sum=$(sha256sum "$db" "$db-journal")
	strace -y -e trace=fsync,fdatasync,pwrite64,fcntl -o "$BATS_TEST_TMPDIR/trace" \
		preempt-store put k w --if-absent || [ $? = 1 ]
	run ! grep -E 'sync|pwrite' "$BATS_TEST_TMPDIR/trace"
	# Of the database it is a reader.
	grep -q "run.db>.*F_RDLCK" "$BATS_TEST_TMPDIR/trace"
	run ! grep "run.db>.*F_WRLCK" "$BATS_TEST_TMPDIR/trace"
	[ "$sum" = "$(sha256sum "$db" "$db-journal")" ]
}

@test "a shared filesystem: lock, drop pages, open, commit synced, close, unlock, in this order" {
	export PREEMPT_STORE="$db?assume=shared"
	preempt-store put k v
	strace -f -y -e trace=fcntl,fadvise64,fdatasync,openat,close,pwrite64 \
		-o "$BATS_TEST_TMPDIR/trace" preempt-store put k w
	# One word per call on the store's files, repetitions left out; the locks of SQLite, too.
	run awk -v db="$db" '
		function say(word) { if (word != last) printf "%s ", word; last = word }
		{ sub(/^[0-9]+ +/, "") }
		/F_OFD_SETLK/ { say(/F_UNLCK/ ? "unlock" : "lock") }
		/^fadvise64/ && index($0, "<" db ">") { say("drop") }
		/^fadvise64/ && index($0, "<" db "-journal>") { say("drop-journal") }
		/^openat/ && index($0, "<" db ">") && /O_RDWR/ { say("open") }
		/^pwrite64/ && index($0, "<" db ">") { say("write") }
		/^fdatasync/ && index($0, "<" db ">") { say("sync") }
		/^fdatasync/ && index($0, "<" db "-journal>") { say("sync-journal") }
		/^close/ && index($0, "<" db ">") { say("close") }
	' "$BATS_TEST_TMPDIR/trace"
	local expected='lock drop close drop-journal open sync-journal write sync sync-journal close unlock '
	[ "$output" = "$expected" ]
}

@test "gc removes the beats of the attempts, too" {
	preempt-store put run/old/000001/CLOSED '{"utc":1,"state":"completed"}'
	(umask 077 && mkdir -p "$db.beats/old/000001" "$db.beats/new/000001")
	touch "$db.beats/old/000001/0" "$db.beats/new/000001/0"
	answers 0 preempt-store gc --older-than 1h
	[ ! -e "$db.beats/old" ]
	[ -e "$db.beats/new/000001/0" ]
}
