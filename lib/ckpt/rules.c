/* SPDX-License-Identifier: MIT */
#include "ckpt/rules.h"

#include <ctype.h>
#include <inttypes.h>
#include <json-c/linkhash.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/xalloc.h"
#include "ckpt/formats.h"
#include "ckpt/layouts.h"

#define PICKLE_LIMIT ((size_t)512 << 20)
#define RULE_SIZE    1024
#define WORDS_MAX    4

/* One rule: its kind, and patterns before and after ':'; without it, all are after. */
struct rule {
	char text[RULE_SIZE], copy[RULE_SIZE];
	const char *kind, *before, *after;
	const char *words[WORDS_MAX]; /* the first ones after the kind; "" if there are fewer */
};

struct check {
	struct rules_item *item;
	const struct rule *rule;
	const char *file;	      /* of rules for each file P: the one to check */
	enum checkpoint_state answer; /* if the rule is broken */
	struct error *why;
};

/* Read the rule in this line. */
static void read_rule(const char *line, size_t length, struct rule *rule)
{
	char *state = NULL, *rest = rule->text;
	length = length < RULE_SIZE ? length : RULE_SIZE - 1;
	memcpy(rule->text, line, length);
	rule->text[length] = '\0';
	rule->kind = rule->text;
	rest += strcspn(rest, " ");
	if (*rest)
		*rest++ = '\0';
	char *colon = strstr(rest, " : ");
	rule->before = colon ? rest : "";
	rule->after = colon ? colon + 3 : rest;
	if (colon)
		*colon = '\0';
	strcpy(rule->copy, rest);
	for (int i = 0; i < WORDS_MAX; i++) {
		const char *word = strtok_r(i ? NULL : rule->copy, " ", &state);
		rule->words[i] = word ? word : "";
	}
}

const char *rules_find(const struct rules_item *item, const char *patterns, bool directories)
{
	for (size_t i = 0; i < item->files.count; i++)
		if (strncmp(item->files.files[i].name, ".cache/", 7) != 0 &&
			pattern_any(patterns, item->files.files[i].name, NULL))
			return item->files.files[i].name;
	for (size_t i = 0; directories && i < item->directory_count; i++)
		if (pattern_any(patterns, item->directories[i], NULL))
			return item->directories[i];
	return NULL;
}

enum status rules_read_json(
	struct rules_item *item, const char *name, struct json_object **document, struct error *why)
{
	struct json_object *read = NULL;
	enum status status = STATUS_OK;
	if (!item->document || strcmp(item->document_name, name) != 0) {
		status = format_read_json(item->root, name, &read, why);
		if (status != STATUS_OK)
			return status;
		json_object_put(item->document);
		item->document = read;
		item->document_name = name;
	}
	*document = item->document;
	return STATUS_OK;
}

/* The rule is broken: "START PATTERN or PATTERN". */
static enum checkpoint_state broken(const struct check *check, const char *start)
{
	struct text text = {0};
	for (const char *at = check->rule->after; *at; at += strcspn(at, " ")) {
		at += strspn(at, " ");
		text_add(&text, text.length ? " or " : "");
		text_add_bytes(&text, at, strcspn(at, " "));
	}
	error_set(check->why, STATUS_NO, "%s %s", start, text_string(&text));
	text_release(&text);
	return check->answer;
}

/* The answer if a file could not be read as it should: it is missing, damaged, or unreadable. */
static enum checkpoint_state unread(enum status status)
{
	return status == STATUS_OK   ? CHECKPOINT_COMPLETE
	       : status == STATUS_NO ? CHECKPOINT_DAMAGED
				     : CHECKPOINT_UNREADABLE;
}

static bool is_there(const struct rules_item *item, const char *name)
{
	size_t place = manifest_place(&item->files, name), i = 0;
	if (place < item->files.count && strcmp(item->files.files[place].name, name) == 0)
		return true;
	while (i < item->directory_count && strcmp(item->directories[i], name) != 0)
		i++;
	return i < item->directory_count;
}

