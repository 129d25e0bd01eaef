/* SPDX-License-Identifier: MIT */
#include "base/process/subprocess.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/loop.h"
#include "base/process/descriptor.h"
#include "base/process/process.h"
#include "base/process/reaper.h"
#include "base/xalloc.h"

#define KEEP	   ((size_t)64 << 10) /* default of subprocess_options.keep */
#define KILL_TIME  1000		      /* ms that the kernel may take to end a process after KILL */
#define LOOK_AGAIN 50		      /* ms between two checks if there is no pidfd */

/* ---- The start ---- */

/* What the child reports to its parent when it cannot start the command. */
struct refusal {
	int number;
	enum {
		REFUSED_COMMAND,
		REFUSED_INPUT,
		REFUSED_OUTPUT,
		REFUSED_DIRECTORY,
		REFUSED_INTERPRETER
	} what;
};

static void refuse(int report, struct refusal refusal)
{
	(void)file_write_all(report, &refusal, sizeof(refusal));
	_exit(STATUS_NOT_FOUND);
}

#define HIGH 500 /* a descriptor above those that programs use */

/* A pipe that is never written to. Only this process has its writing end, until it ends. */
static int only_writer[2] = {-1, -1};
static pthread_once_t only_writer_made = PTHREAD_ONCE_INIT;
static void make_only_writer(void)
{
	if (pipe2(only_writer, O_CLOEXEC) < 0)
		only_writer[0] = only_writer[1] = -1;
}

/*
 * Let the kernel KILL the process group of the command when we end: it sends a signal to the group
 * that owns a reading descriptor when the last writer of the pipe is gone. The command inherits
 * this descriptor, so it stays open when we have ended: no other process of ours is needed.
 */
static void die_with_writer(void)
{
	char path[40];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", only_writer[0]);
	int reader = only_writer[0] < 0 ? -1 : open(path, O_RDONLY | O_NONBLOCK);
	int high = reader < 0 ? -1 : fcntl(reader, F_DUPFD, HIGH);
	if (high >= 0)
		close(reader);
	else
		high = reader;
	if (high >= 0 && fcntl(high, F_SETOWN, -getpid()) == 0 &&
		fcntl(high, F_SETSIG, SIGKILL) == 0)
		(void)fcntl(high, F_SETFL, O_NONBLOCK | O_ASYNC);
}

