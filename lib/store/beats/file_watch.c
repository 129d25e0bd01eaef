/* SPDX-License-Identifier: MIT */
#include "store/beats/file_watch.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/clock.h"

/* All in milliseconds. */
#define LOCAL_EVERY  5000 /* between two looks at a local file, with inotify */
#define UNTOLD_EVERY 100  /* the same without inotify */
#define BUSY_AGAIN   2	  /* until another thread of ours may be done with the database */
#define ARM_AGAIN    2000 /* between two tries to get inotify */
#define CACHED_FOR   1000 /* a counter that was read without a lock may be this old */

void file_watch_init(struct file_watch *watch)
{
	*watch = (struct file_watch){.inotify = -1, .descriptor = -1};
}

void file_watch_release(struct file_watch *watch)
{
	if (watch->inotify >= 0)
		close(watch->inotify);
	file_watch_init(watch);
}

/* Let inotify watch the file, if it can. */
static void arm(struct file_watch *watch, const struct watched_file *watched)
{
	if (watch->descriptor >= 0 || !watched->local || clock_now() < watch->arm_at)
		return;
	watch->arm_at = clock_after(ARM_AGAIN);
	if (watch->inotify < 0)
		watch->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (watch->inotify >= 0)
		watch->descriptor = inotify_add_watch(watch->inotify, watched->path,
			IN_MODIFY | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF);
}

/* Read and discard the events of inotify. True: the file was removed or replaced. */
static bool drain(struct file_watch *watch)
{
	char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
	bool replaced = false;
	ssize_t n;
	while (watch->inotify >= 0 && (n = read(watch->inotify, events, sizeof(events))) > 0) {
		for (char *at = events; at < events + n;) {
			const struct inotify_event *event = (const void *)at;
			replaced |= event->wd == watch->descriptor &&
				    (event->mask & ~(uint32_t)IN_MODIFY) != 0;
			at += sizeof(*event) + event->len;
		}
	}
	if (replaced) {
		inotify_rm_watch(watch->inotify, watch->descriptor);
		watch->descriptor = -1;
		watch->arm_at = 0;
	}
	return replaced;
}

struct counter_state file_watch_check(
	struct file_watch *watch, const struct watched_file *watched, uint32_t known)
{
	struct counter_state look = {.hint = HINT_DIFFERENT};
	arm(watch, watched);
	if (drain(watch))
		return look;
	int64_t now = clock_now();
	look.as_of = watched->local ? now : now - CACHED_FOR;
	if (watched->local)
		look.next = now + (watch->descriptor >= 0 ? LOCAL_EVERY : UNTOLD_EVERY);
	else
		look.next = now + watched->every * 3 / 4 + clock_jitter(watched->every / 2);
	switch (watched->read(watched->store, &look.counter)) {
	case READING_BUSY:
		look.hint = HINT_BUSY;
		look.next = now + BUSY_AGAIN;
		break;
	case READING_FAILED: break;
	case READING_RIGHT: look.hint = look.counter == known ? HINT_SAME : HINT_DIFFERENT; break;
	}
	return look;
}

void file_watch_sleep(const struct file_watch *watch, int64_t deadline, int wake)
{
	struct pollfd pollers[] = {
		{.fd = wake, .events = POLLIN},
		{.fd = watch->descriptor >= 0 ? watch->inotify : -1, .events = POLLIN},
	};
	(void)poll(pollers, 2, clock_poll_timeout(deadline));
}
