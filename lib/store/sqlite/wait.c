/* SPDX-License-Identifier: MIT */
/*
 * Waiting for a change of a key. If the database's change counter differs from the one that our
 * last transaction has seen, a read under the lock decides whether a key has changed. A counter
 * that was read without the lock is never kept for comparing: a writer that is killed can leave one
 * that is rolled back and used again. In any case there is a read under the lock every 15 s.
 */
#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process/descriptor.h"
#include "store/sqlite/session.h"

/* All in milliseconds. */
#define LOCKED_EVERY  15000 /* between two reads under the lock */
#define POLL_EVERY    1000  /* between two looks at the counter of a shared file, +- a quarter */
#define LOCK_PATIENCE 200   /* the first wait for the lock, in which wake is not polled */
#define READ_LEAST    2000  /* a read may wait this long for the lock, also after the deadline */

enum counter_reading wait_read_counter(struct sqlite_store *store, uint32_t *counter)
{
	unsigned char bytes[4];
	/* Skip this while SQLite has the database open in this process: close() below would
	 * drop its POSIX locks. */
	if (!database_mutex_try(store->lock.mutex))
		return READING_BUSY;
	int descriptor = cache_open(store->lock.cache, store->lock.database);
	bool read = descriptor >= 0 && pread(descriptor, bytes, sizeof(bytes), 24) == sizeof(bytes);
	if (descriptor >= 0)
		close(descriptor);
	database_mutex_unlock(store->lock.mutex);
	/* A read under the lock then reports the error, or finds the present file. */
	if (!read || !lock_names_file(&store->lock))
		return READING_FAILED;
	*counter = big_endian(bytes);
	return READING_RIGHT;
}

static struct watched_file database(struct sqlite_store *store)
{
	return (struct watched_file){.path = store->lock.database,
		.local = store->base.local,
		.store = store,
		.read = wait_read_counter,
		.every = POLL_EVERY};
}

void wait_saw(
	struct sqlite_store *store, uint32_t counter, store_revision revision, int64_t instant)
{
	store->sight = (struct sight){
		.seen = true, .counter = counter, .revision = revision, .when = instant};
}

/* Read under the lock; wait for the lock in slices, and poll wake in between. */
static enum status ask(struct sqlite_store *store, struct range_change *change, int64_t deadline,
	int wake, struct error *err)
{
	int64_t patience = clock_after(store->base.patience), shortest = LOCK_PATIENCE;
	int64_t end = clock_earlier(clock_later(deadline, clock_after(READ_LEAST)), patience);
	/* Who leaves the queue for the lock enters it at its end: the next slice is longer. */
	for (;; shortest *= 2) {
		int64_t slice = wake >= 0 ? clock_earlier(clock_after(shortest), patience) : end;
		enum status status = range_changed(store, change, slice, err);
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

void wait_note_unchanged(struct sqlite_store *store, int64_t instant)
{
	if (instant > store->base.unchanged)
		store->base.unchanged = instant;
}

enum status wait_change(struct store *base, const char *prefix, store_revision *since,
	int64_t deadline, int wake, struct error *err)
{
	struct sqlite_store *store = (struct sqlite_store *)base;
	const struct sight *sight = &store->sight;
	for (;;) {
		const struct watched_file watched = database(store);
		if (descriptor_is_ready(wake))
			return STATUS_NO;
		if (sight->seen && *since >= sight->revision)
			wait_note_unchanged(store, sight->when);
		struct counter_state look =
			file_watch_check(&store->watch, &watched, sight->counter);
		if (sight->seen && *since >= sight->revision && look.hint == HINT_SAME)
			wait_note_unchanged(store, look.as_of);
		bool ask_now = !sight->seen || *since < sight->revision ||
			       look.hint == HINT_DIFFERENT ||
			       clock_now() - sight->when >= LOCKED_EVERY;
		if (ask_now && look.hint != HINT_BUSY) {
			int64_t asked = clock_now();
			struct range_change change = {.prefix = prefix, .since = *since};
			enum status status = ask(store, &change, deadline, wake, err);
			if (status != STATUS_OK)
				return status;
			if (change.changed) {
				*since = change.revision;
				return STATUS_OK;
			}
			wait_note_unchanged(store, asked);
			/* Nothing up to change.revision concerns the caller. */
			if (change.revision > *since)
				*since = change.revision;
			if (look.next == 0)
				continue;
		}
		if (clock_now() >= deadline)
			return STATUS_TIMEOUT;
		/* While another thread of ours is busy, no read can be due. */
		int64_t due = look.hint == HINT_BUSY
				      ? look.next
				      : clock_earlier(look.next, sight->when + LOCKED_EVERY);
		file_watch_sleep(&store->watch, clock_earlier(due, deadline), wake);
	}
}
