/* SPDX-License-Identifier: MIT */
/*
 * The environment of a process, and a table of launchers, which start the tasks of a program and
 * number them: a new launcher is one more struct.
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
	const char *slurm_step; /* "9.batch", "9.0", of slurmstepd (ancestors.h); or NULL */
	const char *nonce;	/* for a made-up name: unique to this process; NULL: make none up */
};

/* The value of a variable; NULL if it is unset or empty. */
const char *environment_value(const struct identity_environment *environment, const char *name);

/* As parse_unsigned, naming the variable. STATUS_NO: unset. */
enum status environment_number(const struct identity_environment *environment, const char *name,
	uint64_t min, uint64_t max, uint64_t *value, struct error *err);

struct launcher {
	const char *name;
	const char *marker; /* its presence shows this launcher */
	/* Whether it is this launcher; NULL: the marker alone shows that. */
	bool (*present)(const struct identity_environment *environment);
	const char *task, *tasks; /* tasks NULL: the launcher does not say how many */
	const char *machines;	  /* how many; NULL: the launcher does not say */
	const char *local_tasks;  /* tasks on this machine; NULL: the launcher does not say */
	bool spread_out;	  /* its tasks are probably on several machines */
	const char *cure;	  /* what to do if one of task and tasks is missing */
	/* The variable that tells launches apart (NULL: none), and the word before its value. */
	const char *launch_prefix, *launch_variable;
	uint64_t launch_most; /* launch_variable is a number up to this; 0: it is any text */
};

/* Innermost first; NULL-terminated. launcher_tf_config comes after all of them. */
extern const struct launcher *const launchers[];
extern const struct launcher launcher_torchrun;
extern const struct launcher launcher_slurm;
extern const struct launcher launcher_tf_config;

/* Write the launcher's part of the launch id, as "pmix:12"; "" if it gives none. */
enum status launcher_launch(const struct launcher *launcher,
	const struct identity_environment *environment, char *to, size_t size, struct error *err);

/* Which task this process is, by TF_CONFIG. */
struct tf_role {
	bool is_task; /* false: TF_CONFIG is not set, or has no cluster */
	uint64_t task, tasks;
	bool several_hosts;
};
/*
 * STATUS_USAGE: TF_CONFIG cannot be parsed, or is that of an evaluator or a parameter server, which
 * are no tasks of the run.
 */
enum status tf_config_read(
	const struct identity_environment *environment, struct tf_role *role, struct error *err);

/* This start of the job, as the variables of Slurm and PREEMPT_LAUNCH show it. */
struct slurm_start {
	uint64_t job; /* 0: not in a job */
	uint64_t restarts;
	uint64_t launched; /* the job in which PREEMPT_LAUNCH was set; 0: none */
};
enum status slurm_start_read(const struct identity_environment *environment,
	struct slurm_start *start, struct error *err);
/* STATUS_USAGE: the PREEMPT_ variables are those of another Slurm job. */
enum status slurm_start_check(const struct slurm_start *start, struct error *err);

/* A shell inside a Slurm job, but not a task of the job. */
struct slurm_shell {
	const char *kind; /* "the batch shell" */
	bool batch;	  /* it is the batch shell */
	uint64_t job;
	uint64_t machines;
	uint64_t tasks; /* how many srun would start there */
};
/* STATUS_NO: this is not such a shell. */
enum status slurm_shell_find(const struct identity_environment *environment,
	struct slurm_shell *shell, struct error *err);

#endif