/* ---- One function for each kind of rule ---- */

static enum checkpoint_state check_any(const struct check *check)
{
	const struct rule *rule = check->rule;
	return (*rule->before && !rules_find(check->item, rule->before, true)) ||
			       rules_find(check->item, rule->after, false)
		       ? CHECKPOINT_COMPLETE
		       : broken(check, "it has no");
}

static enum checkpoint_state check_filled(const struct check *check)
{
	bool any = false;
	for (size_t i = 0; i < check->item->files.count; i++) {
		const struct manifest_file *one = &check->item->files.files[i];
		bool is_one = pattern_any(check->rule->after, one->name, NULL);
		if (is_one && one->bytes)
			return CHECKPOINT_COMPLETE;
		any |= is_one;
	}
	return any ? broken(check, "it has only empty files") : CHECKPOINT_COMPLETE;
}

/* Whether there is a file in this directory, "" or "NAME/", that matches. */
static bool has_in(const struct check *check, const char *directory, const char *patterns)
{
	const struct manifest *files = &check->item->files;
	size_t length = strlen(directory), i = manifest_place(files, directory);
	for (; i < files->count && strncmp(files->files[i].name, directory, length) == 0; i++)
		if (pattern_any(patterns, files->files[i].name + length, NULL))
			return true;
	return false;
}

/* "each", "same": of the directories D; "beside": of those with a file P, and of the whole. */
static enum checkpoint_state check_directories(const struct check *check)
{
	const struct rule *rule = check->rule;
	char *const *directories = check->item->directories;
	bool beside = strcmp(rule->kind, "beside") == 0, any = false;
	char path[PATH_MAX] = "", start[PATH_MAX + 32] = "";
	for (size_t i = 0; i <= check->item->directory_count; i++) {
		if (i > 0)
			snprintf(path, sizeof(path), "%s/", directories[i - 1]);
		if (beside ? !has_in(check, path, rule->before)
			   : i == 0 || !pattern_any(rule->before, directories[i - 1], NULL))
			continue;
		bool has = has_in(check, path, rule->after);
		if (!has && !*start)
			snprintf(start, sizeof(start), "%s has no",
				i > 0 ? directories[i - 1] : "it");
		any |= has;
	}
	return !*start || (!any && strcmp(rule->kind, "same") == 0) ? CHECKPOINT_COMPLETE
								    : broken(check, start);
}

/* A file, and its name without the numbers of the pattern. */
struct numbered {
	const char *name;
	char *set;
	struct pattern_number numbers[PATTERN_NUMBERS];
};

static int by_set(const void *a, const void *b)
{
	const struct numbered *x = a, *y = b;
	int order = strcmp(x->set, y->set);
	for (int i = PATTERN_I; i <= PATTERN_J && order == 0; i++)
		order = x->numbers[i].value < y->numbers[i].value   ? -1
			: x->numbers[i].value > y->numbers[i].value ? 1
								    : 0;
	return order;
}

/* Collect the files that match, sorted by their sets. */
static size_t collect(const struct check *check, const char *pattern, struct numbered **found)
{
	const struct manifest *files = &check->item->files;
	size_t count = 0;
	*found = xcalloc(files->count + 1, sizeof(**found));
	for (size_t i = 0; i < files->count; i++) {
		struct numbered *one = &(*found)[count];
		if (!pattern_any(pattern, files->files[i].name, one->numbers))
			continue;
		one->name = files->files[i].name;
		char *to = one->set = xstrdup(one->name);
		for (size_t at = 0; (*to = one->name[at]);) {
			size_t skip = 0;
			for (int k = 0; k < PATTERN_NUMBERS; k++)
				if (one->numbers[k].length && one->numbers[k].at == at)
					skip = one->numbers[k].length;
			to += skip == 0;
			at += skip ? skip : 1;
		}
		count++;
	}
	if (count)
		qsort(*found, count, sizeof(**found), by_set);
	return count;
}

