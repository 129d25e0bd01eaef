/* SPDX-License-Identifier: MIT */
/*
 * Placeholders in the words of a command, as in GNU parallel. Pure.
 *
 *   {}                   a line of --lines      } filled when the command is scheduled,
 *   {1}, {2}, ...        a field between blanks } and only with --lines
 *   {#}                  the number of the line }
 *   {worker}             the worker's name; filled when the command is started
 *   {per-worker:a,b,c}   a, b or c, by the worker's index (modulo their number); each may be empty,
 *                        and has no ',', '{' or '}' in it
 *
 * The name of a file may have {id}, the command's id, and no {per-worker:...}.
 *
 * A second brace makes them plain text: "{{}" becomes "{}", "{{1}" becomes "{1}", "{{worker}"
 * becomes "{worker}", "{{per-worker:" becomes "{per-worker:". Other braces are plain text; but with
 * --lines those of digits and any of . / # % + are refused ("{.}", "{/}", "{%}"), because people
 * from parallel would take them for known ones.
 */
#ifndef QUEUE_TEMPLATE_H
#define QUEUE_TEMPLATE_H

#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

struct template_line {
	const char *text; /* without a NUL in it */
	size_t length;
	uint64_t number; /* from 1 */
};

/*
 * Fill in a line of --lines: without any placeholder for it, the line is added as a word.
 * Placeholders in the line stay plain text. But if there are no words, the line is the command, and
 * its placeholders are filled when it is started. The line is not quoted: for words of a shell,
 * quote it first (text_add_shell_word). STATUS_USAGE: a placeholder is not known, or the line has
 * no such field. *filled: words, then NULL, to be freed with template_free.
 */
enum status template_fill_line(
	char *const *words, const struct template_line *line, char ***filled, struct error *err);

/*
 * Fill in worker and index when a command is started. STATUS_USAGE: a {per-worker:...} is not
 * closed, is empty or has a brace in it; call this also when a command is scheduled, to refuse it.
 * *filled: words, then NULL, to be freed with template_free.
 */
enum status template_fill_worker(
	char *const *words, const char *worker, uint64_t index, char ***filled, struct error *err);

/* Whether a word has a placeholder for a line. */
bool template_uses_line(const char *word);
/* The same as template_fill_line, for the name of a file. *filled is to be freed. */
enum status template_fill_name_line(
	const char *name, const struct template_line *line, char **filled, struct error *err);
/* Fill in id and worker when a command is started. A relative name is put below directory, or stays
 * relative if directory is NULL. To be freed. */
char *template_fill_name(const char *name, const char *directory, uint64_t id, const char *worker);

/* For words that end with NULL: copy and free them; make those of sh -c TEXT, with words as $1...
 */
char **template_for_shell(const char *text, char *const *words);
char **template_copy(char *const *words);
void template_free(char **words);

#endif
