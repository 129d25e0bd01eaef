/* SPDX-License-Identifier: MIT */
/* How the attempt ends for one task: wait for the others, decide the exit code, leave. */
#include "proto/agreement/leave.h"

#include "base/error.h"
#include "proto/agreement/alone.h"
#include "proto/agreement/facts.h"
#include "proto/agreement/plan.h"
#include "proto/agreement/reading.h"
#include "proto/agreement/round.h"
#include "proto/agreement/tally.h"

#define LEAVE_BARELY   500     /* ms before the deadline at which a task leaves at the latest */
#define MOST_STRIDES   1000000 /* keeps the product from overflowing */
#define LEAVE_STUBBORN 10000   /* ms that a command may take to obey `leave` */
#define STAY_ALONE     5000    /* ms to wait for saves of tasks of the same agent, at least */
#define GOODBYE_SHORT  1500    /* ms to say goodbye where the time is up, or the store is lost */

/* ---- What is known about the saves ---- */

/* Whether this task's final save is done, at the step that its board was told. */
bool agreement_final_save_done(const struct agreement *a)
{
	return a->told.order == ORDER_EXIT && a->has_saved && a->saved_step >= a->told.step;
}

/*
 * Plan to report a requested save that is done, in its round; also one of the round before, whose
 * save ended when the next was decided. False: nothing to report.
 */
bool agreement_report_saved(const struct agreement *a, struct agreement_plan *plan)
{
	bool late = a->before && a->has_saved && a->saved_step >= a->before_step;
	bool done = a->saving && a->has_saved && a->saved_step >= a->saving_step;
	if (self(a)->dead || (!late && (!done || agreement_saved_reported(a))))
		return false;
	plan->saved_step = a->saved_step;
	want(a, plan, WRITE_SAVED, late ? a->before : a->saving);
	return true;
}

/* How many other members of the decision have neither saved nor left nor died. */
static uint64_t count_unsaved(const struct agreement_view *view, uint64_t task)
{
	const struct agreement_peer *ours = &view->peers[task];
	bool own = ours->member && agreement_counts(view, task) && !ours->saved;
	return agreement_tally(view).unsaved - own;
}

static bool others_have_saved(const struct agreement *a)
{
	return (a->view->all_saved && a->view->all_saved == a->view->round) ||
	       count_unsaved(a->view, a->config.task) == 0;
}

uint64_t agreement_savers(const struct agreement *a)
{
	return a->config.savers_chief || a->config.complete_chief ? 1 : a->view->tasks;
}

/*
 * The step at which all that must save have saved, in the newest round, or in the one that stands.
 * A task that has completed without a save makes it incomplete, unless checkpoints are per task.
 */
static bool common_step(const struct agreement *a, bool standing, uint64_t *step)
{
	bool any = false;
	for (uint64_t i = 0; i < agreement_savers(a); i++) {
		const struct agreement_peer *peer = &a->view->peers[i];
		bool saved = standing ? peer->stood : peer->saved;
		uint64_t at = standing ? peer->stood_step : peer->saved_step;
		if (!saved && a->config.per_task && peer->left == REASON_COMPLETED)
			continue;
		if (!saved || (any && at != *step))
			return false;
		*step = at;
		any = true;
	}
	return any;
}

/* Whether the tasks save because of the notice: not on demand. Where, only their records tell. */
static bool saves_since(const struct agreement_view *view)
{
	return view->decided && view->decision.then != THEN_CONTINUE &&
	       view->decision.kind != KIND_NONE;
}

/* Whether checkpoints are per task, and this one's is whole: no common step is needed. */
static bool own_complete(const struct agreement *a)
{
	bool final = a->solo || (is_final(a->view) && others_have_saved(a));
	return a->config.per_task && agreement_saved_reported(a) &&
	       (final || (a->view->decided && a->view->decision.kind == KIND_EACH));
}

