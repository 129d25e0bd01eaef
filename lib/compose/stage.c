/* SPDX-License-Identifier: MIT */
#include "compose/stage.h"
#include "proto/remembered.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "base/clock.h"
#include "proto/writes.h"
#include "run/attempt.h"

#define SAVED_EVERY 250 /* ms between looks for a save, where the board cannot be watched */

/*
 * From when the training process stood at the boundary and was told to save, to its report, as long
 * as it still stands there.
 */
static void measure_save(struct stage *stage, uint64_t saved)
{
	struct agreement_hold hold;
	struct board_step step;
	uint64_t again;
	int64_t written, told;
	if (stage->save_time || board_told(&stage->board, &hold, &told, NULL) != STATUS_OK ||
		board_read_step(&stage->board, &step, NULL) != STATUS_OK ||
		board_read_saved(&stage->board, &again, &written, NULL) != STATUS_OK)
		return;
	if ((hold.order != ORDER_SAVE && hold.order != ORDER_EXIT) || again != saved ||
		!step.started || step.step != saved)
		return;
	int64_t began = step.written > told ? step.written : told;
	if (written > began)
		stage->save_time = written - began;
}

/* The facts that an earlier program left on the board. */
static enum status take_up(struct stage *stage, int64_t now, struct error *err)
{
	struct agreement *a = &stage->agreement;
	const struct agreement_view *view = &stage->view.agreement;
	struct agreement_hold hold;
	struct board_step step;
	uint64_t saved;
	enum status status = board_told(&stage->board, &hold, NULL, err);
	if (status == STATUS_OK)
		status = board_read_step(&stage->board, &step, err);
	if (status != STATUS_OK)
		return status;
	agreement_saw(a, now);
	bool of_this_round = view->decided && hold.step == view->decision.step &&
			     (hold.order == ORDER_SAVE || hold.order == ORDER_EXIT);
	if (of_this_round || hold.order == ORDER_WAIT || hold.order == ORDER_LEAVE)
		agreement_told(a, &hold, now);
	if (step.started)
		agreement_read(a, true, step.step, step.next, now);
	if (board_read_saved(&stage->board, &saved, NULL, NULL) == STATUS_OK) {
		measure_save(stage, saved);
		agreement_saved(a, saved);
	}
	return STATUS_OK;
}

/* What is left counts from when the first program on this board read it. */
static void keep_deadline(struct stage *stage)
{
	struct agreement_view *view = &stage->view.agreement;
	struct board_deadline known = {.revision = stage->view.deadline_revision,
		.earliest = view->deadline,
		.latest = view->deadline_latest,
		.doubted = view->deadline_doubted};
	if (known.revision == stage->deadline_kept)
		return;
	stage->deadline_kept = known.revision;
	board_keep_deadline(&stage->board, &known);
	view->deadline = known.earliest;
	view->deadline_latest = known.latest;
	view->deadline_doubted = known.doubted;
}

static enum status refresh(struct stage *stage, struct error *err)
{
	enum status status = view_refresh(&stage->view, stage->store, err);
	if (status == STATUS_OK)
		keep_deadline(stage);
	return status;
}

enum status stage_open(struct stage *stage, struct store *store, const struct attempt *attempt,
	const struct agreement_config *config, const char *board, pid_t agent, struct error *err)
{
	int64_t now = clock_now();
	*stage = (struct stage){.store = store, .config = *config};
	stage->config.acknowledges = true; /* the caller is told so, and saves later */
	stage->board = (struct board){.directory = -1, .watch = -1};
	enum status status = view_init(&stage->view, attempt, err);
	if (status == STATUS_OK)
		status = view_refresh(&stage->view, store, err);
	struct remembered known = {0};
	if (status == STATUS_OK)
		status = remembered_read(store, attempt->run, &known, err);
	stage->view.agreement.longest_save = known.longest_save;
	if (status == STATUS_OK)
		status = board_open(&stage->board, board, agent, err);
	if (status == STATUS_OK) {
		keep_deadline(stage);
		stage->alone.first = config->task;
		stage->alone.count = 1;
		stage->alone.view.peers = calloc(attempt->tasks, sizeof(*stage->alone.view.peers));
		if (!stage->alone.view.peers)
			status = error_set(err, STATUS_TEMPORARY, "out of memory");
		stage->config.alone = &stage->alone;
	}
	if (status == STATUS_OK) {
		agreement_init(&stage->agreement, &stage->config, &stage->view.agreement, now);
		status = take_up(stage, now, err);
	}
	if (status != STATUS_OK)
		stage_release(stage);
	return status;
}

