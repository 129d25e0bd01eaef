/* SPDX-License-Identifier: MIT
 *
 * board.h: a task's board as its training process sees it: the rules. preempt.c (the library) adds
 * locks, preempt-step (the program) a memory, and both decide how the process leaves.
 * Not installed. preempt.sh and preempt.py follow the same rules, and pass the same tests.
 *
 * A board is a directory with small text files:
 *	agent	"PID\n" of the agent; written once, before the training process starts
 *	owner	"PID [STARTTIME]\n" of the one process that may write; made by the first call. One
 *		that takes over from one that is gone makes owner.1, owner.2, ... (O_EXCL, so that
 *		one of several wins, and never removed), empties step, saved, section and answered
 *		(it may have gone back to a checkpoint), and then rewrites `owner`
 *	step	"%020d %020d\n": finished steps, next boundary; overwritten in place in one write
 *	saved	"%020d\n": the step whose checkpoint is complete; the same way
 *	section	"%-31s\n": what the training is at, a name; the same way
 *	hold	by the agent, whole or absent, one line (C is 1 to 255):
 *		wait PID | save S [PID] | exit S [PID] | leave C
 *	hold.0, hold.1	the next text of hold, by the agent
 *	pause	a fifo by the agent, to which no process writes: bash sleeps on it without a fork
 *	alive	a fifo of which the agent has the only writing end. A client in C or Python asks the
 *		kernel to send KILL to its process group when that end is closed
 *	answered, traps.PID	private to preempt-step and to preempt.sh
 *
 * A struct preempt_board is zero-initialised by its caller, who sets `name`, and is released with
 * preempt_board_release (legal on a zeroed one). Nothing is allocated.
 * Functions that give an answer return BOARD_RUN, BOARD_SAVE or BOARD_LEAVE + code; a "leave" that
 * the agent did not ask for has been explained on stderr in one line.
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

/* Answers: those of preempt_ask. */
#define BOARD_RUN   0
#define BOARD_SAVE  PREEMPT_SAVE
#define BOARD_LEAVE PREEMPT_LEAVE

/* Step numbers have at most 18 digits. */
#define BOARD_STEP_MAX UINT64_C(999999999999999999)

/* The most characters that the name of a section may have. */
#define BOARD_SECTION_MAX 31

/* The one warning of a process without a board. */
#define BOARD_NONE "PREEMPT_DIR is not set: no agent, so nothing will ask this task to save"

#define BOARD_UNKNOWN ((struct timespec){.tv_nsec = -1})

/* What has been answered, as "step + 1", so that 0 is "nothing yet". */
struct board_answers {
	uint64_t any;	/* greatest step that the caller was asked to save */
	uint64_t final; /* the same, of `exit` only */
	uint64_t at; /* the boundary at which `final` was answered: beyond it after an overshoot */
};

struct board_process {
	pid_t pid;	  /* 0: none known */
	uint64_t started; /* clock ticks after boot, from /proc/PID/stat; 0: unknown */
};

struct preempt_board {
	const char *name;    /* the prefix of messages: "preempt", or the program's name */
	char path[PATH_MAX]; /* absolute; "" while not attached */
	char hold[PATH_MAX]; /* path of hold */
	int dir, step;	     /* open while attached; reopened where the program closed them */
	int alive; /* while it is open, the kernel kills this process when the agent dies; 0: none
		    */
	dev_t dev; /* what dir is, to tell */
	ino_t ino;
	bool dated; /* the directory's time shows reliably whether a file was made in it */
	struct timespec unheld; /* that time, when there was no hold */
	uint64_t last;		/* finished steps as last written by this owner */
	struct board_answers answers;
	struct board_process agent;
};

enum hold_word { HOLD_NONE, HOLD_WAIT, HOLD_SAVE, HOLD_EXIT, HOLD_LEAVE };

struct board_hold {
	enum hold_word word;
	uint64_t number; /* of save, exit: the step; of leave: the code */
	pid_t watch;	 /* 0: no process */
	bool garbled;	 /* then it is a wait without a process to watch */
	char line[96];
};

/* attach.c: finds the board of this environment, checks that its agent can be seen, takes it for
 * the process `owner` (this one, or the one this one speaks for), ignores the notice signals. 1:
 * attached; 0: no PREEMPT_DIR (nothing said); else BOARD_LEAVE + code. */
int preempt_board_attach(struct preempt_board *board, pid_t owner);
void preempt_board_release(struct preempt_board *board);
/* Opens directory and step (O_CREAT or 0), for the first time or again. False: with errno. */
bool preempt_board_open(struct preempt_board *board, int how);

/* board.c. One caller at a time for step and answer; saved and barrier change nothing of the
 * struct, nor does section, which writes it. step: writes step, then looks whether hold is there.
 * If so, answer waits as long as hold says. saved, barrier: the same for a finished save; barrier
 * is the exit barrier. */
int preempt_board_step(struct preempt_board *board, uint64_t finished, uint64_t next, bool *held);
int preempt_board_answer(struct preempt_board *board, uint64_t finished);
int preempt_board_saved(const struct preempt_board *board, uint64_t step, bool *held);
int preempt_board_section(const struct preempt_board *board, const char *name);
int preempt_board_barrier(const struct preempt_board *board, uint64_t step);

/* board_files.c: what the board's parts have in common. */

/* "NAME: ...\n" on stderr in one write; control characters are replaced. */
void preempt_board_say(const char *name, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* PATH/FILE, or false when that is too long. */
bool preempt_board_path(const struct preempt_board *board, const char *file, char out[PATH_MAX]);
/* The text of a small file, terminated; -1 with errno. Longer ones are cut. */
ssize_t preempt_board_read(const char *path, char *text, size_t size);
/* A whole number from *text on, at most max: true, and *text is behind it. Without leading zeros,
 * unless padded. */
bool preempt_board_number(const char **text, bool padded, uint64_t max, uint64_t *value);
/* What hold asks for. True: line, the text of hold, is one of the lines above, and the rest is
 * filled. False: it is not, and word and watch are not to be used. */
bool preempt_board_hold(struct board_hold *hold);
/* The other small files, whose text is line. False: it is not one, and nothing is changed. */
bool preempt_board_agent(const char *line, pid_t *pid);
bool preempt_board_owner(const char *line, struct board_process *owner); /* pid 0: no process */
bool preempt_board_last(const char *line, uint64_t *finished);		 /* of step */
bool preempt_board_answered(const char *line, struct board_answers *answers);
/* The process as /proc shows it, a zombie counting as gone; started is 0 where /proc is not there.
 */
bool preempt_board_alive(struct board_process process);
uint64_t preempt_board_started(pid_t pid);

#endif
