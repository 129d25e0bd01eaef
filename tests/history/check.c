/* SPDX-License-Identifier: MIT */
#include "check.h"

#include <stdlib.h>
#include <string.h>

#include "fault.h"
#include "levels.h"

struct key_state {
	store_revision revision; /* 0: absent */
	operation_name value;
	store_revision changed;	    /* the last put or delete; 0: never */
	const struct operation *by; /* the operation that did it; NULL: none */
};

/* The latest instant at which a wait says that nothing was newer than what is walked through. */
struct quiet {
	int64_t instant;
	const struct operation *by;
};

/* All that was learnt on the way to a level. */
struct context {
	struct key_state keys[HISTORY_KEYS];
	struct quiet quiet[HISTORY_PREFIXES];
	int64_t called; /* the latest call of all operations before; INT64_MIN: there are none */
	const struct operation *called_by;
	uint64_t used_hash;
	unsigned char used[]; /* for each of levels->unknown: it has taken effect */
};

/* A level that several operations may have made, and which of them are not tried yet. */
struct choice {
	struct choice *before;
	struct context *context; /* before that level */
	size_t level, next, count;
	const struct operation *makers[];
};

struct walk {
	const struct history *history;
	struct levels levels;
	struct choice *choices; /* the last one */
	struct fault fault;	/* of this step */
	struct fault deepest;	/* of the step that came furthest */
	size_t deepest_level;
	uint64_t *visited; /* choices that were come to; 0: free */
	size_t visited_count, visited_capacity;
};

static void *zeroed(size_t size)
{
	void *memory = calloc(1, size);
	if (!memory)
		abort();
	return memory;
}

static bool is_wrong(struct walk *walk, struct fault fault)
{
	walk->fault = fault;
	return false;
}

static struct key_entry entry_of(const struct key_state *state, int key)
{
	return (struct key_entry){key, state->revision, state->value};
}

/* ---- One transaction ---- */

/* The first compare that does not hold; NULL: they all do. */
static const struct key_compare *first_that_fails(const struct history *history,
	const struct key_state *keys, const struct operation *operation)
{
	for (size_t i = 0; i < operation->compare_count; i++) {
		const struct key_compare *compare = &history->compares[operation->compare + i];
		if (keys[compare->key].revision != compare->revision)
			return compare;
	}
	return NULL;
}

/* Do its puts and deletes; returns the keys that were changed. */
static uint64_t run(const struct history *history, struct key_state *keys,
	const struct operation *operation, bool held, store_revision revision)
{
	uint64_t changed = 0;
	for (size_t i = 0; i < operation->part_count; i++) {
		const struct key_operation *part = &history->parts[operation->part + i];
		struct key_state *state = &keys[part->key];
		if (part->otherwise == held || part->kind == STORE_GET ||
			(part->kind == STORE_DELETE && !state->revision))
			continue;
		bool puts = part->kind == STORE_PUT;
		*state = (struct key_state){
			puts ? revision : 0, puts ? operation->name : 0, revision, operation};
		changed |= (uint64_t)1 << part->key;
	}
	return changed;
}

/* Was it told rightly whether its compares hold? keys: when they were asked. */
static bool check_held(struct walk *walk, const struct key_state *keys,
	const struct operation *operation, store_revision revision)
{
	const struct key_compare *fails = first_that_fails(walk->history, keys, operation);
	if (operation->held == !fails)
		return true;
	struct fault fault = {
		.kind = FAULT_HELD, .operation = operation, .key = -1, .revision = revision};
	if (operation->compare_count) {
		fault.key = fails ? fails->key : walk->history->compares[operation->compare].key;
		fault.other = keys[fault.key].by;
		fault.wanted = entry_of(&keys[fault.key], fault.key);
	}
	return is_wrong(walk, fault);
}

static bool check_entry(struct walk *walk, const struct key_state *state,
	const struct operation *operation, const struct key_entry *entry, store_revision revision)
{
	if (entry->revision == state->revision && entry->value == state->value)
		return true;
	return is_wrong(walk, (struct fault){.kind = FAULT_ENTRY,
				      .operation = operation,
				      .other = state->by,
				      .key = entry->key,
				      .revision = revision,
				      .found = *entry,
				      .wanted = entry_of(state, entry->key)});
}

static bool wrong_entries(struct walk *walk, const struct operation *operation)
{
	return is_wrong(walk, (struct fault){.kind = FAULT_ENTRIES,
				      .operation = operation,
				      .key = -1,
				      .revision = operation->revision});
}

