/* SPDX-License-Identifier: MIT */
#include "levels.h"

#include <stdlib.h>
#include <string.h>

bool operation_has(const struct history *history, const struct operation *operation, bool otherwise,
	enum store_op_kind kind)
{
	for (size_t i = 0; i < operation->part_count; i++) {
		const struct key_operation *part = &history->parts[operation->part + i];
		if (part->otherwise == otherwise && part->kind == kind)
			return true;
	}
	return false;
}

static bool may_write(const struct history *history, const struct operation *operation)
{
	return operation_has(history, operation, false, STORE_PUT) ||
	       operation_has(history, operation, false, STORE_DELETE) ||
	       operation_has(history, operation, true, STORE_PUT) ||
	       operation_has(history, operation, true, STORE_DELETE);
}

static bool is_told(const struct operation *operation)
{
	return operation->outcome == ANSWERED || operation->outcome == QUIET;
}

static bool is_wrong(struct levels *levels, struct fault fault)
{
	levels->fault = fault;
	return false;
}

static void *zeroed(size_t count, size_t size)
{
	void *memory = calloc(count, size);
	if (!memory)
		abort();
	return memory;
}

static size_t level_of(const struct levels *levels, store_revision revision)
{
	return (size_t)(revision - levels->history->base);
}

/* Find the last level. Refuses revisions that are far too large; the walk refuses all others. */
static bool find_last(struct levels *levels)
{
	const struct history *history = levels->history;
	store_revision most = history->base + 2 * (store_revision)history->count + 1000;
	for (size_t i = 0; i < history->count; i++) {
		const struct operation *operation = &history->operations[i];
		if (!is_told(operation))
			continue;
		if (operation->revision < history->base || operation->revision > most)
			return is_wrong(levels,
				(struct fault){
					.kind = operation->revision > most ? FAULT_FAR : FAULT_BACK,
					.operation = operation,
					.key = -1,
					.revision = operation->revision});
		if (level_of(levels, operation->revision) > levels->last)
			levels->last = level_of(levels, operation->revision);
	}
	return true;
}

static void sort(struct levels *levels)
{
	const struct history *history = levels->history;
	size_t *end;
	levels->members = zeroed(history->count + 1, sizeof(*levels->members));
	levels->first = zeroed(levels->last + 3, sizeof(*levels->first));
	levels->least_back = zeroed(levels->last + 2, sizeof(*levels->least_back));
	for (size_t l = 0; l <= levels->last + 1; l++)
		levels->least_back[l] = HISTORY_LATER;
	for (size_t i = 0; i < history->count; i++) {
		const struct operation *operation = &history->operations[i];
		if (!is_told(operation))
			continue;
		size_t level = level_of(levels, operation->revision);
		levels->first[level + 2]++;
		if (operation->back < levels->least_back[level])
			levels->least_back[level] = operation->back;
	}
	for (size_t l = 2; l <= levels->last + 2; l++)
		levels->first[l] += levels->first[l - 1];
	for (size_t l = levels->last; l-- > 0;)
		if (levels->least_back[l + 1] < levels->least_back[l])
			levels->least_back[l] = levels->least_back[l + 1];
	/* first[l + 1] is where level l goes on; in the end it is where level l ends. */
	end = levels->first + 1;
	for (size_t i = 0; i < history->count; i++)
		if (is_told(&history->operations[i]))
			levels->members[end[level_of(levels, history->operations[i].revision)]++] =
				&history->operations[i];
}

static bool set_maker(struct levels *levels, const struct operation *maker, store_revision revision)
{
	size_t level = level_of(levels, revision);
	const struct operation *other = levels->maker[level];
	if (other && other != maker)
		return is_wrong(levels, (struct fault){FAULT_TWO_MAKERS, maker, other, .key = -1,
						.revision = revision});
	levels->maker[level] = maker;
	levels->made_by[maker - levels->history->operations] = revision;
	return true;
}

/* The acknowledged operations that put something made their revisions. */
static bool find_told_makers(struct levels *levels)
{
	const struct history *history = levels->history;
	for (size_t i = 0; i < history->count; i++) {
		const struct operation *operation = &history->operations[i];
		if (operation->outcome == ANSWERED && operation->kind == TRANSACTION &&
			operation_has(history, operation, !operation->held, STORE_PUT) &&
			!set_maker(levels, operation, operation->revision))
			return false;
	}
	return true;
}

