#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# preempt-store on files: who may use them, what is refused, what people, filesystems and other programs do to them:
# the right code, a message that says what it is, and nothing is changed.
# takes: 60

# shellcheck disable=SC2154 # bats sets stderr and stderr_lines
bats_require_minimum_version 1.5.0
load ../support/programs

setup() {
	mkdir -m 700 "$BATS_TEST_TMPDIR/dir"
	dir=$BATS_TEST_TMPDIR/dir db=$dir/run.db mounted='' remove=''
	programs "$db"
	chmod 700 .
}

teardown() {
	end_started
	"$REPO/tests/support/forget-stores" "$BATS_TEST_TMPDIR"
	[ -z "$mounted" ] || umount -l "$mounted"
	# Another test may be using it at this moment.
	[ -z "$remove" ] || rm -rf "$remove" 2>/dev/null || :
}

fingerprint() {
	(cd "$dir" && find . -printf '%p %y %s %m %u\n' | sort && find . -type f | sort | xargs -r sha256sum)
}

# refused CODE COMMAND...: with this code, in one line, nothing on stdout, and the files are as before.
refused() {
	local code=$1 before
	shift
	before=$(fingerprint)
	answers "$code" "$@"
	[ -z "$output" ]
	[ "${#stderr_lines[@]}" = 1 ]
	[ "$(fingerprint)" = "$before" ]
}

# start_over: the store is to be made again.
start_over() {
	"$REPO/tests/support/forget-stores" "$dir"
	rm -rf "$db"*
}

# start_waiting: a process waits for a key that is not there, asleep, with an eye on the database: $waiting.
start_waiting() {
	preempt-store wait other --timeout 100s 2>err &
	waiting=$!
	started+=($!)
	eventually is_waiting $waiting
}
is_waiting() { grep -qs '^inotify' "/proc/$1/fdinfo/"* && grep -q '^State:.S' "/proc/$1/status"; }
stop_waiting() {
	kill -STOP $waiting
	eventually is_stopped $waiting
}
# look_again DATABASE: a write makes it look.
look_again() { sqlite3 -cmd '.timeout 60000' "$1" 'UPDATE meta SET revision=revision+1'; }

need_root() { [ "$(id -u)" = 0 ] || skip "needs root $1"; }

# two_users: as_nobody, an array, runs preempt-store as another user, to whom the directory belongs.
two_users() {
	need_root "to be two users"
	cp "$(command -v preempt-store)" .
	chmod 755 "$BATS_RUN_TMPDIR" . .. "$dir"
	[ -e /dev/shm/preempt-65534 ] || remove=/dev/shm/preempt-65534
	as_nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups "$PWD/preempt-store")
	chown 65534:65534 "$dir"
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

@test "a store whose database or directory others can write is refused with 77" {
	local what code options says
	preempt-store put k v
	cp -a "$dir" whole
	while IFS='|' read -r what code options says; do
		rm -rf "$dir"
		cp -a whole "$dir"
		eval "$what"
		if [ "$code" = 77 ]; then refused 77 preempt-store get k --store "$db$options"; fi
		[ "$code" = 77 ] || answers 0 preempt-store get k --store "$db$options"
		[[ $stderr == *"$says"* ]] || { echo "$what: $stderr"; return 1; }
	done <<-'END'
		chmod o+w "$db"|77||chmod o-w
		chmod 660 "$db"|77||?shared-group
		chmod 660 "$db"|0|?shared-group|
		chmod 777 "$dir"|77||writable by everyone
		chmod 777 "$dir"|77|?shared-group|writable by everyone
		chmod 1777 "$dir"|77||mkdir -m 700
		chmod 770 "$dir"|77||
		chmod 770 "$dir"; chmod 660 "$db"|0|?shared-group|
		chmod 666 "$db-journal"|77||
		chmod 622 "$db.lock"|77||
	END
}

