/* SPDX-License-Identifier: MIT */
/* Take in what happened; ask the rules in order what is to be done (agreement_next). */
#include "proto/agreement/agreement.h"

#include "base/clock.h"
#include "proto/agreement/alone.h"
#include "proto/agreement/facts.h"
#include "proto/agreement/leave.h"
#include "proto/agreement/plan.h"
#include "proto/agreement/reading.h"
#include "proto/agreement/round.h"

#define STOPPED	   1000 /* ms: agreement_next this much after `due`: this process was stopped */
#define NEIGHBOURS 50	/* ms between looks at the agent's other tasks, without the store */

void agreement_init(struct agreement *a, const struct agreement_config *config,
	const struct agreement_view *view, int64_t started)
{
	*a = (struct agreement){
		.config = *config,
		.store = view,
		.view = view,
		.started = started,
		.own_deadline = CLOCK_NEVER,
		.answered_at = started,
		.told_at = started,
		.due = CLOCK_NEVER,
		.deadline = CLOCK_NEVER,
	};
}

/* ---- The store ---- */

void agreement_took_in(struct agreement *a, int64_t now)
{
	if (!a->solo)
		agreement_take_in(a, now);
	a->answered_at = now;
	a->wrote = true;
}

void agreement_looked(struct agreement *a, bool counted, int64_t now)
{
	agreement_took_in(a, now);
	a->wrote = false;
	if (!a->solo)
		agreement_count_silence(a, now, counted);
	a->look_first = false;
}

void agreement_saw(struct agreement *a, int64_t now)
{
	agreement_looked(a, true, now);
	a->saw_at = now;
	a->read_first = false;
}

void agreement_writing(struct agreement *a, enum agreement_write what)
{
	a->pending[what] = true;
	if (!a->unanswered_at)
		a->unanswered_at = a->now;
	if (what == WRITE_DEADLINE)
		a->deadline_written = a->own_deadline;
}

/* Whether the result of the write must be read because the news do not show it. */
static bool needs_reading(enum agreement_write what, enum agreement_outcome outcome)
{
	bool record = what == WRITE_REPORT || what == WRITE_ACK || what == WRITE_SAVED ||
		      what == WRITE_LEFT;
	return (outcome == OUTCOME_UNKNOWN && record) ||
	       (outcome == OUTCOME_REFUSED && (record || what == WRITE_DECISION));
}

void agreement_wrote(struct agreement *a, enum agreement_write what, uint64_t round,
	enum agreement_outcome outcome, bool news, int64_t now)
{
	/* A still earlier deadline may have come while the last one was being written. */
	bool overtaken = what == WRITE_DEADLINE && a->deadline_written != a->own_deadline;
	a->pending[what] = false;
	if (outcome == OUTCOME_DONE && !overtaken)
		a->done[what] = round;
	if (outcome == OUTCOME_DONE && what == WRITE_SAVED && round == a->before)
		a->before = 0;
	/* After an accepted write, look only if there is news that the view does not show. */
	if (outcome != OUTCOME_DONE || news)
		a->look_first = true;
	if (needs_reading(what, outcome))
		a->read_first = true;
	if (outcome == OUTCOME_UNKNOWN)
		return;
	a->answered_at = now;
	a->unanswered_at = 0;
	for (enum agreement_write other = 0; other < WRITE_KINDS; other++)
		if (a->pending[other])
			a->unanswered_at = now;
}

/* ---- The board and the command ---- */

void agreement_told(struct agreement *a, const struct agreement_hold *hold, int64_t now)
{
	bool waits_anew = hold->order == ORDER_WAIT && a->told.order != ORDER_WAIT;
	a->told = *hold;
	a->told_at = now;
	if (hold->order == ORDER_RUN || waits_anew)
		a->read = false; /* from now on the task may be at any step */
	if (hold->order == ORDER_RUN) {
		if (!a->has_saved || a->saved_step < a->saving_step)
			a->saving = 0; /* the save was abandoned; a later save is another one */
	}
	if (hold->order != ORDER_SAVE && hold->order != ORDER_EXIT)
		return;
	bool open = a->saving && a->saving != a->round && !agreement_saved_reported(a);
	a->before = open ? a->saving : 0;
	a->before_step = a->saving_step;
	a->saving = a->round;
	a->saving_step = hold->step;
}

void agreement_read(struct agreement *a, bool started, uint64_t step, uint64_t next, int64_t now)
{
	a->called |= started;
	a->read_step = step;
	a->read_next = next;
	a->read_at = now;
	/* Once `wait` has stood for a moment, the training process cannot pass read_next. */
	if (a->told.order == ORDER_WAIT && now >= a->told_at + HOLD_SETTLES)
		a->read = true;
}

