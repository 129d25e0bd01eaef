#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# What people, filesystems and other programs do to the files of a store: the right code, a message
# that says what it is, and nothing is changed.

# shellcheck disable=SC2154 # bats sets stderr and stderr_lines
bats_require_minimum_version 1.5.0

setup() {
	PATH=${BIN:-$BATS_TEST_DIRNAME/../../bin}:$PATH
	OUT=${OUT:-$BATS_TEST_DIRNAME/../../build/plain}
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
	[ -z "${waiting:-}" ] || kill -9 "$waiting" 2>/dev/null || :
	[ -z "$mounted" ] || umount -l "$mounted"
}

# It waits for a change of the database: inotify watches, and it sleeps.
is_waiting() {
	grep -qs '^inotify' "/proc/$1/fdinfo/"* && grep -q '^State:.S' "/proc/$1/status"
}

# A process waits for a key that is not there: $waiting.
start_waiting() {
	preempt-store wait other --timeout 100s 2>"$BATS_TEST_TMPDIR/err" &
	waiting=$!
	until is_waiting $waiting; do
		kill -0 $waiting
		sleep 0.01
	done
}

stop_waiting() {
	kill -STOP $waiting
	until grep -q '^State:.T' /proc/$waiting/status; do sleep 0.01; done
}

need_root() {
	[ "$(id -u)" = 0 ] || skip "needs root $1"
}

fingerprint() {
	(cd "$dir" && find . -printf '%p %y %s %m %u\n' | sort && find . -type f | sort | xargs -r sha256sum)
}

# refused CODE COMMAND...: refused with this code in one line that names the store, and the files
# are as they were.
refused() {
	local code=$1 before
	shift
	before=$(fingerprint)
	run -"$code" --separate-stderr "$@"
	[ -z "$output" ]
	[ "${#stderr_lines[@]}" = 1 ]
	[[ $stderr == *"$dir"* ]]
	[ "$(fingerprint)" = "$before" ]
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

@test "another owner of the database: 77, and it names both users" {
	need_root "to give a file away"
	preempt-store put k v
	chown 65534 "$db"
	refused 77 preempt-store get k
	[[ $stderr == *'belongs to user 65534'*'user 0'* ]]
	refused 77 preempt-store put k w
	chown 0 "$db"
	chown 65534 "$db.lock"
	refused 77 preempt-store put k w
}

@test "a directory in the place of the database, the lock file or the journal: 65" {
	mkdir "$db"
	refused 65 preempt-store put k v
	refused 65 preempt-store get k
	rmdir "$db"
	mkdir "$db.lock"
	refused 65 preempt-store put k v
	[[ $stderr == *"$db.lock"*'directory'* ]]
	rmdir "$db.lock"
	preempt-store put k v
	rm "$db-journal"
	mkdir "$db-journal"
	refused 65 preempt-store put k v
	[[ $stderr == *"$db-journal"*'not a regular file'* ]]
}

@test "a fifo or a socket in the place of a file: 65 at once" {
	mkfifo "$db"
	refused 65 timeout 60 preempt-store put k v
	rm "$db"
	mkfifo "$db.lock"
	refused 65 timeout 60 preempt-store put k v
	rm "$db.lock"
	preempt-store put k v
	rm "$db-journal"
	mkfifo "$db-journal"
	refused 65 timeout 60 preempt-store get k
}

@test "symbolic links: one that dangles is refused and nothing is made, one in the place of the lock too" {
	ln -s nowhere "$db"
	refused 65 preempt-store put k v
	[[ $stderr == *'symbolic link'* ]]
	refused 65 preempt-store get k
	rm "$db"
	preempt-store put k v
	mv "$db.lock" "$dir/elsewhere"
	ln -s elsewhere "$db.lock"
	refused 65 preempt-store get k
	[[ $stderr == *'symbolic link'* ]]
	rm "$db.lock" && mv "$dir/elsewhere" "$db.lock"
	mv "$db-journal" "$dir/elsewhere"
	ln -s elsewhere "$db-journal"
	refused 65 preempt-store put k v
}

@test "a database that was cut to nothing, to half, to a page less: 65" {
	fill
	cp "$db" "$dir/whole"
	local size
	for size in 0 1 50 100 4096 20000 $(($(stat -c %s "$db") - 4096)); do
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
		for at in 0 3 5 8 16 18 21 24 28 44 56 100 103 105 108; do
			[ $page = 0 ] || [ $at -lt 16 ] || continue
			cat "$dir/whole" >"$db"
			printf '\x5a' | dd of="$db" bs=1 seek=$((page * 4096 + at)) conv=notrunc status=none
			cp "$db" "$BATS_TEST_TMPDIR/flipped"
			code=0
			preempt-store list --values >"$BATS_TEST_TMPDIR/got" 2>"$BATS_TEST_TMPDIR/err" || code=$?
			case $code in
			0) ;;
			65) grep -q "$db" "$BATS_TEST_TMPDIR/err" && found=$((found + 1)) ;;
			*) echo "page $page, byte $at: $code $(cat "$BATS_TEST_TMPDIR/err")" && false ;;
			esac
			cmp "$db" "$BATS_TEST_TMPDIR/flipped"
		done
	done
	echo "$pages pages, found $found"
	[ $found -gt $pages ]
}