/* A command ignores the signals that we ignore and those in `ignored`; all others are default. */
static void reset_signals(const sigset_t *ignored)
{
	sigset_t none;
	for (int signal = 1; signal < SIGRTMIN; signal++) {
		struct sigaction action;
		if (sigaction(signal, NULL, &action) < 0)
			continue;
		if (ignored && sigismember(ignored, signal) == 1)
			action.sa_handler = SIG_IGN;
		else if (action.sa_handler != SIG_IGN)
			action.sa_handler = SIG_DFL;
		action.sa_flags = 0;
		(void)sigaction(signal, &action, NULL);
	}
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Open path as stdin; a FIFO without a writer is empty. -1 and errno on failure. */
static int open_input(const char *path)
{
	struct stat st;
	int descriptor = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (descriptor < 0 || fcntl(descriptor, F_SETFL, 0) < 0)
		return -1;
	if (fstat(descriptor, &st) < 0 || !S_ISDIR(st.st_mode))
		return descriptor;
	errno = EISDIR;
	return -1;
}

/* Empty the file and open it as stdout, for appending. -1 and errno on failure. */
static int open_output(const char *path)
{
	int flags = O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_NONBLOCK | O_NOCTTY;
	int descriptor = open(path, flags, 0666);
	return descriptor < 0 || fcntl(descriptor, F_SETFL, O_APPEND) < 0 ? -1 : descriptor;
}

static void place_standard(const struct subprocess_options *options, const int given[3], int report)
{
	int input = options->input_path ? open_input(options->input_path) : given[STDIN_FILENO];
	if (input < 0)
		refuse(report, (struct refusal){errno, REFUSED_INPUT});
	if (input > 0)
		dup2(input, STDIN_FILENO);
	if (options->input_path && input > STDERR_FILENO)
		close(input);
	for (int i = STDOUT_FILENO; i <= STDERR_FILENO; i++)
		if (given[i] > 0)
			dup2(given[i], i);
	int output = options->output_path ? open_output(options->output_path) : STDOUT_FILENO;
	if (output < 0)
		refuse(report, (struct refusal){errno, REFUSED_OUTPUT});
	if (output != STDOUT_FILENO) {
		dup2(output, STDOUT_FILENO);
		close(output);
	}
	if (options->standard[STDERR_FILENO] == SUBPROCESS_JOINED)
		dup2(STDOUT_FILENO, STDERR_FILENO);
}

/* In the child: become the command, or report why not and exit. */
static void become(
	const struct subprocess_options *options, const int given[3], pid_t parent, int report)
{
	char *const *argv = options->argv;
	if (!options->in_our_group) {
		setpgid(0, 0);
		if (options->terminal > 0) /* TTOU is blocked, so this does not stop us */
			(void)tcsetpgrp(options->terminal, getpid());
		die_with_writer();
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) /* the parent died before the prctl */
		_exit(128 + SIGKILL);
	reset_signals(options->ignored);
	if (options->directory && chdir(options->directory) < 0)
		refuse(report, (struct refusal){errno, REFUSED_DIRECTORY});
	place_standard(options, given, report);
	/* execvpe would search our own PATH, not that of the new environment. */
	if (options->environment)
		environ = (char **)(uintptr_t)options->environment;
	execvp(argv[0], argv);
	struct refusal refusal = {.number = errno};
	if (refusal.number == ENOENT && strchr(argv[0], '/') && access(argv[0], F_OK) == 0)
		refusal.what = REFUSED_INTERPRETER;
	refuse(report, refusal);
}

static bool is_one_of(int number, const int *numbers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (number == numbers[i])
			return true;
	return false;
}

/* Return true for an error of the machine or of a filesystem: the program may run another time. */
static bool may_run_later(int number)
{
	static const int transient[] = {EAGAIN, EINTR, ENOMEM, EMFILE, ENFILE, EIO, EREMOTEIO,
		ESTALE, ETIMEDOUT, EHOSTDOWN, ENOTCONN, ETXTBSY};
	return is_one_of(number, transient, sizeof(transient) / sizeof(*transient));
}

/* Return true for an error of a file or directory that will not pass by itself. */
static bool is_permanent(int number)
{
	static const int staying[] = {
		ENOENT, ENOTDIR, EISDIR, EACCES, EPERM, ELOOP, ENAMETOOLONG, ENXIO};
	return is_one_of(number, staying, sizeof(staying) / sizeof(*staying));
}

static enum status say_refusal(
	const struct subprocess_options *options, struct refusal refusal, struct error *err)
{
	const char *why = strerror(refusal.number), *name = options->argv[0];
	bool later = may_run_later(refusal.number);
	switch (refusal.what) {
	case REFUSED_INPUT:
		return error_set(err, is_permanent(refusal.number) ? STATUS_NO : STATUS_TEMPORARY,
			"cannot open %s as stdin: %s", options->input_path, why);
	case REFUSED_OUTPUT:
		return error_set(err, is_permanent(refusal.number) ? STATUS_NO : STATUS_TEMPORARY,
			"cannot write %s as stdout: %s%s", options->output_path, why,
			refusal.number == ENOENT ? "; make its directory first" : "");
	case REFUSED_DIRECTORY:
		return error_set(err, is_permanent(refusal.number) ? STATUS_NO : STATUS_TEMPORARY,
			"cannot run %s in %s: %s", name, options->directory, why);
	case REFUSED_INTERPRETER:
		return error_set(err, STATUS_CANNOT_RUN,
			"cannot run %s: the interpreter it names is not there", name);
	case REFUSED_COMMAND: break;
	}
	return error_set(err,
		later			   ? STATUS_TEMPORARY
		: refusal.number == ENOENT ? STATUS_NOT_FOUND
					   : STATUS_CANNOT_RUN,
		"cannot run %s: %s", name, why);
}

/* Start a command with these descriptors 0, 1, 2 (0: ours); wait until exec succeeds or fails. */
static enum status launch(
	const struct subprocess_options *options, const int given[3], pid_t *pid, struct error *err)
{
	int report[2];
	sigset_t all, old;
	pid_t parent = getpid();
	pthread_once(&only_writer_made, make_only_writer);
	if (pipe2(report, O_CLOEXEC) < 0)
		return error_set(err, STATUS_TEMPORARY, "cannot make a pipe: %s", strerror(errno));
	/* No handler of ours may run in the child before its dispositions are reset. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pid_t child = fork();
	if (child == 0)
		become(options, given, parent, report[1]);
	int fork_error = errno;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	close(report[1]);
	if (child < 0) {
		close(report[0]);
		return error_set(err, STATUS_TEMPORARY, "cannot start %s: %s", options->argv[0],
			strerror(fork_error));
	}
	struct refusal refusal = {0};
	int64_t until = options->limit ? options->limit : CLOCK_NEVER;
	ssize_t n = 0;
	bool told;
	/* exec may hang on a filesystem that does not answer: wait until the limit at most. */
	while (!(told = descriptor_wait(report[0], until)) && clock_now() < until)
		;
	if (told)
		do
			n = read(report[0], &refusal, sizeof(refusal));
		while (n < 0 && errno == EINTR);
	close(report[0]);
	if (n == sizeof(refusal)) {
		while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
			;
		return say_refusal(options, refusal, err);
	}
	*pid = child;
	return STATUS_OK;
}

/* ---- Input and output ---- */

static bool open_pipe(int *ours, int *its, int of_ours)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return false;
	*ours = ends[of_ours];
	*its = ends[!of_ours];
	return true;
}

