/* SPDX-License-Identifier: MIT */
/*
 * The keep policy against a slow and obvious reference: every rule alone, all pairs of rules and
 * any mixture, with and without limits, on random histories with equal times, clocks that went
 * backwards, and steps that begin again.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ckpt/keep.h"
#include "unit.h"

/* When, and with how much space. */
struct keep_moment {
	int64_t now;
	uint64_t free, apart;
};

/* The functions take pointers. */
#define POINTERS(items, count)                                                                     \
	const struct checkpoint *pointers[64];                                                     \
	for (size_t i = 0; i < (count); i++)                                                       \
	pointers[i] = &(items)[i]

static bool decide_on(const struct keep_policy *policy, const struct keep_moment *moment,
	const struct checkpoint *items, size_t count, struct keep_decision *decisions)
{
	const struct keep_space space = {.free = moment->free, .apart = moment->apart};
	POINTERS(items, count);
	keep_decide(policy, moment->now, pointers, count, decisions);
	return keep_limit(policy, &space, pointers, count, decisions);
}

static enum status check_metric_of(const struct keep_policy *policy, const struct checkpoint *items,
	size_t count, struct error *err)
{
	POINTERS(items, count);
	return keep_check_metric(policy, pointers, count, err);
}

#define RULES	  10 /* enum keep_rule */
#define ITEMS	  12
#define HISTORIES 1000

static uint64_t seed;

static uint64_t draw(uint64_t below)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (seed >> 33) % below;
}

/* ---- The reference. Each rule on its own, each item on its own, in as many words. ---- */

static const struct checkpoint *items;
static size_t count;

static bool complete(size_t i)
{
	return items[i].state == CHECKPOINT_COMPLETE;
}

static uint64_t newer_complete(size_t i)
{
	uint64_t newer = 0;
	for (size_t k = 0; k < count; k++)
		newer += complete(k) && items[k].step > items[i].step;
	return newer;
}

static bool is_committed_last(size_t i)
{
	for (size_t k = 0; k < count; k++)
		if (complete(k) &&
			(items[k].utc > items[i].utc ||
				(items[k].utc == items[i].utc && items[k].step > items[i].step)))
			return false;
	return complete(i);
}

/* Walk the whole history up to i, again for each i. */
static bool by_every(size_t i, int64_t every)
{
	int64_t kept = INT64_MIN;
	bool any = false, keeps = false;
	for (size_t k = 0; k <= i; k++) {
		keeps = false;
		if (!complete(k))
			continue;
		if (items[k].utc == 0) {
			keeps = true; /* no process knows when */
			continue;
		}
		bool first = !any;
		bool backwards = any && items[k].utc < kept;
		bool far = any && items[k].utc >= kept && items[k].utc - kept >= every;
		if (first || backwards || far) {
			keeps = true;
			kept = items[k].utc;
			any = true;
		}
	}
	return keeps;
}

enum period { DAY, WEEK, MONTH };

/* The date at which the period of utc begins, as strftime of the C library tells days of the week
 * and months. */
static int64_t period_begin(int64_t utc, enum period period)
{
	time_t at = utc / 1000;
	struct tm date;
	gmtime_r(&at, &date);
	date.tm_hour = date.tm_min = date.tm_sec = 0;
	if (period == WEEK)
		date.tm_mday -= (date.tm_wday + 6) % 7;
	if (period == MONTH)
		date.tm_mday = 1;
	return (int64_t)timegm(&date);
}

static bool in_same(size_t a, size_t b, enum period period)
{
	return period_begin(items[a].utc, period) == period_begin(items[b].utc, period);
}

static bool is_after(size_t a, size_t b)
{
	return items[a].utc > items[b].utc ||
	       (items[a].utc == items[b].utc && items[a].step > items[b].step);
}

/* The last of its period, and fewer than periods have a later one. */
static bool by_calendar(size_t i, uint64_t periods, enum period period)
{
	uint64_t later = 0;
	if (items[i].utc == 0)
		return periods > 0;
	for (size_t k = 0; k < count; k++) {
		bool last = complete(k) && items[k].utc != 0 && is_after(k, i);
		if (last && in_same(k, i, period))
			return false;
		for (size_t m = 0; m < count && last; m++)
			last = !(complete(m) && items[m].utc != 0 && is_after(m, k) &&
				 in_same(m, k, period));
		later += last;
	}
	return later < periods;
}

