/* SPDX-License-Identifier: MIT */
#include "queue/template.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

#define WORKER "{worker}"
#define CHOICE "{per-worker:"

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
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

/* What was built, as a word to be freed. */
static char *take_word(struct text *text)
{
	return text->data ? text->data : xstrdup("");
}

/* ---- Lines ---- */

/* One brace more before what template_fill_worker would fill (or take a brace from). */
static void add_kept(struct text *text, const char *line, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		const char *brace = line[i] == '{' ? line + i : NULL;
		size_t left = length - i;
		if (brace && ((left >= strlen(WORKER) && begins(brace, WORKER)) ||
				     (left >= strlen(CHOICE) && begins(brace, CHOICE))))
			text_add(text, "{");
		text_add_bytes(text, line + i, 1);
	}
}

char **template_fill_line(char *const *words, const char *line, size_t length)
{
	size_t count = template_count(words);
	char **filled = xcalloc(count + 2, sizeof(*filled));
	bool found = false;
	for (size_t i = 0; i < count; i++) {
		struct text text = {0};
		for (const char *at = words[i]; *at;) {
			if (begins(at, "{{}")) {
				text_add(&text, "{}");
				at += 3;
			} else if (begins(at, "{}")) {
				add_kept(&text, line, length);
				found = true;
				at += 2;
			} else {
				text_add_bytes(&text, at++, 1);
			}
		}
		filled[i] = take_word(&text);
	}
	struct text last = {0};
	if (!found && count)
		add_kept(&last, line, length);
	else if (!found)
		text_add_bytes(&last, line, length);
	filled[count] = found ? NULL : take_word(&last);
	return filled;
}

/* ---- Workers ---- */

/* Add the choice of index; at is behind CHOICE. *end: behind the closing brace. */
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
		if (begins(at, "{" WORKER)) {
			text_add(text, WORKER);
			at += strlen("{" WORKER);
		} else if (begins(at, "{" CHOICE)) {
			text_add(text, CHOICE);
			at += strlen("{" CHOICE);
		} else if (begins(at, WORKER)) {
			text_add(text, worker);
			at += strlen(WORKER);
		} else if (begins(at, CHOICE)) {
			status = add_choice(text, word, at + strlen(CHOICE), index, &at, err);
		} else {
			text_add_bytes(text, at++, 1);
		}
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