/* Fill given for launch(). made: those that the caller closes after the start; 0: none. */
static bool open_standard(struct subprocess *child, const struct subprocess_options *options,
	int given[3], int made[3])
{
	for (int i = 0; i < 3; i++) {
		int asked = options->standard[i], ours;
		if (i == STDIN_FILENO && options->input) {
			if (!open_pipe(&ours, &made[i], 1))
				return false;
			/* The input fits into a pipe, so the write does not block. */
			(void)file_write_all(ours, options->input, strlen(options->input));
			close(ours);
		} else if (asked == SUBPROCESS_NOTHING) {
			made[i] = open("/dev/null", O_RDWR | O_CLOEXEC);
			if (made[i] < 0)
				return false;
		} else if (asked == SUBPROCESS_KEEP) {
			if (!open_pipe(&child->from[i - 1], &made[i], 0))
				return false;
			(void)fcntl(child->from[i - 1], F_SETFL, O_NONBLOCK);
		}
		given[i] = made[i] ? made[i] : asked > 0 ? asked : 0;
	}
	return true;
}

/* Close *descriptor. The loop would keep it while a child before its exec has a copy: forget it. */
static void dismiss(const struct subprocess *child, int *descriptor)
{
	if (*descriptor < 0)
		return;
	if (child->loop)
		loop_forget(child->loop, *descriptor);
	close(*descriptor);
	*descriptor = -1;
}

/* Read its stdout (i = 0) or its stderr (1), and keep as much as the caller wants. */
static void drain(struct subprocess *child, int i)
{
	struct text *to = i == 0 ? &child->output : &child->errors;
	int *from = &child->from[i];
	char bytes[4096];
	/* A command that writes faster than we read must not keep us here. */
	for (int round = 0; round < 64 && *from >= 0; round++) {
		ssize_t n = read(*from, bytes, sizeof(bytes));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return;
		size_t room = child->keep - to->length;
		text_add_bytes(to, bytes, (size_t)n < room ? (size_t)n : room);
		if (n == 0)
			dismiss(child, from);
	}
}

/* ---- The running commands ---- */

static pid_t *running;
static size_t running_count, running_room;

/* When to check again in any case. Without a pidfd, only a check finds the end. */
static int64_t next_check(const struct subprocess *child, int64_t now)
{
	return child->end.descriptor >= 0 ? child->limit
					  : clock_earlier(child->limit, now + LOOK_AGAIN);
}

