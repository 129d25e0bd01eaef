/* SPDX-License-Identifier: MIT */
#include "run/requeue_decision.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "proto/runs.h"
#include "run/attempt.h"

static bool means_again(int code)
{
	return code == CODE_SAVED || code == CODE_PREEMPTED || code == CODE_BROKEN;
}

static int code_of(const struct outcome *outcome)
{
	if (outcome->cause == CAUSE_PREEMPTED)
		return CODE_SAVED;
	return outcome->cause == CAUSE_UNSAVED ? CODE_PREEMPTED : CODE_BROKEN;
}

/* Whether a restart may help: not if the store refuses this program's options or is damaged. */
static bool may_pass(const struct error *missing)
{
	return missing && missing->status != STATUS_USAGE && missing->status != STATUS_DAMAGED;
}

void requeue_guess(const struct requeue_question *question, const struct error *missing,
	struct requeue_decision *requeue)
{
	struct budget_decision *decision = &requeue->decision;
	int code = question->code;
	bool failed = code > 0 && code != CODE_DECIDED;
	/* STATUS_TEMPORARY as an exit code (75): preempt-run could not ask the store. */
	bool again = means_again(code) || question->noticed || code == STATUS_TEMPORARY ||
		     (failed && may_pass(missing));
	const char *without = !missing			     ? ""
			      : missing->status == STATUS_NO ? ", and the tasks said none"
							     : ", and the store could not be asked";
	unsigned long long times = question->guesses + 1, most = question->limits->no_progress;
	requeue->code = code < 0 ? 0 : code;
	decision->again = again && times <= most;
	if (decision->again) {
		requeue->code = means_again(code)   ? code
				: question->noticed ? CODE_SAVED
						    : CODE_BROKEN;
		if (question->noticed)
			snprintf(decision->why, sizeof(decision->why), "a notice came%s", without);
		else
			snprintf(decision->why, sizeof(decision->why),
				"the exit code was %d%s, %llu of %llu", code, without, times, most);
	} else if (again) {
		decision->decided = true;
		requeue->code = CODE_DECIDED;
		snprintf(decision->why, sizeof(decision->why),
			"it ended with %d, but without a record of its attempts it is run again "
			"%llu times in a row at most (--max-no-progress)%s",
			code, most, without);
	} else if (code > 0) {
		snprintf(decision->why, sizeof(decision->why), "the exit code was %d%s", code,
			without);
	}
}

bool requeue_is_ours(const struct requeue_question *question, const struct attempt *attempt)
{
	const char *ours = question->launch, *theirs = attempt->launch;
	size_t length = strcspn(ours, "+"); /* the launch id of a job step begins with the job's */
	if (attempt->number <= question->before)
		return false;
	return !*ours || !*theirs ||
	       (length == strcspn(theirs, "+") && !strncmp(ours, theirs, length));
}

/*
 * The launcher's exit code may tell more than the store: the agents also know --done-if and
 * --checkpoints. If a task was lost at the end, the launcher's 0 means that this task, too, has
 * finished.
 */
static void take_hint(int code, struct outcome *last)
{
	if (code == STATUS_OK && (last->cause == CAUSE_LOST || last->cause == CAUSE_OPEN ||
					 last->cause == CAUSE_LEFT))
		last->cause = CAUSE_COMPLETED;
	if ((last->cause != CAUSE_COMPLETED && last->cause != CAUSE_LEFT) || !means_again(code))
		return;
	last->cause = code == CODE_SAVED       ? CAUSE_PREEMPTED
		      : code == CODE_PREEMPTED ? CAUSE_UNSAVED
					       : CAUSE_LOST;
}

