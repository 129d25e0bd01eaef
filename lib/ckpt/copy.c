/* SPDX-License-Identifier: MIT */
#include "ckpt/copy.h"

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
#include "ckpt/gone.h"
#include "ckpt/manifest.h"
#include "ckpt/marks.h"
#include "ckpt/native.h"
#include "ckpt/publish.h"
#include "ckpt/tree.h"

/* We give up when other processes have published or removed something this number of times. */
#define TRIES 8
/* Bytes that are copied at once. */
#define CHUNK ((size_t)8 << 20)
/* How long we wait for others that remove checkpoints of DIR, in ms. */
#define LOCK_WAIT 60000

enum status copy_check_places(const char *directory, const char *destination, struct error *err)
{
	struct stat a, b;
	if (stat(directory, &a) == 0 && stat(destination, &b) == 0 && a.st_dev == b.st_dev &&
		a.st_ino == b.st_ino)
		return error_set(err, STATUS_USAGE, "%s and %s are the same directory", directory,
			destination);
	return STATUS_OK;
}

/* ---- One file ---- */

/* One file that is being copied. */
struct transfer {
	const char *name;
	int in, out;
	bool by_kernel; /* by copy_file_range, which may share blocks, until that fails */
	void *buffer;	/* of CHUNK bytes */
	void (*progress)(uint64_t bytes);
};

/* Copy at most chunk bytes at offset `at`. *done: the bytes that were copied; 0: call it again. */
static enum status copy_chunk(
	struct transfer *file, uint64_t at, size_t chunk, ssize_t *done, struct error *err)
{
	off_t at_in = (off_t)at, at_out = (off_t)at;
	ssize_t n = *done = 0;
	if (file->by_kernel) {
		n = copy_file_range(file->in, &at_in, file->out, &at_out, chunk, 0);
		file->by_kernel = n > 0 || (n < 0 && (errno == ENOSPC || errno == EDQUOT ||
							     errno == EINTR || errno == EFBIG));
		*done = n > 0 ? n : 0;
		return n >= 0 || !file->by_kernel || errno == EINTR
			       ? STATUS_OK
			       : error_errno(err, errno, "write the copy of %s", file->name);
	}
	n = pread(file->in, file->buffer, chunk, at_in);
	if (n == 0)
		return error_set(err, STATUS_NO, "%s became shorter", file->name);
	if (n < 0)
		return errno == EINTR ? STATUS_OK : error_errno(err, errno, "read %s", file->name);
	if (lseek(file->out, at_out, SEEK_SET) < 0 ||
		file_write_all(file->out, file->buffer, (size_t)n) < 0)
		return error_errno(err, errno, "write the copy of %s", file->name);
	*done = n;
	return STATUS_OK;
}

/* Copy the bytes of a file; holes stay holes. */
static enum status copy_contents(struct transfer *file, uint64_t bytes, struct error *err)
{
	enum status status = STATUS_OK;
	file->buffer = xmalloc(CHUNK);
	for (uint64_t at = 0; at < bytes && status == STATUS_OK;) {
		off_t data = lseek(file->in, (off_t)at, SEEK_DATA);
		if (data < 0 && errno == ENXIO)
			break; /* only a hole is left */
		off_t hole = data < 0 ? -1 : lseek(file->in, data, SEEK_HOLE);
		uint64_t to = hole < 0 || (uint64_t)hole > bytes ? bytes : (uint64_t)hole;
		at = data < 0 ? at : (uint64_t)data;
		while (at < to && status == STATUS_OK) {
			ssize_t n;
			size_t chunk = to - at < CHUNK ? (size_t)(to - at) : CHUNK;
			status = copy_chunk(file, at, chunk, &n, err);
			at += (uint64_t)n;
			if (n && file->progress)
				file->progress((uint64_t)n);
		}
	}
	free(file->buffer);
	if (status == STATUS_OK && ftruncate(file->out, (off_t)bytes) < 0)
		status = error_errno(err, errno, "write the copy of %s", file->name);
	return status;
}

/* Make the file, with the mode of the original as far as the umask allows, and the directories
 * above it. -1 and errno on failure. */
static int make_file(int to, const char *name, mode_t mode)
{
	char *path = xstrdup(name);
	int result = 0;
	for (char *slash = strchr(path, '/'); slash && result == 0;
		slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		result = mkdirat(to, path, 0777) < 0 && errno != EEXIST ? -1 : 0;
		*slash = '/';
	}
	free(path);
	return result < 0 ? -1
			  : openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
				    mode & 0777);
}

