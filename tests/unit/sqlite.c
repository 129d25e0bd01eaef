/* SPDX-License-Identifier: MIT */
/* What only the SQLite backend has. Kills, errors and stops at each of its calls: tests/crash. */
#include "store/sqlite/session.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "scratch.h"
#include "unit.h"

/* Milliseconds. No machine is so busy that what need not wait takes AT_ONCE. */
#define PATIENCE 120000
#define AT_ONCE	 30000

static struct error err;

/* Once, when a process asks whether this file is there. */
static const char *asked_for;
static void (*when_asked)(void);

int access(const char *path, int mode)
{
	if (asked_for && !strcmp(path, asked_for)) {
		asked_for = NULL;
		when_asked();
	}
	return faccessat(AT_FDCWD, path, mode, 0);
}

/* Once, when a process has just released a lock. */
static void (*when_unlocked)(void);

int fcntl(int descriptor, int command, ...)
{
	va_list list;
	va_start(list, command);
	void *argument = va_arg(list, void *);
	va_end(list);
	int result = (int)syscall(SYS_fcntl, descriptor, command, argument);
	const struct flock *lock = argument;
	if (when_unlocked && command == F_OFD_SETLK && lock->l_type == F_UNLCK) {
		void (*call)(void) = when_unlocked;
		when_unlocked = NULL;
		call();
	}
	return result;
}

static _Atomic int polls_asked;

/* In the place of libc's. */
int poll(struct pollfd *polled, nfds_t count, int timeout)
{
	struct timespec time = {.tv_sec = timeout / 1000, .tv_nsec = timeout % 1000 * 1000000L};
	polls_asked++;
	return ppoll(polled, count, timeout < 0 ? NULL : &time, NULL);
}

static const char *path_of(const char *name)
{
	static _Thread_local char path[128];
	snprintf(path, sizeof(path), "%s/%s", scratch, name);
	return path;
}

static struct store *open_store(const char *name)
{
	struct store *store = NULL;
	if (store_open(&store, path_of(name), STORE_CREATE, clock_after(PATIENCE), &err) !=
		STATUS_OK) {
		printf("# cannot open %s: %s\n", name, err.text);
		exit(99);
	}
	store_set_patience(store, PATIENCE);
	return store;
}

