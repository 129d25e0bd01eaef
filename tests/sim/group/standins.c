/* SPDX-License-Identifier: MIT */
/*
 * In place of base/process/terminal.c, agent/children/stderr_relay.c and agent/pulse/stream.c,
 * whose real work lies outside of the world, and of the parts of agent/task/board.c and
 * base/process/subprocess.c that need nothing of a world. tests/bench/crowd is linked with it, too.
 */
#include "agent/children/stderr_relay.h"
#include "agent/pulse/stream.h"
#include "agent/task/board.h"
#include "base/clock.h"
#include "base/process/subprocess.h"
#include "base/process/terminal.h"

#include <stdlib.h>

#include "../nothing.h"

/* ---- No terminal, no stderr, no second stream of beats ---- */

void terminal_open(struct terminal *terminal)
{
	terminal->descriptor = -1;
}

NOTHING(terminal_close, struct terminal *)
ANSWERS(false, bool, terminal_is_ours, const struct terminal *)
ANSWERS(false, bool, terminal_is_of, const struct terminal *, pid_t)
ANSWERS(false, bool, terminal_is_gone, const struct terminal *)
ANSWERS(false, bool, terminal_is_used, const struct terminal *)
ANSWERS(false, bool, terminal_lend, const struct terminal *, pid_t)
NOTHING(terminal_take_back, const struct terminal *, pid_t)
ANSWERS(false, bool, terminal_stop, int)

enum status stderr_relay_start(struct stderr_relay **relay, size_t count, struct error *err)
{
	(void)count, (void)err;
	*relay = NULL;
	return STATUS_OK;
}

ANSWERS(0, int, stderr_relay_input, const struct stderr_relay *, size_t)
NOTHING(stderr_relay_started, struct stderr_relay *, size_t)

void stderr_relay_line(
	struct stderr_relay *relay, size_t index, int64_t patience, char line[STDERR_RELAY_LINE])
{
	(void)relay, (void)index, (void)patience;
	*line = '\0';
}

NOTHING(stderr_relay_stop, struct stderr_relay *)

enum status stream_claim(const char *store, const struct attempt *attempt, uint64_t task,
	int *descriptor, struct error *err)
{
	(void)store, (void)attempt, (void)task, (void)err;
	*descriptor = -1;
	return STATUS_OK;
}

/* ---- Boards: each world makes them in one way ---- */

enum status board_create_rank(
	struct board *board, const char *directory, uint64_t rank, pid_t agent, struct error *err)
{
	(void)directory, (void)rank;
	return board_create(board, NULL, agent, NULL, err);
}

enum status board_open(struct board *board, const char *path, pid_t agent, struct error *err)
{
	(void)path;
	return board_create(board, NULL, agent, NULL, err);
}

void board_release(struct board *board, bool remove)
{
	(void)remove;
	free(board->path);
	*board = (struct board){.directory = -1};
}

/* ---- What no board here is asked for ---- */

bool board_same_hold(const struct agreement_hold *a, const struct agreement_hold *b)
{
	return a->order == b->order && a->step == b->step && a->code == b->code;
}

NOTHING(board_remove_joined, const char *)

enum status board_told(
	const struct board *board, struct agreement_hold *hold, int64_t *written, struct error *err)
{
	(void)board, (void)hold, (void)written;
	return error_set(err, STATUS_NO, "no board here has that");
}

NOTHING(board_keep_deadline, const struct board *, struct board_deadline *)
NOTHING(board_keep_error, const char *, const char *)

void board_read_error(const char *path, char *line, size_t size)
{
	(void)path, (void)size;
	*line = '\0';
}

enum status board_put_notice(const char *path, const struct notice *notice, struct error *err)
{
	(void)path, (void)notice;
	return error_set(err, STATUS_NO, "no board here has that");
}

enum status board_read_notice(const char *path, struct notice *notice, struct error *err)
{
	(void)path, (void)notice;
	return error_set(err, STATUS_NO, "no board here has that");
}

ANSWERS(STATUS_NO, enum status, board_read_owner, const struct board *, struct board_owner *)
NOTHING(board_make_room, const struct board *)

/*
 * ---- Processes, by what each simulator has in place of subprocess_check and subprocess_reap ----
 */

enum subprocess_state subprocess_finish(struct subprocess *child, int64_t now)
{
	return subprocess_check(child, now);
}

void subprocess_end(struct subprocess *child, int number, int64_t kill_at)
{
	subprocess_signal(child, number);
	child->limit = child->end.due = clock_earlier(child->limit, kill_at);
}

void subprocess_release(struct subprocess *child)
{
	subprocess_signal(child, SIGKILL);
	if (child->pid)
		subprocess_reap(child, false);
}

NOTHING(subprocess_reap_others, const struct reaper *)
ANSWERS(STATUS_NO, enum status, subprocess_run, struct subprocess *,
	const struct subprocess_options *, struct error *)
