/* SPDX-License-Identifier: MIT */
#include "support/backends/shim.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"

struct shim_store {
	struct store base;
	struct store *inner;
	char *url; /* of inner */
};

static struct shim *shim;

/* To be asked for what store is asked for. */
static struct store *inner_of(struct store *store)
{
	struct store *inner = ((struct shim_store *)store)->inner;
	inner->patience = store->patience;
	return inner;
}

/* Count the call, and let the time before it pass. */
static struct shim_fate begin(enum shim_call call, int64_t deadline)
{
	struct shim_fate fate = {0};
	shim->calls[call]++;
	shim->decide(shim->context, call, deadline, &fate);
	if (fate.before > 0)
		shim->sleep(shim->context, fate.before);
	return fate;
}

/* Let the time after the call pass; its status as the caller sees it. */
static enum status end(const struct shim_fate *fate, enum status status, struct error *err)
{
	if (fate->after > 0)
		shim->sleep(shim->context, fate->after);
	if (fate->loss == SHIM_NOTHING_LOST || fate->loss == SHIM_PRETENDED)
		return status;
	return error_set(err, STATUS_TEMPORARY, "the shim has lost the %s",
		fate->loss == SHIM_ANSWER_LOST ? "answer" : "request");
}

static bool is_done(const struct shim_fate *fate)
{
	return fate->loss == SHIM_NOTHING_LOST || fate->loss == SHIM_ANSWER_LOST;
}

static void count_entries(const struct store_answer *answer)
{
	size_t bytes = 0;
	for (size_t i = 0; i < answer->count; i++)
		bytes += strlen(answer->entries[i].key) + answer->entries[i].length;
	shim->entries += answer->count;
	shim->bytes += bytes;
	if (shim->answered && answer->count)
		shim->answered(shim->context, answer->count, bytes);
}

/* The URL behind "shim:". */
static bool inner_url(const struct store_url *url, struct text *text)
{
	text_add(text, url->path);
	for (size_t i = 0; i < url->count; i++) {
		text_addf(text, "%c%s", i ? '&' : '?', url->parameters[i].name);
		if (url->parameters[i].value)
			text_addf(text, "=%s", url->parameters[i].value);
	}
	return !text->too_long;
}

static void shim_close(struct store *base)
{
	struct shim_store *store = (struct shim_store *)base;
	store_close(store->inner);
	free(store->base.where);
	free(store->base.files);
	free(store->url);
	free(store);
}

static enum status shim_open(struct store **opened, const struct store_url *url, unsigned flags,
	int64_t deadline, struct error *err)
{
	struct shim_store *store = calloc(1, sizeof(*store));
	struct text text = {0};
	struct shim_fate fate = begin(SHIM_OPEN, deadline);
	enum status status = STATUS_OK;
	if (!store || !inner_url(url, &text))
		status = error_set(err, STATUS_TEMPORARY, "out of memory");
	if (status == STATUS_OK && is_done(&fate))
		status = store_open(&store->inner, text_string(&text), flags, deadline, err);
	if (store)
		store->url = strdup(text_string(&text));
	text_release(&text);
	status = end(&fate, status, err);
	if (status == STATUS_OK) {
		store->base.where = strdup(store_where(store->inner));
		store->base.files = strdup(store_files(store->inner));
		store->base.local = store->inner->local;
		*opened = &store->base;
	} else if (store) {
		shim_close(&store->base);
	}
	return status;
}

/* ---- A transaction that takes effect after it was given up ---- */

struct late {
	struct store *store;
	struct store_request request;
};

static struct store_compare *copy_compares(const struct store_compare *compares, size_t count)
{
	struct store_compare *copy = calloc(count + 1, sizeof(*copy));
	for (size_t i = 0; copy && i < count; i++)
		copy[i] = (struct store_compare){strdup(compares[i].key), compares[i].revision};
	return copy;
}

static struct store_op *copy_ops(const struct store_op *ops, size_t count)
{
	struct store_op *copy = calloc(count + 1, sizeof(*copy));
	for (size_t i = 0; copy && i < count; i++) {
		copy[i] = ops[i];
		copy[i].key = strdup(ops[i].key);
		if (ops[i].value)
			copy[i].value =
				memcpy(malloc(ops[i].length + 1), ops[i].value, ops[i].length);
	}
	return copy;
}

static void free_ops(struct store_op *ops, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free((char *)ops[i].key);
		free((void *)ops[i].value);
	}
	free(ops);
}