static bool by_best(size_t i, const struct keep_policy *policy)
{
	double own, other;
	uint64_t ahead = 0;
	if (!metrics_get(&items[i].metrics, policy->metric, &own))
		return false;
	for (size_t k = 0; k < count; k++) {
		if (k == i || !complete(k) ||
			!metrics_get(&items[k].metrics, policy->metric, &other))
			continue;
		if (policy->highest ? other > own : other < own)
			ahead++;
		if (other == own && items[k].step > items[i].step)
			ahead++;
	}
	return ahead < policy->best;
}

/* Whether one of the rules in mask keeps it; mask of enum keep_rule. */
static bool by_rules(
	size_t i, const struct keep_policy *policy, const struct keep_moment *moment, unsigned mask)
{
	double value;
	for (size_t k = 0; k < policy->step_count; k++)
		if ((mask & KEEP_STEP) && policy->steps[k] == items[i].step)
			return true;
	if (!complete(i))
		return false;
	if ((mask & KEEP_LAST) && policy->last && newer_complete(i) < policy->last)
		return true;
	if ((mask & KEEP_EVERY_STEPS) && policy->every_steps &&
		items[i].step % policy->every_steps == 0)
		return true;
	if ((mask & KEEP_EVERY) && policy->every && by_every(i, policy->every))
		return true;
	if ((mask & KEEP_WITHIN) && policy->within &&
		(items[i].utc == 0 || moment->now - items[i].utc <= policy->within))
		return true;
	if (((mask & KEEP_DAILY) && by_calendar(i, policy->daily, DAY)) ||
		((mask & KEEP_WEEKLY) && by_calendar(i, policy->weekly, WEEK)) ||
		((mask & KEEP_MONTHLY) && by_calendar(i, policy->monthly, MONTH)))
		return true;
	if ((mask & KEEP_BEST) && policy->best && by_best(i, policy))
		return true;
	return (mask & KEEP_UNMEASURED) && policy->unmeasured &&
	       !metrics_get(&items[i].metrics, policy->metric, &value);
}

static bool always(size_t i)
{
	if (items[i].state == CHECKPOINT_FOREIGN || items[i].state == CHECKPOINT_UNKNOWN)
		return true;
	if (items[i].pinned)
		return true;
	return complete(i) && (newer_complete(i) == 0 || is_committed_last(i));
}

static bool reference_keeps(
	size_t i, const struct keep_policy *policy, const struct keep_moment *moment)
{
	if (always(i) || by_rules(i, policy, moment, ~0u))
		return true;
	if (complete(i))
		return keep_rules(policy) == 0; /* only limits were given */
	uint64_t wanted = policy->last > 1 ? policy->last : 1;
	return newer_complete(i) < wanted;
}

static bool reference_must(
	size_t i, const struct keep_policy *policy, const struct keep_moment *moment)
{
	return always(i) || by_rules(i, policy, moment, policy->must) ||
	       (!complete(i) && newer_complete(i) == 0 && !by_rules(i, policy, moment, ~0u));
}

static bool limits_hold(
	const bool *keeps, const struct keep_policy *policy, const struct keep_moment *moment)
{
	uint64_t kept = moment->apart, left = moment->free;
	for (size_t i = 0; i < count; i++)
		*(keeps[i] ? &kept : &left) += items[i].bytes;
	return (!policy->max_bytes || kept <= policy->max_bytes) &&
	       (!policy->min_free || left >= policy->min_free);
}

static bool reference(
	const struct keep_policy *policy, const struct keep_moment *moment, bool *keeps)
{
	for (size_t i = 0; i < count; i++)
		keeps[i] = reference_keeps(i, policy, moment);
	for (size_t i = 0; i < count && !limits_hold(keeps, policy, moment); i++)
		if (keeps[i] && items[i].bytes > 0 && !reference_must(i, policy, moment))
			keeps[i] = false;
	return limits_hold(keeps, policy, moment);
}

/* ---- Random histories and rules ---- */

static const uint64_t named[] = {3, 10, 20, 21, 22, 40};

