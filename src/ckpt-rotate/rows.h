/* SPDX-License-Identifier: MIT */
/* What the commands of ckpt-rotate print: tables, JSON, progress; and copy (tiers.c). */
#ifndef CKPT_ROTATE_ROWS_H
#define CKPT_ROTATE_ROWS_H

#include "base/args.h"
#include "base/text.h"
#include "ckpt/ckpt.h"
#include "ckpt/keep.h"

/* The DIR at index, without slashes at its end: printed paths begin with it. */
const char *directory_at(const struct args_rest *rest, size_t index);

extern bool rows_json; /* --json: an array in place of tables */

/* Begin the table of the DIR at index, with `count` rows; what: the title of its last column. */
void rows_begin(const struct args_rest *rest, size_t index, size_t count, const char *what);
/* Print a checkpoint, with its age at `now`; with a decision (NULL: none), what was done. named:
 * also its name, which the step does not tell. */
void rows_add(const char *directory, bool named, int64_t now, const struct checkpoint *item,
	const struct keep_decision *decision, const char *done);
/* End the array. If nothing was printed, it is printed only if code is STATUS_OK. */
void rows_end(int code);
/* Add the object of a checkpoint, as rows_add prints it. */
void rows_json_add(struct text *text, const char *directory, const struct checkpoint *item,
	const struct keep_decision *decision, const char *done);

/* Show on a terminal, unless with -q, how many of these bytes have been read or copied. */
void progress_begin(uint64_t total);
void progress_add(uint64_t bytes);
void progress_end(void);

extern const struct args_option copy_options[];
int run_copy(const struct args_rest *rest);

#endif