void agreement_board_lost(struct agreement *a)
{
	a->lost = true;
}

void agreement_cut_off(struct agreement *a)
{
	a->cut_off = true;
}

void agreement_saved(struct agreement *a, uint64_t step)
{
	if (!a->has_saved || step > a->saved_step)
		a->saved_step = step;
	a->has_saved = true;
}

void agreement_restarted(struct agreement *a)
{
	if (agreement_final_save_done(a))
		return;
	a->called = a->read = a->has_saved = false;
	a->saved_step = a->before = 0;
}

void agreement_measured(struct agreement *a, const struct grace_measure *measure)
{
	int64_t longest = clock_later(a->measure.longest_save, measure->longest_save);
	a->measure = *measure;
	a->measure.longest_save = longest;
	a->measure.skew = 0;
}

void agreement_ended(struct agreement *a, int code, int64_t now)
{
	a->ended = true;
	a->ended_at = now;
	a->end_code = code;
}

void agreement_noticed(struct agreement *a, int64_t deadline)
{
	a->noticed = true;
	if (deadline >= a->own_deadline)
		return;
	a->own_deadline = deadline;
	a->done[WRITE_DEADLINE] = 0;
}

/* ---- What is to be done ---- */

static void note_deadline(struct agreement *a, int64_t now)
{
	if (deadline_of(a) < a->deadline - TOLD_LATE)
		a->deadline_at = now;
	a->deadline = deadline_of(a);
}

/*
 * If other tasks have left while a report or a save is awaited, plan to read all records: the
 * awaited task may have left. Saves are awaited even in a broken attempt. Tasks that count often
 * read at once; the others read after their count pace, if a record is then still awaited.
 */
static void read_departed(struct agreement *a, struct agreement_plan *plan)
{
	const struct agreement_view *view = a->view;
	bool settled = view->decided || view->closed || view->broken;
	bool over = !view->round || (settled && !agreement_others_save(view, a->config.task));
	if (!view->departed || over || a->solo) {
		a->departed_at = 0;
		return;
	}
	if (!a->departed_at)
		a->departed_at = a->answered_at;
	int64_t due = a->departed_at + agreement_count_pace(a);
	plan->read = clock_earlier(plan->read, due);
	/* Stand in for the task that saved last, which may not know that it was the last. */
	if (has_come(plan, due, a->now))
		a->stands_in = true;
}

static bool awaits(const struct agreement_plan *plan)
{
	return plan->look != CLOCK_NEVER || plan->read != CLOCK_NEVER;
}

/* The tasks that act for all count with each look, the others seldom and only while they wait. */
static void count_along(const struct agreement *a, struct agreement_plan *plan)
{
	int64_t pace = agreement_count_pace(a);
	if (pace == 0)
		plan->count = 0;
	else if (awaits(plan))
		plan->count =
			clock_earlier(plan->count, clock_later(a->counted_at, a->awaits_at) + pace);
}

static void derive(struct agreement *a, int64_t now, struct agreement_plan *plan)
{
	*plan = (struct agreement_plan){.hold = a->told,
		.read_board = CLOCK_NEVER,
		.look = CLOCK_NEVER,
		.count = CLOCK_NEVER,
		.read = CLOCK_NEVER,
		.wake = CLOCK_NEVER};
	note_deadline(a, now);
	(void)agreement_announce(a, plan);
	agreement_tell_all_saved(a, plan);
	if (!a->concluded)
		agreement_conclude(a, now, plan);
	if (!a->concluded) {
		(void)agreement_report_saved(a, plan);
		if (a->ended)
			look_soon(a, plan);
		else if (a->lost)
			plan->end_command = true;
		else
			agreement_hold(a, now, plan);
	}
	if (a->concluded)
		agreement_leave(a, now, plan);
	read_departed(a, plan);
	if (a->look_first)
		plan->look = a->answered_at;
	if (a->read_first)
		read_now(a, plan);
	count_along(a, plan);
	if (a->solo && !a->concluded)
		wake_at(plan, now + NEIGHBOURS);
	/* Wake up often: a long sleep could not be told from this process having been stopped. */
	if (awaits(plan))
		wake_at(plan, now + POLL_OFTEN);
}

void agreement_next(struct agreement *a, int64_t now, struct agreement_plan *plan)
{
	if (a->due != CLOCK_NEVER && now > a->due + STOPPED)
		a->stopped_until = now;
	a->now = now;
	if (!a->awaits)
		a->awaits_at = now;
	agreement_follow_alone(a, now);
	derive(a, now, plan);
	while (agreement_write_alone(a, plan)) {
		agreement_take_in(a, now);
		derive(a, now, plan);
	}
	a->awaits = awaits(plan);
	a->due = clock_earlier(plan->wake, plan->read_board);
}
