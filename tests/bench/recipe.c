/* SPDX-License-Identifier: MIT */
/*
 * recipe DIRECTORY COUNT: what the locks around SQLite cost where no other process wants them. The
 * median of COUNT synced transactions that put one key, in microseconds, one line each: "kept" bare
 * SQLite on a connection that stays open, "bare" with one opened for each transaction, and a store
 * with lock=fcntl and lock=link. They take turns, so that all see the same disk.
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

static sqlite3 *open_bare(const char *directory, const char *name)
{
	char path[512];
	sqlite3 *database;
	snprintf(path, sizeof(path), "%s/%s.db", directory, name);
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
static void make_bare(const char *directory, const char *name)
{
	sqlite3 *database = open_bare(directory, name);
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

static struct store *open_store(const char *directory, const char *mode)
{
	char url[512];
	struct store *store;
	struct error err;
	snprintf(url, sizeof(url), "%s/%s.db?lock=%s", directory, mode, mode);
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
	static const char *const names[] = {"kept", "bare", "fcntl", "link"};
	static double took[4][MOST];
	int count = argc == 3 ? atoi(argv[2]) : 0;
	if (count < 1 || count > MOST)
		return 2;
	make_bare(argv[1], "kept");
	make_bare(argv[1], "bare");
	sqlite3 *kept = open_bare(argv[1], "kept");
	struct store *fcntl = open_store(argv[1], "fcntl"), *link = open_store(argv[1], "link");
	for (int i = 0; i < count; i++) {
		double at = now();
		put_bare(kept, i);
		took[0][i] = now() - at;
		at = now();
		sqlite3 *bare = open_bare(argv[1], "bare");
		put_bare(bare, i);
		sqlite3_close(bare);
		took[1][i] = now() - at;
		at = now();
		put(fcntl, i);
		took[2][i] = now() - at;
		at = now();
		put(link, i);
		took[3][i] = now() - at;
	}
	for (int i = 0; i < 4; i++) {
		qsort(took[i], (size_t)count, sizeof(double), compare);
		printf("%s %.1f\n", names[i], took[i][count / 2]);
	}
	store_close(fcntl);
	store_close(link);
	sqlite3_close(kept);
	return 0;
}
