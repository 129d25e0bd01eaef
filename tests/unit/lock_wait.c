/* SPDX-License-Identifier: MIT */
/*
 * Mode fcntl with a server that does not answer: the caller's patience holds; and with one that
 * says that another machine has the lock.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "scratch.h"
#include "store/lock/lock.h"
#include "store/sqlite/session.h"
#include "unit.h"

#define PATIENCE 300   /* milliseconds, of one whom no process answers */
#define HANG	 60000 /* and after so many it is one that hangs */

static struct error err;
static _Atomic bool silent;	    /* the server, about locks */
static _Atomic bool held_elsewhere; /* it says so */
static _Atomic int waiting, asked;  /* requests */

/* In the place of libc's. */
int fcntl(int descriptor, int command, ...)
{
	va_list arguments;
	va_start(arguments, command);
	void *argument = va_arg(arguments, void *);
	va_end(arguments);
	const struct flock *lock = argument;
	if (command == F_OFD_SETLK && lock->l_type == F_WRLCK) {
		asked++;
		waiting++;
		while (silent)
			poll(NULL, 0, 1);
		waiting--;
		if (held_elsewhere) {
			errno = EAGAIN;
			return -1;
		}
	}
	return (int)syscall(SYS_fcntl, descriptor, command, argument);
}

int fcntl64(int descriptor, int command, ...) __attribute__((alias("fcntl")));

static struct store *open_store(void)
{
	struct store *store = NULL;
	char url[512];
	snprintf(url, sizeof(url), "%s/run.db?assume=shared&lock=fcntl", scratch);
	CHECK_EQ(store_open(&store, url, STORE_CREATE, clock_after(HANG), &err), STATUS_OK);
	store_set_patience(store, PATIENCE);
	return store;
}

/* A put that is not answered, and in time. */
static void put_in_vain(struct store *store)
{
	int64_t began = clock_now();
	CHECK_EQ(store_put(store, "k", "v", NULL, &err), STATUS_TEMPORARY);
	CHECK(clock_now() - began >= PATIENCE && clock_now() - began < HANG);
	if (!strstr(err.text, "did not answer in time"))
		printf("# %s\n", err.text);
	CHECK(strstr(err.text, "did not answer in time") && strstr(err.text, "grace period"));
	CHECK(!strstr(err.text, "another machine"));
}

static void answer(void)
{
	silent = false;
	for (int64_t until = clock_after(HANG); waiting && clock_now() < until;)
		poll(NULL, 0, 1);
	CHECK_EQ(waiting, 0);
}

/*
 * What is said where a machine that died keeps its locks for so long; outlived as in filesystem.h.
 */
static const char *busy_where(int outlived)
{
	struct lock lock;
	char database[512];
	struct lockfile_terms terms = {.database = database,
		.mode = LOCK_FCNTL,
		.traits = {.reach = FILESYSTEM_SHARED, .name = "NFS", .outlived = outlived}};
	snprintf(database, sizeof(database), "%s/run.db", scratch);
	lock_init(&lock);
	CHECK_EQ(lock_open(&lock, &terms, clock_after(HANG), &err), STATUS_OK);
	held_elsewhere = true;
	CHECK_EQ(lock_acquire(&lock, clock_after(PATIENCE), &err), STATUS_TEMPORARY);
	held_elsewhere = false;
	lock_close(&lock);
	CHECK(strstr(err.text, "another machine, user or container holds"));
	return err.text;
}

int main(void)
{
	scratch_make();
	struct store *store = open_store(), *other = open_store();
	store_set_patience(other, HANG);
	TEST("a server that does not answer: 75 when the patience is over, with the cause")
	{
		CHECK_EQ(store_put(store, "k", "v", NULL, &err), STATUS_OK);
		silent = true;
		put_in_vain(store);
	}
	TEST("as long as it does not, it is not asked again and again")
	{
		int before = asked;
		put_in_vain(store);
		put_in_vain(store);
		CHECK_EQ(asked, before);
		CHECK_EQ(waiting, 1);
	}
	TEST("a lock that comes when no process waits for it any more is given back at once")
	{
		answer();
		CHECK_EQ(store_put(other, "k", "w", NULL, &err), STATUS_OK);
	}
	TEST("and then all goes on")
	{
		store_set_patience(store, HANG);
		CHECK_EQ(store_put(store, "k", "v", NULL, &err), STATUS_OK);
		CHECK_EQ(store_put(other, "k", "w", NULL, &err), STATUS_OK);
		store_set_patience(store, PATIENCE);
	}
	TEST("one that is closed while it waits keeps no process out later")
	{
		silent = true;
		put_in_vain(store);
		store_close(store);
		answer();
		CHECK_EQ(store_put(other, "k", "w", NULL, &err), STATUS_OK);
	}
	TEST("another machine holds it: for how long, should it have lost its power")
	{
		CHECK(strstr(busy_where(FILESYSTEM_FOR_EVER),
			"lost its power holds it until it boots again"));
		CHECK(strstr(busy_where(90), "lost its power holds it for about 90 s"));
		CHECK(!strstr(busy_where(0), "power"));
	}
	store_close(other);
	scratch_remove();
	return unit_end();
}
