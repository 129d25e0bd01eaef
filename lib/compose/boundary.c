/* SPDX-License-Identifier: MIT */
#include "compose/boundary.h"

#include "base/clock.h"
#include "proto/writes.h"
#include "run/attempt.h"
#include "run/options.h"

/* STATUS_BROKEN: a task has failed or died, so no agreement is possible. */
static enum status check_broken(const struct view *view, struct error *err)
{
	if (!view->agreement.broken || view->agreement.claimed)
		return STATUS_OK;
	return error_set(err, STATUS_BROKEN, "run %s: attempt %llu is broken: %s",
		view->attempt.run, (unsigned long long)view->attempt.number, view_why(view));
}

/* Not STATUS_OK: this task was declared dead, so what it saves belongs to no checkpoint. */
static enum status check_dead(const struct view *view, uint64_t task, struct error *err)
{
	if (!view->agreement.peers[task].dead)
		return STATUS_OK;
	bool leave = agreement_stops(&view->agreement) || view->agreement.claimed;
	return error_set(err, leave ? STATUS_NO : STATUS_BROKEN,
		"run %s: task %llu was declared dead (%s); end the training process",
		view->attempt.run, (unsigned long long)task,
		keys_death_word(view->members[task].death));
}

/*
 * Report `at` and wait for the decision. The training process waits at `at` and can save there, so
 * for the agreement it stands at the boundary before, and `at` is next. The first boundary has
 * none before it: there the training process stands at `at`. STATUS_NO: this task was declared
 * dead, or the deadline has passed: then leave with *leave.
 */
static enum status report_and_wait(const struct boundary *boundary, int *leave, struct error *err)
{
	struct store *store = boundary->store;
	struct view *view = boundary->view;
	const struct agreement_config *config = boundary->config;
	uint64_t at = boundary->at, next = boundary->next;
	int64_t deadline = boundary->deadline;
	struct agreement a;
	struct agreement_hold wait = {.order = ORDER_WAIT};
	int64_t now = clock_now();
	agreement_init(&a, config, &view->agreement, now);
	agreement_saw(&a, now);
	agreement_told(&a, &wait, now - 1);
	uint64_t stride = next - at;
	if (at >= stride)
		agreement_read(&a, true, at - stride, at, now);
	else
		agreement_read(&a, true, at, next, now);
	while (!view->agreement.decided) {
		struct agreement_plan plan;
		bool wrote = false;
		enum status status = check_broken(view, err);
		if (status == STATUS_OK)
			status = check_dead(view, config->task, err);
		if (status != STATUS_OK)
			return status;
		group_ask_until(store, clock_earlier(deadline, view_leave_by(view)));
		now = clock_now();
		if (now >= deadline)
			return error_set(err, STATUS_TIMEOUT, "run %s: no agreement in time",
				view->attempt.run);
		/* After a claim make this round final: no call opens another one in time. */
		view->agreement.round_final |= view->agreement.claimed;
		agreement_next(&a, now, &plan);
		if (a.concluded) { /* it plans no report and no decision any more */
			*leave = a.code;
			return error_set(err, STATUS_NO,
				"run %s: the deadline has passed without an agreement; leave with %d",
				view->attempt.run, a.code);
		}
		/* WRITE_ROUND: another round follows a decision that cannot be read. */
		const enum agreement_write mine[] = {WRITE_ROUND, WRITE_REPORT, WRITE_DECISION};
		for (size_t i = 0; i < 3; i++) {
			struct write write;
			if (!plan.write[mine[i]])
				continue;
			agreement_writing(&a, mine[i]);
			write_build(&write, view, mine[i], config->task, &plan,
				&(struct write_details){0});
			enum agreement_outcome outcome = write_carry_out(&write, store, err);
			agreement_wrote(&a, mine[i], write.round, outcome, true, clock_now());
			write_release(&write);
			if (outcome == OUTCOME_UNKNOWN)
				return STATUS_TEMPORARY;
			wrote = true;
		}
		int64_t until = plan.look < plan.wake ? plan.look : plan.wake;
		status = wrote ? STATUS_OK
			       : view_wait(view, store, clock_earlier(until, deadline), -1, err);
		if (status == STATUS_OK || status == STATUS_TIMEOUT)
			status = view_refresh(view, store, err);
		if (status != STATUS_OK)
			return status;
		agreement_saw(&a, clock_now());
	}
	return STATUS_OK;
}

enum status boundary_ask(
	const struct boundary *boundary, struct boundary_answer *answer, struct error *err)
{
	struct view *view = boundary->view;
	uint64_t task = boundary->config->task;
	*answer = (struct boundary_answer){.kind = KIND_NONE};
	enum status status = view_refresh(view, boundary->store, err);
	if (status == STATUS_OK)
		status = check_broken(view, err);
	if (status == STATUS_OK)
		status = check_dead(view, task, err);
	if (status == STATUS_OK && view->agreement.round && !view->agreement.decided)
		status = report_and_wait(boundary, &answer->leave, err);
	if (status == STATUS_NO && view->agreement.peers[task].dead)
		answer->leave = agreement_stops(&view->agreement) ? CODE_DECIDED : CODE_PREEMPTED;
	if (status != STATUS_OK || view->agreement.round == 0)
		return status;
	const struct agreement_decision *decision = &view->agreement.decision;
	answer->kind = decision->kind;
	if (decision->kind == KIND_NONE) /* at the decision no task had trained: no common save */
		answer->save = view->agreement.claimed;
	else
		answer->save = decision->kind == KIND_EACH || boundary->at >= decision->step;
	answer->save &= !view->agreement.peers[task].saved;
	return STATUS_OK;
}

