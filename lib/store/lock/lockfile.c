/* SPDX-License-Identifier: MIT */
#include "store/lock/lockfile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/xalloc.h"
#include "store/access.h"
#include "store/failure.h"
#include "store/lock/link_prove.h"

#define FIRST_LINE    "lock of a preempt-tools store: do not delete, copy or edit"
#define LAST_NEW      "state new \n"
#define LAST_MADE     "state made\n"
#define RETRY_LONGEST 64  /* milliseconds */
#define RACES_END     500 /* milliseconds for which races with other makers cause errors, at most */
#define OLD	      (24 * 60 * 60) /* seconds since a file of the store was changed */

enum status lockfile_failed(
	struct error *err, const char *action, const struct lockfile *file, int number)
{
	return error_cured(err, number, store_cure(number), "%s lock file %s", action, file->path);
}

static enum status compose(
	enum lock_mode mode, int64_t takeover, char *text, size_t size, struct error *err)
{
	unsigned char random[16];
	char nonce[33];
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return error_set(err, STATUS_TEMPORARY, "no random numbers: %s", strerror(errno));
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(nonce + 2 * i, 3, "%02x", random[i]);
	if (mode == LOCK_FCNTL)
		takeover = 0;
	else if (!takeover)
		takeover = TAKEOVER_DEFAULT;
	snprintf(text, size, "%s\nformat %d\nmode %s\nnonce %s\ntakeover %lld\n%s", FIRST_LINE,
		STORE_FORMAT, lock_mode_name(mode), nonce, (long long)takeover, LAST_NEW);
	return STATUS_OK;
}

/* Give a complete file its name, unless that exists. Some filesystems have no hard links. */
static int name_whole(const char *from, const char *to)
{
	if (link(from, to) == 0)
		return unlink(from);
	if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS && errno != EMLINK)
		return -1;
	return renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);
}

/*
 * Make the lock file. STATUS_OK: also if another process seems to have made it; *number is the
 * errno that we got then.
 */
static enum status make(
	struct lockfile *file, const struct lockfile_terms *terms, int *number, struct error *err)
{
	char text[256];
	char *temporary = NULL;
	char *path = file_directory_of(file->path);
	enum lock_mode mode;
	int directory = -1, descriptor = -1;
	enum status status = lock_mode_choose(terms->mode, &terms->traits, &mode, err);
	if (status == STATUS_OK && mode == LOCK_LINK)
		status = link_prove(file->path, err);
	/* LOCK_AUTO only preferred mode link: mode fcntl is safe on this filesystem, too. */
	if (status == STATUS_USAGE && terms->mode == LOCK_AUTO &&
		terms->traits.reach == FILESYSTEM_SHARED) {
		mode = LOCK_FCNTL;
		status = STATUS_OK;
	}
	if (status == STATUS_OK)
		status = compose(mode, terms->takeover, text, sizeof(text), err);
	/* Use the directory's descriptor: if it is unmounted now, nothing is made on its mount
	 * point. */
	if (status == STATUS_OK)
		directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (status == STATUS_OK && directory < 0)
		status = lockfile_failed(err, "make", file, errno);
	if (status != STATUS_OK)
		goto out;
	temporary = xprintf("%s" LOCKFILE_BEGUN "XXXXXX", file->path);
	descriptor = file_make_temporary(directory, strrchr(temporary, '/') + 1);
	if (descriptor < 0) {
		status = lockfile_failed(err, "make", file, errno);
		goto out;
	}
	if ((terms->shared_group && fchmod(descriptor, 0660) < 0) ||
		file_write_all(descriptor, text, strlen(text)) < 0 || fsync(descriptor) < 0 ||
		name_whole(temporary, file->path) < 0) {
		*number = errno;
		(void)unlinkat(directory, strrchr(temporary, '/') + 1, 0);
		/* Some network filesystems report a race with another maker as ENOENT, ESTALE or
		 * EBADF, and sshfs as EPERM. */
		status = *number == EEXIST || *number == ENOENT || *number == ESTALE ||
					 *number == EBADF || access(file->path, F_OK) == 0
				 ? STATUS_OK
				 : lockfile_failed(err, "make", file, *number);
		goto out;
	}
	/*
	 * Only the maker syncs: the content before the name, because a loss of power could
	 * otherwise leave an empty lock file, which is refused; and the name before the database is
	 * made.
	 */
	status = file_sync_directory(path, err);
out:
	if (descriptor >= 0)
		close(descriptor);
	if (directory >= 0)
		close(directory);
	free(temporary);
	free(path);
	return status;
}

