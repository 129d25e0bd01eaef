/* SPDX-License-Identifier: MIT */
/*
 * What the SQLite backend remembers of deleted keys: enough that no waiting process misses one, and
 * so little that a store with many changes does not grow.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "scratch_store.h"
#include "store/sqlite/session.h"
#include "unit.h"

enum {
	REMEMBERED = 512, /* revisions, as compact.c has it */
	GATHERED = 16,
};

/*
 * With the database as sqlite3 sees it, while no process uses it: run, and the first number it
 * answers.
 */
static int64_t ask(const char *name, const char *sql)
{
	sqlite3 *database = NULL;
	sqlite3_stmt *statement = NULL;
	int64_t number = -1;
	int code = SQLITE_ERROR;
	if (sqlite3_open(scratch_path(name), &database) == SQLITE_OK &&
		sqlite3_prepare_v2(database, sql, -1, &statement, NULL) == SQLITE_OK)
		code = sqlite3_step(statement);
	if (code == SQLITE_ROW)
		number = sqlite3_column_int64(statement, 0);
	else if (code != SQLITE_DONE)
		printf("# %s: %s\n", sql, sqlite3_errmsg(database));
	sqlite3_finalize(statement);
	sqlite3_close(database);
	return number;
}

#define COUNT_GONE "SELECT count(*) FROM gone"
#define FLOOR	   "SELECT floor FROM meta"
#define REVISION   "SELECT revision FROM meta"
#define SOUND	   "SELECT integrity_check='ok' FROM pragma_integrity_check"

/* One transaction; put or delete may be NULL. */
static enum status put_and_delete(struct store *store, const char *put, const char *delete)
{
	struct store_op ops[2];
	size_t count = 0;
	if (put)
		ops[count++] = (struct store_op){STORE_PUT, put, "v", 1};
	if (delete)
		ops[count++] = (struct store_op){.kind = STORE_DELETE, .key = delete};
	struct store_request request = {.then = ops, .then_count = count};
	struct store_answer answer = {0};
	enum status status = store_txn(store, &request, &answer, &err);
	store_answer_release(&answer);
	return status;
}

/* Let `revisions` pass in each of which one key goes and one comes. */
static void pass(struct store *store, int revisions)
{
	static int passed;
	for (int i = 0; i < revisions; i++) {
		char put[32], delete[32];
		snprintf(put, sizeof(put), "passing/%08d", passed + 1);
		snprintf(delete, sizeof(delete), "passing/%08d", passed++);
		if (!CHECK_EQ(put_and_delete(store, put, delete), STATUS_OK))
			return;
	}
}

static enum status wait_since(struct store *store, const char *prefix, store_revision since)
{
	return store_wait(store, prefix, &since, clock_now() - 1, -1, &err);
}

static void waits(void)
{
	const char *name = "waits.db";
	struct store *store = scratch_store(name);
	store_revision put = 0, again = 0;

	TEST("while it is remembered, a deletion is seen by those that do not know it, and no others")
	{
		CHECK_EQ(store_put(store, "p/1", "v", &put, &err), STATUS_OK);
		CHECK_EQ(store_delete(store, "p/1", &err), STATUS_OK);
		CHECK_EQ(wait_since(store, "p/", put), STATUS_OK);
		CHECK_EQ(wait_since(store, "p/", 0), STATUS_OK);
		CHECK_EQ(wait_since(store, "p/", put + 1), STATUS_TIMEOUT);
		CHECK_EQ(wait_since(store, "q/", put), STATUS_TIMEOUT);
		CHECK_EQ(wait_since(store, "q/", 0), STATUS_TIMEOUT);
		CHECK_EQ(ask(name, COUNT_GONE), 1);
	}
	TEST("a key that was put again after it was deleted: the put is seen, then nothing")
	{
		CHECK_EQ(store_put(store, "p/1", "w", &again, &err), STATUS_OK);
		CHECK_EQ(wait_since(store, "p/", put), STATUS_OK);
		CHECK_EQ(wait_since(store, "p/", put + 1), STATUS_OK);
		CHECK_EQ(wait_since(store, "p/", again), STATUS_TIMEOUT);
		CHECK_EQ(store_delete(store, "p/1", &err), STATUS_OK);
		CHECK_EQ(wait_since(store, "p/", again), STATUS_OK);
	}
	TEST("a deletion that was forgotten while a process waited still wakes it")
	{
		pass(store, REMEMBERED + 2 * GATHERED);
		CHECK_EQ(ask(name, "SELECT count(*) FROM gone WHERE key=CAST('p/1' AS BLOB)"), 0);
		int64_t floor = ask(name, FLOOR);
		CHECK(floor > again && floor < again + 4 * GATHERED);
		CHECK_EQ(wait_since(store, "p/", put), STATUS_OK);
		CHECK_EQ(wait_since(store, "p/", again), STATUS_OK);
		CHECK_EQ(wait_since(store, "p/", 0), STATUS_OK);
		/* One that is woken in vain goes on from the revision returned, and is not woken
		 * again. */
		store_revision seen = floor - 1;
		CHECK_EQ(store_wait(store, "q/", &seen, clock_after(60000), -1, &err), STATUS_OK);
		CHECK_EQ(seen, ask(name, REVISION));
		CHECK_EQ(wait_since(store, "q/", seen), STATUS_TIMEOUT);
		CHECK_EQ(wait_since(store, "q/", floor), STATUS_TIMEOUT);
	}
	store_close(store);
}

static void bounds(void)
{
	const char *name = "bounds.db";
	struct store *store = scratch_store(name);

	TEST("through 2,000 puts and deletions a store grows no more than through the first 1,000")
	{
		int64_t most = 0, pages = 0;
		for (int i = 0; i < 20; i++) {
			pass(store, 100);
			int64_t gone = ask(name, COUNT_GONE);
			most = gone > most ? gone : most;
			if (i == 9)
				pages = ask(name, "PRAGMA page_count");
		}
		CHECK(most > REMEMBERED && most <= REMEMBERED + 2 * GATHERED);
		CHECK(ask(name, "PRAGMA page_count") <= pages + 2);
		CHECK_EQ(ask(name, "SELECT count(*) FROM keys"), 1);
		CHECK(ask(name, "SELECT min(revision) FROM gone") > ask(name, FLOOR));
	}
	store_close(store);
}

int main(void)
{
	scratch_in_memory();
	scratch_make();
	waits();
	bounds();
	scratch_remove();
	return unit_end();
}
