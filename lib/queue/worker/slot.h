/* SPDX-License-Identifier: MIT */
/*
 * One command that runs: started in a process group of its own, dead with its worker, its stdout
 * and stderr caught in files of this machine that have no name, its end seen by a descriptor.
 */
#ifndef QUEUE_WORKER_SLOT_H
#define QUEUE_WORKER_SLOT_H

#include "base/process/reaper.h"
#include "base/process/subprocess.h"
#include "base/process/variables.h"
#include "queue/exchange.h"
#include "queue/output/output.h"
#include "queue/worker/devices.h"

/* What all slots of a worker share. */
struct slot_context {
	const struct queue *queue;
	const struct queue_worker *worker;
	const struct reaper *reaper;
	const struct devices *devices;
	int64_t kill_after; /* ms between TERM and KILL where nothing else says */
};

struct slot {
	bool held;		  /* run was taken, and waits for its resources */
	bool busy;		  /* run was started, or is over without */
	struct queue_run run;	  /* result.ending also before its end, where it never started */
	size_t number;		  /* 0 .. slots - 1: $PREEMPT_SLOT; the caller's to set, and kept */
	struct subprocess child;  /* pid 0: it never started, or is reaped */
	int out, err;		  /* what it wrote; -1: it never started */
	int64_t started, timeout; /* started: UTC; timeout: when its time is up (monotonic) */
	int64_t kill_at;	  /* when it gets KILL; CLOCK_NEVER: it was not told to end */
	/* Why it was told to end: ENDING_TIMED_OUT, ENDING_PREEMPTED, ENDING_CANCELLED. */
	bool told;
	enum queue_ending_kind why;
	uint64_t because; /* it is to end because this command failed; 0: otherwise */

	/*
	 * When it was seen to have died, without being told to end, of a signal that may be a
	 * notice; 0: it has not. Schedulers signal all processes at once, so the worker's own
	 * notice may arrive a moment later.
	 */
	int64_t hit;

	/* Its end, as far as slot_collect has come. */
	bool ended;	/* reaped; run.result is filled */
	bool kept[2];	/* its outputs, by enum output_stream */
	int64_t again;	/* when slot_collect may be tried again */
	bool collected; /* until slot_clear there is nothing to do */
};

/* Take run over into a free slot; it is held. */
void slot_take(struct slot *slot, struct queue_run *run);
/*
 * Start what is held. Where this fails, slot_due is now and slot_collect says why: ENDING_CANNOT
 * with 127, 126, or 1 for its directory, its stdin and its placeholders; or, where the reason is
 * not the command's and can pass, as after an exit with 75. It runs where its item says, else
 * where we are. Its environment: ours, PREEMPT_QUEUE, PREEMPT_ITEM_ID, PREEMPT_ITEM_ATTEMPT (the
 * number of this start), PREEMPT_ITEM_DIR (a directory in queue->files that lasts from start to
 * start, is here already, and goes after success if it is empty), PREEMPT_WORKER,
 * PREEMPT_WORKER_INDEX, PREEMPT_SLOT, CUDA_VISIBLE_DEVICES (devices.h), extra (NAME=VALUE,
 * NULL-terminated; NULL: none: the resources), and its own --env. Placeholders in argv are filled
 * (template.h).
 */
void slot_start(struct slot *slot, const struct slot_context *place, char *const *extra);
/*
 * Mark what is held as one that cannot be started: STATUS_NO, STATUS_USAGE: it fails with 1;
 * STATUS_NOT_FOUND, STATUS_CANNOT_RUN: with that code; else this can pass: as after an exit
 * with 75.
 */
void slot_fail(struct slot *slot, enum status why, const char *text);
/* Our environment, and what commands and builds of resources have in common. */
void slot_environment(const struct slot_context *place, struct variables *all);
/*
 * Tell its process group to end: signal now (also to those that are stopped), KILL at kill_at. Told
 * again, the first why counts, the earlier kill_at, and one of the same kind gets no second signal.
 * One that has ended already is not told.
 */
void slot_tell(struct slot *slot, enum queue_ending_kind why, int signal, int64_t kill_at);
/* When slot_tick wants to be called; CLOCK_NEVER. Until then child.end says when it has
 * ended. */
int64_t slot_due(const struct slot *slot);
/* Its timeout and its KILL. True: it has ended, and is to be collected now. */
bool slot_tick(struct slot *slot, const struct slot_context *place, int64_t now);

/*
 * Take its end: reaps it, ends what is left of its group unless it ended by itself with 0,
 * decides where it goes (rules.h), stores long output (output.h) if it goes nowhere else. With 0 it
 * has succeeded, also after a notice; 93 after a notice is its own decision, too. STATUS_OK: run is
 * to be handed in, and the slot must stay as it is until slot_clear. Else (the disk is full): the
 * command is over; slot_due says when to try again, which goes on from there.
 */
enum status slot_collect(struct slot *slot, const struct slot_context *place, struct error *err);
/*
 * After the exchange, or when its result is no longer wanted: frees all, removes its output unless
 * the result was accepted or may have been, and its directory where it succeeded and that is empty.
 * The command gets KILL where it still runs.
 */
void slot_clear(struct slot *slot, const struct slot_context *place);

#endif
