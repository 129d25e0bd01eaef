/* SPDX-License-Identifier: MIT */
#include "group/worker.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bell.h"
#include "base/clock.h"
#include "base/thread.h"
#include "group/outage.h"
#include "group/outcome.h"
#include "group/remembered.h"
#include "group/signal_only.h"

#define TOGETHER 64 /* writes in one transaction, at most */

enum request_kind { REQUEST_JOIN, REQUEST_WRITE, REQUEST_CLOSE };

struct request {
	enum request_kind kind;
	struct attempt_entry entry; /* strings are copied into text */
	char run[129], launch[160];
	const struct agent_options *options;
	struct view *view;
	struct write write;
	struct attempt attempt;
	struct pulse *pulse;		 /* of REQUEST_JOIN */
	struct progress_rules *progress; /* of REQUEST_JOIN */
	bool finished;			 /* of REQUEST_CLOSE */
	struct request *next;
};

struct worker {
	pthread_t thread;
	char *url;
	struct store *store; /* of the thread alone, as is */
	int writes_failed;   /* in a row */
	int wake;	     /* eventfd: there is something new for the thread */
	int ready;	     /* eventfd: there are results */
	int cancel;	     /* eventfd: give up joining */

	pthread_mutex_t lock; /* over everything below */
	struct request *first, **last;
	struct result *results, **results_end;
	bool following, stopping, ended;
	bool awaits;	/* news that others are about to make */
	bool gathering; /* more is to be written: wait for it */
	struct attempt attempt;
	store_revision revision; /* up to here all was read, */
	store_revision seen;	 /* and up to here the news */
	uint32_t heard;		 /* the count of news (store.h) when the last look began */
	int64_t look_by;
};

void result_free(struct result *result)
{
	if (!result)
		return;
	store_answer_release(&result->answer);
	write_release(&result->write);
	free(result);
}

static void post(struct worker *worker, struct result *result)
{
	pthread_mutex_lock(&worker->lock);
	*worker->results_end = result;
	worker->results_end = &result->next;
	pthread_mutex_unlock(&worker->lock);
	bell_ring(worker->ready);
}

static struct result *new_result(enum result_kind kind)
{
	struct result *result = calloc(1, sizeof(*result));
	if (!result)
		abort(); /* a few hundred bytes: nothing sensible can follow */
	result->kind = kind;
	return result;
}

/* The store, opened anew after a failure to open it. */
static enum status open_store(struct worker *worker, struct error *err)
{
	if (worker->store)
		return STATUS_OK;
	return outage_open(&worker->store, worker->url, clock_after(30000), err);
}

/* What the store remembers of the run's earlier attempts. */
static enum status recall(struct worker *worker, struct request *request, struct result *result)
{
	struct remembered known;
	enum status status = remembered_read(worker->store, request->run, &known, &result->error);
	if (status != STATUS_OK)
		return status;
	result->longest_save = known.longest_save;
	if (request->progress->learn)
		(void)progress_merge(request->progress, &known.pace);
	return STATUS_OK;
}

static void carry_out_join(struct worker *worker, struct request *request)
{
	struct result *result = new_result(RESULT_JOINED);
	request->entry.run = request->run;
	request->entry.launch = request->launch;
	request->entry.cancel = worker->cancel;
	struct outage outage = {
		.deadline = request->entry.deadline, .cancel = &worker->cancel, .cancel_count = 1};
	do
		result->status = open_store(worker, &result->error);
	while (outage_retry(&outage, &result->status, &result->error));
	if (result->status == STATUS_OK)
		result->status =
			attempt_join(worker->store, &request->entry, request->view, &result->error);
	if (result->status == STATUS_OK && request->pulse)
		pulse_begin(request->pulse, &request->view->attempt);
	if (result->status == STATUS_OK) {
		do
			result->status = recall(worker, request, result);
		while (outage_retry(&outage, &result->status, &result->error));
	}
	if (result->status == STATUS_OK)
		result->status = attempt_gather(worker->store, request->view,
			clock_after(request->options->join_timeout), worker->cancel,
			&result->error);
	if (result->status == STATUS_OK && request->options->find_checkpoint)
		result->status = signal_only_resolve(
			worker->store, request->view, request->options, &result->error);
	post(worker, result);
}

static void wait_until(struct worker *worker, int64_t deadline)
{
	struct pollfd wake = {.fd = worker->wake, .events = POLLIN};
	poll(&wake, 1, clock_poll_timeout(deadline));
}

/*
 * Sleep after so many failures in a row: longer after each, up to a second. That a look is wanted
 * does not end it; that something is to be carried out does, unless that has just failed.
 */
