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
#define WORDS_MAX    32

/* One rule: its kind, and its words before and after ':' (patterns, or keys). */
struct rule {
	char text[1024];
	const char *words[WORDS_MAX];
	size_t count; /* of the words after the kind */
	size_t colon; /* how many are before ':' */
};

struct check {
	const struct rules_item *item;
	const struct rule *rule;
	enum rules_answer answer; /* if the rule is broken */
	struct error *why;
};

/* Read the rule in this line, with the step in the place of STEP. */
static void read_rule(const char *line, size_t length, uint64_t step, struct rule *rule)
{
	char *at = rule->text, *end = at + sizeof(rule->text) - 24;
	bool colon = false;
	rule->count = 0;
	for (const char *from = line; from < line + length && at < end;)
		if (strncmp(from, "STEP", 4) == 0) {
			at += sprintf(at, "%" PRIu64, step);
			from += 4;
		} else {
			*at++ = *from++;
		}
	*at = '\0';
	char *state = NULL;
	(void)strtok_r(rule->text, " ", &state);
	for (char *word; rule->count < WORDS_MAX && (word = strtok_r(NULL, " ", &state));) {
		if (strcmp(word, ":") == 0) {
			rule->colon = rule->count;
			colon = true;
			continue;
		}
		rule->words[rule->count++] = word;
	}
	if (!colon)
		rule->colon = rule->count;
}

static bool fits(const char *pattern, const char *name, struct pattern_number *numbers)
{
	struct pattern_number unused[PATTERN_NUMBERS];
	return pattern_matches(pattern, strlen(pattern), name, numbers ? numbers : unused);
}

/* Whether name matches one of the words from first on, before last. */
static bool fits_any(const struct rule *rule, size_t first, size_t last, const char *name)
{
	for (size_t i = first; i < last; i++)
		if (fits(rule->words[i], name, NULL))
			return true;
	return false;
}

/* The first file, or, with directories, directory that matches one of these words; NULL: none. */
static const char *find(const struct check *check, size_t first, size_t last, bool directories)
{
	const struct rules_item *item = check->item;
	for (size_t i = 0; i < item->files->count; i++)
		if (fits_any(check->rule, first, last, item->files->files[i].name))
			return item->files->files[i].name;
	for (size_t i = 0; directories && item->directories[i]; i++)
		if (fits_any(check->rule, first, last, item->directories[i]))
			return item->directories[i];
	return NULL;
}

/* Add the words, "A or B", for a message. */
static const char *words(const struct rule *rule, size_t first, size_t last, struct text *text)
{
	for (size_t i = first; i < last; i++)
		text_addf(text, "%s%s", i > first ? " or " : "", rule->words[i]);
	return text_string(text);
}

static enum rules_answer broken(const struct check *check, enum rules_answer answer,
	const char *start, size_t first, size_t last, const char *end)
{
	struct text text = {0};
	error_set(check->why, STATUS_NO, "%s%s%s", start, words(check->rule, first, last, &text),
		end);
	text_release(&text);
	return answer;
}

/* The answer if a file could not be read as it should: it is missing, damaged, or unreadable. */
static enum rules_answer unread(enum status status)
{
	return status == STATUS_NO ? RULES_DAMAGED : RULES_UNREADABLE;
}

static const char *base_of(const char *name)
{
	const char *slash = strrchr(name, '/');
	return slash ? slash + 1 : name;
}

static bool has_file(const struct manifest *files, const char *name)
{
	size_t place = manifest_place(files, name);
	return place < files->count && strcmp(files->files[place].name, name) == 0;
}

/* Whether a file in this directory, "" or "NAME/", has a base that matches words first to last. */
static bool has_beside(
	const struct check *check, const char *name, size_t directory, size_t first, size_t last)
{
	const struct manifest *files = check->item->files;
	for (size_t i = 0; i < files->count; i++) {
		const char *other = files->files[i].name;
		if (strncmp(other, name, directory) == 0 &&
			fits_any(check->rule, first, last, other + directory))
			return true;
	}
	return false;
}

