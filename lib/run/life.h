/* SPDX-License-Identifier: MIT */
/*
 * The life (base/process/life.h) of a process that saves: it differs between all starts of a job,
 * and is the same in all tasks of one start.
 *
 *   PREEMPT_LIFE as an agent or "preempt-store join" exports it: the attempt's life.
 *   PREEMPT_LIFE or --life with any other word: the word; in a Slurm job also its cluster, number,
 *   start time and restart count.
 *   Neither, in a Slurm step: cluster, job, start time, restart count and step.
 *   Neither, under a torchrun of one machine: the directory that it made for this start.
 * Under torchrun each restart of the workers is a life of its own, because they start again from a
 * checkpoint while the attempt goes on. With several machines these restarts cannot be seen, so
 * life_find refuses, unless torchrun never restarts workers (--max-restarts 0). Nothing of torchrun
 * is added to a word of --life: the program must give another one after each restart.
 */
#ifndef RUN_LIFE_H
#define RUN_LIFE_H

#include "base/process/life.h"
#include "run/identity.h"

/*
 * word: of --life or PREEMPT_LIFE; NULL or "": not given. STATUS_USAGE: this start cannot be told
 * from others, or the environment contradicts itself; err names the cure. Pure.
 */
enum status life_find(const struct identity_environment *environment, const char *word,
	char life[LIFE_SIZE], struct error *err);

#endif