@test "garbage in the journal is no journal: the store is as it was" {
	fill
	preempt-store list --values >"$BATS_TEST_TMPDIR/right"
	local what
	for what in '' 'x' "$(head -c 3000 /dev/urandom | tr -d '\0')"; do
		printf %s "$what" >"$db-journal"
		chmod 600 "$db-journal"
		preempt-store list --values | cmp - "$BATS_TEST_TMPDIR/right"
	done
	run -0 preempt-store put k v
	run -0 preempt-store get k
	# The head of a journal, and nothing behind it.
	printf '\xd9\xd5\x05\xf9\x20\xa1\x63\xd7\xff\xff\xff\xff' >"$db-journal"
	run -0 preempt-store get k
	[ "$(sqlite3 "$db" 'PRAGMA integrity_check')" = ok ]
}

# Killed in the middle of a commit: pages are written, and the journal would undo them.
kill_writer() {
	run -137 "$OUT/tests/crash/crash" --inject "$dir" fdatasync:"$1" 1 before KILL -- \
		preempt-store put run/r/3 half --store "$dir/$1"
	[ "$(head -c 8 "$dir/$1-journal" | od -An -tx1 | tr -d ' ')" = d9d505f920a163d7 ]
}

# asan: the preloaded library would come before the sanitizers'.
@test "the journal of a killed writer, of this store: it is rolled back; of another: 65, and nothing is" {
	[[ $OUT != *asan* ]] || skip "preloads"
	fill
	preempt-store put run/r/3 before
	kill_writer run.db
	cp "$db-journal" "$dir/own"
	cp "$db" "$dir/half"
	[ "$(preempt-store get run/r/3)" = before ]
	PREEMPT_STORE=$dir/other.db fill
	preempt-store put run/r/3 other --store "$dir/other.db"
	kill_writer other.db
	cat "$dir/other.db-journal" >"$db-journal"
	refused 65 preempt-store get k
	[[ $stderr == *"$db-journal is the journal of another database"* ]]
	refused 65 preempt-store put k v
	cat "$dir/half" >"$db"
	cat "$dir/own" >"$db-journal"
	run -0 preempt-store get run/r/3
	[ "$output" = before ]
	[ "$(sqlite3 "$db" 'PRAGMA integrity_check')" = ok ]
}

@test "a journal that cannot be read: 77 for who is not root, by its name; nothing is treated as done" {
	need_root "to become another user"
	cp "$(command -v preempt-store)" "$BATS_TEST_TMPDIR"
	chmod 755 "$BATS_RUN_TMPDIR" "$BATS_TEST_TMPDIR" "$BATS_TEST_TMPDIR/.."
	chown 65534:65534 "$dir"
	[ -e /dev/shm/preempt-65534 ] || remove=/dev/shm/preempt-65534
	local as_nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups "$BATS_TEST_TMPDIR/preempt-store")
	"${as_nobody[@]}" put k v
	chmod 0 "$db-journal"
	refused 77 "${as_nobody[@]}" put k w
	[[ $stderr == *'Permission denied'* ]]
	chmod 600 "$db-journal"
	run -0 "${as_nobody[@]}" put k w
	# Another test may be using it at this moment.
	[ -z "${remove:-}" ] || rm -rf "$remove" 2>/dev/null || :
}

