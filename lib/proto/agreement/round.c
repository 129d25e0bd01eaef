/* SPDX-License-Identifier: MIT */
/* A round, seen by one task whose command runs: hold, report, decide, follow. */
#include "proto/agreement/round.h"

#include "base/error.h"
#include "proto/agreement/alone.h"
#include "proto/agreement/facts.h"
#include "proto/agreement/leave.h"
#include "proto/agreement/plan.h"
#include "proto/agreement/reading.h"
#include "proto/agreement/tally.h"

#define CALLS_YET	    100 /* ms between looks at whether a task has called preempt_step */
#define STAGGER		    10 /* ms: a task publishes the decision this much later per task before it */
#define MEASURE_AGAIN	    1000 /* ms after which the final time is computed again */
#define STAGGER_MOST	    500	 /* ms that a task waits for all tasks before it, at most */
#define SAVES_READ	    2000 /* ms: to give up a save, the last reading must not be older */
#define STORE_PATIENCE	    5000 /* ms without an answer until the store counts as lost, at least */
#define STORE_PATIENCE_MOST 20000 /* the same, at most: half of the time that is left */

static void order(struct agreement_plan *plan, enum agreement_order what, uint64_t step)
{
	plan->hold = (struct agreement_hold){.order = what, .step = step};
}

/* Hold at the next boundary, and learn which one that is. False until the board was read. */
static bool hold_and_read(const struct agreement *a, struct agreement_plan *plan)
{
	order(plan, ORDER_WAIT, 0);
	if (a->told.order == ORDER_WAIT && a->read)
		return true;
	if (a->told.order == ORDER_WAIT)
		plan->read_board = a->told_at + HOLD_SETTLES;
	return false;
}

static void open_round(
	const struct agreement *a, struct agreement_plan *plan, bool final, uint64_t round_try)
{
	plan->final = final;
	plan->round_try = round_try;
	want(a, plan, WRITE_ROUND, a->view->round + 1);
	look_soon(a, plan);
}

/* Open one more round, because the newest one leads to no common step. */
static void try_again(const struct agreement *a, struct agreement_plan *plan)
{
	bool leave = a->view->decided && a->view->decision.kind != KIND_SAVE;
	open_round(a, plan, leave || a->view->round_final, a->view->round_try + 1);
}

/* ---- Announcing ---- */

/* Plan to announce this task's notice, also while it leaves. True: its claim is not written yet. */
bool agreement_announce(const struct agreement *a, struct agreement_plan *plan)
{
	const struct agreement_view *view = a->store;
	bool completed =
		a->concluded && a->reason == REASON_COMPLETED; /* it no longer needs its machine */
	if (!a->noticed || completed || view->closed || view->broken ||
		view->peers[a->config.task].dead)
		return false;
	if (!view->claimed) {
		if (a->done[WRITE_LEFT]) /* too late: it would be refused */
			return false;
		want(a, plan, WRITE_CLAIM, 1);
		look_soon(a, plan);
		return true;
	}
	if (a->done[WRITE_DEADLINE] ||
		!agreement_moves_deadline(view, a->own_deadline, a->done[WRITE_CLAIM]))
		return false;
	want(a, plan, WRITE_DEADLINE, 1);
	return true;
}

/* ---- Reporting and deciding ---- */

/*
 * How long this task waits before it publishes the decision. The task that reported last knows
 * first that all have reported, and publishes at once. The others wait in the order of their
 * numbers, in case that task is dead.
 */
static int64_t publish_delay(const struct agreement *a)
{
	int64_t before = 1;
	if (a->view->last_reporter == a->config.task)
		return 0;
	for (uint64_t i = 0; i < a->config.task; i++)
		before += agreement_counts(a->view, i) && a->view->peers[i].reported;
	return clock_earlier(before * clock_later(STAGGER, a->view->took), STAGGER_MOST);
}

