/* SPDX-License-Identifier: MIT */
/*
 * Placeholders in the words of a command. Pure.
 *
 *   {}                   a line of --lines; filled when the command is scheduled
 *   {worker}             the worker's name; filled when the command is started
 *   {per-worker:a,b,c}   a, b or c, by the worker's index (modulo their number); each may be empty,
 *                        and has no ',', '{' or '}' in it
 *
 * The name of a file may have {id}, the command's id, and no {per-worker:...}.
 *
 * A second brace makes them plain text: "{{}" becomes "{}", "{{worker}" becomes "{worker}", and
 * "{{per-worker:" becomes "{per-worker:". Other braces are plain text.
 */
#ifndef QUEUE_TEMPLATE_H
#define QUEUE_TEMPLATE_H

#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

/*
 * Fill in a line of --lines, which has length bytes and no NUL: each {} becomes the line; without
 * any {}, the line is added as a word. Placeholders in the line stay plain text. But if there are
 * no words, the line is the command, and its placeholders are filled when it is started. The line
 * is not quoted: for words of a shell, quote it first (text_add_shell_word). Returns words, then
 * NULL, to be freed with template_free.
 */
char **template_fill_line(char *const *words, const char *line, size_t length);

/*
 * Fill in worker and index when a command is started. STATUS_USAGE: a {per-worker:...} is not
 * closed, is empty or has a brace in it; call this also when a command is scheduled, to refuse it.
 * *filled: words, then NULL, to be freed with template_free.
 */
enum status template_fill_worker(
	char *const *words, const char *worker, uint64_t index, char ***filled, struct error *err);

/* Fill a line of --lines into the name of a file: each {} becomes the line. To be freed. */
char *template_fill_name_line(const char *name, const char *line, size_t length);
/* Fill in id and worker when a command is started. A relative name is put below directory, or stays
 * relative if directory is NULL. To be freed. */
char *template_fill_name(const char *name, const char *directory, uint64_t id, const char *worker);

/* For words that end with NULL: count, copy and free them. */
size_t template_count(char *const *words);
char **template_copy(char *const *words);
void template_free(char **words);

#endif
