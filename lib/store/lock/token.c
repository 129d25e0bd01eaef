/* SPDX-License-Identifier: MIT */
#include "store/lock/token.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/xalloc.h"
#include "store/access.h"
#include "store/lock/lock.h"
#include "store/lock/token_step.h"

#define NOBODY "0000000000000000" /* the machine of a token that was made for a lost one */
/* While it is renamed, a list may show both names or none: how many times it is listed again. */
#define LISTS 20

_Atomic int64_t token_patience = 5000;

/* ---- Names ---- */

void token_draw(char nonce[17])
{
	uint64_t random;
	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		abort(); /* the kernel always has some */
	snprintf(nonce, 17, "%016llx", (unsigned long long)random);
}

bool token_read(const char *name, struct token *token)
{
	int end = 0;
	return sscanf(name, "%c-%16[0-9a-f]-%16[0-9a-f]-%10[0-9]-%16[0-9a-fn]-%32[^/]%n",
		       &token->state, token->nonce, token->machine, token->pid, token->file,
		       token->host, &end) == 6 &&
	       end == TOKEN_NAME - 1 && !name[end] && strchr("fhm", token->state);
}

static void write_name(
	char name[TOKEN_NAME], char state, const char *machine, pid_t pid, const char *file)
{
	char nonce[17], host[33] = "";
	(void)gethostname(host, sizeof(host) - 1);
	for (size_t i = 0; i < sizeof(host) - 1; i++)
		if (!host[i] || !strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					"0123456789.",
					host[i]))
			host[i] = '_';
	token_draw(nonce);
	snprintf(name, TOKEN_NAME, "%c-%s-%s-%010d-%s-%s", state, nonce, machine, (int)pid, file,
		host);
}

/* ---- The directory ---- */

static DIR *open_directory(const struct lock *lock)
{
	int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int descriptor = cache_open_at(lock->cache, AT_FDCWD, lock->path, flags);
	if (descriptor < 0 && errno == ESTALE)
		descriptor = cache_open_at(lock->cache, AT_FDCWD, lock->path, flags);
	DIR *entries = descriptor < 0 ? NULL : fdopendir(descriptor);
	if (descriptor >= 0 && !entries)
		close(descriptor);
	return entries;
}

/* Call see for each name in the directory. Returns 0, or an errno: that may not have been all. */
static int list_names(
	const struct lock *lock, void (*see)(void *context, const char *name), void *context)
{
	DIR *entries = open_directory(lock);
	if (!entries)
		return errno;
	for (struct dirent *entry; errno = 0, (entry = readdir(entries));)
		see(context, entry->d_name);
	int number = errno;
	closedir(entries);
	return number;
}

struct found {
	int count;
	char *name;
};

static void see_token(void *context, const char *name)
{
	struct found *found = context;
	struct token token;
	if (!token_read(name, &token))
		return;
	found->count++;
	strcpy(found->name, name);
}

int token_find(const struct lock *lock, char name[TOKEN_NAME])
{
	struct found found = {.name = name};
	for (int i = 0; i < LISTS && found.count != 1; i++) {
		found.count = 0;
		int number = list_names(lock, see_token, &found);
		if (number)
			return number;
	}
	return found.count > 1 ? ENOTUNIQ : found.count ? 0 : ENOENT;
}

/* Make and remove a file: a client then asks its server for names anew. Returns 0, or an errno. */
static int probe(const struct lock *lock)
{
	char *path = xprintf("%s/probe-XXXXXX", lock->path);
	int descriptor = mkostemp(path, O_CLOEXEC), number = descriptor < 0 ? errno : 0;
	if (descriptor >= 0)
		close(descriptor);
	if (!number && unlink(path) < 0)
		number = errno;
	free(path);
	return number;
}

