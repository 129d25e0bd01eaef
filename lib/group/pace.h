/* SPDX-License-Identifier: MIT */
/*
 * What was learned of a run's pace (progress.h), remembered by the store across attempts in the key
 * run/RUN/PACE. Without rules->learn both calls do nothing and succeed.
 */
#ifndef GROUP_PACE_H
#define GROUP_PACE_H

#include "group/progress.h"
#include "store/store.h"

/* Its place in a value, as "longest_ms": what was learned into it, and back, the longest counts. */
struct json_object;
void pace_put(const struct progress_rules *rules, struct json_object *json);
void pace_take(const struct json_object *json, struct progress_rules *rules);

/* Put what is remembered into rules. What cannot be read is as if nothing were known. */
enum status pace_recall(
	struct store *store, const char *run, struct progress_rules *rules, struct error *err);
/* Add what rules say to what is remembered: the longest counts. */
enum status pace_remember(struct store *store, const char *run, const struct progress_rules *rules,
	struct error *err);

#endif
