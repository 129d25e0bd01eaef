/* SPDX-License-Identifier: MIT */
/* Reading lists of rules and of steps; checking that the rules make sense together. */
#include <string.h>

#include "base/parse.h"
#include "ckpt/keep.h"

static const struct {
	const char *name;
	unsigned rule;
} names[] = {{"keep-last", KEEP_LAST}, {"keep-every-steps", KEEP_EVERY_STEPS},
	{"keep-every", KEEP_EVERY}, {"keep-within", KEEP_WITHIN}, {"keep-best", KEEP_BEST},
	{"keep-unmeasured", KEEP_UNMEASURED}, {"keep-step", KEEP_STEP}, {"keep-daily", KEEP_DAILY},
	{"keep-weekly", KEEP_WEEKLY}, {"keep-monthly", KEEP_MONTHLY}};
#define RULES (sizeof(names) / sizeof(names[0]))

/* The rule of this name, for instance "keep-last"; 0: there is none. */
static unsigned rule_named(const char *name)
{
	for (size_t i = 0; i < RULES; i++)
		if (strcmp(names[i].name, name) == 0)
			return names[i].rule;
	return 0;
}

const char *keep_rule_name(enum keep_rule rule)
{
	size_t i = 0;
	while (i < RULES - 1 && names[i].rule != rule)
		i++;
	return names[i].name;
}

unsigned keep_rules(const struct keep_policy *policy)
{
	return (policy->last ? KEEP_LAST : 0u) | (policy->every_steps ? KEEP_EVERY_STEPS : 0u) |
	       (policy->every ? KEEP_EVERY : 0u) | (policy->within ? KEEP_WITHIN : 0u) |
	       (policy->best ? KEEP_BEST : 0u) | (policy->unmeasured ? KEEP_UNMEASURED : 0u) |
	       (policy->step_count ? KEEP_STEP : 0u) | (policy->daily ? KEEP_DAILY : 0u) |
	       (policy->weekly ? KEEP_WEEKLY : 0u) | (policy->monthly ? KEEP_MONTHLY : 0u);
}

enum status keep_check(const struct keep_policy *policy, struct error *err)
{
	unsigned given = keep_rules(policy);
	if (!given && !policy->max_bytes && !policy->min_free)
		return error_set(err, STATUS_USAGE,
			"no rule says what to keep; give --keep-last N or another --keep-...");
	if ((policy->best || policy->unmeasured) && !policy->metric)
		return error_set(
			err, STATUS_USAGE, "--keep-best and --keep-unmeasured need --metric NAME");
	/* Refuse --metric alone: a rule that uses it was probably forgotten. */
	if (policy->metric && !policy->best && !policy->unmeasured)
		return error_set(err, STATUS_USAGE,
			"--metric has no effect without --keep-best or --keep-unmeasured");
	for (size_t i = 0; i < RULES; i++)
		if ((policy->must & names[i].rule) && !(given & names[i].rule))
			return error_set(err, STATUS_USAGE, "--must %s: there is no --%s",
				names[i].name, names[i].name);
	return STATUS_OK;
}

/* Copy the next part of a list, at most size bytes with the NUL, and move *list behind it. */
static bool next_part(const char **list, char *part, size_t size)
{
	size_t length = strcspn(*list, ",");
	if (length == 0 || length >= size)
		return false;
	memcpy(part, *list, length);
	part[length] = '\0';
	*list += length;
	*list += **list == ',';
	return true;
}

enum status keep_read_must(struct keep_policy *policy, const char *text, struct error *err)
{
	char part[32];
	const char *list = text;
	do {
		bool read = next_part(&list, part, sizeof(part));
		unsigned rule = !read			   ? 0
				: strcmp(part, "all") == 0 ? keep_rules(policy)
							   : rule_named(part);
		if (!rule && read && strcmp(part, "all") == 0)
			return error_set(err, STATUS_USAGE, "--must all: there is no rule");
		if (!rule)
			return error_set(err, STATUS_USAGE,
				"--must: \"%s\" is not a list of rules; write all, or "
				"keep-last,keep-best and so on",
				text);
		policy->must |= rule;
	} while (*list);
	return STATUS_OK;
}

enum status keep_read_steps(
	const char *text, uint64_t *steps, size_t capacity, size_t *count, struct error *err)
{
	char part[32];
	const char *list = text;
	do {
		if (!next_part(&list, part, sizeof(part)))
			return error_set(err, STATUS_USAGE,
				"--keep-step: \"%s\" is not a list of steps; write 100,200", text);
		if (*count == capacity)
			return error_set(err, STATUS_USAGE,
				"--keep-step: more than %zu steps; pin them instead", capacity);
		enum status status = parse_unsigned(
			part, 0, CKPT_NUMBER_MAX, &steps[*count], "--keep-step", err);
		if (status != STATUS_OK)
			return status;
		++*count;
	} while (*list);
	return STATUS_OK;
}
