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
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/task/board.h"
#include "agent/task/board_place.h"
#include "base/file.h"
#include "proto/agreement/agreement.h"
#include "unit.h"

static char parent[] = "/tmp/unit-board-XXXXXX"; /* a place for boards, empty between the tests */

static const char *path_of(const char *directory, const char *name)
{
	static char path[4400];
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return path;
}

static bool make(struct board *board, const char *where, pid_t owner)
{
	return board_create(board, where, owner, NULL, NULL) == STATUS_OK;
}

static void owners(void)
{
	static const struct {
		const char *line;
		bool known;
	} rows[] = {{"", false}, {"12 34", false}, {"12 345\n", true}, {"12\n", true}};
	struct board board;
	struct board_owner owner;
	TEST("who trains: only a whole line says it, a process and perhaps its start")
	{
		CHECK(make(&board, parent, getpid()));
		CHECK_EQ(board_read_owner(&board, &owner), STATUS_NO);
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			const char *path = path_of(board.path, "owner");
			CHECK(file_write_whole(path, rows[i].line, strlen(rows[i].line), 0600,
				      false, NULL) == STATUS_OK);
			owner = (struct board_owner){{0}};
			CHECK(rows[i].known ? board_read_owner(&board, &owner) == STATUS_OK &&
						      !strcmp(owner.line, rows[i].line)
					    : board_read_owner(&board, &owner) == STATUS_NO,
				"\"%s\"", rows[i].line);
		}
		board_release(&board, true);
	}
}

/* A filesystem of 64 KiB that gets full after the board was made on it. */
static void fill(const char *path)
{
	static const char zeros[4096];
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
	while (write(fd, zeros, sizeof(zeros)) > 0)
		;
	CHECK(errno == ENOSPC);
	close(fd);
}

static bool has_room(const char *path, size_t bytes)
{
	static const char zeros[64];
	int fd = open(path, O_WRONLY);
	bool written = write(fd, zeros, bytes) == (ssize_t)bytes;
	close(fd);
	return written;
}

static void full(void)
{
	static const struct agreement_hold holds[] = {{.order = ORDER_WAIT},
		{.order = ORDER_SAVE, .step = 100000}, {.order = ORDER_RUN},
		{.order = ORDER_EXIT, .step = UINT64_C(1) << 60},
		{.order = ORDER_LEAVE, .code = 42}};
	struct board board, second;
	struct agreement_hold told;
	if (mount("none", parent, "tmpfs", 0, "size=64k,mode=700") < 0) {
		printf("# no filesystem of our own to fill: not root\n");
		return;
	}
	TEST("on a filesystem that is full, every order is told, and the training has room")
	{
		CHECK(make(&board, parent, getpid()));
		fill(path_of(parent, "filler"));
		for (size_t i = 0; i < 2 * sizeof(holds) / sizeof(holds[0]); i++) {
			const struct agreement_hold *hold =
				&holds[i % (sizeof(holds) / sizeof(holds[0]))];
			CHECK(board_tell(&board, hold, NULL) == STATUS_OK &&
				board_told(&board, &told, NULL, NULL) == STATUS_OK &&
				board_same_hold(hold, &told));
		}
		CHECK(has_room(path_of(board.path, "step"), 42));
		CHECK(has_room(path_of(board.path, "saved"), 21));
		/* A process that follows empties it. */
		CHECK(truncate(path_of(board.path, "saved"), 0) == 0);
		board_make_room(&board);
		fill(path_of(parent, "filler"));
		CHECK(has_room(path_of(board.path, "saved"), 21));
		struct error err;
		CHECK_EQ(board_create(&second, parent, getpid(), NULL, &err), STATUS_TEMPORARY);
		CHECK(!board_vanished(&board));
		board_release(&board, true);
	}
	unit_begin(NULL);
	umount(parent);
}

static bool is_there(const char *name)
{
	return access(path_of(parent, name), F_OK) == 0;
}

/* What an agent that is killed leaves behind; its name. */
static void leave_one(char name[64], bool ranks)
{
	int ends[2];
	CHECK(pipe(ends) == 0);
	pid_t pid = fork();
	if (pid == 0) {
		struct board board, rank;
		if (!make(&board, parent, getpid()) ||
			(ranks && board_create_rank(&rank, board.path, 0, getpid(), NULL) !=
					  STATUS_OK))
			_exit(1);
		const char *base = strrchr(board.path, '/') + 1;
		(void)!write(ends[1], base, strlen(base) + 1);
		raise(SIGKILL);
	}
	CHECK(read(ends[0], name, 64) > 0);
	close(ends[0]);
	close(ends[1]);
	waitpid(pid, NULL, 0);
}

static void swept(void)
{
	struct board living, rank, script, next;
	char first[64], second[64], third[64], away[128];
	TEST("the boards of killed agents go when the next one is made, and no others")
	{
		CHECK(make(&living, parent, getpid()));
		CHECK(board_create_rank(&rank, living.path, 0, getpid(), NULL) == STATUS_OK);
		CHECK(make(&script, parent, getppid()));
		CHECK(mkdir(path_of(parent, "preempt-board-mine"), 0700) == 0);
		/* As of an agent on another machine. */
		leave_one(third, false);
		snprintf(away, sizeof(away), "%.100s", path_of(parent, third));
		CHECK(file_write_whole(path_of(away, "boot"), "01234567", 8, 0600, false, NULL) ==
			STATUS_OK);
		leave_one(first, false);
		CHECK(is_there(first));
		leave_one(second, true);
		CHECK(!is_there(first) && is_there(second));
		CHECK(make(&next, parent, getpid()));
		CHECK(!is_there(second), "with its ranks");
		CHECK(!board_vanished(&living) && !board_vanished(&rank) &&
			!board_vanished(&script));
		CHECK(is_there("preempt-board-mine") && is_there(third));
		CHECK(rmdir(path_of(parent, "preempt-board-mine")) == 0);
		CHECK(file_remove_tree(away, NULL) == STATUS_OK);
		board_release(&rank, true);
		board_release(&living, true);
		board_release(&script, true);
		board_release(&next, true);
	}
}

static void places(void)
{
	static const struct {
		struct board_signs signs;
		const char *place, *what;
	} rows[] = {
		{{.runtime = "/run/user/1000", .shared_memory = true, .temporary = "/scratch"},
			"/run/user/1000", "no logind"},
		{{.runtime = "/run/user/1000",
			 .shared_memory = true,
			 .temporary = "/scratch",
			 .logout = true},
			"/scratch", "a logout would empty both"},
		{{.runtime = "/run/user/1000",
			 .shared_memory = true,
			 .temporary = "",
			 .logout = true},
			"/tmp", "without TMPDIR"},
		{{.runtime = "/job/boards", .shared_memory = true, .temporary = "", .logout = true},
			"/job/boards", "a place that the user chose"},
		{{.shared_memory = true}, "/dev/shm", "memory, in a container"},
		{{.shared_memory = false}, "/tmp", "nothing better"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		CHECK(!strcmp(board_choose_place(&rows[i].signs), rows[i].place), "%s",
			rows[i].what);
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
	if (!mkdtemp(parent))
		return 1;
	owners();
	full();
	swept();
	unit_begin(NULL);
	places();
	restarted();
	rmdir(parent);
	return unit_end();
}