/* The same for the newest decision. A checkpoint on demand does not count. */
static bool newest_complete(const struct agreement *a, uint64_t *step)
{
	if (saves_since(a->view) && common_step(a, false, step))
		return true;
	if (saves_since(a->view) && agreement_all_saved(a->view)) {
		*step = a->view->complete_step;
		return true;
	}
	*step = a->saved_step;
	return own_complete(a);
}

/*
 * The one answer to "is it complete?": whether a complete checkpoint was saved since the notice,
 * and at which step. From what was saved, never from what is absent.
 */
static bool checkpoint_complete(const struct agreement *a, uint64_t *step)
{
	if (newest_complete(a, step))
		return true;
	if (a->view->standing_round && common_step(a, true, step))
		return true;
	*step = a->store->complete_step;
	return a->store->has_complete && !a->config.per_task;
}

void agreement_tell_all_saved(struct agreement *a, struct agreement_plan *plan)
{
	const struct agreement_view *view = a->view;
	/* No task waits for the end of a checkpoint on demand. */
	if (a->solo || !view->claimed || !view->decided || a->saving != view->round ||
		!agreement_saved_reported(a) || view->all_saved >= view->round)
		return;
	agreement_await(a, plan, count_unsaved(view, a->config.task));
	bool ours = view->last_saver == a->config.task || a->stands_in;
	if (view->unseen && others_have_saved(a) && ours)
		read_now(a, plan);
	if (view->unseen || !others_have_saved(a) || !ours)
		return;
	plan->complete = saves_since(view) && common_step(a, false, &plan->complete_step);
	want(a, plan, WRITE_ALL_SAVED, view->round);
}

bool agreement_no_newer(const struct agreement *a)
{
	uint64_t step;
	if (a->config.per_task || !newest_complete(a, &step))
		return false;
	/* Where a task has completed, the others may do so in the time that is left. */
	for (uint64_t i = 0; i < agreement_savers(a); i++)
		if (!agreement_counts(a->view, i) && a->view->peers[i].left != REASON_COMPLETED)
			return true;
	return false;
}

/* When a member that has not saved yet was or will be at the decided step, as far as is known. */
static int64_t arrival(const struct agreement *a, const struct agreement_peer *peer,
	const struct grace_measure *measure)
{
	int64_t step_time = clock_later(peer->step_time, measure->longest_step);
	uint64_t step = a->view->decision.step, stride = agreement_stride(peer), strides = 1;
	if (step > peer->next)
		strides += (step - peer->next + stride - 1) / stride;
	if (strides > MOST_STRIDES)
		strides = MOST_STRIDES;
	return a->decided_at + (int64_t)strides * step_time;
}

enum agreement_prospect agreement_prospect(
	const struct agreement *a, int64_t now, struct grace_measure *measure)
{
	const struct agreement_view *view = a->view;
	struct grace_measure measured = *measure;
	uint64_t step;
	bool complete = newest_complete(a, &step), any = false;
	if (complete && others_have_saved(a))
		return PROSPECT_COMPLETE;
	for (uint64_t i = 0; i < view->tasks; i++) {
		const struct agreement_peer *peer = &view->peers[i];
		bool awaited = peer->member && agreement_counts(view, i) && !peer->saved;
		any |= awaited;
		int64_t begun = arrival(a, peer, measure);
		if (awaited) /* its save takes at least as long as it has taken so far */
			measured.longest_save = clock_later(measured.longest_save, now - begun);
		if (awaited && begun + measure->longest_save > deadline_of(a))
			return PROSPECT_NONE;
		if (!awaited && i < agreement_savers(a) && !complete && !peer->saved)
			return PROSPECT_NONE;
	}
	/* Do not wait for a save that is not known to be under way. */
	if (!any || now >= a->decided_at + a->config.save_timeout ||
		now - a->answered_at > agreement_pace(a) + POLL_OFTEN)
		return PROSPECT_NONE;
	*measure = measured;
	return PROSPECT_OPEN;
}

/* ---- Conclusions ---- */

