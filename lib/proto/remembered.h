/* SPDX-License-Identifier: MIT */
/*
 * What the store remembers of a run across its attempts: its longest save (run/RUN/MEASURE), and
 * the longest time that each section of the work went without a change (run/RUN/PACE,
 * live/progress.h). A value that cannot be parsed counts as unknown.
 */
#ifndef PROTO_REMEMBERED_H
#define PROTO_REMEMBERED_H

#include "live/progress.h"
#include "store/builder.h"

struct remembered {
	int64_t longest_save; /* ms; 0: unknown */
	struct progress_rules pace;
	store_revision measure_revision,
		pace_revision; /* of the keys MEASURE and PACE; 0: absent */
};

enum status remembered_read(
	struct store *store, const char *run, struct remembered *known, struct error *err);

/*
 * Add to t the durations that are longer than known. The store then refuses t if one of their
 * keys has changed since known was read.
 */
void remembered_put(const struct remembered *known, const char *run, int64_t longest_save,
	const struct progress_rules *learned, struct transaction *t);

/* Read, then put; repeat if another process changed a key in between. learned NULL: no pace. */
enum status remembered_add(struct store *store, const char *run, int64_t longest_save,
	const struct progress_rules *learned, struct error *err);

/* Write the pace to the member "longest_ms" of json; read it from there and merge it into rules. */
struct json_object;
void remembered_write_pace(const struct progress_rules *rules, struct json_object *json);
void remembered_read_pace(const struct json_object *json, struct progress_rules *rules);

#endif
