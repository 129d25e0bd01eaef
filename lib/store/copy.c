/* SPDX-License-Identifier: MIT */
/*
 * Walk both stores side by side, in the order of their keys, three times: to compare, to write what
 * is missing, and to compare again.
 */
#include "store/copy.h"

#include <string.h>

#include "base/clock.h"
#include "store/builder.h"

#define PAGE	    200		 /* entries of one read */
#define BATCH_KEYS  50		 /* at most in one write */
#define BATCH_BYTES (256 * 1024) /* at most in one write, about */
#define SHOW_EVERY  200		 /* milliseconds */
#define UNIT_MAX    (STORE_KEY_MAX + 1)

struct side {
	struct store *store;
	struct store_answer page;
	size_t at;
	bool begun;
	store_revision revision; /* of the first page */
};

/* The entry at which this side is; NULL: all were read. */
static enum status look(struct side *side, const struct store_entry **entry, struct error *err)
{
	char after[UNIT_MAX] = "";
	enum status status = STATUS_OK;
	*entry = NULL;
	if (side->at == side->page.count && (!side->begun || side->page.more)) {
		struct store_range range = {.prefix = "", .limit = PAGE};
		if (side->begun) {
			strcpy(after, side->page.entries[side->page.count - 1].key);
			range.after = after;
		}
		store_answer_release(&side->page);
		status = store_list(side->store, &range, &side->page, err);
		if (status == STATUS_OK && !side->begun)
			side->revision = side->page.revision;
		side->begun = status == STATUS_OK;
		side->at = 0;
	}
	if (status == STATUS_OK && side->at < side->page.count)
		*entry = &side->page.entries[side->at];
	return status;
}

struct walk {
	struct side from, to;
	/* Called for each key with its entry in each store; NULL: that store does not have it. */
	enum status (*see)(struct walk *walk, const struct store_entry *from,
		const struct store_entry *to, struct error *err);
	/* The next five fields are for comparing. */
	uint64_t keys, missing;
	char unit[UNIT_MAX];	/* the unit of the current key (copy.h) */
	bool unit_is_from;	/* the first store has keys of the unit */
	char strange[UNIT_MAX]; /* a key of the unit that only the second store has; "": none */
	/* The others are for writing. */
	struct transaction batch;
	size_t batch_keys, batch_bytes;
	uint64_t written, all;
	void (*progress)(uint64_t written, uint64_t all);
	int64_t show;
};

static enum status go(struct walk *walk, struct error *err)
{
	const struct store_entry *from, *to;
	for (;;) {
		enum status status = look(&walk->from, &from, err);
		if (status == STATUS_OK)
			status = look(&walk->to, &to, err);
		if (status != STATUS_OK || (!from && !to))
			return status;
		int order = !from ? 1 : !to ? -1 : strcmp(from->key, to->key);
		status = walk->see(walk, order <= 0 ? from : NULL, order >= 0 ? to : NULL, err);
		if (status != STATUS_OK)
			return status;
		walk->from.at += order <= 0;
		walk->to.at += order >= 0;
	}
}

static void end(struct walk *walk)
{
	store_answer_release(&walk->from.page);
	store_answer_release(&walk->to.page);
	transaction_release(&walk->batch);
}

/* ---- Compare ---- */

static bool is_in_unit(const char *unit, const char *key)
{
	size_t length = strlen(unit);
	return length && unit[length - 1] == '/' ? !strncmp(key, unit, length) : !strcmp(key, unit);
}

/* unit: "run/RUN/" for the key "run/RUN/000001/OPEN". */
static void unit_of(const char *key, char unit[UNIT_MAX])
{
	bool known = !strncmp(key, "run/", 4) || !strncmp(key, "queue/", 6);
	const char *slash = known ? strchr(strchr(key, '/') + 1, '/') : NULL;
	size_t length = slash ? (size_t)(slash - key) + 1 : strlen(key);
	memcpy(unit, key, length);
	unit[length] = '\0';
}

static enum status refuse(const struct walk *walk, const char *key, struct error *err)
{
	return error_set(err, STATUS_NO,
		"%s: store %s has other data of it (key %s): copy to another store, or remove "
		"that",
		walk->unit, store_where(walk->to.store), key);
}

