/* SPDX-License-Identifier: MIT */
/*
 * recipe DIRECTORY COUNT: what the lock around SQLite costs where no other process wants it. The
 * median of COUNT synced transactions that put one key, in microseconds, one line each: "bare"
 * SQLite, opened for each transaction, and a store with lock=fcntl, "fcntl". They take turns, so
 * that both see the same disk.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "store/store.h"

#define MOST 10000

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static sqlite3 *open_bare(const char *directory)
{
	char path[512];
	sqlite3 *database;
	snprintf(path, sizeof(path), "%s/bare.db", directory);
	if (sqlite3_open(path, &database) != SQLITE_OK ||
		sqlite3_exec(database,
			"PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=PERSIST; PRAGMA synchronous=FULL",
			NULL, NULL, NULL) != SQLITE_OK)
		exit(75);
	return database;
}

static void put_bare(sqlite3 *database, int number)
{
	char sql[256];
	snprintf(sql, sizeof(sql),
		"BEGIN IMMEDIATE; SELECT nonce, revision FROM meta;"
		"INSERT INTO keys VALUES(CAST('k%d' AS BLOB), x'76', %d);"
		"UPDATE meta SET revision=%d; COMMIT",
		number, number, number);
	if (sqlite3_exec(database, sql, NULL, NULL, NULL) != SQLITE_OK)
		exit(75);
}

/* The same tables as a store has. */
static void make_bare(const char *directory)
{
	sqlite3 *database = open_bare(directory);
	if (sqlite3_exec(database,
		    "CREATE TABLE meta(nonce TEXT NOT NULL, revision INTEGER NOT NULL,"
		    " floor INTEGER NOT NULL);"
		    "CREATE TABLE keys(key BLOB NOT NULL PRIMARY KEY, value BLOB NOT NULL,"
		    " revision INTEGER NOT NULL) WITHOUT ROWID;"
		    "CREATE INDEX keys_revision ON keys(revision);"
		    "CREATE TABLE gone(revision, key, PRIMARY KEY(revision, key)) WITHOUT ROWID;"
		    "INSERT INTO meta VALUES('x', 0, 0)",
		    NULL, NULL, NULL) != SQLITE_OK)
		exit(75);
	sqlite3_close(database);
}

static struct store *open_store(const char *directory)
{
	char url[512];
	struct store *store;
	struct error err;
	snprintf(url, sizeof(url), "%s/fcntl.db?lock=fcntl", directory);
	if (store_open(&store, url, STORE_CREATE, clock_after(10000), &err) != STATUS_OK) {
		fprintf(stderr, "recipe: %s\n", err.text);
		exit(75);
	}
	return store;
}

static void put(struct store *store, int number)
{
	char key[32];
	struct error err;
	snprintf(key, sizeof(key), "k%d", number);
	if (store_put(store, key, "v", NULL, &err) != STATUS_OK) {
		fprintf(stderr, "recipe: %s\n", err.text);
		exit(75);
	}
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	static double bare_took[MOST], fcntl_took[MOST];
	int count = argc == 3 ? atoi(argv[2]) : 0;
	if (count < 1 || count > MOST)
		return 2;
	make_bare(argv[1]);
	struct store *fcntl = open_store(argv[1]);
	for (int i = 0; i < count; i++) {
		double at = now();
		sqlite3 *bare = open_bare(argv[1]);
		put_bare(bare, i);
		sqlite3_close(bare);
		bare_took[i] = now() - at;
		at = now();
		put(fcntl, i);
		fcntl_took[i] = now() - at;
	}
	qsort(bare_took, (size_t)count, sizeof(double), compare);
	qsort(fcntl_took, (size_t)count, sizeof(double), compare);
	printf("bare %.1f\nfcntl %.1f\n", bare_took[count / 2], fcntl_took[count / 2]);
	store_close(fcntl);
	return 0;
}