void stage_release(struct stage *stage)
{
	board_release(&stage->board, false);
	view_release(&stage->view);
	free(stage->alone.view.peers);
	stage->alone.view.peers = NULL;
}

static bool reached(const struct stage *stage, enum stage_goal goal)
{
	const struct agreement *a = &stage->agreement;
	const struct agreement_view *view = &stage->view.agreement;
	if (a->solo) /* nothing that this task does by itself is agreed on */
		return goal == STAGE_ALL && a->told.order == ORDER_LEAVE;
	bool told = a->told.order == ORDER_SAVE || a->told.order == ORDER_EXIT;
	/* Reported in the newest round, by us or by an earlier call. */
	bool reported = view->decided && view->peers[a->config.task].saved;
	switch (goal) {
	case STAGE_AGREED: return (told && a->done[WRITE_ACK] == a->round) || reported;
	case STAGE_SAVED: return agreement_saved_reported(a) || reported;
	case STAGE_ALL:
		/* After a claim the final round is still to come, however long the grace period. */
		return a->told.order == ORDER_LEAVE ||
		       (a->told.order == ORDER_RUN && !view->claimed &&
			       (agreement_saved_reported(a) || reported));
	}
	return true;
}

static enum status carry_out(
	struct stage *stage, const struct agreement_plan *plan, bool *wrote, struct error *err)
{
	struct agreement *a = &stage->agreement;
	struct write_details details = {.notice = &stage->notice,
		.deadline = CLOCK_NEVER,
		.save_time = stage->save_time,
		.code = a->code};
	for (enum agreement_write what = 0; what < WRITE_KINDS; what++) {
		struct write write;
		if (!plan->write[what])
			continue;
		agreement_writing(a, what);
		write_build(&write, &stage->view, what, stage->config.task, plan, &details);
		if (what == WRITE_SAVED) /* nobody stays here to see whether it was the last one */
			write_news(&write.transaction, &stage->view.attempt, true);
		enum agreement_outcome outcome = write_carry_out(&write, stage->store, err);
		agreement_wrote(a, what, write.round, outcome, true, clock_now());
		write_release(&write);
		*wrote = true;
		if (outcome == OUTCOME_UNKNOWN)
			return STATUS_TEMPORARY;
	}
	return STATUS_OK;
}

/* One pass over what is wanted. *again: something was done, ask again at once. */
static enum status advance(
	struct stage *stage, struct agreement_plan *plan, bool *again, struct error *err)
{
	struct agreement *a = &stage->agreement;
	int64_t now = clock_now();
	enum status status = STATUS_OK;
	bool wrote = false;
	*again = false;
	agreement_next(a, now, plan);
	if (!board_same_hold(&plan->hold, &a->told)) {
		status = board_tell(&stage->board, &plan->hold, err);
		agreement_told(a, &plan->hold, now);
		*again = true;
	}
	if (status == STATUS_OK && plan->read_board <= now) {
		struct board_step step;
		status = board_read_step(&stage->board, &step, err);
		if (status == STATUS_OK)
			agreement_read(a, step.started, step.step, step.next, now);
		*again = true;
	}
	if (status == STATUS_OK)
		status = carry_out(stage, plan, &wrote, err);
	if (status == STATUS_OK && wrote) {
		status = refresh(stage, err);
		if (status == STATUS_OK)
			agreement_saw(a, clock_now());
		*again = true;
	}
	return status;
}

