/* SPDX-License-Identifier: MIT */
/*
 * Find run, task, tasks and launch of this process, from options and the environment that its
 * launcher gave it. Pure: the caller passes in the signs (platform.h).
 *
 * Order for task and tasks: option; PREEMPT_TASK(S); the innermost launcher (platforms.c); else 0
 * of 1. Innermost first, because the variables of an outer launcher reach everything started below
 * it: a worker of torchrun under srun has the variables of both, but the task numbers of Slurm are
 * those of the torchruns.
 * Order for the run: option; PREEMPT_RUN; the scheduler's job; torchrun's id; a made-up name if
 * this program starts a run of one task; else the user is told to give --run.
 *
 * PREEMPT_MACHINES corrects what the launcher says about machines (several pods or slurmds on one).
 *
 * identity_find fails with STATUS_USAGE and one sentence that says what to do.
 */
#ifndef RUN_IDENTITY_H
#define RUN_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "platform/platform.h"

enum identity_need {
	IDENTITY_START, /* a task; a run of one task may get a new name (run, join) */
	IDENTITY_TASK,	/* a task of a run that has a name (ack, heartbeat, leave) */
	IDENTITY_RUN,	/* the run, and the task if this process is one (claim, status, watch) */
};

struct identity_request {
	enum identity_need need;
	const char *run;   /* of --run; NULL: not given */
	const char *nonce; /* for a made-up name: unique to this process; NULL: make none up */
	bool task_given, tasks_given;
	uint64_t task, tasks; /* of --task, --tasks */
	/*
	 * Of -n or --ranks: how many tasks this agent serves; 0: not given. If it is given, the
	 * numbers of options, variables and launchers count agents, not tasks: the agent's tasks
	 * are number x local + 0..local-1.
	 */
	uint64_t local;
};

struct identity {
	char run[129];	   /* valid for parse_name */
	bool run_is_ours;  /* a new name, which no later start has: remove its store at the end */
	bool is_task;	   /* false only with IDENTITY_RUN */
	uint64_t task;	   /* our first task */
	uint64_t count;	   /* how many consecutive tasks are ours */
	uint64_t tasks;	   /* of the run */
	char launch[129];  /* the same for all tasks that were started together; empty: unknown */
	uint64_t machines; /* 0: not known */
	bool several_machines;	 /* the launch is, or with Kubernetes probably is, on several */
	const char *run_source;	 /* for -v: "--run", "Slurm", ...; static text */
	const char *task_source; /* likewise; NULL if is_task is false */
	char warning[512];	 /* to print, without failing; empty: nothing */
};

/* Whether this task is one of ours. */
static inline bool identity_has_task(const struct identity *identity, uint64_t task)
{
	return task >= identity->task && task - identity->task < identity->count;
}

enum status identity_find(const struct signs *signs, const struct identity_request *request,
	struct identity *identity, struct error *err);

/*
 * Get the task that an agent has named in the environment: PREEMPT_TASK, plus LOCAL_RANK below an
 * agent that serves several ranks of one command (PREEMPT_RANKS). The clients choose their board in
 * the same way. *source: the names of these variables. STATUS_NO: no PREEMPT_TASK.
 * STATUS_USAGE: LOCAL_RANK is missing below such an agent, or a number is out of range.
 */
enum status identity_own_task(
	const struct signs *signs, uint64_t *task, const char **source, struct error *err);

/* STATUS_USAGE: the launch is on several machines, but the store (where) is local to this one. */
enum status identity_check_store(const struct identity *identity, const char *where,
	bool local_filesystem, struct error *err);

#endif