/* ---- One function for each kind of rule ---- */

static enum rules_answer check_any(const struct check *check)
{
	return find(check, 0, check->rule->count, false)
		       ? RULES_HOLD
		       : broken(check, check->answer, "it has no ", 0, check->rule->count, "");
}

static enum rules_answer check_none(const struct check *check)
{
	const char *found = find(check, 0, check->rule->count, true);
	if (!found)
		return RULES_HOLD;
	error_set(check->why, STATUS_NO, "%s says that it is not finished", found);
	return check->answer;
}

static enum rules_answer check_if(const struct check *check)
{
	size_t colon = check->rule->colon, count = check->rule->count;
	return !find(check, 0, colon, true) || find(check, colon, count, false)
		       ? RULES_HOLD
		       : broken(check, check->answer, "it has no ", colon, count, "");
}

static enum rules_answer check_filled(const struct check *check)
{
	bool any = false;
	for (size_t i = 0; i < check->item->files->count; i++) {
		const struct manifest_file *file = &check->item->files->files[i];
		if (!fits_any(check->rule, 0, check->rule->count, file->name))
			continue;
		if (file->bytes)
			return RULES_HOLD;
		any = true;
	}
	return any ? broken(check, check->answer, "all files ", 0, check->rule->count, " are empty")
		   : RULES_HOLD;
}

static enum rules_answer check_table(const struct check *check)
{
	for (size_t i = 0; i < check->item->files->count; i++) {
		const char *name = check->item->files->files[i].name;
		if (!fits(check->rule->words[0], name, NULL))
			continue;
		enum status status = format_check_tensorflow(check->item->root, name, check->why);
		if (status != STATUS_OK)
			return unread(status);
	}
	return RULES_HOLD;
}

/* "each": all of the directories have one of the files; "same": all or none. */
static enum rules_answer check_directories(const struct check *check, bool all)
{
	const struct rule *rule = check->rule;
	const char *first = rule->words[rule->colon], *with = NULL, *without = NULL;
	char inner[PATH_MAX];
	for (char *const *one = check->item->directories; *one; one++) {
		if (!fits_any(rule, 0, rule->colon, *one))
			continue;
		bool above = strncmp(first, "../", 3) == 0, has;
		int length = above ? snprintf(inner, sizeof(inner), "%.*s%s",
					     (int)(base_of(*one) - *one), *one, first + 3)
				   : snprintf(inner, sizeof(inner), "%s/", *one);
		has = above ? has_file(check->item->files, inner)
			    : has_beside(check, inner, (size_t)length, rule->colon, rule->count);
		*(has ? &with : &without) = *one;
	}
	if (!without || (!all && !with))
		return RULES_HOLD;
	snprintf(inner, sizeof(inner), "%s has no ", without);
	return broken(check, check->answer, inner, rule->colon, rule->count, "");
}

static enum rules_answer check_each(const struct check *check)
{
	return check_directories(check, true);
}

static enum rules_answer check_same(const struct check *check)
{
	return check_directories(check, false);
}

static enum rules_answer check_beside(const struct check *check)
{
	const struct rule *rule = check->rule;
	char start[PATH_MAX];
	for (size_t i = 0; i < check->item->files->count; i++) {
		const char *name = check->item->files->files[i].name, *base = base_of(name);
		if (!fits_any(rule, 0, rule->colon, base) ||
			has_beside(check, name, (size_t)(base - name), rule->colon, rule->count))
			continue;
		snprintf(start, sizeof(start), "beside %s there is no ", name);
		return broken(check, check->answer, start, rule->colon, rule->count, "");
	}
	return RULES_HOLD;
}

/* The files that match the only word, with their numbers. */
struct numbered {
	const char *name;
	struct pattern_number numbers[PATTERN_NUMBERS];
};