static void pause_after(struct worker *worker, int failures, bool requests_end_it)
{
	int64_t end = clock_after(100 + clock_jitter(failures > 10 ? 1000 : 100 * failures));
	bool called = false;
	while (!called && clock_now() < end) {
		wait_until(worker, end);
		bell_hush(worker->wake);
		pthread_mutex_lock(&worker->lock);
		called = worker->stopping || (requests_end_it && worker->first);
		pthread_mutex_unlock(&worker->lock);
	}
}

/*
 * Whether there is news that the last look did not show, by the count that a transaction has read.
 * What we made ourselves needs no look.
 */
static bool is_behind(struct worker *worker, uint32_t count, bool made)
{
	pthread_mutex_lock(&worker->lock);
	bool known = count && count == worker->heard + made;
	if (known)
		worker->heard = count;
	pthread_mutex_unlock(&worker->lock);
	return !known;
}

static void post_written(
	struct worker *worker, struct request *request, struct result *result, bool behind)
{
	result->now = clock_now();
	result->news =
		result->outcome == OUTCOME_DONE && request->write.transaction.group && behind;
	result->write = request->write;
	request->write = (struct write){0};
	post(worker, result);
}

static void carry_out_write(struct worker *worker, struct request *request)
{
	const struct write *write = &request->write;
	struct result *result = new_result(RESULT_WROTE);
	result->outcome = OUTCOME_UNKNOWN;
	result->began = clock_now();
	result->status = open_store(worker, &result->error);
	if (result->status == STATUS_OK)
		result->outcome = write_carry_out(&request->write, worker->store, &result->error);
	bool behind = result->outcome == OUTCOME_DONE && write->transaction.group &&
		      is_behind(worker, write->news, write->transaction.news);
	worker->writes_failed = result->outcome == OUTCOME_UNKNOWN ? worker->writes_failed + 1 : 0;
	post_written(worker, request, result, behind);
	/* A full disk fails at once, and it would be tried again at once. */
	if (worker->writes_failed)
		pause_after(worker, worker->writes_failed, false);
}

/*
 * What waits to be written, in one transaction: an agent with eight tasks shall cost the store no
 * more than one. False: not all of it, or not for sure.
 */
static bool carry_out_writes(struct worker *worker, struct request *first)
{
	struct write *writes[TOGETHER];
	size_t count = 0;
	int64_t began = clock_now();
	bool made = false;
	for (struct request *request = first; request; request = request->next) {
		if (request->write.deadline_key)
			return false; /* what is left is counted when it is written */
		made |= request->write.transaction.news;
		writes[count++] = &request->write;
	}
	if (!worker->store || worker->writes_failed ||
		!write_carry_out_all(writes, count, worker->store, NULL))
		return false;
	uint32_t news = 0;
	for (size_t i = 0; i < count; i++)
		if (writes[i]->transaction.group)
			news = writes[i]->news;
	bool behind = news && is_behind(worker, news, made);
	for (struct request *request = first; request; request = request->next) {
		struct result *result = new_result(RESULT_WROTE);
		result->outcome = OUTCOME_DONE;
		result->began = began;
		post_written(worker, request, result, behind);
	}
	return true;
}

static void carry_out_close(struct worker *worker, struct request *request)
{
	struct result *result = new_result(RESULT_CLOSED);
	struct outcome_finding finding = {.finished = request->finished};
	struct view view = {0};
	result->status = open_store(worker, &result->error);
	if (result->status == STATUS_OK)
		result->status = view_init(&view, &request->attempt, &result->error);
	if (result->status == STATUS_OK)
		result->status = view_refresh(&view, worker->store, &result->error);
	if (result->status == STATUS_OK && view_all_through(&view)) {
		if (request->options->find_checkpoint && view.resume_known)
			finding.newer = signal_only_find_newer(request->options, &view,
						&finding.step, &(struct error){0}) == STATUS_OK;
		result->status = attempt_close_as_seen(
			worker->store, &view, false, &finding, &result->error);
	}
	view_release(&view);
	post(worker, result);
}

static void carry_out(struct worker *worker, struct request *request)
{
	switch (request->kind) {
	case REQUEST_JOIN: carry_out_join(worker, request); break;
	case REQUEST_WRITE: carry_out_write(worker, request); break;
	case REQUEST_CLOSE: carry_out_close(worker, request); break;
	}
	write_release(&request->write);
	free(request);
}

