/* SPDX-License-Identifier: MIT */
#include "ckpt/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json_fields.h"

#define RECORD_LIMIT 4096

static void read_machine(char machine[64])
{
	struct text text = {0};
	if (file_read_whole("/etc/machine-id", 128, &text, NULL) == STATUS_OK)
		snprintf(machine, 64, "%.*s", (int)strcspn(text_string(&text), "\n"),
			text_string(&text));
	text_release(&text);
}

void writer_identify(struct writer *writer)
{
	struct process_identity self;
	read_machine(writer->machine);
	pid_t parent = getppid();
	pid_t group = getpgrp();
	if (process_identify(0, &self, NULL) != STATUS_OK)
		return;
	writer->parent = self;
	/* Do not record init: it never ends, so the directory would never be removed. */
	if (parent <= 1 || process_identify(parent, &writer->parent, NULL) != STATUS_OK)
		writer->parent.pid = 0;
	writer->group = self;
	if (group <= 0 || process_identify(group, &writer->group, NULL) != STATUS_OK) {
		writer->group.pid = group;
		writer->group.start = 0;
	}
	/* In a container the command itself may be process 1, without a group that we can see. */
	if (writer->parent.pid == 0 && writer->group.pid <= 1 && parent == 1)
		(void)process_identify(1, &writer->parent, NULL);
}

static bool is_same(const struct process_identity *a, const struct process_identity *b)
{
	return a->pid > 0 && a->pid == b->pid && a->start == b->start && a->start > 0 &&
	       strcmp(a->boot, b->boot) == 0 && strcmp(a->host, b->host) == 0 &&
	       a->pid_namespace == b->pid_namespace;
}

/* A group may outlive its leader, and keeps its number. */
static bool is_same_group(struct process_identity a, struct process_identity b)
{
	if (a.start == 0 || b.start == 0)
		a.start = b.start = 1;
	return is_same(&a, &b);
}

bool writer_is_same(const struct writer *a, const struct writer *b)
{
	return is_same(&a->parent, &b->parent) || is_same_group(a->group, b->group);
}

static bool group_is_alive(const struct process_identity *leader)
{
	struct process_identity now;
	if (leader->pid <= 1)
		return false;
	/* While a group has a number, no new process gets it. So if another process has it, the
	 * group has ended. */
	if (leader->start && process_identify(leader->pid, &now, NULL) == STATUS_OK &&
		now.start != leader->start)
		return false;
	return kill(-leader->pid, 0) == 0 || errno != ESRCH;
}

enum process_state writer_check(const struct writer *writer)
{
	struct writer here = {0};
	writer_identify(&here);
	if (strcmp(here.group.boot, writer->group.boot) != 0)
		return *here.machine && strcmp(here.machine, writer->machine) == 0 &&
				       strcmp(here.group.host, writer->group.host) == 0
			       ? PROCESS_GONE
			       : PROCESS_ELSEWHERE;
	enum process_state parent =
		writer->parent.pid ? process_check(&writer->parent) : PROCESS_GONE;
	enum process_state group = process_check(&writer->group);
	if (parent == PROCESS_ELSEWHERE || group == PROCESS_ELSEWHERE)
		return PROCESS_ELSEWHERE;
	if (parent == PROCESS_ALIVE || group_is_alive(&writer->group))
		return PROCESS_ALIVE;
	/* Without a recorded process there is nothing to check. */
	return writer->parent.pid || writer->group.pid > 1 ? PROCESS_GONE : PROCESS_ELSEWHERE;
}

bool writer_is_rival(const struct writer *recorded, const struct writer *self)
{
	if (!writer_is_same(recorded, self))
		return writer_check(recorded) == PROCESS_ALIVE;
	return !is_same(&recorded->parent, &self->parent) &&
	       process_check(&recorded->parent) == PROCESS_ALIVE &&
	       !process_is_ancestor(recorded->parent.pid, getpid()) &&
	       !process_is_ancestor(self->parent.pid, recorded->parent.pid);
}

static const struct json_field process_fields[] = {
	{"pid", JSON_SIGNED, JSON_REQUIRED, JSON_MEMBER(struct process_identity, pid), 0,
		INT32_MAX},
	{"start", JSON_UNSIGNED, JSON_REQUIRED, JSON_MEMBER(struct process_identity, start)},
	{0},
};
/* Both processes are on the same machine. */
#define WRITER(member) JSON_MEMBER(struct writer, member)
static const struct json_field writer_fields[] = {
	{"host", JSON_TEXT, JSON_REQUIRED, WRITER(group.host)},
	{"machine", JSON_TEXT, JSON_REQUIRED, WRITER(machine)},
	{"boot", JSON_TEXT, JSON_REQUIRED, WRITER(group.boot)},
	{"pid_namespace", JSON_UNSIGNED, JSON_REQUIRED, WRITER(group.pid_namespace)},
	{"parent", JSON_OBJECT, JSON_REQUIRED, WRITER(parent), .more = process_fields},
	{"group", JSON_OBJECT, JSON_REQUIRED, WRITER(group), .more = process_fields},
	{"sharded", JSON_BOOL, JSON_REQUIRED, WRITER(sharded)},
	{"tasks", JSON_UNSIGNED, JSON_REQUIRED, WRITER(tasks)},
	{0},
};

/*
 * Sync the record after it has its name, so that a pruner sees the writer even if the disk is slow.
 */
static enum status sync_record(const char *path, struct error *err)
{
	char *directory = file_directory_of(path);
	enum status status = STATUS_OK;
	int descriptor = open(path, O_RDONLY | O_CLOEXEC);
	if (descriptor < 0 || fsync(descriptor) < 0)
		status = error_errno(err, errno, "write %s", path);
	else
		status = file_sync_directory(directory, err);
	if (descriptor >= 0)
		close(descriptor);
	free(directory);
	return status;
}

enum status writer_save(const char *path, const struct writer *writer, struct error *err)
{
	struct json_object *object = json_write_record(writer_fields, writer);
	const char *line = json_line(object);
	enum status status = file_write_whole(path, line, strlen(line), 0644, false, err);
	json_object_put(object);
	return status == STATUS_OK ? sync_record(path, err) : status;
}

enum status writer_load(const char *path, struct writer *writer, struct error *err)
{
	struct text text = {0};
	struct writer read = {0};
	enum status status = file_read_whole(path, RECORD_LIMIT, &text, err);
	if (status == STATUS_DAMAGED)
		status = STATUS_NO;
	if (status == STATUS_OK && json_read_record(writer_fields, text_string(&text), text.length,
					   &read, NULL) == JSON_UNUSABLE)
		status = error_set(err, STATUS_NO, "%s does not name a writer", path);
	text_release(&text);
	if (status != STATUS_OK)
		return status;
	memcpy(read.parent.host, read.group.host, sizeof(read.parent.host));
	memcpy(read.parent.boot, read.group.boot, sizeof(read.parent.boot));
	read.parent.pid_namespace = read.group.pid_namespace;
	*writer = read;
	return STATUS_OK;
}