static size_t collect(const struct check *check, const char *pattern, struct numbered **found)
{
	const struct manifest *files = check->item->files;
	size_t count = 0;
	*found = xcalloc(files->count + 1, sizeof(**found));
	for (size_t i = 0; i < files->count; i++) {
		struct numbered *one = &(*found)[count];
		if (!fits(pattern, files->files[i].name, one->numbers))
			continue;
		one->name = files->files[i].name;
		count++;
	}
	return count;
}

/* Whether both names are equal but for this number. */
static bool is_same_but(const struct numbered *a, const struct numbered *b, int number)
{
	const struct pattern_number *x = &a->numbers[number], *y = &b->numbers[number];
	return x->at == y->at && strncmp(a->name, b->name, x->at) == 0 &&
	       strcmp(a->name + x->at + x->length, b->name + y->at + y->length) == 0;
}

static enum rules_answer check_numbered(const struct check *check)
{
	struct numbered *found;
	enum rules_answer answer = RULES_HOLD;
	size_t count = collect(check, check->rule->words[0], &found);
	for (size_t i = 0; i < count && answer == RULES_HOLD; i++) {
		const struct pattern_number *all = &found[i].numbers[PATTERN_N];
		uint64_t same = 0, low = UINT64_MAX, high = 0;
		for (size_t k = 0; k < count; k++) {
			const struct pattern_number *own = &found[k].numbers[PATTERN_I];
			if (is_same_but(&found[k], &found[i], PATTERN_I)) {
				same++;
				low = own->value < low ? own->value : low;
				high = own->value > high ? own->value : high;
			} else if (own->value == found[i].numbers[PATTERN_I].value &&
				   is_same_but(&found[k], &found[i], PATTERN_N) && k > i) {
				error_set(check->why, STATUS_NO, "%s and %s are of two saves",
					found[i].name, found[k].name);
				answer = RULES_BROKEN;
			}
		}
		if (answer == RULES_HOLD &&
			(same != all->value || low > 1 || high - low + 1 != same)) {
			error_set(check->why, STATUS_NO,
				"%" PRIu64 " of the %" PRIu64 " files such as %s are there", same,
				all->value, found[i].name);
			answer = RULES_BROKEN;
		}
		/* Files of one set are neighbours, mostly: skip those that were counted. */
		while (answer == RULES_HOLD && i + 1 < count &&
			is_same_but(&found[i + 1], &found[i], PATTERN_I))
			i++;
	}
	free(found);
	return answer;
}

static int by_numbers(const void *a, const void *b)
{
	const struct numbered *x = a, *y = b;
	for (int i = PATTERN_I; i <= PATTERN_J; i++)
		if (x->numbers[i].value != y->numbers[i].value)
			return x->numbers[i].value < y->numbers[i].value ? -1 : 1;
	return 0;
}

/* How many different pairs of {i} and {j} there are; and one more than the highest of each. */
static uint64_t distinct(struct numbered *found, size_t count, uint64_t extent[2])
{
	uint64_t different = 0;
	extent[0] = extent[1] = 0;
	if (count)
		qsort(found, count, sizeof(*found), by_numbers);
	for (size_t k = 0; k < count; k++) {
		different += k == 0 || by_numbers(&found[k], &found[k - 1]) != 0;
		for (int i = 0; i < 2; i++)
			if (found[k].numbers[i].value >= extent[i])
				extent[i] = found[k].numbers[i].value + 1;
	}
	return different;
}

static enum rules_answer check_grid(const struct check *check)
{
	struct numbered *found;
	uint64_t extent[2];
	size_t count = collect(check, check->rule->words[0], &found);
	uint64_t there = distinct(found, count, extent);
	free(found);
	if (there == extent[0] * extent[1])
		return RULES_HOLD;
	error_set(check->why, STATUS_NO, "%" PRIu64 " of at least %" PRIu64 " files %s are there",
		there, extent[0] * extent[1], check->rule->words[0]);
	return RULES_BROKEN;
}

