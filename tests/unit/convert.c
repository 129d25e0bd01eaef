/* SPDX-License-Identifier: MIT */
/*
 * doctor --fix: who had the store open, and was not seen, cannot go on as if nothing had been.
 * With an argument, a store that is to be fixed: tests/crash/store.rows kills it at each of its
 * calls.
 */
#include "store/convert.h"

#include "base/clock.h"
#include "scratch.h"
#include "store/store.h"
#include "unit.h"

static enum status fix(const char *database, struct error *err)
{
	enum lock_mode now = LOCK_AUTO;
	struct parameters parameters = {.takeover = 5000};
	return convert_mode(database, &parameters, LOCK_LINK, 0, &now, err);
}

int main(int argc, char **argv)
{
	struct error err = {0};
	struct store *store = NULL;
	struct store_entry entry = {0};
	char database[128];
	if (argc == 2) {
		enum status status = fix(argv[1], &err);
		fprintf(stderr, "%s\n", err.text);
		return (int)status;
	}
	scratch_make();
	snprintf(database, sizeof(database), "%s/run.db", scratch);
	TEST("who had it open without having been seen is refused afterwards")
	{
		int64_t deadline = clock_after(60000);
		CHECK_EQ(store_open(&store, database, STORE_CREATE, deadline, &err), STATUS_OK);
		CHECK_EQ(store_put(store, "k", "v", NULL, &err), STATUS_OK);
		CHECK_EQ(fix(database, &err), STATUS_OK);
		CHECK_EQ(store_get(store, "k", &entry, &err), STATUS_DAMAGED);
		CHECK_EQ(store_put(store, "k", "lost", NULL, &err), STATUS_DAMAGED);
		store_close(store);
	}
	scratch_remove();
	return unit_end();
}
