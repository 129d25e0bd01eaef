/* SPDX-License-Identifier: MIT */
#include "store/lock/lock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/xalloc.h"
#include "store/access.h"
#include "store/failure.h"
#include "store/lock/lockfile.h"

/* Milliseconds. */
#define RACES_END  500 /* for which races with other makers cause errors, at most */
#define RENEWALS   5   /* in token_patience */
#define LOOK_EVERY (60 * 60 * 1000)
#define OLD	   (24 * 60 * 60) /* seconds */
#define LONG_ENOUGH                                                                                \
	10 /* seconds for which a machine that dies with the lock may block the others */

/* ---- Kinds ---- */

static bool reaches(const struct filesystem_traits *traits)
{
	return traits->reach == FILESYSTEM_LOCAL || traits->reach == FILESYSTEM_SHARED;
}

enum lock_kind lock_choose(const struct filesystem_traits *traits)
{
	bool outlives = traits->reach == FILESYSTEM_SHARED && traits->by_name &&
			(traits->outlived == FILESYSTEM_FOR_EVER || traits->outlived > LONG_ENOUGH);
	return reaches(traits) && !outlives ? LOCK_FILE : LOCK_TOKEN;
}

enum status lock_follow(
	enum lock_kind kind, const struct filesystem_traits *traits, struct error *err)
{
	if (kind == LOCK_TOKEN || reaches(traits))
		return STATUS_OK;
	return error_set(err, STATUS_USAGE,
		"it was made where byte-range locks reach all machines; here it is on %s, and %s: two "
		"machines could hold the lock at once; use a mount whose locks reach all machines, or "
		"add ?assume=local to the store's URL if only one machine uses it%s",
		traits->name, traits->why,
		traits->reach == FILESYSTEM_UNKNOWN
			? ", or ?assume=shared if you know that its locks reach all machines"
			: "");
}

/* ---- Opening ---- */

enum status lock_failed(struct error *err, const char *action, const struct lock *lock, int number)
{
	return error_cured(err, number, store_cure(number), "%s lock %s", action, lock->path);
}

void lock_init(struct lock *lock)
{
	*lock = (struct lock){.descriptor = -1};
	machine_init(&lock->machine);
}

char *lock_path_of(const struct lock *lock, const char *file, const char *ending)
{
	bool base = !strcmp(file, TOKEN_BASE) || !strcmp(file, TOKEN_NEW);
	return xprintf("%s%s%s%s", lock->base, base ? "" : ".", base ? "" : file, ending);
}

static void use_file(struct lock *lock, const char *file)
{
	if (file != lock->file)
		snprintf(lock->file, sizeof(lock->file), "%s", file);
	free(lock->database);
	lock->database = lock_path_of(lock, file, "");
	lock->made = strcmp(file, TOKEN_NEW);
}

const char *lock_read_name(const struct lock *lock, const char *name, char file[TOKEN_FILE])
{
	const char *base = strrchr(lock->base, '/') + 1, *ending = name + strlen(base);
	if (strncmp(name, base, strlen(base)) != 0)
		return NULL;
	bool moved = *ending == '.' && strspn(ending + 1, "0123456789abcdef") == TOKEN_FILE - 1;
	snprintf(file, TOKEN_FILE, "%s", moved ? ending + 1 : TOKEN_BASE);
	if (moved)
		ending += TOKEN_FILE;
	return *ending && strcmp(ending, "-journal") != 0 ? NULL : ending;
}

/* Count the database files, and note the last of them. Returns 0, or an errno. */
static int find_databases(const struct lock *lock, size_t *count, char file[TOKEN_FILE])
{
	char *directory = file_directory_of(lock->base);
	DIR *entries = opendir(directory);
	int number = entries ? 0 : errno;
	*count = 0;
	for (struct dirent *entry; entries && (errno = 0, entry = readdir(entries));) {
		char found[TOKEN_FILE];
		const char *ending = lock_read_name(lock, entry->d_name, found);
		if (!ending || *ending)
			continue;
		strcpy(file, found);
		++*count;
	}
	if (entries) {
		number = errno;
		closedir(entries);
	}
	free(directory);
	return number;
}

