/* SPDX-License-Identifier: MIT */
/* Placeholders in the words of a command. Pure. */
#ifndef QUEUE_TEMPLATE_H
#define QUEUE_TEMPLATE_H

#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

/*
 * When it is scheduled, for one line of --lines: every {} of every word becomes the line; where no
 * word has one, the line is one more word. "{{}" stands for a "{}" that is kept. Result: malloc'd
 * words, NULL-terminated (free with template_free); NULL without memory.
 */
char **template_fill_line(char *const *words, const char *line, size_t length);

/*
 * When it is started: {worker} becomes the worker's name, {per-worker:a,b,c} the word of its index
 * (modulo their number). STATUS_USAGE for a {per-worker:...} that is not closed or is empty: also
 * to be called when it is scheduled, so that it is refused there.
 */
enum status template_fill_worker(
	char *const *words, const char *worker, uint64_t index, char ***filled, struct error *err);

void template_free(char **words);

#endif
