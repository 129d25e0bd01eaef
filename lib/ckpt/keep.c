/* SPDX-License-Identifier: MIT */
#include "ckpt/keep.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((format(printf, 3, 4))) static void decide(
	struct keep_verdict *verdict, bool keep, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(verdict->why, sizeof(verdict->why), format, arguments);
	va_end(arguments);
	verdict->keep = keep;
	verdict->must = false;
}

/* One more reason to keep it. */
__attribute__((format(printf, 3, 4))) static void keep(
	struct keep_verdict *verdict, bool must, const char *format, ...)
{
	size_t length = verdict->keep ? strlen(verdict->why) : 0;
	va_list arguments;
	va_start(arguments, format);
	if (length && length + 2 < sizeof(verdict->why)) {
		strcpy(verdict->why + length, ", ");
		length += 2;
	}
	vsnprintf(verdict->why + length, sizeof(verdict->why) - length, format, arguments);
	va_end(arguments);
	verdict->must |= must;
	verdict->keep = true;
}

/* What is decided on, and what is known of it already. */
struct scene {
	const struct keep_policy *policy;
	const struct keep_moment *moment;
	const struct checkpoint *items;
	size_t count;
	struct keep_verdict *verdicts;
};

static bool counts(const struct scene *scene, size_t i)
{
	return scene->items[i].state == CHECKPOINT_COMPLETE;
}

static bool is_must(const struct scene *scene, enum keep_rule rule)
{
	return (scene->policy->must & rule) != 0;
}

/* a - b, as far as it can be said. */
static int64_t later(int64_t a, int64_t b)
{
	int64_t difference;
	if (__builtin_sub_overflow(a, b, &difference))
		return a < b ? INT64_MIN : INT64_MAX;
	return difference;
}

/* The place of the complete one committed last; on equal times of the highest step. */
static size_t committed_last(const struct scene *scene)
{
	size_t last = scene->count;
	for (size_t i = 0; i < scene->count; i++)
		if (counts(scene, i) &&
			(last == scene->count || scene->items[i].utc >= scene->items[last].utc))
			last = i;
	return last;
}

/* "3h 20m" is for people; here it must only be short and exact. */
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

static void keep_always(const struct scene *scene)
{
	size_t last = committed_last(scene);
	bool newest = true;
	for (size_t i = scene->count; i-- > 0;) {
		struct keep_verdict *verdict = &scene->verdicts[i];
		if (counts(scene, i) && newest)
			keep(verdict, true, "the newest complete one");
		else if (i == last)
			keep(verdict, true, "the one committed last");
		else if (scene->items[i].state == CHECKPOINT_FOREIGN)
			keep(verdict, true, "not ours");
		else if (scene->items[i].state == CHECKPOINT_UNKNOWN)
			keep(verdict, true, "could not be read");
		else if (scene->items[i].state == CHECKPOINT_UNPROVEN)
			keep(verdict, true, "not known to be complete");
		newest = newest && !counts(scene, i);
		if (scene->items[i].pinned)
			keep(verdict, true, "pinned");
	}
}

static void keep_last(const struct scene *scene)
{
	uint64_t newer = 0;
	for (size_t i = scene->count; i-- > 0;) {
		if (!counts(scene, i))
			continue;
		/* That the newest is one of the last N goes without saying. */
		if (newer > 0 && newer < scene->policy->last)
			keep(&scene->verdicts[i], is_must(scene, KEEP_LAST),
				"one of the last %" PRIu64, scene->policy->last);
		newer++;
	}
}

static void keep_by_step(const struct scene *scene)
{
	const struct keep_policy *policy = scene->policy;
	for (size_t i = 0; i < scene->count; i++) {
		uint64_t step = scene->items[i].step;
		if (policy->every_steps && counts(scene, i) && step % policy->every_steps == 0)
			keep(&scene->verdicts[i], is_must(scene, KEEP_EVERY_STEPS),
				"every %" PRIu64 " steps", policy->every_steps);
		for (size_t k = 0; k < policy->step_count; k++)
			if (policy->steps[k] == step) {
				keep(&scene->verdicts[i], is_must(scene, KEEP_STEP),
					"named by --keep-step");
				break;
			}
	}
}

static void keep_by_time(const struct scene *scene)
{
	const struct keep_policy *policy = scene->policy;
	char every[32], within[32];
	int64_t kept = 0;
	bool any = false;
	span(every, policy->every);
	span(within, policy->within);
	for (size_t i = 0; i < scene->count; i++) {
		int64_t utc = scene->items[i].utc;
		if (!counts(scene, i))
			continue;
		if (policy->every &&
			(utc == 0 || !any || utc < kept || later(utc, kept) >= policy->every)) {
			keep(&scene->verdicts[i], is_must(scene, KEEP_EVERY), "every %s", every);
			if (utc != 0) {
				kept = utc;
				any = true;
			}
		}
		if (policy->within &&
			(utc == 0 || later(scene->moment->now, utc) <= policy->within))
			keep(&scene->verdicts[i], is_must(scene, KEEP_WITHIN), "within %s", within);
	}
}

struct measured {
	double value; /* less is better */
	size_t place;
};

/* The best first; of equal ones the newer. */
static int by_value(const void *a, const void *b)
{
	const struct measured *x = a, *y = b;
	if (x->value != y->value)
		return x->value < y->value ? -1 : 1;
	return x->place > y->place ? -1 : x->place < y->place;
}

