/* SPDX-License-Identifier: MIT */
/*
 * The history checker against the definition: for small random histories, right ones and ones that
 * were falsified, its verdict is that of trying all orders of their operations one after the other.
 * The keys are d/a and d/b; a list is of both, a wait of both or of one.
 */
#include <stdlib.h>

#include "../history/check.h"
#include "unit.h"

#define HISTORIES 15000
#define MOST	  7 /* operations of one history */
#define KEYS	  2
#define STEPS	  1000000

/* ---- A key store, as store.h says ---- */

struct model {
	store_revision revision;
	store_revision keys[KEYS], changed[KEYS];
	operation_name values[KEYS];
};

struct answer {
	bool held, found; /* found: what a wait waits for is there */
	store_revision revision;
	size_t count;
	struct key_entry entries[8];
};

static void add(struct answer *answer, const struct model *model, int key)
{
	answer->entries[answer->count++] =
		(struct key_entry){key, model->keys[key], model->values[key]};
}

static void model_transaction(struct model *model, const struct history *history,
	const struct operation *operation, struct answer *answer)
{
	bool changed = false;
	answer->held = true;
	for (size_t i = 0; i < operation->compare_count; i++) {
		const struct key_compare *compare = &history->compares[operation->compare + i];
		answer->held &= model->keys[compare->key] == compare->revision;
	}
	for (size_t i = 0; i < operation->part_count; i++) {
		const struct key_operation *part = &history->parts[operation->part + i];
		int key = part->key;
		if (part->otherwise == answer->held)
			continue;
		if (part->kind == STORE_GET) {
			add(answer, model, key);
		} else if (part->kind == STORE_PUT || model->keys[key]) {
			bool puts = part->kind == STORE_PUT;
			model->keys[key] = puts ? model->revision + 1 : 0;
			model->values[key] = puts ? operation->name : 0;
			model->changed[key] = model->revision + 1;
			changed = true;
		}
	}
	model->revision += changed;
}

static bool is_under(const struct history *history, const struct operation *operation, int key)
{
	const char *prefix = history->prefixes[operation->prefix];
	return !strncmp(history->keys[key], prefix, strlen(prefix));
}

static struct answer model_ask(
	struct model *model, const struct history *history, const struct operation *operation)
{
	struct answer answer = {0};
	if (operation->kind == TRANSACTION)
		model_transaction(model, history, operation, &answer);
	for (int key = 0; key < KEYS && operation->kind != TRANSACTION; key++) {
		if (!is_under(history, operation, key))
			continue;
		if (operation->kind == LIST && model->keys[key] > operation->since)
			add(&answer, model, key);
		answer.found |= model->changed[key] > operation->since;
	}
	answer.revision = model->revision;
	return answer;
}

/* ---- The definition ---- */

static bool agrees(const struct history *history, const struct operation *operation,
	const struct answer *answer)
{
	if (answer->revision != operation->revision)
		return false;
	if (operation->kind == WAIT)
		return answer->found == (operation->outcome == ANSWERED);
	if ((operation->kind == TRANSACTION && answer->held != operation->held) ||
		answer->count != operation->entry_count)
		return false;
	for (size_t i = 0; i < answer->count; i++) {
		const struct key_entry *entry = &history->entries[operation->entry + i];
		if (entry->key != answer->entries[i].key ||
			entry->revision != answer->entries[i].revision ||
			entry->value != answer->entries[i].value)
			return false;
	}
	return true;
}

static bool is_told(const struct operation *operation)
{
	return operation->outcome == ANSWERED || operation->outcome == QUIET;
}

/* Whether one may come next: nothing that is left had been answered before it was called. */
static bool may_be_next(const struct history *history, unsigned done, size_t next)
{
	const struct operation *operation = &history->operations[next];
	if (operation->outcome == QUIET)
		return true; /* what it says may be of long ago */
	for (size_t i = 0; i < history->count; i++)
		if (!(done >> i & 1) && is_told(&history->operations[i]) &&
			history->operations[i].back < operation->call)
			return false;
	return true;
}

/* The instant at which a wait that timed out says that nothing was newer; INT64_MIN: none. */
static int64_t quiet_until(const struct operation *wait)
{
	bool is_long = wait->limit >= CHECK_LONG_WAIT && wait->call > wait->unchanged;
	return is_long ? wait->call : wait->unchanged;
}

