/* SPDX-License-Identifier: MIT */
#include "store/beats/news.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process/descriptor.h"
#include "base/xalloc.h"
#include "store/beats/beats.h"
#include "store/sqlite/session.h"

#define RECORD	  11   /* bytes: "0000000001\n" */
#define CHECKED	  1000 /* ms between two looks at the database's own change counter */
#define UNCOUNTED 2000 /* ms between two answers for changes that are not in the count of news */
#define CACHED	  1000 /* ms: a counter that was read without a lock may be this old */

void news_release(struct news *news)
{
	file_watch_release(&news->watch);
	free(news->group);
	free(news->path);
	news->group = news->path = NULL;
}

/* Let store->news be the news of this group. */
static void choose_group(struct sqlite_store *store, const char *group)
{
	struct news *news = &store->news;
	if (news->group && !strcmp(news->group, group))
		return;
	news_release(news);
	news->group = xstrdup(group);
	news->path = xprintf("%s/%s/news", store->beats, group);
}

static int open_news(const struct sqlite_store *store, int flags)
{
	int descriptor = beats_open_file(store, store->news.path, flags);
	if (descriptor >= 0)
		cache_drop(store->lock.cache, descriptor);
	return descriptor;
}

/* Returns the count; 0: it cannot be read. */
static uint32_t read_record(int descriptor)
{
	char record[RECORD + 1] = "", *end;
	if (descriptor < 0 || pread(descriptor, record, RECORD, 0) != RECORD)
		return 0;
	unsigned long count = strtoul(record, &end, 10);
	return end == record + RECORD - 1 && *end == '\n' && count <= UINT32_MAX ? (uint32_t)count
										 : 0;
}

static enum counter_reading read_news(struct sqlite_store *store, uint32_t *count)
{
	int descriptor = open_news(store, O_RDONLY);
	*count = read_record(descriptor);
	if (descriptor >= 0)
		close(descriptor);
	return *count ? READING_RIGHT : READING_FAILED;
}

static struct watched_file watched_news(struct sqlite_store *store, int64_t every)
{
	return (struct watched_file){.path = store->news.path,
		.local = store->base.local,
		.store = store,
		.read = read_news,
		.every = every};
}

uint32_t news_read(struct store *base, const char *group)
{
	struct sqlite_store *store = (struct sqlite_store *)base;
	uint32_t count;
	choose_group(store, group);
	return read_news(store, &count) == READING_RIGHT ? count : 0;
}

/*
 * Whether the database may have changed without news: by preempt-store put, or by a program that
 * could not write the count of news. The sign is that the database's change counter is not the one
 * of our last transaction.
 */
static bool check_database(struct sqlite_store *store)
{
	uint32_t counter;
	int64_t now = clock_now();
	if (now < store->news.checked + CHECKED ||
		wait_read_counter(store, &counter) != READING_RIGHT)
		return false;
	store->news.checked = now;
	if (store->sight.seen && counter == store->sight.counter) {
		wait_note_unchanged(store, store->base.local ? now : now - CACHED);
		return false;
	}
	return now >= store->sight.when + UNCOUNTED;
}

enum status news_await(struct store *base, struct store_awaited *awaited, int64_t deadline,
	int wake, struct error *err)
{
	struct sqlite_store *store = (struct sqlite_store *)base;
	enum status status = STATUS_TIMEOUT;
	(void)err;
	choose_group(store, awaited->group);
	struct watched_file watched = watched_news(store, awaited->every);
	while (status == STATUS_TIMEOUT) {
		if (descriptor_is_ready(wake)) {
			status = STATUS_NO;
			break;
		}
		struct counter_state look =
			file_watch_check(&store->news.watch, &watched, awaited->heard);
		if (look.hint == HINT_DIFFERENT) {
			awaited->heard = look.counter;
			status = STATUS_OK;
			break;
		}
		if (check_database(store)) {
			status = STATUS_OK;
			break;
		}
		if (clock_now() >= deadline)
			break;
		int64_t next = clock_earlier(look.next, clock_after(CHECKED));
		file_watch_sleep(&store->news.watch, clock_earlier(next, deadline), wake);
	}
	return status;
}

uint32_t news_count(struct sqlite_store *store, const char *group, bool more)
{
	char record[RECORD + 1];
	choose_group(store, group);
	int descriptor = open_news(store, more ? O_RDWR : O_RDONLY);
	if (descriptor < 0)
		return 0;
	uint32_t count = read_record(descriptor);
	if (more) {
		count = count == UINT32_MAX ? 1 : count + 1;
		snprintf(record, sizeof(record), "%010" PRIu32 "\n", count);
		if (pwrite(descriptor, record, RECORD, 0) != RECORD)
			count = 0;
	}
	if (close(descriptor) < 0)
		count = 0;
	/* Remove a count that we could not write: without it, processes wait for any change. */
	if (more && !count)
		(void)unlink(store->news.path);
	return count;
}

enum status news_make(const struct sqlite_store *store, const char *directory, struct error *err)
{
	char *path = xprintf("%s/news", directory);
	enum status status = beats_make_file(store, path, "0000000001\n", RECORD, err);
	free(path);
	return status;
}
