/* SPDX-License-Identifier: MIT */
/* A worker takes commands from a queue and runs them, until a notice or a signal ends it. */
#ifndef QUEUE_WORKER_WORK_H
#define QUEUE_WORKER_WORK_H

#include "notice/source_set.h"
#include "queue/queue.h"
#include "queue/worker/devices.h"

struct work_options {
	const char *url;    /* of the store; the beats use a handle of their own */
	const char *worker; /* name; NULL: the array index, else host-pid */
	uint64_t index; /* UINT64_MAX: the name if it is a number, else the array index, else chosen
			   by workers_join */
	uint64_t slots; /* commands at a time, at least 1 */
	int64_t idle_exit; /* ms without a waiting or running command in the whole queue until we
			      exit; negative: never */
	struct source_set *watch; /* open sources of notices; belongs to the caller */
	int64_t grace;		  /* ms after a notice without a deadline; negative: kill_after */
	int term_signal;	  /* sent to running commands at a notice */
	int64_t kill_after;	  /* ms between TERM and KILL without a notice */
	int64_t period;		  /* ms between two beats */
	uint64_t limit; /* missed beats that make a worker dead: docs/design.md, section 5 */
	int64_t start_delay, start_delay_max; /* ms: wait index x start_delay, at most max */
	int64_t watchdog; /* ms without an ended command until the running ones are reported; 0:
			     never */
	const struct devices *devices; /* divided among the slots; belongs to the caller */
	const char *joblog; /* a file: append a line for each accepted result; NULL: none */
};

/*
 * Returns 0: the queue is drained; 44: drained, but commands wait until a failure is reported; 42:
 * a notice came, and all running commands have ended and are handed in; otherwise a status, after
 * a message. Signals that end a program (base/process/ending.h) act as notices (code 128 + signal).
 */
int work_run(struct queue *queue, const struct work_options *options);

#endif
