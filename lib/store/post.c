/* SPDX-License-Identifier: MIT */
#include "store/post.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/shared_page.h"

struct post_page {
	struct shared_page head;
	_Atomic int64_t polled;
	_Atomic uint32_t counter;
	uint32_t bell; /* only ever written through the descriptor, because inotify sees that */
};

bool post_open(struct post *post, dev_t device, ino_t inode)
{
	*post = (struct post){0};
	struct shared_page_kind kind = {.name = "post1", .size = sizeof(struct post_page)};
	post->page = shared_page_open(&kind, device, inode, &post->descriptor, post->path);
	return post->page;
}

void post_close(struct post *post)
{
	if (post->page) {
		post_poller_leave(post);
		munmap(post->page, sizeof(*post->page));
		close(post->descriptor);
	}
	*post = (struct post){0};
}

static struct flock poller_lock(short type)
{
	return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1};
}

bool post_poller_try(struct post *post)
{
	struct flock lock = poller_lock(F_WRLCK);
	if (post->page && !post->polling)
		post->polling = fcntl(post->descriptor, F_OFD_SETLK, &lock) == 0;
	return post->polling;
}

static void ring(struct post *post)
{
	uint32_t any = post->page->counter;
	(void)!pwrite(post->descriptor, &any, sizeof(any), offsetof(struct post_page, bell));
}

void post_poller_leave(struct post *post)
{
	struct flock lock = poller_lock(F_UNLCK);
	if (!post->page || !post->polling)
		return;
	post->polling = false;
	(void)fcntl(post->descriptor, F_OFD_SETLK, &lock);
	ring(post);
}

uint32_t post_counter(const struct post *post)
{
	return post->page ? post->page->counter : 0;
}

int64_t post_polled(const struct post *post)
{
	return post->page ? post->page->polled : INT64_MIN;
}

void post_tell(struct post *post, uint32_t counter, bool polled)
{
	if (!post->page)
		return;
	post->page->head.used = clock_now();
	if (polled)
		post->page->polled = post->page->head.used;
	if (atomic_exchange(&post->page->counter, counter) != counter)
		ring(post);
}