int token_make(struct lock *lock, const char *file)
{
	char name[TOKEN_NAME];
	char *directory = xprintf("%s.new-XXXXXX", lock->path), *token = NULL;
	bool lost = strcmp(file, TOKEN_NEW);
	int descriptor = -1;
	if (!mkdtemp(directory)) {
		int number = errno;
		free(directory);
		return number;
	}
	write_name(name, lost ? 'h' : 'f', NOBODY, 0, file);
	token = xprintf("%s/%s", directory, name);
	int number = lock->shared_group && access_share_directory(directory) < 0 ? errno : 0;
	if (!number) {
		descriptor = open(token, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		number = descriptor < 0 ? errno : 0;
	}
	if (!number && lock->shared_group && fchmod(descriptor, 0660) < 0)
		number = errno;
	if (descriptor >= 0)
		close(descriptor);
	/* Of all who try, one succeeds: a directory with a token in it is not replaced. */
	if (!number && rename(directory, lock->path) < 0)
		number = errno;
	if (number) {
		(void)unlink(token);
		(void)rmdir(directory);
	}
	free(token);
	free(directory);
	/* sshfs says EPERM for each refusal. */
	struct stat st;
	bool there = number && stat(lock->path, &st) == 0;
	return number == ENOTEMPTY || number == EEXIST || (there && number == EPERM) ? 0 : number;
}

/* ---- The steps ---- */

struct run {
	struct lock *lock;
	struct token_step step;
	const char *file; /* for TOKEN_SETTLE */
	char from[TOKEN_NAME], to[TOKEN_NAME];
	int number; /* errno of the last error */
};

static enum token_answer failed(struct run *run, int number)
{
	run->number = number;
	return TOKEN_ERROR;
}

/* Whether its name has not changed for too long, as far as we have looked. */
static enum token_answer look_for_changes(struct run *run)
{
	struct lock *lock = run->lock;
	uint64_t what = XXH64(run->from, strlen(run->from), 0);
	if (!machine_look_is_due(&lock->machine, what, token_patience))
		return TOKEN_IS_ALIVE;
	int number = probe(lock);
	if (number)
		return failed(run, number);
	return machine_looked(&lock->machine, what) ? TOKEN_IS_SILENT : TOKEN_IS_ALIVE;
}

static enum token_answer list(struct run *run)
{
	struct token token = {0};
	struct lock *lock = run->lock;
	int number = token_find(lock, run->from);
	if (number == ENOENT)
		return TOKEN_IS_MISSING;
	if (number || !token_read(run->from, &token))
		return failed(run, number ? number : EIO);
	/* We have the lock of this machine: no process here has the token. */
	bool ours = !strcmp(token.machine, lock->machine.name);
	if (token.state == 'f' || (ours && token.state == 'h'))
		return TOKEN_IS_FREE;
	lock->holder = token;
	return ours ? TOKEN_IS_SILENT : look_for_changes(run);
}

struct both {
	const struct run *run;
	bool old, new;
};

static void see_both(void *context, const char *name)
{
	struct both *both = context;
	both->new |= !strcmp(name, both->run->to);
	both->old |= !strcmp(name, both->run->from);
}

static enum token_answer look(struct run *run)
{
	struct both both = {.run = run};
	for (int i = 0; i < 2 && !both.new; i++) {
		both.old = false;
		int number = list_names(run->lock, see_both, &both);
		if (number)
			return failed(run, number);
		/* A client may list what is no longer there. */
		if (!both.old || run->number != ENOENT || probe(run->lock) != 0)
			break;
	}
	return both.new ? TOKEN_YES : both.old ? TOKEN_IS_OLD : TOKEN_IS_OTHER;
}

/* Choose both names of a rename; they stay the same when it is tried again. */
static void choose_names(struct run *run, enum token_action action)
{
	static const char states[] = {
		[TOKEN_TAKE] = 'h', [TOKEN_MOVE] = 'm', [TOKEN_SETTLE] = 'h', [TOKEN_GIVE] = 'f'};
	struct token token = {0};
	struct lock *lock = run->lock;
	if (action > TOKEN_MOVE)
		strcpy(run->from, lock->token);
	if (!token_read(run->from, &token))
		abort(); /* it is a token */
	char state = action == TOKEN_KEEP ? token.state : states[action];
	/* A new database that was made meanwhile is no longer new (lock_note_made). */
	const char *file = action == TOKEN_SETTLE ? run->file
			   : action > TOKEN_MOVE  ? lock->file
						  : token.file;
	write_name(run->to, state, lock->machine.name, getpid(), file);
}

static enum token_answer move(struct run *run, enum token_action action)
{
	const char *directory = run->lock->path;
	char from[PATH_MAX], to[PATH_MAX];
	if (!*run->to)
		choose_names(run, action);
	if (snprintf(from, PATH_MAX, "%s/%s", directory, run->from) >= PATH_MAX ||
		snprintf(to, PATH_MAX, "%s/%s", directory, run->to) >= PATH_MAX)
		return failed(run, ENAMETOOLONG);
	int64_t asked = clock_now();
	if (rename(from, to) < 0)
		return failed(run, errno);
	run->lock->renamed = asked;
	return TOKEN_YES;
}

static enum token_answer carry_out(struct run *run)
{
	switch ((enum token_action)run->step.action) {
	case TOKEN_LIST: return list(run);
	case TOKEN_LOOK: return look(run);
	case TOKEN_SYNC: {
		int descriptor = open(run->lock->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		int number = descriptor < 0 || fsync(descriptor) < 0 ? errno : 0;
		if (descriptor >= 0)
			close(descriptor);
		/* Some filesystems cannot sync a directory, and need not. */
		return !number || number == EINVAL ? TOKEN_YES : failed(run, number);
	}
	default: return move(run, (enum token_action)run->step.action);
	}
}

/* Carry the steps out. Returns 0, EAGAIN, ENOENT, or another errno. */
static int finish(struct run *run, enum token_action first)
{
	struct token token;
	struct lock *lock = run->lock;
	token_begin(&run->step, first);
	while (run->step.action < TOKEN_DONE)
		(void)token_next(&run->step, carry_out(run));
	bool done = run->step.action == TOKEN_DONE;
	strcpy(lock->token, done && first != TOKEN_GIVE ? run->to : "");
	if (*lock->token && token_read(lock->token, &token)) {
		strcpy(lock->file, token.file);
		lock->moving = token.state == 'm';
	}
	switch ((enum token_action)run->step.action) {
	case TOKEN_DONE: return 0;
	case TOKEN_BUSY: return EAGAIN;
	case TOKEN_ABSENT: return ENOENT;
	default: return run->number && run->number != ENOENT ? run->number : EAGAIN;
	}
}

int token_take(struct lock *lock)
{
	struct run run = {.lock = lock};
	return finish(&run, TOKEN_LIST);
}

int token_settle(struct lock *lock, const char *file)
{
	struct run run = {.lock = lock, .file = file};
	return finish(&run, TOKEN_SETTLE);
}

int token_keep(struct lock *lock)
{
	struct run run = {.lock = lock};
	return finish(&run, TOKEN_KEEP);
}

int token_give(struct lock *lock)
{
	struct run run = {.lock = lock};
	return finish(&run, TOKEN_GIVE);
}