static enum status decide_by_store(struct store *store, const struct requeue_question *question,
	struct requeue_decision *requeue, struct error *err)
{
	struct view view = {0};
	struct history history = {0};
	const struct attempt *attempt = &view.attempt;
	enum status status = attempt_view(store, question->run, 0, &view, err);
	bool is_ours = status == STATUS_OK && requeue_is_ours(question, attempt);
	if (status == STATUS_NO || (status == STATUS_OK && !is_ours)) {
		requeue_guess(question, NULL, requeue);
		status = STATUS_OK;
		goto out;
	}
	if (status == STATUS_OK)
		status = history_read(store, question->run, attempt->number, &history, err);
	if (status != STATUS_OK)
		goto out;
	struct outcome *last = &history.past[history.count - 1];
	struct budget_decision *decision = &requeue->decision;
	take_hint(question->code, last);
	requeue->outcome = *last;
	if (last->cause == CAUSE_LEFT) {
		struct error said_none = {.status = STATUS_NO};
		requeue_guess(question, &said_none, requeue);
		goto out;
	}
	budget_decide(history.past, history.count, question->limits,
		(uint64_t)clock_jitter(INT64_MAX / 2), decision);
	if (question->code == CODE_DECIDED && !decision->decided) {
		decision->again = false;
		decision->decided = true;
		snprintf(
			decision->why, sizeof(decision->why), "the exit code was %d", CODE_DECIDED);
	}
	requeue->known = true;
	requeue->by_signal = view.agreement.claimed && !view.claim.outside &&
			     !strcmp(view.claim.source, "signal:TERM");
	requeue->code = decision->decided    ? CODE_DECIDED
			: decision->again    ? code_of(last)
			: question->code < 0 ? 0
					     : question->code;
	if (decision->decided && question->record)
		(void)history_refuse(store, attempt, decision->why, &requeue->unrecorded);
out:
	view_release(&view);
	history_release(&history);
	return status;
}

enum status requeue_next_run(struct store *store, const struct requeue_question *question,
	char name[129], struct error *err)
{
	enum status status = *question->launch ? STATUS_OK : STATUS_NO;
	struct requeue_question any = *question;
	any.before = 0; /* it is of question->run */
	while (status == STATUS_OK) {
		struct attempt attempt;
		status = runs_next_name(store, *name ? name : NULL, name, err);
		if (status != STATUS_OK || !strcmp(name, question->run))
			continue;
		status = attempt_find(store, name, 0, &attempt, err);
		if (status == STATUS_OK && *attempt.launch && requeue_is_ours(&any, &attempt))
			return STATUS_OK;
		status = status == STATUS_NO ? STATUS_OK : status;
	}
	return status;
}

/*
 * Look at the other runs of this start of the job, too: it is run again if one of them is to, and
 * not if one refuses to. If the job ended with 0, only those that were preempted count: another may
 * be of a command that the job does without, or belong to another preempt-requeue.
 */
static enum status decide_others(struct store *store, const struct requeue_question *question,
	struct requeue_decision *requeue, struct error *err)
{
	char name[129] = "";
	enum status status;
	while ((status = requeue_next_run(store, question, name, err)) == STATUS_OK) {
		struct requeue_question other = *question;
		struct requeue_decision one = {0};
		other.run = name;
		other.before = 0;
		/* A code says how all runs ended, except that none is to run again. */
		other.code = question->code == CODE_DECIDED ? CODE_DECIDED : -1;
		status = decide_by_store(store, &other, &one, err);
		if (status != STATUS_OK)
			return status;
		enum outcome_cause cause = one.outcome.cause;
		bool counts =
			question->code != 0 || cause == CAUSE_PREEMPTED || cause == CAUSE_UNSAVED;
		if (!requeue->outcome.attempt)
			requeue->outcome = one.outcome;
		bool sure = requeue->known && requeue->decision.again;
		bool better = one.decision.again
				      ? !sure
				      : one.decision.decided && !requeue->decision.again &&
						!requeue->decision.decided;
		if (counts && better) {
			*requeue = one;
			snprintf(requeue->decision.why, sizeof(requeue->decision.why),
				"run %s: %.*s", name, (int)sizeof(requeue->decision.why) - 140,
				one.decision.why);
		}
	}
	return status == STATUS_NO ? STATUS_OK : status;
}

enum status requeue_decide(const struct requeue_question *question,
	struct requeue_decision *requeue, struct error *err)
{
	struct store *store = NULL;
	struct requeue_decision found = {0};
	enum status status = store_open(&store, question->store, 0, question->deadline, err);
	if (status == STATUS_OK) {
		status = decide_by_store(store, question, &found, err);
		if (status == STATUS_OK)
			status = decide_others(store, question, &found, err);
	} else if (status == STATUS_NO) {
		requeue_guess(question, NULL, &found);
		status = STATUS_OK;
	}
	store_close(store);
	if (status == STATUS_OK)
		*requeue = found;
	return status;
}
