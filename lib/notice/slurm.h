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
};

/* "RUNNING 1767225600", as squeue -o '%T %e' prints it with SLURM_TIME_FORMAT=%s. */
bool slurm_read_job(const char *line, struct slurm_job *job);

struct slurm_verdict {
	int64_t left; /* ms until the job is killed; -1: not known */
	const char *why;
};
/*
 * A notice signal came, and this is the job now. known_end: what was thought before (0: nothing).
 * A TERM whose sender has not moved the end (scancel -s TERM) says nothing of when it will be,
 * unless the end is no further away than lead. Any other signal was asked for (--signal=USR1@T).
 */
struct slurm_verdict slurm_judge(
	const struct slurm_job *job, int signal, int64_t known_end, int64_t lead, int64_t utc);

#endif