static void run_late(void *what)
{
	struct late *late = what;
	struct store_request *request = &late->request;
	struct store_answer answer = {0};
	struct error unused;
	(void)late->store->backend->txn(late->store, request, CLOCK_NEVER, &answer, &unused);
	store_answer_release(&answer);
	for (size_t i = 0; i < request->compare_count; i++)
		free((char *)request->compares[i].key);
	free((struct store_compare *)request->compares);
	free_ops((struct store_op *)request->then, request->then_count);
	free_ops((struct store_op *)request->otherwise, request->otherwise_count);
	free((char *)request->group);
	for (size_t i = 0; i < STORE_COUNTS; i++)
		free((char *)request->count[i]);
	store_close(late->store);
	free(late);
}

static void do_later(
	const struct shim_store *store, const struct store_request *request, int64_t after)
{
	struct late *late = calloc(1, sizeof(*late));
	struct error unused;
	if (!late || store_open(&late->store, store->url, 0, CLOCK_NEVER, &unused) != STATUS_OK)
		abort();
	late->request = *request;
	late->request.compares = copy_compares(request->compares, request->compare_count);
	late->request.then = copy_ops(request->then, request->then_count);
	late->request.otherwise = copy_ops(request->otherwise, request->otherwise_count);
	if (request->group)
		late->request.group = strdup(request->group);
	for (size_t i = 0; i < STORE_COUNTS; i++)
		if (request->count[i])
			late->request.count[i] = strdup(request->count[i]);
	shim->later(shim->context, after, run_late, late);
}

/* ---- The calls ---- */

static enum status shim_txn(struct store *store, const struct store_request *request,
	int64_t deadline, struct store_answer *answer, struct error *err)
{
	struct store *inner = inner_of(store);
	bool writes = store_request_changes(request), pretended;
	struct shim_fate fate = begin(writes ? SHIM_TXN : SHIM_READ, deadline);
	struct store_request asked = *request;
	enum status status = STATUS_OK;
	if (shim->alter)
		shim->alter(shim->context, &asked);
	if (is_done(&fate))
		status = inner->backend->txn(inner, &asked, deadline, answer, err);
	if (fate.loss == SHIM_LATE && writes)
		do_later((struct shim_store *)store, &asked, fate.after + fate.late);
	count_entries(answer);
	pretended = fate.loss == SHIM_PRETENDED;
	answer->held |= pretended;
	answer->known = fate.loss == SHIM_REQUEST_LOST || pretended ||
			(fate.loss == SHIM_NOTHING_LOST && answer->known);
	return end(&fate, status, err);
}

static enum status shim_list(struct store *store, const struct store_range *range, int64_t deadline,
	struct store_answer *answer, struct error *err)
{
	struct store *inner = inner_of(store);
	struct shim_fate fate = begin(SHIM_READ, deadline);
	enum status status = STATUS_OK;
	if (is_done(&fate))
		status = inner->backend->list(inner, range, deadline, answer, err);
	count_entries(answer);
	return end(&fate, status, err);
}

static bool is_readable_by(int descriptor, int64_t deadline)
{
	struct pollfd polled = {.fd = descriptor, .events = POLLIN};
	return poll(&polled, 1, clock_poll_timeout(deadline)) > 0;
}

/* What is waited for: a change below a prefix, or news. */
struct waiting {
	const char *prefix;
	store_revision *since, began; /* began: *since before the wait */
	struct store_awaited *news;   /* NULL: a change */
};

static enum status wait_in(struct store *inner, const struct waiting *waiting, int64_t until,
	int wake, struct error *err)
{
	if (waiting->news)
		return inner->backend->await_news(inner, waiting->news, until, wake, err);
	return inner->backend->wait(inner, waiting->prefix, waiting->since, until, wake, err);
}

/* The change takes its time to be seen; true: wake became readable before it was. */
static bool hears_late(
	const struct waiting *waiting, const struct shim_fate *fate, uint32_t heard, int wake)
{
	if (fate->after <= 0)
		return false;
	if (!is_readable_by(wake, clock_after(fate->after / 1000 + 1)))
		return false;
	if (waiting->news)
		waiting->news->heard = heard;
	else
		*waiting->since = waiting->began;
	return true;
}

