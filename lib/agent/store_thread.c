/* SPDX-License-Identifier: MIT */
#include "agent/store_thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/signal_only.h"
#include "base/clock.h"
#include "base/process/bell.h"
#include "base/process/descriptor.h"
#include "base/process/thread.h"
#include "base/xalloc.h"
#include "live/outage.h"
#include "proto/remembered.h"
#include "run/outcome.h"

#define TOGETHER 64 /* writes in one transaction, at most */

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

struct store_thread {
	pthread_t thread;
	char *url;
	/* Used by the thread alone, as is writes_failed; others may ask store_asked_at. */
	struct store *_Atomic store;
	int writes_failed; /* in a row */
	int wake;	   /* eventfd: there is something new for the thread */
	int ready;	   /* eventfd: there are results */
	int cancel;	   /* eventfd: give up joining */

	/* Guards everything below. While `following`, only the thread writes revision, and may read
	 * it without the lock. */
	pthread_mutex_t lock;
	struct request *first, **last;
	struct result *results, **results_end;
	bool following, stopping;
	bool gathering; /* more writes follow: do not begin yet */
	struct attempt attempt;
	store_revision revision; /* everything up to this was read; */
	store_revision seen;	 /* the news up to this was read */
	uint32_t heard;		 /* the count of news (store.h) up to which no look is needed */
	struct store_wants wants;
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
	pthread_mutex_lock(&thread->lock);
	*thread->results_end = result;
	thread->results_end = &result->next;
	pthread_mutex_unlock(&thread->lock);
	bell_ring(thread->ready);
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
	request->entry.cancel = thread->cancel;
	struct outage outage = {.deadline = request->entry.deadline, .cancel = thread->cancel};
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
			clock_after(request->options->join_timeout), thread->cancel,
			&result->error);
	outage.deadline = clock_after(request->options->join_timeout);
	if (result->status == STATUS_OK && request->options->find_checkpoint)
		result->status = signal_only_resolve(
			thread->store, view, request->options, &outage, &result->error);
	post(thread, result);
}

/*
 * Pause after a failure. The pause is random, and longer after each failure in a row, up to 1.1 s.
 * It ends early if the thread is to stop or, with requests_end_it, if there is a request. A look
 * that is due does not end it.
 */
static void pause_after(struct store_thread *thread, int failures, bool requests_end_it)
{
	int64_t end = clock_after(100 + clock_jitter(failures > 10 ? 1000 : 100 * failures));
	bool called = false;
	while (!called && clock_now() < end) {
		(void)descriptor_wait(thread->wake, end);
		bell_hush(thread->wake);
		pthread_mutex_lock(&thread->lock);
		called = thread->stopping || (requests_end_it && thread->first);
		pthread_mutex_unlock(&thread->lock);
	}
}

/*
 * Whether there may be news that the last look did not show. count: the count of news after a
 * transaction (store.h); 0: not known. made: that transaction itself counted as news; our own news
 * needs no look.
 * If there is no other news, thread->heard becomes count.
 */
