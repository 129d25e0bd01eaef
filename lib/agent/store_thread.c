/* SPDX-License-Identifier: MIT */
#include "agent/store_thread.h"

#include <stdlib.h>
#include <string.h>

#include "agent/signal_only.h"
#include "base/clock.h"
#include "base/process/descriptor.h"
#include "base/worker.h"
#include "base/xalloc.h"
#include "live/outage.h"
#include "proto/remembered.h"
#include "run/outcome.h"

#define TOGETHER 64    /* writes in one transaction, at most */
#define ENOUGH	 10000 /* ms after which the rest of a batch is not tried */

enum request_kind { REQUEST_JOIN, REQUEST_WRITE, REQUEST_CLOSE };

struct request {
	enum request_kind kind;
	struct attempt_entry entry; /* its strings are copied into these: */
	char run[129], launch[160];
	const struct agent_options *options;
	struct write write;
	struct attempt attempt;
	struct pulse *pulse; /* of REQUEST_JOIN */
	bool finished;	     /* of REQUEST_CLOSE */
	struct request *next;
};

enum doing {
	DOES_NOTHING,
	DOES_REQUESTS,
	DOES_WAIT, /* for news */
	DOES_LOOK, /* reads what has changed */
};

struct store_thread {
	struct worker *worker;
	enum doing doing;
	struct request *first, **last; /* not begun yet */
	struct result *results;	       /* not taken yet */
	struct store_wants wants;
	bool following;
	bool look; /* there may be news: look, do not wait */

	/* Of the worker while it has a job, but for store_thread_asked_at: */
	char *url;
	struct store *_Atomic store;
	_Atomic bool stopping;		 /* no pauses */
	int writes_failed, looks_failed; /* in a row */
	int64_t write_at;		 /* when the next write may be tried */
	struct request *requests;
	struct result *made, **made_end;
	struct attempt attempt;
	char group[KEYS_GROUP];
	store_revision revision; /* everything up to this was read; */
	store_revision seen;	 /* the news up to this was read */
	uint32_t heard;		 /* the count of news (store.h) up to which no look is needed */
	struct store_awaited awaited; /* of the wait, and of the look after it */
	int64_t until;		      /* of the wait */
	enum status waited;	      /* how the wait has ended */
	struct store_wants wanted;    /* of the look */
};

void result_free(struct result *result)
{
	if (!result)
		return;
	store_answer_release(&result->answer);
	write_release(&result->write);
	if (result->view)
		view_release(result->view);
	free(result->view);
	free(result);
}

static void post(struct store_thread *thread, struct result *result)
{
	*thread->made_end = result;
	thread->made_end = &result->next;
}

static struct result *new_result(enum result_kind kind)
{
	struct result *result = xcalloc(1, sizeof(*result));
	result->kind = kind;
	return result;
}

/* Open the store if it is not open. */
static enum status open_store(struct store_thread *thread, struct error *err)
{
	struct store *store = thread->store;
	if (store)
		return STATUS_OK;
	enum status status = outage_open(&store, thread->url, clock_after(30000), err);
	thread->store = store;
	return status;
}

int64_t store_thread_asked_at(const struct store_thread *thread)
{
	const struct store *store = thread->store;
	return store ? store_asked_at(store) : 0;
}

/* Read what the store remembers of the run's earlier attempts. */
static enum status recall(struct store_thread *thread, const char *run, struct result *result)
{
	struct remembered known;
	enum status status = remembered_read(thread->store, run, &known, &result->error);
	result->longest_save = known.longest_save;
	return status;
}

static void carry_out_join(struct store_thread *thread, struct request *request)
{
	struct result *result = new_result(RESULT_JOINED);
	struct view *view = result->view = xcalloc(1, sizeof(*view));
	request->entry.run = request->run;
	request->entry.launch = request->launch;
	request->entry.cancel = worker_wake(thread->worker);
	struct outage outage = {
		.deadline = request->entry.deadline, .cancel = request->entry.cancel};
	do
		result->status = open_store(thread, &result->error);
	while (outage_retry(&outage, &result->status, &result->error));
	if (result->status == STATUS_OK)
		result->status = signal_only_check(
			thread->store, request->run, request->options, &outage, &result->error);
	if (result->status == STATUS_OK)
		result->status = attempt_join(thread->store, &request->entry, view, &result->error);
	if (result->status == STATUS_OK) {
		if (request->pulse)
			pulse_begin(request->pulse, &view->attempt);
		do
			result->status = recall(thread, request->run, result);
		while (outage_retry(&outage, &result->status, &result->error));
	}
	if (result->status == STATUS_OK)
		result->status = attempt_gather(thread->store, view,
			clock_after(request->options->join_timeout), request->entry.cancel,
			&result->error);
	outage.deadline = clock_after(request->options->join_timeout);
	if (result->status == STATUS_OK && request->options->find_checkpoint)
		result->status = signal_only_resolve(
			thread->store, view, request->options, &outage, &result->error);
	post(thread, result);
}