static enum status read_text(struct lockfile *file, char *text, size_t size, struct error *err)
{
	cache_drop(file->cache, file->descriptor);
	ssize_t n = pread(file->descriptor, text, size - 1, 0);
	if (n < 0)
		return lockfile_failed(err, "read", file, errno);
	text[n] = '\0';
	return STATUS_OK;
}

static enum status not_ours(const struct lockfile *file, struct error *err)
{
	return error_set(err, STATUS_DAMAGED,
		"%s is not the lock file of a store: not used; if you do not need it, delete it",
		file->path);
}

enum status lockfile_refuse_format(const char *what, unsigned format, struct error *err)
{
	return error_set(err, STATUS_DAMAGED,
		"%s has format %u and this version uses %d: not used; %s", what, format,
		STORE_FORMAT,
		format > STORE_FORMAT ? "install a newer preempt-tools"
				      : "it was made before the first release, make a new store");
}

enum status lockfile_read(struct lockfile *file, struct error *err)
{
	char text[512], mode[16];
	unsigned format = 0;
	int length = 0;
	long long takeover = 0;
	enum status status = read_text(file, text, sizeof(text), err);
	if (status != STATUS_OK)
		return status;
	size_t first = strlen(FIRST_LINE);
	int read =
		strncmp(text, FIRST_LINE "\n", first + 1)
			? 0
			: sscanf(text + first,
				  "\nformat %9u\nmode %15s\nnonce %32[0-9a-f]\ntakeover %9lld\nstate%n",
				  &format, mode, file->nonce, &takeover, &length);
	if (read > 0 && format != STORE_FORMAT)
		return lockfile_refuse_format(file->path, format, err);
	if (!length || strlen(file->nonce) != 32 || !lock_mode_parse(mode, &file->mode))
		return not_ours(file, err);
	if (file->mode == LOCK_LINK ? takeover < TAKEOVER_LEAST || takeover > TAKEOVER_MOST
				    : file->mode != LOCK_FCNTL || takeover != 0)
		return not_ours(file, err);
	file->takeover = takeover;
	file->made = strstr(text, "\n" LAST_MADE) != NULL;
	return STATUS_OK;
}

bool lockfile_is(const struct lockfile *file, const struct stat *st)
{
	return file->itself.st_dev == st->st_dev && file->itself.st_ino == st->st_ino;
}

void lockfile_drop(struct lockfile *file)
{
	if (file->descriptor >= 0)
		close(file->descriptor);
	file->descriptor = -1;
}

/*
 * Open the directory, and the lock file in it, so that both belong together even if the directory
 * is moved or mounted over. Returns 0, or an errno.
 */
static int open_path(struct lockfile *file, bool write)
{
	int flags = O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK;
	char *directory = file_directory_of(file->path);
	int outer = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	free(directory);
	if (outer < 0)
		return errno;
	file->descriptor = cache_open_at(file->cache, outer, strrchr(file->path, '/') + 1,
		(write ? O_RDWR : O_RDONLY) | flags);
	int number = file->descriptor < 0 || file_fstat(file->descriptor, &file->itself) < 0 ||
				     fstat(outer, &file->directory) < 0
			     ? errno
			     : 0;
	close(outer);
	if (number)
		lockfile_drop(file);
	return number;
}

static enum status check_link(
	const struct lockfile *file, const struct lockfile_terms *terms, struct error *err)
{
	if (terms->takeover && terms->takeover != file->takeover)
		return error_set(err, STATUS_USAGE,
			"it was made with takeover=%lldms, and all must use the same: leave takeover out",
			(long long)file->takeover);
	/* A reader must keep writers out by making a name, which it cannot do here. */
	if (file->read_only)
		return error_set(err, STATUS_PERMISSION,
			"it was made with lock=link, so even reading needs write permission in "
			"its directory, which is missing here: use a writable mount");
	return STATUS_OK;
}

