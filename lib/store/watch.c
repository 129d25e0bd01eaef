/* SPDX-License-Identifier: MIT */
/*
 * Waiting for a change. What wakes us:
 * - on a filesystem of this machine: inotify on the database;
 * - else: one process of this machine polls the change counter and tells the others through the
 *   page they share (machine.h); so does every process that commits. inotify on that page.
 * A counter that differs from the one that our own last locked transaction saw is a hint, no more:
 * then a locked read decides. A counter read without the lock is never remembered: a writer that is
 * killed can leave one that is rolled back and used again. And every 15 s a locked read, hint or
 * no.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptor.h"
#include "store/sqlite.h"

/* All in milliseconds. */
#define LOCKED_EVERY  15000 /* a locked read, whatever the hints say */
#define POLL_EVERY    1000  /* of the shared counter, +- a quarter */
#define POLLER_LOST   3000  /* the poller has not looked for this long: look ourselves */
#define LOCAL_EVERY   5000  /* where inotify should tell */
#define UNTOLD_EVERY  50    /* on this machine where inotify cannot be had */
#define BUSY_AGAIN    2	    /* another thread of ours is at work on the database */
#define LOCK_PATIENCE 200   /* how long wake may be kept waiting by a lock */
#define CACHED_FOR    1000  /* how old a counter may be that was read without a lock */

void watch_init(struct watch *watch)
{
	*watch = (struct watch){.inotify = -1, .descriptor = -1};
}

void watch_close(struct sqlite_store *store)
{
	if (store->watch.inotify >= 0)
		close(store->watch.inotify);
	watch_init(&store->watch);
}

void watch_saw(struct sqlite_store *store, uint32_t counter, store_revision revision)
{
	store->watch.seen = true;
	store->watch.counter = counter;
	store->watch.revision = revision;
	store->watch.looked = clock_now();
	if (!store->base.local)
		machine_tell(&store->lock.machine, counter, false);
}

/* Have inotify watch what will tell, if it can. */
static void arm(struct sqlite_store *store)
{
	struct watch *watch = &store->watch;
	const char *path = store->base.local ? store->base.where : store->lock.machine.path;
	if (watch->descriptor >= 0 || (!store->base.local && !store->lock.machine.page))
		return;
	if (watch->inotify < 0)
		watch->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (watch->inotify >= 0)
		watch->descriptor = inotify_add_watch(watch->inotify, path,
			IN_MODIFY | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF);
}

/* Read away what inotify tells. True: the file itself is gone or another one. */
static bool drain(struct watch *watch)
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
	}
	return replaced;
}

enum hint { HINT_SAME, HINT_DIFFERENT, HINT_BUSY };