/* When to try again after failures in a row: after a random time, at most 1.1 s, at first less. */
static int64_t pause_after(int failures)
{
	return clock_after(100 + clock_jitter(failures > 10 ? 1000 : 100 * failures));
}

/*
 * Whether there may be news that the last look did not show. count: the count of news after a
 * transaction (store.h); 0: not known. made: that transaction itself counted as news; our own news
 * needs no look.
 * If there is no other news, thread->heard becomes count.
 */
static bool is_behind(struct store_thread *thread, uint32_t count, bool made)
{
	bool known = count && count == thread->heard + made;
	if (known)
		thread->heard = count;
	return !known;
}

static void post_written(
	struct store_thread *thread, struct request *request, struct result *result, bool behind)
{
	result->now = clock_now();
	result->news =
		result->outcome == OUTCOME_DONE && request->write.transaction.group && behind;
	result->write = request->write;
	request->write = (struct write){0};
	post(thread, result);
}

/* Not after until, if the last write failed: a store that hangs is not waited for once for each. */
static void carry_out_write(struct store_thread *thread, struct request *request, int64_t until)
{
	const struct write *write = &request->write;
	struct result *result = new_result(RESULT_WROTE);
	result->outcome = OUTCOME_UNKNOWN;
	result->began = clock_now();
	if (thread->writes_failed && result->began >= until) {
		result->status = error_set(
			&result->error, STATUS_TEMPORARY, "the store takes too long to answer");
		post_written(thread, request, result, false);
		return;
	}
	/* Writes to a full disk fail at once. */
	if (thread->writes_failed && !thread->stopping)
		(void)worker_pause(thread->worker, thread->write_at);
	result->began = clock_now();
	result->status = open_store(thread, &result->error);
	if (result->status == STATUS_OK)
		result->outcome = write_carry_out(&request->write, thread->store, &result->error);
	bool behind = result->outcome == OUTCOME_DONE && write->transaction.group &&
		      is_behind(thread, write->news, write->transaction.news);
	thread->writes_failed = result->outcome == OUTCOME_UNKNOWN ? thread->writes_failed + 1 : 0;
	thread->write_at = pause_after(thread->writes_failed);
	post_written(thread, request, result, behind);
}

/*
 * Carry out the waiting writes together, in one transaction, so that an agent with eight tasks
 * costs the store no more than an agent with one. Returns false if no write was made or the outcome
 * is unknown; the caller then carries out each write by itself.
 */
static bool carry_out_writes(struct store_thread *thread, struct request *first)
{
	struct write *writes[TOGETHER];
	size_t count = 0;
	int64_t began = clock_now();
	bool made = false;
	for (struct request *request = first; request; request = request->next) {
		/* If the joint transaction failed, its second try would write a time left that is
		 * out of date. */
		if (request->write.deadline_key)
			return false;
		made |= request->write.transaction.news;
		writes[count++] = &request->write;
	}
	if (!thread->store || thread->writes_failed ||
		!write_carry_out_all(writes, count, thread->store, NULL))
		return false;
	bool group = false;
	uint32_t news = 0;
	for (size_t i = 0; i < count; i++) {
		if (!writes[i]->transaction.group)
			continue;
		group = true;
		news = writes[i]->news;
	}
	bool behind = group && is_behind(thread, news, made);
	for (struct request *request = first; request; request = request->next) {
		struct result *result = new_result(RESULT_WROTE);
		result->outcome = OUTCOME_DONE;
		result->began = began;
		post_written(thread, request, result, behind);
	}
	return true;
}

static void carry_out_close(struct store_thread *thread, struct request *request)
{
	struct result *result = new_result(RESULT_CLOSED);
	struct outcome_finding finding = {.finished = request->finished};
	struct view view;
	result->status = open_store(thread, &result->error);
	view_init(&view, &request->attempt);
	if (result->status == STATUS_OK)
		result->status = view_refresh(&view, thread->store, &result->error);
	if (result->status == STATUS_OK && view_all_through(&view)) {
		signal_only_finding(request->options, &view, &finding);
		result->status =
			attempt_close_as_seen(thread->store, &view, &finding, &result->error);
	}
	view_release(&view);
	post(thread, result);
}

