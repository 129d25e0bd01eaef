/* SPDX-License-Identifier: MIT */
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

/* What /proc says of a process (0: ourselves); false if it does not. */
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
	if (process_identify(0, &self, NULL) != STATUS_OK || strcmp(self.boot, identity->boot) ||
		self.pid_namespace != identity->pid_namespace)
		return PROCESS_ELSEWHERE;
	/* The kernel's own answer; /proc may hide the processes of other users (hidepid). */
	if (identity->pid <= 0 || (kill(identity->pid, 0) < 0 && errno == ESRCH))
		return PROCESS_GONE;
	if (!proc_is_ours() || !read_stat(identity->pid, &state, &start, &threads))
		return PROCESS_ALIVE;
	/* Start times are told relative to the time namespace. */
	if (start != identity->start &&
		(!identity->time_namespace || identity->time_namespace == self.time_namespace))
		return PROCESS_GONE;
	/* A main thread that ended is a zombie while other threads of its process live on. */
	return (state == 'Z' && threads <= 1) || state == 'X' ? PROCESS_GONE : PROCESS_ALIVE;
}

/* What the child reports to its parent when it cannot start the command. */
struct refusal {
	int number;
	enum { REFUSED_COMMAND, REFUSED_DIRECTORY, REFUSED_INTERPRETER } what;
};

static void refuse(int report, struct refusal refusal)
{
	(void)file_write_all(report, &refusal, sizeof(refusal));
	_exit(STATUS_NOT_FOUND);
}

#define HIGH 500 /* above the descriptors that programs use */

/* A pipe to which nobody writes: nobody but this process has its writing end, as long as it lives.
 */
static int life[2] = {-1, -1};
static pthread_once_t life_made = PTHREAD_ONCE_INIT;
static void make_life(void)
{
	if (pipe2(life, O_CLOEXEC) < 0)
		life[0] = life[1] = -1;
}

/*
 * The kernel tells readers that want to know when the last writer is gone, by a signal of their
 * choice to a process group of their choice. The command keeps this descriptor, for as long as
 * anything of it runs and has not closed it; nothing has to run for it to work.
 */
static void die_with_writer(void)
{
	char path[40];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", life[0]);
	int reader = life[0] < 0 ? -1 : open(path, O_RDONLY | O_NONBLOCK);
	int high = reader < 0 ? -1 : fcntl(reader, F_DUPFD, HIGH);
	if (high >= 0)
		close(reader);
	else
		high = reader;
	if (high >= 0 && fcntl(high, F_SETOWN, -getpid()) == 0 &&
		fcntl(high, F_SETSIG, SIGKILL) == 0)
		(void)fcntl(high, F_SETFL, O_NONBLOCK | O_ASYNC);
}

static void become(const struct process_command *command, pid_t parent, int report)
{
	if (command->own_group)
		setpgid(0, 0);
	if (command->own_group && command->terminal > 0) /* TTOU is blocked */
		(void)tcsetpgrp(command->terminal, getpid());
	if (command->own_group && command->die_with_parent)
		die_with_writer();
	if (command->die_with_parent) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(128 + SIGKILL);
	}
	/* Handlers must not run here once signals are unblocked; what was ignored stays ignored. */
	for (int signal = 1; signal < SIGRTMIN; signal++) {
		struct sigaction action;
		if (sigaction(signal, NULL, &action) < 0)
			continue;
		if (sigismember(&command->ignored, signal) == 1)
			action.sa_handler = SIG_IGN;
		else if (action.sa_handler != SIG_IGN)
			action.sa_handler = SIG_DFL;
		action.sa_flags = 0;
		(void)sigaction(signal, &action, NULL);
	}
	if (command->standard_input > 0)
		dup2(command->standard_input, STDIN_FILENO);
	if (command->standard_output > 0)
		dup2(command->standard_output, STDOUT_FILENO);
	if (command->standard_error > 0)
		dup2(command->standard_error, STDERR_FILENO);
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (command->directory && chdir(command->directory) < 0)
		refuse(report, (struct refusal){errno, REFUSED_DIRECTORY});
	/* Not execvpe, which searches our own PATH. */
	if (command->environment)
		environ = (char **)(uintptr_t)command->environment;
	execvp(command->argv[0], command->argv);
	struct refusal refusal = {.number = errno};
	if (refusal.number == ENOENT && strchr(command->argv[0], '/') &&
		access(command->argv[0], F_OK) == 0)
		refusal.what = REFUSED_INTERPRETER;
	refuse(report, refusal);
}

/* Errors that the command does not cause and that may pass. */
static bool passes(int number)
{
	switch (number) {
	case EAGAIN:
	case ENOMEM:
	case EMFILE:
	case ENFILE:
	case EIO:
	case ESTALE:
	case ETIMEDOUT:
	case ETXTBSY: return true;
	default: return false;
	}
}

static enum status say_refusal(
	const struct process_command *command, struct refusal refusal, struct error *err)
{
	const char *why = strerror(refusal.number);
	bool later = passes(refusal.number);
	if (refusal.what == REFUSED_DIRECTORY)
		return error_set(err, later ? STATUS_TEMPORARY : STATUS_NO,
			"cannot run %s in %s: %s", command->argv[0], command->directory, why);
	if (refusal.what == REFUSED_INTERPRETER)
		return error_set(err, STATUS_CANNOT_RUN,
			"cannot run %s: the interpreter it names is not there", command->argv[0]);
	return error_set(err,
		later			   ? STATUS_TEMPORARY
		: refusal.number == ENOENT ? STATUS_NOT_FOUND
					   : STATUS_CANNOT_RUN,
		"cannot run %s: %s", command->argv[0], why);
}

enum status process_start(const struct process_command *command, pid_t *pid, struct error *err)
{
	int report[2];
	sigset_t all, old;
	pid_t parent = getpid();
	pthread_once(&life_made, make_life);
	if (pipe2(report, O_CLOEXEC) < 0)
		return error_set(err, STATUS_TEMPORARY, "cannot make a pipe: %s", strerror(errno));
	/* No handler of ours may run in the child before its dispositions are reset. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pid_t child = fork();
	if (child == 0)
		become(command, parent, report[1]);
	int fork_error = errno;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	close(report[1]);
	if (child < 0) {
		close(report[0]);
		return error_set(err, STATUS_TEMPORARY, "cannot start %s: %s", command->argv[0],
			strerror(fork_error));
	}
	struct refusal refusal = {0};
	ssize_t n;
	do
		n = read(report[0], &refusal, sizeof(refusal));
	while (n < 0 && errno == EINTR);
	close(report[0]);
	if (n == sizeof(refusal)) {
		waitpid(child, NULL, 0);
		return say_refusal(command, refusal, err);
	}
	*pid = child;
	return STATUS_OK;
}

/* Fields 48 and 49 of /proc/self/stat: where the arguments are, which ps and pkill -f read. */
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

void process_add_heeded(sigset_t *set, const int *numbers, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct sigaction action;
		if (sigaction(numbers[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
			sigaddset(set, numbers[i]);
	}
}

int process_exit_code(int wait_status)
{
	return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}
