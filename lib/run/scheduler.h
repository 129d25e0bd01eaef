/* SPDX-License-Identifier: MIT */
/*
 * How schedulers are told to run a job again, as a table; and Slurm's own way, which is a command.
 */
#ifndef RUN_SCHEDULER_H
#define RUN_SCHEDULER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct scheduler {
	const char *name;
	const char *marker, *also; /* variables that show it; NULL: none */
	const char *restarts; /* the variable that counts its restarts of the job; NULL: none */
	int again;	      /* the exit code that makes it run the job again; 0: any of ours */
	bool scontrol;	      /* it has to be asked by a command */
	const char *note;     /* what the site or the user has to see to */
};

/* By name; NULL: there is none of that name. */
const struct scheduler *scheduler_find(const char *name);
/* The one whose variables are set; never NULL ("none"). */
const struct scheduler *scheduler_here(void);
/* "none, slurm, ..." */
void scheduler_names(char *names, size_t size);

/* ---- Slurm ---- */

/*
 * The job's id as scontrol has to be told it: "9_3" for a task of an array. (The plain number of an
 * array's last task is the whole array's: requeue would take all of its tasks.) STATUS_NO: not in a
 * job.
 */
enum status slurm_job_name(char name[64], struct error *err);

struct slurm_job {
	char state[32];	  /* "RUNNING" */
	int64_t end_left; /* ms until its end as Slurm plans it now; -1: not known */
};
/* STATUS_NO: Slurm knows no such job (any more); STATUS_TEMPORARY: could not be asked. */
enum status slurm_ask(const char *name, int64_t deadline, struct slurm_job *job, struct error *err);

enum slurm_answer {
	SLURM_REQUEUED,	  /* it is so, or was before */
	SLURM_ENDING,	  /* cancelled, completing or over: not asked for; err says what */
	SLURM_REFUSED,	  /* err says why */
	SLURM_UNREACHABLE /* scontrol is not here, hangs, or cannot reach its controller */
};
/* Look at the state, then ask for it. Tries again while it cannot be reached, until deadline. */
enum slurm_answer slurm_requeue(const char *name, int64_t deadline, struct error *err);

#endif
