/* SPDX-License-Identifier: MIT */
#include "group/agreement.h"

#include "base/clock.h"
#include "base/error.h"

#define SETTLE	       1    /* ms between writing hold = wait and reading step */
#define LOOK_OFTEN     1000 /* ms between views while something is awaited */
#define STAGGER	       10   /* ms by which one reporter lets another publish first */
#define STAGGER_MOST   500
#define LEAVE_EARLY    2000  /* ms before the deadline at which a parked task leaves */
#define SILENT	       2000  /* ms after which a store that is asked and says nothing is lost */
#define LEAVE_STUBBORN 10000 /* ms that a command may take to obey `leave` */
#define DEADLINE_MOVED 500   /* ms; smaller differences come from converting clocks */

void agreement_init(struct agreement *a, const struct agreement_config *config,
	const struct agreement_view *view, int64_t started)
{
	*a = (struct agreement){
		.config = *config,
		.view = view,
		.started = started,
		.own_deadline = CLOCK_NEVER,
		.answered_at = started,
		.told_at = started,
	};
}

/* ---- What happened ---- */

void agreement_noticed(struct agreement *a, int64_t deadline)
{
	a->noticed = true;
	if (deadline < a->own_deadline)
		a->own_deadline = deadline;
}

static uint64_t count_reports(const struct agreement_view *view)
{
	uint64_t count = 0;
	for (uint64_t i = 0; i < view->tasks; i++)
		count += view->peers[i].reported;
	return count;
}

static bool is_final(enum agreement_kind kind)
{
	return kind == KIND_EXIT || kind == KIND_EACH;
}

void agreement_saw(struct agreement *a, int64_t now)
{
	const struct agreement_view *view = a->view;
	uint64_t reports = count_reports(view);
	/* Only time in which the store answered is silence of the others. */
	int64_t answered = now - a->answered_at;
	if (answered > 2 * LOOK_OFTEN)
		answered = 2 * LOOK_OFTEN;

	if (view->round != a->round) {
		a->round = view->round;
		a->round_seen = now;
		a->read = false;
		a->skipped = false;
		a->decision_seen = 0;
		a->acknowledged = false;
		a->silence = 0;
		a->reports_seen = reports;
	} else if (reports != a->reports_seen) {
		a->silence = 0;
		a->reports_seen = reports;
	} else {
		a->silence += answered;
	}
	if (view->decided && !a->decision_seen)
		a->decision_seen = now;
	if (view->decided && is_final(view->decision.kind))
		a->exit_decided = true;
	if (view->longest_save > a->measure.longest_save)
		a->measure.longest_save = view->longest_save;
	a->answered_at = now;
	a->look_first = false;
	a->wants_since = 0;
}

void agreement_told(struct agreement *a, const struct agreement_hold *hold, int64_t now)
{
	a->told = *hold;
	a->told_at = now;
	if (hold->order == ORDER_SAVE || hold->order == ORDER_EXIT) {
		a->saving = a->round;
		a->saving_step = hold->step;
		a->saved_written = false;
	}
}

void agreement_read(struct agreement *a, bool started, uint64_t step, uint64_t next, int64_t now)
{
	a->called |= started;
	a->read_step = step;
	a->read_next = next;
	a->read_at = now;
	/* Only what was read after `wait` had stood there for a moment binds the training process.
	 */
	if (a->told.order == ORDER_WAIT && now >= a->told_at + SETTLE)
		a->read = true;
}

void agreement_board_lost(struct agreement *a)
{
	a->lost = true;
}

void agreement_saved(struct agreement *a, uint64_t step)
{
	if (!a->has_saved || step > a->saved_step)
		a->saved_step = step;
	a->has_saved = true;
}

void agreement_measured(struct agreement *a, int64_t longest_save, int64_t longest_step)
{
	if (longest_save > a->measure.longest_save)
		a->measure.longest_save = longest_save;
	a->measure.longest_step = longest_step;
}

void agreement_ended(struct agreement *a, int code, int64_t now)
{
	a->ended = true;
	a->ended_at = now;
	a->end_code = code;
}

void agreement_writing(struct agreement *a, enum agreement_write what)
{
	a->pending[what] = true;
}

