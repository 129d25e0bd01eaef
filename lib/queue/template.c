/* SPDX-License-Identifier: MIT */
#include "queue/template.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

#define WORKER "{worker}"
#define CHOICE "{per-worker:"
#define ID     "{id}"

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/* If *at begins with `with`, move *at behind it. */
static bool skip(const char **at, const char *with)
{
	bool found = begins(*at, with);
	*at += found ? strlen(with) : 0;
	return found;
}

size_t template_count(char *const *words)
{
	size_t count = 0;
	while (words[count])
		count++;
	return count;
}

char **template_copy(char *const *words)
{
	size_t count = template_count(words);
	char **copy = xcalloc(count + 1, sizeof(*copy));
	for (size_t i = 0; i < count; i++)
		copy[i] = xstrdup(words[i]);
	return copy;
}

void template_free(char **words)
{
	for (char **word = words; word && *word; word++)
		free(*word);
	free(words);
}

/* Turn text into a word, to be freed. */
static char *take_word(struct text *text)
{
	return text->data ? text->data : xstrdup("");
}

/* ---- Lines of input ---- */

static bool begins_within(const char *text, size_t left, const char *with)
{
	return left >= strlen(with) && begins(text, with);
}

/*
 * Add a line so that template_fill_worker (is_name: template_fill_name) gives it back unchanged:
 * one brace more before each of its placeholders.
 */
static void add_kept(struct text *text, const char *line, size_t length, bool is_name)
{
	for (size_t i = 0; i < length; i++) {
		const char *at = line + i;
		if (begins_within(at, length - i, WORKER) ||
			begins_within(at, length - i, is_name ? ID : CHOICE))
			text_add(text, "{");
		text_add_bytes(text, at, 1);
	}
}

/* Add word, with each {} filled by line. True: it had one. */
static bool fill_braces(
	struct text *text, const char *word, const char *line, size_t length, bool is_name)
{
	bool found = false;
	for (const char *at = word; *at;) {
		if (skip(&at, "{{}")) {
			text_add(text, "{}");
		} else if (skip(&at, "{}")) {
			add_kept(text, line, length, is_name);
			found = true;
		} else {
			text_add_bytes(text, at++, 1);
		}
	}
	return found;
}

char *template_fill_name_line(const char *name, const char *line, size_t length)
{
	struct text text = {0};
	(void)fill_braces(&text, name, line, length, true);
	return take_word(&text);
}

char **template_fill_line(char *const *words, const char *line, size_t length)
{
	size_t count = template_count(words);
	char **filled = xcalloc(count + 2, sizeof(*filled));
	bool found = false;
	for (size_t i = 0; i < count; i++) {
		struct text text = {0};
		found |= fill_braces(&text, words[i], line, length, false);
		filled[i] = take_word(&text);
	}
	struct text last = {0};
	if (!found && count)
		add_kept(&last, line, length, false);
	else if (!found)
		text_add_bytes(&last, line, length);
	filled[count] = found ? NULL : take_word(&last);
	return filled;
}

/* ---- Workers ---- */

/* Add the choice for index. at: behind CHOICE. *end: behind the closing brace. */
static enum status add_choice(struct text *text, const char *word, const char *at, uint64_t index,
	const char **end, struct error *err)
{
	size_t length = strcspn(at, "{}");
	uint64_t choices = 1;
	if (at[length] != '}')
		return error_set(err, STATUS_USAGE, "the placeholder " CHOICE "...} in \"%s\" %s",
			word, at[length] ? "has a brace in it" : "is not closed");
	if (length == 0)
		return error_set(err, STATUS_USAGE,
			"the placeholder " CHOICE "} in \"%s\" names nothing to choose from", word);
	*end = at + length + 1;
	for (size_t i = 0; i < length; i++)
		choices += at[i] == ',';
	for (uint64_t skip = index % choices; skip; skip--)
		at += strcspn(at, ",") + 1;
	text_add_bytes(text, at, strcspn(at, ",}"));
	return STATUS_OK;
}

static enum status fill_word(
	struct text *text, const char *word, const char *worker, uint64_t index, struct error *err)
{
	enum status status = STATUS_OK;
	for (const char *at = word; *at && status == STATUS_OK;) {
		if (skip(&at, "{" WORKER))
			text_add(text, WORKER);
		else if (skip(&at, "{" CHOICE))
			text_add(text, CHOICE);
		else if (skip(&at, WORKER))
			text_add(text, worker);
		else if (skip(&at, CHOICE))
			status = add_choice(text, word, at, index, &at, err);
		else
			text_add_bytes(text, at++, 1);
	}
	return status;
}

enum status template_fill_worker(
	char *const *words, const char *worker, uint64_t index, char ***filled, struct error *err)
{
	size_t count = template_count(words);
	char **made = xcalloc(count + 1, sizeof(*made));
	enum status status = STATUS_OK;
	for (size_t i = 0; i < count && status == STATUS_OK; i++) {
		struct text text = {0};
		status = fill_word(&text, words[i], worker, index, err);
		made[i] = take_word(&text);
	}
	if (status == STATUS_OK)
		*filled = made;
	else
		template_free(made);
	return status;
}

char *template_fill_name(const char *name, const char *directory, uint64_t id, const char *worker)
{
	struct text text = {0};
	if (*name != '/' && directory)
		text_addf(&text, "%s/", directory);
	for (const char *at = name; *at;) {
		if (skip(&at, "{" WORKER))
			text_add(&text, WORKER);
		else if (skip(&at, "{" ID))
			text_add(&text, ID);
		else if (skip(&at, WORKER))
			text_add(&text, worker);
		else if (skip(&at, ID))
			text_addf(&text, "%" PRIu64, id);
		else
			text_add_bytes(&text, at++, 1);
	}
	return take_word(&text);
}
