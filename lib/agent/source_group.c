/* SPDX-License-Identifier: MIT */
#include "agent/source_group.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process/bell.h"
#include "base/process/descriptor.h"
#include "base/process/thread.h"
#include "base/xalloc.h"
#include "proto/claim.h"
#include "run/attempt.h"

#define AGAIN	  1000 /* ms to wait if the store does not answer or does not exist yet */
#define GONE_LOOK 200  /* ms between two looks whether the claiming process has ended */
#define PATIENCE  2000 /* ms to wait for the thread at the end */

struct group_source {
	struct source source;		     /* first */
	struct group_source_options options; /* url and run have its strings */
	char *url;
	char run[129];
	char prefix[192]; /* of the keys whose changes concern us */
	int ready;	  /* eventfd: there is news */
	int stop;	  /* eventfd: the thread is to end */
	pthread_t thread;

	/* Of the thread alone. */
	struct store *store;
	struct view view;
	uint64_t given_round; /* of the last notice in the view's attempt; 1 for a claim */

	pthread_mutex_t lock; /* over everything below */
	bool looked, failed, noticed, gone;
	struct error error;   /* failed */
	struct notice notice; /* noticed */
	enum status over;
	struct error over_error;
};

/* ---- The thread ---- */

/* Describe the claim, or a round without one, as a notice. */
static void describe(const struct view *view, struct notice *notice)
{
	const struct view_claim *claim = &view->claim;
	struct notice_time received = notice_time();
	char who[160], reason[512];
	int64_t left = -1;
	if (!view->agreement.claimed)
		snprintf(who, sizeof(who), "a checkpoint is asked for, round %llu",
			(unsigned long long)view->agreement.round);
	else if (claim->outside)
		snprintf(who, sizeof(who), "claimed from outside, on %s", claim->host);
	else
		snprintf(who, sizeof(who), "claimed by task %llu on %s",
			(unsigned long long)claim->task, claim->host);
	snprintf(reason, sizeof(reason), "%s%s%s%s%s", who, *claim->source ? ": " : "",
		claim->source, *claim->reason ? " " : "", claim->reason);
	/* Count from when the claim was seen here: the claiming machine's clock may be wrong. */
	int64_t deadline = view->agreement.deadline;
	if (deadline != CLOCK_NEVER && !view->agreement.deadline_doubted)
		left = deadline > received.now ? deadline - received.now : 0;
	notice_set(notice, "group", reason, received, left);
	snprintf(notice->claim.run, sizeof(notice->claim.run), "%s", view->attempt.run);
	notice->claim.attempt = view->attempt.number;
	notice->claim.by_task = view->agreement.claimed && !claim->outside;
	notice->claim.task = claim->task;
	snprintf(notice->claim.then, sizeof(notice->claim.then), "%s",
		keys_then_word(
			view->agreement.claimed ? view->agreement.claim_then : THEN_CONTINUE));
}

/* STATUS_OK: another notice can come in this attempt. Otherwise it is broken, or closed. */
static enum status judge_over(const struct view *view, struct error *err)
{
	const char *run = view->attempt.run;
	unsigned long long number = view->attempt.number;
	if (view->agreement.claimed && !view->agreement.closed)
		return STATUS_OK;
	if (view->agreement.claimed)
		return error_set(err, STATUS_NO,
			"run %s: attempt %llu is over (%s); no further round comes", run, number,
			view->closed);
	if (view->agreement.broken)
		return error_set(err, STATUS_BROKEN, "run %s: attempt %llu is broken: %s", run,
			number, view_why(view));
	if (view->agreement.closed)
		return error_set(err, STATUS_NO,
			"run %s: attempt %llu is over (%s) without a claim", run, number,
			view->closed);
	return STATUS_OK;
}

/* Post what the view shows now, for the caller. */
static void post_view(struct group_source *self)
{
	const struct view *view = &self->view;
	const struct agreement_view *a = &view->agreement;
	uint64_t wanted = self->options.round ? self->options.round : 1;
	uint64_t round = self->options.round ? a->round : a->claimed;
	struct notice notice;
	struct error err;
	/* If no attempt is named, wait for the claim of the next one, not of a closed one. */
	bool past = !self->options.attempt && a->closed && !self->options.past;
	bool fresh = view->attempt.number && round >= wanted && round > self->given_round && !past;
	bool gone = self->options.until_exit && a->claimed && claim_is_gone(view);
	enum status over =
		self->options.attempt && view->attempt.number ? judge_over(view, &err) : STATUS_OK;
	if (fresh) {
		describe(view, &notice);
		self->given_round = round;
	}
	pthread_mutex_lock(&self->lock);
	if (fresh)
		self->notice = notice;
	self->noticed |= fresh;
	self->gone |= gone;
	self->looked = true;
	self->failed = false;
	if (over != STATUS_OK && self->over == STATUS_OK) {
		self->over = over;
		self->over_error = err;
	}
	pthread_mutex_unlock(&self->lock);
	bell_ring(self->ready);
}

static void post_failure(struct group_source *self, const struct error *err)
{
	pthread_mutex_lock(&self->lock);
	self->failed = true;
	self->error = *err;
	pthread_mutex_unlock(&self->lock);
	bell_ring(self->ready);
}