static void carry_out(struct store_thread *thread, struct request *request, int64_t until)
{
	switch (request->kind) {
	case REQUEST_JOIN: carry_out_join(thread, request); break;
	case REQUEST_WRITE: carry_out_write(thread, request, until); break;
	case REQUEST_CLOSE: carry_out_close(thread, request); break;
	}
	write_release(&request->write);
	free(request);
}

static void carry_out_all(void *context)
{
	struct store_thread *thread = context;
	int64_t until = clock_after(ENOUGH);
	bool done = thread->requests->next && carry_out_writes(thread, thread->requests);
	for (struct request *request = thread->requests, *next; request; request = next) {
		next = request->next;
		if (done)
			free(request);
		else
			carry_out(thread, request, until);
	}
}

static void await_news(void *context)
{
	struct store_thread *thread = context;
	thread->waited = store_await_news(
		thread->store, &thread->awaited, thread->until, worker_wake(thread->worker), NULL);
}

/*
 * Read what changed and report it: everything, if that is due; otherwise the news only, with the
 * counts of records if they are wanted.
 */
static void look(void *context)
{
	struct store_thread *thread = context;
	if (thread->looks_failed &&
		!worker_pause(thread->worker, pause_after(thread->looks_failed)))
		return;
	struct result *result = new_result(RESULT_SAW);
	const struct store_wants *wants = &thread->wanted;
	const struct store_awaited *since = &thread->awaited;
	bool whole = result->whole = wants->read <= clock_now();
	struct store_range range = {.prefix = since->prefix,
		.since = whole ? thread->revision : since->since,
		.skip = whole ? NULL : view_records};
	result->counted = !whole && wants->count <= clock_now();
	result->counts = wants->counts;
	if (result->counted)
		view_count_prefixes(&result->counts, range.count);
	uint32_t heard = since->heard;
	result->status = open_store(thread, &result->error);
	if (result->status == STATUS_OK)
		result->unchanged = store_unchanged(thread->store, since->since);
	result->began = clock_now();
	if (result->status == STATUS_OK && !heard)
		heard = store_news(thread->store, since->group);
	if (result->status == STATUS_OK)
		result->status = store_list(thread->store, &range, &result->answer, &result->error);
	result->now = clock_now();
	bool right = result->status == STATUS_OK;
	thread->looks_failed = right ? 0 : thread->looks_failed + 1;
	if (right) {
		thread->heard = heard;
		thread->seen = result->answer.revision;
	}
	if (right && whole)
		thread->revision = result->answer.revision;
	post(thread, result);
}

/* ---- The owner ---- */

static int64_t due(const struct store_wants *wants)
{
	return clock_earlier(wants->look, wants->read);
}

/* Take the next request, and after a write also the writes that follow. */
static struct request *take_requests(struct store_thread *thread)
{
	struct request *first = thread->first, *last = first;
	size_t count = 1;
	if (!first)
		return NULL;
	while (first->kind == REQUEST_WRITE && last->next && last->next->kind == REQUEST_WRITE &&
		count++ < TOGETHER)
		last = last->next;
	thread->first = last->next;
	if (!thread->first)
		thread->last = &thread->first;
	last->next = NULL;
	return first;
}

/* What to do next to follow the attempt. */
static enum doing follow(struct store_thread *thread)
{
	thread->wanted = thread->wants;
	thread->until = due(&thread->wants);
	if (thread->look)
		return DOES_LOOK;
	thread->awaited = (struct store_awaited){.group = thread->group,
		.heard = thread->heard,
		.prefix = thread->attempt.prefix,
		.since = thread->seen,
		.every = thread->wants.awaits ? VIEW_EVERY : VIEW_SELDOM,
		.age = view_news_age(thread->attempt.tasks)};
	if (thread->store && !thread->looks_failed && thread->until > clock_now())
		return DOES_WAIT;
	thread->awaited.heard = 0; /* the look reads the count again: there may be news */
	return DOES_LOOK;
}

void store_thread_begin(struct store_thread *thread)
{
	static void (*const jobs[])(void *context) = {
		[DOES_REQUESTS] = carry_out_all, [DOES_WAIT] = await_news, [DOES_LOOK] = look};
	if (thread->doing != DOES_NOTHING)
		return;
	thread->requests = take_requests(thread);
	if (thread->requests)
		thread->doing = DOES_REQUESTS;
	else if (thread->following)
		thread->doing = follow(thread);
	if (thread->doing != DOES_NOTHING)
		worker_run(thread->worker, jobs[thread->doing], thread);
}

