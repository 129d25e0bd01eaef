/* SPDX-License-Identifier: MIT */
#include "ckpt/keep.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/xalloc.h"

#define HOUR INT64_C(3600000)
#define DAY  (24 * HOUR)

/* The input of the decision, and the decisions so far. */
struct keep_input {
	const struct keep_policy *policy;
	const struct keep_moment *moment;
	const struct checkpoint *const *items;
	size_t count;
	size_t newest; /* the newest one that counts; count: there is none */
	struct keep_decision *decisions;
};

/* Keep item i, for a rule, or in any case (rule 0). */
__attribute__((format(printf, 4, 5))) static void keep(
	const struct keep_input *input, size_t i, unsigned rule, const char *format, ...)
{
	struct keep_decision *decision = &input->decisions[i];
	size_t length = strlen(decision->why), size = sizeof(decision->why);
	va_list arguments;
	va_start(arguments, format);
	if (length && length + 2 < size)
		length += (size_t)snprintf(decision->why + length, size - length, ", ");
	vsnprintf(decision->why + length, size - length, format, arguments);
	va_end(arguments);
	decision->must |= rule == 0;
	decision->rules |= rule;
	decision->keep = true;
}

static bool has_rule(const struct keep_policy *policy)
{
	return policy->last || policy->every_steps || policy->every || policy->within ||
	       policy->best || policy->step_count;
}

/* ---- What is known of one ---- */

/* a - b, without overflow. */
static int64_t later(int64_t a, int64_t b)
{
	int64_t difference;
	if (__builtin_sub_overflow(a, b, &difference))
		return a < b ? INT64_MIN : INT64_MAX;
	return difference;
}

/* For how long it has not changed, in ms. Without a time: what is published has never been changed,
 * and what is unfinished may just now be. */
static int64_t quiet(const struct checkpoint *item, const struct keep_moment *moment)
{
	if (item->changed == 0)
		return item->unfinished ? 0 : INT64_MAX;
	return later(moment->clock, item->changed);
}

static bool is_complete(const struct checkpoint *item)
{
	return item->state == CHECKPOINT_COMPLETE && !item->unfinished && !item->own;
}

bool keep_counts(const struct checkpoint *item, const struct keep_moment *moment)
{
	return is_complete(item) && quiet(item, moment) >= moment->settled;
}

static bool counts(const struct keep_input *input, size_t i)
{
	return keep_counts(input->items[i], input->moment);
}

/* Whether a complete checkpoint makes item i superfluous, if it is not complete. */
static bool is_superseded(const struct keep_input *input, size_t i)
{
	if (input->newest == input->count)
		return false;
	return input->items[i]->unfinished
		       ? input->items[input->newest]->step >= input->items[i]->step
		       : input->newest > i;
}

/* ---- What is never removed ---- */

/* Keep the newest ones; sets newest. */
static void keep_newest(struct keep_input *input)
{
	size_t none = input->count, newest = none, settled = none, last = none;
	for (size_t i = 0; i < input->count; i++) {
		if (is_complete(input->items[i]))
			newest = i;
		if (!counts(input, i))
			continue;
		settled = i;
		if (last == none || input->items[i]->utc >= input->items[last]->utc)
			last = i;
	}
	input->newest = settled;
	if (newest != none)
		keep(input, newest, 0, "the newest complete one");
	if (settled != newest && settled != none)
		keep(input, settled, 0, "the newest complete one that is settled");
	if (last != settled)
		keep(input, last, 0, "the one committed last");
}