void agreement_reach(struct agreement *a, enum agreement_reason reason, int code)
{
	a->concluded = true;
	a->reason = reason;
	a->has_complete = reason == REASON_SAVED && checkpoint_complete(a, &a->complete_step);
	a->code = agreement_stops(a->view) && reason != REASON_COMPLETED ? CODE_DECIDED : code;
}

static void reach_preempted(struct agreement *a)
{
	uint64_t step;
	bool complete = checkpoint_complete(a, &step);
	agreement_reach(a, complete ? REASON_SAVED : REASON_PREEMPTED,
		complete ? CODE_SAVED : CODE_PREEMPTED);
}

int agreement_choose_code(struct agreement *a)
{
	uint64_t step;
	if (a->reason == REASON_PREEMPTED && checkpoint_complete(a, &step))
		reach_preempted(a);
	return a->code;
}

/* Until when a task that has saved waits for the others. Time in which this process was stopped
 * does not count. */
static int64_t stay_until(const struct agreement *a)
{
	int64_t ready = a->parked_at ? a->parked_at : a->ended_at;
	int64_t since = clock_later(clock_later(ready, a->decided_at), a->stopped_until);
	int64_t deadline = deadline_of(a);
	if (deadline == CLOCK_NEVER && a->solo && !a->config.alone->goes_on)
		return since + clock_earlier(a->config.save_timeout,
				       clock_later(STAY_ALONE, a->measure.longest_save));
	if (deadline == CLOCK_NEVER)
		return since + a->config.save_timeout;
	int64_t look_once_more = clock_earlier(since + POLL_OFTEN, deadline - LEAVE_BARELY);
	return clock_later(deadline - LEAVE_EARLY, look_once_more);
}

/* When this task is ended if it has not saved by then. */
static int64_t give_up_at(const struct agreement *a)
{
	if (!preempted(a))
		return CLOCK_NEVER;
	if (deadline_of(a) != CLOCK_NEVER)
		return latest_deadline_of(a);
	if (a->told.order != ORDER_EXIT && !(is_final(a->view) && awaits_first_call(a)))
		return CLOCK_NEVER; /* go_alone acts first */
	return clock_later(a->told_at, a->decided_at) + a->config.save_timeout;
}

/*
 * The time is up, but the last save may be a record that the view does not show: read everything
 * once more while a moment is left.
 */
static bool looks_once_more(const struct agreement *a, int64_t now, struct agreement_plan *plan)
{
	int64_t until = clock_earlier(stay_until(a) + POLL_OFTEN, deadline_of(a) - LEAVE_BARELY);
	until = clock_later(until, a->parked_at + LEAVE_BARELY / 2);
	if (a->solo || a->saw_at >= stay_until(a) || now >= until)
		return false;
	read_now(a, plan);
	wake_at(plan, until);
	return true;
}

/* Park after the final save until all tasks have saved or left, or a newer round replaces it. */
static void conclude_parked(struct agreement *a, int64_t now, struct agreement_plan *plan)
{
	bool newest = a->saving == a->view->round;
	if (!a->parked_at)
		a->parked_at = now;
	if (newest && !a->solo && a->config.alone && agreement_are_all_ours(a) &&
		has_come(plan, agreement_store_lost(a, a->parked_at), now))
		agreement_begin_alone(a, now);
	/* Alone and saved: the task has left, for the others (agreement_leave). */
	bool through = newest && agreement_saved_reported(a) && others_have_saved(a);
	bool void_here =
		a->ended && !newest; /* a command that has ended takes no part in a newer round */
	if (through || void_here)
		reach_preempted(a);
	else if (has_come(plan, stay_until(a), now) && !looks_once_more(a, now, plan))
		reach_preempted(a);
	look_soon(a, plan);
}

/*
 * Whether the store has not answered, or has accepted no write of this task, for as long as an
 * ended task waits for it.
 */