void agreement_wrote(struct agreement *a, enum agreement_write what, uint64_t round,
	enum agreement_outcome outcome, int64_t now)
{
	a->pending[what] = false;
	if (outcome == OUTCOME_DONE)
		a->done[what] = round;
	else
		a->look_first = true;
	if (outcome != OUTCOME_UNKNOWN) {
		a->answered_at = now;
		a->wants_since = 0;
	}
	if (outcome == OUTCOME_DONE && what == WRITE_SAVED && round == a->saving)
		a->saved_written = true;
	if (outcome == OUTCOME_DONE && what == WRITE_ACK && round == a->round)
		a->acknowledged = true;
}

/* ---- What is known ---- */

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t deadline_of(const struct agreement *a)
{
	return earlier(a->view->deadline, a->own_deadline);
}

static const struct agreement_peer *self(const struct agreement *a)
{
	return &a->view->peers[a->config.task];
}

static struct grace_measure measure_of(const struct agreement *a)
{
	const struct agreement_view *view = a->view;
	struct grace_measure measure = a->measure;
	uint64_t least = UINT64_MAX, most = 0;
	for (uint64_t i = 0; i < view->tasks; i++) {
		const struct agreement_peer *peer = &view->peers[i];
		if (!peer->reported || peer->none)
			continue;
		if (peer->step < least)
			least = peer->step;
		if (peer->step > most)
			most = peer->step;
		if (peer->step_time > measure.longest_step)
			measure.longest_step = peer->step_time;
	}
	if (most > least)
		measure.skew = most - least;
	return measure;
}

/* Whether this attempt ends: somebody was noticed, and it was not only a checkpoint on demand. */
static bool preempted(const struct agreement *a)
{
	return a->noticed || a->view->claimed;
}

/* The final save is done: at S, or wherever this task was told to save by itself. */
static bool final_save_done(const struct agreement *a)
{
	return a->told.order == ORDER_EXIT && a->has_saved && a->saved_step >= a->told.step;
}

static bool must_save(const struct agreement *a, uint64_t task)
{
	return !(a->config.savers_chief || a->config.complete_chief) || task == 0;
}

/* Every other member of the decision has saved, ended, or is dead. */
static bool others_have_saved(const struct agreement *a)
{
	const struct agreement_view *view = a->view;
	for (uint64_t i = 0; i < view->tasks; i++)
		if (i != a->config.task && view->peers[i].member && agreement_counts(view, i) &&
			!view->peers[i].saved)
			return false;
	return true;
}

/* The checkpoint of the newest decision is complete (DESIGN.md, 4.5). */
static bool checkpoint_complete(const struct agreement *a)
{
	const struct agreement_view *view = a->view;
	if (!view->decided)
		return false;
	if (view->decision.kind == KIND_EACH)
		return a->config.per_task && self(a)->saved;
	if (view->decision.kind != KIND_EXIT)
		return false;
	for (uint64_t i = 0; i < view->tasks; i++) {
		const struct agreement_peer *peer = &view->peers[i];
		if (!peer->member || !must_save(a, i))
			continue;
		if (peer->saved && peer->saved_step == view->decision.step)
			continue;
		if (peer->left == REASON_COMPLETED && !peer->saved)
			continue;
		return false;
	}
	return true;
}

static int64_t final_limit(const struct agreement *a, int64_t since)
{
	int64_t deadline = deadline_of(a);
	return deadline != CLOCK_NEVER ? deadline : since + a->config.save_timeout;
}

/* Somebody else may be saving, so that our exit, on which a launcher may kill, has to wait. */
static bool others_are_saving(const struct agreement *a, int64_t now)
{
	const struct agreement_view *view = a->view;
	int64_t since = a->parked_at ? a->parked_at : a->ended_at;
	int64_t limit = deadline_of(a) != CLOCK_NEVER ? deadline_of(a) - LEAVE_EARLY
						      : since + a->config.save_timeout;
	if (view->round == 0 || now >= limit)
		return false;
	if (view->decided && view->decision.kind == KIND_NONE)
		return false;
	bool final = view->decided && is_final(view->decision.kind);
	if (!view->claimed && !view->decided)
		return false;
	if (!view->claimed && a->decision_seen + a->config.save_timeout <= now)
		return false;
	if (view->broken && !view->claimed && !view->decided)
		return false;
	for (uint64_t i = 0; i < view->tasks; i++) {
		if (i == a->config.task || !agreement_counts(view, i))
			continue;
		if (view->claimed && !final)
			return true; /* its final round is still to come */
		if (view->peers[i].member && !view->peers[i].saved)
			return true;
	}
	return false;
}

