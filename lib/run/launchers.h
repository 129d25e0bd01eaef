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
	/* Where the marker alone does not: whether it is really this launcher. May be NULL. */
	bool (*present)(const struct identity_environment *environment);
	const char *task, *tasks;	/* tasks NULL: the launcher does not say how many */
	const char *machine, *machines; /* which machine, of how many; NULL: does not say */
	const char *local_tasks;	/* tasks on this machine; NULL: does not say */
	/* Reads task and tasks where they have no variables of their own. May be NULL. */
	enum status (*numbers)(const struct identity_environment *environment, uint64_t *task,
		uint64_t *tasks, struct error *err);
	/* Whether its tasks are on several machines, for sure or most probably. NULL: it does not
	 * say. */
	bool (*spread_out)(const struct identity_environment *environment);
	const char *cure; /* for a half-set pair and for a missing size */
	/* Writes what tells one launch from the next, alike in all its tasks. May be NULL. */
	enum status (*launch)(const struct identity_environment *environment, char *to, size_t size,
		struct error *err);
};

/* Innermost first; NULL-terminated. */
extern const struct launcher *const launchers[];
extern const struct launcher launcher_torchrun;
extern const struct launcher launcher_slurm;
extern const struct launcher launcher_tf_config;

/*
 * STATUS_OK: TF_CONFIG, if it is set, is that of a task of the run. STATUS_USAGE: of an evaluator
 * or a parameter server, or it cannot be read.
 */
enum status tf_config_check(const struct identity_environment *environment, struct error *err);

/* Inside a Slurm job but not in a task of it. */
struct slurm_shell {
	const char *kind; /* "the batch shell" */
	uint64_t job;
	uint64_t machines;
	uint64_t tasks; /* what srun would start there */
};
/* STATUS_NO: not so. */
enum status slurm_shell_find(const struct identity_environment *environment,
	struct slurm_shell *shell, struct error *err);

#endif