/* Did it read what is present? Each get comes after the puts and deletes that stand before it. */
static bool check_gets(struct walk *walk, const struct key_state *keys,
	const struct operation *operation, store_revision revision)
{
	const struct history *history = walk->history;
	size_t n = 0;
	for (size_t i = 0; i < operation->part_count; i++) {
		const struct key_operation *part = &history->parts[operation->part + i];
		if (part->otherwise == operation->held || part->kind != STORE_GET)
			continue;
		const struct key_entry *entry = &history->entries[operation->entry + n];
		if (n++ == operation->entry_count || entry->key != part->key)
			return wrong_entries(walk, operation);
		struct operation before = *operation;
		struct key_state state[HISTORY_KEYS];
		before.part_count = i;
		memcpy(state, keys, sizeof(state));
		run(history, state, &before, operation->held, operation->revision);
		if (!check_entry(walk, &state[part->key], operation, entry, revision))
			return false;
	}
	return n == operation->entry_count || wrong_entries(walk, operation);
}

/* ---- Operations that only saw a level ---- */

/* It changed nothing: what it deleted was absent. */
static bool check_transaction(
	struct walk *walk, const struct context *context, const struct operation *operation)
{
	const struct key_state *keys = context->keys;
	struct key_state after[HISTORY_KEYS];
	if (!check_held(walk, keys, operation, operation->revision))
		return false;
	memcpy(after, keys, sizeof(after));
	uint64_t changed =
		run(walk->history, after, operation, operation->held, operation->revision);
	if (changed) {
		int key = __builtin_ctzll(changed);
		return is_wrong(walk, (struct fault){.kind = FAULT_NOT_DELETED,
					      .operation = operation,
					      .other = keys[key].by,
					      .key = key,
					      .revision = operation->revision,
					      .wanted = entry_of(&keys[key], key)});
	}
	return check_gets(walk, keys, operation, operation->revision);
}

static bool check_list(
	struct walk *walk, const struct context *context, const struct operation *operation)
{
	const struct history *history = walk->history;
	uint64_t wanted = history->under[operation->prefix], listed = 0;
	for (size_t i = 0; i < operation->entry_count; i++) {
		const struct key_entry *entry = &history->entries[operation->entry + i];
		uint64_t bit = (uint64_t)1 << entry->key;
		if (!(wanted & bit) || (listed & bit) || entry->revision <= operation->since)
			return wrong_entries(walk, operation);
		listed |= bit;
		if (!check_entry(walk, &context->keys[entry->key], operation, entry,
			    operation->revision))
			return false;
	}
	for (uint64_t rest = wanted & ~listed; rest; rest &= rest - 1) {
		int key = __builtin_ctzll(rest);
		const struct key_state *state = &context->keys[key];
		if (state->revision > operation->since)
			return is_wrong(walk, (struct fault){.kind = FAULT_MISSING,
						      .operation = operation,
						      .other = state->by,
						      .key = key,
						      .revision = operation->revision,
						      .wanted = entry_of(state, key)});
	}
	return true;
}

static bool check_wait(
	struct walk *walk, const struct context *context, const struct operation *operation)
{
	int changed = -1;
	for (uint64_t rest = walk->history->under[operation->prefix]; rest; rest &= rest - 1) {
		int key = __builtin_ctzll(rest);
		if (context->keys[key].changed > operation->since)
			changed = key;
	}
	if (operation->outcome == QUIET && changed >= 0)
		return is_wrong(walk, (struct fault){.kind = FAULT_WAIT_MISSED,
					      .operation = operation,
					      .other = context->keys[changed].by,
					      .key = changed,
					      .revision = operation->revision});
	/* What was forgotten may have been a change. */
	bool may_err = operation->since < walk->history->base ||
		       operation->revision - operation->since > CHECK_REMEMBERED;
	if (operation->outcome == ANSWERED && changed < 0 && !may_err)
		return is_wrong(walk, (struct fault){.kind = FAULT_WAIT_NOTHING,
					      .operation = operation,
					      .key = -1,
					      .revision = operation->revision});
	return true;
}

static bool check_observer(
	struct walk *walk, const struct context *context, const struct operation *operation)
{
	switch (operation->kind) {
	case TRANSACTION: return check_transaction(walk, context, operation);
	case LIST: return check_list(walk, context, operation);
	case WAIT: return check_wait(walk, context, operation);
	}
	return false;
}

/* ---- One level ---- */

