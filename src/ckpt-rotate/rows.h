/* SPDX-License-Identifier: MIT */
/* What the commands of ckpt-rotate share: directories, tables, warnings, progress. */
#ifndef CKPT_ROTATE_ROWS_H
#define CKPT_ROTATE_ROWS_H

#include "base/args.h"
#include "ckpt/layouts.h"
#include "ckpt/prune.h"
#include "ckpt/show.h"

/* clang-format off */
/* Options of commands on DIRs of any layout. words: the struct layout_words to set. */
#define LAYOUT_OPTIONS(words) \
	{"layout", "NAME", \
		"auto (default), native, hf, accelerate, lightning, nemo, verl, deepspeed, megatron, " \
		"tensorflow, keras, orbax, composer or dcp", \
		ARGS_TEXT, .target = &(words).layout}, \
	{"pattern", "PATTERN", "names such as 'model-{step}.pt' are checkpoints", ARGS_TEXT, \
		.target = &(words).pattern}, \
	{"done", "FILE", "with --pattern: complete only with this file", ARGS_TEXT, \
		.target = &(words).done}, \
	{"undone", "FILE", "with --pattern: incomplete while this file exists", ARGS_TEXT, \
		.target = &(words).undone}, \
	{"tracker", "FILE", "with --pattern: the file in DIR that names the newest one", ARGS_TEXT, \
		.target = &(words).tracker}
/* clang-format on */

/* The DIR at index, without slashes at its end: printed paths begin with it. */
const char *directory_at(const struct args_rest *rest, size_t index);

/* Print text and release it. */
void print(struct text *text);
/* Print each line as a warning, and release lines. */
void warn(struct text *lines);

/* If there are several DIRs, print the name of the one at index above its table. */
void show_heading(const struct args_rest *rest, size_t index);
/* Add a row to a table. Unless native, it has the name of the checkpoint, too. */
void show_row(struct text *line, bool native, int64_t now, const struct checkpoint *item,
	const char *what, const char *why);

/* Print what a prune decided. *shown: the number of rows so far, updated. */
void print_report(const char *directory, bool native, bool json,
	const struct prune_request *request, const struct prune_report *report, size_t *shown);

/* The worse of two codes is the larger one: "could not ask" (75) outweighs "damaged" (65). */
int worse(int a, int b);

/* Show the progress of reading or copying. progress_begin: false with -q or without a terminal. */
bool progress_begin(uint64_t total);
void progress_add(uint64_t bytes);
void progress_end(void);

#endif