@test "a lock file with garbage, cut short, or of another store: 65" {
	preempt-store put k v
	preempt-store put k v --store "$dir/other.db"
	cp "$db.lock" "$BATS_TEST_TMPDIR/kept"
	local size
	for size in 0 1 10 58 70 80 100; do
		head -c $size "$BATS_TEST_TMPDIR/kept" >"$db.lock"
		refused 65 preempt-store get k
		[[ $stderr == *"$db.lock"* ]]
		refused 65 preempt-store put k w
	done
	head -c 200 /dev/urandom >"$db.lock"
	refused 65 preempt-store put k w
	cp "$dir/other.db.lock" "$db.lock"
	refused 65 preempt-store put k w
	[[ $stderr == *'not made together'* ]]
	sed 's/^mode .*/mode none/' "$BATS_TEST_TMPDIR/kept" >"$db.lock"
	refused 65 preempt-store put k w
	cat "$BATS_TEST_TMPDIR/kept" >"$db.lock"
	run -0 preempt-store get k
}

@test "a database in the place of another one: 65, and both names" {
	preempt-store put k v
	preempt-store put k v --store "$dir/other.db"
	cp "$dir/other.db" "$db"
	refused 65 preempt-store get k
	[[ $stderr == *"$db "*"$db.lock"* ]]
}

@test "the directory is moved away while a process waits: 75, and it says so" {
	preempt-store put k v
	start_waiting
	mv "$dir" "$dir.away"
	# Any write to the database makes it look.
	sqlite3 -cmd '.timeout 60000' "$dir.away/run.db" 'UPDATE meta SET revision=revision+1'
	local code=0
	wait $waiting || code=$?
	cat "$BATS_TEST_TMPDIR/err"
	[ $code = 75 ]
	grep -q "directory $dir disappeared.*moved away.*mounted" "$BATS_TEST_TMPDIR/err"
	mv "$dir.away" "$dir"
}

@test "another directory comes in the place of the first while a process waits: 75, and it says so" {
	preempt-store put k v
	start_waiting
	# It looks now and then, too, and must not come to it in between.
	stop_waiting
	mv "$dir" "$dir.away"
	mkdir -m 700 "$dir"
	kill -CONT $waiting
	sqlite3 -cmd '.timeout 60000' "$dir.away/run.db" 'UPDATE meta SET revision=revision+1'
	local code=0
	wait $waiting || code=$?
	[ $code = 75 ]
	grep -q "$dir was moved away or replaced" "$BATS_TEST_TMPDIR/err"
	rm -rf "$dir"
	mv "$dir.away" "$dir"
}

@test "the directory is moved while a process waits, and a link to it put in its place: it goes on" {
	preempt-store put k v
	start_waiting
	stop_waiting
	mv "$dir" "$dir.away"
	ln -s "$dir.away" "$dir"
	preempt-store put other v
	kill -CONT $waiting
	wait $waiting
	rm "$dir"
	mv "$dir.away" "$dir"
}

@test "the filesystem is unmounted while a process waits: 75, and it says so" {
	need_root "to mount a tmpfs"
	mount -t tmpfs -o mode=700 none "$dir" || skip "needs to mount a tmpfs"
	mounted=$dir
	preempt-store put k v
	start_waiting
	mkdir "$BATS_TEST_TMPDIR/other"
	mount --bind "$dir" "$BATS_TEST_TMPDIR/other"
	umount -l "$dir"
	mounted=$BATS_TEST_TMPDIR/other
	sqlite3 -cmd '.timeout 60000' "$BATS_TEST_TMPDIR/other/run.db" 'UPDATE meta SET revision=revision+1'
	local code=0
	wait $waiting || code=$?
	[ $code = 75 ]
	grep -q "came to lie on another filesystem.*no longer mounted" "$BATS_TEST_TMPDIR/err"
	# Nothing was made below the mount point.
	[ -z "$(ls "$dir")" ]
}
