/* SPDX-License-Identifier: MIT */
/* command:TEXT. Runs the command once each period. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/loop.h"
#include "base/process/subprocess.h"
#include "base/xalloc.h"
#include "notice/source.h"

struct command_source {
	struct source source;
	char *command;
	int64_t grace, period, timeout;
	int64_t next; /* when to run the command next */
	struct loop loop;
	struct subprocess child;
	bool given; /* the notice with given_reason was returned */
	char given_reason[256];
};

static void command_close(struct source *source)
{
	struct command_source *self = (struct command_source *)source;
	subprocess_release(&self->child);
	loop_close(&self->loop);
	free(self->command);
	free(self);
}

static enum status command_open(struct source **source, const char *rest,
	const struct source_options *options, struct error *err)
{
	struct command_source *self = xcalloc(1, sizeof(*self));
	self->command = xstrdup(rest);
	self->grace = options->grace;
	self->period = options->period ? options->period : 1000;
	self->timeout = options->timeout ? options->timeout : 10000;
	*source = &self->source;
	enum status status = loop_open(&self->loop, err);
	if (status != STATUS_OK)
		command_close(&self->source);
	return status;
}

static int command_descriptor(const struct source *source)
{
	return ((const struct command_source *)source)->loop.descriptor;
}

static int64_t command_due(const struct source *source)
{
	const struct command_source *self = (const struct command_source *)source;
	return self->child.pid ? self->child.end.due : self->next;
}

static enum source_answer read_answer(
	struct command_source *self, struct notice *notice, struct error *err)
{
	const char *reason = text_first_line(&self->child.output);
	const char *complaint = text_first_line(&self->child.errors);
	int code = self->child.code;
	if (code == 1) {
		self->given = false;
		return SOURCE_NONE;
	}
	if (code != 0) {
		error_set(err, STATUS_TEMPORARY, "it ended with %d%s%s", code,
			*complaint ? ": " : "", complaint);
		return SOURCE_CANNOT_ASK;
	}
	if (self->given && !strcmp(self->given_reason, reason))
		return SOURCE_NONE;
	self->given = true;
	strcpy(self->given_reason, reason);
	notice_set(notice, self->source.name, reason, notice_time(), self->grace);
	return SOURCE_NOTICE;
}

static enum source_answer command_check(
	struct source *source, int64_t now, struct notice *notice, struct error *err)
{
	struct command_source *self = (struct command_source *)source;
	struct subprocess_options how = {.shell = self->command,
		.standard = {SUBPROCESS_NOTHING, SUBPROCESS_KEEP, SUBPROCESS_KEEP},
		.keep = sizeof(self->given_reason) - 1,
		.limit = now + self->timeout,
		.loop = &self->loop};
	switch (subprocess_finish(&self->child, now)) {
	case SUBPROCESS_RUNS: return SOURCE_PENDING;
	case SUBPROCESS_LATE:
		error_set(err, STATUS_TEMPORARY, "it took longer than %lld ms and was killed",
			(long long)self->timeout);
		return SOURCE_CANNOT_ASK;
	case SUBPROCESS_ENDED: return read_answer(self, notice, err);
	case SUBPROCESS_NONE: break;
	}
	if (now < self->next)
		return SOURCE_PENDING;
	self->next = now + self->period;
	subprocess_release(&self->child);
	return subprocess_start(&self->child, &how, err) == STATUS_OK ? SOURCE_PENDING
								      : SOURCE_CANNOT_ASK;
}

const struct source_kind source_command = {.name = "command",
	.example = "command:TEXT",
	.open = command_open,
	.close = command_close,
	.descriptor = command_descriptor,
	.due = command_due,
	.check = command_check};
