/* SPDX-License-Identifier: MIT */
#include "run/outcome.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/json_fields.h"

static const char *const words[CAUSE_KINDS + 1] = {[CAUSE_OPEN] = "open",
	[CAUSE_COMPLETED] = "completed",
	[CAUSE_STOPPED] = "stopped",
	[CAUSE_PREEMPTED] = "preempted",
	[CAUSE_UNSAVED] = "unsaved",
	[CAUSE_CRASHED] = "crashed",
	[CAUSE_HUNG] = "hung",
	[CAUSE_LOST] = "lost",
	[CAUSE_UNJOINED] = "unjoined",
	[CAUSE_LEFT] = "left"};

const char *outcome_word(enum outcome_cause cause)
{
	return words[cause];
}

/* Whether a preempted attempt has its checkpoint, or had nothing yet that could be saved. */
static bool has_its_checkpoint(const struct view *view, const struct outcome_finding *finding)
{
	bool any = false, only_unstarted = true;
	if (finding && view->resume_known)
		return finding->newer;
	if (view->agreement.has_complete && !view->resume_known)
		return true;
	for (uint64_t i = 0; i < view->attempt.tasks; i++) {
		const struct agreement_peer *peer = &view->agreement.peers[i];
		if (peer->left == REASON_SAVED && !view->resume_known)
			return true; /* this task has seen that the checkpoint is complete */
		if (!view_has_joined(view, i))
			continue;
		any = true;
		only_unstarted &=
			peer->left == REASON_PREEMPTED && view->members[i].left_code == CODE_SAVED;
	}
	return any && only_unstarted;
}

/* Whether each task has finished, or has left and did not say how. */
static bool all_have_left(const struct view *view)
{
	for (uint64_t i = 0; i < view->attempt.tasks; i++) {
		enum agreement_reason left = view->agreement.peers[i].left;
		if (left != REASON_COMPLETED && left != REASON_LEFT)
			return false;
	}
	return true;
}

static enum outcome_cause cause_of(const struct view *view, const struct outcome_finding *finding)
{
	/* A program that saves on a signal ends with 0 even if it has not finished. */
	bool only_stopped = view->agreement.claimed && finding && !finding->finished;
	if (view_all_completed(view) && !only_stopped)
		return CAUSE_COMPLETED;
	if (agreement_stops(&view->agreement))
		return CAUSE_STOPPED;
	if (view->agreement.claimed)
		return has_its_checkpoint(view, finding) ? CAUSE_PREEMPTED : CAUSE_UNSAVED;
	if (!strcmp(view->seal, "hung"))
		return CAUSE_HUNG;
	if (view->error.present)
		return CAUSE_CRASHED;
	if (!strcmp(view->seal, "timeout"))
		return CAUSE_UNJOINED;
	if (!*view->seal && all_have_left(view))
		return CAUSE_LEFT;
	return *view->seal || view->agreement.closed ? CAUSE_LOST : CAUSE_OPEN;
}

static void say(const struct view *view, struct outcome *outcome)
{
	const struct view_error *error = &view->error;
	if (outcome->cause == CAUSE_CRASHED)
		snprintf(outcome->text, sizeof(outcome->text),
			"task %llu failed on %s with %d%s%.300s", (unsigned long long)error->task,
			error->host, error->code, *error->line ? ": " : "", error->line);
	else if (outcome->cause == CAUSE_HUNG || outcome->cause == CAUSE_LOST ||
		 outcome->cause == CAUSE_UNJOINED)
		snprintf(outcome->text, sizeof(outcome->text), "%s", view->seal_text);
}

/*
 * What was saved, where no checkpoints are searched: the checkpoint that a record calls complete,
 * or the last saves of all tasks that must save, if they are of one step. If only some have saved,
 * or at different steps, the progress is not known; it is none if all were asked for one save.
 */
static void take_saves(const struct view *view, struct outcome *outcome)
{
	uint64_t tasks = view->chief_saves ? 1 : view->attempt.tasks, step = 0, saved = 0;
	bool all_left = true, same = true;
	if (view->agreement.has_complete) {
		outcome->measured = outcome->has_saved = true;
		outcome->saved = view->agreement.complete_step;
		return;
	}
	for (uint64_t i = 0; i < tasks; i++) {
		const struct view_member *member = &view->members[i];
		all_left &= view->agreement.peers[i].left != REASON_NONE;
		if (!member->left_saved)
			continue;
		same &= saved == 0 || member->left_saved_step == step;
		step = member->left_saved_step;
		saved++;
	}
	outcome->has_saved = same && saved == tasks;
	outcome->saved = outcome->has_saved ? step : 0;
	if (saved && !outcome->has_saved && (!all_left || !view->agreement.claimed))
		outcome->measured = false;
}

void outcome_of_view(
	const struct view *view, const struct outcome_finding *finding, struct outcome *outcome)
{
	bool newer = finding && finding->newer;
	*outcome = (struct outcome){.attempt = view->attempt.number,
		.cause = cause_of(view, finding),
		.lasted = -1,
		.measured = view->resume_known,
		.has_saved = newer,
		.saved = newer ? finding->step : 0,
		.has_resume = view->resume_known,
		.resume = view->resume_step,
		.from = view->resume_known ? outcome_from(view->resume) : 0};
	if (outcome->cause == CAUSE_CRASHED)
		outcome->code = view->error.code;
	say(view, outcome);
	for (uint64_t i = 0; i < view->attempt.tasks; i++) {
		const struct view_member *member = &view->members[i];
		outcome->measured |= member->left_called;
		/* Clocks of machines differ: compare only times that one task wrote. */
		int64_t lasted = member->joined_utc ? member->newest_utc - member->joined_utc : -1;
		if (lasted > outcome->lasted)
			outcome->lasted = lasted;
	}
	if (!view->resume_known)
		take_saves(view, outcome);
}

uint64_t outcome_from(const char *path)
{
	return *path ? XXH64(path, strlen(path), 0) >> 1 | 1 : 0;
}

#define OUTCOME(member) JSON_MEMBER(struct outcome, member)
static const struct json_field fields[] = {
	{"cause", JSON_WORD, JSON_REQUIRED, OUTCOME(cause), .more = words},
	{"code", JSON_SIGNED, 0, OUTCOME(code), 1, 255},
	{"text", JSON_TEXT, 0, OUTCOME(text)},
	{"measured", JSON_BOOL, JSON_ALWAYS, OUTCOME(measured)},
	{"saved", JSON_UNSIGNED, 0, OUTCOME(saved), JSON_PRESENT(struct outcome, has_saved)},
	{"resume", JSON_UNSIGNED, 0, OUTCOME(resume), JSON_PRESENT(struct outcome, has_resume)},
	{"from", JSON_UNSIGNED, 0, OUTCOME(from)},
	{0},
};

void outcome_write(const struct outcome *outcome, struct json_object *closed)
{
	json_write_fields(fields, outcome, closed);
	if (outcome->lasted >= 0)
		json_put_signed(closed, "lasted_ms", outcome->lasted);
}

bool outcome_read(const struct json_object *closed, struct outcome *outcome)
{
	struct outcome found = {.lasted = -1};
	if (json_read_fields(fields, closed, &found, NULL) == JSON_UNUSABLE)
		return false;
	(void)json_get_time(closed, "lasted_ms", &found.lasted);
	/* A command that crashed did not end with 0. */
	if (found.cause != CAUSE_CRASHED)
		found.code = 0;
	else if (!found.code)
		found.code = 1;
	*outcome = found;
	return true;
}
