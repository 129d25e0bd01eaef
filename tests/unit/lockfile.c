/* SPDX-License-Identifier: MIT */
/* The lock file on a disk that takes its time. */
#include "store/lock/lockfile.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "scratch.h"
#include "store/store.h"
#include "unit.h"

static int64_t slow_ms;	  /* so long takes a sync */
static const char *rival; /* another process makes this lock file during the sync */

/* In the place of libc's. */
int fsync(int descriptor)
{
	if (slow_ms)
		clock_sleep_until(clock_after(slow_ms));
	if (rival && link(rival, "s.db.lock") != 0)
		return -1;
	rival = NULL;
	return (int)syscall(SYS_fsync, descriptor);
}

static enum status open_new(const char *database, struct error *err)
{
	struct store *store = NULL;
	enum status status = store_open(&store, database, STORE_CREATE, clock_after(60000), err);
	store_close(store);
	return status;
}

int main(void)
{
	struct error err = {0};
	scratch_make();
	if (chdir(scratch) != 0)
		return 99;
	slow_ms = 600;
	TEST("a store is made, however long the disk takes to sync its lock file")
	{
		CHECK_EQ(open_new("other.db", &err), STATUS_OK);
		if (err.status)
			printf("# %s\n", err.text);
	}
	TEST("and also where another was faster to make it")
	{
		rival = "other.db.lock";
		CHECK_EQ(open_new("s.db", &err), STATUS_OK);
		if (err.status)
			printf("# %s\n", err.text);
		CHECK(!rival);
	}
	scratch_remove();
	return unit_end();
}
