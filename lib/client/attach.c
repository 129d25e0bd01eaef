/* SPDX-License-Identifier: MIT
 *
 * First use of a board: find it, check its agent, become its owner, outlive the notice signals.
 */
#include "client/board.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define STEP_FILE 64 /* bytes for the text of step, agent or owner */

static const struct {
	const char *name;
	int number;
} signals[] = {
	{"HUP", SIGHUP},
	{"INT", SIGINT},
	{"QUIT", SIGQUIT},
	{"USR1", SIGUSR1},
	{"USR2", SIGUSR2},
	{"ALRM", SIGALRM},
	{"TERM", SIGTERM},
	{"CONT", SIGCONT},
	{"TSTP", SIGTSTP},
	{"URG", SIGURG},
	{"XCPU", SIGXCPU},
	{"XFSZ", SIGXFSZ},
	{"PWR", SIGPWR},
};

/* Instead of SIG_IGN, which the program's commands would inherit. */
static void outlive(int number)
{
	(void)number;
}

static bool replace(int number, void (*old)(int), void (*new)(int))
{
	struct sigaction now;
	if (sigaction(number, NULL, &now) != 0 || now.sa_handler != old)
		return false;
	now = (struct sigaction){.sa_handler = new, .sa_flags = SA_RESTART};
	return sigaction(number, &now, NULL) == 0;
}

/* By signal: it is ignored for now, in place of outlive. Another thread may say that it has saved.
 */
static atomic_bool sheltered[sizeof signals / sizeof *signals];

void preempt_board_shelter(bool saving)
{
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
		if (!saving && atomic_exchange(&sheltered[i], false))
			(void)replace(signals[i].number, SIG_IGN, outlive);
		else if (saving && replace(signals[i].number, outlive, SIG_IGN))
			sheltered[i] = true;
	}
}

static void signal_outlive(const char *name, const char *word, size_t length)
{
	if (length > 3 && strncmp(word, "SIG", 3) == 0) {
		word += 3;
		length -= 3;
	}
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
		if (strlen(signals[i].name) != length || strncmp(signals[i].name, word, length))
			continue;
		replace(signals[i].number, SIG_DFL, outlive);
		return;
	}
	preempt_board_say(
		name, "PREEMPT_SIGNALS: no signal %.*s that could be ignored", (int)length, word);
}

static void signals_outlive(const char *name)
{
	const char *list = getenv("PREEMPT_SIGNALS");
	if (!list)
		list = "TERM";
	while (*list) {
		size_t length = strcspn(list, ",");
		if (length)
			signal_outlive(name, list, length);
		list += length + (list[length] == ',');
	}
}

/* Set board->path from the environment. 1: found; 0: no board; else BOARD_LEAVE + code. */
static int board_find(struct preempt_board *board)
{
	const char *dir = getenv("PREEMPT_DIR"), *ranks = getenv("PREEMPT_RANKS");
	if (!dir || !*dir)
		return 0;

	char rank[24] = "";
	if (ranks) {
		const char *text = ranks, *local = getenv("LOCAL_RANK");
		uint64_t count, mine;
		if (!preempt_board_number(&text, false, INT_MAX, &count) || *text || count == 0) {
			preempt_board_say(board->name,
				"PREEMPT_RANKS=%s is not a number of ranks; leave it as the agent set it",
				ranks);
			return BOARD_LEAVE + 2;
		}
		text = local;
		if (!local || !preempt_board_number(&text, false, INT_MAX, &mine) || *text ||
			mine >= count) {
			preempt_board_say(board->name,
				"LOCAL_RANK is %s, but the agent serves ranks 0 to %llu; start the "
				"ranks with a launcher that sets LOCAL_RANK (torchrun), or set it",
				local ? *local ? local : "empty" : "not set",
				(unsigned long long)(count - 1));
			return BOARD_LEAVE + 2;
		}
		snprintf(rank, sizeof rank, "/%llu", (unsigned long long)mine);
	}

	char here[PATH_MAX] = "";
	if (*dir != '/' && !getcwd(here, sizeof here))
		*here = '\0';
	/* Leave 32 bytes for the longest file name on a board. */
	int length = snprintf(board->path, PATH_MAX, "%s%s%s%s", here, *here ? "/" : "", dir, rank);
	if (length < 0 || length >= PATH_MAX - 32) {
		preempt_board_say(board->name, "PREEMPT_DIR is too long");
		*board->path = '\0';
		return BOARD_LEAVE + 2;
	}
	struct stat about;
	if (stat(board->path, &about) != 0 || !S_ISDIR(about.st_mode)) {
		preempt_board_say(board->name,
			"the board %s is not visible here: in a container? share the directory "
			"and use --board",
			board->path);
		return BOARD_LEAVE + 2;
	}
	return 1;
}

