/* SPDX-License-Identifier: MIT */
#include "ckpt/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/xalloc.h"
#include "ckpt/directory.h"
#include "ckpt/gone.h"
#include "ckpt/layouts.h"
#include "ckpt/manifest.h"
#include "ckpt/native.h"
#include "ckpt/staging.h"
#include "ckpt/tree.h"

/* Bytes that are copied at once; what is zero is left out, so that holes stay holes. */
#define CHUNK ((size_t)256 << 10)
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
};

/* ---- One file ---- */

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

/* Whether this chunk is at this offset of the copy, written or left out. If not, see errno. */
static bool put_chunk(int out, const char *chunk, size_t length, off_t at)
{
	if (*chunk == 0 && memcmp(chunk, chunk + 1, length - 1) == 0)
		return true;
	return lseek(out, at, SEEK_SET) == at && file_write_all(out, chunk, length) == 0;
}

/* Nothing is synced. */
static enum status copy_contents(int in, int out, const char *name, char *chunk, struct error *err)
{
	off_t at = 0;
	ssize_t n;
	while ((n = read(in, chunk, CHUNK)) > 0) {
		if (!put_chunk(out, chunk, (size_t)n, at))
			return error_errno(err, errno, "write the copy of %s", name);
		at += n;
		tree_tell_progress((uint64_t)n);
	}
	if (n < 0)
		return error_errno(err, errno, "read %s", name);
	if (ftruncate(out, at) < 0)
		return error_errno(err, errno, "write the copy of %s", name);
	/* Let the kernel begin to write; the sync of all files waits for it. */
	(void)sync_file_range(out, 0, 0, SYNC_FILE_RANGE_WRITE);
	return STATUS_OK;
}

