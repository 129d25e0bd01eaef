/* SPDX-License-Identifier: MIT */
/* How long one machine may have the lock while others wait for it. */
#include "store/machine/handoff.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "scratch.h"
#include "store/sqlite/session.h"
#include "unit.h"

static struct error err;

static struct sqlite_store *open_store(const char *mode)
{
	char url[512];
	struct store *store = NULL;
	snprintf(url, sizeof(url), "%s/%s.db?lock=%s&assume=shared", scratch, mode, mode);
	if (store_open(&store, url, STORE_CREATE, clock_after(60000), &err) != STATUS_OK) {
		printf("# cannot open %s: %s\n", url, err.text);
		exit(99);
	}
	return (struct sqlite_store *)store;
}

static bool hold(struct sqlite_store *store, int64_t patience, long milliseconds)
{
	struct timespec moment = {.tv_nsec = milliseconds * 1000000};
	if (lock_acquire(&store->lock, clock_after(patience), &err) != STATUS_OK)
		return false;
	nanosleep(&moment, NULL);
	lock_release(&store->lock);
	return true;
}

static _Atomic int *turns_taken; /* by the greedy one, shared */

/* One that has the lock all the time, except microseconds; killed with us. */
static pid_t start_greedy(const char *mode)
{
	int ready[2];
	char byte = 0;
	if (pipe(ready) < 0)
		exit(99);
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		struct sqlite_store *store = open_store(mode);
		bool good = store->lock.machine.page && hold(store, 60000, 1);
		(void)!write(ready[1], good ? "x" : "-", 1);
		/* Should our parent die, this ends. */
		for (int64_t end = clock_after(600000); good && clock_now() < end;)
			*turns_taken += good = hold(store, 60000, 50);
		_exit(1);
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1 || byte != 'x')
		byte = 0;
	close(ready[0]);
	return byte ? pid : -pid;
}

/* No page: as on another machine. */
static void starve(const char *mode)
{
	struct sqlite_store *store = open_store(mode);
	machine_close(&store->lock.machine);
	*turns_taken = 0;
	pid_t greedy = start_greedy(mode);
	if (greedy > 0) {
		/* It is in the middle of its turns. */
		while (*turns_taken < 3 && waitpid(greedy, NULL, WNOHANG) == 0)
			clock_sleep_until(clock_after(1));
		int64_t began = clock_now();
		/* By luck alone, without a pause, it takes about a minute. */
		CHECK(hold(store, 30000, 1));
		printf("# %s: waited %lld ms\n", mode, (long long)(clock_now() - began));
		CHECK_EQ(waitpid(greedy, NULL, WNOHANG), 0);
	} else {
		printf("# /dev/shm cannot be used: not tried\n");
	}
	kill(greedy > 0 ? greedy : -greedy, SIGKILL);
	waitpid(greedy > 0 ? greedy : -greedy, NULL, 0);
	store_close(&store->base);
}

int main(void)
{
	scratch_make();
	turns_taken = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	TEST("another machine gets the lock of one that never lets go of it, lock=fcntl")
	{
		starve("fcntl");
	}
	TEST("the same, lock=link")
	{
		starve("link");
	}
	scratch_remove();
	return unit_end();
}
