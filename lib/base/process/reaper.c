/* SPDX-License-Identifier: MIT */
#include "base/process/reaper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/parse.h"
#include "base/process/process.h"
#include "base/xalloc.h"

#define REAPER_NAME "preempt-guard"
#define SWEEPS	    100
#define SWEEP_TIME  5000 /* ms */

/*
 * A message to the reaper: add or forget a process group or a directory. It is sent as one packet
 * that ends with the path. Forgetting the empty path means that no marked process is left: the
 * reaper need not look for one in all of /proc.
 */
struct message {
	bool forget;
	pid_t group;	     /* 0: path */
	char path[PATH_MAX]; /* a directory */
};

/* ---- In the reaper ---- */

/* Return the entry of wanted's group or path, or a forgotten or new one; NULL: out of memory. */
static struct message *find(struct message **list, size_t *count, const struct message *wanted)
{
	struct message *vacant = NULL;
	for (size_t i = 0; i < *count; i++) {
		if ((*list)[i].group == wanted->group && !strcmp((*list)[i].path, wanted->path))
			return &(*list)[i];
		if ((*list)[i].forget)
			vacant = &(*list)[i];
	}
	if (vacant)
		return vacant;
	struct message *grown = realloc(*list, (*count + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	*list = grown;
	return &grown[(*count)++];
}

/* True for the reaper of a nested agent: it has inherited our mark, but ends by itself. */
static bool is_reaper(pid_t pid)
{
	char path[32];
	struct text name = {0};
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	bool same = file_read_whole(path, 64, &name, NULL) == STATUS_OK &&
		    !strcmp(text_string(&name), REAPER_NAME "\n");
	text_release(&name);
	return same;
}

/* Send KILL to every process that has the mark. True: no process has it or may have it. */
static bool sweep_once(const char *mark)
{
	bool none = true;
	DIR *proc = opendir("/proc");
	for (struct dirent *entry; proc && (entry = readdir(proc));) {
		uint64_t pid;
		if (!parse_decimal(entry->d_name, &pid))
			continue;
		enum status has = process_has_variable((pid_t)pid, mark);
		if (has == STATUS_TEMPORARY || (has == STATUS_OK && !is_reaper((pid_t)pid) &&
						       kill((pid_t)pid, SIGKILL) == 0))
			none = false;
	}
	if (proc)
		closedir(proc);
	return none;
}

/*
 * Each sweep finds the processes that were forked, or were changing their program, during the sweep
 * before it. Give up after SWEEPS and SWEEP_TIME, whichever is later.
 */
static void sweep(const char *mark)
{
	int64_t end = clock_after(SWEEP_TIME);
	for (int i = 1; !sweep_once(mark) && (i < SWEEPS || clock_now() < end); i++)
		clock_sleep_until(clock_after(1));
}

static void watch_over(const char *mark)
{
	struct message message, *list = NULL;
	size_t count = 0;
	bool nothing_left = false;
	ssize_t n;
	while ((n = read(0, &message, sizeof(message))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			break;
		nothing_left = message.forget && !message.group && !*message.path;
		struct message *known = nothing_left ? NULL : find(&list, &count, &message);
		if (known)
			*known = message;
	}
	for (size_t i = 0; i < count; i++)
		if (list[i].group && !list[i].forget)
			kill(-list[i].group, SIGKILL);
	if (!nothing_left)
		sweep(mark);
	for (size_t i = 0; i < count; i++)
		if (!list[i].group && !list[i].forget)
			(void)file_remove_tree(list[i].path, NULL);
	_exit(0);
}

/* ---- In the process that started it ---- */

/* All messages to the reaper, to be repeated to its replacement. */
struct reaper_told {
	pthread_mutex_t lock;
	struct message *list;
	size_t count;
};

/* In the child: become the reaper, without descriptors and locks of ours. */
static void become_reaper(int end, const char *value)
{
	char mark[sizeof(((struct reaper *)0)->mark) + sizeof(REAPER_MARK)];
	sigset_t all;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setsid();
	process_rename(REAPER_NAME);
	dup2(end, 0);
	close_range(1, ~0u, 0);
	(void)!chdir("/");
	snprintf(mark, sizeof(mark), REAPER_MARK "=%s", value);
	watch_over(mark);
}

static enum status start(struct reaper *reaper, struct error *err)
{
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return error_set(
			err, STATUS_TEMPORARY, "cannot make a socket: %s", strerror(errno));
	pid_t pid = fork();
	if (pid == 0)
		become_reaper(ends[0], reaper->mark);
	int number = errno;
	close(ends[0]);
	if (pid < 0) {
		close(ends[1]);
		return error_set(
			err, STATUS_TEMPORARY, "cannot start preempt-guard: %s", strerror(number));
	}
	reaper->pid = pid;
	reaper->socket = ends[1];
	return STATUS_OK;
}

enum status reaper_start(struct reaper *reaper, struct error *err)
{
	struct process_identity self = {0};
	struct reaper made = {0};
	enum status status = process_identify(0, &self, err);
	if (status != STATUS_OK)
		return status;
	snprintf(made.mark, sizeof(made.mark), "%d.%llu", (int)self.pid,
		(unsigned long long)self.start);
	made.told = xcalloc(1, sizeof(*made.told));
	pthread_mutex_init(&made.told->lock, NULL);
	status = start(&made, err);
	if (status == STATUS_OK)
		*reaper = made;
	else
		free(made.told);
	return status;
}

/* If the reaper was killed, sending fails, but its replacement will get all messages. */
static void send_message(const struct reaper *reaper, const struct message *message)
{
	size_t length = offsetof(struct message, path) + strlen(message->path) + 1;
	if (reaper->pid)
		(void)send(reaper->socket, message, length, MSG_NOSIGNAL);
}

static void tell(const struct reaper *reaper, pid_t group, const char *path, bool forget)
{
	struct message message = {.forget = forget, .group = group};
	size_t length = path ? strlen(path) : 0;
	if (length >= sizeof(message.path) || !reaper->told)
		return;
	if (length)
		memcpy(message.path, path, length);
	pthread_mutex_lock(&reaper->told->lock);
	struct message *known = find(&reaper->told->list, &reaper->told->count, &message);
	if (known)
		*known = message;
	send_message(reaper, &message);
	pthread_mutex_unlock(&reaper->told->lock);
}

void reaper_add(const struct reaper *reaper, pid_t group)
{
	tell(reaper, group, NULL, false);
}

void reaper_remove(const struct reaper *reaper, pid_t group)
{
	tell(reaper, group, NULL, true);
}

char *reaper_make_directory(const struct reaper *reaper, const char *parent, const char *name)
{
	uint64_t random;
	char *real = realpath(parent, NULL);
	if (!real || getrandom(&random, sizeof(random), 0) != sizeof(random)) {
		free(real);
		return NULL;
	}
	char *path = xprintf("%s/%s%016" PRIx64, real, name, random);
	free(real);
	if (reaper)
		tell(reaper, 0, path, false);
	if (mkdir(path, 0700) == 0)
		return path;
	int number = errno;
	if (reaper)
		tell(reaper, 0, path, true);
	free(path);
	errno = number;
	return NULL;
}

bool reaper_keep(struct reaper *reaper)
{
	if (!reaper->told || (reaper->pid && waitpid(reaper->pid, NULL, WNOHANG) == 0))
		return false;
	pthread_mutex_lock(&reaper->told->lock);
	if (reaper->pid)
		close(reaper->socket);
	reaper->pid = 0;
	bool made = start(reaper, NULL) == STATUS_OK;
	for (size_t i = 0; made && i < reaper->told->count; i++)
		if (!reaper->told->list[i].forget)
			send_message(reaper, &reaper->told->list[i]);
	pthread_mutex_unlock(&reaper->told->lock);
	return made;
}

static bool is_subreaper(void)
{
	int is = 0;
	return getpid() == 1 || (prctl(PR_GET_CHILD_SUBREAPER, &is) == 0 && is);
}

/* True if the reaper is our only child, and orphans become our children: no command is left. */
static bool is_only_child(pid_t reaper)
{
	uint64_t child;
	char path[64];
	DIR *threads = is_subreaper() ? opendir("/proc/self/task") : NULL;
	bool only = threads;
	for (struct dirent *entry; only && (entry = readdir(threads));) {
		struct text children = {0};
		if (*entry->d_name == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%.20s/children", entry->d_name);
		only = file_read_whole(path, 65536, &children, NULL) == STATUS_OK;
		char *rest = children.data;
		for (char *word; only && (word = strsep(&rest, " "));)
			only = !*word || (parse_decimal(word, &child) && (pid_t)child == reaper);
		text_release(&children);
	}
	if (threads)
		closedir(threads);
	return only;
}

void reaper_stop(struct reaper *reaper)
{
	(void)reaper_keep(reaper);
	if (reaper->pid > 0) {
		if (is_only_child(reaper->pid))
			send_message(reaper, &(struct message){.forget = true});
		close(reaper->socket);
		kill(reaper->pid, SIGCONT); /* it may have been stopped together with us */
		waitpid(reaper->pid, NULL, 0);
	}
	if (reaper->told) {
		pthread_mutex_destroy(&reaper->told->lock);
		free(reaper->told->list);
		free(reaper->told);
	}
	*reaper = (struct reaper){0};
}