/*
 * Whether one may come next and turn the store from before into after. Where that changes what a
 * wait in the order saw unchanged at an instant, the change comes after that instant, and so does
 * all that follows: nothing of it had been answered before.
 */
static bool may_change(const struct history *history, unsigned done, size_t next,
	const struct model *before, const struct model *after)
{
	int64_t earliest = INT64_MIN;
	for (size_t i = 0; i < history->count; i++) {
		const struct operation *wait = &history->operations[i];
		bool changes = false;
		if (!(done >> i & 1) || wait->outcome != QUIET)
			continue;
		for (int key = 0; key < KEYS; key++)
			changes |= is_under(history, wait, key) &&
				   after->changed[key] != before->changed[key];
		if (changes && quiet_until(wait) > earliest)
			earliest = quiet_until(wait);
	}
	for (size_t i = 0; i < history->count; i++)
		if ((i == next || !(done >> i & 1)) && is_told(&history->operations[i]) &&
			history->operations[i].back < earliest)
			return false;
	return true;
}

static bool any_order(const struct history *history, struct model model, unsigned done)
{
	bool all = true;
	for (size_t i = 0; i < history->count; i++)
		all &= (done >> i & 1) || !is_told(&history->operations[i]);
	if (all)
		return true;
	for (size_t i = 0; i < history->count; i++) {
		const struct operation *operation = &history->operations[i];
		struct model after = model;
		if ((done >> i & 1) || operation->outcome == NO_EFFECT ||
			!may_be_next(history, done, i))
			continue;
		struct answer answer = model_ask(&after, history, operation);
		if ((is_told(operation) && !agrees(history, operation, &answer)) ||
			!may_change(history, done, i, &model, &after))
			continue;
		if (any_order(history, after, done | 1u << i))
			return true;
	}
	return false;
}

/* ---- Random histories ---- */

static uint64_t state = 88172645463325252u;

static int64_t dice(int64_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (int64_t)((state >> 11) % (uint64_t)below);
}

static void add_question(struct text *text, int n)
{
	static const char *const questions[] = {"txn +pd/%c", "txn +dd/%c", "txn +gd/%c",
		"txn ?d/%c=%d +pd/%c -gd/%c", "txn ?d/%c=%d +dd/%c -gd/%c",
		"txn ?d/%c=%d +gd/%c +pd/%c -dd/%c", "txn +dd/a +pd/b", "txn +dd/a +dd/b",
		"txn +gd/a +dd/a", "list d/ %d", "wait d/ %d 5", "wait d/ %d 5", "wait d/ %d 60000",
		"wait d/%c %d 5", "wait d/%c %d 5"};
	int which = (int)dice(15), revision = (int)dice(4);
	char key = (char)('a' + dice(KEYS)), other = (char)('a' + dice(KEYS));
	text_addf(text, "call %d 0 ", n);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	if (which < 3)
		text_addf(text, questions[which], key);
	else if (which < 6)
		text_addf(text, questions[which], key, revision, other, key, other);
	else if (which < 13)
		text_addf(text, questions[which], revision);
	else
		text_addf(text, questions[which], key, revision);
#pragma GCC diagnostic pop
	text_add(text, "\n");
}

/* What the model answers in this order, and instants that agree with it. */
static void answer_all(struct history *history)
{
	struct model model = {0};
	history->entries = calloc(MOST, sizeof(struct answer));
	for (size_t i = 0; i < history->count; i++) {
		struct operation *operation = &history->operations[i];
		bool lost = dice(3) == 0;
		operation->call = (int64_t)i * 10 - dice(30);
		if (lost && (operation->kind != TRANSACTION || dice(2)))
			continue;
		struct answer answer = model_ask(&model, history, operation);
		if (lost)
			continue;
		operation->back = (int64_t)i * 10 + dice(30);
		operation->outcome = operation->kind == WAIT && !answer.found ? QUIET : ANSWERED;
		if (operation->outcome == QUIET && dice(3))
			operation->unchanged = (int64_t)i * 10 - dice(30);
		operation->held = answer.held;
		operation->revision = answer.revision;
		operation->entry = history->entry_count;
		operation->entry_count = answer.count;
		memcpy(&history->entries[operation->entry], answer.entries,
			answer.count * sizeof(answer.entries[0]));
		history->entry_count += answer.count;
	}
}

