/* SPDX-License-Identifier: MIT */
/*
 * The group as a source of notices (notice/source.h): a task has claimed, or a round is open. The
 * group needs more than a specification, so source_group_open takes options. A thread of its own
 * asks the store, so that a store that hangs never delays a signal.
 *
 * Its notices have the source "group". Each claim and each round is reported once. The reason names
 * the claiming task and repeats its own source and reason; the deadline is the run's.
 */
#ifndef AGENT_SOURCE_GROUP_H
#define AGENT_SOURCE_GROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "notice/source.h"

struct group_source_options {
	const char *store; /* URL; a store that does not exist yet is waited for */
	const char *run;
	uint64_t attempt; /* only this one; 0: the newest, then each later one in turn */
	uint64_t round;	  /* this round or a later one, claimed or not; 0: only the claim */
	bool until_exit;  /* go on until the claiming task is gone: source_group_gone */
	bool past;	  /* with attempt 0: a claim counts even if its attempt is closed */
};

/* The source's descriptor becomes readable after each look at the store. Closed by source_close. */
enum status source_group_open(
	struct source **source, const struct group_source_options *options, struct error *err);

/*
 * Whether another notice can come. STATUS_OK: yes; this is always so if the options name no
 * attempt. STATUS_BROKEN: the attempt broke. STATUS_NO: it is over. The error says more.
 */
enum status source_group_over(const struct source *source, struct error *err);

/* With until_exit: the claiming task has left, or is dead or gone; or the claim is from outside. */
bool source_group_gone(const struct source *source);

#endif