/* unit: how many milliseconds the time of a history counts by. */
static size_t make_history(struct checkpoint made[ITEMS], int64_t unit)
{
	static const enum checkpoint_state states[] = {CHECKPOINT_COMPLETE, CHECKPOINT_COMPLETE,
		CHECKPOINT_COMPLETE, CHECKPOINT_COMPLETE, CHECKPOINT_BAD, CHECKPOINT_DAMAGED,
		CHECKPOINT_FOREIGN, CHECKPOINT_UNKNOWN};
	size_t made_count = draw(ITEMS + 1);
	uint64_t step = 0;
	int64_t utc = 1000;
	unsigned shape = (unsigned)draw(4);
	memset(made, 0, ITEMS * sizeof(*made));
	for (size_t i = 0; i < made_count; i++) {
		struct checkpoint *item = &made[i];
		item->step = step;
		step += 1 + draw(10);
		item->state = shape == 0 ? CHECKPOINT_COMPLETE : states[draw(8)];
		/*
		 * Mostly onwards; standing still; backwards; a run that began again at a low step.
		 */
		if (shape == 1)
			utc = (int64_t)draw(2000);
		else if (shape == 2 && i == made_count / 2)
			utc -= 1500;
		else
			utc += (int64_t)(draw(3) * draw(200));
		item->utc = draw(15) == 0 ? 0 : utc * unit;
		item->bytes = draw(8) * 10;
		item->pinned = draw(12) == 0 && item->state != CHECKPOINT_FOREIGN;
		if (draw(4)) {
			strcpy(item->metrics.items[0].name, draw(6) ? "loss" : "score");
			item->metrics.items[0].value = draw(8) ? (double)draw(6) - 3 : NAN;
			item->metrics.count = 1;
		}
	}
	return made_count;
}

static uint64_t number(void)
{
	const uint64_t numbers[] = {1, 2, 3, draw(ITEMS) + 1, UINT64_MAX};
	return numbers[draw(5)];
}

static struct keep_policy make_policy(unsigned rules)
{
	struct keep_policy policy = {.metric = "loss", .highest = draw(2)};
	const int64_t times[] = {1, 100, 500, (int64_t)draw(1000) + 1, INT64_MAX};
	if (rules & KEEP_LAST)
		policy.last = number();
	if (rules & KEEP_EVERY_STEPS)
		policy.every_steps = number();
	if (rules & KEEP_EVERY)
		policy.every = times[draw(5)];
	if (rules & KEEP_WITHIN)
		policy.within = times[draw(5)];
	if (rules & KEEP_DAILY)
		policy.daily = number();
	if (rules & KEEP_WEEKLY)
		policy.weekly = number();
	if (rules & KEEP_MONTHLY)
		policy.monthly = number();
	if (rules & KEEP_BEST)
		policy.best = number();
	policy.unmeasured = (rules & KEEP_UNMEASURED) != 0;
	policy.steps = named;
	if (rules & KEEP_STEP)
		policy.step_count = 1 + draw(6);
	return policy;
}

/* Whether function and reference agree on history; else says how. */
static bool agrees(uint64_t history, unsigned rules, bool limits)
{
	struct checkpoint made[ITEMS], left[ITEMS];
	struct keep_decision decisions[ITEMS], again[ITEMS];
	bool keeps[ITEMS] = {false};
	seed = history * 1000003 + rules;
	(void)draw(1);
	/* In milliseconds, or so that days, weeks and months pass. */
	const int64_t units[] = {600000, 7200000, 86400000};
	int64_t unit = rules >= KEEP_DAILY ? units[draw(3)] : 1;
	count = make_history(made, unit);
	items = made;
	struct keep_policy policy = make_policy(rules);
	policy.every *= policy.every < INT64_MAX / unit ? unit : 1;
	policy.within *= policy.within < INT64_MAX / unit ? unit : 1;
	struct keep_moment moment = {(int64_t)draw(4000) * unit, draw(200), draw(50)};
	if (limits) {
		policy.max_bytes = draw(3) ? draw(400) + 1 : 0;
		policy.min_free = draw(3) && policy.max_bytes ? 0 : draw(400) + 1;
		policy.must = (unsigned)draw(1u << RULES) & rules;
	}
	bool met = decide_on(&policy, &moment, made, count, decisions);
	if (met != reference(&policy, &moment, keeps)) {
		printf("# history %" PRIu64 ", rules %u: limits met: %d\n", history, rules, met);
		return false;
	}
	size_t kept = 0;
	for (size_t i = 0; i < count; i++) {
		if (decisions[i].keep != keeps[i] || !*decisions[i].why) {
			printf("# history %" PRIu64 ", rules %u, step %" PRIu64 ": %s %s\n",
				history, rules, made[i].step,
				decisions[i].keep ? "kept" : "removed", decisions[i].why);
			return false;
		}
		if (keeps[i])
			left[kept++] = made[i];
	}
	if (limits)
		return true;
	/* What was kept is kept when it is looked at again. */
	decide_on(&policy, &moment, left, kept, again);
	for (size_t i = 0; i < kept; i++)
		if (!again[i].keep) {
			printf("# history %" PRIu64 ", rules %u: step %" PRIu64 " goes later: %s\n",
				history, rules, left[i].step, again[i].why);
			return false;
		}
	return true;
}

