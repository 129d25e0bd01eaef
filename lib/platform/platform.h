/* SPDX-License-Identifier: MIT */
/*
 * The table of platforms: schedulers, launchers and clouds (the rows: platforms.c). A row says how
 * its platform is recognised, how its launcher numbers the tasks, what a job is called there, where
 * its notices come from, and what makes it run a job again. A platform is recognised by the
 * environment and the firmware's tables (DMI), never over the network. The functions here are the
 * same for all rows, and pure, except for those of ancestors.c.
 *
 * The rest of the room: slurm.h knows Slurm's jobs and asks Slurm; ancestors.c looks at this
 * process and at those above it; tf_config.c reads TF_CONFIG.
 */
#ifndef PLATFORM_PLATFORM_H
#define PLATFORM_PLATFORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/text.h"

#define TASKS_MAX 65536 /* of a run */

/*
 * The signals by which schedulers say that a job ends, and batch scripts are told to save: each is
 * a notice unless the user names other ones. (LSF's INT is one only there.)
 */
#define NOTICE_SIGNALS "TERM,USR1,USR2,XCPU,PWR"

/* ---- The signs of a platform ---- */

enum platform_dmi { DMI_NONE, DMI_VENDOR, DMI_PRODUCT, DMI_ASSET_TAG, DMI_FIELDS };

struct signs {
	const char *(*lookup)(void *context, const char *name); /* as getenv */
	void *context;
	char slurm_step[64];	  /* "9.batch", "9.0", of slurmstepd; empty: none */
	char dmi[DMI_FIELDS][64]; /* empty: not readable */
};
/* The variables of this process, and no other signs of it. */
extern const struct signs signs_environment;
/* All signs of this process (ancestors.c). */
void signs_inspect(struct signs *signs);
/* The value of a variable; NULL if it is unset or empty. */
const char *signs_value(const struct signs *signs, const char *name);
/* As parse_unsigned, naming the variable. STATUS_NO: unset. */
enum status signs_number(const struct signs *signs, const char *name, uint64_t min, uint64_t max,
	uint64_t *value, struct error *err);

/* ---- The table ---- */

/* What a launcher says of this process. */
struct launched {
	const struct launcher *launcher; /* NULL: none has started it */
	uint64_t task, tasks;		 /* tasks 0: it does not say how many there are */
	bool several_machines;		 /* as TF_CONFIG says */
};

struct launcher {
	const char *name;
	const char *marker; /* its presence shows this launcher; NULL: that of task */
	/* Whether it is this launcher; NULL: the marker alone shows that. */
	bool (*present)(const struct signs *signs);
	const char *task, *tasks; /* tasks NULL: the launcher does not say how many */
	const char *machines;	  /* how many; NULL: the launcher does not say */
	const char *local_tasks;  /* tasks on this machine; NULL: the launcher does not say */
	bool spread_out;	  /* its tasks are probably on several machines */
	const char *cure;	  /* what to do if one of task and tasks is missing */
	/* The variable that tells launches apart (NULL: none), and the word before its value. */
	const char *launch_prefix, *launch_variable;
	/* The variable that counts its restarts, and, with several machines, where that is not the
	 * same for all, the one with the port, which is chosen anew at each restart; or NULL. */
	const char *restarts, *port;
	const char *run; /* the variable with the user's name for the run; NULL: none */
	/* Reads the numbers, instead of task and tasks. It is not this launcher if it leaves
	 * launched->launcher NULL. */
	enum status (*read)(
		const struct signs *signs, struct launched *launched, struct error *err);
};

struct platform {
	const char *name;  /* for --platform: "sge"; NULL: it is only a launcher */
	const char *title; /* of a scheduler whose jobs have an id: "Grid Engine" */

	/* It is here if both variables are set, or the firmware's text begins so. NULL: none. */
	const char *variable, *also;
	enum platform_dmi dmi;
	const char *dmi_text;

	struct launcher launcher; /* name NULL: none */

	const char *signal; /* a notice here, beside NOTICE_SIGNALS; NULL: none */
	const char *source; /* another source; NULL: none. "slurm" catches the signals itself */
	int64_t grace;	    /* ms after a signal; 0: not known */

