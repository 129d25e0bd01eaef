/* SPDX-License-Identifier: MIT */
/*
 * The keep policy against a slow and obvious reference: every rule alone, all pairs of rules and
 * any mixture, with and without a limit, on random histories in all states: with equal times, and
 * times that are not known or in the future, clocks that went backwards, steps that begin again,
 * and files that changed just before and just after they count as settled.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ckpt/keep.h"
#include "unit.h"

/* The functions take pointers. */
#define POINTERS(items, count)                                                                     \
	const struct checkpoint *pointers[64];                                                     \
	for (size_t i = 0; i < (count); i++)                                                       \
	pointers[i] = &(items)[i]

static bool decide_on(const struct keep_policy *policy, const struct keep_moment *moment,
	const struct checkpoint *items, size_t count, struct keep_decision *decisions)
{
	POINTERS(items, count);
	return keep_decide(policy, moment, pointers, count, decisions);
}

static enum status check_metric_of(const struct keep_policy *policy, const struct checkpoint *items,
	size_t count, struct error *err)
{
	POINTERS(items, count);
	return keep_check_metric(policy, pointers, count, err);
}

#define RULES	  6 /* enum keep_rule */
#define ITEMS	  12
#define HISTORIES 1000
#define HOUR	  3600000

static uint64_t seed;

static uint64_t draw(uint64_t below)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (seed >> 33) % below;
}

/* ---- The reference. Each rule on its own, each item on its own, in as many words. ---- */

static const struct checkpoint *items;
static size_t count;

static const struct keep_moment *moment;

/* Not the trainer's own, which only the trainer replaces. */
static bool whole(size_t i)
{
	return items[i].state == CHECKPOINT_COMPLETE && !items[i].own;
}

static bool settled(size_t i)
{
	return items[i].changed == 0 || items[i].changed + moment->settled <= moment->clock;
}

static bool complete(size_t i)
{
	return whole(i) && settled(i);
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

static bool by_rules(size_t i, const struct keep_policy *policy)
{
	for (size_t k = 0; k < policy->step_count; k++)
		if (policy->steps[k] == items[i].step && !items[i].unfinished)
			return true;
	if (!complete(i))
		return false;
	return (policy->last && newer_complete(i) < policy->last) ||
	       (policy->every_steps && items[i].step % policy->every_steps == 0) ||
	       (policy->every && by_every(i, policy->every)) ||
	       (policy->within &&
		       (items[i].utc == 0 || moment->now - items[i].utc <= policy->within)) ||
	       (policy->best && by_best(i, policy));
}

/* Whether a complete one of the same or a newer step is there. */
static bool is_superseded(size_t i)
{
	for (size_t k = 0; k < count; k++)
		if (complete(k) && items[k].step >= items[i].step)
			return true;
	return false;
}

static bool always(size_t i)
{
	uint64_t newer_whole = 0;
	for (size_t k = 0; k < count; k++)
		newer_whole += whole(k) && items[k].step > items[i].step;
	if (items[i].pinned || items[i].own || *items[i].stays)
		return true;
	switch (items[i].state) {
	case CHECKPOINT_COMPLETE:
		return !settled(i) || newer_whole == 0 || newer_complete(i) == 0 ||
		       is_committed_last(i);
	case CHECKPOINT_BAD:
	case CHECKPOINT_DAMAGED:
	case CHECKPOINT_INCOMPLETE:
		if (items[i].unfinished) /* when it changed may not be known */
			return !items[i].changed || moment->clock - items[i].changed <
							    (is_superseded(i) ? HOUR : 24 * HOUR);
		return !settled(i) || newer_complete(i) == 0;
	case CHECKPOINT_DOUBTFUL:
	case CHECKPOINT_UNKNOWN_FORM:
	case CHECKPOINT_UNREADABLE: return true;
	}
	return false;
}

static bool has_rule(const struct keep_policy *policy)
{
	return policy->last || policy->every_steps || policy->every || policy->within ||
	       policy->best || policy->step_count;
}

static uint64_t sum(const bool *keeps)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < count; i++)
		bytes += keeps[i] && !items[i].unfinished ? items[i].bytes : 0;
	return bytes;
}