static bool is_hopeless(const struct agreement *a, int64_t now)
{
	int64_t since = clock_later(clock_later(answered_until(a), a->ended_at), a->stopped_until);
	int64_t patience = clock_earlier(AGREEMENT_LEAVE_PATIENCE, a->config.save_timeout);
	int64_t left =
		deadline_of(a) == CLOCK_NEVER ? patience : deadline_of(a) - LEAVE_BARELY - since;
	if (preempted(a))
		patience = clock_earlier(patience, clock_later(a->solo ? 0 : left, GOODBYE_SHORT));
	return now - since >= patience;
}

/* Whether the ERROR in the store is this task's own, and only the answer to its write was lost. */
static bool is_our_error(const struct agreement *a)
{
	return a->view->broken && a->view->error && a->view->error_task == a->config.task;
}

static void conclude_ended(struct agreement *a, int64_t now, struct agreement_plan *plan)
{
	if (agreement_final_save_done(a)) {
		conclude_parked(a, now, plan);
	} else if (a->end_code == 0 && !a->lost) {
		agreement_reach(a, REASON_COMPLETED, STATUS_OK);
	} else if (preempted(a)) {
		reach_preempted(a);
	} else if (a->done[WRITE_ERROR] || is_our_error(a) ||
		   (is_hopeless(a, now) && !a->view->broken)) {
		/* A command that was ended because its board was lost may exit with 0. */
		agreement_reach(a, REASON_FAILED, a->end_code ? a->end_code : CODE_BROKEN);
	} else if (a->view->broken) {
		agreement_reach(a, REASON_PEER, CODE_BROKEN);
	} else {
		want(a, plan, WRITE_ERROR, 1);
	}
}

/* Whether a save of the agreed step is under way: let it finish before acting on the failure of
 * another task. */
static bool is_in_save(const struct agreement *a, int64_t now, struct agreement_plan *plan)
{
	int64_t limit = a->decided_at + a->config.save_timeout;
	/* A notice of this task's own may have changed ORDER_SAVE to ORDER_WAIT. */
	bool asked = a->told.order == ORDER_SAVE || a->told.order == ORDER_WAIT;
	if (!a->saving || !asked || now >= limit)
		return false;
	if (a->read_at < a->answered_at) {
		plan->read_board = now; /* read the board after the news of the failure */
		return true;
	}
	wake_at(plan, limit);
	return a->read_step >= a->saving_step && !(a->has_saved && a->saved_step >= a->saving_step);
}

static void conclude_running(struct agreement *a, int64_t now, struct agreement_plan *plan)
{
	const struct agreement_view *view = a->view;
	if (a->lost)
		return; /* its command is ended first; then conclude_ended decides */
	if (self(a)->dead) {
		if (preempted(a))
			reach_preempted(a);
		else
			agreement_reach(a, REASON_PEER, CODE_BROKEN);
	} else if ((view->broken && !view->claimed) || (a->cut_off && !preempted(a))) {
		if (!is_in_save(a, now, plan))
			agreement_reach(a, REASON_PEER, CODE_BROKEN);
	} else if (agreement_final_save_done(a)) {
		conclude_parked(a, now, plan);
	} else if (has_come(plan, give_up_at(a), now)) {
		reach_preempted(a);
	}
}

void agreement_conclude(struct agreement *a, int64_t now, struct agreement_plan *plan)
{
	if (a->ended)
		conclude_ended(a, now, plan);
	else
		conclude_running(a, now, plan);
}

/* ---- Leaving ---- */

bool agreement_others_save(const struct agreement_view *view, uint64_t task)
{
	bool again = !view->decided && view->round_try > 1; /* saves of the round before */
	bool under_way = view->claimed || view->decided || again;
	if (!view->round || !under_way || (is_final(view) && view->all_saved == view->round))
		return false;
	bool to_come = again || (view->claimed && !is_final(view));
	bool none = is_final(view) && view->decision.kind == KIND_NONE;
	if (!to_come && !none)
		return count_unsaved(view, task) > 0;
	for (uint64_t i = 0; i < view->tasks; i++) {
		const struct agreement_peer *peer = &view->peers[i];
		bool is_at_it = peer->member && !peer->saved && !peer->reported;
		if (i != task && agreement_counts(view, i) && (to_come || is_at_it))
			return true;
	}
	return false;
}