/*
 * Open and read the lock file; with read_only, also if it cannot be written. STATUS_NO: there is
 * none. *number: the errno of the failure, or 0.
 */
static enum status open_and_read(
	struct lockfile *file, bool read_only, int *number, struct error *err)
{
	file->read_only = false;
	*number = open_path(file, true);
	if (read_only && (*number == EROFS || *number == EACCES || *number == EPERM)) {
		file->read_only = true;
		*number = open_path(file, false);
	}
	if (*number == ENOENT)
		return STATUS_NO;
	if (*number == ELOOP || *number == EISDIR || *number == ENXIO)
		return error_set(err, STATUS_DAMAGED,
			"its lock file %s is %s: not used; put the file itself there", file->path,
			*number == ELOOP    ? "a symbolic link"
			: *number == EISDIR ? "a directory"
					    : "not a regular file");
	if (*number)
		return lockfile_failed(err, "open", file, *number);
	enum status status = access_check(file->path, &file->itself, file->shared_group, err);
	return status == STATUS_OK ? lockfile_read(file, err) : status;
}

static enum status open_existing(
	struct lockfile *file, const struct lockfile_terms *terms, int *number, struct error *err)
{
	enum status status = open_and_read(file, terms->read_only, number, err);
	if (status == STATUS_OK)
		status = lock_mode_follow(file->mode, terms->mode, &terms->traits, err);
	if (status == STATUS_OK && file->mode == LOCK_LINK)
		status = check_link(file, terms, err);
	return status;
}

enum status lockfile_open(struct lockfile *file, const struct lockfile_terms *terms,
	int64_t deadline, struct error *err)
{
	enum status status;
	bool seen_database = false;
	int64_t races_until = 0;
	*file = (struct lockfile){.descriptor = -1};
	file->shared_group = terms->shared_group;
	file->cache = cache_kind(&terms->traits);
	file->outlived = terms->traits.outlived;
	file->path = xprintf("%s.lock", terms->database);
	for (int64_t longest = 1;; longest = longest < RETRY_LONGEST ? longest * 2 : longest) {
		int number;
		status = open_existing(file, terms, &number, err);
		if (status == STATUS_OK)
			return STATUS_OK;
		lockfile_drop(file);
		if (status == STATUS_NO) {
			/*
			 * The lock file is made before the database: if only the database exists,
			 * the lock file was deleted, or both were made since we looked. Look again.
			 */
			bool there = access(terms->database, F_OK) == 0;
			if (!there && errno != ENOENT) {
				status = error_cured(err, errno, store_cure(errno), "look at it");
				break;
			}
			if (there) {
				if (seen_database) {
					status = error_set(err, STATUS_DAMAGED,
						"its lock file %s was deleted: restore it, or, "
						"once no program uses the store, move the store "
						"away",
						file->path);
					break;
				}
				seen_database = true;
				continue;
			}
			if (!terms->create) {
				error_set(err, STATUS_NO, "it does not exist");
				break;
			}
			number = 0;
			status = make(file, terms, &number, err);
			if (status != STATUS_OK)
				break;
			if (number == 0)
				continue;
		} else if (number != ESTALE && number != EBADF && number != EEXIST) {
			break;
		}
		/* On network filesystems a race causes errors for a short time: give up RACES_END
		 * ms after the first one. */
		if (!races_until)
			races_until = clock_after(RACES_END);
		if (clock_now() >= deadline || clock_now() >= races_until) {
			status = lockfile_failed(err, "open", file, number);
			break;
		}
		if (longest > 1)
			poll(NULL, 0, (int)clock_jitter(longest));
	}
	lockfile_close(file);
	return status;
}

void lockfile_close(struct lockfile *file)
{
	lockfile_drop(file);
	free(file->path);
	*file = (struct lockfile){.descriptor = -1};
}

/* Whether the path names the open file again, after its mount was missing for a moment. */
static bool is_back(const struct lockfile *file)
{
	struct stat there;
	return file_stat(AT_FDCWD, file->path, 0, &there) == 0 && lockfile_is(file, &there);
}