/* Nothing is synced. STATUS_NO: the original is missing, or is not as the manifest says. */
static enum status copy_file(int from, int to, const struct manifest_file *file,
	void (*progress)(uint64_t bytes), struct error *err)
{
	struct stat st;
	struct transfer transfer = {
		.name = file->name, .out = -1, .by_kernel = true, .progress = progress};
	enum status status = STATUS_OK;
	transfer.in =
		openat(from, file->name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (transfer.in < 0 && (errno == ENOENT || errno == ENOTDIR))
		return error_set(err, STATUS_NO, "%s is missing", file->name);
	if (transfer.in < 0 && (errno == ELOOP || errno == ENXIO))
		return error_set(err, STATUS_NO, "%s is no longer a file", file->name);
	if (transfer.in < 0 || fstat(transfer.in, &st) < 0)
		status = error_errno(err, errno, "read %s", file->name);
	else if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != file->bytes)
		status = error_set(err, STATUS_NO, "%s has %jd bytes instead of %" PRIu64,
			file->name, (intmax_t)st.st_size, file->bytes);
	else if ((transfer.out = make_file(to, file->name, st.st_mode)) < 0)
		status = error_errno(err, errno, "make the copy of %s", file->name);
	if (status == STATUS_OK)
		status = copy_contents(&transfer, file->bytes, err);
	/* Let the kernel begin to write; the sync of all files waits for it. */
	if (status == STATUS_OK)
		(void)sync_file_range(transfer.out, 0, 0, SYNC_FILE_RANGE_WRITE);
	if (transfer.out >= 0 && close(transfer.out) < 0 && status == STATUS_OK)
		status = error_errno(err, errno, "write the copy of %s", file->name);
	if (transfer.in >= 0)
		close(transfer.in);
	return status;
}

/* ---- One checkpoint ---- */

struct copying {
	const char *directory, *destination;
	uint64_t step;
	struct manifest manifest; /* of the original */
	int from;		  /* the original, open */
	int to;			  /* DEST/.tmp-...-copy, open and locked; -1: not yet */
	char *path;		  /* of that */
	uint64_t inode;		  /* of that */
	uint64_t damaged;	  /* inode of a damaged checkpoint with the final name; 0: none */
	bool again;		  /* another process has changed something: look again */
	void (*progress)(uint64_t bytes);
	struct copy_answer *answer;
};

/*
 * Read all files of an open copy, sync them, and compare them with the manifest. STATUS_NO: they
 * differ.
 */
static enum status read_back(int root, const struct manifest *manifest, struct error *err)
{
	struct manifest there = {0};
	enum status status = tree_record(root, "", &there, err);
	if (status == STATUS_OK && !manifest_same_files(&there, manifest))
		status = error_set(err, STATUS_NO, "the copy reads back with different content");
	manifest_release(&there);
	return status;
}

/* Look for the step in DEST. *there: it is the same. STATUS_NO: it has other content, and stays. */
static enum status look_at_destination(struct copying *copying, bool *there, struct error *err)
{
	struct checkpoint found;
	struct manifest published = {0};
	*there = false;
	copying->damaged = 0;
	enum status status =
		inspect_step(copying->destination, copying->step, false, &found, &published, err);
	if (status != STATUS_OK)
		return status == STATUS_NO ? STATUS_OK : status;
	switch (found.state) {
	case CHECKPOINT_COMPLETE:
	case CHECKPOINT_BAD:
		*there = manifest_same_files(&published, &copying->manifest);
		manifest_release(&published);
		return *there ? STATUS_OK
			      : error_set(err, STATUS_NO,
					"%s/%s is there already with other content, saved by "
					"attempt %" PRIu64 "; it stays as it is",
					copying->destination, found.name, found.attempt);
	case CHECKPOINT_DAMAGED: copying->damaged = found.inode; return STATUS_OK;
	default: return inspect_refuse(copying->destination, &found, err);
	}
}

/*
 * Open and lock the temporary directory of this step. STATUS_NO: it is not there. STATUS_TEMPORARY:
 * another copy has it. Where there are no such locks, the second copy takes the directory from the
 * first one, which then cannot publish.
 */
