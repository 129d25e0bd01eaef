/* SPDX-License-Identifier: MIT */
/*
 * A table of schedulers: the variables that give a job's id, and how a scheduler is made to run the
 * job again: by an exit code, or with Slurm by a command.
 */
#ifndef RUN_SCHEDULER_H
#define RUN_SCHEDULER_H

#include "notice/slurm.h"
#include "run/launchers.h"
#include "store/store.h"

struct scheduler {
	const char *name; /* "Grid Engine" */
	const char *word; /* for --platform: "sge"; NULL: it cannot be made to run a job again */
	const char *job;  /* the variable that shows this scheduler, and has the job's id */
	const char *also; /* a variable that must be set, too: `job` is a common word; or NULL */

	const char *prefix; /* before the id in a run's name; NULL: the id gives no name */
	const char *index;  /* the variable of a job's index in an array; NULL: it is in the id */
	const char *array_job; /* the variable that replaces `job` if there is an index; or NULL */
	const char *no_index;  /* the value of index that means none; may be NULL */

	const char *restarts; /* the variable that counts its restarts of the job; may be NULL */
	int again;	      /* the exit code that makes it run the job again; 0: no special one */
	bool scontrol;	      /* `scontrol requeue` makes it run the job again */
	const char *rerun;    /* the shell command that makes it run the job again; or NULL */
	const char *note;     /* what the site or the user has to configure */
};

/*
 * Get the job, as "slurm-9_3", and the name of the innermost scheduler that runs us. STATUS_NO:
 * there is none.
 */
enum status scheduler_job(const struct identity_environment *environment, char *job, size_t size,
	const char **scheduler, struct error *err);

/*
 * The trace of a job: a small file STATE/preempt/JOB.db.trace, beside default stores (store/url.h).
 * preempt-requeue leaves it once the job's store is there, so that a later start, on any machine
 * with the same home, does not take the store for one that was never made. The file has the store's
 * URL, and behind it a count (job_guesses): a trace of another job with this id has no effect. A
 * store at its default place has none, which would be lost together with it.
 */
/*
 * Open the store of a run that starts, and make it if it is missing. STATUS_TEMPORARY: also if it
 * is missing, and an earlier start of this job has left its trace.
 */
enum status job_open_store(
	struct store **store, const char *url, int64_t deadline, struct error *err);
/* Leave the trace, if this is a job. A trace that cannot be written is only reported. */
void job_leave_trace(const char *url);
/*
 * How often in a row it was decided without a record of its attempts whether the job is to run
 * again. GUESS_COUNT: and this is once more; GUESS_FORGET: now there is a record. otherwise: the
 * answer where this cannot be counted, because it is no job, or has no home.
 */
enum job_guess { GUESS_ASK, GUESS_COUNT, GUESS_FORGET };
uint64_t job_count_guess(enum job_guess what, uint64_t otherwise);
/* The job has finished. */
void job_remove_trace(void);

/* Find a scheduler by its word; NULL: there is none. */
const struct scheduler *scheduler_find(const char *word);
/* The innermost scheduler that has a word and whose variables are set; else the last row (none). */
const struct scheduler *scheduler_here(void);
/* "slurm, lsf, ..." */
void scheduler_names(char *names, size_t size);

/* ---- Slurm ---- */

/*
 * Get the job's id for scontrol: slurm_job_id, or the leader of a heterogeneous job. STATUS_NO: not
 * in a job.
 */
enum status slurm_job_name(char name[64], struct error *err);

/* STATUS_NO: Slurm knows no such job (any more). STATUS_TEMPORARY: it gave no usable answer.
 * STATUS_NOT_FOUND: squeue cannot be run. */
enum status slurm_ask(const char *name, int64_t deadline, struct slurm_job *job, struct error *err);

enum slurm_answer {
	SLURM_REQUEUED,	  /* now or earlier */
	SLURM_ENDING,	  /* not requested: the job is cancelled, completing or over, as err says */
	SLURM_REFUSED,	  /* refused twice while the job ran; err says why */
	SLURM_UNREACHABLE /* its commands are missing, hang, or cannot reach the controller */
};
/* Look at the job's state, then request the requeue. Until deadline, try again while Slurm cannot
 * be reached. */
enum slurm_answer slurm_requeue(const char *name, int64_t deadline, struct error *err);

#endif
