/* SPDX-License-Identifier: MIT */
/*
 * Read what Slurm reports of a job, and estimate the time left. Pure, except for slurm_job_id;
 * source_slurm.c asks Slurm.
 *
 * Facts (Slurm 22.05): at a preemption the controller sets the job's end time to now + GraceTime
 * before it sends TERM; at the time limit TERM comes at the end time, and KILL after KillWait.
 */
#ifndef NOTICE_SLURM_H
#define NOTICE_SLURM_H

#include <stdbool.h>
#include <stdint.h>

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

/*
 * Read the line that squeue prints, "RUNNING 1767225600 1767222000": the state, the end and the
 * start (which may be missing) in seconds since 1970, or a word for none. False: another line.
 */
bool slurm_read_job(const char *line, struct slurm_job *job);

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