static enum status lock(struct copying *copying, struct error *err)
{
	struct stat st;
	copying->to = open(copying->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (copying->to < 0 && errno == ENOENT)
		return error_set(err, STATUS_NO, "there is no %s", copying->path);
	if (copying->to < 0 || fstat(copying->to, &st) < 0)
		return error_errno(err, errno, "open %s", copying->path);
	if (flock(copying->to, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
		return error_set(
			err, STATUS_TEMPORARY, "another copy into %s is at work", copying->path);
	copying->inode = st.st_ino;
	return STATUS_OK;
}

static bool is_it(const void *context, const char *entry)
{
	return strcmp(entry, context) == 0;
}

/* Make a new temporary directory; delete that of a killed copy. */
static enum status begin(struct copying *copying, struct error *err)
{
	char gone[CKPT_GONE_SIZE];
	const char *name = strrchr(copying->path, '/') + 1;
	bool made = false;
	int place;
	enum status status = ckpt_directory_open(copying->destination, &place, err);
	if (status != STATUS_OK)
		return status;
	status = lock(copying, err);
	if (status == STATUS_OK) {
		status = gone_rename(place, copying->destination, name, copying->inode, gone, err);
		copying->again = status == STATUS_NO;
		close(copying->to);
		copying->to = -1;
	} else if (status == STATUS_NO) {
		status = STATUS_OK;
	}
	if (status == STATUS_OK)
		status = gone_settle(place, copying->destination, false, is_it, name, err);
	if (status == STATUS_OK)
		status = file_make_directory(copying->path, 0777, &made, err);
	if (status == STATUS_OK)
		status = lock(copying, err);
	/* Another process has made it, or removed it. */
	if (status == STATUS_NO || (status == STATUS_OK && !made)) {
		copying->again = true;
		status = STATUS_NO;
	}
	close(place);
	return status;
}

/* The copy differs: find out why. */
static enum status explain_difference(struct copying *copying, struct error *err)
{
	struct error why;
	enum status status = tree_compare(copying->from, &copying->manifest, true, &why);
	if (status == STATUS_NO)
		return error_set(err, STATUS_DAMAGED,
			"%s: step %" PRIu64 " is damaged, and was not copied: %s",
			copying->directory, copying->step, why.text);
	return error_set(
		err, STATUS_TEMPORARY, "%s: %s; check that disk", copying->path, err->text);
}

static enum status bring(struct copying *copying, struct error *err)
{
	enum status status = STATUS_OK;
	for (size_t i = 0; i < copying->manifest.count && status == STATUS_OK; i++)
		status = copy_file(copying->from, copying->to, &copying->manifest.files[i],
			copying->progress, err);
	if (status != STATUS_OK)
		return error_prefix(err, "%s, step %" PRIu64, copying->directory, copying->step);
	status = read_back(copying->to, &copying->manifest, err);
	return status == STATUS_NO ? explain_difference(copying, err) : status;
}

static enum status publish(struct copying *copying, struct error *err)
{
	char *path = ckpt_directory_path(copying->path, CKPT_MANIFEST);
	enum status status = manifest_save(path, &copying->manifest, err);
	if (status == STATUS_OK)
		status = publish_rename(copying->destination, copying->path, copying->inode,
			copying->step, copying->damaged, err);
	free(path);
	copying->again = status == STATUS_NO;
	copying->answer->copied = status == STATUS_OK;
	return status;
}

static enum status copy_once(struct copying *copying, struct error *err)
{
	bool there;
	struct stat st;
	enum status status = look_at_destination(copying, &there, err);
	if (status == STATUS_OK && !there) {
		status = begin(copying, err);
		if (status == STATUS_OK)
			status = bring(copying, err);
		if (status == STATUS_OK)
			status = publish(copying, err);
		/* Another copy, for which locks have no effect, has taken the directory away. */
		if (status != STATUS_OK && copying->to >= 0 && lstat(copying->path, &st) < 0 &&
			errno == ENOENT)
			copying->again = true;
	}
	if (status == STATUS_OK)
		status = publish_settle(
			copying->destination, copying->step, &copying->answer->warning, err);
	if (copying->to >= 0)
		close(copying->to);
	copying->to = -1;
	return status;
}

/* Inspect and open the original. */
static enum status open_original(struct copying *copying, struct error *err)
{
	struct checkpoint found;
	enum status status = inspect_step(
		copying->directory, copying->step, false, &found, &copying->manifest, err);
	if (status == STATUS_NO)
		copying->answer->vanished = true;
	if (status != STATUS_OK)
		return status;
	if (found.state != CHECKPOINT_COMPLETE)
		return error_set(err,
			found.state == CHECKPOINT_UNREADABLE ? found.status : STATUS_NO,
			"%s/%s is %s and not copied: %s", copying->directory, found.name,
			checkpoint_state_name(found.state), found.why);
	char *path = ckpt_directory_path(copying->directory, found.name);
	copying->from = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (copying->from < 0)
		status = error_errno(err, errno, "open %s", path);
	free(path);
	copying->answer->files = copying->manifest.count;
	copying->answer->bytes = manifest_bytes(&copying->manifest);
	return status;
}

enum status checkpoint_copy(const char *directory, const char *destination, uint64_t step,
	void (*progress)(uint64_t bytes), struct copy_answer *answer, struct error *err)
{
	char name[CKPT_NAME_SIZE];
	struct checkpoint now;
	struct copying copying = {.directory = directory,
		.destination = destination,
		.step = step,
		.from = -1,
		.to = -1,
		.progress = progress,
		.answer = answer};
	*answer = (struct copy_answer){0};
	ckpt_name_make(name, &(struct ckpt_name){.kind = CKPT_NAME_COPY, .step = step});
	copying.path = ckpt_directory_path(destination, name);
	enum status status = copy_check_places(directory, destination, err);
	if (status == STATUS_OK)
		status = open_original(&copying, err);
	if (status == STATUS_OK)
		status = ckpt_directory_make(destination, err);
	copying.again = status == STATUS_OK;
	for (int tries = 0; copying.again && tries < TRIES; tries++) {
		copying.again = false;
		status = copy_once(&copying, err);
	}
	if (copying.again)
		status = error_set(err, STATUS_TEMPORARY,
			"%s kept changing during the copy; try again", copying.path);
	/* Another process may have pruned it in the middle of this. */
	if (status == STATUS_NO && !answer->vanished &&
		inspect_step(directory, step, false, &now, NULL, NULL) == STATUS_NO) {
		answer->vanished = true;
		status = error_set(err, STATUS_TEMPORARY,
			"%s: step %" PRIu64 " was removed while it was copied", directory, step);
	}
	if (copying.from >= 0)
		close(copying.from);
	free(copying.path);
	manifest_release(&copying.manifest);
	return status;
}

/* ---- Moving ---- */

/*
 * Whether both paths lead to the same checkpoint, perhaps through two mounts: then the manifest is
 * the same file, with the same time of change. (To look whether the copy vanishes with the original
 * is not enough, because a cache may still show it for a while.)
 */
static bool is_one(int here, int there)
{
	struct stat a, b;
	return fstatat(here, CKPT_MANIFEST, &a, AT_SYMLINK_NOFOLLOW) == 0 &&
	       fstatat(there, CKPT_MANIFEST, &b, AT_SYMLINK_NOFOLLOW) == 0 &&
	       a.st_ino == b.st_ino && a.st_ctim.tv_sec == b.st_ctim.tv_sec &&
	       a.st_ctim.tv_nsec == b.st_ctim.tv_nsec;
}

/* An original and its copy. */
struct pair {
	struct checkpoint checkpoint[2];
	struct manifest manifest[2];
	int root[2];
};

/* Look at both. STATUS_NO: one is not there, or not complete. */
static enum status look_at_pair(
	const char *const places[2], uint64_t step, struct pair *pair, struct error *err)
{
	enum status status = STATUS_OK;
	for (int i = 0; i < 2 && status == STATUS_OK; i++) {
		const struct checkpoint *found = &pair->checkpoint[i];
		status = inspect_step(
			places[i], step, false, &pair->checkpoint[i], &pair->manifest[i], err);
		if (status == STATUS_OK && found->state != CHECKPOINT_COMPLETE)
			status = error_set(err,
				found->state == CHECKPOINT_UNREADABLE ? found->status : STATUS_NO,
				"%s/%s is %s: %s", places[i], found->name,
				checkpoint_state_name(found->state), found->why);
		char *path = ckpt_directory_path(places[i], found->name);
		if (status == STATUS_OK)
			pair->root[i] = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (status == STATUS_OK && pair->root[i] < 0)
			status = error_errno(err, errno, "open %s", path);
		free(path);
	}
	return status;
}

/* Make a copy durable that another process has made: read all of it, and sync what it is in. */
static enum status confirm_copy(const char *destination, const struct pair *pair, struct error *err)
{
	enum status status = read_back(pair->root[1], &pair->manifest[0], err);
	if (status != STATUS_OK)
		return status;
	int descriptor = openat(
		pair->root[1], CKPT_MANIFEST, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (descriptor < 0 || fsync(descriptor) < 0)
		status = error_errno(err, errno, "sync the manifest in %s", destination);
	if (descriptor >= 0)
		close(descriptor);
	return status == STATUS_OK ? file_sync_directory(destination, err) : status;
}

/* The original was renamed away: check for the last time that it may go. */
static enum status check_last(const char *destination, const struct pair *pair, struct error *err)
{
	struct marks marks;
	struct checkpoint there;
	enum status status = marks_read(pair->root[0], &marks, err);
	if (status == STATUS_OK && (marks.pinned || marks.bad))
		return error_set(
			err, STATUS_NO, "%s just now", marks.pinned ? "pinned" : "marked as bad");
	if (status == STATUS_OK)
		status = inspect_step(
			destination, pair->checkpoint[0].step, false, &there, NULL, err);
	if (status == STATUS_OK && there.state == CHECKPOINT_UNREADABLE)
		return inspect_refuse(destination, &there, err);
	if (status == STATUS_NO || (status == STATUS_OK && there.state != CHECKPOINT_COMPLETE))
		return error_set(err, STATUS_TEMPORARY,
			"its copy in %s went away when it was renamed: another process removed the "
			"copy, or both are one directory; the original got its name back",
			destination);
	return status;
}

static enum status remove_original(
	int place, const char *const places[2], const struct pair *pair, struct error *err)
{
	char gone[CKPT_GONE_SIZE];
	const char *names[] = {gone};
	enum status statuses[1];
	struct text warning = {0};
	struct error why;
	const struct checkpoint *found = &pair->checkpoint[0];
	enum status status = gone_rename(place, places[0], found->name, found->inode, gone, err);
	if (status != STATUS_OK)
		return status;
	status = check_last(places[1], pair, err);
	if (status == STATUS_OK)
		status = gone_delete(place, places[0], names, 1, statuses, err);
	else if (gone_give_back(place, places[0], gone, &why) != STATUS_OK)
		status = error_set(err, why.status, "%s", why.text);
	if (status == STATUS_OK) {
		publish_latest(places[0], place, &warning);
		status = file_sync_directory(places[0], err);
	}
	text_release(&warning);
	return status;
}

enum status checkpoint_move(const char *directory, const char *destination, uint64_t step,
	bool copied, struct error *err)
{
	const char *const places[2] = {directory, destination};
	struct pair pair = {.root = {-1, -1}};
	int place;
	enum status status = ckpt_directory_open(directory, &place, err);
	if (status != STATUS_OK)
		return status;
	status = gone_lock(place, directory, LOCK_WAIT, err);
	if (status == STATUS_OK)
		status = look_at_pair(places, step, &pair, err);
	if (status == STATUS_OK && pair.checkpoint[0].pinned)
		status = error_set(err, STATUS_NO, "pinned");
	if (status == STATUS_OK && is_one(pair.root[0], pair.root[1]))
		status = error_set(err, STATUS_NO, "%s is the same directory", destination);
	if (status == STATUS_OK && !manifest_same_files(&pair.manifest[0], &pair.manifest[1]))
		status = error_set(err, STATUS_NO, "its copy in %s has other content", destination);
	if (status == STATUS_OK && !copied)
		status = confirm_copy(destination, &pair, err);
	if (status == STATUS_OK)
		status = remove_original(place, places, &pair, err);
	for (int i = 0; i < 2; i++) {
		manifest_release(&pair.manifest[i]);
		if (pair.root[i] >= 0)
			close(pair.root[i]);
	}
	close(place);
	return status;
}

static bool is_ours(const void *context, const char *entry)
{
	(void)context;
	return ckpt_name_read(entry).kind != CKPT_NAME_FOREIGN;
}

enum status copy_settle(const char *directory, struct error *err)
{
	int place;
	enum status status = ckpt_directory_open(directory, &place, err);
	if (status != STATUS_OK)
		return status;
	status = gone_lock(place, directory, LOCK_WAIT, err);
	if (status == STATUS_OK)
		status = gone_settle(place, directory, true, is_ours, NULL, err);
	close(place);
	return status;
}