static bool others_are_saving(const struct agreement *a, int64_t now)
{
	return now < stay_until(a) && agreement_others_save(a->view, a->config.task);
}

/*
 * Whether this task still has to read: it is about to report that no checkpoint is complete, but
 * records that make one complete may be unread. It reads them once, when the others have saved,
 * while there is time.
 */
static bool reads_to_be_sure(struct agreement *a, int64_t now, struct agreement_plan *plan)
{
	const struct agreement_view *view = a->view;
	bool awaited = saves_since(view) && view->all_saved != view->round;
	bool open = awaited || view->standing_round;
	if (a->reason != REASON_PREEMPTED || a->solo || !open)
		return false;
	if (!a->free_at)
		a->free_at = now;
	int64_t until = clock_later(deadline_of(a) - LEAVE_BARELY, a->free_at + LEAVE_BARELY / 2);
	if (a->saw_at >= clock_earlier(a->free_at, stay_until(a)) || now >= until)
		return false;
	read_now(a, plan);
	wake_at(plan, until);
	return true;
}

/* Tell a task that is parked, or has nothing more to save, to leave; end any other command. */
static void end_command(struct agreement *a, int64_t now, struct agreement_plan *plan)
{
	bool told = a->told.order == ORDER_LEAVE;
	if (!told && !agreement_final_save_done(a) && !a->content) {
		plan->end_command = true;
		return;
	}
	plan->hold = (struct agreement_hold){.order = ORDER_LEAVE, .code = a->code};
	if (!told)
		return;
	int64_t limit = a->told_at + LEAVE_STUBBORN;
	if (a->content && deadline_of(a) != CLOCK_NEVER)
		limit = clock_earlier(limit,
			clock_later(deadline_of(a) - LEAVE_EARLY, a->told_at + LEAVE_BARELY));
	plan->end_command = has_come(plan, limit, now);
}

/* A task that has saved alone says goodbye at once, but stays: others that it cannot see may save.
 */
static bool stays_alone(const struct agreement *a, int64_t now, struct agreement_plan *plan)
{
	return !a->ended && agreement_final_save_done(a) && !agreement_knows_all(a) &&
	       !has_come(plan, stay_until(a), now);
}

void agreement_leave(struct agreement *a, int64_t now, struct agreement_plan *plan)
{
	bool stays = stays_alone(a, now, plan);
	if (!a->ended && !stays) {
		end_command(a, now, plan);
		return;
	}
	/* Only now it may have become known that this task or the last other one has saved. */
	bool unwritten = agreement_report_saved(a, plan) || agreement_announce(a, plan);
	unwritten = unwritten && (stays || !is_hopeless(a, now));
	(void)agreement_choose_code(a);
	if (agreement_stops(a->view) && (a->code == CODE_SAVED || a->code == CODE_PREEMPTED))
		a->code = CODE_DECIDED; /* the request to stop may have become known only now */
	plan->reason = a->reason;
	if (!unwritten)
		want(a, plan, WRITE_LEFT, 1);
	look_soon(a, plan);
	if (stays)
		return;
	wake_at(plan,
		now + GOODBYE_SHORT / 6); /* tell a pause of our own from silence of the store */
	bool gone = a->done[WRITE_LEFT] || a->store->peers[a->config.task].left != REASON_NONE;
	/* Only a view that was read after our goodbye shows whether others are saving. */
	bool free = gone && !unwritten && !a->look_first && !a->read_first &&
		    !others_are_saving(a, now) && !reads_to_be_sure(a, now, plan);
	if (!free && !(is_hopeless(a, now) && !others_are_saving(a, now)))
		return;
	plan->finished = true;
	plan->code = a->code;
}