static void keep_by_state(const struct keep_input *input, size_t i)
{
	static const char *const unknown[] = {
		[CHECKPOINT_DOUBTFUL] = "not known to be complete",
		[CHECKPOINT_UNKNOWN_FORM] = "of an unknown form",
		[CHECKPOINT_UNREADABLE] = "could not be read",
	};
	const struct checkpoint *item = input->items[i];
	const bool superseded = is_superseded(input, i);
	const int64_t unchanged = quiet(item, input->moment),
		      enough = !item->unfinished ? input->moment->settled
			       : superseded	 ? HOUR
						 : DAY;
	if (unknown[item->state]) {
		keep(input, i, 0, "%s", unknown[item->state]);
	} else if (unchanged < enough && !item->own) {
		struct text age = {0};
		text_add_age(&age, unchanged);
		keep(input, i, 0, "%sperhaps still being written: changed %s ago",
			item->unfinished ? "not committed; " : "", text_string(&age));
		text_release(&age);
	} else if (item->state != CHECKPOINT_COMPLETE && !item->unfinished && !superseded) {
		keep(input, i, 0, "%s, and no newer one is complete",
			checkpoint_state_name(item->state));
	}
	if (item->own)
		keep(input, i, 0, "the trainer's own");
	if (*item->stays)
		keep(input, i, 0, "%s", item->stays);
	if (item->pinned)
		keep(input, i, 0, "pinned");
}

/* ---- The rules ---- */

/* Write a duration with one unit: "200m", not "3h 20m". */
static void span(char text[32], int64_t milliseconds)
{
	static const struct {
		int64_t length;
		const char *name;
	} units[] = {{DAY, "d"}, {HOUR, "h"}, {60000, "m"}, {1000, "s"}, {1, "ms"}};
	size_t i = 0;
	while (milliseconds % units[i].length)
		i++;
	snprintf(text, 32, "%" PRId64 "%s", milliseconds / units[i].length, units[i].name);
}

/* How many others are better than item i, by these values (NAN: none): of equal ones the newer. */
static uint64_t count_better(const struct keep_input *input, const double *values, size_t i)
{
	uint64_t better = 0;
	for (size_t k = 0; k < input->count; k++)
		better += input->policy->highest ? values[k] > values[i] : values[k] < values[i];
	for (size_t k = i + 1; k < input->count; k++)
		better += values[k] == values[i];
	return better;
}

static void keep_by_rules(const struct keep_input *input)
{
	const struct keep_policy *policy = input->policy;
	char every[32], within[32];
	double *values = xcalloc(input->count + 1, sizeof(*values));
	int64_t kept = INT64_MAX; /* the time of the last one that --keep-every has kept */
	uint64_t newer = 0;
	span(every, policy->every);
	span(within, policy->within);
	for (size_t i = 0; i < input->count; i++) {
		newer += counts(input, i);
		if (!policy->best || !counts(input, i) ||
			!metrics_get(&input->items[i]->metrics, policy->metric, &values[i]))
			values[i] = NAN;
	}
	for (size_t i = 0; i < input->count; i++) {
		const struct checkpoint *item = input->items[i];
		int64_t utc = item->utc;
		bool named = false;
		for (size_t k = 0; k < policy->step_count && !item->unfinished; k++)
			named |= policy->steps[k] == item->step;
		if (named)
			keep(input, i, KEEP_STEP, "named by --keep-step");
		if (!counts(input, i))
			continue;
		/* The newest one is kept anyway. */
		if (--newer > 0 && newer < policy->last)
			keep(input, i, KEEP_LAST, "one of the last %" PRIu64, policy->last);
		if (policy->every_steps && item->step % policy->every_steps == 0)
			keep(input, i, KEEP_EVERY_STEPS, "every %" PRIu64 " steps",
				policy->every_steps);
		if (policy->every &&
			(utc == 0 || utc < kept || later(utc, kept) >= policy->every)) {
			keep(input, i, KEEP_EVERY, "every %s", every);
			kept = utc ? utc : kept;
		}
		if (policy->within &&
			(utc == 0 || later(input->moment->now, utc) <= policy->within))
			keep(input, i, KEEP_WITHIN, "within %s", within);
		if (!isnan(values[i]) && count_better(input, values, i) < policy->best)
			keep(input, i, KEEP_BEST, "one of the best %" PRIu64 " by %s", policy->best,
				policy->metric);
	}
	free(values);
}

