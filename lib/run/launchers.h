/* SPDX-License-Identifier: MIT */
/*
 * The variables of a process, and what is known about launchers, which start the tasks of a program
 * and number them: a table, so that one more launcher is one more struct.
 */
#ifndef RUN_LAUNCHERS_H
#define RUN_LAUNCHERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define IDENTITY_TASKS_MAX 65536

struct identity_environment {
	const char *(*lookup)(void *context, const char *name); /* as getenv */
	void *context;
	const char *slurm_step; /* "9.batch", "9.0": what the slurmstepd above us says; or NULL */
	const char *nonce;	/* part of a name, of this process alone; or NULL */
};

/* The value of a variable, NULL where it is unset or empty. */
const char *environment_value(const struct identity_environment *environment, const char *name);

/* As parse_unsigned, naming the variable. STATUS_NO: unset. */
enum status environment_number(const struct identity_environment *environment, const char *name,
	uint64_t min, uint64_t max, uint64_t *value, struct error *err);

struct launcher {
	const char *name;
	const char *marker; /* its presence shows this launcher */
	/* Whether it is this launcher, where the marker alone does not tell. May be NULL. */
	bool (*present)(const struct identity_environment *environment);
	const char *task, *tasks; /* tasks NULL: the launcher does not say how many */
	const char *machines;	  /* how many; NULL: does not say */
	const char *local_tasks;  /* tasks on this machine; NULL: does not say */
	bool spread_out;	  /* its tasks most probably are on several machines */
	const char *cure;	  /* for a half-set pair and for a missing size */
	/* What tells one launch from the next, alike in all its tasks; NULL: nothing. */
	const char *launch_prefix, *launch_variable;
	uint64_t launch_most; /* launch_variable is a number, at most this one; 0: any text */
};

/* Innermost first; NULL-terminated. launcher_tf_config comes after all of them. */
extern const struct launcher *const launchers[];
extern const struct launcher launcher_torchrun;
extern const struct launcher launcher_slurm;
extern const struct launcher launcher_tf_config;

/* The launch as one word: "pmix:12"; "" where the launcher has none. */
enum status launcher_launch(const struct launcher *launcher,
	const struct identity_environment *environment, char *to, size_t size, struct error *err);

/* Which task TF_CONFIG says this is. */
struct tf_role {
	bool is_task; /* of a cluster; false: TF_CONFIG is not set, or has no cluster */
	uint64_t task, tasks;
	bool several_hosts;
};
/*
 * STATUS_USAGE: TF_CONFIG is that of an evaluator or a parameter server, which are no tasks of the
 * run, or it cannot be read.
 */
enum status tf_config_read(
	const struct identity_environment *environment, struct tf_role *role, struct error *err);

/* What Slurm's variables and ours say of this start of the job. */
struct slurm_start {
	uint64_t job; /* 0: not in a job */
	uint64_t restarts;
	uint64_t launched; /* the job that PREEMPT_LAUNCH was set in; 0: in none */
};
enum status slurm_start_read(const struct identity_environment *environment,
	struct slurm_start *start, struct error *err);
/* STATUS_USAGE: the PREEMPT_ variables are those of another Slurm job. */
enum status slurm_start_check(const struct slurm_start *start, struct error *err);

/* Inside a Slurm job but not in a task of it. */
struct slurm_shell {
	const char *kind; /* "the batch shell" */
	bool batch;	  /* it is that one */
	uint64_t job;
	uint64_t machines;
	uint64_t tasks; /* what srun would start there */
};
/* STATUS_NO: not so. */
enum status slurm_shell_find(const struct identity_environment *environment,
	struct slurm_shell *shell, struct error *err);

#endif
