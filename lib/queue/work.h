/* SPDX-License-Identifier: MIT */
/* A worker takes commands from a queue and runs them, until a notice or a signal ends it. */
#ifndef QUEUE_WORK_H
#define QUEUE_WORK_H

#include "notice/source_set.h"
#include "queue/devices.h"
#include "queue/queue.h"

struct queue_work {
	const char *url; /* of the store; the beats use a handle of their own */
	const char *
		worker; /* name; NULL: the array index, else host-pid. A number is the index, too */
	uint64_t slots; /* commands at a time, 1 to QUEUE_BATCH */
	int64_t idle_exit;	  /* ms without an open command in the whole queue until it exits;
				     negative: never */
	struct source_set *watch; /* open sources of notices; belongs to the caller */
	int64_t grace;		  /* ms after a notice without a deadline; negative: kill_after */
	int term_signal;	  /* for running commands at a notice */
	int64_t kill_after;	  /* ms between TERM and KILL without a notice */
	int64_t period;		  /* ms between two beats */
	uint64_t limit;		  /* silent periods that mean death */
	int64_t start_delay, start_delay_max; /* ms: wait index x start_delay, at most max */
	const struct devices *devices;	      /* divided among the slots; belongs to the caller */
};

/*
 * Returns the exit code. 0: the queue is drained. 44: it is idle, and commands wait until a failure
 * is told. 42: a notice came, and all results are handed in. 75, after a message: commands that
 * run elsewhere do not run on this machine; or no time was left. Otherwise a status, after a
 * message. Signals that end a program (base/process/ending.h) are notices, too; ending_signal()
 * then names the one by which the caller is to die.
 */
int queue_work(struct queue *queue, const struct queue_work *options);

/*
 * How much of the time until a deadline the running commands may use; the rest is for handing in
 * their results. Pure; ms.
 */
int64_t queue_work_share(int64_t left);

#endif
