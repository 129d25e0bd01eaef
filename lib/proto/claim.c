/* SPDX-License-Identifier: MIT */
#include "proto/claim.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "proto/writes.h"

/* Whether the claim in the view is the one that we are making. */
static bool is_ours(const struct view *view, const struct claim *claim)
{
	char host[65] = "";
	gethostname(host, sizeof(host) - 1);
	if (!view->agreement.claimed || view->claim.outside != claim->outside ||
		view->agreement.claim_then != claim->then)
		return false;
	if (!claim->outside)
		return view->claim.task == claim->task;
	return !strcmp(view->claim.host, host) && view->claim.pid == claim->pid &&
	       view->claim.utc == claim->notice.received_utc &&
	       !strcmp(view->claim.source, claim->notice.source);
}

static enum agreement_outcome put(struct store *store, const struct view *view,
	const struct claim *claim, enum agreement_write what, struct error *err)
{
	struct write write;
	struct agreement_plan plan = {0};
	plan.write[what] = 1;
	if (what == WRITE_CLAIM && claim->then == THEN_CONTINUE)
		write_build_demand(&write, view);
	else
		write_build(&write, view, what, claim->task, &plan,
			&(struct write_details){.notice = &claim->notice,
				.then = claim->then,
				.outside = claim->outside,
				.pid = claim->pid,
				.deadline = claim->notice.deadline});
	enum agreement_outcome outcome = write_carry_out(&write, store, err);
	write_release(&write);
	return outcome;
}

/* STATUS_OK: the claim can be made now. STATUS_NO: it cannot; err says why. */
static enum status refuse(const struct view *view, const struct claim *claim, struct error *err)
{
	const char *run = view->attempt.run;
	unsigned long long number = view->attempt.number;
	if (view->agreement.closed)
		return error_set(err, STATUS_NO, "run %s: attempt %llu is over (%s)", run, number,
			view->closed);
	if (view->agreement.claimed && view->claim.outside)
		return error_set(err, STATUS_NO,
			"run %s: attempt %llu is claimed from outside, on %s", run, number,
			view->claim.host);
	if (view->agreement.claimed)
		return error_set(err, STATUS_NO,
			"run %s: attempt %llu is claimed by task %llu on %s", run, number,
			(unsigned long long)view->claim.task, view->claim.host);
	if (!claim->outside && view->agreement.peers[claim->task].left != REASON_NONE)
		return error_set(err, STATUS_NO,
			"run %s: task %llu has left attempt %llu; its notice is not announced", run,
			(unsigned long long)claim->task, number);
	if (*view->seal)
		return error_set(err, STATUS_NO, "run %s: attempt %llu is ending: %s", run, number,
			view_why(view));
	if (claim->then == THEN_CONTINUE && view->agreement.round && !view->agreement.decided)
		return error_set(err, STATUS_NO, "run %s: a checkpoint is under way already", run);
	if (claim->then == THEN_CONTINUE && view_joined(view) < view->attempt.tasks)
		return error_set(err, STATUS_NO, "run %s: not all tasks have joined yet", run);
	return STATUS_OK;
}

static bool moves_deadline(const struct view *view, const struct claim *claim)
{
	/* The store refuses a task that was declared dead. */
	if (!claim->outside && view->agreement.peers[claim->task].dead)
		return false;
	return agreement_moves_deadline(
		&view->agreement, claim->notice.deadline, is_ours(view, claim));
}

/* Put the claim that we have just made into the view, without reading it back. */
static void show_ours(struct view *view, const struct claim *claim)
{
	if (claim->then != THEN_CONTINUE) {
		view->agreement.claimed = true;
		view->agreement.claim_then = claim->then;
		view->claim.outside = claim->outside;
		view->claim.task = claim->task;
		view->claim.pid = claim->pid;
		view->claim.utc = claim->notice.received_utc;
		gethostname(view->claim.host, sizeof(view->claim.host) - 1);
		memcpy(view->claim.source, claim->notice.source, sizeof(view->claim.source));
		memcpy(view->claim.reason, claim->notice.reason, sizeof(view->claim.reason));
	}
	view->agreement.round++;
}

/* Our claim may have taken long: if the deadline in it is now too late, announce it again. */
static void correct_deadline(struct store *store, struct view *view, const struct claim *claim)
{
	struct error unused;
	if (view_refresh(view, store, &unused) == STATUS_OK && moves_deadline(view, claim))
		(void)put(store, view, claim, WRITE_DEADLINE, &unused);
}

/* One try on the view as it is. STATUS_TEMPORARY: read again, then try again. */
static enum status try_once(struct store *store, struct view *view, const struct claim *claim,
	uint64_t *demanded, struct error *err)
{
	if (moves_deadline(view, claim)) {
		if (put(store, view, claim, WRITE_DEADLINE, err) != OUTCOME_DONE)
			return STATUS_TEMPORARY;
		view->agreement.deadline = view->agreement.deadline_latest =
			view->agreement.deadline_told = claim->notice.deadline;
	}
	if (is_ours(view, claim) || (*demanded && view->agreement.round >= *demanded))
		return STATUS_OK;
	enum status status = refuse(view, claim, err);
	if (status != STATUS_OK)
		return status;
	int64_t began = clock_now();
	switch (put(store, view, claim, WRITE_CLAIM, err)) {
	case OUTCOME_DONE:
		show_ours(view, claim);
		if (clock_now() - began >= TOLD_LATE)
			correct_deadline(store, view, claim);
		return STATUS_OK;
	case OUTCOME_UNKNOWN:
		/* If the next reading shows this round, it counts as ours. */
		if (claim->then == THEN_CONTINUE)
			*demanded = view->agreement.round + 1;
		break;
	case OUTCOME_REFUSED: break;
	}
	return STATUS_TEMPORARY;
}

enum status claim_make(struct store *store, struct view *view, const struct claim *claim,
	int64_t deadline, struct error *err)
{
	uint64_t demanded = 0; /* the round that we may have opened */
	struct claim ours = *claim;
	ours.notice.deadline = notice_deadline(&claim->notice);
	for (;;) {
		store_set_deadline(store, deadline);
		error_set(
			err, STATUS_TIMEOUT, "run %s: could not claim in time", view->attempt.run);
		enum status status = try_once(store, view, &ours, &demanded, err);
		if (status != STATUS_TEMPORARY)
			return status;
		if (clock_now() >= deadline)
			return err->status;
		status = view_refresh(view, store, err);
		if (status == STATUS_DAMAGED || status == STATUS_PERMISSION)
			return status;
		if (status != STATUS_OK)
			clock_sleep_until(clock_after(clock_jitter(100)));
	}
}

bool claim_is_gone(const struct view *view)
{
	uint64_t task = view->claim.task;
	return view->claim.outside || task >= view->attempt.tasks || !view_has_joined(view, task) ||
	       !agreement_counts(&view->agreement, task) ||
	       process_check(&view->members[task].agent) == PROCESS_GONE;
}