/*
 * There is no lock, or no token. Make it if there is no database and create is set, or, a token, if
 * there is exactly one database. *number: the errno if another process may have made it; else 0.
 */
static enum status make(struct lock *lock, bool create, bool again, int *number, struct error *err)
{
	char file[TOKEN_FILE] = TOKEN_NEW;
	size_t count;
	*number = find_databases(lock, &count, file);
	if (*number)
		return error_cured(err, *number, store_cure(*number), "look at it");
	if (count == 0 && !create)
		return error_set(err, STATUS_NO, "it does not exist");
	/* The lock is made before the database: both may have been made since we looked. */
	if (count && !again)
		return STATUS_OK;
	if (count > 1 || (count && lock->chosen == LOCK_FILE))
		return error_set(err, STATUS_DAMAGED,
			"its lock %s was deleted%s: restore it, or, once no program uses the store, move "
			"the store away",
			lock->path,
			count > 1 ? ", and there are several files that could be the database"
				  : "");
	*number = lock->chosen == LOCK_TOKEN ? token_make(lock, file) : lockfile_make(lock);
	if (!*number || *number == EEXIST || *number == ENOENT || *number == ESTALE ||
		*number == EBADF)
		return STATUS_OK;
	return lock_failed(err, "make", lock, *number);
}

static enum status open_token(struct lock *lock, const struct stat *st, struct error *err)
{
	char name[TOKEN_NAME];
	struct token token;
	enum status status = access_check(lock->path, st, lock->shared_group, err);
	if (status != STATUS_OK)
		return status;
	int number = token_find(lock, name);
	if (number == ENOENT && lock->chosen == LOCK_FILE)
		return error_set(err, STATUS_DAMAGED,
			"its lock %s is a directory without a token: not used; put back what was "
			"there",
			lock->path);
	if (number == ENOENT)
		return STATUS_NO;
	if (number)
		return lock_failed(err, "look into", lock, number);
	if (token_read(name, &token))
		use_file(lock, token.file);
	return STATUS_OK;
}

/* STATUS_NO: there is no lock, or no token in it. */
static enum status open_existing(
	struct lock *lock, const struct lock_terms *terms, int *number, struct error *err)
{
	struct stat st;
	*number = cache_stat(lock->cache, lock->path, &st) < 0 ? errno : 0;
	if (*number == ENOENT)
		return STATUS_NO;
	if (*number)
		return lock_failed(err, "look at", lock, *number);
	lock->kind = S_ISDIR(st.st_mode) ? LOCK_TOKEN : LOCK_FILE;
	lock->itself = st;
	enum status status = lock->kind == LOCK_TOKEN
				     ? open_token(lock, &st, err)
				     : lockfile_open(lock, lock->may_be_read_only, number, err);
	if (status == STATUS_OK)
		status = lock_follow(lock->kind, &terms->traits, err);
	return status;
}

static enum status open_or_make(
	struct lock *lock, const struct lock_terms *terms, int64_t deadline, struct error *err)
{
	int64_t races_until = 0, longest = 1;
	bool again = false;
	for (int looks = 1;; looks++) {
		int number;
		enum status status = open_existing(lock, terms, &number, err);
		if (status == STATUS_NO) {
			status = make(lock, terms->create, again, &number, err);
			again = true;
			if (status != STATUS_OK)
				return status;
		} else if (number != ESTALE && number != EBADF && number != EEXIST) {
			return status;
		}
		/* On network filesystems a race causes errors for a short time. */
		if (!races_until)
			races_until = clock_after(RACES_END);
		/* What we made is looked at, whatever time it took. */
		if (looks > 2 && clock_now() >= clock_earlier(deadline, races_until))
			return number ? lock_failed(err, "open", lock, number)
				      : error_set(err, STATUS_DAMAGED,
						"its lock %s is there, but it has no token: not used; "
						"restore it, or move the store away",
						lock->path);
		clock_sleep_until(clock_after(clock_jitter(longest)));
		longest = clock_earlier(2 * longest, MACHINE_RETRY);
	}
}

