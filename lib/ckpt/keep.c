/* SPDX-License-Identifier: MIT */
#include "ckpt/keep.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/xalloc.h"

__attribute__((format(printf, 3, 4))) static void decide(
	struct keep_decision *decision, bool keep, const char *format, ...)
{
	va_list arguments;
	*decision = (struct keep_decision){.keep = keep};
	va_start(arguments, format);
	vsnprintf(decision->why, sizeof(decision->why), format, arguments);
	va_end(arguments);
}

/* The input of the decision, and the decisions so far. */
struct keep_input {
	const struct keep_policy *policy;
	int64_t now; /* milliseconds since 1970 */
	const struct checkpoint *const *items;
	size_t count;
	struct keep_decision *decisions;
};

/* Keep item i, for a rule, or in any case (rule 0: no limit removes it). */
__attribute__((format(printf, 4, 5))) static void keep(
	const struct keep_input *input, size_t i, unsigned rule, const char *format, ...)
{
	struct keep_decision *decision = &input->decisions[i];
	size_t length = decision->keep ? strlen(decision->why) : 0;
	va_list arguments;
	va_start(arguments, format);
	if (length && length + 2 < sizeof(decision->why)) {
		strcpy(decision->why + length, ", ");
		length += 2;
	}
	vsnprintf(decision->why + length, sizeof(decision->why) - length, format, arguments);
	va_end(arguments);
	decision->must |= rule == 0 || (input->policy->must & rule) != 0;
	decision->rules |= rule;
	decision->keep = true;
}

static bool counts(const struct keep_input *input, size_t i)
{
	return input->items[i]->state == CHECKPOINT_COMPLETE;
}

/* a - b, without overflow. */
static int64_t later(int64_t a, int64_t b)
{
	int64_t difference;
	if (__builtin_sub_overflow(a, b, &difference))
		return a < b ? INT64_MIN : INT64_MAX;
	return difference;
}

/* The index of the complete one that was committed last; of equal times the highest step. */
static size_t committed_last(const struct keep_input *input)
{
	size_t last = input->count;
	for (size_t i = 0; i < input->count; i++)
		if (counts(input, i) &&
			(last == input->count || input->items[i]->utc >= input->items[last]->utc))
			last = i;
	return last;
}

/* Write a duration with one unit: "200m", not "3h 20m". */
static void span(char text[32], int64_t milliseconds)
{
	int64_t seconds = milliseconds / 1000;
	if (milliseconds % 1000)
		snprintf(text, 32, "%" PRId64 "ms", milliseconds);
	else if (seconds % 86400 == 0)
		snprintf(text, 32, "%" PRId64 "d", seconds / 86400);
	else if (seconds % 3600 == 0)
		snprintf(text, 32, "%" PRId64 "h", seconds / 3600);
	else if (seconds % 60 == 0)
		snprintf(text, 32, "%" PRId64 "m", seconds / 60);
	else
		snprintf(text, 32, "%" PRId64 "s", seconds);
}

static void keep_always(const struct keep_input *input)
{
	size_t last = committed_last(input);
	bool newest = true;
	for (size_t i = input->count; i-- > 0;) {
		if (counts(input, i) && newest)
			keep(input, i, 0, "the newest complete one");
		else if (i == last)
			keep(input, i, 0, "the one committed last");
		else if (input->items[i]->state == CHECKPOINT_FOREIGN)
			keep(input, i, 0, "not ours");
		else if (input->items[i]->state == CHECKPOINT_UNKNOWN)
			keep(input, i, 0, "could not be read");
		else if (input->items[i]->state == CHECKPOINT_UNPROVEN)
			keep(input, i, 0, "not known to be complete");
		newest = newest && !counts(input, i);
		if (input->items[i]->pinned)
			keep(input, i, 0, "pinned");
	}
}

static void keep_last(const struct keep_input *input)
{
	uint64_t newer = 0;
	for (size_t i = input->count; i-- > 0;) {
		if (!counts(input, i))
			continue;
		/* The newest one is kept anyway. */
		if (newer > 0 && newer < input->policy->last)
			keep(input, i, KEEP_LAST, "one of the last %" PRIu64, input->policy->last);
		newer++;
	}
}

static void keep_by_step(const struct keep_input *input)
{
	const struct keep_policy *policy = input->policy;
	for (size_t i = 0; i < input->count; i++) {
		uint64_t step = input->items[i]->step;
		if (policy->every_steps && counts(input, i) && step % policy->every_steps == 0)
			keep(input, i, KEEP_EVERY_STEPS, "every %" PRIu64 " steps",
				policy->every_steps);
		for (size_t k = 0; k < policy->step_count; k++)
			if (policy->steps[k] == step) {
				keep(input, i, KEEP_STEP, "named by --keep-step");
				break;
			}
	}
}

