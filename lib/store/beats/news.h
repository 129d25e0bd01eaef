/* SPDX-License-Identifier: MIT */
/*
 * The count of news is in the file DATABASE.beats/RUN/ATTEMPT/news, which is made together with the
 * files of the beats; its size never changes. A writer increments the count under the lock and
 * before its commit. So a process that sees the new count and then takes the lock sees the change.
 * A writer that is killed in between has woken the others without news: each reads the store once.
 */
#ifndef STORE_BEATS_NEWS_H
#define STORE_BEATS_NEWS_H

#include "store/beats/file_watch.h"
#include "store/store.h"

/* The news of the last group that was asked for. */
struct news {
	char *group; /* NULL: none yet */
	char *path;
	struct file_watch watch;
	int64_t checked; /* when the database's own change counter was read last */
};

uint32_t news_read(struct store *store, const char *group);
enum status news_await(struct store *store, struct store_awaited *awaited, int64_t deadline,
	int wake, struct error *err);
/* Under the lock: the count, which `more` first increments. 0: not known. */
uint32_t news_count(struct sqlite_store *store, const char *group, bool more);
/* Make the file with the count. */
enum status news_make(const struct sqlite_store *store, const char *directory, struct error *err);
void news_release(struct news *news);

#endif
