/* SPDX-License-Identifier: MIT */
/*
 * What Slurm reports of a job, and what it means for a notice. Pure; source_slurm.c asks Slurm.
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
	int64_t start;	/* ms since 1970; 0: not told */
};

/*
 * The command that asks squeue for such a job, "9" or "9_3": ended by NULL, not changed by its
 * callers.
 */
#define SLURM_QUESTION 10
void slurm_question(const char *job, char *argv[SLURM_QUESTION]);

/*
 * Its answer, "RUNNING 1767225600 1767222000": times in seconds since 1970, or words for none. The
 * start may be missing.
 */
bool slurm_read_job(const char *line, struct slurm_job *job);

/*
 * The time of the controller, by whose clock Slurm gives the end: no command of Slurm answers with
 * a remaining time that is independent of our own clock (squeue's TimeLeft subtracts time(2) of the
 * machine that asks). utc: our clock. A job that started at start (0: not known) and that we have
 * seen running for running ms must be at start + running at least: a clock that is behind that is
 * corrected. One that is ahead is noticed only when it is past the job's end.
 */
int64_t slurm_utc(int64_t utc, int64_t start, int64_t running);

struct slurm_estimate {
	int64_t left; /* ms until the job is killed; -1: not known */
	const char *why;
	bool over; /* the end is over by our clock: so left is not known */
};
/*
 * The time left after a notice signal, for this state of the job. known_end: the end before (0:
 * none). A TERM whose sender has not moved the end (scancel -s TERM) does not show when it will be,
 * unless the end is no further away than lead. Any other signal was asked for (--signal=USR1@T).
 */
struct slurm_estimate slurm_estimate_left(
	const struct slurm_job *job, int signal, int64_t known_end, int64_t lead, int64_t utc);

#endif