static enum checkpoint_state check_all(const struct check *check)
{
	const char *pattern = check->rule->words[0];
	bool of = strstr(pattern, "{n}");
	struct numbered *found;
	enum checkpoint_state answer = CHECKPOINT_COMPLETE;
	size_t count = collect(check, pattern, &found);
	for (size_t i = 0, end; i < count && answer == CHECKPOINT_COMPLETE; i = end) {
		const struct pattern_number *first = found[i].numbers;
		uint64_t there = 0, extent[2] = {0}, need;
		bool mixed = false;
		for (end = i; end < count && strcmp(found[end].set, found[i].set) == 0; end++) {
			const struct pattern_number *own = found[end].numbers;
			there += end == i || by_set(&found[end], &found[end - 1]) != 0;
			mixed |= of && own[PATTERN_N].value != first[PATTERN_N].value;
			for (int k = 0; k < 2; k++)
				if (own[k].value >= extent[k])
					extent[k] = own[k].value + 1;
		}
		need = of ? first[PATTERN_N].value : extent[0] * extent[1];
		bool whole = there == need && (!of || extent[0] - first[PATTERN_I].value == need) &&
			     (!of || first[PATTERN_I].value <= 1);
		if (whole && !mixed)
			continue;
		answer = check->answer;
		error_set(check->why, STATUS_NO,
			"%" PRIu64 " of %" PRIu64 " files such as %s are there%s", there, need,
			found[i].name, mixed ? ", and others" : "");
	}
	while (count > 0)
		free(found[--count].set);
	free(found);
	return answer;
}

static enum checkpoint_state check_json(const struct check *check)
{
	const char *key = check->rule->words[1];
	char *own = xstrndup(key, strcspn(key, "="));
	struct json_object *document = NULL, *member = NULL;
	uint64_t step;
	enum checkpoint_state answer =
		unread(rules_read_json(check->item, check->file, &document, check->why));
	bool has = json_object_object_get_ex(document, own, &member), wrong = has && !member;
	if (strchr(key, '='))
		wrong = !json_get_unsigned(document, own, &step) || step != check->item->step;
	if (answer == CHECKPOINT_COMPLETE && wrong) {
		error_set(check->why, STATUS_NO, "%s: %s is not as in a finished one of this step",
			check->file, own);
		answer = check->answer;
	}
	free(own);
	return answer;
}

/* Add the values of an object, or the elements of an array, as lines. */
static void add_members(struct json_object *list, struct text *names)
{
	bool array = json_object_is_type(list, json_type_array);
	struct lh_entry *entry = json_object_is_type(list, json_type_object)
					 ? json_object_get_object(list)->head
					 : NULL;
	for (size_t i = 0; array ? i < json_object_array_length(list) : entry != NULL; i++) {
		struct json_object *one = array ? json_object_array_get_idx(list, i)
						: (struct json_object *)lh_entry_v(entry);
		text_addf(names, "%s\n", one ? json_object_get_string(one) : "?");
		entry = array ? NULL : entry->next;
	}
}

/* Add the names of digits and lines that end in `end`, in a pickle, which has strings as they are.
 */
static void add_strings(const struct text *pickle, const char *end, struct text *names)
{
	const char *at = pickle->data, *last = at + pickle->length;
	while (at < last && (at = memmem(at, (size_t)(last - at), end, strlen(end)))) {
		const char *start = at;
		while (start > pickle->data &&
			(isdigit((unsigned char)start[-1]) || start[-1] == '_'))
			start--;
		at += strlen(end);
		if ((size_t)(at - start) > strlen(end))
			text_addf(names, "%.*s\n", (int)(at - start), start);
	}
}

