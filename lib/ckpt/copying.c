/* SPDX-License-Identifier: MIT */
#include "ckpt/copying.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ckpt/layout/structure.h"
#include "ckpt/names.h"
#include "ckpt/tree.h"

/* How many times a file that reads back wrong is copied, at most. */
#define ROUNDS 2

enum status copying_open(struct copying *copying, struct error *err)
{
	struct stat st;
	copying->root = open(copying->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (copying->root < 0)
		return errno == ENOENT ? STATUS_OK
				       : error_errno(err, errno, "open %s", copying->path);
	/* Without such locks, one copy may take the directory of another: see copying_confirm. */
	if (flock(copying->root, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
		return error_set(
			err, STATUS_TEMPORARY, "another copy into %s is at work", copying->path);
	if (fstat(copying->root, &st) < 0)
		return error_errno(err, errno, "look at %s", copying->path);
	copying->inode = st.st_ino;
	return STATUS_OK;
}

void copying_close(struct copying *copying)
{
	if (copying->root >= 0)
		close(copying->root);
	copying->root = -1;
}

void copying_take_over(struct copying *copying, int old)
{
	for (size_t i = 0; i < copying->manifest->count; i++) {
		const struct manifest_file *file = &copying->manifest->files[i];
		struct stat st;
		if (fstatat(old, file->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			S_ISREG(st.st_mode) && (uint64_t)st.st_size == file->bytes &&
			transfer_move(old, file->name, copying->root, file->name) == 0)
			copying->answer->found++;
	}
}

enum status copying_confirm(const struct copying *copying, struct error *err)
{
	struct stat st;
	int number = lstat(copying->path, &st) < 0 ? errno : 0;
	if (number && number != ENOENT)
		return error_errno(err, number, "look at %s", copying->path);
	if (number || st.st_ino != copying->inode)
		return error_set(
			err, STATUS_TEMPORARY, "another copy into %s is at work", copying->path);
	return STATUS_OK;
}

/* Copy the files that are missing. */
static enum status bring(struct copying *copying, struct error *err)
{
	char part[CKPT_NAME_SIZE];
	uint64_t unique;
	struct stat st;
	enum status status = STATUS_OK;
	if (getrandom(&unique, sizeof(unique), 0) != sizeof(unique))
		return error_errno(err, errno, "get %s", "random numbers");
	snprintf(part, sizeof(part), CKPT_PART ".%06" PRIx64, unique & 0xffffff);
	copying->transfer.part = part;
	copying->transfer.to = copying->root;
	for (size_t i = 0; i < copying->manifest->count && status == STATUS_OK; i++) {
		const struct manifest_file *file = &copying->manifest->files[i];
		if (fstatat(copying->root, file->name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
			if (copying->transfer.pace.progress)
				copying->transfer.pace.progress(file->bytes);
			continue;
		}
		status = transfer_file(&copying->transfer, file->name, file->bytes, err);
		if (status != STATUS_OK)
			error_prefix(err, "%s, step %" PRIu64, copying->directory,
				copying->manifest->step);
	}
	return status;
}

/* Remove files that read back wrong. */
static void reject(struct copying *copying, const struct manifest *there)
{
	for (size_t i = 0; i < there->count; i++) {
		const struct manifest_file *file = &there->files[i];
		const struct manifest_file *wanted = structure_find(copying->manifest, file->name);
		if (!wanted || wanted->bytes != file->bytes ||
			strcmp(wanted->checksum, file->checksum) != 0)
			unlinkat(copying->root, file->name, 0);
	}
}

enum status copying_bring(struct copying *copying, struct error *err)
{
	enum status status = STATUS_OK;
	bool same = false;
	for (int round = 0; round < ROUNDS && !same && status == STATUS_OK; round++) {
		struct manifest there = {0};
		status = bring(copying, err);
		if (status == STATUS_OK)
			status = tree_find(copying->root, "", true, &there, NULL, err);
		if (status == STATUS_OK)
			status = tree_record(copying->root, &there, err);
		same = status == STATUS_OK && manifest_same_files(&there, copying->manifest);
		if (status == STATUS_OK && !same)
			reject(copying, &there);
		manifest_release(&there);
	}
	if (status == STATUS_NO && access(copying->path, F_OK) < 0)
		copying->again = true;
	else if (!same && (status == STATUS_OK || status == STATUS_NO) &&
		 copying_confirm(copying, err) != STATUS_OK)
		return STATUS_TEMPORARY;
	if (status != STATUS_OK || same)
		return status;
	struct error why;
	status = tree_compare(copying->transfer.from, copying->manifest, true, &why);
	if (status == STATUS_NO)
		return error_set(err, STATUS_DAMAGED,
			"%s: step %" PRIu64 " is damaged, and was not copied: %s",
			copying->directory, copying->manifest->step, why.text);
	return error_set(err, STATUS_TEMPORARY,
		"%s: the copy reads back with different content; check that disk", copying->path);
}