/* Whether this task is to publish the decision now. */
static bool may_decide(struct agreement *a, const struct grace_measure *measure, int64_t now,
	struct agreement_plan *plan)
{
	uint64_t unreported = agreement_tally(a->view).awaited;
	agreement_await(a, plan, unreported);
	if (!unreported)
		return has_come(plan, a->reports_at + publish_delay(a), now);
	int64_t patience = grace_report_patience(
		a->round_seen, deadline_of(a), a->config.report_timeout, measure);
	if (patience == a->config.report_timeout)
		patience += a->config.report_jitter;
	patience += clock_earlier(agreement_turn_delay(a), patience / 4);
	if (a->solo) /* the tasks of this agent report at once, or have ended */
		return false;
	if (a->view->unseen && a->silence >= patience)
		read_now(a, plan);
	if (a->silence < patience) {
		plan->count = clock_earlier(plan->count, a->counted_at + patience - a->silence);
		plan->look = clock_earlier(plan->look, plan->count);
	}
	return a->silence >= patience && !a->view->unseen;
}

static void report_and_decide(struct agreement *a, int64_t now, struct agreement_plan *plan)
{
	const struct agreement_view *view = a->view;
	look_soon(a, plan);
	if (!preempted(a) && now - a->answered_at >= a->config.report_timeout) {
		/* No task has to leave: do not hold the training while the store is silent. */
		order(plan, ORDER_RUN, 0);
		return;
	}
	if (!hold_and_read(a, plan))
		return;
	if (!self(a)->reported) {
		plan->report_none = !a->called;
		plan->step = a->read_step;
		plan->next = a->read_next;
		want(a, plan, WRITE_REPORT, view->round);
		return;
	}
	struct grace_measure measure = agreement_measure(a);
	if (!may_decide(a, &measure, now, plan))
		return;
	agreement_decide(view, &measure, deadline_of(a), now, &plan->decision);
	want(a, plan, WRITE_DECISION, view->round);
}

/* ---- Following ---- */

/* Like hold_and_read, but also false until preempt_step was called: until then no step is known. */
static bool hold_and_know(const struct agreement *a, struct agreement_plan *plan)
{
	if (!hold_and_read(a, plan))
		return false;
	if (!a->called)
		plan->read_board = a->read_at + CALLS_YET;
	return a->called;
}

/*
 * Whether this task's first boundary at or after the decided step lies beyond it, as far as its
 * board shows: then another round has to find a later step. A task that trains has told its next
 * boundary; one that stands under `wait` may already be on its way to that.
 */
static bool comes_beyond(const struct agreement *a)
{
	uint64_t step = a->view->decision.step;
	bool trains = a->told.order == ORDER_SAVE || a->told.order == ORDER_EXIT;
	return a->read_next > step && !(trains && a->read_step >= step);
}

/*
 * The boundary at which a task saves for itself (KIND_EACH): the one where it stands, unless it has
 * saved there before and may already be on its way to the next one.
 */
static uint64_t own_step(const struct agreement *a)
{
	bool saved_here = a->has_saved && a->saved_step >= a->read_step;
	return saved_here && !a->parked_at ? a->read_next : a->read_step;
}

static bool is_told(const struct agreement *a, enum agreement_order what)
{
	return a->told.order == what && a->saving == a->round;
}

static void acknowledge(const struct agreement *a, struct agreement_plan *plan)
{
	if (a->config.acknowledges && is_told(a, plan->hold.order))
		want(a, plan, WRITE_ACK, a->round);
}

/* Whether to open another round, because this task must save and comes beyond the step. */
static bool tries_again(const struct agreement *a)
{
	bool last = a->view->decision.kind == KIND_SAVE && a->view->round_try >= AGREEMENT_TRIES;
	return comes_beyond(a) && !last && a->config.task < agreement_savers(a);
}

/*
 * The step that the board is told: the decided one. A task that comes beyond it and opens no other
 * round saves by itself; its client would wait for that round.
 */
static uint64_t floor_of(const struct agreement *a)
{
	bool told = a->saving == a->round && a->saving_step > a->view->decision.step;
	uint64_t step = told ? a->saving_step : a->view->decision.step;
	return comes_beyond(a) && !tries_again(a) && a->read_next > step ? a->read_next : step;
}

/* Whether the save of this round is done, or takes too long. */
static bool is_through(const struct agreement *a, int64_t now)
{
	bool done = a->saving == a->round && a->has_saved && a->saved_step >= a->saving_step;
	return done || now >= a->decided_at + a->config.save_timeout;
}