static void post_look(struct worker *worker, struct result *result, uint32_t heard)
{
	pthread_mutex_lock(&worker->lock);
	if (result->status == STATUS_OK) {
		worker->heard = heard;
		worker->seen = result->answer.revision;
		if (result->whole)
			worker->revision = result->answer.revision;
	}
	if (result->whole)
		worker->look_by = CLOCK_NEVER;
	*worker->results_end = result;
	worker->results_end = &result->next;
	pthread_mutex_unlock(&worker->lock);
	bell_ring(worker->ready);
}

/* Read what changed and report it: all of it, or without the records of single tasks. */
static bool look(struct worker *worker, const struct store_awaited *since, bool whole, bool counted)
{
	struct result *result = new_result(RESULT_SAW);
	struct store_range range = {.prefix = since->prefix,
		.since = whole ? worker->revision : since->since,
		.skip = whole ? NULL : view_records};
	result->whole = whole;
	result->counted = counted;
	uint32_t heard = since->heard;
	result->status = open_store(worker, &result->error);
	if (result->status == STATUS_OK)
		result->unchanged = store_unchanged(worker->store, since->since);
	result->began = clock_now();
	if (result->status == STATUS_OK && !heard)
		heard = store_news(worker->store, since->group);
	if (result->status == STATUS_OK)
		result->status = store_list(worker->store, &range, &result->answer, &result->error);
	result->now = clock_now();
	bool right = result->status == STATUS_OK;
	result->set_back = right && store_was_set_back(worker->store, &result->error);
	post_look(worker, result, heard);
	return right;
}

static void follow(struct worker *worker, int *failures)
{
	struct attempt attempt;
	char group[KEYS_GROUP];
	pthread_mutex_lock(&worker->lock);
	attempt = worker->attempt;
	struct store_awaited awaited = {.group = group,
		.heard = worker->heard,
		.prefix = attempt.prefix,
		.since = worker->seen,
		.every = worker->awaits ? VIEW_EVERY : VIEW_SELDOM};
	int64_t by = worker->look_by;
	pthread_mutex_unlock(&worker->lock);
	keys_group(&attempt, group);

	enum status status = STATUS_TIMEOUT;
	uint32_t heard = awaited.heard;
	if (worker->store && *failures == 0 && by > clock_now())
		status = store_await_news(worker->store, &awaited, by, worker->wake, NULL);
	if (status == STATUS_NO)
		return; /* a request */
	/* Where news is not counted, whatever has changed is looked at whole. */
	bool news = status == STATUS_OK && by > clock_now() && heard;
	bool counted = awaited.heard != heard;
	if (status != STATUS_OK)
		awaited.heard = 0; /* there may be some by now */
	if (look(worker, &awaited, !news, counted)) {
		*failures = 0;
		return;
	}
	++*failures;
	pause_after(worker, *failures, true);
}

/* The next request, and with a write those that follow it; the lock is held. */
static struct request *take_requests(struct worker *worker)
{
	struct request *first = worker->gathering ? NULL : worker->first, *last = first;
	size_t count = 1;
	if (!first)
		return NULL;
	while (first->kind == REQUEST_WRITE && last->next && last->next->kind == REQUEST_WRITE &&
		count++ < TOGETHER)
		last = last->next;
	worker->first = last->next;
	if (!worker->first)
		worker->last = &worker->first;
	last->next = NULL;
	return first;
}

static void carry_out_all(struct worker *worker, struct request *request)
{
	bool done = request->next && carry_out_writes(worker, request);
	for (struct request *next; request; request = next) {
		next = request->next;
		if (done)
			free(request);
		else
			carry_out(worker, request);
	}
}

static void *work(void *context)
{
	struct worker *worker = context;
	int failures = 0;
	for (;;) {
		bell_hush(worker->wake);
		pthread_mutex_lock(&worker->lock);
		struct request *request = take_requests(worker);
		bool following = worker->following;
		bool stop = worker->stopping && !request;
		pthread_mutex_unlock(&worker->lock);
		if (stop)
			break;
		if (request)
			carry_out_all(worker, request);
		else if (following)
			follow(worker, &failures);
		else
			wait_until(worker, CLOCK_NEVER);
	}
	store_close(worker->store);
	pthread_mutex_lock(&worker->lock);
	worker->ended = true;
	pthread_mutex_unlock(&worker->lock);
	return NULL;
}

static void release(struct worker *worker)
{
	const int bells[] = {worker->wake, worker->ready, worker->cancel};
	for (size_t i = 0; i < 3; i++)
		if (bells[i] >= 0)
			close(bells[i]);
	pthread_mutex_destroy(&worker->lock);
	free(worker->url);
	free(worker);
}