@test "a store of another user, or a file of another user in a store: 77, and whose it is" {
	local file
	two_users
	"${as_nobody[@]}" put k v
	refused 77 preempt-store get k
	[[ $stderr == *'belongs to user 65534 and we are user 0'* ]]
	refused 77 setpriv --reuid 1 --regid 1 --clear-groups "$PWD/preempt-store" get k
	# A directory of root is trusted, a database in it of another user is not.
	chown 0:0 "$dir"
	refused 77 preempt-store get k
	answers 0 "${as_nobody[@]}" get k
	# A journal that cannot be read is not treated as none.
	chmod 0 "$db-journal"
	refused 77 "${as_nobody[@]}" put k w
	[[ $stderr == *'Permission denied'* ]]
	chmod 600 "$db-journal"
	chown 65534 "$dir"
	answers 0 "${as_nobody[@]}" put k w
	chown 0:0 "$dir" "$db"*
	for file in "$db" "$db.lock" "$db-journal"; do
		chown 65534 "$file"
		refused 77 preempt-store get k
		refused 77 preempt-store put k w
		chown 0 "$file"
	done
	answers 0 preempt-store get k
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

@test "a filesystem whose locks stay on one mount: the lock is a token, which is followed elsewhere; and never a lock file" {
	need_root "to mount bindfs"
	command -v bindfs > /dev/null && [ -e /dev/fuse ] || skip "needs bindfs and FUSE"
	mkdir -m 700 under
	bindfs under "$dir" || skip "cannot mount bindfs"
	mounted=$dir
	answers 0 preempt-store put k v
	[ -d "$db.lock" ]
	# What is there is followed where locks would do, too.
	answers 0 preempt-store get k --store "$PWD/under/run.db"
	answers 0 preempt-store put k v --store "$dir/other.db?assume=local"
	[ -f "$dir/other.db.lock" ]
	# Made in a safe way below, it is still refused through the unsafe mount.
	answers 2 preempt-store get k --store "$dir/other.db"
	[[ $stderr == *'FUSE'*'two machines could hold the lock at once'* ]]
	answers 0 preempt-store get k --store "$PWD/under/other.db"
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

# ---- What is done to the files ----

# Each row: what is done in the directory of a whole store, the exit code of get and put, and what the message says.
# "other.db" is another store; @ in a word stands for a space.
@test "files that are gone, of another kind, of another store or of another version: refused, named, left as they are" {
	local code says what
	preempt-store put k v
	preempt-store put k v --store "$dir/other.db"
	cp -a "$dir" whole
	while read -r code says what; do
		rm -rf "$dir"
		cp -a whole "$dir"
		(cd "$dir" && eval "$what") || { echo "cannot: $what"; return 1; }
		for command in "get k" "put k w"; do
			# shellcheck disable=SC2086 # words
			refused "$code" timeout 60 preempt-store $command
			[[ $stderr == *"$dir"* && $stderr == *${says//@/ }* ]] || { echo "$what: $stderr"; return 1; }
		done
	done <<-'END'
		65 was@deleted              rm run.db.lock
		65 was@deleted              rm run.db
		65 directory                rm run.db.lock && mkdir run.db.lock
		65 run.db                   rm run.db && mkdir run.db
		65 not@a@regular@file       rm run.db-journal && mkdir run.db-journal
		65 run.db                   rm run.db && mkfifo run.db
		65 run.db.lock              rm run.db.lock && mkfifo run.db.lock
		65 run.db-journal           rm run.db-journal && mkfifo run.db-journal
		65 symbolic@link            rm run.db && ln -s nowhere run.db
		65 symbolic@link            mv run.db.lock elsewhere && ln -s elsewhere run.db.lock
		65 run.db-journal           mv run.db-journal elsewhere && ln -s elsewhere run.db-journal
		65 run.db.lock              head -c 200 /dev/urandom >run.db.lock
		65 run.db.lock              echo hello >run.db.lock
		65 run.db.lock              sed -i 's/^mode .*/mode none/' run.db.lock
		65 version@0.1.0@made       sed -i 's/^mode .*/mode link/' run.db.lock
		65 not@a@store              rm run.db; sqlite3 run.db 'CREATE TABLE t(x)'; chmod 600 run.db
		65 has@format@4@and@this@version@uses@3 sqlite3 run.db 'PRAGMA user_version=4; ALTER TABLE meta RENAME TO metadata'
		65 newer@preempt-tools      sqlite3 run.db 'PRAGMA user_version=4; ALTER TABLE meta RENAME TO metadata'
		65 has@format@4@and@this    sed -i 's/^format 3$/format 4/; s/^mode .*/mode quantum/' run.db.lock
		65 make@a@new@store         sqlite3 run.db 'PRAGMA user_version=2'
		65 has@format@1@and@this    sqlite3 run.db 'PRAGMA user_version=1; ALTER TABLE meta DROP COLUMN floor; DROP TABLE gone'
		65 lock@has@format@1@and    sed -i 's/^format 3$/format 1/' run.db.lock
	END
	rm -rf "$dir"
	cp -a whole "$dir"
	answers 0 preempt-store get k
	# Without a lock file another program's database is no store either, and what a name points to is not made.
	rm "$dir"/run.db*
	sqlite3 "$db" 'CREATE TABLE t(x)'
	chmod 600 "$db"
	refused 65 preempt-store put k v
	rm "$db"
	ln -s "$dir/nowhere" "$db"
	refused 65 preempt-store put k v
	[ ! -e "$dir/nowhere" ]
}

# Several pages of each kind: inner pages, leaves, an overflow chain, free ones.
fill() {
	local i
	for i in $(seq 12); do
		preempt-store put "run/r/$i" "$(printf '%0900d' "$i")"
	done
	preempt-store put large "$(printf '%020000d' 1)"
	preempt-store put gone "$(printf '%020000d' 1)"
	preempt-store rm gone
	[ "$(stat -c %s "$db")" -gt 40000 ]
}

@test "a database that was cut to nothing, to half, to a page less: 65" {
	fill
	cp "$db" "$dir/whole"
	local size
	for size in 0 50 4096 $(($(stat -c %s "$db") - 4096)); do
		head -c "$size" "$dir/whole" >"$db"
		refused 65 preempt-store get k
		[[ $stderr == *'damaged'* || $stderr == *'not a store'* ]]
		refused 65 preempt-store put large w
	done
	cat "$dir/whole" >"$db"
	preempt-store get large >/dev/null
}

# SQLite has no checksums: a flipped byte of a value is read as it is. One of its structure shows.
@test "bytes flipped in the head of every page: 65 where it shows, never 75, 77, a crash or a change" {
	fill
	cp "$db" "$dir/whole"
	local pages page at code found=0
	pages=$(($(stat -c %s "$db") / 4096))
	for ((page = 0; page < pages; page++)); do
		# The kind of the page, its counts, its cell pointers; in the first page also the head of
		# the file: its name, its page size, its formats, its change counter.
		for at in 0 3 5 8 18 24 44 100 105; do
			[ $page = 0 ] || [ $at -lt 16 ] || continue
			cat "$dir/whole" >"$db"
			printf '\x5a' | dd of="$db" bs=1 seek=$((page * 4096 + at)) conv=notrunc status=none
			cp "$db" flipped
			code=0
			preempt-store list --values >got 2>err || code=$?
			case $code in
			0) ;;
			65) grep -q "$db" err && found=$((found + 1)) ;;
			*) echo "page $page, byte $at: $code $(cat err)" && false ;;
			esac
			cmp "$db" flipped
		done
	done
	echo "$pages pages, found $found"
	[ $found -gt $pages ]
}

@test "garbage in the journal is no journal: the store is as it was" {
	fill
	preempt-store list --values >right
	local what
	for what in '' 'x' "$(head -c 3000 /dev/urandom | tr -d '\0')"; do
		printf %s "$what" >"$db-journal"
		chmod 600 "$db-journal"
		preempt-store list --values | cmp - right
	done
	run -0 preempt-store put k v
	run -0 preempt-store get k
	# The head of a journal, and nothing behind it.
	printf '\xd9\xd5\x05\xf9\x20\xa1\x63\xd7\xff\xff\xff\xff' >"$db-journal"
	run -0 preempt-store get k
	[ "$(sqlite3 "$db" 'PRAGMA integrity_check')" = ok ]
}

# told CODE WORDS: what the process that waits is told, and it ends.
told() {
	code_of $waiting
	cat err
	[ "$code" = "$1" ]
	[ -z "$2" ] || grep -q "$2" err
}

# Each row: the code, what the process is told, and what is done while it waits.
@test "the files or the directory go away while a process waits: it is told what happened" {
	local code says what
	while IFS='|' read -r code says what; do
		start_over
		preempt-store put k v
		start_waiting
		# It looks now and then, too, and must not come to it in between.
		stop_waiting
		eval "$what"
		kill -CONT $waiting
		[ "$code" = 0 ] || look_again "$(find "$dir.away/run.db" "$db" 2>/dev/null | head -n 1)"
		told "$code" "$says"
		[ ! -e "$dir.away" ] || { rm -rf "$dir" && mv "$dir.away" "$dir"; }
	done <<-'END'
		65|was deleted or replaced while it was in use|rm "$db.lock"
		65|was deleted or replaced while it was in use|cp "$db.lock" copy && mv copy "$db.lock"
		75|dir disappeared.*moved away.*mounted|mv "$dir" "$dir.away"
		75|dir was moved away or replaced|mv "$dir" "$dir.away" && mkdir -m 700 "$dir"
		0||mv "$dir" "$dir.away" && ln -s "$dir.away" "$dir" && preempt-store put other v
	END
}

@test "another store in place of the one in use: 75, and nothing of it is answered" {
	local kind key
	for kind in file token; do
		start_over
		[ $kind = file ] || "$REPO/tests/support/token-store" "$db"
		preempt-store put k v
		start_waiting
		stop_waiting
		mv "$dir" "$dir.away"
		mkdir -m 700 "$dir"
		[ $kind = file ] || "$REPO/tests/support/token-store" "$db"
		for key in k l other; do
			preempt-store put $key w
		done
		kill -CONT $waiting
		told 75 'another store is at'
		"$REPO/tests/support/forget-stores" "$dir"
		rm -rf "$dir"
		mv "$dir.away" "$dir"
	done
}

@test "the filesystem is unmounted while a process waits: 75, and it says so" {
	need_root "to mount a tmpfs"
	mount -t tmpfs -o mode=700 none "$dir" || skip "needs to mount a tmpfs"
	mounted=$dir
	preempt-store put k v
	start_waiting
	mkdir other
	mount --bind "$dir" other
	umount -l "$dir"
	mounted=$PWD/other
	look_again other/run.db
	told 75 "came to lie on another filesystem.*no longer mounted"
	# Nothing was made below the mount point.
	[ -z "$(ls "$dir")" ]
}

# Sites delete what was not changed for some days: every file of a store must look used.
@test "a purge of old files leaves a store in use alone, also one that is only read" {
	local kind
	for kind in file token; do
		start_over
		[ $kind = file ] || "$REPO/tests/support/token-store" "$db"
		preempt-store put k v
		find "$dir" -exec touch -d '40 days ago' {} +
		answers 0 preempt-store get k
		find "$dir" -mindepth 1 -mtime +30 -delete
		answers 0 preempt-store put other w
		[ "$(preempt-store get k)" = v ]
	done
}

@test "gc removes the beats of the attempts, too" {
	preempt-store put run/old/000001/CLOSED '{"utc":1,"state":"completed"}'
	(umask 077 && mkdir -p "$db.beats/old/000001" "$db.beats/new/000001")
	touch "$db.beats/old/000001/0" "$db.beats/new/000001/0"
	answers 0 preempt-store gc --older-than 1h
	[ ! -e "$db.beats/old" ]
	[ -e "$db.beats/new/000001/0" ]
}

# ---- Disks and machines that are slow, full or small ----

@test "wait: a store that stays busy is asked no longer than --timeout" {
	preempt-store put k v
	"$OUT/tests/support/hold_store" "$db" held begin &
	started+=($!)
	eventually is_stopped $!
	# A question may take 30 s otherwise.
	answers 75 timeout 20 preempt-store wait absent --timeout 200ms
}

@test "a store is made on a disk whose syncs take long, and within no time to wait for others" {
	local kind
	for kind in file token; do
		[ $kind = file ] || "$REPO/tests/support/token-store" "$dir/$kind.db"
		answers 0 strace -f -o /dev/null -e trace=fsync -e inject=fsync:delay_exit=700000 \
			preempt-store put k v --store "$dir/$kind.db"
		answers 0 strace -f -o /dev/null -e trace=fsync -e inject=fsync:delay_exit=200000 \
			preempt-store put k v --store "$dir/soon-$kind.db" --timeout 100ms
	done
}

@test "a read-only filesystem: a store is not made there, one that is there can be read, and not written: 77" {
	need_root "to mount a tmpfs"
	mount -t tmpfs -o mode=700 none "$dir" || skip "needs to mount a tmpfs"
	mounted=$dir
	preempt-store put k v
	mount -o remount,ro "$dir"
	answers 0 preempt-store get k
	[ "$output" = v ]
	refused 77 preempt-store put k w
	[[ $stderr == *'read-only'* ]]
	refused 77 preempt-store put k v --store "$dir/new.db"
	[[ $stderr == *"$dir/new.db"* ]]
}

# ---- What is written and synced ----
