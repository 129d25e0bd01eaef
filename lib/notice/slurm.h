/* SPDX-License-Identifier: MIT */
/*
 * What Slurm says of a job, and what it means for a notice. Pure; source_slurm.c does the asking.
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
	int64_t end;	/* ms since 1970; 0: no limit, or not told */
	int64_t start;	/* ms since 1970; 0: not told */
};

/*
 * "RUNNING 1767225600 1767222000", as squeue -o '%T %e %S' prints it with SLURM_TIME_FORMAT=%s; the
 * start may be missing.
 */
bool slurm_read_job(const char *line, struct slurm_job *job);

/*
 * What time it is for the controller, by whose clock ends are told: Slurm has no answer in seconds
 * that does not use our own clock (squeue's TimeLeft subtracts time(2) of the machine that asks).
 * utc: our clock. A job that started at start (0: not known) and of which we have seen running ms
 * has come at least so far: a clock that is behind that is not believed. One that is ahead shows
 * only where it says that the job's end is over.
 */
int64_t slurm_utc(int64_t utc, int64_t start, int64_t running);

struct slurm_estimate {
	int64_t left; /* ms until the job is killed; -1: not known */
	const char *why;
	bool over; /* left would be known if the end were not over by our clock */
};
/*
 * A notice signal came, and this is the job now. known_end: what was thought before (0: nothing).
 * A TERM whose sender has not moved the end (scancel -s TERM) does not show when it will be,
 * unless the end is no further away than lead. Any other signal was asked for (--signal=USR1@T).
 */
struct slurm_estimate slurm_estimate_left(
	const struct slurm_job *job, int signal, int64_t known_end, int64_t lead, int64_t utc);

#endif
