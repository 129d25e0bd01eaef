/* SPDX-License-Identifier: MIT */
/*
 * An older copy of the database is put back while others have it open: the revision goes back, and
 * no process misses what is written from then on.
 */
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "scratch.h"
#include "store/sqlite/session.h"
#include "unit.h"

#define PATIENCE 120000
#define AHEAD	 1024 /* so far above what it knew goes on who sees it (database.c) */

static struct error err;

static struct store *open_store(unsigned flags)
{
	struct store *store = NULL;
	if (store_open(&store, "s.db", flags, clock_after(PATIENCE), &err) != STATUS_OK) {
		printf("# cannot open it: %s\n", err.text);
		exit(99);
	}
	store_set_patience(store, PATIENCE);
	return store;
}

static void shell(const char *command)
{
	if (system(command) != 0) {
		printf("# failed: %s\n", command);
		exit(99);
	}
}

static store_revision put(struct store *store, const char *key)
{
	store_revision revision = -1;
	if (store_put(store, key, "value", &revision, &err) != STATUS_OK)
		printf("# %d: %s\n", err.status, err.text);
	return revision;
}

/* What a list since that revision shows, as "a b c"; *at: the store's revision. */
static const char *keys_since(struct store *store, store_revision since, store_revision *at)
{
	static char line[512];
	struct store_answer answer = {0};
	struct store_range range = {.since = since};
	*line = '\0';
	if (store_list(store, &range, &answer, &err) != STATUS_OK)
		return err.text;
	for (size_t i = 0; i < answer.count; i++)
		snprintf(line + strlen(line), sizeof(line) - strlen(line), "%s%s", i ? " " : "",
			answer.entries[i].key);
	*at = answer.revision;
	store_answer_release(&answer);
	return line;
}

static bool is_over_at_once(struct store *store, store_revision since)
{
	store_revision revision = since;
	return store_wait(store, "", &revision, clock_now(), -1, &err) == STATUS_OK &&
	       revision != since;
}

/* A process that has only seen the copy writes into it. */
static void write_into_copy(void)
{
	struct store *other = open_store(0);
	CHECK_EQ(put(other, "claim"), 3);
	/* So that the database does not have the change counter that one of them knows. */
	CHECK_EQ(put(other, "claim"), 4);
	CHECK(!store_was_set_back(other, &err));
	store_close(other);
}

static void set_back(void)
{
	store_revision at;
	struct store *first = open_store(STORE_CREATE);
	CHECK_EQ(put(first, "old"), 1);
	CHECK_EQ(put(first, "old"), 2);
	shell("cp s.db copy");

	struct store *second = open_store(0), *reader = open_store(STORE_READ_ONLY);
	CHECK_EQ(put(second, "lost"), 3);
	CHECK_EQ(put(second, "lost"), 4);
	TEST("nothing is put back: no process is told of it")
	{
		CHECK_TEXT(keys_since(second, 2, &at), "lost");
		CHECK_EQ(put(first, "lost too"), 5);
		CHECK_EQ(put(first, "lost too"), 6);
		CHECK_TEXT(keys_since(reader, 0, &at), "lost lost too old");
		CHECK_EQ(at, 6);
		CHECK(!store_was_set_back(first, &err) && !store_was_set_back(second, &err));
		CHECK(!is_over_at_once(first, 6));
	}
	shell("cp copy s.db");
	TEST("who may only read it sees what is written into the copy, and changes nothing")
	{
		write_into_copy();
		CHECK(is_over_at_once(reader, 6));
		CHECK_TEXT(keys_since(reader, 6, &at), "claim old");
		CHECK_EQ(at, 4);
	}
	TEST("the first who sees it goes on above all that it knew, and says so once")
	{
		CHECK(is_over_at_once(first, 6));
		CHECK_TEXT(keys_since(first, 6, &at), "claim old");
		CHECK_EQ(at, 6 + AHEAD);
		CHECK(store_was_set_back(first, &err));
		CHECK(strstr(err.text, "from revision 6 to 4: an older copy"));
		CHECK(!store_was_set_back(first, &err));
		CHECK(!is_over_at_once(first, 6 + AHEAD));
		CHECK_TEXT(keys_since(first, 6 + AHEAD, &at), "");
	}
	shell("cp copy s.db");
	TEST("who writes first is put above, too")
	{
		CHECK_EQ(put(first, "again"), 7 + 2 * AHEAD);
		CHECK(store_was_set_back(first, &err));
		CHECK_TEXT(keys_since(first, 6 + AHEAD, &at), "again old");
		CHECK_TEXT(keys_since(second, 6 + AHEAD, &at), "again old");
	}
	unit_begin(NULL);
	store_close(reader);
	store_close(second);
	store_close(first);
}

int main(void)
{
	scratch_make();
	if (chdir(scratch) != 0)
		return 99;
	set_back();
	scratch_remove();
	return unit_end();
}
