/* SPDX-License-Identifier: MIT */
#include "status/timeline_of.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/xalloc.h"

/* A lane that is being made: its next span begins at `at`. */
struct lane {
	struct timeline_attempt *attempt;
	uint64_t task;
	int64_t at;
};

static void add_span(struct lane *lane, enum timeline_phase phase, int64_t to)
{
	if (to <= lane->at)
		return;
	lane->attempt->spans[lane->attempt->span_count++] =
		(struct timeline_span){phase, lane->task, lane->at, to};
	lane->at = to;
}

/* Add an event. If `at` is before lane->at, use lane->at. step 0: the event has no step. */
static void add_mark(struct lane *lane, enum timeline_event event, int64_t at, uint64_t step)
{
	lane->attempt->marks[lane->attempt->mark_count++] = (struct timeline_mark){
		event, lane->task, clock_later(at, lane->at), step, step != 0};
}

/* When this event of a round was written; 0: it was not. */
static int64_t round_event(const struct run_status *status, enum mark_kind kind, uint64_t round)
{
	for (size_t i = status->mark_count; i-- > 0;)
		if (status->marks[i].kind == kind && status->marks[i].round == round)
			return status->marks[i].utc;
	return 0;
}

/* Draw what an event of this task ends, and return what begins with it. phase: what went on. */
static enum timeline_phase add_event(struct lane *lane, const struct run_status *status,
	const struct run_mark *mark, enum timeline_phase phase)
{
	const struct agreement_view *a = &status->view.agreement;
	const bool last = mark->round == a->round && a->decision.kind != KIND_SAVE;
	int64_t decided;
	switch (mark->kind) {
	case MARK_REPORT:
		add_span(lane, phase,
			clock_later(mark->utc, round_event(status, MARK_ROUND, mark->round)));
		add_mark(lane, EVENT_REPORT, mark->utc, mark->step);
		decided = round_event(status, MARK_DECISION, mark->round);
		add_span(lane, PHASE_HOLD, decided);
		return decided ? PHASE_REACH : PHASE_HOLD;
	case MARK_ACK: add_mark(lane, EVENT_ACK, mark->utc, 0); return phase;
	case MARK_SAVED:
		add_span(lane, phase, mark->utc - mark->took);
		add_span(lane, PHASE_SAVE, mark->utc);
		add_mark(lane, EVENT_SAVED, mark->utc, mark->step);
		return last ? PHASE_STAY : PHASE_TRAIN;
	default: return phase;
	}
}

/* marks: those of this task, and behind them others. Returns how many are of this task. */
static size_t add_lane(struct timeline_attempt *attempt, const struct run_status *status,
	uint64_t i, const struct run_mark *marks)
{
	const struct run_task *task = &status->tasks[i];
	struct lane lane = {attempt, i, task->joined};
	enum timeline_phase phase = PHASE_TRAIN;
	size_t count = 0;
	attempt->lanes[i] = (struct timeline_lane){status->view.members[i].agent.host,
		task_state_word(task->state), task_state_is_bad(task->state)};
	for (; marks[count].task == i; count++)
		if (task->joined)
			phase = add_event(&lane, status, &marks[count], phase);
	if (!task->joined)
		return count;
	add_span(&lane, phase, task->left ? task->left : task->dead ? task->dead : attempt->ended);
	if (task->left)
		add_mark(&lane, EVENT_EXIT, task->left, 0);
	else if (task->dead)
		add_mark(&lane, EVENT_DEAD, task->dead, 0);
	return count;
}

static int by_task(const void *a, const void *b)
{
	const struct run_mark *x = a, *y = b;
	if (x->task != y->task)
		return x->task < y->task ? -1 : 1;
	if (x->utc != y->utc)
		return x->utc < y->utc ? -1 : 1;
	return (int)x->kind - (int)y->kind;
}

/* Draw all lanes. The marks of the run, whose task is MARK_OF_RUN, come last. */
static void add_lanes(struct timeline_attempt *attempt, const struct run_status *status)
{
	struct run_mark *marks = xcalloc(status->mark_count + 1, sizeof(*marks));
	memcpy(marks, status->marks, status->mark_count * sizeof(*marks));
	marks[status->mark_count].task = MARK_OF_RUN;
	qsort(marks, status->mark_count, sizeof(*marks), by_task);
	for (uint64_t i = 0, at = 0; i < attempt->tasks; i++)
		at += add_lane(attempt, status, i, marks + at);
	free(marks);
}