static void falsify_entry(struct history *history, struct key_entry *entry)
{
	switch (dice(3)) {
	case 0: *entry = (struct key_entry){.key = entry->key}; break;
	case 1:
		if (entry->revision)
			entry->revision = 1 + dice(4);
		break;
	default:
		entry->revision = entry->revision ? entry->revision : 1 + dice(3);
		entry->value = history->operations[dice((int64_t)history->count)].name;
	}
}

/* From the nth operation on: the first wait that timed out looked later, and returned later. */
static void falsify_unchanged(struct history *history, size_t n)
{
	for (; n < history->count; n++) {
		struct operation *wait = &history->operations[n];
		if (wait->outcome != QUIET)
			continue;
		wait->back += dice(50);
		wait->unchanged = wait->back - dice(20);
		return;
	}
}

static void falsify(struct history *history)
{
	struct operation *operation = &history->operations[dice((int64_t)history->count)];
	if (!is_told(operation)) {
		operation->call += 40;
		return;
	}
	switch (dice(9)) {
	case 0: operation->revision += operation->revision ? dice(3) - 1 : 1; break;
	case 1: operation->held = operation->kind == TRANSACTION && !operation->held; break;
	case 2: operation->call -= dice(40); break;
	case 3:
		operation->call += 40;
		operation->back += 50;
		break;
	case 4: operation->outcome = NO_EFFECT; break;
	case 5:
		operation->outcome = UNKNOWN;
		operation->back = HISTORY_LATER;
		break;
	case 6:
		if (operation->kind == WAIT)
			operation->outcome = operation->outcome == QUIET ? ANSWERED : QUIET;
		break;
	case 7: falsify_unchanged(history, (size_t)dice((int64_t)history->count)); break;
	default:
		if (operation->entry_count)
			falsify_entry(history,
				&history->entries[operation->entry +
						  (size_t)dice((int64_t)operation->entry_count)]);
	}
}

static bool make(struct history *history)
{
	struct text text = {0};
	struct error err;
	size_t count = 2 + (size_t)dice(MOST - 1);
	/* The keys in the order in which the model lists them. */
	text_add(&text, "history 1 0 0 0\ncall 0 0 txn +gd/a +gd/b\n");
	for (size_t n = 1; n < count; n++)
		add_question(&text, (int)n);
	bool made = history_add(history, "random", text.data, text.length, &err) == STATUS_OK;
	text_release(&text);
	answer_all(history);
	for (int64_t times = dice(4); times > 0; times--)
		falsify(history);
	made = made && history_finish(history, &err) == STATUS_OK;
	if (!made)
		printf("# %s\n", err.text);
	return made;
}

static void print(const struct history *history, const char *words, bool right)
{
	printf("# by definition it is %s; the checker says: %s\n", right ? "right" : "wrong",
		words);
	for (size_t i = 0; i < history->count; i++) {
		const struct operation *operation = &history->operations[i];
		printf("#  %zu kind %d outcome %d call %lld back %lld held %d revision %lld "
		       "unchanged %lld\n",
			i, operation->kind, operation->outcome, (long long)operation->call,
			(long long)operation->back, operation->held, (long long)operation->revision,
			(long long)operation->unchanged);
	}
}

int main(void)
{
	int right = 0, wrong = 0, different = 0;
	for (int i = 0; i < HISTORIES; i++) {
		struct history history = {0};
		struct verdict verdict;
		if (!make(&history))
			return 2;
		bool is_right = any_order(&history, (struct model){0}, 0);
		check_history(&history, STEPS, &verdict);
		if (verdict.kind != (is_right ? LINEARIZABLE : VIOLATED) && ++different <= 3)
			print(&history, text_string(&verdict.words), is_right);
		right += is_right;
		wrong += !is_right;
		verdict_release(&verdict);
		history_release(&history);
	}
	CHECK(different == 0, "the verdict is that of all orders, tried one after the other");
	printf("# %d right, %d wrong, %d judged otherwise\n", right, wrong, different);
	CHECK(right > HISTORIES / 10 && wrong > HISTORIES / 10, "many are right, many are wrong");
	return unit_end();
}