static void keep_by_time(const struct keep_input *input)
{
	const struct keep_policy *policy = input->policy;
	char every[32], within[32];
	int64_t kept = 0;
	bool any = false;
	span(every, policy->every);
	span(within, policy->within);
	for (size_t i = 0; i < input->count; i++) {
		int64_t utc = input->items[i]->utc;
		if (!counts(input, i))
			continue;
		if (policy->every &&
			(utc == 0 || !any || utc < kept || later(utc, kept) >= policy->every)) {
			keep(input, i, KEEP_EVERY, "every %s", every);
			if (utc != 0) {
				kept = utc;
				any = true;
			}
		}
		if (policy->within && (utc == 0 || later(input->now, utc) <= policy->within))
			keep(input, i, KEEP_WITHIN, "within %s", within);
	}
}

/* The next functions number the days, weeks and months. Times are milliseconds since 1970. */
static int64_t floor_of(int64_t number, int64_t unit)
{
	return number / unit - (number % unit < 0);
}

static int64_t day_of(int64_t utc)
{
	return floor_of(utc, INT64_C(86400000));
}

/* 1 January 1970 was a Thursday. */
static int64_t week_of(int64_t utc)
{
	return floor_of(day_of(utc) + 3, 7);
}

static int64_t month_of(int64_t utc)
{
	struct tm date = {0};
	time_t seconds = floor_of(utc, 1000);
	gmtime_r(&seconds, &date);
	return (int64_t)date.tm_year * 12 + date.tm_mon;
}

struct dated {
	int64_t utc;
	size_t place;
};

/* The newest first; of equal times the highest step first. */
static int by_utc(const void *a, const void *b)
{
	const struct dated *x = a, *y = b;
	if (x->utc != y->utc)
		return x->utc > y->utc ? -1 : 1;
	return x->place > y->place ? -1 : x->place < y->place;
}

static void keep_by_calendar(const struct keep_input *input)
{
	const struct {
		uint64_t periods;
		enum keep_rule rule;
		const char *name;
		int64_t (*of)(int64_t utc);
	} rules[] = {{input->policy->daily, KEEP_DAILY, "day", day_of},
		{input->policy->weekly, KEEP_WEEKLY, "week", week_of},
		{input->policy->monthly, KEEP_MONTHLY, "month", month_of}};
	struct dated *dated = xcalloc(input->count + 1, sizeof(*dated));
	size_t count = 0;
	for (size_t i = 0; i < input->count; i++)
		if (counts(input, i))
			dated[count++] = (struct dated){input->items[i]->utc, i};
	qsort(dated, count, sizeof(*dated), by_utc);
	for (size_t r = 0; r < sizeof(rules) / sizeof(rules[0]); r++) {
		uint64_t periods = 0;
		int64_t last = 0;
		for (size_t k = 0; k < count && rules[r].periods; k++) {
			int64_t period = rules[r].of(dated[k].utc);
			bool known = dated[k].utc != 0;
			if (known && periods && (period == last || periods == rules[r].periods))
				continue;
			keep(input, dated[k].place, rules[r].rule, "the last of its %s",
				rules[r].name);
			periods += known;
			last = known ? period : last;
		}
	}
	free(dated);
}

struct measured {
	double value; /* the least is the best */
	size_t place;
};

/* The best first; of equal ones the newer first. */
static int by_value(const void *a, const void *b)
{
	const struct measured *x = a, *y = b;
	if (x->value != y->value)
		return x->value < y->value ? -1 : 1;
	return x->place > y->place ? -1 : x->place < y->place;
}

static void keep_best(const struct keep_input *input)
{
	const struct keep_policy *policy = input->policy;
	size_t count = 0;
	struct measured *measured =
		policy->metric ? xcalloc(input->count + 1, sizeof(*measured)) : NULL;
	for (size_t i = 0; i < input->count && policy->metric; i++) {
		double value;
		if (!counts(input, i))
			continue;
		if (!metrics_get(&input->items[i]->metrics, policy->metric, &value)) {
			if (policy->unmeasured)
				keep(input, i, KEEP_UNMEASURED, "no %s measured", policy->metric);
		} else {
			measured[count++] = (struct measured){policy->highest ? -value : value, i};
		}
	}
	if (count)
		qsort(measured, count, sizeof(*measured), by_value);
	for (size_t i = 0; i < count && i < policy->best; i++)
		keep(input, measured[i].place, KEEP_BEST, "one of the best %" PRIu64 " by %s",
			policy->best, policy->metric);
	free(measured);
}

/* Decide about those that no rule keeps. A bad or damaged one is kept until enough complete ones
 * are newer. */