static enum status wait_for_change(
	struct stage *stage, const struct agreement_plan *plan, int64_t deadline, struct error *err)
{
	store_revision revision;
	uint64_t saved;
	int64_t now = clock_now();
	int64_t until = now + (stage->board.watch < 0 ? SAVED_EVERY : 15000);
	const int64_t ends[] = {plan->wake, plan->look, plan->read_board, deadline};
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (ends[i] < until)
			until = ends[i];
	enum status status = store_wait(stage->store, stage->view.attempt.prefix,
		stage->view.revision, until, stage->board.watch, &revision, err);
	if (status == STATUS_NO) {
		board_drain(&stage->board);
	} else if (status == STATUS_OK || status == STATUS_TIMEOUT) {
		status = refresh(stage, err);
		if (status == STATUS_OK)
			agreement_saw(&stage->agreement, clock_now());
	}
	if (board_read_saved(&stage->board, &saved, NULL, NULL) == STATUS_OK) {
		measure_save(stage, saved);
		agreement_saved(&stage->agreement, saved);
	}
	return status == STATUS_NO ? STATUS_OK : status;
}

/* Nothing more will come of this goal; the error says why. */
static enum status give_up(
	struct stage *stage, const struct agreement_plan *plan, struct error *err)
{
	const struct agreement *a = &stage->agreement;
	const struct view *view = &stage->view;
	const char *run = view->attempt.run;
	if (a->told.order == ORDER_LEAVE) {
		stage->leave = a->told.code;
		return error_set(err, STATUS_NO,
			"run %s: the training process was told to leave with %d", run,
			a->told.code);
	}
	if (plan->end_command && a->code == CODE_BROKEN)
		return error_set(err, STATUS_BROKEN, "run %s: attempt %llu is broken: %s", run,
			(unsigned long long)view->attempt.number,
			*view->seal_text ? view->seal_text : view->seal);
	if (plan->end_command) {
		stage->leave = a->code;
		return error_set(err, STATUS_NO,
			"run %s: %s; end the training process and leave with %d", run,
			view->agreement.decided && view->agreement.decision.kind == KIND_NONE
				? "no task has begun to train, so there is nothing to save"
				: "it did not save in time",
			a->code);
	}
	if (view->agreement.round == 0)
		return error_set(err, STATUS_NO,
			"run %s: nothing is claimed, and no checkpoint is asked for", run);
	if (a->told.order == ORDER_RUN && view->agreement.decided && !view->agreement.claimed)
		return error_set(err, STATUS_NO,
			"run %s: this task has no part in the checkpoint of step %llu", run,
			(unsigned long long)view->agreement.decision.step);
	if (board_vanished(&stage->board))
		return error_set(err, STATUS_NO, "the board %s is gone", stage->board.path);
	if (kill(stage->board.agent, 0) < 0 && errno == ESRCH) {
		stage->leave = CODE_PREEMPTED;
		return error_set(err, STATUS_NO,
			"process %d, which stands behind the board, is gone",
			(int)stage->board.agent);
	}
	return STATUS_OK;
}

/* For whoever shares out a grace period next; not knowing it is no failure. */
static void remember_save(const struct stage *stage)
{
	struct error unused;
	if (stage->save_time > stage->view.agreement.longest_save)
		(void)remembered_add(
			stage->store, stage->view.attempt.run, stage->save_time, NULL, &unused);
}

static enum status run_until(struct stage *stage, enum stage_goal goal, int64_t deadline,
	void (*progress)(const struct stage *stage), struct error *err)
{
	for (;;) {
		struct agreement_plan plan = {0};
		bool again = false;
		enum status status = STATUS_OK;
		/* By an earlier call: then the training process is not to be held once more. */
		if (reached(stage, goal))
			return STATUS_OK;
		/* What was told to leave before us is to be told nothing else. */
		if (stage->agreement.told.order != ORDER_LEAVE)
			status = advance(stage, &plan, &again, err);
		if (progress)
			progress(stage);
		if (status == STATUS_OK && reached(stage, goal))
			return STATUS_OK;
		enum status end =
			status == STATUS_OK && again ? STATUS_OK : give_up(stage, &plan, err);
		if (end != STATUS_OK)
			return end;
		if (clock_now() >= deadline)
			return status != STATUS_OK ? status
						   : error_set(err, STATUS_TIMEOUT,
							     "run %s: no agreement in time",
							     stage->view.attempt.run);
		if (status == STATUS_OK && !again)
			status = wait_for_change(stage, &plan, deadline, err);
		if (status == STATUS_DAMAGED || status == STATUS_PERMISSION)
			return status;
		if (status != STATUS_OK)
			clock_sleep_until(clock_after(clock_jitter(200)));
	}
}

