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
#include "ckpt/native.h"
#include "ckpt/publish.h"
#include "ckpt/tree.h"

/* We give up when other processes have published or removed something this number of times. */
#define TRIES 8
/* Bytes that are copied at once. */
#define CHUNK ((size_t)8 << 20)
/* How long we wait for others that remove checkpoints of DIR, in ms. */
#define LOCK_WAIT 60000

/* One checkpoint that is copied or moved. */
struct copying {
	const char *directory, *destination;
	struct checkpoint original, there; /* there: of the same step, in DEST */
	struct manifest manifest;	   /* of the original */
	int from, to;			   /* the original and the copy, open; -1: not yet */
	char *path;			   /* of the temporary directory in DEST */
	uint64_t inode;			   /* of that */
	bool again;			   /* another process has changed something: look again */
	bool by_kernel; /* by copy_file_range, which may share blocks, until that fails */
	void *buffer;	/* of CHUNK bytes */
	void (*progress)(uint64_t bytes); /* NULL: none */
};

/* ---- One file ---- */

/* Copy at most chunk bytes at offset `at`. *done: the bytes that were copied; 0: call it again. */
static enum status copy_chunk(struct copying *copying, const int files[2], const char *name,
	uint64_t at, size_t chunk, ssize_t *done, struct error *err)
{
	off_t in = (off_t)at, out = (off_t)at;
	ssize_t n = *done = 0;
	if (copying->by_kernel) {
		n = copy_file_range(files[0], &in, files[1], &out, chunk, 0);
		bool full = n < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG);
		copying->by_kernel = n > 0 || full || (n < 0 && errno == EINTR);
		*done = n > 0 ? n : 0;
		return full ? error_errno(err, errno, "write the copy of %s", name) : STATUS_OK;
	}
	n = pread(files[0], copying->buffer, chunk, in);
	if (n == 0)
		return error_set(err, STATUS_NO, "%s became shorter", name);
	if (n < 0)
		return errno == EINTR ? STATUS_OK : error_errno(err, errno, "read %s", name);
	if (lseek(files[1], out, SEEK_SET) < 0 ||
		file_write_all(files[1], copying->buffer, (size_t)n) < 0)
		return error_errno(err, errno, "write the copy of %s", name);
	*done = n;
	return STATUS_OK;
}

/* Copy the bytes of a file; holes stay holes. */
static enum status copy_contents(struct copying *copying, const int files[2], const char *name,
	uint64_t bytes, struct error *err)
{
	enum status status = STATUS_OK;
	for (uint64_t at = 0; at < bytes && status == STATUS_OK;) {
		off_t data = lseek(files[0], (off_t)at, SEEK_DATA);
		if (data < 0 && errno == ENXIO)
			break; /* only a hole is left */
		off_t hole = data < 0 ? -1 : lseek(files[0], data, SEEK_HOLE);
		uint64_t to = hole < 0 || (uint64_t)hole > bytes ? bytes : (uint64_t)hole;
		at = data < 0 ? at : (uint64_t)data;
		while (at < to && status == STATUS_OK) {
			ssize_t n;
			size_t chunk = to - at < CHUNK ? (size_t)(to - at) : CHUNK;
			status = copy_chunk(copying, files, name, at, chunk, &n, err);
			at += (uint64_t)n;
			if (n && copying->progress)
				copying->progress((uint64_t)n);
		}
	}
	if (status == STATUS_OK && ftruncate(files[1], (off_t)bytes) < 0)
		status = error_errno(err, errno, "write the copy of %s", name);
	/* Let the kernel begin to write; the sync of all files waits for it. */
	if (status == STATUS_OK)
		(void)sync_file_range(files[1], 0, 0, SYNC_FILE_RANGE_WRITE);
	return status;
}

/* Make a file, with this mode as far as the umask allows, and the directories above it. -1 and
 * errno on failure. */
