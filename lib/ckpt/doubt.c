/* SPDX-License-Identifier: MIT */
/* Doubt: a framework's checkpoint has less than the nearest older complete one (list.h). */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ckpt/framework.h"

#define LARGE (1 << 20) /* from this size on, a file of half the size is doubtful */

/* ---- Names without their numbers ---- */

/*
 * A name in which numbers are replaced, so that names of two checkpoints can be compared. In DIR
 * every number is, because epochs and values differ, too; in a directory a hash ('*'), and all
 * numbers of files that are proved by rules ('#'). Several files may then have the same name.
 */
static char *without_numbers(const char *patterns, const char *name, bool inside)
{
	struct text text = {0};
	bool proved = inside && (pattern_any("**-*-of-* **.distcp", name, NULL) ||
					pattern_any(patterns, name, NULL));
	char *end;
	for (const char *at = name; *at;) {
		size_t digits = strspn(at, "0123456789"), hash = strspn(at, "0123456789abcdef");
		if (inside && hash >= 16 && (at == name || !isalnum((unsigned char)at[-1]))) {
			text_add(&text, "*");
			at += hash;
		} else if (digits && (!inside || proved)) {
			text_add(&text, proved ? "#" : "{step}");
			at += digits;
			digits = !inside && *at == '.' ? strspn(at + 1, "0123456789") : 0;
			at += digits ? digits + 1 : 0;
		} else if (!inside && *at == '=' && (strtod(at + 1, &end), end > at + 1)) {
			text_add(&text, "={step}"); /* a value: 1.5, -2, 1e-05, nan */
			at = end - (end[-1] == '.');
		} else {
			digits = digits ? digits : 1;
			text_add_bytes(&text, at, digits);
			at += digits;
		}
	}
	return text.data;
}

/* The same name with another step in it; malloc'd. */
static char *with_step(const char *name, uint64_t from, uint64_t to)
{
	struct text text = {0};
	for (size_t length; *name; name += length) {
		size_t digits = strspn(name, "0123456789");
		length = digits ? digits : 1;
		if (digits && digits <= 18 && strtoull(name, NULL, 10) == from)
			text_addf(&text, "%0*" PRIu64, (int)digits, to);
		else
			text_add_bytes(&text, name, length);
	}
	return text.data;
}

void framework_keep_names(
	struct list_item *item, const struct manifest *files, bool inside, const char *proved)
{
	for (size_t i = 0; i < files->count; i++) {
		char *name = without_numbers(proved, files->files[i].name, inside);
		manifest_add(item->files, name, files->files[i].bytes);
		free(name);
	}
}

/* ---- Doubt: a comparison with the nearest older complete one ---- */

/* How many files have this name; and their bytes. */
static size_t count_files(const struct manifest *files, const char *name, uint64_t *bytes)
{
	size_t at = manifest_place(files, name), count = 0;
	*bytes = 0;
	for (; at < files->count && strcmp(files->files[at].name, name) == 0; at++, count++)
		*bytes += files->files[at].bytes;
	return count;
}

/* How many files item has under the name that a file of `of` has, perhaps with the step in it. */
static size_t count_same(
	const struct list_item *item, const char *name, const struct list_item *of, uint64_t *bytes)
{
	size_t count = count_files(item->files, name, bytes);
	if (count)
		return count;
	char *own = with_step(name, of->checkpoint.step, item->checkpoint.step);
	count = count_files(item->files, own, bytes);
	free(own);
	return count;
}

/*
 * Whether item has less than older: *names: fewer files; *sizes: a file that is much smaller. why
 * says what. alternatives: a step may have been saved several times; apart: and these are files,
 * each whole without the others, but for NeMo's averages.
 */
static void compare(const struct list_item *item, const struct list_item *older, bool alternatives,
	bool apart, bool *names, bool *sizes, struct error *why)
{
	uint64_t old, new;
	*names = *sizes = false;
	for (size_t i = 0, before; i < older->files->count && !*sizes; i += before) {
		const char *name = older->files->files[i].name;
		before = count_files(older->files, name, &old);
		size_t count = count_same(item, name, older, &new);
		bool hash = strchr(name, '*') != NULL;
		bool fewer = count == 0 ? !apart || strstr(name, "-EMA")
					: count < before && !alternatives && !strchr(name, '#') &&
						  (!hash || new < old - old / 10);
		*sizes = (fewer && hash) ||
			 (count == 1 && before == 1 &&
				 ((old >= LARGE && new < old / 2) || (old && !new)));
		if (*sizes && !fewer)
			error_set(why, STATUS_NO, "%s is less than half as large as that of %s",
				name, older->checkpoint.name);
		else if (fewer && !*names && before > 1)
			error_set(why, STATUS_NO, "%s has %zu files %s, this one has %zu",
				older->checkpoint.name, before, name, count);
		else if (fewer && !*names)
			error_set(why, STATUS_NO, "%s has a file %s, this one has none",
				older->checkpoint.name, name);
		*names |= fewer;
	}
}

static bool has_same_names(const struct list_item *a, const struct list_item *b)
{
	uint64_t unused;
	bool same = a->files->count == b->files->count;
	for (size_t i = 0; i < a->files->count && same; i++)
		same = count_same(b, a->files->files[i].name, a, &unused) > 0;
	return same;
}

void framework_doubt(struct list *list, size_t i)
{
	struct list_item *item = &list->items[i], *older = NULL;
	const struct list_request *request = &list->request;
	const bool alternatives = request->layout->alternatives;
	const uint64_t step = item->checkpoint.step;
	bool names, sizes, vouched = false;
	struct error why;
	if (item->checkpoint.state != CHECKPOINT_COMPLETE || item->checkpoint.own)
		return;
	for (size_t k = i; k-- > 0 && !older;)
		if (list->items[k].checkpoint.state == CHECKPOINT_COMPLETE &&
			!list->items[k].checkpoint.own)
			older = &list->items[k];
	if (!older || list_has_mark(list, step, CKPT_BESIDE_GOOD, item->checkpoint.changed) ||
		(request->saved && *request->saved == step))
		return;
	bool apart = alternatives && !(list->entries[item->first].directory &&
					     list->entries[older->first].directory);
	compare(item, older, alternatives, apart, &names, &sizes, &why);
	if (!names && !sizes)
		return;
	for (size_t k = 0; k < list->count && !sizes && !vouched; k++) {
		enum checkpoint_state state = list->items[k].checkpoint.state;
		vouched = k != i && !list->items[k].checkpoint.own &&
			  (state == CHECKPOINT_COMPLETE || state == CHECKPOINT_DOUBTFUL) &&
			  has_same_names(&list->items[k], item);
	}
	/* Two saves that failed alike vouch for each other, too. */
	list_stay(
		&older->checkpoint, item->checkpoint.name, ", which has less, is compared with it");
	if (vouched)
		return;
	item->checkpoint.state = CHECKPOINT_DOUBTFUL;
	snprintf(item->checkpoint.why, sizeof(item->checkpoint.why), "%.255s", why.text);
}
