/* SPDX-License-Identifier: MIT */
/*
 * The options that every program shares, and who this very process is by them and by its
 * environment: the one place of this room that asks the kernel.
 */
#ifndef RUN_OPTIONS_H
#define RUN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/args.h"
#include "base/error.h"
#include "base/life.h"
#include "proto/keys.h"
#include "run/identity.h"

struct group_options {
	const char *store, *run; /* NULL: not given */
	uint64_t attempt;	 /* from 1 */
	bool attempt_given;
	uint64_t task, tasks;
	bool task_given, tasks_given;
	int64_t timeout; /* milliseconds */
	bool timeout_given;
	bool json;
};

extern struct group_options group_options;
/* For args_command.common: --store to --tasks; and those with --timeout and --json. */
extern const struct args_option group_identity_table[];
extern const struct args_option group_option_table[];

/* Who this process is. local: of -n or --ranks, 0 where not given. */
enum status group_identify(
	enum identity_need need, uint64_t local, struct identity *identity, struct error *err);

/*
 * The process that a join by hand stands for where none is named: in Slurm's TaskProlog the task to
 * be, else who reads our output, else our parent. STATUS_NO, with err: the TaskProlog of a shell of
 * a Slurm job, which is not a task.
 */
enum status group_find_agent(pid_t *agent, struct error *err);

/*
 * The attempt that the user asks for, 0: none. One that comes with PREEMPT_LIFE was left in the
 * environment by an earlier join or by the agent, and is not asked for; --attempt is.
 */
uint64_t group_asked_attempt(void);

/* The task that the environment names (identity_own_task). STATUS_NO: it names none. */
enum status group_own_task(uint64_t *task, struct error *err);

/* The life that this process saves for: life_find (run/life.h) with its environment. */
enum status group_life(const char *word, char life[LIFE_SIZE], struct error *err);

/*
 * The store's URL: --store, else store_default_url. create makes the default's
 * directory (0700), as whoever may be the first of a run needs it.
 */
enum status group_store_url(
	const char *run, bool create, char *url, size_t size, struct error *err);

/* The run that the options and the environment name. */
struct group_run {
	struct identity identity;
	char url[4096];
	struct store *store;	/* of group_open; NULL: not opened. For the caller to close */
	struct attempt attempt; /* likewise */
};
/* Its identity and its store's URL. */
enum status group_find(
	enum identity_need need, bool create, struct group_run *run, struct error *err);
/*
 * The same, and open the store and find the attempt: that of --attempt, else the newest. With
 * IDENTITY_TASK it must have our task. joined: where this process has joined, a store that is
 * missing is STATUS_TEMPORARY (live/outage.h).
 */
enum status group_open(enum identity_need need, bool joined, int64_t deadline,
	struct group_run *run, struct error *err);

#endif