static void say_rest(const struct keep_input *input)
{
	uint64_t newer = 0, wanted = input->policy->last ? input->policy->last : 1;
	bool only_limits = keep_rules(input->policy) == 0;
	for (size_t i = input->count; i-- > 0;) {
		struct keep_decision *decision = &input->decisions[i];
		const char *state = checkpoint_state_name(input->items[i]->state);
		if (counts(input, i)) {
			if (!decision->keep && only_limits)
				decide(decision, true, "there is room");
			else if (!decision->keep)
				decide(decision, false, "%" PRIu64 " newer ones are complete",
					newer);
			newer++;
		} else if (decision->keep) {
			continue;
		} else if (newer == 0) {
			decide(decision, true, "%s, and no complete one is newer", state);
			decision->must = true;
		} else if (newer < wanted) {
			decide(decision, true, "%s, but only %" PRIu64 " newer ones are complete",
				state, newer);
		} else {
			decide(decision, false, "%s, and %" PRIu64 " newer ones are complete",
				state, newer);
		}
	}
}

void keep_decide(const struct keep_policy *policy, int64_t now,
	const struct checkpoint *const *items, size_t count, struct keep_decision *decisions)
{
	const struct keep_input input = {policy, now, items, count, decisions};
	for (size_t i = 0; i < count; i++)
		decisions[i] = (struct keep_decision){0};
	keep_always(&input);
	keep_last(&input);
	keep_by_step(&input);
	keep_by_time(&input);
	keep_by_calendar(&input);
	keep_best(&input);
	say_rest(&input);
}

static uint64_t plus(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

bool keep_limit(const struct keep_policy *policy, const struct keep_space *space,
	const struct checkpoint *const *items, size_t count, struct keep_decision *decisions)
{
	uint64_t kept = space->apart, left = space->free;
	for (size_t i = 0; i < count; i++) {
		if (decisions[i].keep)
			kept = plus(kept, items[i]->bytes);
		else if (!space->removed)
			left = plus(left, items[i]->bytes);
	}
	for (size_t i = 0;; i++) {
		bool large = policy->max_bytes && kept > policy->max_bytes;
		bool full = policy->min_free && left < policy->min_free;
		while (i < count &&
			(!decisions[i].keep || decisions[i].must || items[i]->bytes == 0))
			i++;
		if (!large && !full)
			return true;
		if (i >= count)
			return false;
		decide(&decisions[i], false, "%s, and it is the oldest that may be removed",
			large ? "over --max-bytes" : "less than --min-free");
		kept -= items[i]->bytes < kept ? items[i]->bytes : kept;
		left = plus(left, items[i]->bytes);
	}
}

enum status keep_check_metric(const struct keep_policy *policy,
	const struct checkpoint *const *items, size_t count, struct error *err)
{
	struct metrics all = {0};
	struct text names = {0};
	bool complete = false;
	for (size_t i = 0; i < count; i++) {
		complete |= items[i]->state == CHECKPOINT_COMPLETE;
		for (size_t k = 0; policy->metric && k < items[i]->metrics.count; k++)
			if (strcmp(items[i]->metrics.items[k].name, policy->metric) == 0)
				return STATUS_OK;
		metrics_merge(&all, &items[i]->metrics);
	}
	if (!policy->best || policy->unmeasured || !complete)
		return STATUS_OK;
	for (size_t k = 0; k < all.count; k++)
		text_addf(&names, "%s%s", k ? ", " : "", all.items[k].name);
	error_set(err, STATUS_USAGE,
		"--keep-best: no checkpoint has the metric \"%s\" (they have %s), so it would keep "
		"none; nothing was removed",
		policy->metric, all.count ? text_string(&names) : "no metrics");
	text_release(&names);
	return STATUS_USAGE;
}

void keep_decide_incomplete(const struct checkpoint *item, uint64_t newest_attempt, uint64_t begun,
	const struct checkpoint *newest, struct keep_decision *decision)
{
	/* Not for a copy: it has the attempt of the original, which may have ended long ago. */
	bool over = item->attempt > 0 && item->attempt < newest_attempt && !item->copy;
	bool first = !newest || item->step > newest->step;
	if (item->state != CHECKPOINT_INCOMPLETE)
		decide(decision, true, "could not be read");
	else if (item->writer == WRITER_ALIVE)
		decide(decision, true, "being written");
	else if (item->whole && first)
		decide(decision, true, "all shards are there, and no newer one is complete");
	/* That task may be slower than the one whose shard is there. */
	else if (item->early && first && (item->attempt == 0 || item->attempt >= begun))
		decide(decision, true, "a task has not begun, and no newer one is complete");
	else if (item->writer == WRITER_GONE)
		decide(decision, false, "not committed, and its writer is gone");
	else if (over)
		decide(decision, false, "not committed, and attempt %" PRIu64 " has saved since",
			newest_attempt);
	else if (item->writer == WRITER_UNKNOWN && item->vacant)
		decide(decision, false, "nothing is in it");
	else if (item->writer == WRITER_ELSEWHERE)
		decide(decision, true, "not committed; its writer cannot be checked from here");
	else
		decide(decision, true, "not committed; its writer is not recorded");
}
