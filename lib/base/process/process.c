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

/* Read from /proc about a process (0: ourselves). False: it cannot be read. */
static bool read_stat(pid_t pid, char *state, uint64_t *start, long *threads)
{
	char path[64] = "/proc/self/stat";
	struct text text = {0};
	if (pid)
		snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	bool found = file_read_whole(path, 4096, &text, NULL) == STATUS_OK;
	/* The name in field 2 may hold blanks and parentheses: count from its last one. */
	char *rest = found ? strrchr(text_string(&text), ')') : NULL;
	unsigned long long ticks = 0;
	found = rest && sscanf(rest + 1,
				" %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d "
				"%*d %ld %*d %llu",
				state, threads, &ticks) == 3;
	*start = ticks;
	text_release(&text);
	return found;
}

enum status process_identify(pid_t pid, struct process_identity *identity, struct error *err)
{
	struct process_identity who = {.pid = pid ? pid : getpid()};
	struct text boot = {0};
	struct stat st;
	char state;
	long threads;
	if (!read_stat(pid, &state, &who.start, &threads))
		return error_set(err, STATUS_NO, "there is no process %d", (int)pid);
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

/* Whether /proc shows the processes of our own namespace: a container may have that of another. */
static bool proc_is_ours(void)
{
	char target[32];
	ssize_t n = readlink("/proc/self", target, sizeof(target) - 1);
	return n > 0 && (target[n] = '\0', atoi(target) == (int)getpid());
}

enum process_state process_check(const struct process_identity *identity)
{
	struct process_identity self;
	char state;
	uint64_t start;
	long threads;
	if (!identity->pid && !*identity->boot)
		return PROCESS_ELSEWHERE; /* nothing is known of it */
	if (process_identify(0, &self, NULL) != STATUS_OK || strcmp(self.boot, identity->boot) ||
		self.pid_namespace != identity->pid_namespace)
		return PROCESS_ELSEWHERE;
	/* Ask the kernel first: /proc may hide the processes of other users (hidepid). */
	if (identity->pid <= 0 || (kill(identity->pid, 0) < 0 && errno == ESRCH))
		return PROCESS_GONE;
	if (!proc_is_ours() || !read_stat(identity->pid, &state, &start, &threads))
		return PROCESS_ALIVE;
	/* A start time counts by the clock of a time namespace. */
	if (start != identity->start &&
		(!identity->time_namespace || identity->time_namespace == self.time_namespace))
		return PROCESS_GONE;
	/* A main thread that ended is a zombie while other threads of its process live on. */
	return (state == 'Z' && threads <= 1) || state == 'X' ? PROCESS_GONE : PROCESS_ALIVE;
}

/* Find our arguments in memory, which ps and pkill -f read: fields 48 and 49 of /proc/self/stat. */
static bool find_arguments(char **begin, size_t *size)
{
	struct text text = {0};
	unsigned long from = 0, to = 0;
	bool read = file_read_whole("/proc/self/stat", 4096, &text, NULL) == STATUS_OK;
	const char *at = read ? strrchr(text_string(&text), ')') : NULL;
	for (int field = 2; at && field < 48; field++)
		at = strchr(at + 1, ' ');
	bool found = at && sscanf(at, " %lu %lu", &from, &to) == 2 && from && to > from;
	text_release(&text);
	*begin = (char *)(uintptr_t)from;
	*size = to - from;
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
