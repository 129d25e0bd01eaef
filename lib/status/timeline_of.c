/* SPDX-License-Identifier: MIT */
#include "status/timeline_of.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

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

/* When the newest round was decided, and when the last mark was written; 0: none. */
struct round_times {
	int64_t decided, last;
};

static void add_lane(struct timeline_attempt *attempt, const struct run_status *status,
	const struct round_times *round, uint64_t i)
{
	const struct run_task *task = &status->tasks[i];
	const struct agreement_view *a = &status->view.agreement;
	const struct agreement_peer *peer = &a->peers[i];
	struct lane lane = {attempt, i, task->joined};
	attempt->lanes[i] = (struct timeline_lane){status->view.members[i].agent.host,
		task_state_word(task->state), task_state_is_bad(task->state)};
	if (!task->joined)
		return;
	const int64_t end = task->left ? task->left : task->dead ? task->dead : attempt->ended;
	enum timeline_phase next = PHASE_TRAIN;
	if (task->reported) {
		add_span(&lane, next, clock_later(task->reported, status->round_opened));
		add_mark(&lane, EVENT_REPORT, task->reported, peer->next);
		next = PHASE_HOLD;
	}
	if (round->decided && task->reported) {
		add_span(&lane, next, round->decided);
		next = PHASE_REACH;
	}
	if (task->acked && (!task->saved || task->acked < task->saved - task->took))
		add_mark(&lane, EVENT_ACK, task->acked, 0);
	if (task->saved) {
		add_span(&lane, next, task->saved - task->took);
		if (task->acked && task->acked >= task->saved - task->took)
			add_mark(&lane, EVENT_ACK, task->acked, 0);
		add_span(&lane, PHASE_SAVE, task->saved);
		add_mark(&lane, EVENT_SAVED, task->saved, peer->saved_step);
		next = a->decision.kind == KIND_SAVE ? PHASE_TRAIN : PHASE_STAY;
	}
	add_span(&lane, next, end);
	if (task->left)
		add_mark(&lane, EVENT_EXIT, task->left, 0);
	else if (task->dead)
		add_mark(&lane, EVENT_DEAD, task->dead, 0);
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

static void find_round(const struct run_status *status, struct round_times *round)
{
	const uint64_t newest = status->view.agreement.round;
	for (size_t i = 0; i < status->mark_count; i++) {
		const struct run_mark *mark = &status->marks[i];
		round->last = clock_later(round->last, mark->utc);
		if (mark->kind == MARK_DECISION && mark->round == newest)
			round->decided = mark->utc;
	}
}

void timeline_of(const struct run_status *status, int64_t utc, struct timeline_attempt *attempt)
{
	const struct view *view = &status->view;
	const struct agreement_view *a = &view->agreement;
	const uint64_t tasks = view->attempt.tasks;
	struct round_times round = {0};
	find_round(status, &round);
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
		.spans = xcalloc(5 * tasks + 1, sizeof(struct timeline_span)),
		.marks = xcalloc(4 * tasks + 1, sizeof(struct timeline_mark)),
		.lines = xcalloc(status->mark_count + 1, sizeof(struct timeline_line))};
	if (!attempt->began)
		attempt->began = status->mark_count ? status->marks[0].utc : utc;
	attempt->ended = clock_later(a->closed ? round.last : utc, attempt->began);
	attempt->zoom_from = view->claim.utc ? view->claim.utc : status->round_opened;
	/* Without a claim the round is a checkpoint on demand, which ends with the last mark. */
	attempt->zoom_to = a->claimed ? attempt->ended : round.last;
	if (!attempt->zoom_from || attempt->zoom_to <= attempt->zoom_from)
		attempt->zoom_from = attempt->zoom_to = 0;
	/* Phases count from the opening of the newest round; for round 1, from its claim if any. */
	attempt->called = a->round > 1 ? status->round_opened : attempt->zoom_from;
	add_why(attempt, view);
	for (uint64_t i = 0; i < tasks; i++)
		add_lane(attempt, status, &round, i);
	for (size_t i = 0; i < status->mark_count; i++)
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
