/* SPDX-License-Identifier: MIT */
/* What /proc says of the processes above this one: Slurm's, and who reads our output. */
#ifndef RUN_ANCESTORS_H
#define RUN_ANCESTORS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * The Slurm step that we are in, "9.batch" or "9.0", as the slurmstepd above us says. The
 * environment alone cannot tell, because sbatch passes SLURM_STEP_ID on to the jobs it submits.
 */
bool ancestors_slurm_step(char *step, size_t size);

/*
 * The process that is about to become the task, where we run in its TaskProlog; 0: we do not. The
 * environment does not tell: Slurm leaves the prolog's SLURM_SCRIPT_CONTEXT to the task.
 */
pid_t ancestors_prolog_task(void);

/*
 * The nearest process above us that reads the pipe which our standard output is, as a shell does in
 * $(...), whatever stands in between (timeout, env); 0: there is none, or it is a slurmstepd, which
 * only passes on what a task prints.
 */
pid_t ancestors_reader(void);

#endif
