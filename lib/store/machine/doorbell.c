/* SPDX-License-Identifier: MIT */
#include "store/machine/doorbell.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/machine/shared_page.h"

#define TICK 64 /* ms; 32 bits of them last eight years after the start of the machine */

struct doorbell_page {
	struct shared_page head;
	_Atomic uint64_t told; /* the last poll in ticks, and below it the counter: never apart */
	uint32_t bell; /* written through the descriptor, because inotify reports only that */
};

bool doorbell_open(struct doorbell *doorbell, dev_t device, ino_t inode)
{
	*doorbell = (struct doorbell){0};
	/* No nonce: a page left by a deleted file with this inode number can be used. */
	const struct shared_page_file file = {device, inode, ""};
	const struct shared_page_kind kind = {
		.name = "bell3", .size = sizeof(struct doorbell_page)};
	doorbell->page = shared_page_open(&kind, &file, &doorbell->descriptor, doorbell->path);
	return doorbell->page;
}

void doorbell_close(struct doorbell *doorbell)
{
	if (doorbell->page) {
		doorbell_stop_poll(doorbell);
		munmap(doorbell->page, sizeof(*doorbell->page));
		close(doorbell->descriptor);
	}
	*doorbell = (struct doorbell){0};
}

static struct flock poller_lock(short type)
{
	return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
}

bool doorbell_try_poll(struct doorbell *doorbell)
{
	struct flock lock = poller_lock(F_WRLCK);
	if (!doorbell->polling)
		doorbell->polling = fcntl(doorbell->descriptor, F_OFD_SETLK, &lock) == 0;
	return doorbell->polling;
}

static void ring(struct doorbell *doorbell)
{
	uint32_t any = (uint32_t)doorbell->page->told;
	(void)!pwrite(
		doorbell->descriptor, &any, sizeof(any), offsetof(struct doorbell_page, bell));
}

void doorbell_stop_poll(struct doorbell *doorbell)
{
	struct flock lock = poller_lock(F_UNLCK);
	if (!doorbell->polling)
		return;
	doorbell->polling = false;
	(void)fcntl(doorbell->descriptor, F_OFD_SETLK, &lock);
	ring(doorbell);
}

struct doorbell_news doorbell_look(const struct doorbell *doorbell)
{
	uint64_t told = doorbell->page ? doorbell->page->told : 0;
	return (struct doorbell_news){(uint32_t)told, (int64_t)(told >> 32) * TICK};
}

/*
 * Put in a counter that was read after `began`: the later poll counts, or else the newer counter.
 */
static void tell(struct doorbell *doorbell, uint32_t counter, int64_t began)
{
	struct doorbell_page *page = doorbell->page;
	if (!page)
		return;
	int64_t now = clock_now();
	page->head.used = now;
	uint64_t told = page->told, tick = (uint64_t)(began / TICK), made;
	do {
		uint64_t polled = told >> 32;
		if (polled > (uint64_t)(now / TICK)) /* by a container with another clock */
			polled = 0;
		bool newer = (int32_t)(counter - (uint32_t)told) > 0;
		if (tick <= polled && !newer)
			return;
		made = (tick > polled ? tick : polled) << 32 | counter;
	} while (!atomic_compare_exchange_weak(&page->told, &told, made));
	if ((uint32_t)made != (uint32_t)told)
		ring(doorbell);
}

void doorbell_tell(struct doorbell *doorbell, uint32_t counter)
{
	tell(doorbell, counter, 0);
}

void doorbell_tell_polled(struct doorbell *doorbell, uint32_t counter, int64_t began)
{
	tell(doorbell, counter, began);
}