/* Say why the others go; with a limit and no rule, keep the complete ones at first. */
static void decide_rest(const struct keep_input *input)
{
	uint64_t newer = 0;
	for (size_t i = input->count; i-- > 0;) {
		struct keep_decision *decision = &input->decisions[i];
		char *why = decision->why;
		bool counted = counts(input, i);
		if (decision->keep)
			;
		else if (counted && !has_rule(input->policy))
			*decision = (struct keep_decision){.keep = true, .why = "there is room"};
		else if (counted)
			snprintf(why, sizeof(decision->why), "%" PRIu64 " newer ones are complete",
				newer);
		else if (input->items[i]->unfinished)
			snprintf(why, sizeof(decision->why),
				"not committed, and not changed for a%s",
				is_superseded(input, i) ? "n hour; a newer one is complete"
							: " day");
		else
			snprintf(why, sizeof(decision->why), "%s, and a newer one is complete",
				checkpoint_state_name(input->items[i]->state));
		newer += counted;
	}
}

/* Keep no more than max_bytes, and let the oldest go first. False: more must be kept. */
static bool limit(const struct keep_input *input)
{
	uint64_t kept = 0, most = input->policy->max_bytes;
	if (!most)
		return true;
	for (size_t i = 0; i < input->count; i++)
		if (input->decisions[i].keep && !input->items[i]->unfinished &&
			__builtin_add_overflow(kept, input->items[i]->bytes, &kept))
			return false; /* the sizes are nonsense */
	for (size_t i = 0; i < input->count && kept > most; i++) {
		struct keep_decision *decision = &input->decisions[i];
		if (!decision->keep || decision->must || input->items[i]->bytes == 0)
			continue;
		*decision = (struct keep_decision){
			.why = "over --max-bytes, and it is the oldest that may be removed"};
		kept -= input->items[i]->bytes;
	}
	return kept <= most;
}

bool keep_decide(const struct keep_policy *policy, const struct keep_moment *moment,
	const struct checkpoint *const *items, size_t count, struct keep_decision *decisions)
{
	struct keep_input input = {policy, moment, items, count, count, decisions};
	for (size_t i = 0; i < count; i++)
		decisions[i] = (struct keep_decision){.keep = false};
	keep_newest(&input);
	for (size_t i = 0; i < count; i++)
		keep_by_state(&input, i);
	keep_by_rules(&input);
	decide_rest(&input);
	return limit(&input);
}

/* ---- The rules that were given ---- */

const char *keep_rule_name(enum keep_rule rule)
{
	static const char *const names[] = {"keep-last", "keep-every-steps", "keep-every",
		"keep-within", "keep-best", "keep-step"};
	return names[__builtin_ctz(rule)];
}

enum status keep_check(const struct keep_policy *policy, struct error *err)
{
	if (!has_rule(policy) && !policy->max_bytes)
		return error_set(err, STATUS_USAGE,
			"no rule says what to keep; give --keep-last N or another --keep-...");
	/* Refuse --metric alone: a rule that uses it was probably forgotten. */
	if (!policy->best != !policy->metric)
		return error_set(err, STATUS_USAGE,
			"--keep-best needs --metric NAME, and --metric needs --keep-best");
	return STATUS_OK;
}

enum status keep_check_metric(const struct keep_policy *policy,
	const struct checkpoint *const *items, size_t count, struct error *err)
{
	struct metrics all = {0};
	struct text names = {0};
	bool complete = false, known = !policy->best;
	for (size_t i = 0; i < count && !known; i++) {
		complete |= items[i]->state == CHECKPOINT_COMPLETE;
		metrics_merge(&all, &items[i]->metrics);
		for (size_t k = 0; k < items[i]->metrics.count; k++)
			known |= strcmp(items[i]->metrics.items[k].name, policy->metric) == 0;
	}
	if (known || !complete)
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

enum status keep_read_steps(
	const char *text, uint64_t *steps, size_t capacity, size_t *count, struct error *err)
{
	char part[32];
	enum status status = STATUS_OK;
	for (const char *at = text; at && status == STATUS_OK;) {
		size_t length = strcspn(at, ",");
		if (*count == capacity)
			return error_set(err, STATUS_USAGE,
				"--keep-step: more than %zu steps; pin them instead", capacity);
		snprintf(part, sizeof(part), "%.*s", (int)(length < 31 ? length : 31), at);
		status = parse_unsigned(
			part, 0, CKPT_NUMBER_MAX, &steps[*count], "--keep-step", err);
		*count += status == STATUS_OK;
		at = at[length] ? at + length + 1 : NULL;
	}
	return status;
}