enum status stage_run(struct stage *stage, enum stage_goal goal, int64_t deadline,
	void (*progress)(const struct stage *stage), struct error *err)
{
	enum status status = run_until(stage, goal, deadline, progress, err);
	if (status == STATUS_OK)
		remember_save(stage);
	return status;
}

void stage_count_saves(const struct view *view, uint64_t *saved, uint64_t *members)
{
	*saved = *members = 0;
	for (uint64_t i = 0; i < view->attempt.tasks; i++) {
		if (!view->agreement.peers[i].member)
			continue;
		++*members;
		*saved += view->agreement.peers[i].saved;
	}
}

/* ---- Without a board ---- */

/* The group fell apart: nobody agrees on anything any more. */
static enum status check_broken(const struct view *view, struct error *err)
{
	if (!view->agreement.broken || view->agreement.claimed)
		return STATUS_OK;
	return error_set(err, STATUS_BROKEN, "run %s: attempt %llu is broken: %s",
		view->attempt.run, (unsigned long long)view->attempt.number,
		*view->seal_text ? view->seal_text : view->seal);
}

/* Given up by the others: whatever it saves now belongs to no checkpoint. */
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
 * The training process itself is asking, at its boundary: a board that stands at `at`. It can stop
 * there, so that is the first boundary it reports, unless its stride would then be told wrongly.
 */
static enum status report_and_wait(struct store *store, struct view *view,
	const struct agreement_config *config, uint64_t at, uint64_t next, int64_t deadline,
	struct error *err)
{
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
		store_revision revision;
		bool wrote = false;
		enum status status = check_broken(view, err);
		if (status == STATUS_OK)
			status = check_dead(view, config->task, err);
		if (status != STATUS_OK)
			return status;
		now = clock_now();
		if (now >= deadline)
			return error_set(err, STATUS_TIMEOUT, "run %s: no agreement in time",
				view->attempt.run);
		agreement_next(&a, now, &plan);
		/* A decision that cannot be read is healed by another round. */
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
			       : store_wait(store, view->attempt.prefix, view->revision,
					 until < deadline ? until : deadline, -1, &revision, err);
		if (status == STATUS_OK || status == STATUS_TIMEOUT)
			status = view_refresh(view, store, err);
		if (status != STATUS_OK)
			return status;
		agreement_saw(&a, clock_now());
	}
	return STATUS_OK;
}

enum status stage_ask_at(struct store *store, struct view *view, uint64_t task, uint64_t at,
	uint64_t next, const struct agreement_config *config, int64_t deadline,
	struct stage_answer *answer, struct error *err)
{
	*answer = (struct stage_answer){.kind = KIND_NONE};
	enum status status = view_refresh(view, store, err);
	if (status == STATUS_OK)
		status = check_broken(view, err);
	if (status == STATUS_OK)
		status = check_dead(view, task, err);
	if (status == STATUS_OK && view->agreement.round && !view->agreement.decided)
		status = report_and_wait(store, view, config, at, next, deadline, err);
	if (status == STATUS_NO && view->agreement.peers[task].dead)
		answer->leave = agreement_stops(&view->agreement) ? CODE_DECIDED : CODE_PREEMPTED;
	if (status != STATUS_OK || view->agreement.round == 0)
		return status;
	const struct agreement_decision *decision = &view->agreement.decision;
	answer->kind = decision->kind;
	if (decision->kind == KIND_NONE) /* the others leave without a save; ours is all there is */
		answer->save = view->agreement.claimed;
	else
		answer->save = decision->kind == KIND_EACH || at >= decision->step;
	answer->save &= !view->agreement.peers[task].saved;
	return STATUS_OK;
}