static enum rules_answer check_json(const struct check *check)
{
	const char *key = check->rule->count > 1 ? check->rule->words[1] : NULL;
	const char *value = key ? strchr(key, '=') : NULL;
	char *own = key ? xstrndup(key, strcspn(key, "=")) : NULL;
	enum rules_answer answer = RULES_HOLD;
	for (size_t i = 0; i < check->item->files->count && answer == RULES_HOLD; i++) {
		const char *name = check->item->files->files[i].name;
		struct json_object *document = NULL, *member = NULL;
		if (!fits(check->rule->words[0], name, NULL))
			continue;
		enum status status =
			format_read_json(check->item->root, name, &document, check->why);
		answer = status == STATUS_OK ? RULES_HOLD : unread(status);
		bool has = own && json_object_object_get_ex(document, own, &member);
		if (answer == RULES_HOLD && value &&
			(!member || strcmp(json_object_get_string(member), value + 1) != 0)) {
			error_set(check->why, STATUS_NO, "%s does not say that %s is %s", name, own,
				value + 1);
			answer = check->answer;
		} else if (answer == RULES_HOLD && has && !member) {
			error_set(check->why, STATUS_NO,
				"%s says that it is not finished: %s is null", name, own);
			answer = check->answer;
		}
		json_object_put(document);
	}
	free(own);
	return answer;
}

static enum rules_answer check_path(const struct check *check)
{
	const char *file = check->rule->words[0];
	struct text name = {0};
	if (!has_file(check->item->files, file))
		return RULES_HOLD;
	enum status status = format_read(check->item->root, file, PATH_MAX, &name, check->why);
	enum rules_answer answer = status == STATUS_OK ? check->answer : unread(status);
	for (char *const *one = check->item->directories; status == STATUS_OK && *one; one++)
		if (strcmp(*one, text_first_line(&name)) == 0)
			answer = RULES_HOLD;
	if (status == STATUS_OK && answer != RULES_HOLD)
		error_set(check->why, STATUS_NO, "%s names no directory in it", file);
	text_release(&name);
	return answer;
}

/* Check the names in member: the values of an object, or the elements of an array. */
static enum rules_answer check_names(
	const struct check *check, const char *list, struct json_object *member)
{
	size_t count = 0;
	int directory = (int)(base_of(list) - list);
	char name[PATH_MAX];
	struct lh_entry *entry = json_object_is_type(member, json_type_object)
					 ? json_object_get_object(member)->head
					 : NULL;
	bool array = json_object_is_type(member, json_type_array);
	for (size_t i = 0; array ? i < json_object_array_length(member) : entry != NULL; i++) {
		struct json_object *one = array ? json_object_array_get_idx(member, i)
						: (struct json_object *)lh_entry_v(entry);
		const char *text = one ? json_object_get_string(one) : "";
		entry = array ? NULL : entry->next;
		count++;
		if (snprintf(name, sizeof(name), "%.*s%s", directory, list, text) <
				(int)sizeof(name) &&
			has_file(check->item->files, name))
			continue;
		error_set(check->why, STATUS_NO, "%s is missing, which %s names", text, list);
		return RULES_BROKEN;
	}
	if (count)
		return RULES_HOLD;
	error_set(check->why, STATUS_NO, "%s names no files", list);
	return RULES_BROKEN;
}

static enum rules_answer check_listed(const struct check *check)
{
	enum rules_answer answer = RULES_HOLD;
	for (size_t i = 0; i < check->item->files->count && answer == RULES_HOLD; i++) {
		const char *list = check->item->files->files[i].name;
		struct json_object *document = NULL, *member = NULL;
		if (!fits(check->rule->words[0], list, NULL))
			continue;
		enum status status =
			format_read_json(check->item->root, list, &document, check->why);
		(void)json_object_object_get_ex(document, check->rule->words[1], &member);
		answer = status == STATUS_OK ? check_names(check, list, member) : unread(status);
		json_object_put(document);
	}
	return answer;
}

