/* SPDX-License-Identifier: MIT */
/*
 * What the store remembers of a run across its attempts: how long a save takes (run/RUN/MEASURE),
 * and how long each section of the work stands still at most (run/RUN/PACE, progress.h). The
 * longest counts. What cannot be read is as if nothing were known, and nothing depends on it.
 */
#ifndef PROTO_REMEMBERED_H
#define PROTO_REMEMBERED_H

#include "live/progress.h"
#include "store/builder.h"

struct remembered {
	int64_t longest_save; /* ms; 0: not known */
	struct progress_rules pace;
	store_revision measured, paced; /* the keys' */
};

/* In one reading transaction. */
enum status remembered_read(
	struct store *store, const char *run, struct remembered *known, struct error *err);

/* Put what is longer than known into a transaction, which then requires that known is still so. */
void remembered_put(const struct remembered *known, const char *run, int64_t longest_save,
	const struct progress_rules *learned, struct transaction *t);

/* Both, again while others are faster. learned NULL: nothing. */
enum status remembered_add(struct store *store, const char *run, int64_t longest_save,
	const struct progress_rules *learned, struct error *err);

/* The pace within any value, as "longest_ms": into it, and out of it, added to rules. */
struct json_object;
void remembered_write_pace(const struct progress_rules *rules, struct json_object *json);
void remembered_read_pace(const struct json_object *json, struct progress_rules *rules);

#endif