/* ---- What is wanted ---- */

static void wake_at(struct agreement_plan *plan, int64_t instant)
{
	plan->wake = earlier(plan->wake, instant);
}

static void look_by(struct agreement *a, struct agreement_plan *plan, int64_t now)
{
	if (!a->wants_since)
		a->wants_since = now;
	plan->look = earlier(plan->look, a->answered_at + LOOK_OFTEN);
}

static void want(struct agreement *a, struct agreement_plan *plan, enum agreement_write what,
	uint64_t round, int64_t now)
{
	if (a->done[what] == round)
		return;
	if (!a->wants_since)
		a->wants_since = now;
	if (a->look_first) {
		plan->look = now;
		return;
	}
	if (a->pending[what])
		return;
	plan->write[what] = round;
}

static bool store_is_silent(const struct agreement *a, int64_t now)
{
	return a->wants_since && now - a->wants_since >= SILENT;
}

static void reach(struct agreement *a, enum agreement_reason reason, int code)
{
	a->verdict = true;
	a->reason = reason;
	a->code = a->view->claimed && a->view->claim_then == THEN_STOP && reason != REASON_COMPLETED
			  ? STATUS_DECIDED
			  : code;
}

static void reach_saved(struct agreement *a)
{
	bool complete = !a->solo && a->saved_written && checkpoint_complete(a);
	reach(a, complete ? REASON_SAVED : REASON_PREEMPTED,
		complete ? STATUS_SAVED : STATUS_PREEMPTED);
}

static void hold(struct agreement_plan *plan, enum agreement_order order, uint64_t step)
{
	plan->hold = (struct agreement_hold){.order = order, .step = step};
}

/* Hold at the next boundary, and learn which one that is. False until the board was read. */
static bool hold_and_read(struct agreement *a, struct agreement_plan *plan)
{
	hold(plan, ORDER_WAIT, 0);
	if (a->told.order != ORDER_WAIT)
		return false;
	if (a->read)
		return true;
	plan->read_board = a->told_at + SETTLE;
	return false;
}

static void announce(struct agreement *a, int64_t now, struct agreement_plan *plan)
{
	const struct agreement_view *view = a->view;
	if (!a->noticed || view->closed)
		return;
	if (!view->claimed && !view->broken)
		want(a, plan, WRITE_CLAIM, 1, now);
	else if (view->claimed && a->own_deadline != CLOCK_NEVER &&
		 (view->deadline == CLOCK_NEVER ||
			 a->own_deadline < view->deadline - DEADLINE_MOVED)) {
		/* Wanted until the view shows it, however often it moves. */
		a->done[WRITE_DEADLINE] = 0;
		want(a, plan, WRITE_DEADLINE, 1, now);
	}
}

/* ---- The stages of a round ---- */

/* How many reporters come before this task: each lets those publish first. */
static int64_t publish_delay(const struct agreement *a)
{
	int64_t before = 0;
	for (uint64_t i = 0; i < a->config.task; i++)
		before += agreement_counts(a->view, i) && a->view->peers[i].reported;
	int64_t delay = before * STAGGER;
	return delay > STAGGER_MOST ? STAGGER_MOST : delay;
}

static bool all_reported(const struct agreement_view *view)
{
	for (uint64_t i = 0; i < view->tasks; i++)
		if (agreement_counts(view, i) && !view->peers[i].reported)
			return false;
	return true;
}