	const char *prefix; /* of a run's name, before the job's id in `variable`; or NULL */
	const char *index;  /* the variable of a job's index in an array; NULL: it is in the id */
	const char *array_job; /* the variable that replaces `variable` if there is an index */
	const char *no_index;  /* the value of index that means none; may be NULL */
	const char *host;      /* instead: the variable with the host name "JOB-INDEX" */

	int exit_code;	      /* the code with which it runs the job again; 0: no special one */
	bool scontrol;	      /* `scontrol requeue` makes it run the job again */
	const char *rerun;    /* the shell command that makes it run the job again; or NULL */
	const char *restarts; /* the variable that counts its restarts of the job; may be NULL */
	const char *note;     /* what the site or the user has to configure for that; or NULL */
};
/* The innermost comes first, because the variables of an outer one reach everything below it. */
extern const struct platform platforms[];
extern const struct platform *const platforms_end;

/* ---- Who am I ---- */

/*
 * Ask the innermost launcher that has started us; launched->launcher NULL: there is none.
 * STATUS_USAGE: it does not give the numbers, or wrong ones; or TF_CONFIG cannot be parsed, or is
 * that of an evaluator or a parameter server, which are no tasks of the run. Then
 * launched->launcher is NULL if it is not even known to have started us.
 */
enum status platform_launched(
	const struct signs *signs, struct launched *launched, struct error *err);
/* The launcher's part of the launch id, as "pmix:12"; "" if it gives none. */
enum status platform_launch(const struct launcher *launcher, const struct signs *signs, char *to,
	size_t size, struct error *err);
/*
 * Get the job, as "slurm-9_3", and the title of the innermost scheduler that runs us. STATUS_NO:
 * there is none.
 */
enum status platform_job(const struct signs *signs, char *job, size_t size, const char **scheduler,
	struct error *err);
enum status tf_config_read(const struct signs *signs, struct launched *launched, struct error *err);

/* ---- What is watched, and who runs a job again ---- */

/* For --show-platform: all platforms, which of them is recognised here, and what auto chooses. */
void platform_show(const struct signs *signs, struct text *text);

enum { PLATFORM_SOURCES = 8 };

/*
 * A platform that the user has not named, but that was recognised, adds sources and nothing else:
 * it never changes an exit code, and never makes the group rely on a grace period.
 */
struct platform_choice {
	char sources[PLATFORM_SOURCES][64]; /* specifications (notice/source.h) */
	size_t count;
	bool certain;	  /* the user named them: a source that cannot be opened is an error */
	int exit_code;	  /* 0: no change */
	int64_t grace;	  /* ms; -1: not known */
	const char *note; /* what has to be configured for the exit code; NULL: nothing */
	char names[128];  /* "slurm,aws" */
};
/* names: "auto", or a list: "slurm,aws". STATUS_USAGE: a name is not known. */
enum status platform_choose(const char *names, const struct signs *signs,
	struct platform_choice *choice, struct error *err);

/*
 * The scheduler of this name that can run a job again, or "none"; name NULL: the innermost one that
 * runs us, or "none". Returns NULL, with an error: there is no such scheduler.
 */
const struct platform *platform_scheduler(
	const char *name, const struct signs *signs, struct error *err);

/* ---- The processes above us, by /proc ---- */

/*
 * Whether the shell of a batch script waits for us: a signal for the batch shell alone reaches the
 * shell, and ends it. Not after exec: then Slurm's own process is our parent.
 */
bool ancestors_batch_shell_waits(void);

/*
 * If we run in a TaskProlog: the process that becomes the task after it; else 0. The environment is
 * not enough, because the task keeps the prolog's SLURM_SCRIPT_CONTEXT.
 */
pid_t ancestors_prolog_task(void);

/*
 * The nearest ancestor that reads the pipe of our standard output, as a shell does in $(...);
 * programs such as timeout and env may be in between. 0: there is none, or it is a slurmstepd,
 * which only passes on the output of a task.
 */
pid_t ancestors_reader(void);

#endif
