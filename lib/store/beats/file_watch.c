/* SPDX-License-Identifier: MIT */
/*
 * What tells of the change of a file:
 * - on a filesystem of this machine: inotify on it;
 * - else: one process of this machine reads its counter now and then and tells the others through
 *   a doorbell (doorbell.h); so does every process that changes it. inotify on that.
 */
#include <errno.h>
#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/sqlite/session.h"

/* All in milliseconds. */
#define POLLER_LOST  3000 /* the poller has not looked for this long: look ourselves */
#define LOCAL_EVERY  5000 /* where inotify should tell */
#define UNTOLD_EVERY 100  /* on this machine where inotify cannot be had */
#define BUSY_AGAIN   2	  /* another thread of ours is at work on the database */
#define ARM_AGAIN    2000 /* between two tries to have inotify */
#define CACHED_FOR   1000 /* how old a counter may be that was read without a lock */

void lookout_init(struct lookout *lookout)
{
	*lookout = (struct lookout){.inotify = -1, .descriptor = -1};
}

void lookout_release(struct lookout *lookout)
{
	if (lookout->inotify >= 0)
		close(lookout->inotify);
	doorbell_close(&lookout->doorbell);
	lookout_init(lookout);
}

/* The doorbell, where others than this machine may change the file. */
static struct doorbell *doorbell_of(
	struct sqlite_store *store, struct lookout *lookout, const struct watched *watched)
{
	struct stat st;
	if (!store->base.local && !lookout->asked && watched->identity(store, &st) == 0) {
		lookout->asked = true;
		(void)doorbell_open(&lookout->doorbell, st.st_dev, st.st_ino);
	}
	return &lookout->doorbell;
}

/* Have inotify watch what will tell, if it can. */
static void arm(struct sqlite_store *store, struct lookout *lookout, const struct watched *watched)
{
	const struct doorbell *doorbell = doorbell_of(store, lookout, watched);
	const char *path = store->base.local ? watched->path : doorbell->path;
	if (lookout->descriptor >= 0 || (!store->base.local && !doorbell->page) ||
		clock_now() < lookout->arm_at)
		return;
	lookout->arm_at = clock_after(ARM_AGAIN);
	if (lookout->inotify < 0)
		lookout->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (lookout->inotify >= 0)
		lookout->descriptor = inotify_add_watch(lookout->inotify, path,
			IN_MODIFY | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF);
}

/* Read away what inotify tells. True: the file itself is gone or another one. */
static bool drain(struct lookout *lookout)
{
	char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	bool replaced = false;
	ssize_t n;
	while (lookout->inotify >= 0 && (n = read(lookout->inotify, events, sizeof(events))) > 0) {
		for (char *at = events; at < events + n;) {
			const struct inotify_event *event = (const void *)at;
			replaced |= event->wd == lookout->descriptor &&
				    (event->mask & ~(uint32_t)IN_MODIFY) != 0;
			at += sizeof(*event) + event->len;
		}
	}
	if (replaced) {
		inotify_rm_watch(lookout->inotify, lookout->descriptor);
		lookout->descriptor = -1;
		lookout->arm_at = 0;
	}
	return replaced;
}

/* Read the counter in the file, without any lock. */
static void read_file(struct sqlite_store *store, struct lookout *lookout,
	const struct watched *watched, uint32_t known, struct glimpse *look)
{
	switch (watched->read(store, &look->counter)) {
	case READING_BUSY:
		look->hint = HINT_BUSY;
		look->next = clock_after(BUSY_AGAIN);
		return;
	case READING_FAILED: look->hint = HINT_DIFFERENT; return;
	case READING_RIGHT: break;
	}
	if (!store->base.local)
		doorbell_tell(&lookout->doorbell, look->counter, true);
	look->hint = look->counter == known ? HINT_SAME : HINT_DIFFERENT;
}

struct glimpse lookout_look(struct sqlite_store *store, struct lookout *lookout,
	const struct watched *watched, uint32_t known)
{
	struct doorbell *doorbell = &lookout->doorbell;
	struct glimpse look = {.hint = HINT_DIFFERENT};
	arm(store, lookout, watched);
	if (drain(lookout))
		return look;
	int64_t now = clock_now();
	look.as_of = store->base.local ? now : now - CACHED_FOR;
	if (store->base.local) {
		look.next = now + (lookout->descriptor >= 0 ? LOCAL_EVERY : UNTOLD_EVERY);
	} else if (doorbell->page && !doorbell_poller_try(doorbell) &&
		   now - doorbell_polled(doorbell) < POLLER_LOST) {
		bool told = lookout->descriptor >= 0;
		look.as_of = doorbell_polled(doorbell) - CACHED_FOR;
		look.next = told ? doorbell_polled(doorbell) + POLLER_LOST : now + UNTOLD_EVERY;
		look.counter = doorbell_counter(doorbell);
		look.hint = look.counter == known ? HINT_SAME : HINT_DIFFERENT;
		return look;
	} else {
		look.next = now + watched->every * 3 / 4 + clock_jitter(watched->every / 2);
	}
	read_file(store, lookout, watched, known, &look);
	return look;
}

void lookout_sleep(const struct lookout *lookout, int64_t deadline, int wake)
{
	struct pollfd pollers[] = {
		{.fd = wake, .events = POLLIN},
		{.fd = lookout->descriptor >= 0 ? lookout->inotify : -1, .events = POLLIN},
	};
	(void)poll(pollers, 2, clock_poll_timeout(deadline));
}

void lookout_tell(struct sqlite_store *store, struct lookout *lookout,
	const struct watched *watched, uint32_t counter)
{
	doorbell_tell(doorbell_of(store, lookout, watched), counter, false);
}

void lookout_rest(struct lookout *lookout)
{
	doorbell_poller_leave(&lookout->doorbell);
}
