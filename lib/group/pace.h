/* SPDX-License-Identifier: MIT */
/*
 * What was learned of a run's pace (progress.h), remembered by the store across attempts in the key
 * run/RUN/PACE. Without rules->learn both calls do nothing and succeed.
 */
#ifndef GROUP_PACE_H
#define GROUP_PACE_H

#include "group/progress.h"
#include "store/store.h"

/* Put what is remembered into rules. What cannot be read is as if nothing were known. */
enum status pace_recall(
	struct store *store, const char *run, struct progress_rules *rules, struct error *err);
/* Add what rules say to what is remembered: the longest counts. */
enum status pace_remember(struct store *store, const char *run, const struct progress_rules *rules,
	struct error *err);

#endif
