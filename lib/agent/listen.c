/* SPDX-License-Identifier: MIT */
#include "agent/listen.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/source_group.h"
#include "base/parse.h"
#include "platform/platform.h"
#include "run/options.h"

static enum status add(
	struct source_set *watch, enum status status, struct source *source, struct error *err)
{
	return status == STATUS_OK ? source_set_add(watch, source, err) : status;
}

/* Open the group as a source. round 0: notices of the claim only. */
static enum status open_group(struct source_set *watch, const struct listen_request *request,
	uint64_t round, struct source **group, struct error *err)
{
	struct group_run own;
	struct source *source = NULL;
	struct group_source_options how = {.store = own.url,
		.run = own.identity.run,
		.attempt = group_options.attempt,
		.round = round,
		.until_exit = request->until_exit,
		.past = request->past || request->until_exit};
	if (*group)
		return error_set(err, STATUS_USAGE, "--source group: given twice");
	enum status status = group_find(IDENTITY_RUN, false, &own, err);
	if (status == STATUS_OK)
		status = source_group_open(&source, &how, err);
	status = add(watch, status, source, err);
	if (status == STATUS_OK)
		*group = source;
	return status;
}

/* Open "group", "group:ROUND" or the source of any other specification. */
static enum status open_one(struct source_set *watch, const struct listen_request *request,
	const char *specification, struct source **group, struct error *err)
{
	struct source *source = NULL;
	uint64_t round = 0;
	bool claim = !strcmp(specification, "group");
	enum status status = STATUS_OK;
	if (!strncmp(specification, "group:", 6))
		status = parse_unsigned(
			specification + 6, 1, INT64_MAX, &round, "--source group:ROUND", err);
	if (status == STATUS_OK && (claim || round))
		return open_group(watch, request, round, group, err);
	if (status == STATUS_OK)
		status = source_open(&source, specification, &request->how, err);
	return add(watch, status, source, err);
}

static enum status open_platform(struct source_set *watch, struct listen_request *request,
	struct text *warnings, struct error *err)
{
	struct signs signs;
	struct platform_choice choice;
	struct source *none = NULL;
	signs_inspect(&signs);
	enum status status = platform_choose(request->platform, &signs, &choice, err);
	if (status == STATUS_OK && request->how.grace < 0)
		request->how.grace = choice.grace;
	for (size_t i = 0; status == STATUS_OK && i < choice.count; i++) {
		status = open_one(watch, request, choice.sources[i], &none, err);
		if (status != STATUS_OK && i > 0 && !choice.certain) {
			text_addf(
				warnings, "no notices from %s: %s\n", choice.sources[i], err->text);
			status = STATUS_OK;
		}
	}
	return status;
}

enum status listen_open(struct source_set *watch, struct listen_request *request,
	struct source **group, struct text *warnings, struct error *err)
{
	enum status status = STATUS_OK;
	*group = NULL;
	if (request->platform)
		status = open_platform(watch, request, warnings, err);
	for (size_t i = 0; i < request->count && status == STATUS_OK; i++)
		status = open_one(watch, request, request->specifications[i], group, err);
	return status;
}

enum status listen_signals(char names[LISTEN_SIGNALS_SIZE], struct error *err)
{
	struct platform_choice choice;
	const char *given = getenv("PREEMPT_SIGNALS"), *platform = getenv("PREEMPT_PLATFORM");
	sigset_t set;
	sigemptyset(&set);
	if (given && parse_signals(given, &set, "PREEMPT_SIGNALS", err) != STATUS_OK)
		return STATUS_USAGE;
	if (!given && platform_choose(platform ? platform : "auto", &signs_environment, &choice,
			      err) != STATUS_OK)
		return STATUS_USAGE;
	/* The first source has the signals of all chosen platforms. */
	snprintf(names, LISTEN_SIGNALS_SIZE, "%s",
		given ? given : source_signals(choice.sources[0]));
	return STATUS_OK;
}