/* The worker has ended its job: take over the results. */
static void collect(struct store_thread *thread)
{
	struct result **end = &thread->results;
	while (*end)
		end = &(*end)->next;
	*end = thread->made;
	struct store_wants *wants = &thread->wants;
	if (thread->doing == DOES_WAIT) {
		/* STATUS_NO: there is a request, or the wants have changed. */
		thread->look = thread->waited != STATUS_NO &&
			       (thread->waited != STATUS_TIMEOUT || due(wants) <= clock_now());
		if (thread->waited != STATUS_OK)
			thread->awaited.heard = 0;
	} else if (thread->doing == DOES_LOOK && thread->made) {
		thread->look = false;
		wants->look = CLOCK_NEVER;
		if (thread->made->counted)
			wants->count = CLOCK_NEVER;
		if (thread->made->whole)
			wants->read = CLOCK_NEVER;
	}
	thread->made = NULL;
	thread->made_end = &thread->made;
	thread->doing = DOES_NOTHING;
}

static void release(struct store_thread *thread)
{
	store_close(thread->store);
	free(thread->url);
	free(thread);
}

enum status store_thread_start(
	struct store_thread **out, const char *url, struct store *store, struct error *err)
{
	struct store_thread *thread = xcalloc(1, sizeof(*thread));
	thread->url = xstrdup(url);
	thread->last = &thread->first;
	thread->made_end = &thread->made;
	thread->wants.look = thread->wants.count = thread->wants.read = CLOCK_NEVER;
	enum status status = worker_start(&thread->worker, "store", err);
	if (status == STATUS_OK) {
		thread->store = store;
		*out = thread;
	} else {
		release(thread);
	}
	return status;
}

int store_thread_descriptor(const struct store_thread *thread)
{
	return worker_descriptor(thread->worker);
}

struct result *store_thread_take(struct store_thread *thread)
{
	if (worker_take(thread->worker))
		collect(thread);
	struct result *result = thread->results;
	if (result)
		thread->results = result->next;
	return result;
}

/* End a wait: there is something else to do. */
static void interrupt(struct store_thread *thread)
{
	if (thread->doing == DOES_WAIT || thread->doing == DOES_LOOK)
		worker_interrupt(thread->worker);
}

static void submit(struct store_thread *thread, struct request *request)
{
	*thread->last = request;
	thread->last = &request->next;
	interrupt(thread);
}

void store_thread_join(struct store_thread *thread, const struct attempt_entry *entry,
	const struct agent_options *options, struct pulse *pulse)
{
	struct request *request = xcalloc(1, sizeof(*request));
	request->kind = REQUEST_JOIN;
	request->entry = *entry;
	strncpy(request->run, entry->run, sizeof(request->run) - 1);
	strncpy(request->launch, entry->launch, sizeof(request->launch) - 1);
	request->options = options;
	request->pulse = pulse;
	submit(thread, request);
}

void store_thread_cancel(struct store_thread *thread)
{
	worker_interrupt(thread->worker);
}

void store_thread_write(struct store_thread *thread, struct write *write)
{
	struct request *request = xcalloc(1, sizeof(*request));
	request->kind = REQUEST_WRITE;
	request->write = *write;
	*write = (struct write){0};
	submit(thread, request);
}

void store_thread_follow(struct store_thread *thread, const struct view *view)
{
	thread->following = true;
	thread->attempt = view->attempt;
	keys_group(&view->attempt, thread->group);
	thread->revision = view->revision;
	thread->seen = view->seen;
	thread->heard = view->heard;
}

void store_thread_unfollow(struct store_thread *thread)
{
	thread->following = false;
}

void store_thread_want(struct store_thread *thread, const struct store_wants *wants)
{
	thread->wants = *wants;
	if (thread->doing == DOES_WAIT && due(wants) < thread->until)
		interrupt(thread);
}

void store_thread_close(struct store_thread *thread, const struct attempt *attempt,
	const struct agent_options *options, bool finished)
{
	struct request *request = xcalloc(1, sizeof(*request));
	request->kind = REQUEST_CLOSE;
	request->attempt = *attempt;
	request->options = options;
	request->finished = finished;
	submit(thread, request);
}

bool store_thread_stop(struct store_thread *thread, int64_t patience)
{
	int64_t until = clock_after(patience);
	thread->following = false;
	thread->stopping = true;
	worker_interrupt(thread->worker);
	for (;;) {
		for (struct result *result; (result = store_thread_take(thread));)
			result_free(result);
		store_thread_begin(thread);
		if (thread->doing == DOES_NOTHING || clock_now() >= until)
			break;
		(void)descriptor_wait(store_thread_descriptor(thread), until);
	}
	bool idle = thread->doing == DOES_NOTHING;
	if (!worker_stop(thread->worker, idle ? patience : 0))
		return false;
	release(thread);
	return true;
}