static bool is_common(const struct agreement_view *a)
{
	return a->decision.kind == KIND_SAVE || a->decision.kind == KIND_EXIT;
}

/*
 * Whether a newer round was opened since the save at `at` was asked for: it is not decided yet, or
 * asks for a save at a later step. The next boundary_ask follows it.
 */
static bool is_superseded(const struct agreement_view *a, uint64_t at)
{
	return a->round > 1 && (!a->decided || (is_common(a) && at < a->decision.step));
}

/* Write that the training process has saved at boundary->at. */
static enum status report_saved(const struct boundary *boundary, struct error *err)
{
	struct view *view = boundary->view;
	uint64_t task = boundary->config->task, at = boundary->at;
	const struct agreement_view *a = &view->agreement;
	struct write write;
	struct agreement_plan plan = {.saved_step = at};
	plan.write[WRITE_SAVED] = a->round;
	if (is_superseded(a, at)) {
		/* Of the older rounds, report only to the one from which a start may resume. */
		if (!a->standing_round || a->peers[task].stood)
			return STATUS_OK;
		plan.write[WRITE_SAVED] = a->standing_round;
	} else if (!a->decided) {
		return error_set(err, STATUS_NO, "run %s: no step is agreed on", view->attempt.run);
	} else if (a->peers[task].saved && a->peers[task].saved_step == at) {
		return STATUS_OK;
	} else if (is_common(a) && at < a->decision.step) {
		return error_set(err, STATUS_NO, "run %s: the agreed step is %llu, not %llu",
			view->attempt.run, (unsigned long long)a->decision.step,
			(unsigned long long)at);
	}
	write_build(&write, view, WRITE_SAVED, task, &plan, &(struct write_details){0});
	/* Wake the others now: this program ends before it sees whether this save was the last. */
	write_news(&write.transaction, &view->attempt, true);
	enum agreement_outcome outcome = write_carry_out(&write, boundary->store, err);
	write_release(&write);
	if (outcome == OUTCOME_REFUSED)
		return error_set(err, STATUS_NO, "run %s: task %llu was declared dead",
			view->attempt.run, (unsigned long long)task);
	return outcome == OUTCOME_DONE ? view_refresh(view, boundary->store, err)
				       : STATUS_TEMPORARY;
}

/*
 * Decide what follows the save. STATUS_OK: run on. STATUS_NO: leave with *leave; if that is 0, run
 * on, but the checkpoint is not complete. STATUS_TIMEOUT, unless the wait is over: a task may still
 * save.
 */
static enum status judge_saves(const struct view *view, bool over, int *leave, struct error *err)
{
	const struct agreement_view *a = &view->agreement;
	const char *run = view->attempt.run;
	bool complete = is_common(a), waiting = false;
	for (uint64_t i = 0; i < a->tasks; i++) {
		const struct agreement_peer *peer = &a->peers[i];
		bool right = peer->saved && peer->saved_step == a->decision.step;
		complete &= right || peer->left == REASON_COMPLETED;
		waiting |= peer->member && !peer->saved && agreement_counts(a, i);
	}
	if (waiting && !over)
		return error_set(
			err, STATUS_TIMEOUT, "run %s: not all tasks have saved in time", run);
	bool final = a->claimed && a->decision.kind != KIND_SAVE;
	if (final) {
		*leave = agreement_stops(a) ? CODE_DECIDED : complete ? CODE_SAVED : CODE_PREEMPTED;
		return error_set(err, STATUS_NO, "run %s: %s; leave with %d", run,
			complete ? "all tasks have saved" : "not all tasks have saved", *leave);
	}
	return complete ? STATUS_OK
			: error_set(err, STATUS_NO,
				  "run %s: not all tasks have saved: no complete checkpoint", run);
}

enum status boundary_saved(const struct boundary *boundary, struct error *err)
{
	enum status status = view_refresh(boundary->view, boundary->store, err);
	return status == STATUS_OK ? report_saved(boundary, err) : status;
}

enum status boundary_wait_for_saves(const struct boundary *boundary, int *leave, struct error *err)
{
	struct view *view = boundary->view;
	int64_t limit = clock_after(boundary->config->save_timeout);
	uint64_t round = view->agreement.round;
	enum status status;
	*leave = 0;
	for (;;) {
		if (view->agreement.round != round || is_superseded(&view->agreement, boundary->at))
			return STATUS_OK;
		status = judge_saves(view, false, leave, err);
		if (status != STATUS_TIMEOUT)
			return status;
		int64_t end = view_leave_by(view), now = clock_now();
		if (end == CLOCK_NEVER)
			end = limit;
		if (now >= boundary->deadline)
			return status;
		if (now >= end)
			return judge_saves(view, true, leave, err);
		end = clock_earlier(end, boundary->deadline);
		group_ask_until(boundary->store, end);
		status = view_wait(view, boundary->store, end, -1, err);
		if (status == STATUS_OK || status == STATUS_TIMEOUT)
			status = view_refresh(view, boundary->store, err);
		if (status != STATUS_OK)
			return status;
	}
}
