/* SPDX-License-Identifier: MIT */
#include "run/outcome.h"

#include <stdio.h>
#include <string.h>

static const char *const words[CAUSE_KINDS] = {[CAUSE_OPEN] = "open",
	[CAUSE_COMPLETED] = "completed",
	[CAUSE_STOPPED] = "stopped",
	[CAUSE_PREEMPTED] = "preempted",
	[CAUSE_UNSAVED] = "unsaved",
	[CAUSE_CRASHED] = "crashed",
	[CAUSE_HUNG] = "hung",
	[CAUSE_LOST] = "lost",
	[CAUSE_UNJOINED] = "unjoined"};

const char *outcome_word(enum outcome_cause cause)
{
	return words[cause];
}

/* Preempted: a checkpoint, or nothing that could have been in one. */
static bool has_its_checkpoint(const struct view *view, const struct outcome_finding *finding)
{
	bool any = false, only_unstarted = true;
	if (finding && view->resume_known)
		return finding->newer;
	for (uint64_t i = 0; i < view->attempt.tasks; i++) {
		const struct agreement_peer *peer = &view->agreement.peers[i];
		if (peer->left == REASON_SAVED && !view->resume_known)
			return true; /* it has seen that the checkpoint is complete */
		if (!view->members[i].joined)
			continue;
		any = true;
		only_unstarted &=
			peer->left == REASON_PREEMPTED && view->members[i].left_code == CODE_SAVED;
	}
	return any && only_unstarted;
}

static enum outcome_cause cause_of(const struct view *view, const struct outcome_finding *finding)
{
	/* A program that saves on a signal also ends with 0 where it has not finished. */
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
		.resume = view->resume_step};
	if (outcome->cause == CAUSE_CRASHED)
		outcome->code = view->error.code;
	say(view, outcome);
	for (uint64_t i = 0; i < view->attempt.tasks; i++) {
		const struct view_member *member = &view->members[i];
		const struct agreement_peer *peer = &view->agreement.peers[i];
		uint64_t step = 0;
		bool saved = !view->resume_known && (peer->saved || member->left_saved);
		if (peer->saved)
			step = peer->saved_step;
		if (member->left_saved && member->left_saved_step > step)
			step = member->left_saved_step;
		outcome->measured |= member->left_called || saved;
		outcome->has_saved |= saved;
		if (saved && step > outcome->saved)
			outcome->saved = step;
		/* Clocks of machines do not agree: only what one task wrote is compared. */
		int64_t lasted = member->joined_utc ? member->newest_utc - member->joined_utc : -1;
		if (lasted > outcome->lasted)
			outcome->lasted = lasted;
	}
}

void outcome_write(const struct outcome *outcome, struct json_object *closed)
{
	json_put_text(closed, "cause", words[outcome->cause]);
	if (outcome->cause == CAUSE_CRASHED)
		json_put_unsigned(closed, "code", (uint64_t)outcome->code);
	if (*outcome->text)
		json_put_text(closed, "text", outcome->text);
	if (outcome->lasted >= 0)
		json_put_signed(closed, "lasted_ms", outcome->lasted);
	json_put_bool(closed, "measured", outcome->measured);
	if (outcome->has_saved)
		json_put_unsigned(closed, "saved", outcome->saved);
	if (outcome->has_resume)
		json_put_unsigned(closed, "resume", outcome->resume);
}

bool outcome_read(const struct json_object *closed, struct outcome *outcome)
{
	struct outcome found = {.lasted = -1};
	const char *word;
	if (!json_get_text(closed, "cause", &word))
		return false;
	while (found.cause < CAUSE_KINDS && strcmp(words[found.cause], word))
		found.cause++;
	if (found.cause == CAUSE_KINDS)
		return false;
	/* One that crashed did not end with 0. */
	if (found.cause == CAUSE_CRASHED && !json_get_code(closed, "code", &found.code))
		found.code = 1;
	json_copy_text(closed, "text", found.text, sizeof(found.text));
	(void)json_get_time(closed, "lasted_ms", &found.lasted);
	(void)json_get_bool(closed, "measured", &found.measured);
	found.has_saved = json_get_unsigned(closed, "saved", &found.saved);
	found.has_resume = json_get_unsigned(closed, "resume", &found.resume);
	*outcome = found;
	return true;
}
