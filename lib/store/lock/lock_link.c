/* SPDX-License-Identifier: MIT */
#include "store/lock/lock_link.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/access.h"
#include "store/lock/link_step.h"
#include "store/lock/link_sweep.h"
#include "store/lock/lock.h"

#define DEAD_MAX 8 /* dead names that are broken at once; mostly there is one */

#define SWEEP_OLD 60000 /* ms: the age at which the directory of a waiter elsewhere is removed */

/* One run through the steps. */
struct run {
	struct lock *lock;
	int number; /* errno of the last error */
	char dead[DEAD_MAX][NAME_MAX + 1];
	size_t dead_count;
	int64_t asked; /* clock_boot before the request that gave us the name */
	bool overtook; /* a dead name was or may have been renamed to link.next */
};

/*
 * The names that the open stores of this process use. Any other name of this process in HELD is
 * left from a request whose outcome was not known.
 */
static pthread_mutex_t live_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct link_state *live;

static void set_name(char *to, const char *name)
{
	pthread_mutex_lock(&live_mutex);
	snprintf(to, LINK_NAME_MAX, "%s", name);
	pthread_mutex_unlock(&live_mutex);
}

static void enlist(struct link_state *link)
{
	pthread_mutex_lock(&live_mutex);
	if (!link->live) {
		link->next_live = live;
		live = link;
		link->live = true;
	}
	pthread_mutex_unlock(&live_mutex);
}

static void delist(struct link_state *link)
{
	pthread_mutex_lock(&live_mutex);
	for (struct link_state **at = &live; link->live && *at; at = &(*at)->next_live)
		if (*at == link) {
			*at = link->next_live;
			break;
		}
	link->live = false;
	link->name[0] = link->next[0] = '\0';
	pthread_mutex_unlock(&live_mutex);
}

static bool is_in_use(const char *name)
{
	bool found = false;
	pthread_mutex_lock(&live_mutex);
	for (struct link_state *at = live; at && !found; at = at->next_live)
		found = !strcmp(at->name, name) || !strcmp(at->next, name);
	pthread_mutex_unlock(&live_mutex);
	return found;
}

static void held_path(char path[PATH_MAX], const struct lock *lock, const char *name)
{
	snprintf(path, PATH_MAX, "%s.held%s%s", lock->file.path, *name ? "/" : "", name);
}

/* The path of our own directory before it becomes HELD, or of a name in it. */
static void own_path(char path[PATH_MAX], const struct lock *lock, const char *name)
{
	snprintf(path, PATH_MAX, "%s.%.*s%s%s", lock->file.path, LINK_NONCE, lock->link.name,
		*name ? "/" : "", name);
}

static enum link_answer answer_of(struct run *run, int result)
{
	if (result == 0)
		return LINK_YES;
	if (errno == ENOENT)
		return LINK_MISSING;
	run->number = errno;
	return LINK_UNCERTAIN;
}

/* Make a new name. EAGAIN would mean "another process holds the lock", so report EIO instead. */
static bool make_name(struct run *run, char name[LINK_NAME_MAX])
{
	errno = 0;
	bool made = link_name_make(name);
	if (!made)
		run->number = errno && errno != EAGAIN ? errno : EIO;
	return made;
}

static enum link_answer make(struct run *run)
{
	struct lock *lock = run->lock;
	char path[PATH_MAX], name[LINK_NAME_MAX];
	if (!make_name(run, name))
		return LINK_UNCERTAIN;
	set_name(lock->link.name, name);
	enlist(&lock->link);
	own_path(path, lock, "");
	if (strlen(path) >= PATH_MAX - LINK_NAME_MAX) {
		run->number = ENAMETOOLONG;
		return LINK_UNCERTAIN;
	}
	/* Set the group's rights whatever the umask is. */
	if (mkdir(path, 0700) < 0 ||
		(lock->file.shared_group && access_share_directory(path) < 0)) {
		run->number = errno;
		return LINK_UNCERTAIN;
	}
	lock->link.made = true;
	own_path(path, lock, name);
	int descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (descriptor >= 0)
		close(descriptor);
	return answer_of(run, descriptor < 0 ? -1 : 0);
}

/* errno stays. */
static bool is_there(const char *path)
{
	int number = errno;
	bool there = access(path, F_OK) == 0;
	errno = number;
	return there;
}