static void check_rules(unsigned rules, bool limits, const char *what)
{
	uint64_t history = 0;
	while (history < HISTORIES && agrees(history, rules, limits))
		history++;
	CHECK(history == HISTORIES, "%s (rules %u): as the reference says, %d histories", what,
		rules, HISTORIES);
}

static void check_histories(void)
{
	uint64_t history = 0;
	for (unsigned a = 0; a < RULES; a++) {
		check_rules(1u << a, false, "one rule");
		check_rules(1u << a, true, "one rule and limits");
		for (unsigned b = a + 1; b < RULES; b++)
			check_rules(1u << a | 1u << b, false, "two rules");
	}
	check_rules(0, true, "limits alone");
	while (history < 20 * HISTORIES &&
		agrees(history, (unsigned)(history * 31 % (1u << RULES)), history % 2))
		history++;
	CHECK(history == 20 * HISTORIES, "any rules: as the reference says");
}

/* ---- By hand ---- */

/* Which steps stay of those with these times, "0 3 6". */
static const char *kept_of(
	const struct keep_policy *policy, int64_t now, size_t n, const struct checkpoint *of)
{
	static char text[256];
	struct keep_decision decisions[16];
	const struct keep_moment moment = {now, 0, 0};
	(void)decide_on(policy, &moment, of, n, decisions);
	text[0] = '\0';
	for (size_t i = 0; i < n; i++)
		if (decisions[i].keep)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%" PRIu64,
				*text ? " " : "", of[i].step);
	return text;
}

#define HOUR  3600000
#define BEGIN 1700000000000

