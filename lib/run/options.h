/* SPDX-License-Identifier: MIT */
/*
 * The options that all programs share, and the identity of this process, found by these options,
 * the environment and the kernel. The other files of this directory get them as arguments.
 */
#ifndef RUN_OPTIONS_H
#define RUN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/args.h"
#include "base/error.h"
#include "live/heartbeat.h"
#include "proto/view.h"
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
/* --timeout, or `otherwise` if it is not given; ms. */
int64_t group_timeout(int64_t otherwise);

/* For args_command.common: --store to --tasks; the same with --timeout and --json. */
extern const struct args_option group_identity_table[];
extern const struct args_option group_option_table[];
/* Single rows, for the tables of programs that do not take all of them. */
/* clang-format off */
#define GROUP_STORE_ROW \
	{"store", "URL", "where the keys are: PATH or etcd://HOST:PORT/PREFIX", ARGS_TEXT, \
		.target = &group_options.store, .environment = "PREEMPT_STORE"}
#define GROUP_RUN_ROW(help) \
	{"run", "NAME", help, ARGS_NAME, .target = &group_options.run, .environment = "PREEMPT_RUN"}
#define GROUP_TIMEOUT_ROW(help) \
	{"timeout", "D", help, ARGS_DURATION, .target = &group_options.timeout, \
		.given = &group_options.timeout_given}
#define GROUP_JSON_ROW(help) {"json", NULL, help, ARGS_FLAG, .target = &group_options.json}
/* clang-format on */
#define GROUP_RUN_HELP "the job across restarts (default: the scheduler's job)"

/* The options of programs that beat for a task. The program itself sets rules.first. */
struct heartbeat_options {
	struct heartbeat_rules rules;
	bool cut_off_given;
	int64_t progress_timeout; /* ms; 0: none */
};
extern struct heartbeat_options heartbeat_options;
/* clang-format off */
#define HEARTBEAT_ROWS \
	{"period", "D", "beat, and look for the other tasks, every D (5s)", ARGS_DURATION, \
		.target = &heartbeat_options.rules.period}, \
	{"limit", "N", "missed beats in a row after which a task is dead (3)", ARGS_UNSIGNED, \
		.target = &heartbeat_options.rules.limit, .min = 1, .max = 1000}, \
	{"cut-off", "D", "end a task that cannot reach the store for D (10m; 0: never)", \
		ARGS_DURATION, .target = &heartbeat_options.rules.cut_off, \
		.given = &heartbeat_options.cut_off_given}, \
	{"progress-timeout", "D", "a task that does not call preempt_step for D hangs", ARGS_DURATION, \
		.target = &heartbeat_options.progress_timeout}
/* clang-format on */
/* After parsing: check these options, and set defaults. beats: false with --no-heartbeat. */
enum status heartbeat_options_complete(bool beats, struct error *err);

/* The options of programs that take part in the agreement, and the default of startup. */
extern struct agreement_config agreement_options;
/* clang-format off */
#define AGREEMENT_ROWS \
	{"report-timeout", "D", "decide without a silent task after D (10s)", ARGS_DURATION, \
		.target = &agreement_options.report_timeout}, \
	{"save-timeout", "D", "longest save if no deadline is known (5m)", ARGS_DURATION, \
		.target = &agreement_options.save_timeout}
/* clang-format on */

/* Find the identity of this process. local: of -n or --ranks; 0: not given. */
enum status group_identify(
	enum identity_need need, uint64_t local, struct identity *identity, struct error *err);

/*
 * Find the process for which "preempt-store join" joins without --pid: in Slurm's TaskProlog the
 * process that becomes the task, else the one that reads our output, else our parent. STATUS_NO:
 * this is the TaskProlog of a shell of a Slurm job, which is not a task. *prolog: this is a
 * TaskProlog.
 */
enum status group_find_agent(pid_t *agent, bool *prolog, struct error *err);

/*
 * Whether this is the batch shell, or another shell, of a Slurm job, in which nothing has joined: a
 * TaskEpilog runs there, too. err says so.
 */
bool group_is_shell(struct error *err);

/*
 * The attempt that the user asks for; 0: none. --attempt asks for one; a PREEMPT_ATTEMPT that was
 * set by an earlier join or by the agent does not.
 */
uint64_t group_asked_attempt(void);

/* The task that the environment names (identity_own_task). STATUS_NO: it names none. */
enum status group_own_task(uint64_t *task, struct error *err);

/*
 * The store's URL: --store, else store_default_url. create: make the default's directory (0700),
 * for a program that may be the first of its run.
 */
enum status group_store_url(
	const char *run, bool create, char *url, size_t size, struct error *err);

/* The run that the options and the environment name. */
struct group_run {
	struct identity identity;
	char url[4096];
	/* Set by group_open: */
	struct store *store;
	struct view view; /* of the attempt; empty until view_refresh */
};
/* Find the identity and the store's URL; zero the rest. */
enum status group_find(
	enum identity_need need, bool create, struct group_run *run, struct error *err);
/*
 * The same, and open the store and find the attempt: that of --attempt, else the newest. With
 * IDENTITY_TASK the attempt must have our task. joined: this process has joined the attempt, so a
 * missing store is STATUS_TEMPORARY (live/outage.h). The store is asked as by group_ask_until.
 * Call group_close also after a failure.
 */
enum status group_open(enum identity_need need, bool joined, int64_t deadline,
	struct group_run *run, struct error *err);
/*
 * Let each call to the store from now on take as long as is left now until deadline, but 1 s at
 * least and 30 s at most. A loop calls this in each pass.
 */
void group_ask_until(struct store *store, int64_t deadline);
void group_close(struct group_run *run);

#endif
