/* SPDX-License-Identifier: MIT */
#include "base/process/process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

#define DEPTH_MAX	100	  /* of ancestors */
#define ENVIRONMENT_MAX (8 << 20) /* bytes; the kernel allows 6 MiB */

/* Fields of /proc/PID/stat, numbered as in proc(5). */
enum {
	STATE = 3,
	PARENT,
	THREADS = 20,
	START = 22,
	MEMORY,
	DATA_END = 46,
	ARGUMENTS = 48,
	ARGUMENTS_END,
	ENVIRONMENT,
	ENVIRONMENT_END,
	FIELDS
};

/* Read the fields of a process (0: ours); missing ones become 0. False: START is missing, too. */
static bool read_stat(pid_t pid, uint64_t fields[FIELDS])
{
	char path[64] = "/proc/self/stat";
	struct text text = {0};
	if (pid)
		snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	bool found = file_read_whole(path, 4096, &text, NULL) == STATUS_OK;
	/* The name in field 2 may hold blanks and parentheses: count from the last parenthesis. */
	char *rest = found ? strrchr(text_string(&text), ')') : NULL;
	memset(fields, 0, FIELDS * sizeof(*fields));
	int field = 2;
	for (char *word; rest && field < FIELDS && (word = strsep(&rest, " ")); field++)
		fields[field] = field == STATE ? (unsigned char)*word : strtoull(word, NULL, 10);
	text_release(&text);
	return field > START;
}

enum status process_identify(pid_t pid, struct process_identity *identity, struct error *err)
{
	struct process_identity who = {.pid = pid ? pid : getpid()};
	struct text boot = {0};
	struct stat st;
	uint64_t fields[FIELDS];
	if (!read_stat(pid, fields))
		return error_set(err, STATUS_NO, "there is no process %d", (int)pid);
	who.start = fields[START];
	if (gethostname(who.host, sizeof(who.host) - 1) < 0)
		strcpy(who.host, "unknown");
	if (file_read_whole("/proc/sys/kernel/random/boot_id", 128, &boot, NULL) == STATUS_OK)
		snprintf(who.boot, sizeof(who.boot), "%.36s", text_string(&boot));
	who.boot[strcspn(who.boot, "\n")] = '\0';
	text_release(&boot);
	if (stat("/proc/self/ns/pid", &st) == 0)
		who.pid_namespace = st.st_ino;
	if (stat("/proc/self/ns/time", &st) == 0)
		who.time_namespace = st.st_ino;
	*identity = who;
	return STATUS_OK;
}

/* True if /proc shows our own PID namespace. In a container it may show another one. */
static bool proc_is_ours(void)
{
	char target[32];
	ssize_t n = readlink("/proc/self", target, sizeof(target) - 1);
	return n > 0 && (target[n] = '\0', atoi(target) == (int)getpid());
}

enum process_state process_check(const struct process_identity *identity)
{
	struct process_identity self;
	uint64_t fields[FIELDS];
	if (!identity->pid && !*identity->boot)
		return PROCESS_ELSEWHERE; /* nothing is known of it */
	if (process_identify(0, &self, NULL) != STATUS_OK || strcmp(self.boot, identity->boot) ||
		self.pid_namespace != identity->pid_namespace)
		return PROCESS_ELSEWHERE;
	if (identity->pid <= 0)
		return PROCESS_GONE;
	/*
	 * Ask the kernel, too: /proc may hide the processes of other users (hidepid). Ask it last:
	 * what is reaped while /proc is read is gone, not hidden.
	 */
	bool shown = proc_is_ours() && read_stat(identity->pid, fields);
	if (kill(identity->pid, 0) < 0 && errno == ESRCH)
		return PROCESS_GONE;
	if (!shown)
		return PROCESS_ALIVE;
	/* Start times can be compared only within one time namespace. */
	if (fields[START] != identity->start &&
		(!identity->time_namespace || identity->time_namespace == self.time_namespace))
		return PROCESS_GONE;
	/* A main thread that ended is a zombie while other threads of its process live on. */
	return (fields[STATE] == 'Z' && fields[THREADS] <= 1) || fields[STATE] == 'X'
		       ? PROCESS_GONE
		       : PROCESS_ALIVE;
}

pid_t process_parent(pid_t pid)
{
	uint64_t fields[FIELDS];
	return read_stat(pid, fields) ? (pid_t)fields[PARENT] : 0;
}

pid_t process_find_ancestor(
	pid_t of, bool (*is_it)(pid_t pid, const void *context), const void *context)
{
	pid_t at = process_parent(of);
	for (int depth = 0; depth < DEPTH_MAX && at > 0; depth++) {
		if (is_it(at, context))
			return at;
		at = process_parent(at);
	}
	return 0;
}

static bool is_process(pid_t pid, const void *wanted)
{
	return pid == *(const pid_t *)wanted;
}

bool process_is_ancestor(pid_t pid, pid_t of)
{
	return !proc_is_ours() || process_find_ancestor(of, is_process, &pid) > 0;
}

enum status process_has_variable(pid_t pid, const char *variable)
{
	char path[32];
	struct text environment = {0};
	uint64_t fields[FIELDS];
	bool found = false;
	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	bool read = file_read_whole(path, ENVIRONMENT_MAX, &environment, NULL) == STATUS_OK;
	bool empty = read && !environment.length;
	for (size_t at = 0; at < environment.length && !found;
		at += strlen(environment.data + at) + 1)
		found = !strcmp(environment.data + at, variable);
	text_release(&environment);
	if (!empty)
		return found ? STATUS_OK : STATUS_NO;
	/* The environment of a zombie is empty, because it has no memory. So is that of a process
	 * within execve, which sets DATA_END last. If it is not empty now, read it again. */
	bool changes = read_stat(pid, fields) && fields[MEMORY] &&
		       (!fields[DATA_END] || fields[ENVIRONMENT_END] != fields[ENVIRONMENT]);
	return changes ? STATUS_TEMPORARY : STATUS_NO;
}

/* Find our arguments in our memory, where ps and pkill -f read them. */
static bool find_arguments(char **begin, size_t *size)
{
	uint64_t fields[FIELDS];
	bool found = read_stat(0, fields) && fields[ARGUMENTS] &&
		     fields[ARGUMENTS_END] > fields[ARGUMENTS];
	*begin = (char *)(uintptr_t)fields[ARGUMENTS];
	*size = fields[ARGUMENTS_END] - fields[ARGUMENTS];
	return found;
}

void process_rename(const char *name)
{
	char *arguments;
	size_t size, length = strlen(name);
	prctl(PR_SET_NAME, name);
	if (!find_arguments(&arguments, &size))
		return;
	for (size_t i = 0; i < size; i++)
		((volatile char *)arguments)[i] = i < length && i + 1 < size ? name[i] : '\0';
}

enum status process_open_signals(
	const int *numbers, size_t count, int *descriptor, struct error *err)
{
	sigset_t set;
	sigemptyset(&set);
	for (size_t i = 0; i < count; i++) {
		struct sigaction old;
		if (numbers[i] == SIGCHLD ||
			(sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN))
			sigaddset(&set, numbers[i]);
	}
	sigprocmask(SIG_BLOCK, &set, NULL);
	*descriptor = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return *descriptor >= 0 ? STATUS_OK
				: error_set(err, STATUS_TEMPORARY, "cannot receive signals: %s",
					  strerror(errno));
}