static void follow_save(struct agreement *a, int64_t now, struct agreement_plan *plan)
{
	/* After a claim look at the saves soon: how long they take decides whether there is time
	 * for another. */
	struct grace_measure measure = agreement_measure(a);
	if (a->view->claimed && agreement_prospect(a, now, &measure) == PROSPECT_OPEN)
		look_soon(a, plan);
	if (is_through(a, now)) {
		order(plan, ORDER_RUN, 0);
		return;
	}
	wake_at(plan, a->decided_at + a->config.save_timeout);
	/* This task's own notice may have changed the hold to `wait` since it was told to save;
	 * `saving` still shows that it was. */
	if (a->saving != a->round && !hold_and_know(a, plan))
		return;
	if (tries_again(a)) {
		try_again(a, plan);
		if (a->saving != a->round)
			return;
	}
	order(plan, ORDER_SAVE, floor_of(a));
	acknowledge(a, plan);
}

static void follow_exit(struct agreement *a, struct agreement_plan *plan)
{
	bool each = a->view->decision.kind == KIND_EACH;
	look_soon(a, plan);
	if (!is_told(a, ORDER_EXIT)) {
		if (!hold_and_know(a, plan))
			return;
		order(plan, ORDER_EXIT, each ? own_step(a) : floor_of(a));
	}
	if (!each && tries_again(a)) {
		plan->hold = a->told;
		try_again(a, plan);
	} else {
		acknowledge(a, plan);
	}
}

/* Whether every task has completed or has reported that it has not begun to train. Any other task
 * (silent, dead or departed) may have trained, and its work is lost. */
static bool no_task_has_begun(const struct agreement_view *view)
{
	for (uint64_t i = 0; i < view->tasks; i++) {
		const struct agreement_peer *peer = &view->peers[i];
		if (peer->left != REASON_COMPLETED && !(peer->reported && peer->none))
			return false;
	}
	return true;
}

/* No task has started to train: there is nothing to save. */
static void follow_none(struct agreement *a, struct agreement_plan *plan)
{
	if (!a->solo && a->saw_at < a->decided_at) { /* see whether others have begun to train */
		(void)hold_and_read(a, plan);
		read_now(a, plan);
		return;
	}
	bool young = a->decided_at - a->started <= a->config.startup;
	bool certain = no_task_has_begun(a->view);
	if (!a->view->claimed)
		order(plan, ORDER_RUN, 0);
	else if (!hold_and_read(a, plan))
		return;
	else if (!a->called)
		agreement_reach(
			a, REASON_PREEMPTED, young && certain ? CODE_SAVED : CODE_PREEMPTED);
	else
		try_again(a, plan);
}

static void follow(struct agreement *a, int64_t now, struct agreement_plan *plan)
{
	const struct agreement_view *view = a->view;
	if (view->unreadable) {
		(void)hold_and_read(a, plan);
		try_again(a, plan);
		return;
	}
	switch (view->decision.kind) {
	case KIND_SAVE: follow_save(a, now, plan); break;
	case KIND_EXIT:
	case KIND_EACH: follow_exit(a, plan); break;
	case KIND_NONE: follow_none(a, plan); break;
	}
}

/* ---- Alone ---- */

/* The last instant at which there is time to wait for an agreement. */
static int64_t last_call(const struct agreement *a)
{
	struct grace_measure measure = agreement_measure(a);
	bool holds = a->told.order == ORDER_WAIT;
	if (deadline_of(a) != CLOCK_NEVER)
		return grace_last_call(
			holds ? clock_later(a->told_at, a->deadline_at) : a->deadline_at,
			deadline_of(a), &measure);
	/* If this process was stopped, give the store time to answer first. */
	return holds ? clock_later(a->told_at, a->stopped_until) + a->config.save_timeout
		     : CLOCK_NEVER;
}

/*
 * When the store counts as lost to a training process that waits since this instant: for too long
 * it has not answered, or has not accepted what this task has to write. A store that is slow is not
 * lost: the more time is left, the longer the patience.
 */
int64_t agreement_store_lost(const struct agreement *a, int64_t waits)
{
	int64_t since = clock_later(clock_later(answered_until(a), waits), a->stopped_until);
	int64_t half = last_call(a) == CLOCK_NEVER ? 0 : (last_call(a) - since) / 2;
	int64_t patience = clock_later(clock_later(STORE_PATIENCE, a->config.report_timeout / 2),
		deadline_of(a) == CLOCK_NEVER ? 0 : clock_earlier(half, STORE_PATIENCE_MOST));
	/* A task that polls rarely also reads late: do not count that as silence of the store. */
	int64_t pause = agreement_store_patience(a) - POLL_OFTEN;
	return since + pause + clock_earlier(patience, a->config.save_timeout);
}