static int make_file(int to, const char *name, mode_t mode)
{
	char *path = xstrdup(name);
	bool made = true;
	for (char *slash = strchr(path, '/'); slash && made; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		made = mkdirat(to, path, 0777) == 0 || errno == EEXIST;
		*slash = '/';
	}
	free(path);
	return made ? openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode)
		    : -1;
}

/* Nothing is synced. STATUS_NO: the original is missing, or is not as the manifest says. */
static enum status copy_file(
	struct copying *copying, const struct manifest_file *file, struct error *err)
{
	struct stat st;
	const char *name = file->name;
	int files[2] = {openat(copying->from, name,
				O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY),
		-1};
	enum status status = STATUS_OK;
	if (files[0] < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
		return error_set(err, STATUS_NO, "%s is missing, or no longer a file", name);
	if (files[0] < 0 || fstat(files[0], &st) < 0)
		status = error_errno(err, errno, "read %s", name);
	else if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != file->bytes)
		status = error_set(err, STATUS_NO, "%s has %jd bytes instead of %" PRIu64, name,
			(intmax_t)st.st_size, file->bytes);
	else if ((files[1] = make_file(copying->to, name, st.st_mode & 0777)) < 0)
		status = error_errno(err, errno, "make the copy of %s", name);
	else
		status = copy_contents(copying, files, name, file->bytes, err);
	if (files[1] >= 0 && close(files[1]) < 0 && status == STATUS_OK)
		status = error_errno(err, errno, "write the copy of %s", name);
	if (files[0] >= 0)
		close(files[0]);
	return status;
}

/* ---- One checkpoint ---- */

enum status copy_check_places(const char *directory, const char *destination, struct error *err)
{
	struct stat a, b;
	if (stat(directory, &a) == 0 && stat(destination, &b) == 0 && a.st_dev == b.st_dev &&
		a.st_ino == b.st_ino)
		return error_set(err, STATUS_USAGE, "%s and %s are the same directory", directory,
			destination);
	return STATUS_OK;
}

static enum status open_checkpoint(
	const char *place, const char *name, int *descriptor, struct error *err)
{
	char *path = ckpt_directory_path(place, name);
	*descriptor = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	enum status status = *descriptor < 0 ? error_errno(err, errno, "open %s", path) : STATUS_OK;
	free(path);
	return status;
}

/* Inspect and open the original. STATUS_NO: it is not there, or not complete. */
static enum status begin(struct copying *copying, uint64_t step, struct error *err)
{
	char name[CKPT_NAME_SIZE];
	struct checkpoint *found = &copying->original;
	copying->from = copying->to = -1;
	copying->by_kernel = true;
	ckpt_name_make(name, &(struct ckpt_name){.kind = CKPT_NAME_COPY, .step = step});
	copying->path = ckpt_directory_path(copying->destination, name);
	enum status status =
		inspect_step(copying->directory, step, false, found, &copying->manifest, err);
	if (status != STATUS_OK)
		return status;
	if (found->state != CHECKPOINT_COMPLETE)
		return error_set(err,
			found->state == CHECKPOINT_UNREADABLE ? found->status : STATUS_NO,
			"%s/%s is %s and not copied: %s", copying->directory, found->name,
			checkpoint_state_name(found->state), found->why);
	return open_checkpoint(copying->directory, found->name, &copying->from, err);
}

static void end(struct copying *copying)
{
	if (copying->from >= 0)
		close(copying->from);
	if (copying->to >= 0)
		close(copying->to);
	free(copying->path);
	manifest_release(&copying->manifest);
}

/*
 * Look for the step in DEST. *there: it has the same files. STATUS_NO: it has other content, and
 * stays. A damaged one is replaced.
 */