static bool is_behind(struct store_thread *thread, uint32_t count, bool made)
{
	pthread_mutex_lock(&thread->lock);
	bool known = count && count == thread->heard + made;
	if (known)
		thread->heard = count;
	pthread_mutex_unlock(&thread->lock);
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

static void carry_out_write(struct store_thread *thread, struct request *request)
{
	const struct write *write = &request->write;
	struct result *result = new_result(RESULT_WROTE);
	result->outcome = OUTCOME_UNKNOWN;
	result->began = clock_now();
	result->status = open_store(thread, &result->error);
	if (result->status == STATUS_OK)
		result->outcome = write_carry_out(&request->write, thread->store, &result->error);
	bool behind = result->outcome == OUTCOME_DONE && write->transaction.group &&
		      is_behind(thread, write->news, write->transaction.news);
	thread->writes_failed = result->outcome == OUTCOME_UNKNOWN ? thread->writes_failed + 1 : 0;
	post_written(thread, request, result, behind);
	/* Writes to a full disk fail at once: pause before they are tried again. */
	if (thread->writes_failed)
		pause_after(thread, thread->writes_failed, false);
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

static void carry_out(struct store_thread *thread, struct request *request)
{
	switch (request->kind) {
	case REQUEST_JOIN: carry_out_join(thread, request); break;
	case REQUEST_WRITE: carry_out_write(thread, request); break;
	case REQUEST_CLOSE: carry_out_close(thread, request); break;
	}
	write_release(&request->write);
	free(request);
}

static void post_look(struct store_thread *thread, struct result *result, uint32_t heard)
{
	pthread_mutex_lock(&thread->lock);
	if (result->status == STATUS_OK) {
		thread->heard = heard;
		thread->seen = result->answer.revision;
		if (result->whole)
			thread->revision = result->answer.revision;
	}
	thread->wants.look = CLOCK_NEVER;
	if (result->counted)
		thread->wants.count = CLOCK_NEVER;
	if (result->whole)
		thread->wants.read = CLOCK_NEVER;
	*thread->results_end = result;
	thread->results_end = &result->next;
	pthread_mutex_unlock(&thread->lock);
	bell_ring(thread->ready);
}

/*
 * Read what changed and report it. whole: everything; otherwise the news only, with the counts of
 * records if they are wanted.
 */
static bool look(struct store_thread *thread, const struct store_awaited *since,
	const struct store_wants *wants, bool whole)
{
	struct result *result = new_result(RESULT_SAW);
	struct store_range range = {.prefix = since->prefix,
		.since = whole ? thread->revision : since->since,
		.skip = whole ? NULL : view_records};
	result->whole = whole;
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
	post_look(thread, result, heard);
	return right;
}

static int64_t due(const struct store_wants *wants)
{
	return clock_earlier(wants->look, wants->read);
}

static void follow(struct store_thread *thread, int *failures)
{
	struct attempt attempt;
	char group[KEYS_GROUP];
	pthread_mutex_lock(&thread->lock);
	attempt = thread->attempt;
	struct store_wants wants = thread->wants;
	struct store_awaited awaited = {.group = group,
		.heard = thread->heard,
		.prefix = attempt.prefix,
		.since = thread->seen,
		.every = wants.awaits ? VIEW_EVERY : VIEW_SELDOM,
		.age = view_news_age(attempt.tasks)};
	pthread_mutex_unlock(&thread->lock);
	keys_group(&attempt, group);

	enum status status = STATUS_TIMEOUT;
	bool waits = thread->store && *failures == 0 && due(&wants) > clock_now();
	if (waits)
		status = store_await_news(thread->store, &awaited, due(&wants), thread->wake, NULL);
	if (status == STATUS_NO)
		return; /* woken: there is a request, or the wants have changed */
	pthread_mutex_lock(&thread->lock);
	wants = thread->wants;
	pthread_mutex_unlock(&thread->lock);
	if (waits && status == STATUS_TIMEOUT && due(&wants) > clock_now())
		return;
	if (status != STATUS_OK)
		awaited.heard = 0; /* look() then reads the count again: there may be news */
	if (look(thread, &awaited, &wants, wants.read <= clock_now())) {
		*failures = 0;
		return;
	}
	++*failures;
	pause_after(thread, *failures, true);
}

/* Take the next request, and after a write also the writes that follow. The lock is held. */
static struct request *take_requests(struct store_thread *thread)
{
	struct request *first = thread->gathering ? NULL : thread->first, *last = first;
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

static void carry_out_all(struct store_thread *thread, struct request *request)
{
	bool done = request->next && carry_out_writes(thread, request);
	for (struct request *next; request; request = next) {
		next = request->next;
		if (done)
			free(request);
		else
			carry_out(thread, request);
	}
}

static void *work(void *context)
{
	struct store_thread *thread = context;
	int failures = 0;
	for (;;) {
		bell_hush(thread->wake);
		pthread_mutex_lock(&thread->lock);
		struct request *request = take_requests(thread);
		bool following = thread->following;
		bool stop = thread->stopping && !request;
		pthread_mutex_unlock(&thread->lock);
		if (stop)
			break;
		if (request)
			carry_out_all(thread, request);
		else if (following)
			follow(thread, &failures);
		else
			(void)descriptor_wait(thread->wake, CLOCK_NEVER);
	}
	store_close(thread->store);
	return NULL;
}

static void release(struct store_thread *thread)
{
	const int bells[] = {thread->wake, thread->ready, thread->cancel};
	for (size_t i = 0; i < 3; i++)
		if (bells[i] >= 0)
			close(bells[i]);
	pthread_mutex_destroy(&thread->lock);
	free(thread->url);
	free(thread);
}

enum status store_thread_start(
	struct store_thread **out, const char *url, struct store *store, struct error *err)
{
	struct store_thread *thread = xcalloc(1, sizeof(*thread));
	thread->url = xstrdup(url);
	thread->store = store;
	thread->last = &thread->first;
	thread->results_end = &thread->results;
	thread->wants.look = thread->wants.count = thread->wants.read = CLOCK_NEVER;
	pthread_mutex_init(&thread->lock, NULL);
	thread->wake = bell_open();
	thread->ready = bell_open();
	thread->cancel = bell_open();
	bool bells = thread->wake >= 0 && thread->ready >= 0 && thread->cancel >= 0;
	int number = bells ? 0 : errno;
	if (number == 0)
		number = thread_start(&thread->thread, work, thread);
	if (number == 0) {
		*out = thread;
		return STATUS_OK;
	}
	release(thread);
	return error_set(err, STATUS_TEMPORARY, "cannot start a thread: %s", strerror(number));
}

int store_thread_descriptor(const struct store_thread *thread)
{
	return thread->ready;
}

struct result *store_thread_take(struct store_thread *thread)
{
	pthread_mutex_lock(&thread->lock);
	struct result *result = thread->results;
	if (result) {
		thread->results = result->next;
		if (!thread->results)
			thread->results_end = &thread->results;
	} else {
		bell_hush(thread->ready);
	}
	pthread_mutex_unlock(&thread->lock);
	return result;
}

static void submit(struct store_thread *thread, struct request *request)
{
	pthread_mutex_lock(&thread->lock);
	*thread->last = request;
	thread->last = &request->next;
	bool ring = !thread->gathering;
	pthread_mutex_unlock(&thread->lock);
	if (ring)
		bell_ring(thread->wake);
}

void store_thread_batch(struct store_thread *thread, bool begin)
{
	pthread_mutex_lock(&thread->lock);
	thread->gathering = begin;
	bool ring = !begin && thread->first;
	pthread_mutex_unlock(&thread->lock);
	if (ring)
		bell_ring(thread->wake);
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
	bell_ring(thread->cancel);
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
	pthread_mutex_lock(&thread->lock);
	thread->following = true;
	thread->attempt = view->attempt;
	thread->revision = view->revision;
	thread->seen = view->seen;
	thread->heard = view->heard;
	pthread_mutex_unlock(&thread->lock);
	bell_ring(thread->wake);
}

void store_thread_unfollow(struct store_thread *thread)
{
	pthread_mutex_lock(&thread->lock);
	thread->following = false;
	pthread_mutex_unlock(&thread->lock);
}

void store_thread_want(struct store_thread *thread, const struct store_wants *wants)
{
	pthread_mutex_lock(&thread->lock);
	/* Ignore the call while results wait: the agent calls again when it has taken them. */
	bool now = !thread->results;
	bool sooner = now && due(wants) < due(&thread->wants);
	if (now)
		thread->wants = *wants;
	pthread_mutex_unlock(&thread->lock);
	if (sooner)
		bell_ring(thread->wake);
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
	pthread_mutex_lock(&thread->lock);
	thread->stopping = true;
	pthread_mutex_unlock(&thread->lock);
	bell_ring(thread->wake);
	if (!thread_join(thread->thread, thread, patience))
		return false;
	for (struct result *result; (result = store_thread_take(thread));)
		result_free(result);
	release(thread);
	return true;
}
