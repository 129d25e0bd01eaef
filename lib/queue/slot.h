/* SPDX-License-Identifier: MIT */
/*
 * One command that runs: started in a process group of its own, dead with its worker, its stdout
 * and stderr caught in files of this machine that have no name, its end seen by a descriptor.
 */
#ifndef QUEUE_SLOT_H
#define QUEUE_SLOT_H

#include "base/guard.h"
#include "queue/exchange.h"

/* What all slots of a worker share. */
struct slot_place {
	const struct queue *queue;
	const struct queue_worker *worker;
	const struct guard *guard;
	int64_t kill_after; /* ms between TERM and KILL where nothing else says */
};

struct slot {
	bool busy;
	struct queue_taken taken;
	size_t number; /* 0 .. slots - 1: $PREEMPT_SLOT */
	pid_t pid;
	int descriptor; /* readable when the command has ended (pidfd); -1: it never started */
	int out, err;	/* what it wrote */
	int64_t started, timeout; /* started: UTC; timeout: when its time is up (monotonic) */
	int64_t kill_at;	  /* when it gets KILL; CLOCK_NEVER: it was not told to end */
	/* Why it was told to end: ENDING_TIMED_OUT, ENDING_PREEMPTED, ENDING_CANCELLED. */
	bool told;
	enum queue_ending_kind why;
	struct queue_ending failed; /* kind ENDING_CANNOT: it could not be started */
};

/*
 * Start taken (taken over, also where this fails to start it: then slot_due is now and
 * slot_collect says why). Its environment: ours, PREEMPT_QUEUE, PREEMPT_ITEM_ID,
 * PREEMPT_ITEM_ATTEMPT (the number of this start), PREEMPT_ITEM_DIR (a directory in queue->files
 * that lasts from start to start, is here already, and goes after success if it is empty),
 * PREEMPT_WORKER, PREEMPT_WORKER_INDEX, PREEMPT_SLOT, extra (NAME=VALUE, NULL-terminated; NULL:
 * none: the resources), and its own --env. Placeholders in argv are filled (template.h).
 */
void slot_start(struct slot *slot, const struct slot_place *place, struct queue_taken *taken,
	char *const *extra);
/* Mark it as one that cannot be started because of this. */
void slot_refuse(struct slot *slot, struct queue_taken *taken, const char *why);
/* Tell its process group to end: signal now, KILL at kill_at. Told twice, the first why counts. */
void slot_tell(struct slot *slot, enum queue_ending_kind why, int signal, int64_t kill_at);
/* When slot_tick wants to be called; CLOCK_NEVER. */
int64_t slot_due(const struct slot *slot);
/* Its timeout and its KILL. True: it has ended, and is to be collected. */
bool slot_tick(struct slot *slot, const struct slot_place *place, int64_t now);

/*
 * What became of it: reaps it, ends what is left of its group unless it ended by itself with 0,
 * decides where it goes (rules.h), stores long output (output.h). STATUS_OK: back is filled, and
 * the slot must stay as it is until slot_clear. Else (the disk is full): try again later; the
 * command is over.
 */
enum status slot_collect(struct slot *slot, const struct slot_place *place,
	struct queue_return *back, struct error *err);
/* After the exchange: frees all, removes an empty item directory where it succeeded. */
void slot_clear(struct slot *slot, const struct slot_place *place, struct queue_return *back);

#endif