static void report_and_decide(struct agreement *a, int64_t now, struct agreement_plan *plan)
{
	const struct agreement_view *view = a->view;
	look_by(a, plan, now);
	if (!hold_and_read(a, plan))
		return;
	if (!self(a)->reported) {
		plan->report_none = !a->called;
		plan->step = a->read_step;
		plan->next = a->read_next;
		want(a, plan, WRITE_REPORT, view->round, now);
		return;
	}
	struct grace_measure measure = measure_of(a);
	int64_t patience = grace_report_patience(
		a->round_seen, deadline_of(a), a->config.report_timeout, &measure);
	int64_t jitter = patience < a->config.report_timeout ? 0 : a->config.report_jitter;
	if (all_reported(view)) {
		int64_t ready = a->answered_at + publish_delay(a);
		if (a->silence == 0 && now < ready) {
			wake_at(plan, ready);
			return;
		}
	} else if (a->silence < patience + jitter) {
		int64_t missing = patience + jitter - a->silence;
		plan->look = earlier(
			plan->look, a->answered_at + (missing < LOOK_OFTEN ? missing : LOOK_OFTEN));
		return;
	}
	agreement_decide(view, &measure, a->exit_decided, now, &plan->decision);
	want(a, plan, WRITE_DECISION, view->round, now);
}

static void open_round(struct agreement *a, int64_t now, struct agreement_plan *plan, bool final)
{
	plan->final = final;
	want(a, plan, WRITE_ROUND, a->view->round + 1, now);
	look_by(a, plan, now);
}

enum reach { REACH_YES, REACH_NO, REACH_UNKNOWN };

/* Whether this task can stop where the decision says. */
static enum reach can_follow(const struct agreement *a)
{
	const struct agreement_decision *decision = &a->view->decision;
	bool known = self(a)->reported || a->read;
	bool none = self(a)->reported ? self(a)->none : !a->called;
	uint64_t next = self(a)->reported ? self(a)->next : a->read_next;
	if (decision->kind == KIND_EACH && a->read)
		return REACH_YES;
	if (!known || decision->kind == KIND_EACH)
		return REACH_UNKNOWN;
	if (decision->kind == KIND_NONE)
		return none ? REACH_YES : REACH_NO;
	return none || next <= decision->step ? REACH_YES : REACH_NO;
}

static void acknowledge(struct agreement *a, int64_t now, struct agreement_plan *plan)
{
	if (!a->acknowledged)
		want(a, plan, WRITE_ACK, a->view->round, now);
}

/* A save that was asked for is done: say so in the round it belongs to. */
static void report_saved(struct agreement *a, int64_t now, struct agreement_plan *plan)
{
	if (a->solo || !a->saving || a->saved_written || !a->has_saved ||
		a->saved_step < a->saving_step)
		return;
	plan->saved_step = a->saved_step;
	want(a, plan, WRITE_SAVED, a->saving, now);
}

static void follow_save(struct agreement *a, int64_t now, struct agreement_plan *plan)
{
	const struct agreement_view *view = a->view;
	bool done = a->saving == view->round && a->has_saved && a->saved_step >= a->saving_step;
	bool late = a->decision_seen + a->config.save_timeout <= now;
	if (done || a->skipped || late) {
		hold(plan, ORDER_RUN, 0);
	} else {
		hold(plan, ORDER_SAVE, view->decision.step);
		wake_at(plan, a->decision_seen + a->config.save_timeout);
		acknowledge(a, now, plan);
	}
	if (!view->claimed)
		return;
	struct grace_measure measure = measure_of(a);
	int64_t final = grace_final_time(deadline_of(a), &measure);
	if (now >= final)
		open_round(a, now, plan, true);
	else
		wake_at(plan, final);
}

static void follow_exit(struct agreement *a, int64_t now, struct agreement_plan *plan)
{
	const struct agreement_decision *decision = &a->view->decision;
	if (a->told.order == ORDER_EXIT && a->saving == a->view->round)
		plan->hold = a->told;
	else
		hold(plan, ORDER_EXIT, decision->kind == KIND_EACH ? a->read_step : decision->step);
	acknowledge(a, now, plan);
	look_by(a, plan, now);
	wake_at(plan, final_limit(a, a->decision_seen));
}

