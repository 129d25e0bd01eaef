/* SPDX-License-Identifier: MIT */
/*
 * One task in the agent: its command, its board, its agreement. The agent's loop tells it what
 * happens and lets it carry out what the agreement wants. Private to lib/agent.
 */
#ifndef AGENT_TASK_AGENT_TASK_H
#define AGENT_TASK_AGENT_TASK_H

#include "agent/agent.h"
#include "agent/children/hook.h"
#include "agent/children/stderr_relay.h"
#include "agent/pulse/pulse.h"
#include "agent/store_thread.h"
#include "agent/task/board.h"
#include "agent/task/step_interval.h"
#include "base/process/reaper.h"
#include "base/process/tree.h"
#include "live/progress.h"
#include "proto/view.h"

/* A command that was started; with --ranks several tasks share one. */
struct command {
	struct subprocess process;
	bool foreign; /* another program has started it, and ends it when the board says so */
	bool ending;  /* it was asked to end */
	int64_t end_not_before; /* until when a signal-only program may save; 0: it was not told to
				   save */
	/* What the signal of --on-notice would have done when its processes were last looked at. */
	struct tree_process *signalled;
	size_t signalled_count;
	int64_t signal_again;  /* when to look again for processes that ignored it then */
	struct hook on_notice; /* what --on-notice runs */
	struct hook done_if;   /* what --done-if runs, after the command has ended */
	int64_t ended_at;
	bool root_found; /* a peer was declared dead because its agent is gone: it failed first */
	bool told;	 /* the agreements of its tasks know that it has ended */
	char line[STDERR_RELAY_LINE]; /* of its stderr; says best why it failed */
};

struct agent_task {
	uint64_t number;
	struct agreement agreement;
	struct agreement_config config;
	struct board board;
	int64_t hold_written; /* when an earlier preempt-ack wrote the order to save, ms UTC; 0:
				 none did */
	store_revision deadline_kept; /* revision of the key DEADLINE, as noted on the board */
	struct board_owner owner;     /* the training process, as last seen; "": not yet */
	struct command *command;
	bool told_to_leave; /* on its board, because the command has to end */
	bool finished;
	int code;
	bool has_complete; /* a new complete checkpoint is known, of complete_step */
	uint64_t complete_step;
	/* How long steps and saves take. */
	struct step_interval interval;
	int64_t looked;	      /* when the board's step was read last, */
	int64_t step_written; /* and when it was written, by the board's clock */
	int64_t save_time;    /* of the last save, ms */
	uint64_t saves;	      /* how many there were, */
	int64_t saves_time;   /* and their time in all, ms */
	uint64_t said_saved;  /* the last round whose save was reported */
	bool said_lost, said_failing, said_own_code;
	struct progress progress;
	bool hung; /* it was reported that the training hangs */
};

/* The last search for a checkpoint that is newer than the one the attempt began from. */
struct newer_search {
	int64_t began; /* 0: there was none */
	enum status status;
	struct agent_checkpoint found;
	struct error error;
};

/* What the tasks share. */
struct group {
	const struct agent_options *options;
	struct store_thread *store_thread;
	const struct reaper *reaper;
	struct pulse *pulse; /* NULL: no heartbeat */
	struct view view;
	struct agreement_alone alone; /* what the tasks agree on without the store */
	struct notice notice;	      /* this machine's, if noticed */
	bool noticed;
	bool one_stage; /* preempt-ack without --serve: this process leaves before its task does */
	int64_t own_deadline;	  /* this machine's */
	bool shared[WRITE_KINDS]; /* a write of this kind, which any task may do for all, is under
				     way */
	unsigned deaths_asked;	  /* writes of deaths under way */
	bool deaths_unseen;	  /* read everything before deaths are written again */
	int64_t looked_at;	  /* when the store was last read */
	struct newer_search newer;
};

/* The deadline that counts here: that of the claim, or this machine's if it is earlier. */
int64_t group_deadline(const struct group *group);

void agent_task_init(struct agent_task *task, struct group *group, uint64_t number,
	struct command *command, int64_t now);
void agent_task_release(struct agent_task *task);

/*
 * Note the deadline on a board on which several programs act one after the other. If an earlier
 * program has noted one, use that one.
 */
void agent_task_keep_deadline(struct agent_task *task, struct view *view);
/* Read `saved` on the board, in case the training process has written it. */
void agent_task_read_saved(struct agent_task *task, int64_t now);
/* About once a second: read how far the training is. */
void agent_task_sample(struct agent_task *task, int64_t now);

/*
 * Carry out what the agreement wants now. *wake becomes the time of the next call, if that is
 * earlier. *wants gets the times at which to ask the store, if they are earlier.
 */
void agent_task_advance(struct agent_task *task, struct group *group, int64_t now, int64_t *wake,
	struct store_wants *wants);
/*
 * Build the writes of a finished task that the store has not taken: its error if it failed, then
 * its goodbye. Returns how many were built, at most 2; release each with write_release.
 */
size_t agent_task_unwritten(
	struct agent_task *task, const struct group *group, struct write unwritten[2]);

#endif