/* Compare the change counter in the file, without any lock, with the one we know. */
static enum hint look_at_file(struct sqlite_store *store)
{
	unsigned char bytes[4];
	/* Not while SQLite is at work in this process: the close below would drop its locks. */
	if (!guard_try(store->lock.guard))
		return HINT_BUSY;
	int descriptor = cache_open(store->lock.file.cache, store->base.where);
	bool read = descriptor >= 0 && pread(descriptor, bytes, sizeof(bytes), 24) == sizeof(bytes);
	if (descriptor >= 0)
		close(descriptor);
	guard_leave(store->lock.guard);
	if (!read)
		return HINT_DIFFERENT; /* the locked read says what is wrong */
	uint32_t counter = (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 |
			   (uint32_t)bytes[2] << 8 | bytes[3];
	if (!store->base.local)
		machine_tell(&store->lock.machine, counter, true);
	return counter == store->watch.counter ? HINT_SAME : HINT_DIFFERENT;
}

/* A hint, how old it may be (*as_of), and until when it is good. */
static enum hint look(struct sqlite_store *store, int64_t *as_of, int64_t *next)
{
	struct machine *machine = &store->lock.machine;
	int64_t now = clock_now();
	*as_of = store->base.local ? now : now - CACHED_FOR;
	if (store->base.local) {
		*next = now + (store->watch.descriptor >= 0 ? LOCAL_EVERY : UNTOLD_EVERY);
	} else if (machine->page && !machine_poller_try(machine) &&
		   now - machine_polled(machine) < POLLER_LOST) {
		bool told = store->watch.descriptor >= 0;
		*as_of = machine_polled(machine) - CACHED_FOR;
		*next = told ? machine_polled(machine) + POLLER_LOST : now + UNTOLD_EVERY;
		return machine_counter(machine) == store->watch.counter ? HINT_SAME
									: HINT_DIFFERENT;
	} else {
		*next = now + POLL_EVERY * 3 / 4 + clock_jitter(POLL_EVERY / 2);
	}
	enum hint hint = look_at_file(store);
	if (hint == HINT_BUSY)
		*next = now + BUSY_AGAIN;
	return hint;
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* The locked read, in slices so that wake is not kept waiting. */
static enum status ask(struct sqlite_store *store, const char *prefix, store_revision since,
	int64_t deadline, int wake, bool *changed, store_revision *revision, struct error *err)
{
	int64_t patience = clock_after(store->base.patience);
	for (;;) {
		int64_t slice =
			wake >= 0 ? earlier(clock_after(LOCK_PATIENCE), patience) : patience;
		enum status status =
			range_changed(store, prefix, since, slice, changed, revision, err);
		int64_t now = clock_now();
		if (status != STATUS_TEMPORARY || now < slice)
			return status;
		if (descriptor_is_ready(wake))
			return STATUS_NO;
		if (now >= deadline)
			return STATUS_TIMEOUT;
		if (now >= patience)
			return status;
	}
}

/* At this instant nothing had changed yet that the caller waits for. */
static void note_unchanged(struct sqlite_store *store, int64_t instant)
{
	if (instant > store->base.unchanged)
		store->base.unchanged = instant;
}

static void sleep_until(int64_t deadline, const struct watch *watch, int wake)
{
	struct pollfd pollers[] = {
		{.fd = wake, .events = POLLIN},
		{.fd = watch->descriptor >= 0 ? watch->inotify : -1, .events = POLLIN},
	};
	(void)poll(pollers, 2, clock_poll_timeout(deadline));
}

static enum status wait_for_change(struct sqlite_store *store, const char *prefix,
	store_revision since, int64_t deadline, int wake, store_revision *revision,
	struct error *err)
{
	struct watch *watch = &store->watch;
	*revision = since;
	for (;;) {
		int64_t next = 0, as_of = 0;
		store_revision now_at;
		bool changed;
		if (descriptor_is_ready(wake))
			return STATUS_NO;
		arm(store);
		if (watch->seen && since >= watch->revision)
			note_unchanged(store, watch->looked);
		enum hint hint = drain(watch) ? HINT_DIFFERENT : look(store, &as_of, &next);
		if (watch->seen && since >= watch->revision && hint == HINT_SAME)
			note_unchanged(store, as_of);
		bool ask_now = !watch->seen || since < watch->revision || hint == HINT_DIFFERENT ||
			       clock_now() - watch->looked >= LOCKED_EVERY;
		if (ask_now && hint != HINT_BUSY) {
			int64_t asked = clock_now();
			enum status status =
				ask(store, prefix, since, deadline, wake, &changed, &now_at, err);
			if (status != STATUS_OK)
				return status;
			if (changed) {
				*revision = now_at;
				return STATUS_OK;
			}
			note_unchanged(store, asked);
			/* All up to now_at is known not to concern the caller. */
			if (now_at > since)
				*revision = since = now_at;
			if (next == 0)
				continue;
		}
		if (clock_now() >= deadline)
			return STATUS_TIMEOUT;
		next = earlier(next, earlier(deadline, watch->looked + LOCKED_EVERY));
		sleep_until(next, watch, wake);
	}
}

enum status watch_wait(struct store *base, const char *prefix, store_revision since,
	int64_t deadline, int wake, store_revision *revision, struct error *err)
{
	struct sqlite_store *store = (struct sqlite_store *)base;
	enum status status = wait_for_change(store, prefix, since, deadline, wake, revision, err);
	/* Who does not wait does not poll: another takes over. */
	if (!store->base.local)
		machine_poller_leave(&store->lock.machine);
	return status;
}
