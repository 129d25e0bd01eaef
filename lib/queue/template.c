/* SPDX-License-Identifier: MIT */
#include "queue/template.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

static const char WORKER[] = "{worker}", CHOICE[] = "{per-worker:", ID[] = "{id}";

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

static size_t count_words(char *const *words)
{
	size_t count = 0;
	while (words[count])
		count++;
	return count;
}

/* A copy of some words and of those that follow. */
static char **copy_words(const char *const *before, size_t more, char *const *words)
{
	size_t count = count_words(words);
	char **copy = xcalloc(more + count + 1, sizeof(*copy));
	for (size_t i = 0; i < more; i++)
		copy[i] = xstrdup(before[i]);
	for (size_t i = 0; i < count; i++)
		copy[more + i] = xstrdup(words[i]);
	return copy;
}

char **template_copy(char *const *words)
{
	return copy_words(NULL, 0, words);
}

char **template_for_shell(const char *text, char *const *words)
{
	const char *const shell[] = {"/bin/sh", "-c", text, "sh"};
	return copy_words(shell, 4, words);
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

/* The field of this number, from 1. False: there is none. */
static bool find_field(
	const struct template_line *line, uint64_t number, const char **field, size_t *length)
{
	const char *at = line->text, *end = line->text + line->length;
	do {
		while (at < end && (*at == ' ' || *at == '\t'))
			at++;
		*field = at;
		while (at < end && *at != ' ' && *at != '\t')
			at++;
		*length = (size_t)(at - *field);
	} while (*length && --number);
	return *length;
}

/* Add what stands for a placeholder of digits or '#'. content: what is between the braces. */
static enum status add_part(struct text *text, const char *content, size_t size,
	const struct template_line *line, bool is_name, struct error *err)
{
	const char *field;
	size_t length;
	uint64_t number = strtoull(content, NULL, 10);
	if (size == 1 && *content == '#') {
		text_addf(text, "%" PRIu64, line->number);
		return STATUS_OK;
	}
	if (strspn(content, "0123456789") != size || !number)
		return error_set(err, STATUS_USAGE,
			"\"{%.*s}\" is not known: --lines knows {}, {1}, {2}, ... and {#};"
			" for this "
			"text itself write \"{{%.*s}\"",
			(int)size, content, (int)size, content);
	if (!find_field(line, number, &field, &length))
		return error_set(err, STATUS_USAGE,
			"\"{%.*s}\": line %" PRIu64 " has fewer fields; for this text itself write "
			"\"{{%.*s}\"",
			(int)size, content, line->number, (int)size, content);
	add_kept(text, field, length, is_name);
	return STATUS_OK;
}

/* How long a placeholder for a line is, with its braces. 0: text does not begin with one. */
static size_t part_length(const char *text)
{
	size_t size = *text == '{' ? strspn(text + 1, "0123456789./#%+") : 0;
	return size && text[1 + size] == '}' ? size + 2 : 0;
}

/* Add word, with its placeholders for a line filled. *found: it had one. */
static enum status fill_parts(struct text *text, const char *word, const struct template_line *line,
	bool is_name, bool *found, struct error *err)
{
	enum status status = STATUS_OK;
	for (const char *at = word; *at && status == STATUS_OK;) {
		size_t length;
		if (skip(&at, "{{}")) {
			text_add(text, "{}");
		} else if (skip(&at, "{}")) {
			add_kept(text, line->text, line->length, is_name);
			*found = true;
		} else if (*at == '{' && (length = part_length(at + 1))) {
			text_add_bytes(text, at + 1, length);
			at += 1 + length;
		} else if ((length = part_length(at))) {
			status = add_part(text, at + 1, length - 2, line, is_name, err);
			at += length;
			*found = true;
		} else {
			text_add_bytes(text, at++, 1);
		}
	}
	return status;
}

bool template_uses_line(const char *word)
{
	static const struct template_line none = {.text = ""};
	struct text text = {0};
	bool found = false;
	(void)fill_parts(&text, word, &none, false, &found, NULL);
	text_release(&text);
	return found;
}

enum status template_fill_name_line(
	const char *name, const struct template_line *line, char **filled, struct error *err)
{
	struct text text = {0};
	bool found = false;
	enum status status = fill_parts(&text, name, line, true, &found, err);
	if (status == STATUS_OK)
		*filled = take_word(&text);
	else
		text_release(&text);
	return status;
}

enum status template_fill_line(
	char *const *words, const struct template_line *line, char ***filled, struct error *err)
{
	size_t count = count_words(words);
	char **made = xcalloc(count + 2, sizeof(*made));
	enum status status = STATUS_OK;
	bool found = false;
	for (size_t i = 0; i < count && status == STATUS_OK; i++) {
		struct text text = {0};
		status = fill_parts(&text, words[i], line, false, &found, err);
		made[i] = take_word(&text);
	}
	struct text last = {0};
	if (!found && count)
		add_kept(&last, line->text, line->length, false);
	else if (!found)
		text_add_bytes(&last, line->text, line->length);
	if (!found && status == STATUS_OK)
		made[count] = take_word(&last);
	else
		text_release(&last);
	if (status == STATUS_OK)
		*filled = made;
	else
		template_free(made);
	return status;
}

/* ---- Workers ---- */

/* Add the choice for index. at: behind CHOICE. *end: behind the closing brace. */
static enum status add_choice(struct text *text, const char *word, const char *at, uint64_t index,
	const char **end, struct error *err)
{
	size_t length = strcspn(at, "{}");
	uint64_t choices = 1;
	if (at[length] != '}')
		return error_set(err, STATUS_USAGE, "the placeholder {per-worker:...} in \"%s\" %s",
			word, at[length] ? "has a brace in it" : "is not closed");
	if (length == 0)
		return error_set(err, STATUS_USAGE,
			"the placeholder {per-worker:} in \"%s\" names nothing to choose from",
			word);
	*end = at + length + 1;
	for (size_t i = 0; i < length; i++)
		choices += at[i] == ',';
	for (uint64_t skip = index % choices; skip; skip--)
		at += strcspn(at, ",") + 1;
	text_add_bytes(text, at, strcspn(at, ",}"));
	return STATUS_OK;
}

/* Add word, with what is known at the start filled. id: of a name, else NULL. */
static enum status fill_word(struct text *text, const char *word, const char *worker,
	uint64_t index, const uint64_t *id, struct error *err)
{
	const char *other = id ? ID : CHOICE;
	enum status status = STATUS_OK;
	for (const char *at = word; *at && status == STATUS_OK;) {
		bool plain = *at == '{' && (begins(at + 1, WORKER) || begins(at + 1, other));
		at += plain;
		if (skip(&at, WORKER))
			text_add(text, plain ? WORKER : worker);
		else if (!skip(&at, other))
			text_add_bytes(text, at++, 1);
		else if (plain)
			text_add(text, other);
		else if (id)
			text_addf(text, "%" PRIu64, *id);
		else
			status = add_choice(text, word, at, index, &at, err);
	}
	return status;
}

enum status template_fill_worker(
	char *const *words, const char *worker, uint64_t index, char ***filled, struct error *err)
{
	size_t count = count_words(words);
	char **made = xcalloc(count + 1, sizeof(*made));
	enum status status = STATUS_OK;
	for (size_t i = 0; i < count && status == STATUS_OK; i++) {
		struct text text = {0};
		status = fill_word(&text, words[i], worker, index, NULL, err);
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
	(void)fill_word(&text, name, worker, 0, &id, NULL);
	return take_word(&text);
}
