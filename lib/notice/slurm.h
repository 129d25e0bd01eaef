/* SPDX-License-Identifier: MIT */
/*
 * Slurm's jobs: read what it reports, estimate the time left (slurm.c; pure, except for
 * slurm_job_id), ask it, and have it run a job again (slurm_client.c). source_slurm.c asks, too,
 * but does not wait for the answer.
 *
 * Facts (Slurm 22.05): at a preemption the controller sets the job's end time to now + GraceTime
 * before it sends TERM; at the time limit TERM comes at the end time, and KILL after KillWait.
 */
#ifndef NOTICE_SLURM_H
#define NOTICE_SLURM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct slurm_job {
	char state[32]; /* "RUNNING" */
	int64_t end;	/* ms since 1970; 0: no limit, or not given */
	int64_t start;	/* 0: not given */
};

/*
 * Get the id of our job from the environment: "9", or "9_3" for a task of an array. (The plain
 * number of an array's last task names the whole array, and would requeue all of it.) False: not in
 * a job.
 */
bool slurm_job_id(char id[64]);

/* The squeue command for a job, "9" or "9_3": NULL-terminated, its words must not be changed. */
#define SLURM_QUESTION 10
void slurm_question(const char *job, char *argv[SLURM_QUESTION]);

/* Read seconds since 1970, or a word for none: then *utc is 0. False: it is neither. */
bool slurm_read_time(const char *text, int64_t *utc);

/*
 * Read the line that squeue prints, "RUNNING 1767225600 1767222000": the state, the end and the
 * start (which may be missing). Of several lines the first one that can be read counts: the leader
 * of a heterogeneous job. False: there is none.
 */
bool slurm_read_job(const char *answer, struct slurm_job *job);

/*
 * An estimate of the controller's clock, by which Slurm gives the end. utc: our clock. The job
 * started at start (0: not known), and we have seen it running for `running` ms: if our clock is
 * behind start + running, return that. A clock that is ahead is noticed only when it is past the
 * job's end. (No command of Slurm shows a remaining time that is independent of our clock: TimeLeft
 * of squeue subtracts time(2) of the machine that asks.)
 */
int64_t slurm_utc(int64_t utc, int64_t start, int64_t running);

struct slurm_estimate {
	int64_t left;	 /* ms until the job is killed; -1: not known */
	const char *why; /* for messages */
	bool over;	 /* the end has passed by our clock, so left is not known */
};
/*
 * The time left after a notice signal, as squeue then reports the job. known_end: the end that was
 * known before the signal (0: none). A TERM whose sender has not moved the end (scancel -s TERM)
 * does not tell the time left, unless the end is within lead. Any other signal was requested by the
 * user to come before the end (--signal=USR1@T).
 */
struct slurm_estimate slurm_estimate_left(
	const struct slurm_job *job, int signal, int64_t known_end, int64_t lead, int64_t utc);

/* ---- Asking Slurm ---- */

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
