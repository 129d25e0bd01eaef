/* SPDX-License-Identifier: MIT */
#include "run/budget.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct tally {
	uint64_t restarts, crashes, hangs;
	uint64_t no_progress; /* attempts without progress in a row, up to the last one */
	uint64_t in_a_row;    /* failures in a row, for the pause */
	bool any_saved;
	uint64_t best; /* the newest step that was ever saved */
};

static bool is_failure(const struct outcome *o)
{
	switch (o->cause) {
	case CAUSE_OPEN:
	case CAUSE_CRASHED:
	case CAUSE_HUNG:
	case CAUSE_LOST:
	case CAUSE_UNJOINED: return true;
	default: return false;
	}
}

/* Whether an attempt ended in a way that normally leaves a newer save, and saves are known. */
static bool owes_progress(const struct outcome *o)
{
	return o->cause != CAUSE_PREEMPTED && o->cause != CAUSE_UNJOINED && o->measured;
}

/* The newest step that attempt i saved: by its own record, or as the next one resumed from it. */
static bool saved_step(const struct outcome *past, size_t i, size_t count, uint64_t *step)
{
	bool known = past[i].has_saved;
	*step = known ? past[i].saved : 0;
	if (i + 1 < count && past[i + 1].has_resume && past[i + 1].resume > *step) {
		*step = past[i + 1].resume;
		known = true;
	}
	return known && *step > 0;
}

static void count_one(struct tally *tally, const struct outcome *o, bool progress)
{
	bool failure = is_failure(o);
	if (progress || o->lasted >= BUDGET_STEADY)
		tally->in_a_row = 0;
	if (progress)
		tally->no_progress = 0;
	else if (owes_progress(o))
		tally->no_progress++;
	tally->in_a_row += failure;
	tally->restarts += failure;
	tally->crashes += o->cause == CAUSE_CRASHED;
	tally->hangs += o->cause == CAUSE_HUNG;
}

static struct tally count_all(const struct outcome *past, size_t count)
{
	struct tally tally = {0};
	for (size_t i = 0; i < count; i++) {
		uint64_t step;
		/* The step that attempt i resumed from was saved earlier. */
		if (past[i].has_resume && past[i].resume > tally.best) {
			tally.best = past[i].resume;
			tally.any_saved = true;
		}
		bool known = saved_step(past, i, count, &step);
		bool progress = known && (!tally.any_saved || step > tally.best);
		count_one(&tally, &past[i], progress);
		if (progress) {
			tally.best = step;
			tally.any_saved = true;
		}
		/* A user has started the run again: count from there, because it may be a different
		 * training. */
		bool over = past[i].refused || past[i].cause == CAUSE_COMPLETED;
		if (over && i + 1 < count)
			tally = (struct tally){0};
	}
	return tally;
}

uint64_t budget_failed_from(const struct outcome *past, size_t count, uint64_t step, uint64_t from)
{
	uint64_t failed = 0;
	while (count > 0) {
		const struct outcome *o = &past[--count];
		if (!o->has_resume || o->resume != step || o->from != from)
			break;
		failed += is_failure(o) && o->cause != CAUSE_OPEN;
	}
	return failed;
}

static int64_t pause_of(
	const struct tally *tally, const struct budget_limits *limits, uint64_t draw)
{
	int64_t ceiling = limits->pause;
	for (uint64_t n = 1; n < tally->in_a_row && ceiling < limits->longest_pause; n++)
		ceiling *= 2;
	if (ceiling > limits->longest_pause)
		ceiling = limits->longest_pause;
	return ceiling > 0 ? 1 + (int64_t)(draw % (uint64_t)ceiling) : 0;
}

