/* SPDX-License-Identifier: MIT */
/* Find ancestors of this process in /proc: Slurm's, and the one that reads our output. */
#ifndef PLATFORM_ANCESTORS_H
#define PLATFORM_ANCESTORS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Get our Slurm step, "9.batch" or "9.0", from the command line of the slurmstepd above us. The
 * environment is not enough, because sbatch passes SLURM_STEP_ID on to the jobs it submits.
 */
bool ancestors_slurm_step(char *step, size_t size);

/*
 * Whether the shell of a batch script waits for us: a signal for the batch shell alone reaches the
 * shell, and ends it. Not after exec: then Slurm's own process is our parent.
 */
bool ancestors_batch_shell_waits(void);

/*
 * If we run in a TaskProlog: the process that becomes the task after it; else 0. The environment is
 * not enough, because the task keeps the prolog's SLURM_SCRIPT_CONTEXT.
 */
pid_t ancestors_prolog_task(void);

/*
 * The nearest ancestor that reads the pipe of our standard output, as a shell does in $(...);
 * programs such as timeout and env may be in between. 0: there is none, or it is a slurmstepd,
 * which only passes on the output of a task.
 */
pid_t ancestors_reader(void);

#endif