static bool namespace_shared(pid_t pid)
{
	char path[40];
	struct stat ours, theirs;
	snprintf(path, sizeof path, "/proc/%d/ns/pid", (int)pid);
	if (stat("/proc/self/ns/pid", &ours) != 0 || stat(path, &theirs) != 0)
		return true; /* the agent is gone, or we may not ask: agent_check finds out */
	return ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

static int agent_check(struct preempt_board *board)
{
	char path[PATH_MAX], line[STEP_FILE];
	pid_t pid;
	if (!preempt_board_path(board, "agent", path) ||
		preempt_board_read(path, line, sizeof line) < 0)
		return 1;
	if (!preempt_board_agent(line, &pid)) {
		preempt_board_say(board->name,
			"%s does not name the agent's process: not a board, or damaged; start the "
			"command under its agent again",
			path);
		return BOARD_LEAVE + 2;
	}
	if (!namespace_shared(pid)) {
		preempt_board_say(board->name,
			"the agent (process %d) is in another PID namespace, so its death could not "
			"be seen; run the agent inside the container, or share the PID namespace",
			(int)pid);
		return BOARD_LEAVE + 2;
	}
	board->agent = (struct board_process){.pid = pid};
	if (!preempt_board_alive(board->agent)) {
		preempt_board_say(board->name,
			"the agent of the board %s (process %d) is gone, or not visible from this "
			"container; leaving with 43",
			board->path, (int)pid);
		return BOARD_LEAVE + 43;
	}
	board->agent.started = preempt_board_started(pid);
	return 1;
}

/* Wait until an owner file, which is empty at first, names a process. pid 0: it named none. */
static struct board_process owner_read(const char *path)
{
	for (int turn = 0; turn < 100; turn++) {
		char line[STEP_FILE];
		struct board_process owner;
		if (preempt_board_read(path, line, sizeof line) > 0 &&
			preempt_board_owner(line, &owner))
			return owner;
		nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL);
	}
	return (struct board_process){0};
}

static bool owner_write(const char *path, int how, struct board_process who)
{
	char line[STEP_FILE];
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | how, 0600);
	if (fd < 0)
		return false;
	int length = who.started ? snprintf(line, sizeof line, "%d %llu\n", (int)who.pid,
					   (unsigned long long)who.started)
				 : snprintf(line, sizeof line, "%d\n", (int)who.pid);
	bool done = write(fd, line, (size_t)length) == length;
	int why = errno;
	close(fd);
	errno = why;
	return done;
}

/* Discard the former training process's step and answers: its successor may have gone back to
 * an earlier checkpoint. */
static bool former_forget(const struct preempt_board *board)
{
	static const char *const files[] = {"step", "saved", "answered"};
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		char path[PATH_MAX];
		if (!preempt_board_path(board, files[i], path) ||
			(truncate(path, 0) != 0 && errno != ENOENT))
			return false;
	}
	return true;
}

static int owner_take(struct preempt_board *board, pid_t owner)
{
	struct board_process we = {.pid = owner, .started = preempt_board_started(owner)};
	char first[PATH_MAX], path[PATH_MAX], name[24] = "owner";
	if (!preempt_board_path(board, name, first))
		return BOARD_LEAVE + 2;

	for (int turn = 1;; turn++) {
		if (!preempt_board_path(board, name, path))
			return BOARD_LEAVE + 2;
		if (owner_write(path, O_EXCL, we) &&
			(turn == 1 || (former_forget(board) && owner_write(first, O_TRUNC, we))))
			return 1;
		if (errno != EEXIST) {
			preempt_board_say(board->name,
				"cannot write on the board %s: %s; it must belong to the user who "
				"trains",
				board->path, strerror(errno));
			return BOARD_LEAVE + 2;
		}
		struct board_process they = owner_read(path);
		bool dated = we.started && they.started;
		if (they.pid == we.pid && (!dated || they.started == we.started))
			return 1;
		if (they.pid && they.pid != we.pid && preempt_board_alive(they)) {
			preempt_board_say(board->name,
				"the board %s belongs to process %d, this is process %d; let one "
				"process per task call it, and give each task its own board "
				"(preempt-run -n L or --ranks L)",
				board->path, (int)they.pid, (int)we.pid);
			return BOARD_LEAVE + 2;
		}
		snprintf(name, sizeof name, "owner.%d", turn);
	}
}