static void follow(struct agreement *a, int64_t now, struct agreement_plan *plan)
{
	const struct agreement_view *view = a->view;
	bool final = view->claimed && (view->unreadable || view->decision.kind != KIND_SAVE);
	if (view->unreadable) {
		if (hold_and_read(a, plan) || view->claimed)
			open_round(a, now, plan, final);
		return;
	}
	if (view->decision.kind == KIND_NONE && !view->claimed) {
		hold(plan, ORDER_RUN, 0);
		return;
	}
	switch (a->skipped ? REACH_NO : can_follow(a)) {
	case REACH_UNKNOWN: (void)hold_and_read(a, plan); return;
	case REACH_NO:
		if (final) {
			(void)hold_and_read(a, plan);
			open_round(a, now, plan, true);
			return;
		}
		a->skipped = true;
		break;
	case REACH_YES: break;
	}
	switch (view->decision.kind) {
	case KIND_SAVE: follow_save(a, now, plan); break;
	case KIND_EXIT:
	case KIND_EACH: follow_exit(a, now, plan); break;
	case KIND_NONE: {
		bool young = a->decision_seen - a->started <= a->config.startup;
		reach(a, REASON_PREEMPTED, young ? STATUS_SAVED : STATUS_PREEMPTED);
		break;
	}
	}
}

/*
 * No decision can be had in time: save at the own boundary, or end. The save does not count as an
 * agreed one.
 */
static bool go_solo(struct agreement *a, int64_t now, struct agreement_plan *plan)
{
	int64_t deadline = deadline_of(a);
	int64_t held = a->told.order == ORDER_WAIT ? a->told_at : now;
	if (a->told.order == ORDER_EXIT && !a->solo)
		return false; /* the decision is known; its save needs no store */
	if (!a->solo) {
		if (!preempted(a))
			return false;
		struct grace_measure measure = measure_of(a);
		int64_t silent = deadline == CLOCK_NEVER ? held + a->config.save_timeout
							 : grace_final_time(deadline, &measure);
		int64_t last = deadline == CLOCK_NEVER
				       ? held + a->config.save_timeout
				       : deadline - measure.longest_save -
						 measure.longest_save / 2 - SILENT / 4;
		bool due = a->told.order == ORDER_WAIT && now >= held + SILENT / 4 &&
			   ((now >= silent && store_is_silent(a, now)) || now >= last);
		if (!due) {
			wake_at(plan, now >= silent ? now + SILENT / 4 : silent);
			if (last > now)
				wake_at(plan, last);
			return false;
		}
		if (!a->read) {
			(void)hold_and_read(a, plan);
			return true;
		}
		a->solo = true;
		if (a->config.store_loss_ends || !a->called) {
			reach(a, REASON_PREEMPTED, STATUS_PREEMPTED);
			return true;
		}
	}
	hold(plan, ORDER_EXIT, a->told.order == ORDER_EXIT ? a->told.step : a->read_step);
	return true;
}

/* ---- Verdicts ---- */

static void judge_ended(struct agreement *a, int64_t now, struct agreement_plan *plan)
{
	if (final_save_done(a)) {
		if (!a->parked_at)
			a->parked_at = now;
		/* Whether the checkpoint is complete shows only when the others are through. */
		report_saved(a, now, plan);
		look_by(a, plan, now);
		bool late = now >= earlier(final_limit(a, a->parked_at),
					   deadline_of(a) == CLOCK_NEVER
						   ? CLOCK_NEVER
						   : deadline_of(a) - LEAVE_EARLY);
		if (late || a->solo || (a->saved_written && others_have_saved(a)))
			reach_saved(a);
		else
			wake_at(plan, now + LOOK_OFTEN);
	} else if (a->ending && preempted(a)) {
		reach(a, REASON_PREEMPTED, STATUS_PREEMPTED);
	} else if (a->end_code == 0 && !a->ending) {
		reach(a, REASON_COMPLETED, STATUS_OK);
	} else if (preempted(a)) {
		reach(a, REASON_PREEMPTED, STATUS_PREEMPTED);
	} else if (a->view->broken && a->done[WRITE_ERROR] == 0) {
		reach(a, REASON_PEER, STATUS_BROKEN);
	} else {
		want(a, plan, WRITE_ERROR, 1, now);
		bool hopeless =
			store_is_silent(a, now) && now - a->ended_at >= a->config.leave_patience;
		if (a->done[WRITE_ERROR] || hopeless)
			reach(a, REASON_FAILED, a->end_code);
		else
			wake_at(plan, a->ended_at + a->config.leave_patience);
	}
}

