/* SPDX-License-Identifier: MIT */
/* Where boards are made, and how those of killed agents are removed. Private to lib/agent. */
#ifndef AGENT_TASK_BOARD_PLACE_H
#define AGENT_TASK_BOARD_PLACE_H

#include <stdbool.h>

#define BOARD_NAME "preempt-board-"
/* The file `joined`, for printf; BOARD_JOINED_FIELDS for scanf: see struct process_identity. */
#define BOARD_JOINED	    "%s %llu %d %llu %llu"
#define BOARD_JOINED_FIELDS "%36s %llu %d %llu %llu"

/* What the choice depends on. */
struct board_signs {
	const char *runtime;   /* $XDG_RUNTIME_DIR, if it exists, is ours, writable, and has room;
				  else NULL */
	const char *temporary; /* $TMPDIR; may be NULL */
	bool shared_memory;    /* /dev/shm is there, writable, and has room */
	bool logout;	       /* a logout empties $XDG_RUNTIME_DIR and /dev/shm */
};

/*
 * A directory that lives as long as the job: $XDG_RUNTIME_DIR, else /dev/shm, else $TMPDIR, else
 * /tmp. The first two are left out where a logout empties them, because jobs under nohup, tmux or
 * Slurm go on after it: systemd-logind empties /run/user/UID and, with RemoveIPC, /dev/shm.
 */
const char *board_choose_place(const struct board_signs *signs);
const char *board_place(void);

/*
 * Remove this user's boards below parent whose agent is gone: no process has their fifo `alive`
 * open, or the process that joined (file `joined`) is surely gone. All other boards stay, also
 * those that a script made, and those of other machines and earlier boots.
 */
void board_sweep(const char *parent);

#endif
