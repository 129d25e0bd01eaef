/* SPDX-License-Identifier: MIT */
#include "notice/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/parse.h"
#include "base/xalloc.h"

static const struct source_kind *const kinds[] = {&source_signal, &source_file, &source_command,
	&source_deadline, &source_slurm, &source_gce, &source_aws, &source_azure, &source_alibaba};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

void source_list(struct text *text)
{
	for (size_t i = 0; i < KINDS; i++)
		text_addf(text, "%s%s", i ? ", " : "", kinds[i]->example);
}

static enum status refuse_kind(const char *specification, struct error *err)
{
	struct text known = {0};
	source_list(&known);
	error_set(err, STATUS_USAGE, "there is no source \"%.200s\"; known are %s", specification,
		text_string(&known));
	text_release(&known);
	return STATUS_USAGE;
}

/* The kind whose name is the first length bytes; NULL: there is none. */
static const struct source_kind *find_kind(const char *specification, size_t length)
{
	for (size_t i = 0; i < KINDS; i++)
		if (strlen(kinds[i]->name) == length &&
			!strncmp(kinds[i]->name, specification, length))
			return kinds[i];
	return NULL;
}

const char *source_signals(const char *specification)
{
	size_t length = strcspn(specification, ":");
	const struct source_kind *kind = find_kind(specification, length);
	if (!kind || !kind->signals)
		return NULL;
	return specification[length] ? specification + length + 1 : kind->signals;
}

sigset_t source_signal_set(const char *const *specifications, size_t count)
{
	sigset_t set;
	sigemptyset(&set);
	for (size_t i = 0; i < count; i++)
		(void)parse_signals(source_signals(specifications[i]), &set, "", NULL);
	return set;
}

enum status source_open(struct source **source, const char *specification,
	const struct source_options *options, struct error *err)
{
	size_t length = strcspn(specification, ":");
	const struct source_kind *kind = find_kind(specification, length);
	if (!kind)
		return refuse_kind(specification, err);
	bool bare = specification[length] == '\0';
	if (bare ? !kind->bare : specification[length + 1] == '\0')
		return error_set(err, STATUS_USAGE, "source \"%s\" is not complete; write %s",
			specification, kind->example);
	struct source *opened;
	enum status status = kind->open(&opened, specification + length + !bare, options, err);
	if (status != STATUS_OK)
		return status;
	opened->kind = kind;
	opened->name = xstrdup(specification);
	*source = opened;
	return STATUS_OK;
}

void source_close(struct source *source)
{
	if (!source)
		return;
	free(source->name);
	source->kind->close(source);
}

int source_descriptor(const struct source *source)
{
	return source->kind->descriptor(source);
}

int64_t source_due(const struct source *source)
{
	return source->kind->due ? source->kind->due(source) : CLOCK_NEVER;
}

enum source_answer source_check(
	struct source *source, int64_t now, struct notice *notice, struct error *err)
{
	return source->kind->check(source, now, notice, err);
}

bool source_take_held(struct source *source, struct notice *notice)
{
	return source->kind->take_held && source->kind->take_held(source, notice);
}

int64_t source_expects(const struct source *source)
{
	return source->kind->expects ? source->kind->expects(source) : CLOCK_NEVER;
}

const char *source_name(const struct source *source)
{
	return source->name;
}

int64_t notice_lead(int64_t grace, int64_t whole)
{
	const int64_t usual = 300000;
	if (grace >= 0)
		return grace;
	return whole / 4 < usual ? whole / 4 : usual;
}
