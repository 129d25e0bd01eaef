/* SPDX-License-Identifier: MIT */
#include "ckpt/staging.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/xalloc.h"
#include "ckpt/directory.h"
#include "ckpt/writer.h"

/* At most this number of missing tasks is listed. */
#define NAMED_MAX 16

void staging_release(struct staging *staging)
{
	free(staging->shards);
	*staging = (struct staging){0};
}

bool staging_is_scratch(const struct checkpoint_target *target)
{
	return target->again || (target->chief_only && target->task != 0);
}

void staging_name(const struct checkpoint_target *target, char name[CKPT_NAME_SIZE])
{
	if (staging_is_scratch(target))
		ckpt_name_scratch(name, target->step, target->attempt, target->life, target->task);
	else
		ckpt_name_staging(name, target->step, target->attempt, target->life);
}

bool staging_is_settled(const struct checkpoint_target *target, const struct checkpoint *found)
{
	char name[CKPT_NAME_SIZE];
	if (found->state != CHECKPOINT_BAD)
		return found->state == CHECKPOINT_COMPLETE;
	/* A task whose files are discarded may end before task 0 has begun to save again. */
	if (staging_is_scratch(target) &&
		(found->attempt != target->attempt || strcmp(found->life, target->life) != 0))
		return false;
	ckpt_name_staging(name, target->step, target->attempt, target->life);
	char *path = ckpt_directory_path(target->directory, name);
	bool settled = access(path, F_OK) < 0 && errno == ENOENT;
	free(path);
	return settled;
}

/* WRITER_ALIVE if any recorded writer is alive; otherwise WRITER_ELSEWHERE if any cannot be
 * checked; otherwise WRITER_GONE. */
static enum checkpoint_writer weigh(enum checkpoint_writer known, enum process_state state)
{
	if (known == WRITER_ALIVE || state == PROCESS_ALIVE)
		return WRITER_ALIVE;
	if (known == WRITER_ELSEWHERE || state == PROCESS_ELSEWHERE)
		return WRITER_ELSEWHERE;
	return WRITER_GONE;
}

static enum status look_at_writer(
	const char *path, const char *name, struct staging *staging, struct error *err)
{
	struct writer writer;
	char *record = ckpt_directory_path(path, name);
	enum status status = writer_load(record, &writer, err);
	free(record);
	if (status == STATUS_NO)
		return STATUS_OK; /* removed in between, or not readable: it names no writer */
	if (status != STATUS_OK)
		return status;
	staging->writer = weigh(staging->writer, writer_check(&writer));
	if (writer.tasks)
		staging->tasks = writer.tasks;
	return STATUS_OK;
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

enum status staging_inspect(const char *path, struct staging *staging, struct error *err)
{
	struct staging look = {.writer = WRITER_UNKNOWN};
	struct stat st;
	enum status status = STATUS_OK;
	/*
	 * Opening makes a network filesystem ask its server, so we see new records of other tasks.
	 */
	int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (descriptor < 0 && errno == ENOENT)
		return error_set(err, STATUS_NO, "there is no %s", path);
	if (descriptor < 0 || fstat(descriptor, &st) < 0) {
		status = error_errno(err, errno, "read %s", path);
		if (descriptor >= 0)
			close(descriptor);
		return status;
	}
	struct file_names names = {0};
	look.inode = st.st_ino;
	status = file_read_names(descriptor, path, &names, err);
	for (size_t i = 0; i < names.count && status == STATUS_OK; i++) {
		uint64_t task;
		bool sharded;
		const char *name = names.names[i];
		if (ckpt_name_is_writer(name, &sharded, &task)) {
			*(sharded ? &look.sharded : &look.one_writer) = true;
			look.begun += sharded;
			status = look_at_writer(path, name, &look, err);
		} else if (ckpt_name_is_shard(name, &task)) {
			look.sharded = true;
			look.shards =
				xrealloc(look.shards, look.shard_count + 1, sizeof(*look.shards));
			look.shards[look.shard_count++] = task;
		} else if (strcmp(name, CKPT_COPY) == 0) {
			look.copy = true;
		} else if (!ckpt_name_is_reserved(name)) {
			look.others = true;
		}
	}
	/* It may have been removed after we opened it. */
	if (status != STATUS_OK && fstat(descriptor, &st) == 0 && st.st_nlink == 0)
		status = error_set(err, STATUS_NO, "there is no %s", path);
	file_names_release(&names);
	close(descriptor);
	if (status != STATUS_OK) {
		staging_release(&look);
		return status;
	}
	if (look.shard_count)
		qsort(look.shards, look.shard_count, sizeof(*look.shards), by_number);
	*staging = look;
	return STATUS_OK;
}

enum status staging_open(const char *path, int *descriptor, uint64_t *inode, struct error *err)
{
	struct stat st;
	*descriptor = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	/* If the writer is gone, a pruner may be emptying this directory. */
	if (*descriptor >= 0 && flock(*descriptor, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK)
		return error_set(err, STATUS_TEMPORARY,
			"a prune or a copy is at work in %s; try again", path);
	if (*descriptor >= 0 && fstat(*descriptor, &st) == 0) {
		*inode = st.st_ino;
		return STATUS_OK;
	}
	if (errno == ENOENT)
		return error_set(err, STATUS_NO, "there is no %s", path);
	return error_errno(err, errno, "open %s", path);
}

uint64_t staging_absent(const struct staging *staging, uint64_t tasks, struct text *absent)
{
	uint64_t missing = 0;
	size_t k = 0;
	for (uint64_t task = 0; task < tasks; task++) {
		while (k < staging->shard_count && staging->shards[k] < task)
			k++;
		if (k < staging->shard_count && staging->shards[k] == task)
			continue;
		if (missing == NAMED_MAX)
			text_add(absent, ", ...");
		else if (missing < NAMED_MAX)
			text_addf(absent, missing ? ", %" PRIu64 : "%" PRIu64, task);
		missing++;
	}
	return missing;
}