static enum link_answer take(struct run *run)
{
	struct lock *lock = run->lock;
	char own[PATH_MAX], held[PATH_MAX];
	own_path(own, lock, "");
	held_path(held, lock, "");
	run->asked = clock_boot();
	int result = rename(own, held);
	/* sshfs says EPERM for each refusal: look whether it was this one. */
	bool occupied = result < 0 && (errno == EEXIST || errno == ENOTEMPTY ||
					      (errno == EPERM && is_there(own) && is_there(held)));
	if (occupied)
		return LINK_OCCUPIED;
	enum link_answer answer = answer_of(run, result);
	if (answer != LINK_UNCERTAIN)
		lock->link.made = false;
	return answer;
}

/* Whether HELD contains name. Open it: only this makes a network filesystem ask its server. */
static enum link_answer check(struct run *run, const char *name)
{
	char path[PATH_MAX];
	if (!*name)
		return LINK_MISSING;
	held_path(path, run->lock, name);
	enum cache cache = run->lock->file.cache;
	int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW;
	int descriptor = cache_open_at(cache, AT_FDCWD, path, flags);
	/* Try again: if the answer is not known, a commit is given up. */
	if (descriptor < 0 && errno != ENOENT)
		descriptor = cache_open_at(cache, AT_FDCWD, path, flags);
	if (descriptor >= 0)
		close(descriptor);
	return answer_of(run, descriptor < 0 ? -1 : 0);
}

/* Whether the holder of this name is surely dead. *can_be_silent becomes false if it is surely
 * alive, on this machine: then its silence proves nothing. */
static bool is_gone(const char *name, bool *can_be_silent)
{
	switch (link_name_classify(name)) {
	case HOLDER_GONE: return true;
	case HOLDER_OURSELVES: return !is_in_use(name);
	case HOLDER_HERE: *can_be_silent = false; return false;
	case HOLDER_ELSEWHERE: return false;
	}
	return false;
}

static enum link_answer judge(struct run *run, DIR *entries)
{
	struct lock *lock = run->lock;
	struct link_state *link = &lock->link;
	struct staleness *staleness = machine_staleness(&lock->machine);
	char waiting[DEAD_MAX][NAME_MAX + 1];
	size_t waiting_count = 0;
	bool ours = false, left = false, can_be_silent = true;
	uint64_t what = 0;
	run->dead_count = 0;
	for (struct dirent *entry; (entry = readdir(entries));) {
		const char *name = entry->d_name;
		if (!strcmp(name, ".") || !strcmp(name, ".."))
			continue;
		if (link_workspace_is(name)) {
			left = true;
		} else if (!strcmp(name, link->name)) {
			ours = true;
		} else if (is_gone(name, &can_be_silent)) {
			if (run->dead_count < DEAD_MAX)
				strcpy(run->dead[run->dead_count++], name);
		} else {
			what += link_name_hash(name);
			snprintf(link->holder, sizeof(link->holder), "%.*s", LINK_NAME_MAX - 1,
				name);
			if (waiting_count < DEAD_MAX)
				strcpy(waiting[waiting_count++], name);
		}
	}
	if (waiting_count == 0 && (ours || run->dead_count))
		return run->dead_count ? LINK_DEAD : LINK_OURSELVES;
	if (waiting_count == 0)
		return left ? LINK_DEAD : LINK_NOBODY;
	link->silent = staleness_observe(
		staleness ? staleness : &link->staleness, what, clock_now(), lock->file.takeover);
	if (!can_be_silent || link->silent < lock->file.takeover)
		return LINK_ALIVE;
	for (size_t i = 0; i < waiting_count && run->dead_count < DEAD_MAX; i++)
		strcpy(run->dead[run->dead_count++], waiting[i]);
	return LINK_DEAD;
}

static enum link_answer look(struct run *run)
{
	char path[PATH_MAX];
	held_path(path, run->lock, "");
	int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
	int descriptor = cache_open_at(run->lock->file.cache, AT_FDCWD, path, flags);
	DIR *entries = descriptor < 0 ? NULL : fdopendir(descriptor);
	if (!entries) {
		enum link_answer answer = answer_of(run, -1);
		if (descriptor >= 0)
			close(descriptor);
		return answer == LINK_MISSING || run->number == ESTALE ? LINK_NOBODY : answer;
	}
	enum link_answer answer = judge(run, entries);
	closedir(entries);
	return answer;
}

static void clear_held(struct lock *lock)
{
	char path[PATH_MAX];
	held_path(path, lock, "");
	(void)rmdir(path);
}

/*
 * Remove our name from HELD. LINK_YES: it was there until now. If that fails, our next acquisition
 * finds a name of this process that is not in use, and breaks it.
 */