static void judge_running(struct agreement *a, int64_t now, struct agreement_plan *plan)
{
	const struct agreement_view *view = a->view;
	if (a->lost) {
		a->ending = true;
		return;
	}
	if (view->broken && !view->claimed) {
		/* A save of an agreed step that is under way is finished first. */
		if (a->told.order == ORDER_SAVE && a->read_at < a->answered_at) {
			plan->read_board = now;
			return;
		}
		bool saving = a->told.order == ORDER_SAVE && a->read_step == a->told.step &&
			      !(a->has_saved && a->saved_step >= a->told.step) &&
			      now < a->decision_seen + a->config.save_timeout;
		if (!saving)
			reach(a, REASON_PEER, STATUS_BROKEN);
		else
			wake_at(plan, a->decision_seen + a->config.save_timeout);
		return;
	}
	if (final_save_done(a)) {
		if (!a->parked_at)
			a->parked_at = now;
		int64_t limit = deadline_of(a) != CLOCK_NEVER
					? deadline_of(a) - LEAVE_EARLY
					: a->parked_at + a->config.save_timeout;
		bool newer = view->round > a->saving && !a->solo;
		if (now >= limit || (a->solo && !others_are_saving(a, now)) ||
			(!newer && a->saved_written && others_have_saved(a)))
			reach_saved(a);
		else
			wake_at(plan, limit);
		return;
	}
	int64_t since = a->solo || !a->decision_seen ? a->told_at : a->decision_seen;
	bool final = a->told.order == ORDER_EXIT ||
		     (preempted(a) && a->told.order == ORDER_WAIT && deadline_of(a) != CLOCK_NEVER);
	if (final && now >= final_limit(a, since))
		reach(a, REASON_PREEMPTED, STATUS_PREEMPTED);
	else if (final)
		wake_at(plan, final_limit(a, since));
}

static void leave(struct agreement *a, int64_t now, struct agreement_plan *plan)
{
	if (!a->ended) {
		/* A parked task is told to leave; one that still runs is ended. */
		bool parked = final_save_done(a) || a->told.order == ORDER_LEAVE;
		if (parked && !a->ending) {
			plan->hold = (struct agreement_hold){.order = ORDER_LEAVE, .code = a->code};
			if (a->told.order == ORDER_LEAVE && now >= a->told_at + LEAVE_STUBBORN)
				a->ending = true;
			else
				wake_at(plan, (a->told.order == ORDER_LEAVE ? a->told_at : now) +
						      LEAVE_STUBBORN);
		} else {
			a->ending = true;
		}
		plan->end_command = a->ending;
		return;
	}
	plan->reason = a->reason;
	report_saved(a, now, plan);
	want(a, plan, WRITE_LEFT, 1, now);
	bool gone = a->done[WRITE_LEFT] == 1;
	bool hopeless = store_is_silent(a, now) && now - a->ended_at >= a->config.leave_patience;
	if (gone && others_are_saving(a, now)) {
		look_by(a, plan, now);
		wake_at(plan, now + LOOK_OFTEN);
	} else if (gone || hopeless) {
		plan->finished = true;
		plan->code = a->code;
	} else {
		wake_at(plan, now + LOOK_OFTEN);
	}
}

void agreement_next(struct agreement *a, int64_t now, struct agreement_plan *plan)
{
	const struct agreement_view *view = a->view;
	*plan = (struct agreement_plan){.hold = a->told,
		.read_board = CLOCK_NEVER,
		.look = CLOCK_NEVER,
		.wake = CLOCK_NEVER};
	if (!a->verdict && a->ended)
		judge_ended(a, now, plan);
	else if (!a->verdict)
		judge_running(a, now, plan);
	if (a->verdict) {
		leave(a, now, plan);
		return;
	}
	announce(a, now, plan);
	report_saved(a, now, plan);
	if (a->ended) {
		look_by(a, plan, now);
		return;
	}
	if (a->ending) {
		plan->end_command = true;
		return;
	}
	if (go_solo(a, now, plan))
		;
	else if (view->round && (view->decided || view->unreadable))
		follow(a, now, plan);
	else if (view->round)
		report_and_decide(a, now, plan);
	else if (a->noticed && !view->closed)
		(void)hold_and_read(a, plan);
	else
		hold(plan, ORDER_RUN, 0);
	if (a->verdict)
		leave(a, now, plan);
}
