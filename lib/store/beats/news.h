/* SPDX-License-Identifier: MIT */
/*
 * News: the file DATABASE.beats/RUN/ATTEMPT/news counts them. It is made with the files of the
 * beats and has one size. A writer counts under the lock and before its commit: so no process can
 * see the count, take the lock and not see the change. A writer that is killed between the two has
 * woken the others without a change, which costs each of them one read.
 */
#ifndef STORE_BEATS_NEWS_H
#define STORE_BEATS_NEWS_H

#include "store/beats/file_watch.h"
#include "store/store.h"

/* The news of the group that was asked for last. */
struct news {
	char *group; /* NULL: none yet */
	char *path;
	struct file_watch watch;
	int64_t checked; /* when the database's own counter was looked at */
};

uint32_t news_read(struct store *store, const char *group);
enum status news_await(struct store *store, struct store_awaited *awaited, int64_t deadline,
	int wake, struct error *err);
/* Under the lock: what the count is, one more of it first where that is asked for; 0: not known. */
uint32_t news_count(struct sqlite_store *store, const char *group, bool more);
/* The file in which they are counted is made with those of the beats. */
enum status news_make(const struct sqlite_store *store, const char *directory, struct error *err);
void news_release(struct news *news);

#endif
