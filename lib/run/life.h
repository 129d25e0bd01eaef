/* SPDX-License-Identifier: MIT */
/*
 * The life (base/process/life.h) of a process that saves: it differs between all starts of a job,
 * and is the same in all tasks of one start.
 *
 *   PREEMPT_LIFE as an agent or "preempt-store join" exports it: the attempt's life.
 *   PREEMPT_LIFE or --life with any other word: the word, with the Slurm job and its restart count.
 *   Neither, in a Slurm step: cluster, job, start time, restart count and step.
 *   Neither, under a torchrun of one machine: the directory that it made for this start.
 * Under torchrun each restart of the workers is a life of its own, because they start again from a
 * checkpoint while the attempt goes on. With several machines these restarts cannot be seen, so
 * that is refused unless torchrun never restarts workers (--max-restarts 0) or the program gives
 * --life itself.
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
