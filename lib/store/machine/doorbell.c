/* SPDX-License-Identifier: MIT */
#include "store/machine/doorbell.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/machine/shared_page.h"

struct doorbell_page {
	struct shared_page head;
	_Atomic int64_t polled;
	_Atomic uint32_t counter;
	uint32_t bell; /* written through the descriptor, because inotify reports only that */
};

bool doorbell_open(struct doorbell *doorbell, dev_t device, ino_t inode)
{
	*doorbell = (struct doorbell){0};
	/* No nonce: a page left by a deleted file with this inode number can be used. */
	const struct shared_page_file file = {device, inode, ""};
	const struct shared_page_kind kind = {
		.name = "bell2", .size = sizeof(struct doorbell_page)};
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
	uint32_t any = doorbell->page->counter;
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

uint32_t doorbell_counter(const struct doorbell *doorbell)
{
	return doorbell->page->counter;
}

int64_t doorbell_polled(const struct doorbell *doorbell)
{
	return doorbell->page->polled;
}

void doorbell_tell(struct doorbell *doorbell, uint32_t counter)
{
	struct doorbell_page *page = doorbell->page;
	if (!page)
		return;
	page->head.used = clock_now();
	uint32_t known = page->counter;
	while ((int32_t)(counter - known) > 0)
		if (atomic_compare_exchange_weak(&page->counter, &known, counter)) {
			ring(doorbell);
			return;
		}
}

void doorbell_tell_polled(struct doorbell *doorbell, uint32_t counter, int64_t began)
{
	struct doorbell_page *page = doorbell->page;
	if (!page)
		return;
	page->head.used = clock_now();
	/* First the counter: a process that reads the new time must not find the old counter. */
	bool news = atomic_exchange(&page->counter, counter) != counter;
	page->polled = began;
	if (news)
		ring(doorbell);
}
