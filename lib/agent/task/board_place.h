/* SPDX-License-Identifier: MIT */
/* Where boards are made, and the end of those whose agent was killed. Private to lib/agent. */
#ifndef AGENT_TASK_BOARD_PLACE_H
#define AGENT_TASK_BOARD_PLACE_H

#include <stdbool.h>

#define BOARD_NAME "preempt-board-"

/* What decides on the place. */
struct board_signs {
	const char *runtime;   /* $XDG_RUNTIME_DIR, if it exists, is ours and writable; else NULL */
	const char *temporary; /* $TMPDIR; may be NULL */
	bool shared_memory;    /* /dev/shm is there, and writable */
	bool logout;	       /* this machine clears up after a user who logs out */
};

/*
 * A directory that lives as long as the job: $XDG_RUNTIME_DIR, else /dev/shm, else $TMPDIR, else
 * /tmp; not the first two where a logout empties them (systemd-logind does /run/user/UID, and with
 * RemoveIPC all that the user has in /dev/shm), while jobs under nohup, tmux or Slurm go on.
 */
const char *board_choose_place(const struct board_signs *signs);
const char *board_place(void);

/*
 * Remove the boards of ours below parent whose agent is gone: nobody has their fifo `alive` open.
 * Others are left, also those that a script made.
 */
void board_sweep(const char *parent);

#endif