static enum status look_at_destination(struct copying *copying, bool *there, struct error *err)
{
	struct checkpoint *found = &copying->there;
	struct manifest published = {0};
	uint64_t step = copying->original.step;
	enum status status =
		inspect_step(copying->destination, step, false, found, &published, err);
	*there = false;
	if (status == STATUS_NO) {
		*found = (struct checkpoint){.state = CHECKPOINT_INCOMPLETE};
		status = STATUS_OK;
	} else if (status == STATUS_OK &&
		   (found->state == CHECKPOINT_COMPLETE || found->state == CHECKPOINT_BAD)) {
		*there = manifest_same_files(&published, &copying->manifest);
		if (!*there)
			status = error_set(err, STATUS_NO,
				"%s/%s is there already with other content, saved by attempt "
				"%" PRIu64 "; it stays as it is",
				copying->destination, found->name, found->attempt);
	} else if (status == STATUS_OK && found->state != CHECKPOINT_DAMAGED) {
		status = inspect_refuse(copying->destination, found, err);
	}
	manifest_release(&published);
	return status;
}

/*
 * Read all files of the open copy, sync them, and compare them with the manifest. STATUS_NO: they
 * differ.
 */
static enum status read_back(struct copying *copying, struct error *err)
{
	struct manifest there = {0};
	enum status status = tree_record(copying->to, "", &there, err);
	if (status == STATUS_OK && !manifest_same_files(&there, &copying->manifest))
		status = error_set(err, STATUS_NO, "the copy reads back with different content");
	manifest_release(&there);
	return status;
}

/*
 * Open and lock the temporary directory of this step. STATUS_NO: it is not there. STATUS_TEMPORARY:
 * another copy has it. Where there are no such locks, a second copy takes the directory from the
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
	copying->inode = st.st_ino;
	return flock(copying->to, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK
		       ? error_set(err, STATUS_TEMPORARY, "another copy into %s is at work",
				 copying->path)
		       : STATUS_OK;
}

static bool is_it(const void *context, const char *entry)
{
	return strcmp(entry, context) == 0;
}

/* Make a new temporary directory; delete that of a killed copy. */
static enum status make_room(struct copying *copying, struct error *err)
{
	char gone[CKPT_GONE_SIZE];
	const char *place = copying->destination, *name = strrchr(copying->path, '/') + 1;
	bool made = false;
	int directory;
	enum status status = ckpt_directory_open(place, &directory, err);
	if (status != STATUS_OK)
		return status;
	status = lock(copying, err);
	if (status == STATUS_OK) {
		status = gone_rename(directory, place, name, copying->inode, gone, err);
		close(copying->to);
		copying->to = -1;
	} else if (status == STATUS_NO) {
		status = STATUS_OK;
	}
	if (status == STATUS_OK)
		status = gone_settle(directory, place, false, is_it, name, err);
	if (status == STATUS_OK)
		status = file_make_directory(copying->path, 0777, &made, err);
	if (status == STATUS_OK)
		status = made ? lock(copying, err) : STATUS_NO;
	/* Another process has removed or made it. */
	copying->again = status == STATUS_NO;
	close(directory);
	return status;
}

static enum status bring(struct copying *copying, struct error *err)
{
	enum status status = STATUS_OK;
	struct error why;
	copying->buffer = xmalloc(CHUNK);
	for (size_t i = 0; i < copying->manifest.count && status == STATUS_OK; i++)
		status = copy_file(copying, &copying->manifest.files[i], err);
	free(copying->buffer);
	if (status != STATUS_OK)
		return error_prefix(err, "%s/%s", copying->directory, copying->original.name);
	status = read_back(copying, err);
	if (status != STATUS_NO)
		return status;
	if (tree_compare(copying->from, &copying->manifest, true, &why) == STATUS_NO)
		return error_set(err, STATUS_DAMAGED, "%s/%s is damaged, and was not copied: %s",
			copying->directory, copying->original.name, why.text);
	return error_set(
		err, STATUS_TEMPORARY, "%s: %s; check that disk", copying->path, err->text);
}

static enum status publish(struct copying *copying, struct error *err)
{
	bool damaged = copying->there.state == CHECKPOINT_DAMAGED;
	char *path = ckpt_directory_path(copying->path, CKPT_MANIFEST);
	enum status status = manifest_save(path, &copying->manifest, err);
	if (status == STATUS_OK)
		status = publish_rename(copying->destination, copying->path, copying->inode,
			copying->original.step, damaged ? copying->there.inode : 0, err);
	copying->again = status == STATUS_NO;
	free(path);
	return status;
}