static void refuse(struct budget_decision *decision, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void refuse(struct budget_decision *decision, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(decision->why, sizeof(decision->why), format, arguments);
	va_end(arguments);
	decision->again = false;
	decision->decided = true;
	decision->pause = 0;
}

static const char *verb_of(enum outcome_cause cause)
{
	switch (cause) {
	case CAUSE_CRASHED: return "crashed";
	case CAUSE_HUNG: return "hung";
	case CAUSE_UNJOINED: return "did not get all its tasks";
	default: return "lost a task";
	}
}

/* Word the reason to run again after a failure within the budgets. */
static void allow(const struct outcome *last, const struct tally *tally,
	const struct budget_limits *limits, struct budget_decision *decision)
{
	char which[64] = "";
	unsigned long long attempt = last->attempt;
	if (last->cause == CAUSE_CRASHED)
		snprintf(which, sizeof(which), ", %llu of %llu", (unsigned long long)tally->crashes,
			(unsigned long long)limits->crashes);
	else if (last->cause == CAUSE_HUNG)
		snprintf(which, sizeof(which), ", %llu of %llu", (unsigned long long)tally->hangs,
			(unsigned long long)limits->hangs);
	snprintf(decision->why, sizeof(decision->why), "attempt %llu %s%s%s%s", attempt,
		verb_of(last->cause), which, *last->text ? ": " : "", last->text);
}

static void decide_failure(const struct outcome *last, const struct tally *tally,
	const struct budget_limits *limits, struct budget_decision *decision)
{
	const char *colon = *last->text ? ": " : "";
	unsigned long long restarts = tally->restarts;
	allow(last, tally, limits, decision);
	if (last->cause == CAUSE_CRASHED && tally->crashes > limits->crashes)
		refuse(decision, "%llu crashes, %llu allowed (--max-crashes)%s%s",
			(unsigned long long)tally->crashes, (unsigned long long)limits->crashes,
			colon, last->text);
	else if (last->cause == CAUSE_HUNG && tally->hangs > limits->hangs)
		refuse(decision, "%llu hangs, %llu allowed (--max-hangs)%s%s",
			(unsigned long long)tally->hangs, (unsigned long long)limits->hangs, colon,
			last->text);
	else if (tally->restarts > limits->restarts)
		refuse(decision, "%llu failures, %llu restarts allowed (--restarts)%s%s", restarts,
			(unsigned long long)limits->restarts, colon, last->text);
}

static void decide_progress(const struct outcome *last, const struct tally *tally,
	const struct budget_limits *limits, struct budget_decision *decision)
{
	char step[64] = "no step was ever saved";
	if (tally->no_progress <= limits->no_progress)
		return;
	if (tally->any_saved)
		snprintf(step, sizeof(step), "the newest saved step is still %llu",
			(unsigned long long)tally->best);
	refuse(decision, "no progress in %llu attempts, %llu allowed (--max-no-progress): %s%s%s",
		(unsigned long long)tally->no_progress, (unsigned long long)limits->no_progress,
		step, *last->text ? "; " : "", last->text);
}

void budget_decide(const struct outcome *past, size_t count, const struct budget_limits *limits,
	uint64_t draw, struct budget_decision *decision)
{
	const struct outcome *last = &past[count - 1];
	struct tally tally = count_all(past, count);
	unsigned long long attempt = last->attempt;
	*decision = (struct budget_decision){.again = true};
	if (last->cause == CAUSE_COMPLETED) {
		decision->again = false;
		snprintf(
			decision->why, sizeof(decision->why), "attempt %llu has finished", attempt);
	} else if (last->cause == CAUSE_LEFT) {
		decision->again = false;
		snprintf(decision->why, sizeof(decision->why),
			"the tasks of attempt %llu have left, and said no exit code", attempt);
	} else if (last->cause == CAUSE_STOPPED) {
		refuse(decision, "attempt %llu was asked to stop (preempt-claim --then stop)",
			attempt);
	} else if (last->refused) {
		refuse(decision, "%s", last->why);
	} else if (last->cause == CAUSE_PREEMPTED || last->cause == CAUSE_UNSAVED) {
		snprintf(decision->why, sizeof(decision->why), "attempt %llu was preempted%s",
			attempt,
			last->cause == CAUSE_UNSAVED ? " without a new complete checkpoint" : "");
		decide_progress(last, &tally, limits, decision);
	} else {
		decision->pause = pause_of(&tally, limits, draw);
		decide_failure(last, &tally, limits, decision);
		if (decision->again)
			decide_progress(last, &tally, limits, decision);
	}
}
