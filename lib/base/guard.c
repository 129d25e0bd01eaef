/* SPDX-License-Identifier: MIT */
#include "base/guard.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/parse.h"
#include "base/process.h"

#define GUARD_NAME  "preempt-guard"
#define PATH_LENGTH 240
#define SWEEPS	    100 /* a process that forks while we look is found by the next look */

/* What the guard is told; whole in one write to a pipe. */
struct message {
	bool forget;
	pid_t group;		/* 0: path */
	char path[PATH_LENGTH]; /* a directory */
};

/* ---- In the guard ---- */

/* The same message again, or room for a new one; NULL: no room. */
static struct message *find(struct message **list, size_t *count, const struct message *wanted)
{
	for (size_t i = 0; i < *count; i++)
		if ((*list)[i].group == wanted->group && !strcmp((*list)[i].path, wanted->path))
			return &(*list)[i];
	struct message *grown = realloc(*list, (*count + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	*list = grown;
	return &grown[(*count)++];
}

static bool carries(pid_t pid, const char *mark)
{
	char path[32];
	struct text environment = {0};
	size_t length = strlen(mark);
	bool found = false;
	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	if (file_read_whole(path, 4 << 20, &environment, NULL) == STATUS_OK)
		for (size_t at = 0; at < environment.length && !found;
			at += strlen(environment.data + at) + 1)
			found = !strncmp(environment.data + at, mark, length + 1);
	text_release(&environment);
	return found;
}

/* A guard sees to its own; it inherits the mark where an agent runs below another. */
static bool is_guard(pid_t pid)
{
	char path[32];
	struct text name = {0};
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	bool same = file_read_whole(path, 64, &name, NULL) == STATUS_OK &&
		    !strcmp(text_string(&name), GUARD_NAME "\n");
	text_release(&name);
	return same;
}

/* KILL to every process that has the mark; false if there was none. */
static bool sweep_once(const char *mark)
{
	bool any = false;
	DIR *proc = opendir("/proc");
	for (struct dirent *entry; proc && (entry = readdir(proc));) {
		uint64_t pid;
		if (parse_decimal(entry->d_name, &pid) && carries((pid_t)pid, mark) &&
			!is_guard((pid_t)pid) && kill((pid_t)pid, SIGKILL) == 0)
			any = true;
	}
	if (proc)
		closedir(proc);
	return any;
}

static void sweep(const char *mark)
{
	for (int i = 0; i < SWEEPS && sweep_once(mark); i++)
		usleep(1000);
}

static void watch_over(const char *mark)
{
	struct message message, *list = NULL;
	size_t count = 0;
	ssize_t n;
	while ((n = read(0, &message, sizeof(message))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n != sizeof(message))
			break;
		struct message *known = find(&list, &count, &message);
		if (known)
			*known = message;
	}
	for (size_t i = 0; i < count; i++)
		if (list[i].group && !list[i].forget)
			kill(-list[i].group, SIGKILL);
	sweep(mark);
	for (size_t i = 0; i < count; i++)
		if (!list[i].group && !list[i].forget)
			(void)file_remove_tree(list[i].path, NULL);
	_exit(0);
}

/* ---- Outside ---- */

enum status guard_start(struct guard *guard, struct error *err)
{
	int ends[2];
	struct process_identity self = {0};
	struct guard made = {0};
	enum status status = process_identify(0, &self, err);
	if (status != STATUS_OK)
		return status;
	snprintf(made.mark, sizeof(made.mark), "%d.%llu", (int)self.pid,
		(unsigned long long)self.start);
	if (pipe2(ends, O_CLOEXEC) < 0)
		return error_set(err, STATUS_TEMPORARY, "cannot make a pipe: %s", strerror(errno));
	made.pipe = ends[1];
	made.pid = fork();
	if (made.pid < 0) {
		close(ends[0]);
		close(ends[1]);
		return error_set(
			err, STATUS_TEMPORARY, "cannot start a guard: %s", strerror(errno));
	}
	if (made.pid == 0) {
		/* Out of reach of whoever signals our group or session; holding nothing of ours. */
		char mark[sizeof(made.mark) + sizeof(GUARD_MARK)];
		sigset_t all;
		sigfillset(&all);
		sigprocmask(SIG_SETMASK, &all, NULL);
		setsid();
		prctl(PR_SET_NAME, GUARD_NAME);
		dup2(ends[0], 0);
		close_range(1, ~0u, 0);
		(void)!chdir("/");
		snprintf(mark, sizeof(mark), GUARD_MARK "=%s", made.mark);
		watch_over(mark);
	}
	close(ends[0]);
	*guard = made;
	return STATUS_OK;
}

static void tell(const struct guard *guard, pid_t group, const char *path, bool forget)
{
	struct message message = {.forget = forget, .group = group};
	size_t length = path ? strlen(path) : 0;
	if (length >= sizeof(message.path))
		return;
	if (length)
		memcpy(message.path, path, length);
	(void)file_write_all(guard->pipe, &message, sizeof(message));
}

void guard_add(const struct guard *guard, pid_t group)
{
	tell(guard, group, NULL, false);
}

void guard_remove(const struct guard *guard, pid_t group)
{
	tell(guard, group, NULL, true);
}

void guard_add_directory(const struct guard *guard, const char *path)
{
	tell(guard, 0, path, false);
}

void guard_stop(struct guard *guard)
{
	if (guard->pid <= 0)
		return;
	close(guard->pipe);
	kill(guard->pid, SIGCONT); /* it may have been stopped with all of us */
	waitpid(guard->pid, NULL, 0);
	*guard = (struct guard){0};
}