static void begin(struct subprocess *child)
{
	child->end.descriptor = pidfd_open(child->pid, 0);
	child->end.due = next_check(child, clock_now());
	running = xgrow(running, running_count, &running_room, sizeof(*running));
	running[running_count++] = child->pid;
	if (!child->loop)
		return;
	loop_watch(child->loop, child->end.descriptor);
	loop_watch(child->loop, child->from[0]);
	loop_watch(child->loop, child->from[1]);
}

/* Stop watching the child: its number may be reused from now on. Its output and code stay. */
static void forget(struct subprocess *child)
{
	dismiss(child, &child->end.descriptor);
	dismiss(child, &child->from[0]);
	dismiss(child, &child->from[1]);
	for (size_t i = 0; i < running_count; i++)
		if (running[i] == child->pid)
			running[i--] = running[--running_count];
	child->end.due = CLOCK_NEVER;
	child->pid = 0;
}

static const struct subprocess blank = {
	.end = {.descriptor = -1, .due = CLOCK_NEVER}, .from = {-1, -1}, .limit = CLOCK_NEVER};

enum status subprocess_start(
	struct subprocess *child, const struct subprocess_options *options, struct error *err)
{
	static char shell[] = "/bin/sh", option[] = "-c";
	char *const by_shell[] = {shell, option, (char *)(uintptr_t)options->shell, NULL};
	struct subprocess_options how = *options;
	int given[3] = {0}, made[3] = {0};
	*child = blank;
	child->loop = options->loop;
	child->reaper = options->reaper;
	child->limit = options->limit ? options->limit : CLOCK_NEVER;
	child->keep = options->keep ? options->keep : KEEP;
	child->in_our_group = options->in_our_group;
	if (how.shell)
		how.argv = by_shell;
	enum status status = open_standard(child, &how, given, made)
				     ? launch(&how, given, &child->pid, err)
				     : error_set(err, STATUS_TEMPORARY, "cannot run %s: %s",
					       how.argv[0], strerror(errno));
	for (int i = 0; i < 3; i++)
		if (made[i] > 0)
			close(made[i]);
	if (status != STATUS_OK) {
		forget(child);
		return status;
	}
	if (child->reaper)
		reaper_add(child->reaper, child->pid);
	begin(child);
	return STATUS_OK;
}

enum status subprocess_watch(struct subprocess *child, pid_t pid, struct error *err)
{
	*child = blank;
	child->is_watched_only = true;
	child->pid = pid;
	begin(child);
	if (child->end.descriptor >= 0)
		return STATUS_OK;
	int number = errno;
	forget(child);
	return error_set(err, number == ESRCH ? STATUS_NO : STATUS_TEMPORARY,
		"cannot watch process %d: %s", (int)pid, strerror(number));
}

static void check_end(struct subprocess *child)
{
	if (child->is_watched_only) {
		child->ended = descriptor_is_ready(child->end.descriptor);
		child->code = -1;
		return;
	}
	child->how = (siginfo_t){0};
	int waited = waitid(P_PID, (id_t)child->pid, &child->how, WEXITED | WNOHANG | WNOWAIT);
	/* If SIGCHLD is ignored, the kernel has reaped it. */
	child->ended = waited < 0 ? errno == ECHILD : child->how.si_pid == child->pid;
	if (waited < 0)
		child->code = -1;
	else if (child->how.si_code == CLD_EXITED)
		child->code = child->how.si_status;
	else
		child->code = 128 + child->how.si_status;
}

enum subprocess_state subprocess_check(struct subprocess *child, int64_t now)
{
	if (!child->pid)
		return SUBPROCESS_NONE;
	if (!child->ended)
		check_end(child);
	drain(child, 0);
	drain(child, 1);
	if (child->ended) {
		child->end.due = CLOCK_NEVER;
		return SUBPROCESS_ENDED;
	}
	bool over = now >= child->limit, reported = child->late;
	if (over) {
		subprocess_signal(child, SIGKILL);
		child->late = true;
		child->limit = now + KILL_TIME; /* then KILL again */
	}
	child->end.due = next_check(child, now);
	return over && !reported ? SUBPROCESS_LATE : SUBPROCESS_RUNS;
}

