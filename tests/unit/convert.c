/* SPDX-License-Identifier: MIT */
/*
 * How doctor --fix changes the way of locking of a store. "convert DATABASE" does only that: a row
 * of tests/crash/store.rows kills it at each of its calls.
 */
#include "store/convert.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "scratch.h"
#include "store/store.h"
#include "unit.h"

static char database[128], lock[160], fresh[160];

static void remove_store(void)
{
	char path[160];
	static const char *const rest[] = {"", "-journal", ".lock", ".lock-fix", ".lock.held"};
	for (size_t i = 0; i < sizeof(rest) / sizeof(rest[0]); i++) {
		snprintf(path, sizeof(path), "%s%s", database, rest[i]);
		(void)file_remove_tree(path, NULL);
	}
}

static enum status open_with(struct store **store, const char *parameters, struct error *err)
{
	char url[256];
	snprintf(url, sizeof(url), "%s%s", database, parameters);
	return store_open(store, url, 0, clock_after(60000), err);
}

static bool make_store(const char *parameters)
{
	char url[256];
	struct store *store;
	remove_store();
	snprintf(url, sizeof(url), "%s?%s", database, parameters);
	if (store_open(&store, url, STORE_CREATE, clock_after(60000), NULL) != STATUS_OK)
		return false;
	bool made = store_put(store, "k", "v", NULL, NULL) == STATUS_OK;
	store_close(store);
	return made;
}

/* What a user gets, and whether the value is there. */
static enum status use(bool *intact)
{
	struct store *store;
	struct store_entry entry = {0};
	struct error err = {0};
	enum status status = open_with(&store, "", &err);
	if (status != STATUS_OK)
		return status;
	status = store_get(store, "k", &entry, &err);
	*intact = status == STATUS_OK && !strcmp(entry.value, "v");
	store_entry_release(&entry);
	if (status == STATUS_OK)
		status = store_put(store, "other", "x", NULL, &err);
	store_close(store);
	return status;
}

static enum lock_mode recorded(void)
{
	struct lockfile file;
	enum lock_mode mode = LOCK_AUTO;
	if (lockfile_inspect(&file, lock, false, NULL) == STATUS_OK)
		mode = file.mode;
	CHECK(mode != LOCK_LINK || file.takeover == 5000);
	lockfile_close(&file);
	return mode;
}

static enum status fix(enum lock_mode mode, enum lock_mode *now, struct error *err)
{
	struct parameters parameters = {.takeover = 5000};
	return convert_mode(database, &parameters, mode, 0, now, err);
}

int main(int argc, char **argv)
{
	struct error err;
	enum lock_mode now = LOCK_AUTO;
	if (argc == 2) {
		snprintf(database, sizeof(database), "%s", argv[1]);
		snprintf(lock, sizeof(lock), "%s.lock", database);
		snprintf(fresh, sizeof(fresh), "%s.lock-fix", database);
		enum status status = fix(LOCK_LINK, &now, &err);
		fprintf(stderr, "%s\n", status == STATUS_OK ? "" : err.text);
		return (int)status;
	}
	scratch_make();
	snprintf(database, sizeof(database), "%s/run.db", scratch);
	snprintf(lock, sizeof(lock), "%s.lock", database);
	snprintf(fresh, sizeof(fresh), "%s.lock-fix", database);

	TEST("the mode is recorded, and what was in the store stays")
	{
		bool intact = false;
		CHECK(make_store("lock=fcntl"));
		CHECK_EQ(fix(LOCK_LINK, &now, &err), STATUS_OK);
		CHECK_EQ(now, LOCK_LINK);
		CHECK_EQ(recorded(), LOCK_LINK);
		CHECK_EQ(use(&intact), STATUS_OK);
		CHECK(intact);
		CHECK_EQ(fix(LOCK_FCNTL, &now, &err), STATUS_OK);
		CHECK_EQ(recorded(), LOCK_FCNTL);
		CHECK_EQ(use(&intact), STATUS_OK);
	}
	TEST("who had it open without having been seen is refused afterwards")
	{
		struct store *store = NULL;
		struct store_entry entry = {0};
		CHECK(make_store("lock=fcntl"));
		CHECK_EQ(open_with(&store, "", &err), STATUS_OK);
		CHECK_EQ(fix(LOCK_LINK, &now, &err), STATUS_OK);
		CHECK_EQ(store_get(store, "k", &entry, &err), STATUS_DAMAGED);
		CHECK_EQ(store_put(store, "k", "lost", NULL, &err), STATUS_DAMAGED);
		store_close(store);
	}
	TEST("nothing is to be finished where nothing was interrupted")
	{
		bool intact = false;
		CHECK(make_store("lock=fcntl"));
		CHECK_EQ(fix(LOCK_AUTO, &now, &err), STATUS_NO);
		CHECK_EQ(lockfile_write(fresh, LOCK_LINK, 0, false, &err), STATUS_OK);
		CHECK_EQ(fix(LOCK_AUTO, &now, &err), STATUS_NO);
		CHECK(access(fresh, F_OK) < 0);
		CHECK_EQ(recorded(), LOCK_FCNTL);
		CHECK_EQ(use(&intact), STATUS_OK);
	}
	TEST("a lock file of another store is not mended")
	{
		CHECK(make_store("lock=fcntl"));
		CHECK_EQ(lockfile_write(lock, LOCK_FCNTL, 0, false, &err), STATUS_OK);
		CHECK_EQ(lockfile_write(fresh, LOCK_LINK, 0, false, &err), STATUS_OK);
		CHECK_EQ(fix(LOCK_LINK, &now, &err), STATUS_DAMAGED);
		CHECK_EQ(recorded(), LOCK_FCNTL);
	}
	TEST("while another holds its lock nothing is changed")
	{
		int ready[2];
		char byte;
		CHECK(make_store("lock=fcntl"));
		CHECK_EQ(pipe(ready), 0);
		fflush(stdout);
		pid_t pid = fork();
		if (pid == 0) {
			struct flock flock = {.l_type = F_WRLCK, .l_start = 4096, .l_len = 1};
			int descriptor = open(lock, O_RDWR);
			if (fcntl(descriptor, F_OFD_SETLK, &flock) == 0)
				(void)!write(ready[1], "x", 1);
			pause();
		}
		CHECK_EQ(read(ready[0], &byte, 1), 1);
		CHECK_EQ(fix(LOCK_LINK, &now, &err), STATUS_TEMPORARY);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		close(ready[0]);
		close(ready[1]);
		CHECK_EQ(recorded(), LOCK_FCNTL);
		CHECK_EQ(fix(LOCK_LINK, &now, &err), STATUS_OK);
	}
	TEST("while a holder that was overtaken may still write, nothing is changed")
	{
		char held[170], name[220];
		bool intact = false;
		snprintf(held, sizeof(held), "%s.held", lock);
		snprintf(name, sizeof(name), "%s/abandoned-0123456789abcdef", held);
		CHECK(make_store("lock=link"));
		CHECK_EQ(mkdir(held, 0700), 0);
		close(open(name, O_WRONLY | O_CREAT, 0600));
		for (int i = 0; i < 2; i++)
			CHECK_EQ(fix(LOCK_FCNTL, &now, &err), STATUS_TEMPORARY);
		CHECK_EQ(recorded(), LOCK_LINK);
		CHECK_EQ(use(&intact), STATUS_OK);
		CHECK(intact);
		CHECK_EQ(fix(LOCK_FCNTL, &now, &err), STATUS_OK);
		CHECK_EQ(recorded(), LOCK_FCNTL);
	}
	remove_store();
	scratch_remove();
	return unit_end();
}