/* False: the limit is not met. */
static bool reference(const struct keep_policy *policy, bool *keeps)
{
	uint64_t most = policy->max_bytes ? policy->max_bytes : UINT64_MAX;
	for (size_t i = 0; i < count; i++)
		keeps[i] = always(i) || by_rules(i, policy) || (complete(i) && !has_rule(policy));
	for (size_t i = 0; i < count && sum(keeps) > most; i++)
		if (!always(i) && items[i].bytes > 0)
			keeps[i] = false;
	return sum(keeps) <= most;
}

/* ---- Random histories and rules ---- */

static const uint64_t named[] = {3, 10, 20, 21, 22, 40};

static size_t make_history(struct checkpoint made[ITEMS])
{
	static const enum checkpoint_state states[] = {CHECKPOINT_COMPLETE, CHECKPOINT_COMPLETE,
		CHECKPOINT_COMPLETE, CHECKPOINT_COMPLETE, CHECKPOINT_COMPLETE, CHECKPOINT_BAD,
		CHECKPOINT_DAMAGED, CHECKPOINT_INCOMPLETE, CHECKPOINT_DOUBTFUL,
		CHECKPOINT_UNKNOWN_FORM, CHECKPOINT_UNREADABLE};
	size_t made_count = draw(ITEMS + 1), published = made_count - draw(made_count + 1) / 3;
	uint64_t step = 0;
	int64_t utc = 1000;
	unsigned shape = (unsigned)draw(4);
	memset(made, 0, ITEMS * sizeof(*made));
	for (size_t i = 0; i < made_count; i++) {
		struct checkpoint *item = &made[i];
		item->step = i < published ? step : draw(step + 10);
		step += 1 + draw(10);
		item->state = shape == 0 ? CHECKPOINT_COMPLETE : states[draw(11)];
		/*
		 * Mostly onwards; standing still; backwards; a run that began again at a low step.
		 */
		if (shape == 1)
			utc = (int64_t)draw(2000);
		else if (shape == 2 && i == made_count / 2)
			utc -= 1500;
		else
			utc += (int64_t)(draw(3) * draw(200));
		item->utc = draw(15) == 0 ? 0 : utc;
		item->changed = draw(2) ? 0 : 102 * HOUR - (int64_t)draw(42) * HOUR;
		item->bytes = draw(8) * 10;
		item->pinned = draw(20) == 0;
		item->own = draw(20) == 0;
		strcpy(item->stays, draw(20) ? "" : "LATEST leads to it");
		if (draw(4)) {
			strcpy(item->metrics.items[0].name, draw(6) ? "loss" : "score");
			item->metrics.items[0].value = draw(8) ? (double)draw(6) - 3 : NAN;
			item->metrics.count = 1;
		}
		if (i < published)
			continue;
		item->state = draw(5) ? CHECKPOINT_INCOMPLETE : CHECKPOINT_UNREADABLE;
		item->unfinished = true;
		item->changed = draw(10) ? 100 * HOUR - (int64_t)draw(30) * HOUR : 0;
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
	if (rules & KEEP_BEST)
		policy.best = number();
	policy.steps = named;
	if (rules & KEEP_STEP)
		policy.step_count = 1 + draw(6);
	return policy;
}

/* Whether function and reference agree on history; else says how. */
static bool agrees(uint64_t history, unsigned rules, bool limit)
{
	struct checkpoint made[ITEMS], left[ITEMS];
	struct keep_decision decisions[ITEMS], again[ITEMS];
	bool keeps[ITEMS] = {false};
	seed = history * 1000003 + rules;
	(void)draw(1);
	count = make_history(made);
	items = made;
	struct keep_policy policy = make_policy(rules);
	const struct keep_moment when = {
		(int64_t)draw(4000), 100 * HOUR, (int64_t)draw(3) * 10 * HOUR};
	moment = &when;
	if (limit)
		policy.max_bytes = draw(400) + 1;
	bool met = decide_on(&policy, &when, made, count, decisions);
	if (met != reference(&policy, keeps)) {
		printf("# history %" PRIu64 ", rules %u: limit met: %d\n", history, rules, met);
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
	if (limit || !rules)
		return true;
	/* What was kept is kept when it is looked at again. */
	decide_on(&policy, &when, left, kept, again);
	for (size_t i = 0; i < kept; i++)
		if (!again[i].keep) {
			printf("# history %" PRIu64 ", rules %u: step %" PRIu64 " goes later: %s\n",
				history, rules, left[i].step, again[i].why);
			return false;
		}
	return true;
}

static void check_rules(unsigned rules, bool limit, const char *what)
{
	uint64_t history = 0;
	while (history < HISTORIES && agrees(history, rules, limit))
		history++;
	CHECK(history == HISTORIES, "%s (rules %u): as the reference says, %d histories", what,
		rules, HISTORIES);
}

static void check_histories(void)
{
	uint64_t history = 0;
	for (unsigned a = 0; a < RULES; a++) {
		check_rules(1u << a, false, "one rule");
		check_rules(1u << a, true, "one rule and a limit");
		for (unsigned b = a + 1; b < RULES; b++)
			check_rules(1u << a | 1u << b, false, "two rules");
	}
	check_rules(0, true, "a limit alone");
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
	const struct keep_moment when = {now, now, 15 * 60000};
	(void)decide_on(policy, &when, of, n, decisions);
	text[0] = '\0';
	for (size_t i = 0; i < n; i++)
		if (decisions[i].keep)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%" PRIu64,
				*text ? " " : "", of[i].step);
	return text;
}

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
	TEST("a clock that is far ahead leaves one, and so does a limit that cannot be met")
	{
		CHECK_TEXT(kept_of(&(struct keep_policy){.within = 1}, INT64_MAX, 10, made), "9");
		CHECK_TEXT(kept_of(&(struct keep_policy){.max_bytes = 1}, 0, 10, made), "9");
	}
	TEST("a list of steps is put behind what is there, and never beyond its room")
	{
		uint64_t steps[4] = {0, 0, 0, 5};
		size_t n = 1;
		CHECK_EQ(keep_read_steps("7,0", steps, 3, &n, NULL), STATUS_OK);
		CHECK(n == 3 && steps[1] == 7 && steps[2] == 0);
		CHECK_EQ(keep_read_steps("1", steps, 3, &n, NULL), STATUS_USAGE);
		CHECK_EQ(steps[3], 5);
	}
	TEST("the reasons name every rule that keeps it")
	{
		struct keep_decision decisions[10];
		const struct keep_moment when = {0};
		const struct keep_policy policy = {.last = 2, .every_steps = 4};
		decide_on(&policy, &when, made, 10, decisions);
		CHECK_TEXT(decisions[9].why, "the newest complete one");
		CHECK_TEXT(decisions[8].why, "one of the last 2, every 4 steps");
		CHECK_EQ(decisions[8].rules, KEEP_LAST | KEEP_EVERY_STEPS);
		CHECK_EQ(decisions[7].rules, 0u);
		CHECK_TEXT(decisions[7].why, "2 newer ones are complete");
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
	metrics_read("loss=nan", &three[1].metrics, NULL);
	CHECK_EQ(check_metric_of(&policy, three, 3, NULL), STATUS_OK);
	CHECK_EQ(check_metric_of(&(struct keep_policy){.last = 1}, three, 3, NULL), STATUS_OK);
}

int main(void)
{
	check_histories();
	check_by_hand();
	TEST("--keep-best by a metric that none has is refused") check_metric();
	return unit_end();
}