/* The copy failed: make room again, if the directory is ours still; else look again. */
static void clean_up(struct copying *copying)
{
	struct stat st;
	int number = lstat(copying->path, &st) < 0 ? errno : 0;
	/* Another copy, for which locks have no effect, may have taken it. */
	bool taken = number ? number == ENOENT : st.st_ino != copying->inode;
	copying->again |= taken;
	if (number == 0 && !taken)
		(void)file_remove_tree(copying->path, NULL);
}

static enum status copy_once(struct copying *copying, struct copy_answer *answer, struct error *err)
{
	bool there;
	enum status status = look_at_destination(copying, &there, err);
	if (status == STATUS_OK && !there) {
		status = make_room(copying, err);
		if (status == STATUS_OK) {
			status = bring(copying, err);
			if (status == STATUS_OK)
				status = publish(copying, err);
			if (status != STATUS_OK)
				clean_up(copying);
		}
		answer->copied = status == STATUS_OK;
	}
	if (copying->to >= 0)
		close(copying->to);
	copying->to = -1;
	return status == STATUS_OK ? publish_settle(copying->destination, copying->original.step,
					     &answer->warning, err)
				   : status;
}

enum status checkpoint_copy(const char *directory, const char *destination, uint64_t step,
	void (*progress)(uint64_t bytes), struct copy_answer *answer, struct error *err)
{
	struct checkpoint now;
	struct copying copying = {
		.directory = directory, .destination = destination, .progress = progress};
	*answer = (struct copy_answer){0};
	enum status status = begin(&copying, step, err);
	bool begun = status == STATUS_OK;
	answer->files = copying.manifest.count;
	answer->bytes = manifest_bytes(&copying.manifest);
	if (begun)
		status = ckpt_directory_make(destination, err);
	copying.again = status == STATUS_OK;
	for (int tries = 0; copying.again && tries < TRIES; tries++) {
		copying.again = false;
		status = copy_once(&copying, answer, err);
	}
	if (copying.again)
		status = error_set(err, STATUS_TEMPORARY,
			"%s kept changing during the copy; try again", copying.path);
	/* Another process may have pruned it. */
	answer->vanished = status == STATUS_NO &&
			   inspect_step(directory, step, false, &now, NULL, NULL) == STATUS_NO;
	if (answer->vanished && begun)
		status = error_set(err, STATUS_TEMPORARY, "%s/%s was removed while it was copied",
			directory, copying.original.name);
	end(&copying);
	return status;
}

/* ---- Moving ---- */

/*
 * Whether both are the same checkpoint, perhaps seen through two mounts: then the manifest is the
 * same file, with the same time of change. (To look whether the copy vanishes with the original is
 * not enough, because a cache may still show it for a while.)
 */
static bool is_one(const struct copying *copying)
{
	struct stat a, b;
	return fstatat(copying->from, CKPT_MANIFEST, &a, AT_SYMLINK_NOFOLLOW) == 0 &&
	       fstatat(copying->to, CKPT_MANIFEST, &b, AT_SYMLINK_NOFOLLOW) == 0 &&
	       a.st_ino == b.st_ino && a.st_ctim.tv_sec == b.st_ctim.tv_sec &&
	       a.st_ctim.tv_nsec == b.st_ctim.tv_nsec;
}