static enum link_answer leave(struct run *run)
{
	const char *names[] = {run->lock->link.name, run->lock->link.next};
	char path[PATH_MAX];
	enum link_answer answer = LINK_MISSING;
	for (size_t i = 0; i < 2 && answer == LINK_MISSING; i++) {
		if (!*names[i])
			continue;
		held_path(path, run->lock, names[i]);
		answer = answer_of(run, unlink(path));
		if (answer == LINK_UNCERTAIN)
			answer = answer_of(run, unlink(path));
		if (answer == LINK_UNCERTAIN)
			answer = check(run, names[i]);
	}
	return answer;
}

/*
 * Give up a takeover: leave a name that belongs to no process, so that the next process begins the
 * takeover again and need not wait for the end of this one.
 */
static void abandon(const struct lock *lock)
{
	char nonce[LINK_NAME_MAX], name[LINK_NAME_MAX], from[PATH_MAX], to[PATH_MAX];
	if (!link_name_make(nonce))
		return;
	snprintf(name, sizeof(name), LINK_ABANDONED "%.*s", LINK_NONCE, nonce);
	held_path(from, lock, lock->link.name);
	held_path(to, lock, name);
	(void)rename(from, to);
}

static void unmake(struct lock *lock)
{
	char path[PATH_MAX];
	if (!*lock->link.name)
		return;
	own_path(path, lock, lock->link.name);
	(void)unlink(path);
	own_path(path, lock, "");
	(void)rmdir(path);
	lock->link.made = false;
}

/* Rename the name old in HELD to link.next, which is a new name of ours. */
static enum link_answer rename_to_next(struct run *run, const char *old)
{
	struct link_state *link = &run->lock->link;
	char name[LINK_NAME_MAX], from[PATH_MAX], to[PATH_MAX];
	if (!make_name(run, name))
		return LINK_UNCERTAIN;
	set_name(link->next, name);
	held_path(from, run->lock, old);
	held_path(to, run->lock, link->next);
	run->asked = clock_boot();
	return answer_of(run, rename(from, to));
}

/* HELD contains only workspaces of takeovers. Removing them does not give us the lock. */
static enum link_answer clear_workspaces(struct run *run)
{
	char path[PATH_MAX];
	held_path(path, run->lock, "");
	run->number = link_workspaces_remove(path, "");
	return run->number ? LINK_UNCERTAIN : LINK_MISSING;
}

/*
 * The order of dead names: all are removed except the last, which is renamed. All processes that
 * see the same names use the same order. Names that are not of a process come first.
 */
static int compare_dead(const void *a, const void *b)
{
	struct process_identity who;
	const char *left = a, *right = b;
	int ours = link_name_parse(left, &who) - link_name_parse(right, &who);
	return ours ? ours : strcmp(left, right);
}

static enum link_answer break_dead(struct run *run)
{
	struct stat st;
	char path[PATH_MAX];
	if (run->dead_count == 0)
		return clear_workspaces(run);
	qsort(run->dead, run->dead_count, sizeof(run->dead[0]), compare_dead);
	for (size_t i = 0; i < run->dead_count; i++) {
		held_path(path, run->lock, run->dead[i]);
		if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
			run->number = EISDIR;
			return LINK_UNCERTAIN;
		}
		/* Another process may have removed it already. */
		if (i + 1 < run->dead_count && unlink(path) < 0 && errno != ENOENT &&
			errno != ESTALE) {
			run->number = errno;
			return LINK_UNCERTAIN;
		}
	}
	run->lock->link.sweep = true;
	enum link_answer answer = rename_to_next(run, run->dead[run->dead_count - 1]);
	if (answer == LINK_UNCERTAIN && run->number == ESTALE)
		answer = LINK_MISSING;
	if (answer == LINK_MISSING)
		set_name(run->lock->link.next, "");
	run->overtook = answer != LINK_MISSING;
	return answer;
}

static enum link_answer carry_out(struct run *run, enum link_action action)
{
	int number;
	switch (action) {
	case LINK_MAKE: return make(run);
	case LINK_TAKE: return take(run);
	case LINK_CHECK: return check(run, run->lock->link.name);
	case LINK_CHECK_NEXT: return check(run, run->lock->link.next);
	case LINK_LIST_HELD: return look(run);
	case LINK_BREAK: return break_dead(run);
	case LINK_CLEAR: clear_held(run->lock); return LINK_YES;
	case LINK_UNMAKE:
		unmake(run->lock);
		/* After overtaking a holder, never leave the lock free: leave a name that makes
		 * the next process begin the takeover again. */
		if (run->overtook)
			set_name(run->lock->link.next, "");
		number = run->number;
		(void)leave(run);
		run->number = number;
		return LINK_YES;
	case LINK_RENEW: return rename_to_next(run, run->lock->link.name);
	default: return LINK_UNCERTAIN;
	}
}

