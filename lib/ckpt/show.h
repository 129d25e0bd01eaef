/* SPDX-License-Identifier: MIT */
/*
 * Checkpoints as text: a JSON object, the columns of a table, sizes to read. Appends to
 * a struct text; pure, the time is given.
 */
#ifndef CKPT_SHOW_H
#define CKPT_SHOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "ckpt/ckpt.h"
#include "ckpt/keep.h"

/* {"step": ..., "path": "DIR/NAME"}, on one line; with "keep", "done" and "reason" where verdict is
 * given; deed: what was done then. */
void show_json(struct text *text, const char *directory, const struct checkpoint *checkpoint,
	const struct keep_decision *decision, const char *action);

/* A line of a table: its columns, "-" for what is not known, then what it is and why. */
void show_line(struct text *text, const struct checkpoint *checkpoint, int64_t now_utc,
	const char *what, const char *why);
/* One more of a JSON array, whose index it has; and the end of an array of so many. */
void show_element(struct text *text, size_t index, const char *directory,
	const struct checkpoint *checkpoint, const struct keep_decision *decision,
	const char *action);
void show_end(struct text *text, size_t count);
/* "complete, pinned" */
void show_state(struct text *text, const struct checkpoint *checkpoint);
/* "loss=0.25 score=-" */
void show_metrics(struct text *text, const struct metrics *metrics);
/* The head of a table of so many lines (none: no head); what: that of its last column. */
void show_head(struct text *text, size_t count, const char *what);

/* "12 B", "3.4 GiB" */
void show_size(struct text *text, uint64_t bytes);

#endif