static enum status compare(struct walk *walk, const struct store_entry *from,
	const struct store_entry *to, struct error *err)
{
	const char *key = from ? from->key : to->key;
	if (!is_in_unit(walk->unit, key)) {
		unit_of(key, walk->unit);
		walk->unit_is_from = false;
		*walk->strange = '\0';
	}
	walk->unit_is_from |= from != NULL;
	walk->keys += from != NULL;
	walk->missing += from && !to;
	if (!from && !*walk->strange)
		strcpy(walk->strange, key);
	if (walk->unit_is_from && *walk->strange)
		return refuse(walk, walk->strange, err);
	if (from && to &&
		(from->length != to->length || memcmp(from->value, to->value, to->length) != 0))
		return refuse(walk, key, err);
	return STATUS_OK;
}

/* ---- Write ---- */

static enum status write_batch(struct walk *walk, struct error *err)
{
	if (walk->batch_keys == 0)
		return STATUS_OK;
	enum status status = transaction_run(&walk->batch, walk->to.store, err);
	if (status == STATUS_NO)
		status = error_set(err, STATUS_TEMPORARY,
			"store %s: another process writes to it: end it, and copy again",
			store_where(walk->to.store));
	walk->written += walk->batch_keys;
	transaction_release(&walk->batch);
	walk->batch = (struct transaction){0};
	walk->batch_keys = walk->batch_bytes = 0;
	if (walk->progress && clock_now() >= walk->show) {
		walk->progress(walk->written, walk->all);
		walk->show = clock_after(SHOW_EVERY);
	}
	return status;
}

/*
 * The batch points to keys and values of the page, so it is written before the next page is read.
 */
static enum status write_missing(struct walk *walk, const struct store_entry *from,
	const struct store_entry *to, struct error *err)
{
	if (from && !to) {
		transaction_require(&walk->batch, from->key, 0);
		transaction_put_bytes(&walk->batch, from->key, from->value, from->length);
		walk->batch_keys++;
		walk->batch_bytes += from->length;
	}
	bool page_ends = from && walk->from.at + 1 == walk->from.page.count;
	if (page_ends || walk->batch_keys == BATCH_KEYS || walk->batch_bytes > BATCH_BYTES)
		return write_batch(walk, err);
	return STATUS_OK;
}

/* ---- Copy ---- */

static enum status compare_all(
	struct store *from, struct store *to, struct walk *walk, struct error *err)
{
	*walk = (struct walk){.from.store = from, .to.store = to, .see = compare};
	enum status status = go(walk, err);
	end(walk);
	return status;
}

static enum status write_all(struct store *from, struct store *to, uint64_t missing,
	void (*progress)(uint64_t written, uint64_t all), struct error *err)
{
	struct walk walk = {.from.store = from,
		.to.store = to,
		.see = write_missing,
		.all = missing,
		.progress = progress};
	enum status status = missing ? go(&walk, err) : STATUS_OK;
	end(&walk);
	return status;
}

static enum status check_unchanged(struct store *from, store_revision since, struct error *err)
{
	enum status status = store_wait(from, "", &since, clock_now(), -1, err);
	if (status == STATUS_OK)
		return error_set(err, STATUS_TEMPORARY,
			"store %s was changed while it was copied: end what runs on it, and copy "
			"again",
			store_where(from));
	return status == STATUS_TIMEOUT ? STATUS_OK : status;
}

enum status store_copy(struct store *from, struct store *to,
	void (*progress)(uint64_t written, uint64_t all), struct store_copied *copied,
	struct error *err)
{
	struct walk first, last;
	enum status status = compare_all(from, to, &first, err);
	*copied = (struct store_copied){.keys = first.keys, .copied = first.missing};
	if (status == STATUS_OK)
		status = write_all(from, to, first.missing, progress, err);
	if (status == STATUS_OK) {
		status = compare_all(from, to, &last, err);
		/* STATUS_NO would mean that nothing was written. */
		if (status == STATUS_NO)
			status = err->status = STATUS_TEMPORARY;
	}
	if (status == STATUS_OK && (last.missing || last.keys != first.keys))
		status = error_set(err, STATUS_TEMPORARY,
			"store %s was changed while it was copied", store_where(from));
	if (status == STATUS_OK)
		status = check_unchanged(from, first.from.revision, err);
	return status;
}