static void check_by_hand(void)
{
	struct checkpoint made[10] = {0};
	for (size_t i = 0; i < 10; i++)
		made[i] = (struct checkpoint){.step = i,
			.state = CHECKPOINT_COMPLETE,
			.utc = BEGIN + (int64_t)i * HOUR,
			.bytes = 10};
	TEST("OB-2 the last 2 and one in 3 hours, of hourly saves 0 to 9")
	{
		CHECK_TEXT(
			kept_of(&(struct keep_policy){.last = 2, .every = 3 * HOUR}, 0, 10, made),
			"0 3 6 8 9");
	}
	TEST("a clock that is behind removes nothing, and none is too few")
	{
		CHECK_TEXT(kept_of(&(struct keep_policy){.within = HOUR}, 1, 10, made),
			"0 1 2 3 4 5 6 7 8 9");
		CHECK_TEXT(kept_of(&(struct keep_policy){.within = 1}, INT64_MAX, 10, made), "9");
		CHECK_TEXT(kept_of(&(struct keep_policy){.max_bytes = 1}, 0, 10, made), "9");
	}
	TEST("every: the clock goes back in the middle; all of the same time")
	{
		for (size_t i = 5; i < 10; i++)
			made[i].utc -= 20 * HOUR;
		CHECK_TEXT(kept_of(&(struct keep_policy){.every = 3 * HOUR}, 0, 10, made),
			"0 3 4 5 8 9");
		for (size_t i = 0; i < 10; i++)
			made[i].utc = BEGIN;
		CHECK_TEXT(kept_of(&(struct keep_policy){.every = 1}, 0, 10, made), "0 9");
	}
	TEST("a new low-numbered checkpoint after a reset stays, whatever the rules")
	{
		made[2].utc += 1;
		CHECK_TEXT(kept_of(&(struct keep_policy){.last = 1}, 0, 10, made), "2 9");
		CHECK_TEXT(kept_of(&(struct keep_policy){.max_bytes = 1}, 0, 10, made), "2 9");
		made[2].utc -= 1;
	}
	TEST("what must be kept is kept over the limit, and that is reported")
	{
		struct keep_decision decisions[10];
		const struct keep_moment moment = {0, 0, 0};
		struct keep_policy policy = {.last = 5, .max_bytes = 30, .must = KEEP_LAST};
		CHECK(!decide_on(&policy, &moment, made, 10, decisions));
		CHECK_TEXT(kept_of(&policy, 0, 10, made), "5 6 7 8 9");
		policy.must = 0;
		CHECK(decide_on(&policy, &moment, made, 10, decisions));
		CHECK_TEXT(kept_of(&policy, 0, 10, made), "7 8 9");
	}
	TEST("the reasons name every rule that keeps it")
	{
		struct keep_decision decisions[10];
		const struct keep_moment moment = {0, 0, 0};
		const struct keep_policy policy = {.last = 2, .every_steps = 4};
		decide_on(&policy, &moment, made, 10, decisions);
		CHECK_TEXT(decisions[9].why, "the newest complete one");
		CHECK_TEXT(decisions[8].why, "one of the last 2, every 4 steps");
		CHECK_EQ(decisions[8].rules, KEEP_LAST | KEEP_EVERY_STEPS);
		CHECK_EQ(decisions[7].rules, 0u);
		CHECK_TEXT(decisions[7].why, "2 newer ones are complete");
	}
}

static void check_words(void)
{
	struct keep_policy policy = {0};
	uint64_t steps[3];
	size_t n = 0;
	TEST("no rule is refused, and rules that say nothing")
	{
		CHECK_EQ(keep_check(&policy, NULL), STATUS_USAGE);
		CHECK_EQ(keep_check(&(struct keep_policy){.best = 1}, NULL), STATUS_USAGE);
		CHECK_EQ(keep_check(&(struct keep_policy){.unmeasured = true}, NULL), STATUS_USAGE);
		CHECK_EQ(keep_check(&(struct keep_policy){.last = 1, .must = KEEP_BEST}, NULL),
			STATUS_USAGE);
		CHECK_EQ(keep_check(&(struct keep_policy){.max_bytes = 1}, NULL), STATUS_OK);
	}
	TEST("lists of rules and of steps")
	{
		policy.last = 1;
		CHECK_EQ(keep_read_must(&policy, "keep-best,keep-last", NULL), STATUS_OK);
		CHECK_EQ(policy.must, KEEP_BEST | KEEP_LAST);
		policy.must = 0;
		CHECK_EQ(keep_read_must(&policy, "all", NULL), STATUS_OK);
		CHECK_EQ(policy.must, KEEP_LAST);
		static const char *const wrong[] = {"", ",", "last", "keep-last,,keep-best", "pin"};
		for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
			CHECK_EQ(keep_read_must(&policy, wrong[i], NULL), STATUS_USAGE);
		CHECK_EQ(keep_read_steps("7,0", steps, 3, &n, NULL), STATUS_OK);
		CHECK(n == 2 && steps[0] == 7 && steps[1] == 0);
		CHECK_EQ(keep_read_steps("1,2", steps, 3, &n, NULL), STATUS_USAGE);
		static const char *const no_steps[] = {"", ",", "1,,2", "-1", "1x", "0x1"};
		for (size_t i = 0; i < sizeof(no_steps) / sizeof(no_steps[0]); i++) {
			n = 0;
			CHECK_EQ(keep_read_steps(no_steps[i], steps, 3, &n, NULL), STATUS_USAGE);
		}
	}
}

