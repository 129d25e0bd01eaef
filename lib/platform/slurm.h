/* SPDX-License-Identifier: MIT */
/*
 * Slurm's jobs: what the environment says of ours, and the time left of one (slurm.c; pure); asking
 * Slurm, and having it run a job again (slurm_client.c).
 *
 * Facts (Slurm 22.05): at a preemption the controller sets the job's end time to now + GraceTime
 * before it sends TERM; at the time limit TERM comes at the end time, and KILL after KillWait.
 */
#ifndef PLATFORM_SLURM_H
#define PLATFORM_SLURM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/process/subprocess.h"
#include "platform/platform.h"

/* ---- What the environment says ---- */

/* Whether this is a task of a step of a job, not a shell of the job. */
bool slurm_is_task(const struct signs *signs);

/* A shell inside a Slurm job, but not a task of the job. */
struct slurm_shell {
	const char *kind; /* "the batch shell" */
	bool batch;	  /* it is the batch shell */
	uint64_t job;
	uint64_t machines;
	uint64_t tasks; /* how many srun would start there */
};
/* STATUS_NO: this is not such a shell. */
enum status slurm_shell_find(
	const struct signs *signs, struct slurm_shell *shell, struct error *err);

/*
 * Name this start of the job, "slurm:9:0"; "": not in a job. STATUS_USAGE: the PREEMPT_ variables
 * are those of another Slurm job.
 */
enum status slurm_launch(const struct signs *signs, char launch[32], struct error *err);

/*
 * Get the name of our job for squeue and scontrol: "9", or "9_3" for a task of an array (the plain
 * number of an array's last task names the whole array, and would requeue all of it). whole: of a
 * heterogeneous job the leader, which alone can be requeued; else our component. STATUS_NO: not in
 * a job. STATUS_USAGE: its id is no number.
 */
enum status slurm_job_name(const struct signs *signs, bool whole, char name[64], struct error *err);

/* ---- The client ---- */

struct slurm_job {
	char state[32]; /* "RUNNING" */
	int64_t end;	/* ms since 1970; 0: no limit, or not given */
	int64_t start;	/* 0: not given */
};

/*
 * Read the line that squeue prints, "RUNNING 1767225600 1767222000": the state, the end and the
 * start (which may be missing). Of several lines the first one that can be read counts: the leader
 * of a heterogeneous job. False: there is none.
 */
bool slurm_read_job(const char *answer, struct slurm_job *job);

/* Start squeue, to ask for a job until limit. The loop (NULL: none) watches it. */
enum status slurm_ask_start(struct subprocess *squeue, const char *name, int64_t limit,
	struct loop *loop, struct error *err);
/* Read the answer of a squeue that has ended. The status is as that of slurm_ask. */
enum status slurm_ask_end(
	const struct subprocess *squeue, struct slurm_job *job, struct error *err);
/*
 * Ask, and wait for the answer. STATUS_NO: Slurm knows no such job (any more). STATUS_TEMPORARY: it
 * gave no usable answer. STATUS_NOT_FOUND: squeue cannot be run.
 */
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

/* ---- The time left; pure ---- */

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

#endif