enum status worker_start(struct worker **out, const char *url, struct error *err)
{
	struct worker *worker = calloc(1, sizeof(*worker));
	if (!worker)
		return error_set(err, STATUS_TEMPORARY, "out of memory");
	worker->url = strdup(url);
	worker->last = &worker->first;
	worker->results_end = &worker->results;
	worker->look_by = CLOCK_NEVER;
	pthread_mutex_init(&worker->lock, NULL);
	worker->wake = bell_open();
	worker->ready = bell_open();
	worker->cancel = bell_open();
	bool bells = worker->wake >= 0 && worker->ready >= 0 && worker->cancel >= 0;
	int number = !bells ? errno : worker->url ? 0 : ENOMEM;
	if (number == 0)
		number = thread_start(&worker->thread, work, worker);
	if (number == 0) {
		*out = worker;
		return STATUS_OK;
	}
	release(worker);
	return error_set(err, STATUS_TEMPORARY, "cannot start a thread: %s", strerror(number));
}

int worker_descriptor(const struct worker *worker)
{
	return worker->ready;
}

struct result *worker_take(struct worker *worker)
{
	pthread_mutex_lock(&worker->lock);
	struct result *result = worker->results;
	if (result) {
		worker->results = result->next;
		if (!worker->results)
			worker->results_end = &worker->results;
	} else {
		bell_hush(worker->ready);
	}
	pthread_mutex_unlock(&worker->lock);
	return result;
}

static void submit(struct worker *worker, struct request *request)
{
	pthread_mutex_lock(&worker->lock);
	*worker->last = request;
	worker->last = &request->next;
	bool ring = !worker->gathering;
	pthread_mutex_unlock(&worker->lock);
	if (ring)
		bell_ring(worker->wake);
}

void worker_gather(struct worker *worker, bool begin)
{
	pthread_mutex_lock(&worker->lock);
	worker->gathering = begin;
	bool ring = !begin && worker->first;
	pthread_mutex_unlock(&worker->lock);
	if (ring)
		bell_ring(worker->wake);
}

static struct request *new_request(enum request_kind kind)
{
	struct request *request = calloc(1, sizeof(*request));
	if (!request)
		abort();
	request->kind = kind;
	return request;
}

void worker_join(struct worker *worker, const struct attempt_entry *entry,
	const struct agent_options *options, struct view *view, struct pulse *pulse,
	struct progress_rules *progress)
{
	struct request *request = new_request(REQUEST_JOIN);
	request->entry = *entry;
	strncpy(request->run, entry->run, sizeof(request->run) - 1);
	strncpy(request->launch, entry->launch, sizeof(request->launch) - 1);
	request->options = options;
	request->view = view;
	request->pulse = pulse;
	request->progress = progress;
	submit(worker, request);
}

void worker_cancel(struct worker *worker)
{
	bell_ring(worker->cancel);
}

void worker_write(struct worker *worker, struct write *write)
{
	struct request *request = new_request(REQUEST_WRITE);
	request->write = *write;
	*write = (struct write){0};
	submit(worker, request);
}

void worker_follow(struct worker *worker, const struct view *view)
{
	pthread_mutex_lock(&worker->lock);
	worker->following = true;
	worker->attempt = view->attempt;
	worker->revision = worker->seen = view->revision;
	worker->heard = view->heard;
	pthread_mutex_unlock(&worker->lock);
	bell_ring(worker->wake);
}

void worker_rest(struct worker *worker)
{
	pthread_mutex_lock(&worker->lock);
	worker->following = false;
	pthread_mutex_unlock(&worker->lock);
}

void worker_look(struct worker *worker, int64_t by, bool awaits)
{
	pthread_mutex_lock(&worker->lock);
	worker->awaits = awaits;
	/* Results that wait may say what is to be looked for. */
	bool sooner = by < worker->look_by && !worker->results;
	if (sooner)
		worker->look_by = by;
	pthread_mutex_unlock(&worker->lock);
	if (sooner)
		bell_ring(worker->wake);
}

void worker_close(struct worker *worker, const struct attempt *attempt,
	const struct agent_options *options, bool finished)
{
	struct request *request = new_request(REQUEST_CLOSE);
	request->attempt = *attempt;
	request->options = options;
	request->finished = finished;
	submit(worker, request);
}

void worker_stop(struct worker *worker, int64_t patience)
{
	pthread_mutex_lock(&worker->lock);
	worker->stopping = true;
	pthread_mutex_unlock(&worker->lock);
	bell_ring(worker->wake);
	if (!thread_join(worker->thread, worker, patience))
		return;
	for (struct result *result; (result = worker_take(worker));)
		result_free(result);
	release(worker);
}
