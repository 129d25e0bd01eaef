/* SPDX-License-Identifier: MIT */
/*
 * contend N STORE [plain]: N processes put one key each into one store, all at once; with "plain"
 * not into a store, but with SQLite alone and a busy timeout, where STORE is a path. Prints the
 * seconds of all, how many puts were acknowledged and are there, and the median and the longest
 * time of these in milliseconds.
 */
#include <poll.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/store.h"

#define PATIENCE 120000 /* ms */

static bool plain;
static const char *where;

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static sqlite3 *open_plain(void)
{
	sqlite3 *database = NULL;
	if (sqlite3_open(where, &database) != SQLITE_OK)
		exit(75);
	sqlite3_busy_timeout(database, PATIENCE);
	sqlite3_exec(database,
		"PRAGMA journal_mode=PERSIST; PRAGMA synchronous=FULL;"
		"CREATE TABLE IF NOT EXISTS keys(key TEXT PRIMARY KEY, value INTEGER) WITHOUT "
		"ROWID",
		NULL, NULL, NULL);
	return database;
}

static bool put_plain(int number)
{
	char sql[128];
	sqlite3 *database = open_plain();
	snprintf(sql, sizeof(sql), "BEGIN IMMEDIATE; INSERT INTO keys VALUES('%d', 1); COMMIT",
		number);
	bool good = sqlite3_exec(database, sql, NULL, NULL, NULL) == SQLITE_OK;
	sqlite3_close(database);
	return good;
}

static struct store *open_store(void)
{
	struct store *store;
	struct error err;
	if (store_open(&store, where, STORE_CREATE, clock_after(PATIENCE), &err) != STATUS_OK) {
		fprintf(stderr, "contend: %s\n", err.text);
		exit(75);
	}
	store_set_patience(store, PATIENCE);
	return store;
}

static bool put(int number)
{
	char key[16];
	struct error err;
	struct store *store = open_store();
	snprintf(key, sizeof(key), "%d", number);
	bool good = store_put(store, key, "1", NULL, &err) == STATUS_OK;
	store_close(store);
	return good;
}

/* How many keys are there; -1: the database is damaged. */
static int count_keys(void)
{
	int count = -1;
	sqlite3_stmt *select = NULL;
	sqlite3 *database = NULL;
	if (sqlite3_open_v2(where, &database, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
		sqlite3_prepare_v2(database,
			"SELECT count(*), integrity_check FROM keys, pragma_integrity_check", -1,
			&select, NULL) == SQLITE_OK &&
		sqlite3_step(select) == SQLITE_ROW &&
		!strcmp((const char *)sqlite3_column_text(select, 1), "ok"))
		count = sqlite3_column_int(select, 0);
	sqlite3_finalize(select);
	sqlite3_close(database);
	return count;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	int processes = argc > 2 ? atoi(argv[1]) : 0, go[2];
	if (processes < 1 || pipe(go) < 0)
		return 2;
	where = argv[2];
	plain = argc > 3;
	/* Milliseconds; 0: not acknowledged. They outlive the processes. */
	double *took = mmap(NULL, (size_t)processes * sizeof(*took), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (took == MAP_FAILED)
		return 75;
	for (int i = 0; i < processes; i++) {
		if (fork() != 0)
			continue;
		struct pollfd all = {.fd = go[0], .events = POLLIN};
		while (poll(&all, 1, -1) < 0)
			;
		double began = now();
		if (plain ? put_plain(i) : put(i))
			took[i] = now() - began;
		_exit(0);
	}
	double began = now();
	if (write(go[1], "", 1) != 1)
		return 75;
	while (wait(NULL) > 0)
		;
	double seconds = (now() - began) / 1e3;
	qsort(took, (size_t)processes, sizeof(*took), by_size);
	int first = 0, there = count_keys();
	while (first < processes && took[first] == 0)
		first++;
	int acknowledged = processes - first;
	printf("seconds %.2f acknowledged %d median_ms %.1f max_ms %.1f\n", seconds,
		there < acknowledged ? there : acknowledged,
		acknowledged ? took[first + acknowledged / 2] : 0, took[processes - 1]);
	return 0;
}