/* Read the names that are in the file, one in a line. */
static enum checkpoint_state read_names(const struct check *check, struct text *names)
{
	const char *how = check->rule->words[1], *file = check->file;
	struct json_object *document = NULL, *list = NULL;
	struct text content = {0};
	bool pickle = *how == '*';
	enum status status =
		*how && !pickle
			? rules_read_json(check->item, file, &document, check->why)
			: format_read(check->item->root, file, PICKLE_LIMIT, &content, check->why);
	if (status == STATUS_OK && pickle &&
		(!content.length || content.data[content.length - 1] != '.')) /* STOP */
		status = error_set(check->why, STATUS_NO, "%s is cut short", file);
	else if (status == STATUS_OK && pickle)
		add_strings(&content, how + 1, names);
	else if (status == STATUS_OK && !*how)
		text_addf(names, "%s\n", text_first_line(&content));
	else if (json_object_object_get_ex(document, how, &list))
		add_members(list, names);
	text_release(&content);
	return unread(status);
}

static enum checkpoint_state check_listed(const struct check *check)
{
	struct text names = {.limit = PICKLE_LIMIT};
	char path[PATH_MAX], *state = NULL;
	const char *slash = strrchr(check->file, '/');
	int directory = slash ? (int)(slash + 1 - check->file) : 0;
	enum checkpoint_state answer = read_names(check, &names);
	char *name = names.data ? strtok_r(names.data, "\n", &state) : NULL;
	if (answer == CHECKPOINT_COMPLETE && !name) {
		error_set(check->why, STATUS_NO, "%s names no files", check->file);
		answer = check->answer;
	}
	for (; name && answer == CHECKPOINT_COMPLETE; name = strtok_r(NULL, "\n", &state)) {
		int length = snprintf(path, sizeof(path), "%.*s%s", directory, check->file, name);
		if (length < (int)sizeof(path) && is_there(check->item, path))
			continue;
		error_set(
			check->why, STATUS_NO, "%s is missing, which %s names", name, check->file);
		answer = check->answer;
	}
	text_release(&names);
	return answer;
}

/* Read the number key in a file. 0: it has none, or, *answer, it could not be read. */
static uint64_t read_number(
	const struct check *check, const char *file, const char *key, enum checkpoint_state *answer)
{
	struct error why;
	uint64_t number = 0;
	enum status status = format_read_number(check->item->root, file, key, &number, &why);
	if (status == STATUS_OK || status == STATUS_NO)
		return number;
	error_set(check->why, status, "%s", why.text);
	*answer = CHECKPOINT_UNREADABLE;
	return 0;
}

/* Read the product of the numbers. 0: the file has not all of them, or they do not tell. */
static uint64_t read_product(
	const struct check *check, const char *file, enum checkpoint_state *answer)
{
	char keys[256], *state = NULL;
	uint64_t product = 1, first = 0, other = 0;
	snprintf(keys, sizeof(keys), "%s", check->rule->words[1]);
	for (char *key = strtok_r(keys, "*", &state); key; key = strtok_r(NULL, "*", &state)) {
		uint64_t number = read_number(check, file, key, answer);
		if (__builtin_mul_overflow(product, number, &product) || !product)
			return 0;
		first = first ? first : number;
	}
	if (*check->rule->words[3])
		other = read_number(check, file, check->rule->words[3], answer);
	return !other || other == first ? product : 0;
}

static enum checkpoint_state check_world(const struct check *check)
{
	const struct manifest *files = &check->item->files;
	enum checkpoint_state answer = CHECKPOINT_COMPLETE;
	const char *file = NULL;
	uint64_t product = 0, there = 0;
	for (size_t i = 0; i < files->count; i++)
		there += pattern_any(check->rule->words[2], files->files[i].name, NULL);
	for (size_t i = 0; there && i < files->count && !product; i++) {
		file = files->files[i].name;
		if (pattern_any(check->rule->words[0], file, NULL))
			product = read_product(check, file, &answer);
	}
	check->item->told |= product > 0;
	if (answer != CHECKPOINT_COMPLETE || !product || product == there)
		return answer;
	error_set(check->why, STATUS_NO,
		"%" PRIu64 " of the %" PRIu64 " files %s that %s tells of are there", there,
		product, check->rule->words[2], file);
	return check->answer;
}

