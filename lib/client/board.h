/* SPDX-License-Identifier: MIT
 *
 * board.h: the rules by which a training process uses the board of its task. preempt.c (the
 * library) adds locks, preempt-step (the program) keeps the answers in a file, and both decide how
 * the process leaves.
 * Not installed. preempt.sh and preempt.py follow the same rules, and pass the same tests.
 *
 * A board is a directory with small text files:
 *	agent	"PID\n" of the agent; written once, before the training process starts
 *	owner	"PID [STARTTIME]\n" of the one process that may write; made by the first call. A
 *		process that takes over from one that is gone makes owner.1, owner.2, ... (with
 *		O_EXCL, so that only one succeeds; never removed), empties step, saved and
 *		answered (it may have gone back to a checkpoint), and then rewrites `owner`
 *	step	"%020d %020d\n": finished steps, next boundary; overwritten in place in one write
 *	saved	"%020d\n": the step whose checkpoint is complete; written like step
 *	hold	absent, or one whole line of the agent (C: 1 to 255; a wait ends if PID is gone):
 *		wait PID | save S [PID] | exit S [PID] | leave C
 *	hold.0, hold.1	the agent's next text of hold, before it is renamed
 *	pause	a fifo to which no process writes: bash reads it with a timeout to sleep
 *	alive	a fifo whose only writing end the agent has. A client in C or Python asks the
 *		kernel to send KILL to its process group when that end is closed
 *	boot	the boot id of the agent's machine: only agents there may remove the board
 *	answered, traps.PID	private to preempt-step and to preempt.sh
 *
 * Zero a struct preempt_board, set its `name`, and at the end release it with preempt_board_release
 * (which may also be called for a zeroed one). Nothing is allocated.
 * Functions that give an answer return BOARD_RUN, BOARD_SAVE or BOARD_LEAVE + code. If it is not
 * the agent that asked to leave, the reason was printed on stderr in one line.
 */
#ifndef CLIENT_BOARD_H
#define CLIENT_BOARD_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "client/preempt.h"

/* The answers of preempt_ask. */
#define BOARD_RUN   0
#define BOARD_SAVE  PREEMPT_SAVE
#define BOARD_LEAVE PREEMPT_LEAVE

/* Step numbers have at most 18 digits. */
#define BOARD_STEP_MAX UINT64_C(999999999999999999)

/* The warning that a process without a board prints once. */
#define BOARD_NONE "PREEMPT_DIR is not set: no agent, so nothing will ask this task to save"

#define BOARD_UNKNOWN ((struct timespec){.tv_nsec = -1})

/* What has been answered, each as step + 1, so that 0 means "nothing yet". */
struct board_answers {
	uint64_t any;	/* the greatest step that the caller was asked to save */
	uint64_t final; /* the greatest that an `exit` asked to save */
	uint64_t at;	/* the boundary of that answer: the first one at or after `final` */
};

struct board_process {
	pid_t pid;	  /* 0: none known */
	uint64_t started; /* clock ticks after boot, from /proc/PID/stat; 0: unknown */
};

struct preempt_board {
	const char *name;    /* the prefix of messages: "preempt", or the program's name */
	char path[PATH_MAX]; /* absolute; "" while not attached */
	char hold[PATH_MAX]; /* path of hold */
	int dir, step;	     /* open while attached; reopened if the program has closed them */
	int alive;	     /* the descriptor of the fifo alive; 0: it is not open */
	dev_t dev;	     /* with ino: the file that dir was opened on */
	ino_t ino;
	bool dated; /* the directory's time shows reliably whether a file was made in it */
	struct timespec unheld; /* the directory's time when there was no hold; or BOARD_UNKNOWN */
	uint64_t last;		/* finished steps as last written by this owner */
	uint64_t next;		/* the next boundary, written with it */
	struct board_answers answers;
	struct board_process agent;
};

enum hold_word { HOLD_NONE, HOLD_WAIT, HOLD_SAVE, HOLD_EXIT, HOLD_LEAVE };

struct board_hold {
	enum hold_word word;
	uint64_t number; /* of save, exit: the step; of leave: the code */
	pid_t watch;	 /* 0: no process */
	bool garbled;	 /* it cannot be parsed: treated as a wait without a process to watch */
	char line[96];
};

/* attach.c: find the board of this environment, check that its agent can be seen, make the
 * process `owner` (this one, or the one that it acts for) its owner, ignore the notice signals. 1:
 * attached; 0: PREEMPT_DIR is not set (nothing is printed); else BOARD_LEAVE + code. */
int preempt_board_attach(struct preempt_board *board, pid_t owner);

/* While the program saves, ignore the notice signals: the commands that it starts do so, too. */
void preempt_board_shelter(bool saving);
void preempt_board_release(struct preempt_board *board);
/* Open (again) the directory and the file step. how: O_CREAT or 0. False: see errno. */
bool preempt_board_open(struct preempt_board *board, int how);

/* board.c. Only one thread at a time may call step and answer; the other functions do not change
 * the struct. step: write the file step, and set held if hold exists; then, if held is set, call
 * answer, which waits as long as hold asks. saved: the same for a finished save; then, if held is
 * set, call barrier, which waits until all tasks have saved. */
int preempt_board_step(struct preempt_board *board, uint64_t finished, uint64_t next, bool *held);
int preempt_board_answer(struct preempt_board *board, uint64_t finished);
int preempt_board_saved(const struct preempt_board *board, uint64_t step, bool *held);
int preempt_board_barrier(const struct preempt_board *board, uint64_t step);

/* board_files.c: shared by board.c and attach.c. */

/* "NAME: ...\n" on stderr in one write; control characters are replaced. */
void preempt_board_say(const char *name, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Set out to the path BOARD/FILE. False: it is too long. */
bool preempt_board_path(const struct preempt_board *board, const char *file, char out[PATH_MAX]);
/* Read a small file into text, cut to size, with a NUL. Returns its length; -1: see errno. */
ssize_t preempt_board_read(const char *path, char *text, size_t size);
/* Parse a whole number at *text, at most max, and move *text behind it. padded: it may have leading
 * zeros. False: there is none. */
bool preempt_board_number(const char **text, bool padded, uint64_t max, uint64_t *value);
/* Parse hold->line, the text of hold, and fill the rest. False: it is none of the lines above, and
 * word and watch have no meaning. */
bool preempt_board_hold(struct board_hold *hold);
/* Parse the text of another small file. False: it cannot be parsed, and nothing is changed. */
bool preempt_board_agent(const char *line, pid_t *pid);
bool preempt_board_owner(const char *line, struct board_process *owner); /* pid 0: no process */
bool preempt_board_last(const char *line, uint64_t *finished);		 /* of step */
bool preempt_board_answered(const char *line, struct board_answers *answers);
/* By /proc: whether a process lives (a zombie does not), and when it started (0: no /proc). */
bool preempt_board_alive(struct board_process process);
uint64_t preempt_board_started(pid_t pid);

#endif