/* Move a descriptor above the numbers that programs use: if a program closes them all (to become a
 * daemon, for example), the next file that it opens must not get the number of step. */
static int descriptor_raise(int fd)
{
	int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 400);
	if (high < 0)
		return fd;
	close(fd);
	return high;
}

/* Ask the kernel to kill this process's group when the agent dies, whatever ends it: the agent does
 * not know the groups of ranks that a launcher started in sessions of their own. */
static int die_with_agent(struct preempt_board *board, pid_t owner)
{
	char path[PATH_MAX];
	if (owner != getpid() || !board->agent.pid || !preempt_board_path(board, "alive", path))
		return 1;
	int fd = descriptor_raise(open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC));
	if (fd < 0)
		return 1;
	if (fcntl(fd, F_SETOWN, -getpgrp()) != 0 || fcntl(fd, F_SETSIG, SIGKILL) != 0 ||
		fcntl(fd, F_SETFL, O_NONBLOCK | O_ASYNC) != 0) {
		close(fd);
		return 1;
	}
	board->alive = fd;
	return preempt_board_alive(board->agent) ? 1 : BOARD_LEAVE + 43;
}

bool preempt_board_open(struct preempt_board *board, int how)
{
	char path[PATH_MAX];
	struct stat about;
	struct statfs system;
	if (!preempt_board_path(board, "step", path))
		return false;
	board->dir = descriptor_raise(open(board->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	board->step = descriptor_raise(open(path, O_RDWR | O_CLOEXEC | how, 0600));
	if (board->dir < 0 || board->step < 0 || fstat(board->dir, &about) != 0 ||
		fstatfs(board->dir, &system) != 0) {
		int why = errno;
		if (board->dir >= 0)
			close(board->dir);
		if (board->step >= 0)
			close(board->step);
		board->dir = board->step = -1;
		errno = why;
		return false;
	}
	board->dev = about.st_dev;
	board->ino = about.st_ino;
	board->dated = system.f_type == TMPFS_MAGIC;
	board->unheld = BOARD_UNKNOWN;
	return true;
}

/* Open the board and read the last step of this owner: preempt-step has no other memory of it. */
static int step_open(struct preempt_board *board)
{
	char line[STEP_FILE];
	ssize_t length = -1;
	if (preempt_board_open(board, O_CREAT))
		length = pread(board->step, line, sizeof line - 1, 0);
	if (length < 0) {
		preempt_board_say(board->name, "cannot use step on the board %s: %s", board->path,
			strerror(errno));
		return BOARD_LEAVE + 2;
	}
	line[length] = '\0';

	uint64_t last = 0;
	if (length > 0 && !preempt_board_last(line, &last)) {
		preempt_board_say(board->name,
			"%s/step has no step number in it: damaged; start the command under its "
			"agent again",
			board->path);
		return BOARD_LEAVE + 2;
	}
	if (board->last < last)
		board->last = last;
	return 1;
}

int preempt_board_attach(struct preempt_board *board, pid_t owner)
{
	int answer = board_find(board);
	if (answer == 1 && !preempt_board_path(board, "hold", board->hold))
		answer = BOARD_LEAVE + 2;
	if (answer == 1)
		answer = agent_check(board);
	if (answer == 1)
		answer = owner_take(board, owner);
	if (answer == 1)
		answer = step_open(board);
	if (answer == 1)
		answer = die_with_agent(board, owner);
	if (answer == 1)
		signals_outlive(board->name);
	else
		preempt_board_release(board);
	return answer;
}

void preempt_board_release(struct preempt_board *board)
{
	struct stat about;
	/* If the program closed the descriptors, their numbers may belong to other files now. */
	if (*board->path && fstat(board->dir, &about) == 0 && about.st_dev == board->dev &&
		about.st_ino == board->ino) {
		close(board->dir);
		close(board->step);
		if (board->alive)
			close(board->alive);
	}
	board->alive = 0;
	board->dir = board->step = -1;
	*board->path = '\0';
}