enum status lock_open(
	struct lock *lock, const struct lock_terms *terms, int64_t deadline, struct error *err)
{
	lock_init(lock);
	lock->mutex = database_mutex_get(terms->database);
	lock->base = xstrdup(terms->database);
	lock->path = xprintf("%s.lock", terms->database);
	lock->cache = cache_kind(&terms->traits);
	lock->queues = terms->of_this_kernel && lock->cache == CACHE_OURS;
	lock->chosen = lock_choose(&terms->traits);
	lock->shared_group = terms->shared_group;
	lock->may_be_read_only = terms->read_only;
	lock->outlived = terms->traits.outlived;
	use_file(lock, TOKEN_BASE);
	char *directory = file_directory_of(lock->path);
	enum status status = stat(directory, &lock->directory) == 0
				     ? open_or_make(lock, terms, deadline, err)
				     : lock_failed(err, "open", lock, errno);
	free(directory);
	if (status != STATUS_OK)
		lock_close(lock);
	else if (!terms->alone && (lock->kind == LOCK_TOKEN || lock->cache != CACHE_OURS))
		machine_open(&lock->machine, lock->itself.st_dev, lock->itself.st_ino);
	else if (lock->kind == LOCK_TOKEN)
		machine_name_anew(&lock->machine);
	return status;
}

void lock_close(struct lock *lock)
{
	machine_close(&lock->machine);
	lockfile_close(lock);
	database_mutex_put(lock->mutex);
	free(lock->path);
	free(lock->base);
	free(lock->database);
	lock_init(lock);
}

/* ---- Taking and giving ---- */

/*
 * Ask a filesystem of several machines until the deadline; *waited: more than once. Pauses are
 * random, so that machines that were refused together do not ask again together.
 */
static int try_until(
	struct lock *lock, int (*try)(struct lock *lock), int64_t deadline, bool *waited)
{
	*waited = false;
	for (int64_t longest = 1;; longest = clock_earlier(2 * longest, MACHINE_RETRY)) {
		int number = try(lock);
		if (number != EAGAIN || clock_now() >= deadline)
			return number;
		*waited = true;
		clock_sleep_until(clock_earlier(clock_after(clock_jitter(longest)), deadline));
	}
}

static enum status explain_busy(const struct lock *lock, struct error *err)
{
	char dead[96] = "";
	if (lock->kind == LOCK_TOKEN)
		return error_set(err, STATUS_TEMPORARY,
			"it is busy: process %d on %.*s holds it; after %lld s in which that process "
			"does nothing, it is taken over: try again",
			atoi(lock->holder.pid), (int)strcspn(lock->holder.host, "_"),
			lock->holder.host, (long long)(token_patience / 1000));
	if (lock->cache == CACHE_OURS)
		return error_set(err, STATUS_TEMPORARY,
			"it is busy: another process holds %s; try again, or look for a process that "
			"is stopped among those that \"fuser %s\" names",
			lock->path, lock->path);
	if (lock->outlived > 0)
		snprintf(dead, sizeof(dead),
			"; a machine that lost its power holds it for about %d s", lock->outlived);
	return error_set(err, STATUS_TEMPORARY,
		"it is busy: another machine, user or container holds %s; try again, or look for a "
		"process there that is stopped%s",
		lock->path, dead);
}

static enum status explain(const struct lock *lock, int number, struct error *err)
{
	if (number == EAGAIN)
		return explain_busy(lock, err);
	if (lock->kind == LOCK_TOKEN && (number == EROFS || number == EACCES || number == EPERM))
		return error_set(err, STATUS_PERMISSION,
			"even reading it needs write permission in %s, since its filesystem has no "
			"locks that reach all machines: %s",
			lock->path, strerror(number));
	return lock_failed(
		err, lock->kind == LOCK_TOKEN ? "rename the token in" : "take", lock, number);
}