static bool check_order(struct walk *walk, const struct operation *operation,
	const struct operation *earlier, int64_t called, store_revision revision)
{
	if (!earlier || operation->back >= called)
		return true;
	return is_wrong(walk, (struct fault){.kind = FAULT_ORDER,
				      .operation = operation,
				      .other = earlier,
				      .key = -1,
				      .revision = revision});
}

/* The operation of this level or a later one that was answered first. */
static const struct operation *first_back(const struct levels *levels, size_t level)
{
	const struct operation **at = levels->members + levels->first[level];
	while ((*at)->back != levels->least_back[level])
		at++;
	return *at;
}

/*
 * A wait said that at an instant nothing under its prefix was newer than its revision. False: a
 * change under its prefix made this level, and this level or a later one had been answered by then.
 */
static bool check_quiet(
	struct walk *walk, const struct context *context, uint64_t changed, store_revision revision)
{
	const struct levels *levels = &walk->levels;
	size_t level = (size_t)(revision - walk->history->base);
	for (int p = 0; p < walk->history->prefix_count; p++) {
		const struct quiet *quiet = &context->quiet[p];
		if (quiet->by && (walk->history->under[p] & changed) &&
			levels->least_back[level] < quiet->instant)
			return is_wrong(walk, (struct fault){.kind = FAULT_WAIT_LATE,
						      .operation = quiet->by,
						      .other = first_back(levels, level),
						      .key = -1,
						      .revision = revision,
						      .instant = quiet->instant});
	}
	return true;
}

static bool make_level(struct walk *walk, struct context *context, const struct operation *maker,
	store_revision revision)
{
	bool told = maker->outcome == ANSWERED;
	bool held = !first_that_fails(walk->history, context->keys, maker);
	struct key_state before[HISTORY_KEYS];
	if (!check_order(walk, maker, context->called_by, context->called, revision) ||
		(told && !check_held(walk, context->keys, maker, revision - 1)))
		return false;
	memcpy(before, context->keys, sizeof(before));
	uint64_t changed = run(walk->history, context->keys, maker, held, revision);
	if (!changed)
		return is_wrong(walk, (struct fault){.kind = FAULT_UNCHANGED,
					      .operation = maker,
					      .key = -1,
					      .revision = revision});
	return (!told || check_gets(walk, before, maker, revision - 1)) &&
	       check_quiet(walk, context, changed, revision);
}

static void note_call(struct context *context, const struct operation *operation)
{
	if (context->called_by && operation->call <= context->called)
		return;
	context->called = operation->call;
	context->called_by = operation;
}

static void note_quiet(struct context *context, const struct operation *wait)
{
	int64_t instant = wait->unchanged;
	struct quiet *quiet = &context->quiet[wait->prefix];
	if (wait->limit >= CHECK_LONG_WAIT && wait->call > instant)
		instant = wait->call;
	if (instant != INT64_MIN && (!quiet->by || instant > quiet->instant))
		*quiet = (struct quiet){instant, wait};
}

/* The maker of a revision of a server that has other users, and changes nothing of ours. */
static const struct operation another_user = {.outcome = ANSWERED};

/* Everything at one level. maker: NULL at level 0. False: walk->fault says what is wrong. */
static bool step(
	struct walk *walk, struct context *context, size_t level, const struct operation *maker)
{
	const struct levels *levels = &walk->levels;
	store_revision revision = walk->history->base + (store_revision)level;
	const struct operation **end = levels->members + levels->first[level + 1];
	if (maker == &another_user)
		maker = NULL;
	if (maker && !make_level(walk, context, maker, revision))
		return false;
	for (const struct operation **at = levels->members + levels->first[level]; at < end; at++)
		if (*at != maker &&
			(!check_order(walk, *at, context->called_by, context->called, revision) ||
				(maker && !check_order(walk, *at, maker, maker->call, revision)) ||
				!check_observer(walk, context, *at)))
			return false;
	if (maker)
		note_call(context, maker);
	/* What a wait that timed out knows may be of long before its call. */
	for (const struct operation **at = levels->members + levels->first[level]; at < end; at++)
		if ((*at)->outcome == QUIET)
			note_quiet(context, *at);
		else
			note_call(context, *at);
	return true;
}

/* ---- The operations that may have made a level ---- */

/* What it would change, where its compares agree with what it was told. */
static uint64_t would_change(const struct walk *walk, const struct context *context,
	const struct operation *operation, struct key_state *keys, store_revision revision)
{
	bool held = !first_that_fails(walk->history, context->keys, operation);
	memcpy(keys, context->keys, sizeof(context->keys));
	if (operation->outcome == ANSWERED && held != operation->held)
		return 0;
	return run(walk->history, keys, operation, held, revision);
}

