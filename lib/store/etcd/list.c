/* SPDX-License-Identifier: MIT */
/*
 * Lists. So that the server does not send the keys to skip, a list asks for the ranges between
 * them, in one read-only transaction. All pages of a list are read at the same revision.
 */
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "store/etcd/session.h"

#define PAGE 1000 /* entries */

struct plan {
	struct wire_keys gaps[STORE_SKIP + 1];
	size_t count;
	size_t at; /* the first gap that is not read yet */
	store_revision since;
	store_revision revision; /* of the first page; 0: not read yet */
};

static int compare_words(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int compare_keys(const struct wire_key *a, const struct wire_key *b)
{
	size_t length = a->length < b->length ? a->length : b->length;
	int order = memcmp(a->bytes, b->bytes, length);
	return order ? order : (a->length > b->length) - (a->length < b->length);
}

/* Add the range from `from` to the first key to skip, unless it is empty. */
static void add_gap(struct plan *plan, const struct wire_key *from, const struct wire_key *end)
{
	if (compare_keys(from, end) < 0)
		plan->gaps[plan->count++] = (struct wire_keys){*from, *end};
}

static void make_plan(
	const struct etcd_store *store, const struct store_range *range, struct plan *plan)
{
	const char *prefix = range->prefix, *root = store->options.prefix;
	const char *skip[STORE_SKIP];
	size_t count = 0, length = strlen(prefix);
	struct wire_keys all, skipped;
	struct wire_key from;
	*plan = (struct plan){.since = range->since};
	wire_keys_below(&all, root, 'k', prefix);
	from = all.first;
	if (range->after && strcmp(range->after, prefix) >= 0) {
		wire_key_set(&from, root, 'k', range->after);
		wire_key_next(&from);
	} else if (length && prefix[length - 1] == '/') {
		wire_key_next(&from);
	}
	for (; range->skip && range->skip[count]; count++)
		skip[count] = range->skip[count];
	qsort(skip, count, sizeof(*skip), compare_words);
	for (size_t i = 0; i < count; i++) {
		char *whole = xprintf("%s%s", prefix, skip[i]);
		wire_keys_below(&skipped, root, 'k', whole);
		free(whole);
		add_gap(plan, &from, &skipped.first);
		if (compare_keys(&from, &skipped.end) < 0)
			from = skipped.end;
	}
	add_gap(plan, &from, &all.end);
}

static void write_page(const struct plan *plan, size_t limit, struct text *body)
{
	for (size_t i = plan->at; i < plan->count; i++) {
		wire_add(body, "{\"request_range\":{");
		wire_add_keys(body, &plan->gaps[i]);
		wire_add_number(body, "limit", (int64_t)limit);
		if (plan->since)
			wire_add_number(body, "min_mod_revision", plan->since + 1);
		if (plan->revision)
			wire_add_number(body, "revision", plan->revision);
		text_add(body, "}}");
	}
}

/* Take the entries of an answer, up to the first range that has more of them. */
static enum status take_page(const struct etcd_store *store, struct plan *plan,
	struct json_object *object, struct store_answer *answer, struct error *err)
{
	for (size_t i = 0; plan->at < plan->count; i++) {
		struct json_object *found = wire_response(object, i, "response_range");
		size_t count = wire_count(found, "kvs");
		answer->entries = xrealloc(
			answer->entries, answer->count + count + 1, sizeof(*answer->entries));
		for (size_t k = 0; k < count; k++) {
			enum status status = etcd_entry(store, wire_element(found, "kvs", k),
				&answer->entries[answer->count], err);
			if (status != STATUS_OK)
				return status;
			answer->count++;
		}
		if (wire_flag(found, "more") && count) {
			struct wire_key *from = &plan->gaps[plan->at].first;
			wire_key_set(from, store->options.prefix, 'k',
				answer->entries[answer->count - 1].key);
			wire_key_next(from);
			return STATUS_OK;
		}
		plan->at++;
	}
	return STATUS_OK;
}

static void cut(struct store_answer *answer, size_t limit)
{
	answer->more = answer->count > limit;
	while (answer->count > limit)
		store_entry_release(&answer->entries[--answer->count]);
}

enum status etcd_list(struct store *base, const struct store_range *range, int64_t deadline,
	struct store_answer *answer, struct error *err)
{
	struct etcd_store *store = etcd_of(base);
	struct plan plan;
	enum status status = STATUS_OK;
	make_plan(store, range, &plan);
	do {
		struct text body = {0};
		struct gateway_reply reply = {0};
		size_t left = range->limit + 1 - answer->count, gaps = plan.count - plan.at;
		bool first = !plan.revision;
		text_add(&body, "{\"success\":[");
		write_page(&plan, left < PAGE ? left : PAGE, &body);
		if (first)
			wire_add_counts(&body, store->options.prefix, range->count);
		text_add(&body, "]}");
		status = etcd_ask(store, GATEWAY_READ, "/v3/kv/txn", &body, deadline, &reply, err);
		if (status == STATUS_OK && first) {
			answer->revision = plan.revision = etcd_answered(&reply);
			wire_take_counts(reply.object, gaps, range->count, answer);
		}
		if (status == STATUS_OK)
			status = take_page(store, &plan, reply.object, answer, err);
		else if (status == STATUS_NO) /* compacted between two pages */
			status = error_set(err, STATUS_TEMPORARY,
				"store %s: its server was compacted while it was read",
				base->where);
		gateway_reply_release(&reply);
	} while (status == STATUS_OK && plan.at < plan.count && answer->count <= range->limit);
	if (status == STATUS_OK)
		cut(answer, range->limit);
	return status;
}