enum status lockfile_gone(const struct lockfile *file, struct error *err)
{
	struct stat there = {0};
	char *directory = file_directory_of(file->path);
	int number = stat(directory, &there) < 0 ? errno : 0;
	enum status status;
	if (number && number != ENOENT)
		status = lockfile_failed(err, "look at the directory of", file, number);
	else if (number || there.st_dev != file->directory.st_dev)
		status = error_set(err, STATUS_TEMPORARY,
			"its directory %s %s while it was in use: it was moved away, or its filesystem is "
			"no longer mounted; put it back, then try again",
			directory, number ? "disappeared" : "came to lie on another filesystem");
	else if (there.st_ino != file->directory.st_ino)
		status = error_set(err, STATUS_TEMPORARY,
			"its directory %s was moved away or replaced by another while it was in use; put "
			"it back, then try again",
			directory);
	else if (is_back(file))
		status = error_set(err, STATUS_TEMPORARY,
			"its lock file %s was missing for a moment: try again", file->path);
	else
		status = error_set(err, STATUS_DAMAGED,
			"its lock file %s was deleted or replaced while it was in use: not used; stop "
			"everything that uses the store, then start again",
			file->path);
	free(directory);
	return status;
}

/*
 * Set the times of lock file and database to now. Sites delete files that were not changed for some
 * days, and using a store changes neither its lock file nor a database that is only read.
 */
static void renew_times(const struct lockfile *file)
{
	char *database = xprintf("%.*s", (int)(strrchr(file->path, '.') - file->path), file->path);
	(void)futimens(file->descriptor, NULL);
	(void)utimensat(AT_FDCWD, database, NULL, AT_SYMLINK_NOFOLLOW);
	free(database);
}

enum status lockfile_verify(struct lockfile *file, struct error *err)
{
	struct stat there;
	int number = file_stat(AT_FDCWD, file->path, 0, &there) < 0 ? errno : 0;
	/* While the descriptor is open, no other file of the device can get its inode number. */
	if (!number && lockfile_is(file, &there)) {
		if (clock_utc() / 1000 - there.st_mtime > OLD)
			renew_times(file);
		return STATUS_OK;
	}
	enum status status = !number || number == ENOENT
				     ? lockfile_gone(file, err)
				     : lockfile_failed(err, "look at", file, number);
	if (status != STATUS_DAMAGED)
		lockfile_drop(file);
	return status;
}

void lockfile_tidy(const char *path, const char *ending)
{
	char *directory = file_directory_of(path);
	char *begun = xprintf("%s%s", strrchr(path, '/') + 1, ending);
	size_t length = strlen(begun);
	DIR *entries = opendir(directory);
	for (struct dirent *entry; entries && (entry = readdir(entries));)
		if (!strncmp(entry->d_name, begun, length) && strlen(entry->d_name) == length + 6)
			(void)unlinkat(dirfd(entries), entry->d_name, 0);
	if (entries)
		closedir(entries);
	free(begun);
	free(directory);
}

enum status lockfile_write_made(struct lockfile *file, struct error *err)
{
	char text[512];
	enum status status = read_text(file, text, sizeof(text), err);
	if (status != STATUS_OK)
		return status;
	size_t length = strlen(text), last = strlen(LAST_MADE);
	if (length < last || strcmp(text + length - last, LAST_NEW))
		return STATUS_OK;
	/* Both lines have the same length. If we are killed before this, the next process that
	 * opens the store writes the line. */
	if (pwrite(file->descriptor, LAST_MADE, last, (off_t)(length - last)) != (ssize_t)last ||
		fdatasync(file->descriptor) < 0)
		return lockfile_failed(err, "write", file, errno);
	file->made = true;
	return STATUS_OK;
}

enum status lockfile_inspect(
	struct lockfile *file, const char *path, bool shared_group, struct error *err)
{
	int number;
	*file = (struct lockfile){.descriptor = -1, .shared_group = shared_group};
	file->path = xstrdup(path);
	enum status status = open_and_read(file, true, &number, err);
	if (status == STATUS_NO)
		error_set(err, STATUS_NO, "there is no %s", path);
	if (status != STATUS_OK)
		lockfile_close(file);
	return status;
}