/* The value of an entry names the operation that made the entry's revision. */
static bool learn_from_entry(
	struct levels *levels, const struct operation *reader, const struct key_entry *entry)
{
	const struct history *history = levels->history;
	struct fault fault = {.operation = reader, .key = entry->key, .found = *entry};
	if (entry->revision == 0)
		return true;
	fault.other = entry->value ? history_find(history, entry->value) : NULL;
	fault.revision = reader->revision;
	if (entry->revision > reader->revision)
		fault.kind = FAULT_FUTURE;
	else if (!fault.other || entry->revision <= history->base)
		fault.kind = FAULT_NEVER_WRITTEN;
	else if (fault.other->outcome == NO_EFFECT)
		fault.kind = FAULT_REFUSED;
	if (fault.kind != FAULT_NONE)
		return is_wrong(levels, fault);
	store_revision *made = &levels->made_by[fault.other - history->operations];
	store_revision is = *made;
	if (!is && fault.other->outcome == ANSWERED)
		is = fault.other->revision;
	if (is && is != entry->revision) {
		fault.kind = FAULT_TWICE;
		fault.revision = is;
		return is_wrong(levels, fault);
	}
	return set_maker(levels, fault.other, entry->revision);
}

/* From the change at revision on, and up to the store's revision until, the key was not changed. */
static void set_untouched(
	struct levels *levels, int key, store_revision revision, store_revision until)
{
	int32_t *row = levels->untouched + (size_t)key * (levels->last + 2);
	if (revision < levels->history->base)
		revision = levels->history->base;
	if (until <= revision || level_of(levels, until) > levels->last)
		return;
	row[level_of(levels, revision) + 1]++;
	row[level_of(levels, until) + 1]--;
}

static bool learn(struct levels *levels, const struct operation *operation)
{
	const struct history *history = levels->history;
	for (size_t i = 0; i < operation->entry_count; i++) {
		const struct key_entry *entry = &history->entries[operation->entry + i];
		if (!learn_from_entry(levels, operation, entry))
			return false;
		if (entry->revision)
			set_untouched(levels, entry->key, entry->revision, operation->revision);
	}
	for (uint64_t keys = operation->outcome == QUIET ? history->under[operation->prefix] : 0;
		keys; keys &= keys - 1)
		set_untouched(levels, __builtin_ctzll(keys), operation->since, operation->revision);
	return true;
}

static bool learn_all(struct levels *levels)
{
	const struct history *history = levels->history;
	for (size_t i = 0; i < history->count; i++)
		if (is_told(&history->operations[i]) && !learn(levels, &history->operations[i]))
			return false;
	for (int k = 0; k < history->key_count; k++) {
		int32_t *row = levels->untouched + (size_t)k * (levels->last + 2);
		for (size_t l = 1; l <= levels->last; l++)
			row[l] += row[l - 1];
	}
	return true;
}

static void find_unknown(struct levels *levels)
{
	const struct history *history = levels->history;
	levels->unknown = zeroed(history->count + 1, sizeof(*levels->unknown));
	for (size_t i = 0; i < history->count; i++) {
		const struct operation *operation = &history->operations[i];
		if (operation->outcome != UNKNOWN || !may_write(history, operation))
			continue;
		levels->may_write_unknown++;
		if (!levels->made_by[i])
			levels->unknown[levels->unknown_count++] = operation;
	}
}

bool levels_make(struct levels *levels, const struct history *history)
{
	*levels = (struct levels){.history = history};
	if (!find_last(levels))
		return false;
	sort(levels);
	levels->maker = zeroed(levels->last + 1, sizeof(*levels->maker));
	levels->made_by = zeroed(history->count + 1, sizeof(*levels->made_by));
	levels->untouched = zeroed(
		(size_t)history->key_count * (levels->last + 2) + 1, sizeof(*levels->untouched));
	if (!find_told_makers(levels) || !learn_all(levels))
		return false;
	find_unknown(levels);
	return true;
}

void levels_release(struct levels *levels)
{
	free(levels->members);
	free(levels->first);
	free(levels->maker);
	free(levels->least_back);
	free(levels->untouched);
	free(levels->made_by);
	free(levels->unknown);
	*levels = (struct levels){0};
}