/* True if it leads a group of its own, so that KILL to the group hits nothing else. */
static bool leads_group(const struct subprocess *child)
{
	return !child->in_our_group && !child->is_watched_only;
}

void subprocess_signal(const struct subprocess *child, int number)
{
	if (!child->pid || child->ended)
		return;
	if (child->is_watched_only)
		(void)pidfd_send_signal(child->end.descriptor, number, NULL, 0);
	else if (!leads_group(child) || kill(-child->pid, number) < 0 || number == SIGKILL ||
		 getpgid(child->pid) != child->pid)
		kill(child->pid, number);
}

void subprocess_end(struct subprocess *child, int number, int64_t kill_at)
{
	if (number) {
		subprocess_signal(child, number);
		subprocess_signal(child, SIGCONT);
	}
	if (child->pid && !child->late) {
		child->limit = clock_earlier(child->limit, kill_at);
		child->end.due = clock_earlier(child->end.due, kill_at);
	}
}

void subprocess_reap(struct subprocess *child, bool spare)
{
	if (!child->pid)
		return;
	if (leads_group(child) && !spare && child->code >= 0) /* -1: the kernel has reaped it */
		kill(-child->pid, SIGKILL);
	if (child->reaper)
		reaper_remove(child->reaper, child->pid);
	while (!child->is_watched_only && wait4(child->pid, NULL, 0, &child->usage) < 0 &&
		errno == EINTR)
		;
	forget(child);
}

enum subprocess_state subprocess_finish(struct subprocess *child, int64_t now)
{
	enum subprocess_state state = subprocess_check(child, now);
	if (state != SUBPROCESS_ENDED)
		return state;
	subprocess_reap(child, false);
	return child->late ? SUBPROCESS_NONE : SUBPROCESS_ENDED;
}

/* Wait until its output can be read, it ends, or its limit or the deadline comes. */
static void wait_for(const struct subprocess *child, int64_t deadline)
{
	struct pollfd polled[] = {{.fd = child->end.descriptor, .events = POLLIN},
		{.fd = child->from[0], .events = POLLIN}, {.fd = child->from[1], .events = POLLIN}};
	(void)poll(polled, 3, clock_poll_timeout(clock_earlier(child->end.due, deadline)));
}

void subprocess_kill(struct subprocess *child)
{
	int64_t deadline = clock_after(KILL_TIME);
	bool ours = child->pid && !child->is_watched_only;
	if (ours)
		subprocess_signal(child, SIGKILL);
	while (ours && subprocess_check(child, clock_now()) != SUBPROCESS_ENDED &&
		clock_now() < deadline)
		wait_for(child, deadline);
	if (child->pid && !child->ended)
		forget(child);
	subprocess_reap(child, false);
}

void subprocess_release(struct subprocess *child)
{
	subprocess_kill(child);
	text_release(&child->output);
	text_release(&child->errors);
}

enum status subprocess_run(
	struct subprocess *child, const struct subprocess_options *options, struct error *err)
{
	enum subprocess_state state;
	enum status status = subprocess_start(child, options, err);
	if (status != STATUS_OK)
		return status;
	while ((state = subprocess_check(child, clock_now())) == SUBPROCESS_RUNS)
		wait_for(child, CLOCK_NEVER);
	if (state == SUBPROCESS_ENDED) {
		subprocess_reap(child, false);
		return STATUS_OK;
	}
	subprocess_kill(child);
	return error_set(err, STATUS_TIMEOUT, "%s has not answered in time",
		options->shell ? options->shell : options->argv[0]);
}

static bool is_ours(pid_t pid)
{
	for (size_t i = 0; i < running_count; i++)
		if (running[i] == pid)
			return true;
	return false;
}

void subprocess_reap_others(const struct reaper *reaper)
{
	siginfo_t info = {0};
	while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid &&
		!is_ours(info.si_pid) && !(reaper && reaper->pid == info.si_pid)) {
		(void)waitpid(info.si_pid, NULL, WNOHANG);
		info.si_pid = 0;
	}
}
