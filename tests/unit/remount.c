/* SPDX-License-Identifier: MIT */
/*
 * A store whose directory goes away and comes back while it is open, as when its filesystem is
 * unmounted and mounted again: then device and inode are others. A copy of the directory in its
 * place looks the same to us.
 */
#include "store/store.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "scratch.h"
#include "unit.h"

#define PATIENCE 120000

static struct error err;

static void shell(const char *command)
{
	if (system(command) != 0) {
		printf("# failed: %s\n", command);
		exit(99);
	}
}

static void remove_stores(const char *directory)
{
	scratch_forget(directory);
	(void)file_remove_tree(directory, NULL);
}

static struct store *open_store(const char *parameters, unsigned flags)
{
	char url[128];
	struct store *store = NULL;
	snprintf(url, sizeof(url), "d/s.db%s", parameters);
	if (store_open(&store, url, flags, clock_after(PATIENCE), &err) != STATUS_OK) {
		printf("# cannot open %s: %s\n", url, err.text);
		exit(99);
	}
	store_set_patience(store, PATIENCE);
	return store;
}

static enum status put(struct store *store, const char *key)
{
	enum status status = store_put(store, key, "value", NULL, &err);
	if (status != STATUS_OK)
		printf("# %d: %s\n", status, err.text);
	return status;
}

static bool has(struct store *store, const char *key)
{
	struct store_entry entry = {0};
	bool there = store_get(store, key, &entry, &err) == STATUS_OK;
	store_entry_release(&entry);
	return there;
}

/* Whether we have something open below scratch that is not in d, or is no more. */
static bool keeps_what_is_gone(void)
{
	bool found = false;
	char target[PATH_MAX], here[128];
	DIR *entries = opendir("/proc/self/fd");
	snprintf(here, sizeof(here), "%s/d/", scratch);
	for (struct dirent *entry; (entry = readdir(entries));) {
		ssize_t n = readlinkat(dirfd(entries), entry->d_name, target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = '\0';
		found |= !strncmp(target, scratch, strlen(scratch)) &&
			 (strncmp(target, here, strlen(here)) != 0 || strstr(target, "(deleted)"));
	}
	closedir(entries);
	return found;
}

static void goes_and_comes(const char *parameters)
{
	if (mkdir("d", 0700) != 0)
		exit(99);
	struct store *store = open_store(parameters, STORE_CREATE);
	store_revision revision = 0;
	int ended = -1;
	CHECK_EQ(put(store, "first"), STATUS_OK);
	printf("# %s\n", parameters);

	TEST("while it is not mounted: could not ask, nothing is made, and nothing kept open")
	{
		struct store *beating = open_store(parameters, 0);
		struct store_beat beat = {.token = 1};
		shell("mv d away && mkdir -m 700 d");
		CHECK(store_beat(beating, "run/1", 0, &beat, &err) != STATUS_OK);
		CHECK_EQ(put(store, "nowhere"), STATUS_TEMPORARY);
		CHECK(strstr(err.text, "no longer mounted") || strstr(err.text, "moved away"));
		CHECK(!keeps_what_is_gone());
		CHECK_EQ(put(store, "nowhere"), STATUS_TEMPORARY);
		CHECK(strstr(err.text, "no longer mounted") || strstr(err.text, "moved away"));
		CHECK_EQ(rmdir("d"), 0);
		CHECK_EQ(put(store, "nowhere"), STATUS_TEMPORARY);
		CHECK_EQ(store_wait(store, "", &revision, clock_after(PATIENCE), -1, &err),
			STATUS_TEMPORARY);
		store_close(beating);
	}
	TEST("another store in its place is not it, and is left alone")
	{
		shell("mkdir -m 700 d");
		struct store *other = open_store(parameters, STORE_CREATE);
		CHECK_EQ(put(store, "nowhere"), STATUS_TEMPORARY);
		CHECK(!has(other, "nowhere"));
		store_close(other);
		remove_stores("d");
		shell("mv away d");
		CHECK_EQ(put(store, "fourth"), STATUS_OK);
	}
	TEST("who waits learns of a change that was made after it was mounted again")
	{
		enum status status;
		CHECK_EQ(store_put(store, "before", "value", &revision, &err), STATUS_OK);
		fflush(stdout);
		pid_t pid = fork();
		if (pid == 0) {
			shell("mv d old && cp -a old d");
			struct store *other = open_store(parameters, 0);
			_exit(put(other, "awaited") == STATUS_OK ? 0 : 1);
		}
		int64_t end = clock_after(PATIENCE);
		do
			status = store_wait(store, "awaited", &revision, end, -1, &err);
		while (status == STATUS_TEMPORARY && clock_now() < end);
		CHECK_EQ(status, STATUS_OK);
		CHECK(has(store, "awaited"));
		CHECK(waitpid(pid, &ended, 0) == pid && ended == 0);
		remove_stores("old");
	}
	unit_begin(NULL);
	store_close(store);
	remove_stores("d");
}

int main(void)
{
	scratch_make();
	if (chdir(scratch) != 0)
		return 99;
	goes_and_comes("?lock=fcntl&assume=shared");
	goes_and_comes("?lock=link&assume=shared");
	scratch_remove();
	return unit_end();
}