/* Said by the training process itself: it has saved. */
static enum status report_saved(
	struct store *store, struct view *view, uint64_t task, uint64_t at, struct error *err)
{
	const struct agreement_view *a = &view->agreement;
	struct write write;
	struct agreement_plan plan = {.saved_step = at};
	if (!a->decided)
		return error_set(err, STATUS_NO, "run %s: no step is agreed on", view->attempt.run);
	if (a->peers[task].saved && a->peers[task].saved_step == at)
		return STATUS_OK;
	bool common = a->decision.kind == KIND_SAVE || a->decision.kind == KIND_EXIT;
	if (common && at < a->decision.step)
		return error_set(err, STATUS_NO, "run %s: the agreed step is %llu, not %llu",
			view->attempt.run, (unsigned long long)a->decision.step,
			(unsigned long long)at);
	plan.write[WRITE_SAVED] = a->round;
	write_build(&write, view, WRITE_SAVED, task, &plan, &(struct write_details){0});
	/* Nobody stays here to see whether it was the last one. */
	write_news(&write.transaction, &view->attempt, true);
	enum agreement_outcome outcome = write_carry_out(&write, store, err);
	write_release(&write);
	if (outcome == OUTCOME_REFUSED)
		return error_set(err, STATUS_NO, "run %s: task %llu was declared dead",
			view->attempt.run, (unsigned long long)task);
	return outcome == OUTCOME_DONE ? view_refresh(view, store, err) : STATUS_TEMPORARY;
}

/*
 * What comes after the save: STATUS_OK: run on; STATUS_NO: leave with *leave, or where that is 0
 * run on, but no complete checkpoint came of it; STATUS_TIMEOUT: a task may still save.
 */
static enum status judge_saves(const struct view *view, int *leave, struct error *err)
{
	const struct agreement_view *a = &view->agreement;
	const char *run = view->attempt.run;
	bool common = a->decision.kind == KIND_SAVE || a->decision.kind == KIND_EXIT;
	bool complete = common, waiting = false;
	for (uint64_t i = 0; i < a->tasks; i++) {
		const struct agreement_peer *peer = &a->peers[i];
		bool right = peer->saved && peer->saved_step == a->decision.step;
		complete &= right || peer->left == REASON_COMPLETED;
		waiting |= peer->member && !peer->saved && agreement_counts(a, i);
	}
	if (waiting)
		return error_set(
			err, STATUS_TIMEOUT, "run %s: not everybody has saved in time", run);
	bool final = a->claimed && a->decision.kind != KIND_SAVE;
	if (final) {
		*leave = agreement_stops(a) ? CODE_DECIDED : complete ? CODE_SAVED : CODE_PREEMPTED;
		return error_set(err, STATUS_NO, "run %s: %s; leave with %d", run,
			complete ? "everybody has saved" : "not everybody has saved", *leave);
	}
	return complete ? STATUS_OK
			: error_set(err, STATUS_NO,
				  "run %s: not everybody has saved: no complete checkpoint", run);
}

enum status stage_saved_at(
	struct store *store, struct view *view, uint64_t task, uint64_t at, struct error *err)
{
	enum status status = view_refresh(view, store, err);
	return status == STATUS_OK ? report_saved(store, view, task, at, err) : status;
}

enum status stage_wait_for_saves(struct store *store, struct view *view, int64_t save_timeout,
	int64_t deadline, int *leave, struct error *err)
{
	int64_t limit = clock_after(save_timeout);
	store_revision revision;
	enum status status;
	*leave = 0;
	while ((status = judge_saves(view, leave, err)) == STATUS_TIMEOUT) {
		int64_t end = view->agreement.deadline == CLOCK_NEVER
				      ? limit
				      : view->agreement.deadline - 2000;
		end = end < deadline ? end : deadline;
		if (clock_now() >= end)
			return status;
		status = store_wait(
			store, view->attempt.prefix, view->revision, end, -1, &revision, err);
		if (status == STATUS_OK || status == STATUS_TIMEOUT)
			status = view_refresh(view, store, err);
		if (status != STATUS_OK)
			return status;
	}
	return status;
}