static void add_line(struct timeline_attempt *attempt, const struct run_mark *mark)
{
	struct timeline_line *line = &attempt->lines[attempt->line_count];
	static const char *const words[MARK_KINDS] = {
		[MARK_CLAIM] = "claim", [MARK_ALL_SAVED] = "all saved", [MARK_CLOSED] = "closed"};
	if (mark->kind == MARK_ROUND)
		snprintf(line->label, sizeof(line->label), "round %" PRIu64, mark->round);
	else if (mark->kind == MARK_DECISION && mark->step)
		snprintf(line->label, sizeof(line->label), "agreed: step %" PRIu64, mark->step);
	else if (mark->kind == MARK_DECISION)
		snprintf(line->label, sizeof(line->label), "agreed");
	else if (words[mark->kind])
		snprintf(line->label, sizeof(line->label), "%s", words[mark->kind]);
	else
		return;
	/* A claim and the round that it opened are one event: do not label the round. */
	if (mark->kind == MARK_ROUND && attempt->line_count && line[-1].at == mark->utc)
		return;
	line->at = mark->utc;
	attempt->line_count++;
}

static void add_why(struct timeline_attempt *attempt, const struct view *view)
{
	const struct view_claim *claim = &view->claim;
	char who[64] = "from outside";
	if (!claim->outside)
		snprintf(who, sizeof(who), "by task %" PRIu64, claim->task);
	if (view->agreement.claimed)
		snprintf(attempt->why, sizeof(attempt->why), "claimed %s on %s: %s%s%s", who,
			claim->host, claim->source, *claim->reason ? ": " : "", claim->reason);
	else
		snprintf(attempt->why, sizeof(attempt->why), "%s", view->seal_text);
}

void timeline_of(const struct run_status *status, int64_t utc, struct timeline_attempt *attempt)
{
	const struct view *view = &status->view;
	const struct agreement_view *a = &view->agreement;
	const uint64_t tasks = view->attempt.tasks;
	const size_t marks = status->mark_count;
	const int64_t last = marks ? status->marks[marks - 1].utc : 0;
	*attempt = (struct timeline_attempt){.run = view->attempt.run,
		.word = run_status_word(status),
		.number = view->attempt.number,
		.tasks = tasks,
		.agreed = a->decided &&
			  (a->decision.kind == KIND_EXIT || a->decision.kind == KIND_SAVE),
		.step = a->decision.step,
		.began = status->opened,
		.deadline = status->deadline_utc,
		.lanes = xcalloc(tasks + 1, sizeof(struct timeline_lane)),
		.spans = xcalloc(2 * marks + tasks + 1, sizeof(struct timeline_span)),
		.marks = xcalloc(marks + tasks + 1, sizeof(struct timeline_mark)),
		.lines = xcalloc(marks + 1, sizeof(struct timeline_line))};
	if (!attempt->began)
		attempt->began = marks ? status->marks[0].utc : utc;
	attempt->ended = clock_later(a->closed ? last : utc, attempt->began);
	attempt->zoom_from = view->claim.utc ? view->claim.utc : status->round_opened;
	/* Without a claim the round is a checkpoint on demand, which ends with the last mark. */
	attempt->zoom_to = a->claimed ? attempt->ended : last;
	if (!attempt->zoom_from || attempt->zoom_to <= attempt->zoom_from)
		attempt->zoom_from = attempt->zoom_to = 0;
	/* Phases count from the opening of the newest round; for round 1, from its claim if any. */
	attempt->called = a->round > 1 ? status->round_opened : attempt->zoom_from;
	add_why(attempt, view);
	add_lanes(attempt, status);
	for (size_t i = 0; i < marks; i++)
		add_line(attempt, &status->marks[i]);
}

void timeline_release(struct timeline_attempt *attempt)
{
	free(attempt->lanes);
	free(attempt->spans);
	free(attempt->marks);
	free(attempt->lines);
	*attempt = (struct timeline_attempt){0};
}