/* Check the names that end in `end` in the pickle, which has strings as they are. */
static enum rules_answer check_pickle(
	const struct check *check, const char *pickle, const struct text *content, const char *end)
{
	const char *at = content->data, *last = at + content->length;
	int directory = (int)(base_of(pickle) - pickle);
	char name[PATH_MAX];
	bool any = false;
	if (content->length == 0 || last[-1] != '.') { /* the opcode STOP */
		error_set(check->why, STATUS_NO, "%s is cut short", pickle);
		return RULES_DAMAGED;
	}
	while (at < last && (at = memmem(at, (size_t)(last - at), end, strlen(end)))) {
		const char *start = at;
		while (start > content->data &&
			(isdigit((unsigned char)start[-1]) || start[-1] == '_'))
			start--;
		at += strlen(end);
		int length = snprintf(name, sizeof(name), "%.*s%.*s", directory, pickle,
			(int)(at - start), start);
		if (length >= (int)sizeof(name) || (size_t)(at - start) == strlen(end))
			continue;
		any = true;
		if (has_file(check->item->files, name))
			continue;
		error_set(check->why, STATUS_NO, "%s is missing, which %s names", name, pickle);
		return RULES_BROKEN;
	}
	if (any)
		return RULES_HOLD;
	error_set(check->why, STATUS_NO, "%s names no shards", pickle);
	return RULES_DAMAGED;
}

static enum rules_answer check_pickled(const struct check *check)
{
	enum rules_answer answer = RULES_HOLD;
	const char *end = check->rule->words[1] + 1; /* after '*' */
	for (size_t i = 0; i < check->item->files->count && answer == RULES_HOLD; i++) {
		const char *name = check->item->files->files[i].name, *base = base_of(name);
		struct text content = {0};
		if (strcmp(base, check->rule->words[0]) != 0)
			continue;
		enum status status =
			format_read(check->item->root, name, PICKLE_LIMIT, &content, check->why);
		answer = status == STATUS_OK ? check_pickle(check, name, &content, end)
					     : unread(status);
		text_release(&content);
	}
	return answer;
}

/* Read the number key in a file. False: it has none; *answer: it could not be read. */
static bool read_number(const struct check *check, const char *file, const char *key,
	uint64_t *number, enum rules_answer *answer)
{
	struct error why;
	enum status status = format_read_number(check->item->root, file, key, number, &why);
	if (status != STATUS_OK && status != STATUS_NO) {
		*answer = RULES_UNREADABLE;
		error_set(check->why, status, "%s", why.text);
	}
	return status == STATUS_OK && *number > 0;
}

/* Read the product of the numbers. False: the file has not all of them, or they do not tell. */
static bool read_product(
	const struct check *check, const char *file, uint64_t *product, enum rules_answer *answer)
{
	char keys[256], *state = NULL;
	uint64_t number, first = 0, other;
	snprintf(keys, sizeof(keys), "%s", check->rule->words[1]);
	*product = 1;
	for (char *key = strtok_r(keys, "*", &state); key; key = strtok_r(NULL, "*", &state)) {
		if (!read_number(check, file, key, &number, answer) ||
			__builtin_mul_overflow(*product, number, product))
			return false;
		first = first ? first : number;
	}
	return check->rule->count < 4 ||
	       !read_number(check, file, check->rule->words[3], &other, answer) || other == first;
}