static void check_metric(void)
{
	struct checkpoint three[3] = {{.state = CHECKPOINT_COMPLETE}, {.state = CHECKPOINT_BAD},
		{.state = CHECKPOINT_COMPLETE}};
	struct keep_policy policy = {.best = 1, .metric = "loss"};
	struct error err = {0};
	CHECK_EQ(check_metric_of(&policy, three, 3, &err), STATUS_USAGE);
	CHECK(strstr(err.text, "no metrics") != NULL, "%s", err.text);
	CHECK_EQ(check_metric_of(&policy, three + 1, 1, NULL), STATUS_OK);
	CHECK_EQ(check_metric_of(&policy, three, 0, NULL), STATUS_OK);
	metrics_read("score=1", &three[0].metrics, NULL);
	CHECK_EQ(check_metric_of(&policy, three, 3, &err), STATUS_USAGE);
	CHECK(strstr(err.text, "they have score)") != NULL, "%s", err.text);
	policy.unmeasured = true;
	CHECK_EQ(check_metric_of(&policy, three, 3, NULL), STATUS_OK);
	policy.unmeasured = false;
	metrics_read("loss=nan", &three[1].metrics, NULL);
	CHECK_EQ(check_metric_of(&policy, three, 3, NULL), STATUS_OK);
	CHECK_EQ(check_metric_of(&(struct keep_policy){.last = 1}, three, 3, NULL), STATUS_OK);
}

/* What is being written, or was: its writer, attempt, step, and how much of it is there. */
static void check_incomplete(void)
{
	static const struct {
		const char *title;
		struct checkpoint item;
		uint64_t newest, begun; /* attempts: of the newest complete one, and begun */
		uint64_t complete;	/* the step of the newest complete one; 0: none */
		bool keep;
	} rows[] = {
		{"a living writer keeps it", {.writer = WRITER_ALIVE, .attempt = 1}, 9, 9, 0, true},
		{"one that is gone does not", {.writer = WRITER_GONE, .attempt = 3}, 0, 0, 0,
			false},
		{"one that cannot be asked", {.writer = WRITER_ELSEWHERE, .attempt = 3}, 3, 3, 0,
			true},
		{"but not when a later attempt has saved",
			{.writer = WRITER_ELSEWHERE, .attempt = 3}, 4, 4, 0, false},
		{"attempt 0: not counted", {.writer = WRITER_ELSEWHERE}, 4, 4, 0, true},
		{"no process's, but not empty", {.writer = WRITER_UNKNOWN}, 4, 4, 0, true},
		{"no process's and empty", {.writer = WRITER_UNKNOWN, .vacant = true}, 4, 4, 0,
			false},
		{"whole, not published, none is complete", {.step = 10, .whole = true}, 0, 2, 0,
			true},
		{"whole, an older one is complete", {.step = 10, .whole = true}, 0, 2, 8, true},
		{"whole, the same step is complete", {.step = 8, .whole = true}, 0, 2, 8, false},
		{"whole, a newer one is complete", {.step = 7, .whole = true}, 0, 2, 8, false},
		{"a task has not begun, none is complete", {.step = 10, .early = true}, 0, 1, 0,
			true},
		{"a task has not begun, an older one is complete", {.step = 10, .early = true}, 0,
			1, 8, true},
		{"a task has not begun, the same step is complete", {.step = 8, .early = true}, 0,
			1, 8, false},
		{"a task has not begun, a newer one is complete", {.step = 7, .early = true}, 0, 1,
			8, false},
		{"a task has not begun, a later attempt has", {.step = 10, .early = true}, 0, 2, 8,
			false},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct keep_decision decision;
		struct checkpoint item = rows[i].item,
				  newest = {.state = CHECKPOINT_COMPLETE, .step = rows[i].complete};
		item.state = CHECKPOINT_INCOMPLETE;
		if (item.whole || item.early) {
			item.writer = WRITER_GONE;
			item.attempt = 1;
		}
		keep_decide_incomplete(&item, rows[i].newest, rows[i].begun,
			rows[i].complete ? &newest : NULL, &decision);
		CHECK(decision.keep == rows[i].keep, "%s", rows[i].title);
	}
}

int main(void)
{
	check_histories();
	check_by_hand();
	check_words();
	TEST("--keep-best by a metric that none has is refused") check_metric();
	unit_begin(NULL);
	check_incomplete();
	return unit_end();
}
