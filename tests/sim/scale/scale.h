/* SPDX-License-Identifier: MIT */
/*
 * One preemption, or one normal end, of a large job: the agents of lib/agent as they are, over the
 * store in memory, and what each of them asks the store for. A light world beside ../group: no
 * faults, no invariants, no limit of 64 tasks.
 *
 * The store has one lock in the whole cluster. Each transaction and each list holds it for the same
 * time, and they get it in the order in which they ask. Beats, and the look at the count of news,
 * take no lock.
 */
#ifndef SIM_SCALE_SCALE_H
#define SIM_SCALE_SCALE_H

#include "../kernel.h"
#include "../training.h"
#include "agent/agent.h"

struct scale {
	int agents, per_agent;
	int64_t lock;		/* us that a transaction holds the lock */
	int64_t look;		/* ms, at most, until an agent hears of news */
	int64_t step;		/* ms */
	int64_t save;		/* ms */
	bool ends;		/* the training finishes: no process is noticed */
	bool all_noticed;	/* at the same time; else one agent is */
	int lost;		/* the first agents, which lose their machines at the notice */
	bool cut;		/* they keep them, and no longer reach the store */
	int64_t deadline;	/* ms from the notice on; negative: not known */
	int64_t report_timeout; /* ms */
};

enum phase {
	PHASE_JOIN,  /* until all commands are started */
	PHASE_TRAIN, /* until the notice, or until the first command has finished */
	PHASE_END,   /* until the last agent has exited */
	PHASES
};

/* What one agent asked the store for. */
struct cost {
	uint64_t writes;	 /* transactions that may write */
	uint64_t reads;		 /* lists, and transactions that only read */
	uint64_t entries, bytes; /* that were answered */
};

/* Instants, us; 0: that did not happen. */
struct moments {
	int64_t began, joined, end_began;
	int64_t decided;	/* committed */
	int64_t last_save;	/* the training has saved */
	int64_t all_saved;	/* committed */
	int64_t closed;		/* committed */
	int64_t gone;		/* the last agent has exited */
	int64_t longest_wait;	/* for the lock, from the notice on */
	int64_t last_saved_key; /* committed */
	int64_t lock_held;	/* in all, from the notice on */
	uint64_t refused;	/* calls that did not get the lock in time, in all phases */
};

struct report {
	struct moments at;
	const struct cost *cost[PHASES]; /* [agents], until the next run */
	char wrong[320];		 /* what went wrong; empty: nothing */
};

/* Run it. */
void scale_run(const struct scale *what, struct report *report);

/* ---- Inside ---- */

/* A task: its board, and its training. */
struct task {
	struct agreement_hold hold;
	bool started; /* its board says step */
	uint64_t step;
	int64_t step_at;
	bool has_saved;
	uint64_t saved;
	int64_t saved_at;
	enum training_state state;
	uint32_t epoch; /* events of an earlier state are void */
	uint64_t boundary;
	bool running, unreaped;
	int code;
};

struct node {
	struct process process;
	int agent;
	size_t boards, commands; /* so many were made and started */
	struct agent_options options;
	struct identity identity;
	int code;
};

struct world {
	const struct scale *scale;
	int tasks;
	struct task *task; /* [tasks] */
	struct node *node; /* [agents] */
	struct cost *cost[PHASES];
	enum phase phase;
	struct moments at;
	int64_t lock_free_at;
	int started, in_collective, exited; /* tasks, tasks, agents */
};
extern struct world scale_world;

enum event_kind {
	EVENT_TRAINING = KERNEL_EVENTS, /* who: the task; it goes on from its state */
	EVENT_HOLD,			/* a sleeping training sees that hold changed */
	EVENT_ENDED,			/* the agent is told that the command ended */
	EVENT_NOTICE,			/* who: the agent */
};

#define TOTAL_STEPS 25 /* of a training that finishes */

/* training.c */
void training_start(int task);
void training_end(int task, int code);
void training_event(int task);
void training_hold_changed(int task);

/* world.c */
void world_commands_started(void);
void world_command_finished(void);

#endif