/* A child that holds the outer lock until it is killed. */
static pid_t start_holder(const char *name)
{
	int ready[2];
	char byte = 0;
	if (pipe(ready) < 0)
		exit(99);
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		struct sqlite_store *store = (struct sqlite_store *)open_store(name);
		if (lock_acquire(&store->lock, clock_after(60000), &err) != STATUS_OK ||
			write(ready[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	CHECK_EQ(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static void kill_and_reap(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void locks(void)
{
	struct store *store = open_store("held.db");

	TEST("a holder that is killed wakes one that waits for it already")
	{
		pid_t holder = start_holder("held.db");
		store_set_patience(store, PATIENCE);
		fflush(stdout);
		pid_t killer = fork();
		if (killer == 0) {
			poll(NULL, 0, 100);
			_exit(kill(holder, SIGKILL) != 0);
		}
		int64_t began = clock_now();
		CHECK_EQ(store_put(store, "k", "v", NULL, &err), STATUS_OK);
		CHECK(clock_now() - began < AT_ONCE);
		waitpid(killer, NULL, 0);
		waitpid(holder, NULL, 0);
	}
	TEST("without the page of this machine the shared lock alone excludes, with a deadline")
	{
		struct sqlite_store *inside = (struct sqlite_store *)store;
		machine_close(&inside->lock.machine);
		store_set_patience(store, 300);
		pid_t holder = start_holder("held.db");
		CHECK_EQ(store_put(store, "k", "v", NULL, &err), STATUS_TEMPORARY);
		CHECK(strstr(err.text, "held.db.lock"));
		kill_and_reap(holder);
		store_set_patience(store, PATIENCE);
		CHECK_EQ(store_put(store, "k", "v", NULL, &err), STATUS_OK);
	}
	TEST("a child that inherits the descriptor of the lock does not keep it")
	{
		struct sqlite_store *inside = (struct sqlite_store *)store;
		CHECK_EQ(lock_acquire(&inside->lock, clock_after(60000), &err), STATUS_OK);
		fflush(stdout);
		pid_t child = fork();
		if (child == 0)
			for (;;)
				pause();
		lock_release(&inside->lock);
		struct store *other = open_store("held.db");
		store_set_patience(other, PATIENCE);
		CHECK_EQ(store_put(other, "k", "v", NULL, &err), STATUS_OK);
		store_close(other);
		kill_and_reap(child);
	}
	TEST("the lock descriptor is closed on exec")
	{
		struct sqlite_store *inside = (struct sqlite_store *)store;
		CHECK(fcntl(inside->lock.file.descriptor, F_GETFD) & FD_CLOEXEC);
	}
	store_close(store);
}

static bool is_sound(const char *name)
{
	sqlite3 *database = NULL;
	sqlite3_stmt *statement = NULL;
	bool sound = sqlite3_open(path_of(name), &database) == SQLITE_OK &&
		     sqlite3_prepare_v2(database, "PRAGMA integrity_check", -1, &statement, NULL) ==
			     SQLITE_OK &&
		     sqlite3_step(statement) == SQLITE_ROW &&
		     !strcmp((const char *)sqlite3_column_text(statement, 0), "ok");
	sqlite3_finalize(statement);
	sqlite3_close(database);
	return sound;
}

static void foreign(void)
{
	TEST("another program at work on the database: temporary within the patience")
	{
		struct store *store = open_store("foreign.db");
		sqlite3 *database = NULL;
		store_set_patience(store, 200);
		fflush(stdout);
		int ready[2];
		char byte;
		CHECK_EQ(pipe(ready), 0);
		pid_t pid = fork();
		if (pid == 0) {
			(void)sqlite3_open(path_of("foreign.db"), &database);
			(void)sqlite3_exec(database, "BEGIN EXCLUSIVE", NULL, NULL, NULL);
			if (write(ready[1], "x", 1) != 1)
				_exit(1);
			for (;;)
				pause();
		}
		CHECK_EQ(read(ready[0], &byte, 1), 1);
		int64_t began = clock_now();
		CHECK_EQ(store_put(store, "k", "v", NULL, &err), STATUS_TEMPORARY);
		CHECK(strstr(err.text, "another program has it open"));
		CHECK(clock_now() - began < AT_ONCE);
		kill_and_reap(pid);
		store_set_patience(store, PATIENCE);
		CHECK_EQ(store_put(store, "k", "v", NULL, &err), STATUS_OK);
		store_close(store);
	}
}

static void *put_some(void *name)
{
	struct store *store = open_store("threads.db");
	for (int i = 0; i < 25; i++) {
		char key[32];
		struct error mine;
		snprintf(key, sizeof(key), "%s/%d", (const char *)name, i);
		if (store_put(store, key, "v", NULL, &mine) != STATUS_OK)
			printf("# %s\n", mine.text);
	}
	store_close(store);
	return NULL;
}

static void *wait_for_all(void *count)
{
	struct store *store = open_store("threads.db");
	struct error mine;
	store_revision seen = 0;
	while (seen < 100 &&
		store_wait(store, "", &seen, clock_after(PATIENCE), -1, &mine) == STATUS_OK)
		;
	*(store_revision *)count = seen;
	store_close(store);
	return NULL;
}

static void threads(void)
{
	TEST("threads of one process, each with its store, write and wait side by side")
	{
		pthread_t writers[4], waiters[2];
		store_revision seen[2] = {0};
		char names[4][2] = {"a", "b", "c", "d"};
		for (int i = 0; i < 2; i++)
			pthread_create(&waiters[i], NULL, wait_for_all, &seen[i]);
		for (int i = 0; i < 4; i++)
			pthread_create(&writers[i], NULL, put_some, names[i]);
		for (int i = 0; i < 4; i++)
			pthread_join(writers[i], NULL);
		for (int i = 0; i < 2; i++) {
			pthread_join(waiters[i], NULL);
			CHECK_EQ(seen[i], 100);
		}
		CHECK(is_sound("threads.db"));
	}
}

/* Whether another process sees a POSIX lock of ours on the database. */
static bool is_locked_by_us(const char *name)
{
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
		int descriptor = open(path_of(name), O_RDWR);
		_exit(fcntl(descriptor, F_GETLK, &lock) < 0 || lock.l_type == F_UNLCK);
	}
	int status = -1;
	waitpid(pid, &status, 0);
	return status == 0;
}

static void peeks(void)
{
	TEST("waiting does not drop the locks that SQLite holds in another thread's store")
	{
		struct sqlite_store *writer = (struct sqlite_store *)open_store("peek.db");
		struct store *waiter = open_store("peek.db");
		store_revision seen = 0;
		struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
		store_set_patience(waiter, 100);
		CHECK_EQ(store_wait(waiter, "", &seen, clock_after(10), -1, &err), STATUS_TIMEOUT);
		/* In the place of a transaction of another thread. */
		CHECK_EQ(lock_acquire(&writer->lock, clock_after(PATIENCE), &err), STATUS_OK);
		int descriptor = open(path_of("peek.db"), O_RDWR | O_CLOEXEC);
		CHECK_EQ(fcntl(descriptor, F_SETLK, &lock), 0);
		CHECK(is_locked_by_us("peek.db"));
		CHECK_EQ(store_wait(waiter, "", &seen, clock_after(50), -1, &err), STATUS_TIMEOUT);
		CHECK(is_locked_by_us("peek.db"));
		close(descriptor);
		lock_release(&writer->lock);
		store_close(&writer->base);
		store_close(waiter);
	}
}

static void busy(void)
{
	TEST("waiting ends soon after its deadline also while another process holds the lock")
	{
		struct store *waiter = open_store("busy.db");
		store_revision seen = 0;
		int64_t began = clock_now();
		pid_t holder = start_holder("busy.db");
		CHECK_EQ(store_wait(waiter, "", &seen, clock_after(10), -1, &err), STATUS_TIMEOUT);
		CHECK(clock_now() - began < PATIENCE);
		kill_and_reap(holder);
		store_close(waiter);
	}
	TEST("while another thread is in a transaction, waiting does not keep the processor busy")
	{
		struct sqlite_store *writer = (struct sqlite_store *)open_store("busy.db");
		struct store *waiter = open_store("busy.db");
		store_revision seen = 0;
		CHECK_EQ(lock_acquire(&writer->lock, clock_after(PATIENCE), &err), STATUS_OK);
		polls_asked = 0;
		CHECK_EQ(store_wait(waiter, "", &seen, clock_after(200), -1, &err), STATUS_TIMEOUT);
		/* It looks every 2 ms. */
		CHECK(polls_asked < 200);
		lock_release(&writer->lock);
		store_close(&writer->base);
		store_close(waiter);
	}
}

/* Another machine writes: no page of ours is told, only the file changes. */
static void write_from_elsewhere(const char *name)
{
	sqlite3 *database = NULL;
	(void)sqlite3_open(path_of(name), &database);
	/* Those that wait read now and then. */
	sqlite3_busy_timeout(database, PATIENCE);
	if (sqlite3_exec(database,
		    "BEGIN IMMEDIATE; UPDATE meta SET revision=revision+1;"
		    "INSERT OR REPLACE INTO keys SELECT CAST('far' AS BLOB), x'41', revision FROM meta; COMMIT",
		    NULL, NULL, NULL) != SQLITE_OK)
		printf("# %s\n", sqlite3_errmsg(database));
	sqlite3_close(database);
}

static void polls(void)
{
	TEST("a change counter that went back is a change, too")
	{
		struct store *store = open_store("back.db");
		store_revision seen = 0;
		for (int i = 0; i < 3; i++)
			CHECK_EQ(store_put(store, "k", "v", &seen, &err), STATUS_OK);
		CHECK_EQ(store_wait(store, "", &seen, clock_after(20), -1, &err), STATUS_TIMEOUT);
		write_from_elsewhere("back.db");
		int descriptor = open(path_of("back.db"), O_WRONLY);
		CHECK_EQ(pwrite(descriptor, "\0\0\0\1", 4, 24), 4);
		close(descriptor);
		CHECK_EQ(store_wait(store, "", &seen, clock_after(12000), -1, &err), STATUS_OK);
		store_close(store);
	}
	TEST("polled: a change from elsewhere wakes all")
	{
		struct store *store = NULL;
		char url[160];
		pid_t pids[4];
		snprintf(url, sizeof(url), "%s?assume=shared", path_of("polled.db"));
		CHECK_EQ(
			store_open(&store, url, STORE_CREATE, clock_after(60000), &err), STATUS_OK);
		fflush(stdout);
		for (int i = 0; i < 4; i++) {
			pids[i] = fork();
			if (pids[i] == 0) {
				store_revision seen = 0;
				_exit(store_open(&store, url, 0, clock_after(60000), &err) ||
					store_wait(
						store, "", &seen, clock_after(PATIENCE), -1, &err));
			}
		}
		/* Most often they wait by now, and one of them looks for all. */
		poll(NULL, 0, 300);
		int64_t began = clock_now();
		write_from_elsewhere("polled.db");
		for (int i = 0; i < 4; i++) {
			int status = -1;
			waitpid(pids[i], &status, 0);
			CHECK_EQ(status, 0);
		}
		printf("# all awake after %lld ms\n", (long long)(clock_now() - began));
		/* Not by the locked read that comes every 15 s. */
		CHECK(clock_now() - began < 12000);
		store_close(store);
	}
}

static int64_t unlocked_at;

static void stop_for_a_while(void)
{
	unlocked_at = clock_now();
	while (clock_now() < unlocked_at + 20)
		poll(NULL, 0, 5);
}

static void instants(void)
{
	TEST("a process that is stopped after its transaction does not know the store until later")
	{
		struct store *store = open_store("stopped.db");
		const struct sight *sight = &((struct sqlite_store *)store)->sight;
		when_unlocked = stop_for_a_while;
		CHECK_EQ(store_put(store, "k", "v", NULL, &err), STATUS_OK);
		CHECK(!when_unlocked && sight->seen);
		CHECK(sight->when <= unlocked_at);
		store_close(store);
	}
	TEST("a counter of a process that was stopped does not hide a newer one; a poll may set it back")
	{
		struct doorbell doorbell;
		struct stat st;
		CHECK_EQ(stat(path_of("stopped.db.lock"), &st), 0);
		CHECK(doorbell_open(&doorbell, st.st_dev, st.st_ino));
		doorbell_tell(&doorbell, 7);
		doorbell_tell(&doorbell, 6);
		CHECK_EQ(doorbell_look(&doorbell).counter, 7);
		CHECK_EQ(doorbell_look(&doorbell).polled, 0);
		doorbell_tell_polled(&doorbell, 5, 6400);
		CHECK_EQ(doorbell_look(&doorbell).counter, 5);
		CHECK_EQ(doorbell_look(&doorbell).polled, 6400);
		doorbell_tell_polled(&doorbell, 4, 3200); /* this poller was stopped */
		CHECK_EQ(doorbell_look(&doorbell).counter, 5);
		doorbell_tell_polled(&doorbell, 6, 3200);
		CHECK_EQ(doorbell_look(&doorbell).counter, 6);
		CHECK_EQ(doorbell_look(&doorbell).polled, 6400);
		doorbell_tell_polled(&doorbell, UINT32_MAX, 12800);
		doorbell_tell(&doorbell, 0); /* it has wrapped around */
		CHECK_EQ(doorbell_look(&doorbell).counter, 0);
		doorbell_close(&doorbell);
	}
}

static void take_directory_away(void)
{
	char directory[128];
	snprintf(directory, sizeof(directory), "%s", path_of("there"));
	CHECK_EQ(rename(directory, path_of("away")), 0);
	CHECK_EQ(mkdir(directory, 0700), 0);
}

static void bring_directory_back(void)
{
	char directory[128];
	snprintf(directory, sizeof(directory), "%s", path_of("there"));
	CHECK_EQ(rmdir(directory), 0);
	CHECK_EQ(rename(path_of("away"), directory), 0);
}

static void moves(void)
{
	TEST("a directory that was moved away is back while the store looks why: no missing store")
	{
		char lock[160];
		CHECK_EQ(mkdir(path_of("there"), 0700), 0);
		struct store *store = open_store("there/s.db");
		snprintf(lock, sizeof(lock), "%s.lock", path_of("there/s.db"));
		take_directory_away();
		CHECK_EQ(store_put(store, "k", "v", NULL, &err), STATUS_TEMPORARY);
		when_asked = bring_directory_back;
		asked_for = lock;
		CHECK_EQ(store_put(store, "k", "v", NULL, &err), STATUS_TEMPORARY);
		CHECK(!asked_for);
		CHECK(strstr(err.text, "was missing for a moment: try again"));
		CHECK_EQ(store_put(store, "k", "v", NULL, &err), STATUS_OK);
		store_close(store);
	}
}

/* Two users of one group: the directory's group is what they share. */
static void groups(void)
{
	char directory[128], url[160], file[192];
	struct stat st;
	struct error trouble;
	struct store *shared = NULL;
	TEST("shared-group: the files of beats are of the directory's group, whichever process makes them")
	{
		snprintf(directory, sizeof(directory), "%s/group", scratch);
		snprintf(url, sizeof(url), "%s/x.db?shared-group", directory);
		snprintf(file, sizeof(file), "%s/x.db.beats/run/000001", directory);
		CHECK_EQ(mkdir(directory, 0700), 0);
		CHECK_EQ(chmod(directory, 02770), 0);
		CHECK_EQ(store_open(&shared, url, STORE_CREATE, clock_after(60000), &trouble),
			STATUS_OK);
		CHECK_EQ(store_beats_prepare(shared, "run/000001", 1, &trouble), STATUS_OK);
		CHECK_EQ(stat(file, &st), 0);
		CHECK_EQ(st.st_mode & 07777, 02770);
		unlink(((struct sqlite_store *)shared)->lock.machine.path);
		store_close(shared);
	}
}

static off_t size_of(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 ? st.st_size : -1;
}

static void beats_without_room(void)
{
	char path[200];
	struct rlimit before, none;
	TEST("where a file of the beats cannot be written, the next try makes it")
	{
		struct store *store = open_store("room.db");
		CHECK_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
		none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
		signal(SIGXFSZ, SIG_IGN);
		fflush(stdout);
		setrlimit(RLIMIT_FSIZE, &none);
		enum status status = store_beats_prepare(store, "run/000001", 1, &err);
		setrlimit(RLIMIT_FSIZE, &before);
		CHECK(status_is_error(status));
		CHECK_EQ(store_beats_prepare(store, "run/000001", 1, &err), STATUS_OK);
		snprintf(path, sizeof(path), "%s.beats/run/000001/news", path_of("room.db"));
		CHECK(size_of(path) > 0);
		snprintf(path, sizeof(path), "%s.beats/run/000001/0", path_of("room.db"));
		CHECK(size_of(path) > 0);
		store_close(store);
	}
}

static enum status await(struct store *store, struct store_awaited *awaited, int64_t deadline)
{
	struct store_range range = {.prefix = "run/"};
	struct store_answer answer = {0};
	CHECK_EQ(store_list(store, &range, &answer, &err), STATUS_OK);
	awaited->since = answer.revision;
	store_answer_release(&answer);
	return store_await_news(store, awaited, deadline, -1, &err);
}

/* An older program changes keys and counts nothing; one that cannot count says so. */
static void uncounted(void)
{
	struct store *store = open_store("uncounted.db"), *other = open_store("uncounted.db");
	struct store_awaited awaited = {
		.group = "run/000001", .prefix = "run/000001/", .every = 1000};
	CHECK_EQ(store_beats_prepare(store, "run/000001", 1, &err), STATUS_OK);
	awaited.heard = store_news(store, "run/000001");
	uint32_t heard = awaited.heard;
	TEST("where nothing changes, waiting for news tells that nothing was new")
	{
		int64_t began = clock_now();
		CHECK_EQ(await(store, &awaited, clock_after(50)), STATUS_TIMEOUT);
		CHECK(store_unchanged(store, awaited.since) >= began);
	}
	TEST("a change that no process counted is told, later, and until then nothing is called unchanged")
	{
		CHECK_EQ(await(store, &awaited, clock_now() - 1), STATUS_TIMEOUT);
		CHECK_EQ(store_put(other, "run/000001/key", "value", NULL, &err), STATUS_OK);
		int64_t put = clock_now();
		clock_sleep_until(clock_after(5));
		CHECK_EQ(store_await_news(store, &awaited, clock_after(PATIENCE), -1, &err),
			STATUS_OK);
		CHECK_EQ(awaited.heard, heard);
		CHECK(store_unchanged(store, awaited.since) <= put);
		/* It was looked at. */
		CHECK_EQ(await(store, &awaited, clock_after(50)), STATUS_TIMEOUT);
	}
	TEST("where news cannot be counted any more, any change is told")
	{
		char path[600];
		struct store_op put = {STORE_PUT, "run/000001/key", "w", 1};
		struct store_request request = {
			.then = &put, .then_count = 1, .group = "run/000001", .news = true};
		struct store_answer answer = {0};
		snprintf(path, sizeof(path), "%s.beats/run/000001/news", path_of("uncounted.db"));
		CHECK_EQ(unlink(path), 0);
		CHECK_EQ(mkdir(path, 0700), 0);
		CHECK_EQ(await(store, &awaited, clock_after(PATIENCE)), STATUS_OK);
		CHECK_EQ(awaited.heard, 0);
		CHECK_EQ(store_txn(other, &request, &answer, &err), STATUS_OK);
		CHECK_EQ(answer.news, 0);
		store_answer_release(&answer);
		CHECK_EQ(store_await_news(store, &awaited, clock_after(PATIENCE), -1, &err),
			STATUS_OK);
	}
	store_close(other);
	store_close(store);
}

int main(void)
{
	scratch_make();
	locks();
	foreign();
	threads();
	peeks();
	busy();
	uncounted();
	polls();
	instants();
	moves();
	groups();
	beats_without_room();
	scratch_remove();
	return unit_end();
}