static enum rules_answer check_world(const struct check *check)
{
	enum rules_answer answer = RULES_HOLD;
	struct numbered *found;
	uint64_t product = 0, extent[2];
	const char *said = NULL, *pattern = check->rule->words[2];
	size_t count = collect(check, pattern, &found);
	uint64_t there = strstr(pattern, "{i}") ? distinct(found, count, extent) : count;
	free(found);
	for (size_t i = 0; there && i < check->item->files->count && !said; i++) {
		const char *name = check->item->files->files[i].name;
		if (fits(check->rule->words[0], name, NULL) &&
			read_product(check, name, &product, &answer))
			said = name;
	}
	*check->item->told |= said != NULL;
	if (answer != RULES_HOLD || !said || product == there)
		return answer;
	error_set(check->why, STATUS_NO,
		"%" PRIu64 " of the %" PRIu64 " files %s that %s tells of are there", there,
		product, pattern, said);
	return RULES_BROKEN;
}

static enum rules_answer check_number(const struct check *check)
{
	enum rules_answer answer = RULES_HOLD;
	uint64_t number = 0;
	const char *said = find(check, 0, 1, false);
	if (!said || !read_number(check, said, check->rule->words[1], &number, &answer) ||
		find(check, check->rule->colon, check->rule->count, true))
		return answer;
	return broken(
		check, check->answer, "it has no ", check->rule->colon, check->rule->count, "");
}

static const struct {
	const char *name;
	size_t words; /* how many it needs */
	enum rules_answer answer;
	enum rules_answer (*check)(const struct check *check);
} kinds[] = {
	{"known", 1, RULES_UNKNOWN_FORM, check_any},
	{"any", 1, RULES_BROKEN, check_any},
	{"none", 1, RULES_BROKEN, check_none},
	{"if", 2, RULES_BROKEN, check_if},
	{"filled", 1, RULES_DAMAGED, check_filled},
	{"each", 2, RULES_BROKEN, check_each},
	{"same", 2, RULES_BROKEN, check_same},
	{"beside", 2, RULES_BROKEN, check_beside},
	{"numbered", 1, RULES_BROKEN, check_numbered},
	{"grid", 1, RULES_BROKEN, check_grid},
	{"json", 1, RULES_BROKEN, check_json},
	{"path", 1, RULES_BROKEN, check_path},
	{"listed", 2, RULES_BROKEN, check_listed},
	{"pickled", 2, RULES_BROKEN, check_pickled},
	{"table", 1, RULES_DAMAGED, check_table},
	{"world", 3, RULES_BROKEN, check_world},
	{"number", 3, RULES_BROKEN, check_number},
};

static enum rules_answer check_rule(struct check *check)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		check->answer = kinds[i].answer;
		if (strcmp(check->rule->text, kinds[i].name) == 0 &&
			check->rule->count >= kinds[i].words)
			return kinds[i].check(check);
	}
	error_set(check->why, STATUS_USAGE, "there is no rule \"%s\"", check->rule->text);
	return RULES_UNREADABLE;
}

enum rules_answer rules_check(const char *rules, const struct rules_item *item, struct error *why)
{
	struct rule rule;
	struct check check = {item, &rule, RULES_HOLD, why};
	/* The rules before the first "when" hold for all forms. */
	enum { ALL_FORMS, OTHER_FORM, THIS_FORM } at = ALL_FORMS;
	for (const char *line = rules; *line;) {
		size_t length = strcspn(line, "\n");
		enum rules_answer answer = RULES_HOLD;
		read_rule(line, length, item->step, &rule);
		line += length + (line[length] == '\n');
		if (strcmp(rule.text, "when") != 0)
			answer = at == OTHER_FORM ? RULES_HOLD : check_rule(&check);
		else if (at == THIS_FORM)
			return RULES_HOLD;
		else
			at = find(&check, 0, rule.count, true) ? THIS_FORM : OTHER_FORM;
		if (answer != RULES_HOLD)
			return answer;
	}
	if (at != OTHER_FORM)
		return RULES_HOLD;
	error_set(why, STATUS_NO, "no rule knows a checkpoint with these files");
	return RULES_UNKNOWN_FORM;
}