/* Read the copy, and make it durable: another process may have made it. */
static enum status confirm_copy(struct copying *copying, struct error *err)
{
	enum status status = read_back(copying, err);
	if (status != STATUS_OK)
		return status;
	int descriptor =
		openat(copying->to, CKPT_MANIFEST, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (descriptor < 0 || fsync(descriptor) < 0)
		status = error_errno(err, errno, "sync the manifest in %s", copying->destination);
	if (descriptor >= 0)
		close(descriptor);
	return status == STATUS_OK ? file_sync_directory(copying->destination, err) : status;
}

/* Check that the original may go. copied: its copy was just made. STATUS_NO: it stays. */
static enum status check_pair(struct copying *copying, bool copied, struct error *err)
{
	bool there;
	if (copying->original.pinned)
		return error_set(err, STATUS_NO, "pinned");
	enum status status = look_at_destination(copying, &there, err);
	const struct checkpoint *found = &copying->there;
	if (status == STATUS_OK && found->state != CHECKPOINT_COMPLETE)
		return error_set(err, STATUS_NO, "its copy in %s is %s%s%s", copying->destination,
			*found->name ? checkpoint_state_name(found->state) : "not there",
			*found->why ? ": " : "", found->why);
	if (status == STATUS_OK)
		status = open_checkpoint(copying->destination, found->name, &copying->to, err);
	if (status == STATUS_OK && is_one(copying))
		return error_set(err, STATUS_NO, "%s is the same directory", copying->destination);
	return status == STATUS_OK && !copied ? confirm_copy(copying, err) : status;
}

/* The original was renamed away: check for the last time that it may go. */
static enum status check_last(struct copying *copying, struct error *err)
{
	struct marks marks;
	bool there;
	enum status status = marks_read(copying->from, &marks, err);
	if (status == STATUS_OK && (marks.pinned || marks.bad))
		return error_set(err, STATUS_NO, "marked just now");
	if (status == STATUS_OK)
		status = look_at_destination(copying, &there, err);
	if (status != STATUS_OK || (there && copying->there.state == CHECKPOINT_COMPLETE))
		return status;
	return error_set(err, STATUS_TEMPORARY,
		"the copy in %s went away when %s/%s was renamed: another process removed the "
		"copy, or both are one directory; the original got its name back",
		copying->destination, copying->directory, copying->original.name);
}

static enum status remove_original(struct copying *copying, int directory, struct error *err)
{
	char gone[CKPT_GONE_SIZE];
	const char *names[] = {gone}, *place = copying->directory;
	enum status statuses[1];
	struct text warning = {0};
	struct error why;
	enum status status = gone_rename(
		directory, place, copying->original.name, copying->original.inode, gone, err);
	if (status != STATUS_OK)
		return status;
	status = check_last(copying, err);
	if (status == STATUS_OK)
		status = gone_delete(directory, place, names, 1, statuses, err);
	else if (gone_give_back(directory, place, gone, &why) != STATUS_OK)
		status = error_set(err, why.status, "%s", why.text);
	if (status != STATUS_OK)
		return status;
	publish_latest(place, directory, &warning);
	text_release(&warning);
	return file_sync_directory(place, err);
}

/* Open DIR and lock it against others that remove something there. */
static enum status open_locked(const char *directory, int *descriptor, struct error *err)
{
	enum status status = ckpt_directory_open(directory, descriptor, err);
	if (status != STATUS_OK)
		return status;
	status = gone_lock(*descriptor, directory, LOCK_WAIT, err);
	if (status != STATUS_OK)
		close(*descriptor);
	return status;
}

enum status checkpoint_move(const char *directory, const char *destination, uint64_t step,
	bool copied, struct error *err)
{
	struct copying copying = {.directory = directory, .destination = destination};
	int descriptor;
	enum status status = open_locked(directory, &descriptor, err);
	if (status != STATUS_OK)
		return status;
	status = begin(&copying, step, err);
	if (status == STATUS_OK)
		status = check_pair(&copying, copied, err);
	if (status == STATUS_OK)
		status = remove_original(&copying, descriptor, err);
	end(&copying);
	close(descriptor);
	return status;
}

static bool is_ours(const void *context, const char *entry)
{
	(void)context;
	return ckpt_name_read(entry).kind != CKPT_NAME_FOREIGN;
}

enum status copy_settle(const char *directory, struct error *err)
{
	int descriptor;
	enum status status = open_locked(directory, &descriptor, err);
	if (status != STATUS_OK)
		return status;
	status = gone_settle(descriptor, directory, true, is_ours, NULL, err);
	close(descriptor);
	return status;
}
