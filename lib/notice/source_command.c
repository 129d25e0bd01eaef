/* SPDX-License-Identifier: MIT */
/* command:TEXT. Runs one probe each period. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "notice/probe.h"
#include "notice/source.h"

struct command_source {
	struct source source;
	char *command;
	int64_t grace, period, timeout;
	int64_t next; /* start of the next look */
	struct probe probe;
	bool given;
	char given_reason[256];
};

static void command_close(struct source *source)
{
	struct command_source *self = (struct command_source *)source;
	probe_release(&self->probe);
	free(self->command);
	free(self);
}

static enum status command_open(struct source **source, const char *rest,
	const struct source_options *options, struct error *err)
{
	struct command_source *self = calloc(1, sizeof(*self));
	if (!self)
		return error_set(err, STATUS_TEMPORARY, "out of memory");
	self->command = strdup(rest);
	self->grace = options->grace;
	self->period = options->period ? options->period : 1000;
	self->timeout = options->timeout ? options->timeout : 10000;
	enum status status = probe_init(&self->probe, err);
	if (status == STATUS_OK && !self->command)
		status = error_set(err, STATUS_TEMPORARY, "out of memory");
	if (status == STATUS_OK)
		*source = &self->source;
	else
		command_close(&self->source);
	return status;
}

static int command_descriptor(const struct source *source)
{
	return ((const struct command_source *)source)->probe.epoll;
}

static int64_t command_due(const struct source *source)
{
	const struct command_source *self = (const struct command_source *)source;
	return self->probe.pid > 0 ? self->probe.overdue : self->next;
}

static enum source_answer judge(
	struct command_source *self, int code, struct notice *notice, struct error *err)
{
	const char *reason = self->probe.output.text;
	const char *complaint = self->probe.errors.text;
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
	char shell[] = "/bin/sh", option[] = "-c";
	char *argv[] = {shell, option, self->command, NULL};
	int code = 0;
	switch (probe_check(&self->probe, now, &code, err)) {
	case PROBE_RUNNING: return SOURCE_PENDING;
	case PROBE_FAILED: return SOURCE_CANNOT_ASK;
	case PROBE_ENDED: return judge(self, code, notice, err);
	case PROBE_IDLE: break;
	}
	if (now < self->next)
		return SOURCE_PENDING;
	self->next = now + self->period;
	return probe_start(&self->probe, argv, self->timeout, now, err) == STATUS_OK
		       ? SOURCE_PENDING
		       : SOURCE_CANNOT_ASK;
}

static pid_t command_child(const struct source *source)
{
	return ((const struct command_source *)source)->probe.pid;
}

const struct source_kind source_command = {.name = "command",
	.example = "command:TEXT",
	.open = command_open,
	.close = command_close,
	.descriptor = command_descriptor,
	.due = command_due,
	.check = command_check,
	.child = command_child};