/* Open the lock file again, if it had to be closed, and make nothing. */
static enum status reopen(struct lock *lock, struct error *err)
{
	int number;
	if (lock->descriptor >= 0)
		return STATUS_OK;
	enum status status = lockfile_open(lock, lock->may_be_read_only, &number, err);
	return status == STATUS_NO ? lockfile_gone(lock, err) : status;
}

static enum status take_file(struct lock *lock, int64_t deadline, bool *waited, struct error *err)
{
	for (bool again = false;; again = true) {
		enum status status = reopen(lock, err);
		if (status != STATUS_OK)
			return status;
		int number = lock->queues ? lockfile_take_until(lock, deadline)
					  : try_until(lock, lockfile_take, deadline, waited);
		status = number ? explain(lock, number, err) : STATUS_OK;
		/* A file whose mount is gone would answer ESTALE for ever. */
		if (number == ESTALE)
			lockfile_close(lock);
		else if (!number)
			status = lockfile_check(lock, err);
		if (status == STATUS_OK)
			return status;
		if (!number && lock->descriptor >= 0)
			lockfile_give(lock);
		if (again || lock->descriptor >= 0)
			return status;
	}
}

static enum status take_token(struct lock *lock, int64_t deadline, bool *waited, struct error *err)
{
	for (bool again = false;; again = true) {
		int number = try_until(lock, token_take, deadline, waited);
		if (!number) {
			use_file(lock, lock->file);
			return STATUS_OK;
		}
		if (number != ENOENT)
			return explain(lock, number, err);
		if (again || lock->chosen == LOCK_FILE)
			return lockfile_gone(lock, err);
		enum status status = make(lock, false, true, &number, err);
		if (status != STATUS_OK)
			return status == STATUS_NO ? lockfile_gone(lock, err) : status;
	}
}

static enum status take(struct lock *lock, int64_t deadline, struct error *err)
{
	bool shared = lock->cache != CACHE_OURS, waited = false;
	int64_t pause = shared ? machine_pause(&lock->machine) : 0;
	if (pause)
		clock_sleep_until(clock_earlier(clock_after(pause), deadline));
	lock->lost = 0;
	lock->moving = false;
	enum status status = lock->kind == LOCK_TOKEN ? take_token(lock, deadline, &waited, err)
						      : take_file(lock, deadline, &waited, err);
	if (status == STATUS_OK)
		machine_taken(&lock->machine, waited);
	return status;
}

static enum status explain_machine(const struct machine_known *known, struct error *err)
{
	if (!known->holder)
		return error_set(err, STATUS_TEMPORARY,
			"it is busy: another process of this machine holds it; try again, or look for a "
			"process that is stopped");
	return error_set(err, STATUS_TEMPORARY,
		"it is busy: process %d of this machine has %s for %lld ms; try again, or see whether "
		"that process is stopped",
		(int)known->holder, known->has ? "held it" : "waited for another machine",
		(long long)(clock_now() - known->since));
}

enum status lock_take(struct lock *lock, int64_t deadline, struct error *err)
{
	enum status status = STATUS_OK;
	if (database_mutex_lock(lock->mutex, deadline) != 0)
		return error_set(err, STATUS_TEMPORARY,
			"it is busy: another thread of this process is at work on it");
	if (machine_take(&lock->machine, deadline) != 0) {
		status = explain_machine(&lock->machine.known, err);
	} else {
		status = take(lock, deadline, err);
		if (status != STATUS_OK)
			machine_give(&lock->machine);
	}
	if (status != STATUS_OK)
		database_mutex_unlock(lock->mutex);
	else
		lock_refresh(lock);
	return status;
}

bool lock_give(struct lock *lock)
{
	machine_giving(&lock->machine);
	if (lock->kind == LOCK_FILE)
		lockfile_give(lock);
	else if (lock->moving)
		lock->lost = EAGAIN; /* it stays a moving one: the next one copies the database */
	else if (!lock->lost)
		lock->lost = token_give(lock);
	machine_give(&lock->machine);
	database_mutex_unlock(lock->mutex);
	return !lock->lost;
}