/* The deletes that were answered at a level, and may have made it. */
struct deleters {
	uint64_t deleted; /* by any: what another maker must have deleted */
	uint64_t only; /* deleted by the one that takes the place of any other; 0: there is none */
};

/*
 * Where an acknowledged delete read nothing, and the clock allows that it made the level, no
 * operation of unknown outcome that would have deleted the same keys is tried as the maker: the
 * rest of the history would be the same.
 */
static struct deleters find_deleters(
	const struct walk *walk, const struct context *context, size_t level, struct choice *choice)
{
	const struct levels *levels = &walk->levels;
	struct deleters deleters = {0};
	struct key_state keys[HISTORY_KEYS];
	for (size_t i = levels->first[level]; i < levels->first[level + 1]; i++) {
		const struct operation *operation = levels->members[i];
		if (operation->kind != TRANSACTION)
			continue;
		uint64_t changed =
			would_change(walk, context, operation, keys, operation->revision);
		if (!changed)
			continue;
		choice->makers[choice->count++] = operation;
		deleters.deleted |= changed;
		if (!operation->entry_count && operation->call <= levels->least_back[level])
			deleters.only = changed;
	}
	return deleters;
}

static bool may_have_made(const struct walk *walk, const struct context *context, size_t unknown,
	size_t level, const struct deleters *deleters)
{
	const struct levels *levels = &walk->levels;
	const struct operation *operation = levels->unknown[unknown];
	store_revision revision = walk->history->base + (store_revision)level;
	struct key_state keys[HISTORY_KEYS];
	if (context->used[unknown] || operation->call > levels->least_back[level])
		return false;
	uint64_t changed = would_change(walk, context, operation, keys, revision);
	if (!changed || changed == deleters->only)
		return false;
	for (uint64_t rest = changed; rest; rest &= rest - 1) {
		size_t key = (size_t)__builtin_ctzll(rest);
		if (levels->untouched[key * (levels->last + 2) + level] > 0)
			return false;
	}
	for (uint64_t rest = deleters->deleted; rest; rest &= rest - 1)
		if (keys[__builtin_ctzll(rest)].revision)
			return false;
	return true;
}

/* All operations that may have made this level, in a new choice. */
static struct choice *find_makers(
	const struct walk *walk, const struct context *context, size_t level)
{
	const struct levels *levels = &walk->levels;
	size_t most = levels->first[level + 1] - levels->first[level] + levels->unknown_count + 1;
	struct choice *choice = zeroed(sizeof(*choice) + most * sizeof(choice->makers[0]));
	choice->level = level;
	if (levels->maker[level]) {
		choice->makers[choice->count++] = levels->maker[level];
		return choice;
	}
	struct deleters deleters = find_deleters(walk, context, level, choice);
	for (size_t u = 0; u < levels->unknown_count; u++)
		if (may_have_made(walk, context, u, level, &deleters))
			choice->makers[choice->count++] = levels->unknown[u];
	if (walk->history->shared)
		choice->makers[choice->count++] = &another_user;
	return choice;
}

/* ---- The search ---- */

static size_t context_size(const struct walk *walk)
{
	return sizeof(struct context) + walk->levels.unknown_count;
}

