/* SPDX-License-Identifier: MIT */
/*
 * The agent's side of a board: when the training is started again below its command (who trains,
 * and what is then forgotten), and when its filesystem gets full.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/task/board.h"
#include "agent/task/board_place.h"
#include "base/file.h"
#include "proto/agreement/agreement.h"
#include "unit.h"

static void sign(const struct board *board, const char *line)
{
	char path[4200];
	snprintf(path, sizeof(path), "%s/owner", board->path);
	FILE *file = fopen(path, "w");
	if (file)
		fputs(line, file);
	if (file)
		fclose(file);
}

static bool is_owner(const struct board *board, const char *line)
{
	struct board_owner owner = {{0}};
	return board_read_owner(board, &owner) == STATUS_OK && !strcmp(owner.line, line);
}

static void owners(void)
{
	struct board board;
	struct board_owner owner;
	struct error err;
	char parent[] = "/tmp/unit-board-XXXXXX";
	CHECK(mkdtemp(parent) != NULL, "a place");
	CHECK(board_create(&board, parent, getpid(), NULL, &err) == STATUS_OK, "a board");
	CHECK(board_read_owner(&board, &owner) == STATUS_NO, "no process yet");
	sign(&board, "");
	CHECK(board_read_owner(&board, &owner) == STATUS_NO, "a file that is filled in a moment");
	sign(&board, "12 34");
	CHECK(board_read_owner(&board, &owner) == STATUS_NO, "half a line");
	sign(&board, "12 345\n");
	CHECK(is_owner(&board, "12 345\n"), "a process and its start");
	sign(&board, "12\n");
	CHECK(is_owner(&board, "12\n"), "a process");
	board_release(&board, true);
	CHECK(rmdir(parent) == 0, "removed");
}

/* A filesystem of 64 KiB that gets full after the board was made on it. */
static void full(void)
{
	struct board board;
	struct error err;
	struct agreement_hold hold = {0}, told;
	char parent[] = "/tmp/unit-board-XXXXXX", filler[64], zeros[4096] = {0};
	CHECK(mkdtemp(parent) != NULL, "a place");
	if (mount("none", parent, "tmpfs", 0, "size=64k,mode=700") < 0) {
		printf("# no filesystem of our own to fill: not root\n");
		rmdir(parent);
		return;
	}
	CHECK(board_create(&board, parent, getpid(), NULL, &err) == STATUS_OK, "a board with room");
	snprintf(filler, sizeof(filler), "%s/filler", parent);
	int fd = open(filler, O_WRONLY | O_CREAT, 0600);
	while (write(fd, zeros, sizeof(zeros)) > 0)
		;
	CHECK(errno == ENOSPC, "it is full");
	close(fd);
	bool right = true;
	for (int turn = 0; turn < 20; turn++) {
		static const enum agreement_order orders[] = {
			ORDER_WAIT, ORDER_SAVE, ORDER_RUN, ORDER_WAIT, ORDER_EXIT, ORDER_LEAVE};
		hold = (struct agreement_hold){.order = orders[turn % 6],
			.step = (uint64_t)turn * 100000,
			.code = orders[turn % 6] == ORDER_LEAVE ? 42 : 0};
		if (hold.order == ORDER_WAIT || hold.order == ORDER_RUN ||
			hold.order == ORDER_LEAVE)
			hold.step = 0;
		right &= board_tell(&board, &hold, &err) == STATUS_OK &&
			 board_told(&board, &told, NULL, &err) == STATUS_OK &&
			 board_same_hold(&hold, &told);
	}
	CHECK(right, "every order is told");
	snprintf(filler, sizeof(filler), "%s/step", board.path);
	fd = open(filler, O_WRONLY);
	CHECK(write(fd, zeros, 42) == 42, "the training process has room for its step");
	close(fd);
	snprintf(filler, sizeof(filler), "%s/saved", board.path);
	fd = open(filler, O_WRONLY);
	CHECK(write(fd, zeros, 21) == 21, "and for its save");
	close(fd);
	CHECK(truncate(filler, 0) == 0, "one that follows empties it");
	board_make_room(&board);
	snprintf(filler, sizeof(filler), "%s/filler", parent);
	fd = open(filler, O_WRONLY | O_APPEND);
	while (write(fd, zeros, sizeof(zeros)) > 0)
		;
	close(fd);
	snprintf(filler, sizeof(filler), "%s/saved", board.path);
	fd = open(filler, O_WRONLY);
	CHECK(write(fd, zeros, 21) == 21, "and has room again");
	close(fd);
	struct board second;
	CHECK(board_create(&second, parent, getpid(), NULL, &err) == STATUS_TEMPORARY,
		"where there is no room, no board is made");
	CHECK(!board_vanished(&board), "it is there");
	board_release(&board, true);
	CHECK(umount(parent) == 0 && rmdir(parent) == 0, "removed");
}

static bool is_there(const char *parent, const char *name)
{
	char path[200];
	snprintf(path, sizeof(path), "%s/%s", parent, name);
	return access(path, F_OK) == 0;
}

/* What an agent that is killed leaves behind; its name. */
static void leave_one(const char *parent, char name[64], bool ranks)
{
	int ends[2];
	CHECK(pipe(ends) == 0, "a pipe");
	pid_t pid = fork();
	if (pid == 0) {
		struct board board, rank;
		struct error err;
		if (board_create(&board, parent, getpid(), NULL, &err) != STATUS_OK ||
			(ranks && board_create_rank(&rank, board.path, 0, getpid(), &err) !=
					  STATUS_OK))
			_exit(1);
		const char *base = strrchr(board.path, '/') + 1;
		(void)!write(ends[1], base, strlen(base) + 1);
		raise(SIGKILL);
	}
	CHECK(read(ends[0], name, 64) > 0, "a board");
	close(ends[0]);
	close(ends[1]);
	waitpid(pid, NULL, 0);
}