/*
 * If no agreed save was ordered, and there is no more time to wait for one: hold the training
 * process, then agree with the tasks of the same agent only, or end.
 */
static void go_alone(struct agreement *a, int64_t now, struct agreement_plan *plan)
{
	if (a->solo || !a->config.alone || !preempted(a) || a->told.order == ORDER_EXIT)
		return; /* an agreed save needs no store */
	if (awaits_first_call(a))
		return;
	int64_t lost =
		a->told.order == ORDER_WAIT ? agreement_store_lost(a, a->told_at) : CLOCK_NEVER;
	if (!has_come(plan, clock_earlier(last_call(a), lost), now) || !hold_and_read(a, plan))
		return;
	if (a->config.store_loss_ends)
		agreement_reach(a, REASON_PREEMPTED, CODE_PREEMPTED);
	else
		agreement_begin_alone(a, now);
}

/* ---- What the board's hold has to say ---- */

/* Whether the final round is due: the grace period allows no more training, or no newer checkpoint
 * can become complete. */
static bool final_time_has_come(const struct agreement *a, int64_t now, struct agreement_plan *plan)
{
	const struct agreement_view *view = a->view;
	if (!view->claimed || !view->decided || view->decision.kind != KIND_SAVE)
		return false;
	if (view->deadline_doubted || agreement_no_newer(a))
		return true;
	struct grace_measure measure = agreement_measure(a);
	int64_t final = grace_final_time(deadline_of(a), &measure);
	wake_at(plan,
		now < final ? clock_earlier(final, now + MEASURE_AGAIN) : now + MEASURE_AGAIN);
	return now >= final;
}

/*
 * The final round is due. If the first save took so long that another cannot be done in time, no
 * other is begun: the task leaves with the first one, once that is complete. A first save that ends
 * after the final round was opened counts, too.
 */
static void come_to_an_end(struct agreement *a, int64_t now, struct agreement_plan *plan)
{
	bool all_saved = a->view->all_saved == a->view->round;
	if (!a->solo && !all_saved && now - a->saw_at > SAVES_READ &&
		now - a->answered_at <= agreement_pace(a) + POLL_OFTEN) {
		plan->hold = a->told; /* keep the hold, even if go_alone has just planned to wait */
		read_now(a, plan);
		return;
	}
	struct grace_measure measure = agreement_measure(a);
	enum agreement_prospect prospect = agreement_prospect(a, now, &measure);
	if (grace_fits(now, deadline_of(a), &measure) && !agreement_no_newer(a))
		prospect = PROSPECT_NONE;
	switch (prospect) {
	case PROSPECT_COMPLETE:
		a->content = true;
		agreement_reach(a, REASON_SAVED, CODE_SAVED);
		break;
	case PROSPECT_OPEN:
		follow(a, now, plan);
		look_soon(a, plan);
		break;
	case PROSPECT_NONE:
		(void)hold_and_read(a, plan);
		open_round(a, plan, true, 1);
		break;
	}
}

/* Whether the claim came without a round: it is damaged, or another version wrote it. */
static bool lacks_round(const struct agreement_view *view)
{
	return view->claimed &&
	       (!view->round || (view->decided && view->decision.then == THEN_CONTINUE));
}

void agreement_hold(struct agreement *a, int64_t now, struct agreement_plan *plan)
{
	go_alone(a, now, plan);
	if (a->concluded)
		return;
	const struct agreement_view *view = a->view;
	if (a->noticed && !view->claimed && !view->broken) {
		(void)hold_and_read(a, plan); /* hold: this task claims, whatever the others do */
	} else if (lacks_round(view)) {
		(void)hold_and_read(a, plan);
		open_round(a, plan, false, 1);
	} else if (final_time_has_come(a, now, plan)) {
		come_to_an_end(a, now, plan);
	} else if (view->decided || view->unreadable) {
		follow(a, now, plan);
	} else if (view->round) {
		report_and_decide(a, now, plan);
	} else {
		order(plan, ORDER_RUN, 0);
	}
	if (plan->hold.order == ORDER_WAIT)
		look_soon(a, plan); /* while the training is held, ask the store often */
}