/* STATUS_NO: the original is missing, or is not as the manifest says. */
static enum status copy_file(const struct copying *copying, const struct manifest_file *file,
	char *chunk, struct error *err)
{
	struct stat st;
	int in;
	enum status status = tree_open_file(copying->from, file, O_RDONLY, &in, err);
	if (status != STATUS_OK)
		return status;
	int out = fstat(in, &st) < 0 ? -1 : make_file(copying->to, file->name, st.st_mode & 0777);
	status = out < 0 ? error_errno(err, errno, "make the copy of %s", file->name)
			 : copy_contents(in, out, file->name, chunk, err);
	if (out >= 0 && close(out) < 0 && status == STATUS_OK)
		status = error_errno(err, errno, "write the copy of %s", file->name);
	close(in);
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

/* Look for the step in DEST: complete or bad, with the same files, damaged (it is replaced), or not
 * there. STATUS_NO: it has other content, and stays. */
static enum status look_at_destination(struct copying *copying, struct error *err)
{
	struct checkpoint *found = &copying->there;
	struct manifest published = {0};
	enum status status =
		inspect_saved(copying->destination, copying->original.step, found, &published, err);
	if (status == STATUS_OK && published.count &&
		manifest_difference(&published, &copying->manifest))
		status = error_set(err, STATUS_NO,
			"%s/%s is there already with other content, saved by attempt %llu; it "
			"stays as it is",
			copying->destination, found->name, (unsigned long long)found->attempt);
	manifest_release(&published);
	return status;
}

static bool is_there(const struct copying *copying)
{
	return copying->there.state == CHECKPOINT_COMPLETE ||
	       copying->there.state == CHECKPOINT_BAD;
}

/*
 * Read all files of the open copy, sync them, and compare them with the manifest. STATUS_NO: they
 * differ.
 */
static enum status read_back(struct copying *copying, struct error *err)
{
	struct manifest there = {0};
	enum status status = tree_record(copying->to, "", &there, err);
	if (status == STATUS_OK && manifest_difference(&there, &copying->manifest))
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

/* Make a new temporary directory in the open DEST; delete that of a killed copy. */
static enum status make_room(struct copying *copying, int directory, struct error *err)
{
	char gone[CKPT_GONE_SIZE];
	const char *place = copying->destination, *name = strrchr(copying->path, '/') + 1;
	bool made = false;
	enum status status = lock(copying, err);
	if (status == STATUS_OK)
		status = gone_rename(directory, place, name, copying->inode, gone, err);
	else if (status == STATUS_NO)
		status = STATUS_OK;
	if (copying->to >= 0)
		close(copying->to);
	copying->to = -1;
	if (status == STATUS_OK)
		status = gone_settle(directory, place, NULL, name, NULL, err);
	if (status == STATUS_OK)
		status = file_make_directory(copying->path, 0777, &made, err);
	if (status == STATUS_OK && !made)
		status = error_set(
			err, STATUS_TEMPORARY, "another copy into %s is at work", copying->path);
	return status == STATUS_OK ? lock(copying, err) : status;
}

static enum status bring(struct copying *copying, struct error *err)
{
	enum status status = STATUS_OK;
	struct error why;
	char *chunk = xmalloc(CHUNK);
	for (size_t i = 0; i < copying->manifest.count && status == STATUS_OK; i++)
		status = copy_file(copying, &copying->manifest.files[i], chunk, err);
	free(chunk);
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

static enum status publish(struct copying *copying, int place, struct error *err)
{
	bool damaged = copying->there.state == CHECKPOINT_DAMAGED;
	char *path = ckpt_directory_path(copying->path, CKPT_MANIFEST);
	enum status status = manifest_save(path, &copying->manifest, err);
	if (status == STATUS_OK)
		status = publish_rename(place, copying->destination, copying->path, copying->inode,
			copying->original.step, damaged ? copying->there.inode : 0, err);
	free(path);
	return status == STATUS_NO ? error_set(err, STATUS_TEMPORARY, "%s; try again", err->text)
				   : status;
}

/* Remove what a failed copy has left, if no other copy has taken the directory. */
static void clean_up(const struct copying *copying)
{
	struct stat st;
	if (lstat(copying->path, &st) == 0 && st.st_ino == copying->inode)
		(void)file_remove_tree(copying->path, NULL);
}

/* Copy, if the step is not in the open DEST. After a failure look again: another process may have
 * published the step. */
static enum status copy_into(
	struct copying *copying, int directory, bool *copied, struct error *err)
{
	struct error why;
	enum status status = look_at_destination(copying, err);
	if (status == STATUS_OK && !is_there(copying)) {
		status = make_room(copying, directory, err);
		bool ours = status == STATUS_OK;
		if (ours)
			status = bring(copying, err);
		if (status == STATUS_OK)
			status = publish(copying, directory, err);
		*copied = status == STATUS_OK;
		if (status != STATUS_OK && ours)
			clean_up(copying);
		if (status != STATUS_OK && look_at_destination(copying, &why) != STATUS_OK)
			status = error_set(err, why.status, "%s", why.text);
		else if (is_there(copying))
			status = STATUS_OK;
	}
	return status == STATUS_OK ? publish_settle(directory, copying->destination,
					     copying->original.step, err)
				   : status;
}

enum status checkpoint_copy(const char *directory, const char *destination, uint64_t step,
	bool *copied, bool *vanished, struct error *err)
{
	struct checkpoint now;
	struct copying copying = {.directory = directory, .destination = destination};
	int place = -1;
	*copied = false;
	enum status status = begin(&copying, step, err);
	bool begun = status == STATUS_OK;
	if (begun)
		status = ckpt_directory_make(destination, err);
	if (status == STATUS_OK)
		status = ckpt_directory_open(destination, &place, err);
	if (status == STATUS_OK)
		status = copy_into(&copying, place, copied, err);
	/* Another process may have pruned it. */
	*vanished = status == STATUS_NO &&
		    inspect_step(directory, step, false, &now, NULL, NULL) == STATUS_NO;
	if (*vanished && begun)
		status = error_set(err, STATUS_TEMPORARY, "%s/%s was removed while it was copied",
			directory, copying.original.name);
	if (place >= 0)
		close(place);
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
	if (copying->original.pinned)
		return error_set(err, STATUS_NO, "pinned");
	enum status status = look_at_destination(copying, err);
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
	enum status status = marks_read(copying->from, &marks, err);
	if (status == STATUS_OK && (marks.pinned || marks.bad))
		return error_set(err, STATUS_NO, "marked just now");
	if (status == STATUS_OK)
		status = look_at_destination(copying, err);
	if (status == STATUS_OK && copying->there.state != CHECKPOINT_COMPLETE)
		status = error_set(err, STATUS_TEMPORARY,
			"the copy in %s went away when %s/%s was renamed: another process removed "
			"the copy, or both are one directory; the original got its name back",
			copying->destination, copying->directory, copying->original.name);
	return status;
}

static enum status remove_original(struct copying *copying, int directory, struct error *err)
{
	char gone[1][CKPT_GONE_SIZE];
	const char *place = copying->directory;
	enum status statuses[1];
	struct error why;
	enum status status = gone_rename(
		directory, place, copying->original.name, copying->original.inode, gone[0], err);
	if (status != STATUS_OK)
		return status;
	status = check_last(copying, err);
	if (status == STATUS_OK)
		status = gone_delete(directory, place, gone, 1, statuses, err);
	if (status != STATUS_OK && *gone[0] &&
		gone_give_back(directory, place, gone[0], &why) != STATUS_OK)
		status = error_set(err, why.status, "%s", why.text);
	if (status != STATUS_OK)
		return status;
	publish_latest(place, directory);
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

enum status copy_settle(const char *directory, struct error *err)
{
	int descriptor;
	enum status status = open_locked(directory, &descriptor, err);
	if (status != STATUS_OK)
		return status;
	status = gone_settle(descriptor, directory, layout_ours(), NULL, NULL, err);
	close(descriptor);
	return status;
}