/* Make a board look like that of an agent on another machine. */
static void move_away(const char *board)
{
	char path[200];
	snprintf(path, sizeof(path), "%s/boot", board);
	CHECK(file_write_whole(path, "01234567", 8, 0600, false, NULL) == STATUS_OK, "moved away");
}

static void swept(void)
{
	struct board living, rank, script, next;
	struct error err;
	char parent[] = "/tmp/unit-board-XXXXXX", first[64], second[64], third[64], other[64],
	     away[128];
	CHECK(mkdtemp(parent) != NULL, "a place");
	CHECK(board_create(&living, parent, getpid(), NULL, &err) == STATUS_OK &&
			board_create_rank(&rank, living.path, 0, getpid(), &err) == STATUS_OK,
		"an agent that lives");
	CHECK(board_create(&script, parent, getppid(), NULL, &err) == STATUS_OK, "a script's");
	snprintf(other, sizeof(other), "%s/preempt-board-mine", parent);
	CHECK(mkdir(other, 0700) == 0, "a directory that only has such a name");
	leave_one(parent, third, false);
	snprintf(away, sizeof(away), "%s/%s", parent, third);
	move_away(away);
	leave_one(parent, first, false);
	CHECK(is_there(parent, first), "its agent was killed");
	leave_one(parent, second, true);
	CHECK(!is_there(parent, first), "the next one of its user removes it");
	CHECK(board_create(&next, parent, getpid(), NULL, &err) == STATUS_OK, "another one");
	CHECK(!is_there(parent, second), "with its ranks");
	CHECK(!board_vanished(&living) && !board_vanished(&rank) && !board_vanished(&script) &&
			is_there(parent, "preempt-board-mine") && is_there(parent, third),
		"nothing else is touched");
	rmdir(other);
	CHECK(file_remove_tree(away, &err) == STATUS_OK, "removed");
	board_release(&rank, true);
	board_release(&living, true);
	board_release(&script, true);
	board_release(&next, true);
	CHECK(rmdir(parent) == 0, "removed");
}

/*
 * Let an agent make a board, and kill it at its stop number `at`: it stops at the beginning and at
 * the end of each system call. Returns its wait status.
 */
static int kill_at(const char *parent, int at)
{
	int status = 0;
	pid_t pid = fork();
	if (pid == 0) {
		struct reaper reaper;
		struct board board;
		struct error err;
		if (reaper_start(&reaper, &err) != STATUS_OK ||
			ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0 || raise(SIGSTOP) != 0 ||
			board_create(&board, parent, getpid(), &reaper, &err) != STATUS_OK)
			_exit(1);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	for (int i = 0; i < at && WIFSTOPPED(status); i++)
		if (ptrace(PTRACE_SYSCALL, pid, NULL, NULL) == 0)
			waitpid(pid, &status, 0);
	if (WIFSTOPPED(status)) {
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
	}
	while (wait(NULL) > 0)
		; /* its reaper, which we inherit */
	return status;
}

static void killed_at_any_moment(void)
{
	char parent[] = "/tmp/unit-board-XXXXXX";
	int at = 0, status;
	CHECK(mkdtemp(parent) != NULL, "a place");
	CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0, "reapers become our children");
	while (WIFSIGNALED(status = kill_at(parent, at)) && at < 1000)
		at++;
	CHECK(at > 20 && at < 1000, "its agent was killed at %d moments", at);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "and not killed, it made a board");
	CHECK(rmdir(parent) == 0, "no board was left");
}

static void places(void)
{
	struct board_signs signs = {
		.runtime = "/run/user/1000", .shared_memory = true, .temporary = "/scratch"};
	CHECK(!strcmp(board_choose_place(&signs), "/run/user/1000"), "no logind");
	signs.logout = true;
	CHECK(!strcmp(board_choose_place(&signs), "/scratch"), "a logout would empty both");
	signs.temporary = "";
	CHECK(!strcmp(board_choose_place(&signs), "/tmp"), "without TMPDIR");
	signs.runtime = "/job/boards";
	CHECK(!strcmp(board_choose_place(&signs), "/job/boards"), "a place that the user chose");
	signs = (struct board_signs){.shared_memory = true};
	CHECK(!strcmp(board_choose_place(&signs), "/dev/shm"), "memory, in a container");
	signs.shared_memory = false;
	CHECK(!strcmp(board_choose_place(&signs), "/tmp"), "nothing better");
}

static void restarted(void)
{
	struct agreement_config config = {0};
	struct agreement_view view = {0};
	struct agreement a;
	struct agreement_hold exit_50 = {.order = ORDER_EXIT, .step = 50};
	agreement_init(&a, &config, &view, 0);
	agreement_read(&a, true, 60, 61, 0);
	agreement_saved(&a, 60);
	agreement_restarted(&a);
	CHECK(!a.called, "it has not called");
	agreement_told(&a, &exit_50, 0);
	CHECK(!a.has_saved, "a save of the former process is not the one asked for");
	agreement_saved(&a, 50);
	CHECK(a.has_saved && a.saved_step == 50, "its own lower save counts");
	agreement_restarted(&a);
	CHECK(a.has_saved && a.saved_step == 50, "the final save stands");
}

int main(void)
{
	owners();
	full();
	swept();
	killed_at_any_moment();
	places();
	restarted();
	return unit_end();
}
