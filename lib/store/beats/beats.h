/* SPDX-License-Identifier: MIT */
/*
 * Beats: one file per task, DATABASE.beats/RUN/ATTEMPT/TASK. It is made before any process looks
 * for it, because a client of a network filesystem may remember for a minute that a file was
 * missing. Its size never changes: one write rewrites the record in place (beat_record.h). It is
 * opened for each access, so that network filesystems ask the server.
 */
#ifndef STORE_BEATS_BEATS_H
#define STORE_BEATS_BEATS_H

#include "store/store.h"

struct sqlite_store;

/* Make a small file that is later rewritten in place. An existing one stays as it is. */
enum status beats_make_file(const struct sqlite_store *store, const char *path, const char *record,
	size_t length, struct error *err);
/* Open such a file. Returns -1 with errno. */
int beats_open_file(const struct sqlite_store *store, const char *path, int flags);
enum status beats_prepare(
	struct store *store, const char *group, uint64_t tasks, struct error *err);
enum status beats_write(struct store *store, const char *group, uint64_t task,
	const struct store_beat *beat, struct error *err);
enum status beats_read(struct store *store, const char *group, uint64_t task,
	struct store_beat *beat, struct error *err);
enum status beats_remove(struct store *store, const char *group, struct error *err);

#endif