/* In slices, each of which has a fate. */
static enum status wait_for(struct store *store, const struct waiting *waiting, int64_t deadline,
	int wake, struct error *err)
{
	struct store *inner = inner_of(store);
	uint32_t heard = waiting->news ? waiting->news->heard : 0;
	for (;;) {
		int64_t until = clock_after(shim->slice);
		until = until < deadline ? until : deadline;
		struct shim_fate fate = begin(SHIM_WAIT, until);
		enum status status = STATUS_TIMEOUT;
		if (fate.loss == SHIM_UNSEEN) {
			fate.loss = SHIM_NOTHING_LOST;
			if (is_readable_by(wake, until))
				status = STATUS_NO;
		} else if (is_done(&fate)) {
			inner->unchanged = 0;
			status = wait_in(inner, waiting, until, wake, err);
			if (inner->unchanged)
				store->unchanged = inner->unchanged;
		}
		if (fate.loss == SHIM_NOTHING_LOST && status == STATUS_TIMEOUT && until < deadline)
			continue;
		if (status == STATUS_OK && hears_late(waiting, &fate, heard, wake))
			status = STATUS_NO;
		fate.after = 0;
		return end(&fate, status, err);
	}
}

static enum status shim_wait(struct store *store, const char *prefix, store_revision *since,
	int64_t deadline, int wake, struct error *err)
{
	struct waiting waiting = {.prefix = prefix, .since = since, .began = *since};
	return wait_for(store, &waiting, deadline, wake, err);
}

static uint32_t shim_news(struct store *store, const char *group)
{
	struct store *inner = inner_of(store);
	struct shim_fate fate = begin(SHIM_BEAT_READ, CLOCK_NEVER);
	uint32_t count = is_done(&fate) ? inner->backend->news(inner, group) : 0;
	return end(&fate, STATUS_OK, &(struct error){0}) == STATUS_OK ? count : 0;
}

static enum status shim_await_news(struct store *store, struct store_awaited *awaited,
	int64_t deadline, int wake, struct error *err)
{
	return wait_for(store, &(struct waiting){.news = awaited}, deadline, wake, err);
}

static enum status shim_beats_prepare(
	struct store *store, const char *group, uint64_t tasks, struct error *err)
{
	struct store *inner = inner_of(store);
	struct shim_fate fate = begin(SHIM_OTHER, CLOCK_NEVER);
	enum status status = is_done(&fate)
				     ? inner->backend->beats_prepare(inner, group, tasks, err)
				     : STATUS_OK;
	return end(&fate, status, err);
}

static enum status shim_beat(struct store *store, const char *group, uint64_t task,
	const struct store_beat *beat, struct error *err)
{
	struct store *inner = inner_of(store);
	struct shim_fate fate = begin(SHIM_BEAT, CLOCK_NEVER);
	enum status status =
		is_done(&fate) ? inner->backend->beat(inner, group, task, beat, err) : STATUS_OK;
	return end(&fate, status, err);
}

static enum status shim_beat_read(struct store *store, const char *group, uint64_t task,
	struct store_beat *beat, struct error *err)
{
	struct store *inner = inner_of(store);
	struct shim_fate fate = begin(SHIM_BEAT_READ, CLOCK_NEVER);
	enum status status = is_done(&fate)
				     ? inner->backend->beat_read(inner, group, task, beat, err)
				     : STATUS_OK;
	return end(&fate, status, err);
}

static enum status shim_beats_remove(struct store *store, const char *group, struct error *err)
{
	struct store *inner = inner_of(store);
	struct shim_fate fate = begin(SHIM_OTHER, CLOCK_NEVER);
	enum status status =
		is_done(&fate) ? inner->backend->beats_remove(inner, group, err) : STATUS_OK;
	return end(&fate, status, err);
}

static enum status shim_check_private(struct store *store, struct error *err)
{
	struct store *inner = inner_of(store);
	return inner->backend->check_private(inner, err);
}

static enum status shim_purge(struct store *store, const char *prefix,
	const struct store_compare *compares, size_t compare_count, int64_t deadline,
	struct error *err)
{
	struct store *inner = inner_of(store);
	struct shim_fate fate = begin(SHIM_OTHER, deadline);
	enum status status = is_done(&fate) ? inner->backend->purge(inner, prefix, compares,
						      compare_count, deadline, err)
					    : STATUS_OK;
	return end(&fate, status, err);
}

static const struct store_backend store_shim = {
	.scheme = "shim",
	.operations = 1024,
	.open = shim_open,
	.close = shim_close,
	.txn = shim_txn,
	.list = shim_list,
	.wait = shim_wait,
	.news = shim_news,
	.await_news = shim_await_news,
	.beats_prepare = shim_beats_prepare,
	.beat = shim_beat,
	.beat_read = shim_beat_read,
	.beats_remove = shim_beats_remove,
	.check_private = shim_check_private,
	.purge = shim_purge,
};

void shim_install(struct shim *chosen)
{
	if (!shim)
		store_register(&store_shim);
	shim = chosen;
}
