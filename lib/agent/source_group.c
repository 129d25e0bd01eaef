/* SPDX-License-Identifier: MIT */
#include "agent/source_group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/worker.h"
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
	char prefix[192];		     /* of the keys whose changes concern us */
	uint64_t given_attempt, given_round; /* of the last notice; round 1: its claim */
	bool seen;			     /* the view was taken in once */
	uint64_t closed_before;		     /* the attempt that was closed then; 0: none */
	bool gone;
	enum status over;
	struct error over_error;

	/* Of the worker, while it has a job. */
	struct worker *worker;
	struct store *store;
	struct view view;
	store_revision since; /* the next wait is for changes after this revision (store_wait) */
	bool asked;	      /* the first look was made */
	enum status status;   /* of the last look, or of the wait before it */
	struct error error;
};

/* ---- What the view shows ---- */

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

/* What the view shows of the rounds that are told; round 1: the claim. */
static uint64_t round_shown(const struct group_source *self)
{
	const struct agreement_view *a = &self->view.agreement;
	return self->options.round ? a->round : a->claimed;
}

/* Whether the view shows a notice that was not given yet. */
static bool is_news(const struct group_source *self)
{
	uint64_t number = self->view.attempt.number, round = round_shown(self);
	uint64_t wanted = self->options.round ? self->options.round : 1;
	uint64_t given = number == self->given_attempt ? self->given_round : 0;
	return number > self->closed_before && round >= wanted && round > given;
}

/* Whether all that is left is to see the claiming task go. */
static bool awaits_exit(const struct group_source *self)
{
	return self->options.until_exit && self->view.agreement.claimed;
}

/* Take in what the view shows now. True: *notice is a new notice. */
static bool take_view(struct group_source *self, struct notice *notice)
{
	const struct view *view = &self->view;
	const struct agreement_view *a = &view->agreement;
	/* If no attempt is named, wait for the claim of the next one, not of one that was closed
	 * when we began. */
	if (!self->seen && a->closed && !self->options.attempt && !self->options.past)
		self->closed_before = view->attempt.number;
	self->seen = true;
	bool fresh = is_news(self);
	self->gone |= awaits_exit(self) && claim_is_gone(view);
	if (self->options.attempt && view->attempt.number && self->over == STATUS_OK)
		self->over = judge_over(view, &self->over_error);
	if (fresh) {
		describe(view, notice);
		self->given_attempt = view->attempt.number;
		self->given_round = round_shown(self);
	}
	return fresh;
}

/* ---- The jobs of the worker ---- */

/*
 * Bring the view up to date. STATUS_NO: there is no store or no attempt yet. Where no attempt is
 * named, go from each to the next one only when it has nothing left to tell, and then look again at
 * once (asked is false).
 */
static enum status look(struct group_source *self, struct error *err)
{
	uint64_t seen = self->view.attempt.number;
	struct attempt attempt, next;
	enum status status = STATUS_OK;
	if (!self->store)
		status = store_open(&self->store, self->url, 0, clock_after(30000), err);
	if (status == STATUS_OK)
		status = attempt_find(self->store, self->run, self->options.attempt, &attempt, err);
	/* Afterwards: what is said of an attempt is said before the next one opens. */
	if (status == STATUS_OK && seen)
		status = view_refresh(&self->view, self->store, err);
	self->asked = status != STATUS_OK || !is_news(self);
	if (status != STATUS_OK || !self->asked || awaits_exit(self) || attempt.number == seen)
		return status;
	if (seen && attempt.number > seen + 1) {
		status = attempt_find(self->store, self->run, seen + 1, &next, err);
		if (status != STATUS_OK && status != STATUS_NO)
			return status;
		if (status == STATUS_OK)
			attempt = next;
	}
	self->asked = false;
	view_release(&self->view);
	view_init(&self->view, &attempt);
	return view_refresh(&self->view, self->store, err);
}

/* Wait for a change, but not before the first look, and look. */
static void ask(void *context)
{
	struct group_source *self = context;
	bool answered = self->status == STATUS_OK || self->status == STATUS_NO;
	int64_t until = awaits_exit(self) ? clock_after(GONE_LOOK) : CLOCK_NEVER;
	if (self->asked && (!answered || !self->store)) {
		if (!worker_pause(self->worker, clock_after(AGAIN / 2 + clock_jitter(AGAIN))))
			return;
	} else if (self->asked) {
		self->status = store_wait(self->store, self->prefix, &self->since, until,
			worker_wake(self->worker), &self->error);
		if (self->status != STATUS_OK && self->status != STATUS_TIMEOUT)
			return;
	}
	self->asked = true;
	self->status = look(self, &self->error);
}

/* ---- The source ---- */

static void group_close(struct source *source)
{
	struct group_source *self = (struct group_source *)source;
	/* A job that hangs in the filesystem ends with the process; what it uses stays. */
	if (!worker_stop(self->worker, PATIENCE))
		return;
	view_release(&self->view);
	store_close(self->store);
	free(self->url);
	free(self);
}

static int group_descriptor(const struct source *source)
{
	return worker_descriptor(((const struct group_source *)source)->worker);
}

static enum source_answer group_check(
	struct source *source, int64_t now, struct notice *notice, struct error *err)
{
	struct group_source *self = (struct group_source *)source;
	enum source_answer answer = SOURCE_NONE;
	(void)now;
	if (!worker_take(self->worker))
		return SOURCE_PENDING;
	if (self->status != STATUS_OK && self->status != STATUS_NO) {
		*err = self->error;
		answer = SOURCE_CANNOT_ASK;
	} else if (take_view(self, notice)) {
		answer = SOURCE_NOTICE;
	}
	worker_run(self->worker, ask, self);
	return answer;
}

static const struct source_kind source_group = {.name = "group",
	.example = "group",
	.close = group_close,
	.descriptor = group_descriptor,
	.check = group_check};

enum status source_group_open(
	struct source **source, const struct group_source_options *options, struct error *err)
{
	struct group_source *self = xcalloc(1, sizeof(*self));
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
	enum status status = worker_start(&self->worker, "group", err);
	if (status != STATUS_OK) {
		free(self->source.name);
		group_close(&self->source);
		return status;
	}
	worker_run(self->worker, ask, self);
	*source = &self->source;
	return STATUS_OK;
}

enum status source_group_over(const struct source *source, struct error *err)
{
	const struct group_source *self = (const struct group_source *)source;
	if (self->over != STATUS_OK && err)
		*err = self->over_error;
	return self->over;
}

bool source_group_gone(const struct source *source)
{
	return ((const struct group_source *)source)->gone;
}
