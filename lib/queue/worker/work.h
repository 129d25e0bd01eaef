/* SPDX-License-Identifier: MIT */
/* A worker: takes commands from a queue and runs them, until it has a notice or is told to end. */
#ifndef QUEUE_WORKER_WORK_H
#define QUEUE_WORKER_WORK_H

#include "notice/source_set.h"
#include "queue/queue.h"
#include "queue/worker/devices.h"

struct work_options {
	const char *url;    /* of the store: the beats have a handle of their own */
	const char *worker; /* name; NULL: the array index, else host-pid */
	uint64_t index;	   /* UINT64_MAX: the array index, or the name where it is a number, else by
			      workers_join */
	uint64_t slots;	   /* commands at a time, from 1 */
	int64_t idle_exit; /* ms without anything waiting or running anywhere, then it ends;
			      negative: never */
	struct source_set *watch;	      /* sources of notices, opened; stays the caller's */
	int64_t grace;			      /* ms after a notice without a deadline */
	int term_signal;		      /* what running commands get at a notice */
	int64_t kill_after;		      /* ms between TERM and KILL otherwise */
	int64_t period;			      /* of the beats, ms */
	uint64_t limit;			      /* docs/design.md, section 5 */
	int64_t start_delay, start_delay_max; /* ms: index x start_delay, at most that */
	int64_t watchdog; /* ms without any end after which what runs is reported; 0: never */
	const struct devices *devices; /* dealt out to the slots; stays the caller's */
	const char *joblog; /* file that gets a line for each accepted result; NULL: none */
};

/*
 * 0: drained; 44: drained, except what waits until a failure is reported; 42: it had a notice, all
 * it ran has ended and is given back; else a status, after a message. Signals that end a program
 * (base/process/ending.h) end it as a notice does, with a code of their own.
 */
int work_run(struct queue *queue, const struct work_options *options);

#endif
