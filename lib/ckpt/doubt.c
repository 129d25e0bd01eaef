/* SPDX-License-Identifier: MIT */
/* Doubt: a framework's checkpoint has less than the nearest older complete one (list.h). */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ckpt/framework.h"

#define LARGE (1 << 20) /* from this size on, a file of half the size is doubtful */

/*
 * The name without its numbers, so that two checkpoints can be compared; malloc'd. Several files
 * may then have the same name. A hash becomes '*'; a number becomes '#' if rules prove how many
 * such files there must be, else {n}.
 */
static char *without_numbers(const char *name, bool proved)
{
	struct text text = {0};
	char *end;
	while (*name) {
		size_t digits = strspn(name, "0123456789"), hash = strspn(name, "0123456789abcdef");
		bool begins = !text.length || !isalnum((unsigned char)text.data[text.length - 1]);
		if (hash >= 16 && begins) {
			text_add(&text, "*");
			name += hash;
		} else if (digits) {
			text_add(&text, proved ? "#" : "{n}");
			name += digits;
			if (*name == '.' && isdigit((unsigned char)name[1]))
				name += 1 + strspn(name + 1, "0123456789");
		} else if (*name == '=' && (strtod(name + 1, &end), end > name + 1)) {
			text_add(&text, "={n}"); /* a value: 1.5, -2, 1e-05, nan */
			name = end - (end[-1] == '.');
		} else {
			size_t plain = strcspn(name, "0123456789=/_-.");
			text_add_bytes(&text, name, plain ? plain : 1);
			name += plain ? plain : 1;
		}
	}
	return text.data;
}

static int by_name_and_size(const void *a, const void *b)
{
	const struct manifest_file *x = a, *y = b;
	int order = strcmp(x->name, y->name);
	return order ? order : (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

void framework_keep_names(
	struct list_item *item, const struct manifest *files, bool inside, const char *proved)
{
	for (size_t i = 0; i < files->count; i++) {
		const struct manifest_file *file = &files->files[i];
		char *name = without_numbers(file->name,
			inside && (pattern_any("**-*-of-* **.distcp", file->name, NULL) ||
					  pattern_any(proved, file->name, NULL)));
		manifest_add(item->files, name, file->bytes);
		free(name);
	}
	if (item->files->count)
		qsort(item->files->files, item->files->count, sizeof(*item->files->files),
			by_name_and_size);
}

/* How many files have this name; the first of them; and their bytes. */
static size_t find(const struct manifest *files, const char *name,
	const struct manifest_file **first, uint64_t *bytes)
{
	size_t at = manifest_place(files, name), count = 0;
	*first = &files->files[at];
	*bytes = 0;
	for (; at < files->count && strcmp(files->files[at].name, name) == 0; at++, count++)
		*bytes += files->files[at].bytes;
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
	const struct manifest_file *old, *new;
	uint64_t old_bytes, new_bytes;
	*names = *sizes = false;
	for (size_t i = 0, before; i < older->files->count && !*sizes; i += before) {
		const char *name = older->files->files[i].name;
		before = find(older->files, name, &old, &old_bytes);
		size_t count = find(item->files, name, &new, &new_bytes);
		bool hash = strchr(name, '*'), proved = strchr(name, '#');
		bool fewer = count == 0 ? !apart || strstr(name, "-EMA")
					: count < before && !alternatives && !proved &&
						  (!hash || new_bytes < old_bytes - old_bytes / 10);
		bool same = count == before && (before == 1 || (!proved && !hash));
		for (size_t k = 0; k < count && same && !*sizes; k++)
			*sizes = (old[k].bytes >= LARGE && new[k].bytes < old[k].bytes / 2) ||
				 (old[k].bytes && !new[k].bytes);
		if (*sizes)
			error_set(why, STATUS_NO, "%s is less than half as large as that of %s",
				name, older->checkpoint.name);
		else if (fewer && !*names)
			error_set(why, STATUS_NO, "%s has %zu %s, this one has %zu",
				older->checkpoint.name, before, name, count);
		*sizes |= fewer && hash;
		*names |= fewer;
	}
}

static bool has_same_names(const struct manifest *a, const struct manifest *b)
{
	bool same = a->count == b->count;
	for (size_t i = 0; i < a->count && same; i++)
		same = strcmp(a->files[i].name, b->files[i].name) == 0;
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
			  has_same_names(list->items[k].files, item->files);
	}
	/* Two saves that failed alike vouch for each other, too. */
	list_stay(
		&older->checkpoint, item->checkpoint.name, ", which has less, is compared with it");
	if (vouched)
		return;
	item->checkpoint.state = CHECKPOINT_DOUBTFUL;
	snprintf(item->checkpoint.why, sizeof(item->checkpoint.why), "%.255s", why.text);
}