static enum link_action finish(struct run *run, struct link_step *step)
{
	while (step->action < LINK_HELD)
		(void)link_next(step, carry_out(run, step->action));
	return step->action;
}

/* We hold the lock. If link.next is set, it has replaced the name that was in HELD. */
static void settle(struct link_state *link, const struct run *run)
{
	link->since = run->asked;
	if (*link->next)
		set_name(link->name, link->next);
	set_name(link->next, "");
}

static int try_once(struct lock *lock, int64_t deadline)
{
	(void)deadline;
	struct link_state *link = &lock->link;
	struct run run = {.lock = lock};
	struct link_step step;
	(void)link_begin(&step, link->made);
	switch (finish(&run, &step)) {
	case LINK_HELD:
		/* We renamed a dead name in HELD, so the directory that we made is not needed. */
		if (run.overtook)
			unmake(lock);
		settle(link, &run);
		link->overtook = run.overtook;
		link->lost = link->made = false;
		return 0;
	case LINK_BUSY:
		if (!link->swept)
			link_sweep(lock->file.path, link->name, SWEEP_OLD);
		link->swept = true;
		return EAGAIN;
	case LINK_LOST:
		(void)leave(&run);
		delist(link);
		return EAGAIN;
	default: delist(link); return run.number ? run.number : EIO;
	}
}

static void give_up(struct lock *lock)
{
	unmake(lock);
	delist(&lock->link);
}

static bool release(struct lock *lock)
{
	struct link_state *link = &lock->link;
	struct run run = {.lock = lock};
	if (link->overtook) {
		abandon(lock);
	} else if (leave(&run) != LINK_YES && !link->lost) {
		link->lost = true;
		link->why = run.number;
	}
	if (link->sweep)
		link_sweep(lock->file.path, "", SWEEP_OLD);
	link->sweep = link->overtook = false;
	delist(link);
	return !link->lost;
}

static bool is_fresh(const struct lock *lock)
{
	return clock_boot() - lock->link.since < lock->file.takeover / 4;
}

static bool confirm(struct lock *lock, bool ask)
{
	struct link_state *link = &lock->link;
	struct run run = {.lock = lock};
	struct link_step step;
	if (link->lost || (is_fresh(lock) && !ask))
		return !link->lost;
	(void)link_begin_renewal(&step);
	link->lost = finish(&run, &step) != LINK_HELD;
	link->why = run.number;
	if (!link->lost)
		settle(link, &run);
	return !link->lost;
}

static enum status explain_busy(const struct lock *lock, struct error *err)
{
	struct process_identity who;
	const struct link_state *link = &lock->link;
	if (!*link->holder)
		return error_set(err, STATUS_TEMPORARY,
			"it is busy: other processes keep taking the lock; try again");
	if (!link_name_parse(link->holder, &who))
		return error_set(err, STATUS_TEMPORARY,
			"it is busy: %s.held contains \"%s\", which is not a lock of this "
			"version, unchanged for %lld s; after %lld s it is removed: try again",
			lock->file.path, link->holder, (long long)(link->silent / 1000),
			(long long)(lock->file.takeover / 1000));
	if (process_check(&who) == PROCESS_ALIVE)
		return error_set(err, STATUS_TEMPORARY,
			"it is busy: process %d of this machine holds %s.held; try again, or see whether "
			"that process is stopped",
			(int)who.pid, lock->file.path);
	return error_set(err, STATUS_TEMPORARY,
		"it is busy: process %d on %s holds %s.held, unchanged for %lld s; after %lld s it is "
		"taken over: try again",
		(int)who.pid, who.host, lock->file.path, (long long)(link->silent / 1000),
		(long long)(lock->file.takeover / 1000));
}

static enum status explain(const struct lock *lock, int number, struct error *err)
{
	struct stat st;
	char path[PATH_MAX];
	if (number == EAGAIN)
		return explain_busy(lock, err);
	held_path(path, lock, "");
	if (number == ENOTDIR && lstat(path, &st) == 0 && !S_ISDIR(st.st_mode))
		return error_set(err, STATUS_DAMAGED,
			"%s is not a directory, and not made by us: not used; delete it", path);
	if (number == EISDIR)
		return error_set(err, STATUS_DAMAGED,
			"in %s is \"%s\", a directory not made by us: not used; delete it", path,
			lock->link.holder);
	return lockfile_failed(err, "lock", &lock->file, number);
}

const struct lock_kind lock_link = {
	.try = try_once,
	.give_up = give_up,
	.release = release,
	.confirm = confirm,
	.explain = explain,
	.close = clear_held,
};
