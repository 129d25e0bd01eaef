/* SPDX-License-Identifier: MIT */
/*
 * The agent's side of a board (docs/design.md, section 3): a directory of this machine through
 * which agent and training process talk. Each start of the command gets a new one.
 */
#ifndef AGENT_TASK_BOARD_H
#define AGENT_TASK_BOARD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/process/reaper.h"
#include "notice/notice.h"
#include "proto/agreement/agreement.h"

struct board {
	char *path;
	int directory; /* descriptor */
	pid_t agent;   /* the training process stops waiting when this process dies */
	int alive;     /* our end of the fifo `alive`; 0: this process is not the board's agent */
};

/*
 * Make a board below parent (NULL: board_place), and remove the boards there whose agents were
 * killed on this machine. The reaper (NULL: none) removes the new one if this process is killed. A
 * board has mode 0700 and contains agent, step, saved, spare files for hold and the fifo
 * pause; if agent is this process, also boot and the fifo alive. When no process has alive open for
 * writing any more, the kernel ends the clients that asked for that.
 */
enum status board_create(struct board *board, const char *parent, pid_t agent,
	const struct reaper *reaper, struct error *err);
/* The board of a rank below a directory that board_create made: "0", "1", ... */
enum status board_create_rank(
	struct board *board, const char *directory, uint64_t rank, pid_t agent, struct error *err);
/* Open a board that another process has made, for the small programs. */
enum status board_open(struct board *board, const char *path, pid_t agent, struct error *err);
/* Close it; with remove, delete the directory, too. */
void board_release(struct board *board, bool remove);
/*
 * Remove the board at path, if preempt-store join made it. Processes of the task that still run may
 * make files on it in that moment: it is tried for 5 s.
 */
void board_remove_joined(const char *path);

/* Write the order into the file hold (ORDER_RUN: remove the file). */
enum status board_tell(
	const struct board *board, const struct agreement_hold *hold, struct error *err);
/* Read the order from the file hold. *written: its mtime, ms UTC; 0: no such file; may be NULL. */
enum status board_told(const struct board *board, struct agreement_hold *hold, int64_t *written,
	struct error *err);

/* A deadline as it was first read here (agreement_learn_deadline). */
struct board_deadline {
	int64_t revision; /* of its key */
	int64_t earliest, latest;
	bool doubted;
};
/*
 * For the small programs: each reads the store for itself, but all must use the same deadline. If
 * an earlier program has noted one of the same revision, it replaces *known; otherwise *known is
 * noted.
 */
void board_keep_deadline(const struct board *board, struct board_deadline *known);

/*
 * The line that says best why the command of the board at path has failed. The program that ran
 * the command keeps it, and preempt-store leave reads it, cut at size; "": there is none.
 */
void board_keep_error(const char *path, const char *line);
void board_read_error(const char *path, char *line, size_t size);

/*
 * Keep a notice of this task's machine for the program that serves the board at path, which acts on
 * it also while the store does not answer. Of several, the one with the earliest deadline is kept.
 */
enum status board_put_notice(const char *path, const struct notice *notice, struct error *err);
/* STATUS_NO: there is none. */
enum status board_read_notice(const char *path, struct notice *notice, struct error *err);

bool board_same_hold(const struct agreement_hold *a, const struct agreement_hold *b);

struct board_step {
	bool started; /* the training process has called preempt_step */
	uint64_t step, next;
	int64_t written; /* mtime, ms UTC */
};
enum status board_read_step(const struct board *board, struct board_step *step, struct error *err);
/* STATUS_NO: nothing was saved yet. *written: mtime, ms UTC. */
enum status board_read_saved(
	const struct board *board, uint64_t *step, int64_t *written, struct error *err);
/*
 * The process that trains. If the training was started again below its command (torchrun
 * --max-restarts), the new process empties step and saved before it writes its line.
 * STATUS_NO: no whole line is there.
 */
struct board_owner {
	char line[64];
};
enum status board_read_owner(const struct board *board, struct board_owner *owner);
/* Allocate step and saved in advance again, after a new process has emptied them. */
void board_make_room(const struct board *board);
bool board_vanished(const struct board *board);

#endif
