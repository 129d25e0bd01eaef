/* SPDX-License-Identifier: MIT */
/* What only the SQLite backend has. Kills, errors and stops at each of its calls: tests/crash. */
#include "store/sqlite/session.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scratch_store.h"
#include "unit.h"

#define AT_ONCE 30000 /* ms: no machine is so busy that what need not wait takes that */

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
		struct sqlite_store *store = (struct sqlite_store *)scratch_store(name);
		if (lock_take(&store->lock, clock_after(60000), &err) != STATUS_OK ||
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
	struct store *store = scratch_store("held.db");

	TEST("a holder that is killed wakes one that waits for it already")
	{
		pid_t holder = start_holder("held.db");
		store_set_patience(store, STORE_PATIENCE);
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
	TEST("who has waited in vain does not get the lock later")
	{
		pid_t holder = start_holder("held.db");
		store_set_patience(store, 50);
		CHECK_EQ(store_put(store, "k", "v", NULL, &err), STATUS_TEMPORARY);
		kill_and_reap(holder);
		kill_and_reap(start_holder("held.db"));
	}
	TEST("a child that inherits the descriptor of the lock does not keep it")
	{
		struct sqlite_store *inside = (struct sqlite_store *)store;
		CHECK_EQ(lock_take(&inside->lock, clock_after(60000), &err), STATUS_OK);
		fflush(stdout);
		pid_t child = fork();
		if (child == 0)
			for (;;)
				pause();
		(void)lock_give(&inside->lock);
		struct store *other = scratch_store("held.db");
		store_set_patience(other, STORE_PATIENCE);
		CHECK_EQ(store_put(other, "k", "v", NULL, &err), STATUS_OK);
		store_close(other);
		kill_and_reap(child);
	}
	store_close(store);
}

static void foreign(void)
{
	TEST("another program at work on the database: temporary within the patience")
	{
		struct store *store = scratch_store("foreign.db");
		sqlite3 *database = NULL;
		store_set_patience(store, 200);
		fflush(stdout);
		int ready[2];
		char byte;
		CHECK_EQ(pipe(ready), 0);
		pid_t pid = fork();
		if (pid == 0) {
			(void)sqlite3_open(scratch_path("foreign.db"), &database);
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
		store_set_patience(store, STORE_PATIENCE);
		CHECK_EQ(store_put(store, "k", "v", NULL, &err), STATUS_OK);
		store_close(store);
	}
}

/* Another machine writes: no page of ours is told, only the file changes. */
static void write_from_elsewhere(const char *name)
{
	sqlite3 *database = NULL;
	(void)sqlite3_open(scratch_path(name), &database);
	/* Those that wait read now and then. */
	sqlite3_busy_timeout(database, STORE_PATIENCE);
	if (sqlite3_exec(database,
		    "BEGIN IMMEDIATE; UPDATE meta SET revision=revision+1;"
		    "INSERT OR REPLACE INTO keys SELECT CAST('far' AS BLOB), x'41', revision FROM meta; COMMIT",
		    NULL, NULL, NULL) != SQLITE_OK)
		printf("# %s\n", sqlite3_errmsg(database));
	sqlite3_close(database);
}

static void polls(void)
{
	TEST("polled: a change from elsewhere wakes all")
	{
		struct store *store = NULL;
		char url[160];
		pid_t pids[4];
		snprintf(url, sizeof(url), "%s?assume=shared", scratch_path("polled.db"));
		CHECK_EQ(
			store_open(&store, url, STORE_CREATE, clock_after(60000), &err), STATUS_OK);
		fflush(stdout);
		for (int i = 0; i < 4; i++) {
			pids[i] = fork();
			if (pids[i] == 0) {
				store_revision seen = 0;
				_exit(store_open(&store, url, 0, clock_after(60000), &err) ||
					store_wait(store, "", &seen, clock_after(STORE_PATIENCE),
						-1, &err));
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
		store_close(shared);
	}
}

/* As by preempt-store put, or by a program that cannot write the count. */
static void uncounted(void)
{
	struct store *store = scratch_store("uncounted.db"), *other = scratch_store("uncounted.db");
	struct store_awaited awaited = {
		.group = "run/000001", .prefix = "run/000001/", .every = 1000};
	TEST("who waits for news is told a change that no process counted")
	{
		CHECK_EQ(store_beats_prepare(store, awaited.group, 1, &err), STATUS_OK);
		CHECK_EQ(store_put(store, "run/000001/key", "v", &awaited.since, &err), STATUS_OK);
		uint32_t heard = awaited.heard = store_news(store, awaited.group);
		CHECK_EQ(store_put(other, "run/000001/key", "w", NULL, &err), STATUS_OK);
		CHECK_EQ(store_await_news(store, &awaited, clock_after(STORE_PATIENCE), -1, &err),
			STATUS_OK);
		CHECK_EQ(awaited.heard, heard);
	}
	store_close(other);
	store_close(store);
}

int main(void)
{
	scratch_make();
	locks();
	foreign();
	polls();
	groups();
	uncounted();
	scratch_remove();
	return unit_end();
}
