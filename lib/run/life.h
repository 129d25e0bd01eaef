/* SPDX-License-Identifier: MIT */
/*
 * Which life (base/life.h) a process belongs to that saves: what tells its start of the job from
 * all others, alike in all its tasks.
 *
 *   PREEMPT_LIFE as an agent or "preempt-store join" exports it: the attempt's own.
 *   PREEMPT_LIFE or --life with any other word: the word, within a Slurm job and its restart.
 *   Neither, in a Slurm step: cluster, job, start time, restart count and step.
 *   Neither, under a torchrun of one machine: the directory that it made for this start.
 * Under torchrun each restart of the workers is a life of its own, because they start again from a
 * checkpoint while the attempt goes on. With several machines that cannot be told, and is refused
 * unless torchrun never restarts them (--max-restarts 0) or the program gives --life itself.
 */
#ifndef RUN_LIFE_H
#define RUN_LIFE_H

#include "base/life.h"
#include "run/identity.h"

/*
 * word: of --life or PREEMPT_LIFE; NULL or "": not given. STATUS_USAGE: nothing tells the start
 * from others, or what the environment says cannot be right; err names the cure. Pure.
 */
enum status life_find(const struct identity_environment *environment, const char *word,
	char life[LIFE_SIZE], struct error *err);

#endif
