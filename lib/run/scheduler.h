/* SPDX-License-Identifier: MIT */
/*
 * Schedulers as a table: how a job is named by its id, and how a scheduler is made to run it again:
 * by an exit code, or with Slurm by a command.
 */
#ifndef RUN_SCHEDULER_H
#define RUN_SCHEDULER_H

#include "notice/slurm.h"
#include "run/launchers.h"

struct scheduler {
	const char *name; /* "Grid Engine" */
	const char *word; /* of --platform: "sge"; NULL: it is not told to run a job again */
	const char *job;  /* the variable that shows it */
	const char *also; /* must be set too, because job is a common word; may be NULL */

	const char *prefix;    /* of a job's name, which is made of the value of job; NULL: not */
	const char *index;     /* of a job in an array; NULL: is part of job */
	const char *array_job; /* replaces job where there is an index; may be NULL */
	const char *no_index;  /* the value of index that means none; may be NULL */

	const char *restarts; /* the variable that counts its restarts of the job; may be NULL */
	int again;	      /* the exit code that makes it run the job again; 0: any of ours */
	bool scontrol;	      /* it is asked by a command */
	const char *note;     /* what the site or the user has to configure */
};

/*
 * "slurm-9_3" and the scheduler's name, of the innermost scheduler that this is in. STATUS_NO: in
 * none.
 */
enum status scheduler_job(const struct identity_environment *environment, char *job, size_t size,
	const char **scheduler, struct error *err);

/* By its word; NULL: there is none of that name. */
const struct scheduler *scheduler_find(const char *word);
/* The innermost with a word whose variables are set; never NULL ("none"). */
const struct scheduler *scheduler_here(void);
/* "slurm, lsf, ..." */
void scheduler_names(char *names, size_t size);

/* ---- Slurm ---- */

/*
 * The job's id for scontrol: "9_3" for a task of an array. (The plain number of an array's last
 * task names the whole array: requeue would take all of its tasks.) STATUS_NO: not in a job.
 */
enum status slurm_job_name(char name[64], struct error *err);

/* STATUS_NO: Slurm knows no such job (any more); STATUS_TEMPORARY: could not be asked. */
enum status slurm_ask(const char *name, int64_t deadline, struct slurm_job *job, struct error *err);

enum slurm_answer {
	SLURM_REQUEUED,	  /* now, or it was before */
	SLURM_ENDING,	  /* cancelled, completing or over: not requested; err says which */
	SLURM_REFUSED,	  /* twice, while the job ran; err says why */
	SLURM_UNREACHABLE /* its commands are not here, hang, or cannot reach the controller */
};
/* Look at the job's state, then request it. Tries again while Slurm cannot be reached, until
 * deadline. */
enum slurm_answer slurm_requeue(const char *name, int64_t deadline, struct error *err);

#endif