static enum checkpoint_state check_number(const struct check *check)
{
	const struct rule *rule = check->rule;
	enum checkpoint_state answer = CHECKPOINT_COMPLETE;
	const char *file = rules_find(check->item, rule->words[0], false);
	return !file || !read_number(check, file, rule->words[1], &answer) ||
			       rules_find(check->item, rule->after, true)
		       ? answer
		       : broken(check, "it has no");
}

static const struct {
	const char *name;
	bool files; /* it is checked for each file that matches its first word */
	enum checkpoint_state answer;
	enum checkpoint_state (*check)(const struct check *check);
} kinds[] = {
	{"known", false, CHECKPOINT_UNKNOWN_FORM, check_any},
	{"any", false, CHECKPOINT_INCOMPLETE, check_any},
	{"if", false, CHECKPOINT_INCOMPLETE, check_any},
	{"filled", false, CHECKPOINT_DAMAGED, check_filled},
	{"each", false, CHECKPOINT_INCOMPLETE, check_directories},
	{"same", false, CHECKPOINT_INCOMPLETE, check_directories},
	{"beside", false, CHECKPOINT_INCOMPLETE, check_directories},
	{"all", false, CHECKPOINT_INCOMPLETE, check_all},
	{"json", true, CHECKPOINT_INCOMPLETE, check_json},
	{"listed", true, CHECKPOINT_INCOMPLETE, check_listed},
	{"world", false, CHECKPOINT_INCOMPLETE, check_world},
	{"number", false, CHECKPOINT_INCOMPLETE, check_number},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static enum checkpoint_state check_rule(struct check *check)
{
	const struct manifest *files = &check->item->files;
	size_t kind = 0;
	while (kind < KINDS && strcmp(check->rule->kind, kinds[kind].name) != 0)
		kind++;
	if (kind == KINDS) {
		error_set(check->why, STATUS_USAGE, "there is no rule \"%s\"", check->rule->kind);
		return CHECKPOINT_UNREADABLE;
	}
	check->answer = kinds[kind].answer;
	if (!kinds[kind].files)
		return kinds[kind].check(check);
	enum checkpoint_state answer = CHECKPOINT_COMPLETE;
	for (size_t i = 0; i < files->count && answer == CHECKPOINT_COMPLETE; i++) {
		check->file = files->files[i].name;
		if (pattern_any(check->rule->words[0], check->file, NULL))
			answer = kinds[kind].check(check);
	}
	return answer;
}

enum checkpoint_state rules_check(const char *rules, struct rules_item *item, struct error *why)
{
	struct rule rule;
	struct check check = {.item = item, .rule = &rule, .why = why};
	/* The rules before the first "when" hold for all forms. */
	enum { ALL_FORMS, OTHER_FORM, THIS_FORM } at = ALL_FORMS;
	enum checkpoint_state answer = CHECKPOINT_COMPLETE;
	for (const char *line = rules; *line && answer == CHECKPOINT_COMPLETE;) {
		size_t length = strcspn(line, "\n");
		bool when = strncmp(line, "when ", 5) == 0;
		if (when && at == THIS_FORM)
			break;
		if (when || at != OTHER_FORM)
			read_rule(line, length, &rule);
		if (when)
			at = rules_find(item, rule.after, true) ? THIS_FORM : OTHER_FORM;
		else if (at != OTHER_FORM)
			answer = check_rule(&check);
		line += length + (line[length] == '\n');
	}
	if (answer == CHECKPOINT_COMPLETE && at == OTHER_FORM) {
		error_set(why, STATUS_NO, "no rule knows a checkpoint with these files");
		answer = CHECKPOINT_UNKNOWN_FORM;
	}
	for (size_t i = 0; i < item->files.count && answer == CHECKPOINT_COMPLETE; i++) {
		const struct manifest_file *file = &item->files.files[i];
		if (!item->document ||
			strcmp(item->document_name, file->name) != 0) /* it is whole */
			answer = unread(format_check(item->root, file->name, file->bytes, why));
	}
	return answer;
}