bool lock_keep(struct lock *lock)
{
	if (lock->kind == LOCK_TOKEN && !lock->lost &&
		clock_now() - lock->renamed >= token_patience / RENEWALS)
		lock->lost = token_keep(lock);
	return !lock->lost;
}

bool lock_settle(struct lock *lock, const char *file)
{
	if (!lock->lost)
		lock->lost = token_settle(lock, file);
	if (!lock->lost)
		use_file(lock, file);
	return !lock->lost;
}

enum status lock_lost(const struct lock *lock, const char *consequence, struct error *err)
{
	if (lock->lost == EAGAIN)
		return error_set(err, STATUS_TEMPORARY,
			"its lock %s was taken over by others: we were stopped, or did not reach the "
			"filesystem, for %lld s; %s",
			lock->path, (long long)(token_patience / 1000), consequence);
	return error_set(err, error_status_of_errno(lock->lost),
		"cannot rename the token in %s: %s%s; %s", lock->path, strerror(lock->lost),
		store_cure(lock->lost), consequence);
}

/* Remove what makers that were killed have left. One that is at work makes its own again. */
static void remove_begun(const struct lock *lock)
{
	const char *name = strrchr(lock->path, '/') + 1;
	size_t length = strlen(name);
	char *directory = file_directory_of(lock->path);
	DIR *entries = opendir(directory);
	for (struct dirent *entry; entries && (entry = readdir(entries));) {
		if (strncmp(entry->d_name, name, length) ||
			strncmp(entry->d_name + length, ".new-", 5) ||
			strlen(entry->d_name + length) != strlen(".new-XXXXXX"))
			continue;
		char *path = xprintf("%s/%s", directory, entry->d_name);
		(void)file_remove_tree(path, NULL);
		free(path);
	}
	if (entries)
		closedir(entries);
	free(directory);
}

enum status lock_note_made(struct lock *lock, struct error *err)
{
	if (!lock->made)
		remove_begun(lock);
	enum status status = lock->kind == LOCK_FILE ? lockfile_note_made(lock, err) : STATUS_OK;
	if (status != STATUS_OK)
		return status;
	/* Giving the token back records it. */
	if (lock->kind == LOCK_TOKEN && !lock->made)
		strcpy(lock->file, TOKEN_BASE);
	lock->made = true;
	return STATUS_OK;
}

enum status lock_check(struct lock *lock, struct error *err)
{
	struct stat st;
	if (lock->kind == LOCK_FILE)
		return lock->descriptor < 0 ? lockfile_gone(lock, err) : lockfile_check(lock, err);
	if (cache_stat(lock->cache, lock->path, &st) == 0)
		return STATUS_OK;
	return errno == ENOENT ? lockfile_gone(lock, err)
			       : lock_failed(err, "look at", lock, errno);
}

bool lock_names_file(const struct lock *lock)
{
	char name[TOKEN_NAME];
	struct token token;
	return lock->kind == LOCK_FILE ||
	       (token_find(lock, name) == 0 && token_read(name, &token) &&
		       !strcmp(token.file, lock->file));
}

void lock_refresh(struct lock *lock)
{
	char name[TOKEN_NAME] = "";
	struct stat st;
	if (lock->looked && clock_now() - lock->looked < LOOK_EVERY)
		return;
	lock->looked = clock_now();
	if (lock->kind == LOCK_TOKEN && token_find(lock, name) != 0)
		return;
	char *paths[] = {xprintf("%s%s%s", lock->path, *name ? "/" : "", name),
		xstrdup(lock->database), xprintf("%s-journal", lock->database)};
	bool old = lstat(paths[0], &st) == 0 && clock_utc() / 1000 - st.st_mtime > OLD;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		if (old)
			(void)utimensat(AT_FDCWD, paths[i], NULL, AT_SYMLINK_NOFOLLOW);
		free(paths[i]);
	}
}
