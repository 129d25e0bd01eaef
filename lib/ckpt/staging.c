/* SPDX-License-Identifier: MIT */
#include "ckpt/staging.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/xalloc.h"
#include "ckpt/directory.h"

/* At most this number of missing tasks is listed. */
#define NAMED_MAX 16

bool staging_is_scratch(const struct checkpoint_target *target)
{
	return target->again || (target->chief_only && target->task != 0);
}

char *staging_path(const struct checkpoint_target *target)
{
	char name[CKPT_NAME_SIZE];
	struct ckpt_name read = {.kind = CKPT_NAME_STAGING,
		.step = target->step,
		.attempt = target->attempt,
		.task = target->task};
	memcpy(read.life, target->life, sizeof(read.life));
	if (staging_is_scratch(target))
		read.kind = CKPT_NAME_SCRATCH;
	ckpt_name_make(name, &read);
	return ckpt_directory_path(target->directory, name);
}

/* Note the name of a record: a writer's (tasks 0: of the whole), or a shard's. */
static enum status note(const char *path, const char *name, const struct checkpoint_target *target,
	struct staging *staging, struct error *err)
{
	uint64_t task, tasks;
	bool shard = ckpt_name_read_record(name, CKPT_SHARD, &task, &tasks);
	if (!shard && !ckpt_name_read_record(name, CKPT_WRITER, &task, &tasks))
		return STATUS_OK;
	if (target && target->sharded != (tasks > 0))
		return error_set(err, STATUS_USAGE, "%s was begun %s --sharded", path,
			tasks ? "with" : "without");
	if (target && target->sharded && tasks != target->tasks)
		return error_set(err, STATUS_USAGE,
			"%s was begun for %" PRIu64 " tasks, not for %" PRIu64, path, tasks,
			target->tasks);
	if (tasks > staging->tasks) {
		staging->committed = xrealloc(staging->committed, tasks, sizeof(bool));
		memset(staging->committed + staging->tasks, 0, tasks - staging->tasks);
		staging->tasks = tasks;
	}
	if (shard)
		staging->committed[task] = true;
	return STATUS_OK;
}

enum status staging_open(const char *path, const struct checkpoint_target *target,
	struct staging *staging, struct error *err)
{
	struct file_names names = {0};
	struct stat st;
	/* Opening it makes a network filesystem ask its server for the names of other tasks. */
	struct staging look = {.root = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
	if (look.root < 0 && errno == ENOENT)
		return error_set(err, STATUS_NO, "there is no %s", path);
	if (look.root < 0)
		return error_errno(err, errno, "read %s", path);
	look.tasks = target && target->sharded ? target->tasks : 0;
	look.committed = xcalloc(look.tasks, sizeof(bool));
	enum status status = file_read_names(look.root, path, &names, err);
	for (size_t i = 0; i < names.count && status == STATUS_OK; i++)
		status = note(path, names.names[i], target, &look, err);
	file_names_release(&names);
	if (fstat(look.root, &st) < 0)
		status = error_errno(err, errno, "look at %s", path);
	else if (st.st_nlink == 0) /* it was removed after it was opened */
		status = error_set(err, STATUS_NO, "there is no %s", path);
	look.inode = st.st_ino;
	if (status == STATUS_OK)
		*staging = look;
	else
		staging_close(&look);
	return status;
}

void staging_close(struct staging *staging)
{
	if (staging->root >= 0)
		close(staging->root);
	free(staging->committed);
	*staging = (struct staging){.root = -1};
}

uint64_t staging_absent(const struct staging *staging, struct text *absent)
{
	uint64_t missing = 0;
	for (uint64_t task = 0; task < staging->tasks; task++) {
		if (staging->committed[task])
			continue;
		if (missing < NAMED_MAX)
			text_addf(absent, missing ? ", %" PRIu64 : "%" PRIu64, task);
		else if (missing == NAMED_MAX)
			text_add(absent, ", ...");
		missing++;
	}
	return missing;
}
