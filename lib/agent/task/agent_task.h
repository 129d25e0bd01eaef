/* SPDX-License-Identifier: MIT */
/*
 * One task in the agent: its command, its board, its agreement. The agent's loop feeds it with what
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
#include "agent/task/grace_account.h"
#include "agent/task/step_interval.h"
#include "base/process/reaper.h"
#include "proto/view.h"

/* A command that was started; with --ranks several tasks share one. */
struct command {
	struct subprocess process;
	bool foreign;	 /* another program has started it, and ends it when the board says so */
	bool ending;	 /* it was asked to end */
	int64_t kill_at; /* KILL then */
	int64_t end_not_before; /* a program that saves on a signal has until then */
	struct hook on_notice;	/* what --on-notice runs */
	int64_t ended_at;
	bool root_found; /* a peer is gone, and that was said */
	bool told;	 /* the agreement knows that it has ended */
	char line[STDERR_RELAY_LINE];
};

struct agent_task {
	uint64_t number;
	struct agreement agreement;
	struct agreement_config config;
	struct board board;
	int64_t hold_written; /* of an order to save that an earlier program told; 0: none */
	store_revision
		deadline_kept;	  /* of the key, as the board has it (agent_task_keep_deadline) */
	struct board_owner owner; /* the training process, as last seen; "": not yet */
	struct command *command;
	struct hook done_if; /* what --done-if runs, after the command has ended */
	bool finished;
	int code;
	bool has_complete; /* a complete checkpoint is known, with code 42: */
	uint64_t complete_step;
	/* How long steps and saves take. */
	struct step_interval interval;
	int64_t looked;		      /* when the board's step was read last */
	struct grace_account account; /* of the grace period */
	int64_t save_time;	      /* of the last save, ms */
	uint64_t saves;		      /* so many, */
	int64_t saves_time;	      /* ms in all */
	uint64_t said_saved;
	bool said_lost, said_failing, said_own_code;
	struct progress progress;
	bool hung; /* said so */
};

/* What the tasks share. */
struct group {
	const struct agent_options *options;
	struct store_thread *store_thread;
	const struct reaper *reaper;
	struct pulse *pulse; /* NULL: no heartbeat */
	struct progress_rules progress;
	struct view view;
	struct agreement_alone alone; /* what the tasks agree on without the store */
	struct notice notice;	      /* our own, when noticed */
	bool noticed;
	bool one_stage; /* preempt-ack without --serve: this process leaves before its task does */
	int64_t own_deadline;
	bool shared[WRITE_KINDS]; /* one that is the same from whichever task is under way */
	unsigned deaths_asked;	  /* writes of deaths that are under way */
	bool deaths_unseen;	  /* writes of deaths have ended since everything was read */
	int64_t looked_at;	  /* when the store was looked at last */
};

void agent_task_init(struct agent_task *task, struct group *group, uint64_t number,
	struct command *command, int64_t now);
void agent_task_release(struct agent_task *task);

/*
 * For a board on which several programs act one after the other: what is left until the deadline
 * counts from when the first of them read it.
 */
void agent_task_keep_deadline(struct agent_task *task, struct view *view);
/* saved was written, or may have been. */
void agent_task_read_saved(struct agent_task *task, int64_t now);
/* About once a second: how far is it? */
void agent_task_sample(struct agent_task *task, int64_t now);

/*
 * Carry out what is wanted now. *wake becomes the earlier of itself and when this wants to be
 * called again; *wants likewise for what is to be asked of the store.
 */
void agent_task_advance(struct agent_task *task, struct group *group, int64_t now, int64_t *wake,
	struct store_wants *wants);
/*
 * Build the writes of a finished task that the store has not taken: its error if it failed, then
 * its goodbye. Returns how many were built, at most 2; release each with write_release.
 */
size_t agent_task_unwritten(
	struct agent_task *task, const struct group *group, struct write unwritten[2]);
/* What the grace period, if there is one, is spent on now. */
void agent_task_account_grace(struct agent_task *task, const struct group *group, int64_t now);

#endif