static void keep_best(const struct scene *scene)
{
	const struct keep_policy *policy = scene->policy;
	size_t count = 0;
	struct measured *measured =
		policy->metric ? calloc(scene->count + 1, sizeof(*measured)) : NULL;
	for (size_t i = 0; i < scene->count && policy->metric; i++) {
		double value;
		if (!counts(scene, i))
			continue;
		if (!metrics_get(&scene->items[i].metrics, policy->metric, &value)) {
			if (policy->unmeasured)
				keep(&scene->verdicts[i], is_must(scene, KEEP_UNMEASURED),
					"no %s measured", policy->metric);
		} else if (measured) {
			measured[count++] = (struct measured){policy->highest ? -value : value, i};
		} else if (policy->best) {
			keep(&scene->verdicts[i], true, "no memory to compare it");
		}
	}
	if (count)
		qsort(measured, count, sizeof(*measured), by_value);
	for (size_t i = 0; i < count && i < policy->best; i++)
		keep(&scene->verdicts[measured[i].place], is_must(scene, KEEP_BEST),
			"one of the best %" PRIu64 " by %s", policy->best, policy->metric);
	free(measured);
}

/* What no rule keeps. A bad or damaged one stays until enough complete ones are newer. */
static void say_rest(const struct scene *scene)
{
	uint64_t newer = 0, wanted = scene->policy->last ? scene->policy->last : 1;
	bool only_limits = keep_rules(scene->policy) == 0;
	for (size_t i = scene->count; i-- > 0;) {
		struct keep_verdict *verdict = &scene->verdicts[i];
		const char *state = checkpoint_state_name(scene->items[i].state);
		if (counts(scene, i)) {
			if (!verdict->keep && only_limits)
				keep(verdict, false, "there is room");
			else if (!verdict->keep)
				decide(verdict, false, "%" PRIu64 " newer ones are complete",
					newer);
			newer++;
		} else if (verdict->keep) {
			continue;
		} else if (newer == 0) {
			decide(verdict, true, "%s, and no complete one is newer", state);
			verdict->must = true;
		} else if (newer < wanted) {
			decide(verdict, true, "%s, but only %" PRIu64 " newer ones are complete",
				state, newer);
		} else {
			decide(verdict, false, "%s, and %" PRIu64 " newer ones are complete", state,
				newer);
		}
	}
}

static uint64_t plus(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* The oldest that may go goes until the limits are met. False: they are not. */
static bool keep_limits(const struct scene *scene)
{
	const struct keep_policy *policy = scene->policy;
	uint64_t kept = 0, left = scene->moment->free;
	for (size_t i = 0; i < scene->count; i++) {
		uint64_t *sum = scene->verdicts[i].keep ? &kept : &left;
		*sum = plus(*sum, scene->items[i].bytes);
	}
	for (size_t i = 0;; i++) {
		bool large = policy->max_bytes && kept > policy->max_bytes;
		bool full = policy->min_free && left < policy->min_free;
		while (i < scene->count && (!scene->verdicts[i].keep || scene->verdicts[i].must ||
						   scene->items[i].bytes == 0))
			i++;
		if (!large && !full)
			return true;
		if (i >= scene->count)
			return false;
		decide(&scene->verdicts[i], false, "%s, and it is the oldest that may be removed",
			large ? "over --max-bytes" : "less than --min-free");
		kept -= scene->items[i].bytes < kept ? scene->items[i].bytes : kept;
		left = plus(left, scene->items[i].bytes);
	}
}

bool keep_decide(const struct keep_policy *policy, const struct keep_moment *moment,
	const struct checkpoint *items, size_t count, struct keep_verdict *verdicts)
{
	const struct scene scene = {policy, moment, items, count, verdicts};
	for (size_t i = 0; i < count; i++)
		verdicts[i] = (struct keep_verdict){0};
	keep_always(&scene);
	keep_last(&scene);
	keep_by_step(&scene);
	keep_by_time(&scene);
	keep_best(&scene);
	say_rest(&scene);
	return keep_limits(&scene);
}

enum status keep_check_metric(const struct keep_policy *policy, const struct checkpoint *items,
	size_t count, struct error *err)
{
	struct metrics all = {0};
	struct text names = {0};
	bool complete = false;
	for (size_t i = 0; i < count; i++) {
		complete |= items[i].state == CHECKPOINT_COMPLETE;
		for (size_t k = 0; policy->metric && k < items[i].metrics.count; k++)
			if (strcmp(items[i].metrics.items[k].name, policy->metric) == 0)
				return STATUS_OK;
		metrics_merge(&all, &items[i].metrics);
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

void keep_decide_incomplete(const struct checkpoint *item, uint64_t newest_attempt,
	const struct checkpoint *newest, struct keep_verdict *verdict)
{
	if (item->state != CHECKPOINT_INCOMPLETE)
		decide(verdict, true, "could not be read");
	else if (item->writer == WRITER_ALIVE)
		decide(verdict, true, "being written");
	else if (item->whole && (!newest || item->step > newest->step))
		decide(verdict, true, "all shards are there, and no newer one is complete");
	else if (item->writer == WRITER_GONE)
		decide(verdict, false, "not committed, and its writer is gone");
	/* (A copy has the attempt of what it brings, which may long be over.) */
	else if (item->attempt > 0 && item->attempt < newest_attempt && !item->copy)
		decide(verdict, false, "not committed, and attempt %" PRIu64 " has saved since",
			newest_attempt);
	else if (item->writer == WRITER_UNKNOWN && item->vacant)
		decide(verdict, false, "nothing is in it");
	else if (item->writer == WRITER_ELSEWHERE)
		decide(verdict, true, "not committed; its writer cannot be checked from here");
	else
		decide(verdict, true, "not committed; its writer is not recorded");
}