/* Bring the view up to date. STATUS_NO: there is no store or no attempt yet. */
static enum status look(struct group_source *self, struct error *err)
{
	struct attempt attempt;
	enum status status = STATUS_OK;
	if (!self->store)
		status = store_open(&self->store, self->url, 0, clock_after(30000), err);
	if (status == STATUS_OK)
		status = attempt_find(self->store, self->run, self->options.attempt, &attempt, err);
	if (status == STATUS_OK && attempt.number != self->view.attempt.number) {
		view_release(&self->view);
		self->given_round = 0;
		view_init(&self->view, &attempt);
	}
	return status == STATUS_OK ? view_refresh(&self->view, self->store, err) : status;
}

static void *ask(void *context)
{
	struct group_source *self = context;
	/* The next wait is for changes after this revision (store_wait). */
	store_revision since = 0;
	for (;;) {
		struct error err = {0};
		enum status status = look(self, &err);
		if (status == STATUS_OK || status == STATUS_NO)
			post_view(self);
		else
			post_failure(self, &err);
		if ((status != STATUS_OK && status != STATUS_NO) || !self->store) {
			if (descriptor_wait(
				    self->stop, clock_after(AGAIN / 2 + clock_jitter(AGAIN))))
				break;
			continue;
		}
		bool till_gone = self->options.until_exit && self->view.agreement.claimed;
		status = store_wait(self->store, self->prefix, &since,
			till_gone ? clock_after(GONE_LOOK) : CLOCK_NEVER, self->stop, &err);
		if (status == STATUS_NO)
			break;
		if (status == STATUS_OK || status == STATUS_TIMEOUT)
			continue;
		post_failure(self, &err);
		if (descriptor_wait(self->stop, clock_after(AGAIN / 2 + clock_jitter(AGAIN))))
			break;
	}
	view_release(&self->view);
	store_close(self->store);
	return NULL;
}

/* ---- The source ---- */

static void release(struct group_source *self)
{
	if (self->ready >= 0)
		close(self->ready);
	if (self->stop >= 0)
		close(self->stop);
	pthread_mutex_destroy(&self->lock);
	free(self->url);
	free(self);
}

static void group_close(struct source *source)
{
	struct group_source *self = (struct group_source *)source;
	bell_ring(self->stop);
	/* A thread that hangs in the filesystem ends with the process; what it uses stays. */
	if (thread_join(self->thread, self, PATIENCE))
		release(self);
}

static int group_descriptor(const struct source *source)
{
	return ((const struct group_source *)source)->ready;
}

static int64_t group_due(const struct source *source)
{
	(void)source;
	return CLOCK_NEVER;
}

static enum source_answer group_check(
	struct source *source, int64_t now, struct notice *notice, struct error *err)
{
	struct group_source *self = (struct group_source *)source;
	enum source_answer answer = SOURCE_PENDING;
	(void)now;
	pthread_mutex_lock(&self->lock);
	bell_hush(self->ready);
	if (self->noticed) {
		*notice = self->notice;
		answer = SOURCE_NOTICE;
	} else if (self->failed) {
		*err = self->error;
		answer = SOURCE_CANNOT_ASK;
	} else if (self->looked) {
		answer = SOURCE_NONE;
	}
	self->noticed = self->failed = self->looked = false;
	pthread_mutex_unlock(&self->lock);
	return answer;
}

static const struct source_kind source_group = {.name = "group",
	.example = "group",
	.close = group_close,
	.descriptor = group_descriptor,
	.due = group_due,
	.check = group_check};

enum status source_group_open(
	struct source **source, const struct group_source_options *options, struct error *err)
{
	struct group_source *self = xcalloc(1, sizeof(*self));
	pthread_mutex_init(&self->lock, NULL);
	self->source.kind = &source_group;
	self->source.name = xstrdup("group");
	self->options = *options;
	self->url = xstrdup(options->store);
	snprintf(self->run, sizeof(self->run), "%s", options->run);
	/* Without an attempt, watch the whole run: keys of a later attempt have another prefix. */
	if (options->attempt) {
		struct attempt attempt;
		attempt_name(&attempt, self->run, options->attempt, 0);
		snprintf(self->prefix, sizeof(self->prefix), "%s", attempt.prefix);
	} else {
		snprintf(self->prefix, sizeof(self->prefix), "run/%s/", self->run);
	}
	self->ready = bell_open();
	self->stop = bell_open();
	int number = self->ready < 0 || self->stop < 0 ? errno : 0;
	if (!number)
		number = thread_start(&self->thread, ask, self);
	if (number) {
		free(self->source.name);
		release(self);
		return error_set(
			err, STATUS_TEMPORARY, "cannot watch the group: %s", strerror(number));
	}
	*source = &self->source;
	return STATUS_OK;
}

enum status source_group_over(struct source *source, struct error *err)
{
	struct group_source *self = (struct group_source *)source;
	pthread_mutex_lock(&self->lock);
	enum status over = self->over;
	if (over != STATUS_OK && err)
		*err = self->over_error;
	pthread_mutex_unlock(&self->lock);
	return over;
}

bool source_group_gone(struct source *source)
{
	struct group_source *self = (struct group_source *)source;
	pthread_mutex_lock(&self->lock);
	bool gone = self->gone;
	pthread_mutex_unlock(&self->lock);
	return gone;
}
