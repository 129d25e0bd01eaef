/* SPDX-License-Identifier: MIT */
/*
 * Placeholders in the words of a command. Pure.
 *
 *   {}                   a line of --lines, when it is scheduled
 *   {worker}             the worker's name, when it is started
 *   {per-worker:a,b,c}   a, b or c by the worker's index (modulo their number); a choice may be
 *                        empty, and has neither ',' nor '{' nor '}'
 *
 * In the name of a file also {id}, the command's id; and no {per-worker:...}.
 *
 * One brace more keeps them: "{{}" is "{}", "{{worker}" is "{worker}", "{{per-worker:" is
 * "{per-worker:". Other braces are what they are.
 */
#ifndef QUEUE_TEMPLATE_H
#define QUEUE_TEMPLATE_H

#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

/*
 * For one line of --lines (length bytes, no NUL among them): every {} of every word becomes the
 * line; where no word has one, the line is one more word. A line is data: what would be a
 * placeholder in it is kept as it is; but where there are no words, the line is the command, and
 * its placeholders are filled later. Nothing is quoted: where the words are for a shell, quote the
 * line first (text_add_shell_word). Result: malloc'd words, NULL-terminated (free with
 * template_free).
 */
char **template_fill_line(char *const *words, const char *line, size_t length);

/*
 * When it is started. STATUS_USAGE for a {per-worker:...} that is not closed or is empty: also to
 * be called when it is scheduled, so that it is refused there. *filled: as above.
 */
enum status template_fill_worker(
	char *const *words, const char *worker, uint64_t index, char ***filled, struct error *err);

/* The name of a file for one line of --lines: every {} becomes the line; malloc'd. */
char *template_fill_name_line(const char *name, const char *line, size_t length);
/* When it is started: its path, below directory where it is relative (NULL: as it is); malloc'd. */
char *template_fill_name(const char *name, const char *directory, uint64_t id, const char *worker);

/* NULL-terminated words: how many; a copy; free them. */
size_t template_count(char *const *words);
char **template_copy(char *const *words);
void template_free(char **words);

#endif