static uint64_t mixed(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

/* Of all that what follows depends on. */
static uint64_t hash(const struct walk *walk, const struct context *context, size_t level)
{
	uint64_t sum = mixed(level + 1) ^ context->used_hash;
	for (int k = 0; k < walk->history->key_count; k++) {
		const struct key_state *state = &context->keys[k];
		sum = mixed(sum + (uint64_t)state->revision);
		sum = mixed(sum + (uint64_t)state->changed) ^ state->value;
	}
	return mixed(sum) | 1;
}

static bool insert(uint64_t *table, size_t capacity, uint64_t value)
{
	size_t at = value & (capacity - 1);
	for (; table[at]; at = (at + 1) & (capacity - 1))
		if (table[at] == value)
			return false;
	table[at] = value;
	return true;
}

/* False: it was come to before. */
static bool visit(struct walk *walk, uint64_t value)
{
	if (walk->visited_count * 2 >= walk->visited_capacity) {
		size_t capacity = walk->visited_capacity ? walk->visited_capacity * 2 : 1024;
		uint64_t *table = zeroed(capacity * sizeof(*table));
		for (size_t i = 0; i < walk->visited_capacity; i++)
			if (walk->visited[i])
				insert(table, capacity, walk->visited[i]);
		free(walk->visited);
		walk->visited = table;
		walk->visited_capacity = capacity;
	}
	bool fresh = insert(walk->visited, walk->visited_capacity, value);
	walk->visited_count += fresh;
	return fresh;
}

static void note_used(
	const struct walk *walk, struct context *context, const struct operation *maker)
{
	for (size_t u = 0; u < walk->levels.unknown_count; u++)
		if (walk->levels.unknown[u] == maker) {
			context->used[u] = 1;
			context->used_hash ^= mixed(u + 1000003);
		}
}

static void drop_choice(struct walk *walk)
{
	struct choice *choice = walk->choices;
	walk->choices = choice->before;
	free(choice->context);
	free(choice);
}

/*
 * The operation to try first as the maker of the level; the others are kept. NULL: there is none.
 */
static const struct operation *choose(
	struct walk *walk, const struct context *context, size_t level)
{
	struct choice *choice = find_makers(walk, context, level);
	const struct operation *maker = choice->count ? choice->makers[0] : NULL;
	if (choice->count > 1 && visit(walk, hash(walk, context, level))) {
		choice->context = zeroed(context_size(walk));
		memcpy(choice->context, context, context_size(walk));
		choice->next = 1;
		choice->before = walk->choices;
		walk->choices = choice;
		return maker;
	}
	if (choice->count > 1)
		maker = NULL;
	free(choice);
	return maker;
}

static void note_fault(struct walk *walk, size_t level)
{
	if (walk->deepest.kind != FAULT_NONE && level <= walk->deepest_level)
		return;
	walk->deepest = walk->fault;
	walk->deepest_level = level;
}

/* The first operation that was answered at this level or a later one. */
static const struct operation *first_seen(const struct levels *levels, size_t level)
{
	return levels->members[levels->first[level]];
}

/* Go back to the last choice; NULL: there is none left. */
static const struct operation *go_back(struct walk *walk, struct context *context, size_t *level)
{
	while (walk->choices && walk->choices->next == walk->choices->count)
		drop_choice(walk);
	if (!walk->choices)
		return NULL;
	memcpy(context, walk->choices->context, context_size(walk));
	*level = walk->choices->level;
	return walk->choices->makers[walk->choices->next++];
}

static enum verdict_kind search(
	struct walk *walk, struct context *context, int64_t most, int64_t *steps)
{
	size_t level = 0;
	const struct operation *maker = NULL;
	for (*steps = 0; *steps < most; ++*steps) {
		if (maker && maker->outcome == UNKNOWN)
			note_used(walk, context, maker);
		bool right = step(walk, context, level, maker);
		if (right && level == walk->levels.last)
			return LINEARIZABLE;
		if (right) {
			level++;
			maker = choose(walk, context, level);
			if (maker)
				continue;
			is_wrong(walk,
				(struct fault){.kind = FAULT_NO_MAKER,
					.operation = first_seen(&walk->levels, level),
					.key = -1,
					.revision = walk->history->base + (store_revision)level});
		}
		note_fault(walk, level);
		maker = go_back(walk, context, &level);
		if (!maker)
			return VIOLATED;
	}
	return UNDECIDED;
}

/* How many operations of unknown outcome took effect. */
static size_t count_effects(const struct walk *walk, const struct context *context)
{
	size_t count = walk->levels.may_write_unknown - walk->levels.unknown_count;
	for (size_t u = 0; u < walk->levels.unknown_count; u++)
		count += context->used[u];
	return count;
}

void check_history(const struct history *history, int64_t most, struct verdict *verdict)
{
	struct walk walk = {.history = history};
	*verdict = (struct verdict){.kind = VIOLATED};
	if (levels_make(&walk.levels, history)) {
		struct context *context = zeroed(context_size(&walk));
		verdict->kind = search(&walk, context, most, &verdict->steps);
		verdict->revisions = walk.levels.last;
		verdict->unknown = walk.levels.may_write_unknown;
		verdict->took_effect = count_effects(&walk, context);
		free(context);
	} else {
		walk.deepest = walk.levels.fault;
	}
	if (verdict->kind == UNDECIDED)
		text_add(&verdict->words,
			"The search was given up: too many operations of unknown outcome can have made "
			"the same revisions. Most likely this is wrong:\n");
	if (verdict->kind != LINEARIZABLE && walk.deepest.kind != FAULT_NONE)
		fault_say(&verdict->words, history, &walk.deepest);
	while (walk.choices)
		drop_choice(&walk);
	levels_release(&walk.levels);
	free(walk.visited);
}

void verdict_release(struct verdict *verdict)
{
	text_release(&verdict->words);
}
