/* SPDX-License-Identifier: MIT */
/*
 * What preempt-store join, leave and close do, for scripts that compose the small programs: the
 * same as an agent does at its start and end.
 */
#ifndef COMPOSE_MEMBERSHIP_H
#define COMPOSE_MEMBERSHIP_H

#include "run/attempt.h"
#include "run/identity.h"

struct membership_request {
	const struct identity *identity;
	const char *store;	  /* URL */
	uint64_t attempt;	  /* 0: the newest, or the next one */
	pid_t agent;		  /* the process that acts for the task: the script */
	int64_t timeout;	  /* ms for all tasks to join */
	bool beatless;		  /* no process will beat for the task */
	const char *signals;	  /* the signals that are notices, for PREEMPT_SIGNALS */
	bool board;		  /* make a board */
	const char *board_parent; /* below this directory; NULL: board.h chooses */
};

/*
 * Join, wait for the others, make a board, and set the variables of a member (PREEMPT_...) in the
 * environment of this process. Fails as attempt_join and attempt_gather do, and with STATUS_NO if
 * the agent is gone. If the board cannot be made, the task leaves the attempt as one that has
 * failed. *preempted becomes true if a claim came first: leave with 42.
 */
enum status membership_join(
	const struct membership_request *request, bool *preempted, struct error *err);
/* Lines "export NAME=value" with these variables, for eval and for Slurm's TaskProlog. */
void membership_exports(struct text *exports);

struct membership_goodbye {
	uint64_t task;
	/* The exit code of the training process: 0 completed, 42 saved, 43 preempted, 44 a peer
	 * failed, any other: it failed itself. -1: not known, which is neither. */
	int code;
	const char *reason; /* why it failed, for the other tasks; NULL: the line that board has */
	const char *board; /* path of a board with a line for that (board_keep_error); NULL: none */
};
/*
 * Leave; the last task closes the attempt. *leave becomes the code to leave with: 43 if the
 * training failed after a claim, 44 if it failed because the group broke, 93 after a claim that
 * asks to stop; it is unchanged if the store cannot be asked. A task that has finished or was
 * preempted stays while others save, for five minutes at most, and until LEAVE_EARLY before the
 * deadline.
 */
enum status membership_leave(struct store *store, struct view *view,
	const struct membership_goodbye *goodbye, int *leave, struct error *err);
/*
 * The same for the task that the options and the environment name. A store that does not answer is
 * asked again for 30 s, or until the deadline of a notice that the board has. The board is removed.
 * *leave is set although the store did not answer. goodbye: its task and board are found here.
 */
enum status membership_leave_own(
	const struct membership_goodbye *goodbye, int *leave, struct error *err);

/*
 * Close an attempt of which no task runs any more, although some have not left. STATUS_NO: a task
 * runs: its process is on this machine, or it beats. Watches beats for up to HEARTBEAT_LIMIT
 * periods. With force an attempt that is not being preempted is closed without this check: tasks
 * that run leave with 44 when they see that.
 */
enum status membership_close(struct store *store, struct view *view, bool force, struct error *err);

#endif
