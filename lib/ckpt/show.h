/* SPDX-License-Identifier: MIT */
/*
 * Checkpoints as text: JSON objects, lines of a table, readable sizes. All functions append to a
 * struct text, and are pure.
 */
#ifndef CKPT_SHOW_H
#define CKPT_SHOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "ckpt/ckpt.h"
#include "ckpt/keep.h"

/* {"step": ..., "path": "DIR/NAME"} on one line; with a decision (NULL: none), also "keep", "done"
 * (the action), "reason" and "rules". */
void show_json(struct text *text, const char *directory, const struct checkpoint *checkpoint,
	const struct keep_decision *decision, const char *action);

/* A line of a table: the columns ("-": not known), then `what` and why. */
void show_line(struct text *text, const struct checkpoint *checkpoint, int64_t now_utc,
	const char *what, const char *why);
/* Add element number index to a JSON array; and end an array of `count` elements. */
void show_element(struct text *text, size_t index, const char *directory,
	const struct checkpoint *checkpoint, const struct keep_decision *decision,
	const char *action);
void show_end(struct text *text, size_t count);
/* "complete, pinned" */
void show_state(struct text *text, const struct checkpoint *checkpoint);
/* "loss=0.25 score=-" */
void show_metrics(struct text *text, const struct metrics *metrics);
/* The head of a table with `count` lines (0: no head); what: the title of its last column. */
void show_head(struct text *text, size_t count, const char *what);

/* "12 B", "3.4 GiB" */
void show_size(struct text *text, uint64_t bytes);

#endif
