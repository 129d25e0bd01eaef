/* SPDX-License-Identifier: MIT */
/*
 * A slot holds one running command. The command has a process group of its own, and is killed when
 * its worker dies. Its stdout and stderr go to unnamed local files. child.end tells its end.
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
	int64_t kill_after; /* ms between TERM and KILL, unless an option says otherwise */
};

struct slot {
	bool held;	      /* run waits for its resources */
	bool busy;	      /* run was started, or ended without a start */
	int64_t look_from;    /* held: a look at the workers must begin then or later; 0: none */
	struct queue_run run; /* if it could not start, result.ending is already set */
	size_t number;	      /* 0 .. slots - 1: $PREEMPT_SLOT; set by the caller, never cleared */
	struct subprocess child;  /* pid 0: not started, or reaped */
	int out, err;		  /* its stdout and stderr; -1: not started */
	int64_t started, timeout; /* started: UTC; timeout: monotonic */
	int64_t kill_at;	  /* when to send KILL; CLOCK_NEVER: it was not told to end */
	/* Why it was told to end: ENDING_TIMED_OUT, ENDING_PREEMPTED, ENDING_CANCELLED. */
	bool told;
	enum queue_ending_kind why;
	uint64_t because; /* id of the failed command for which this one ends; 0: none */

	/*
	 * When we saw that the command, which was not told to end, died of a signal that may be a
	 * notice; 0: it did not. Schedulers signal all processes at once, so the worker's own
	 * notice may arrive a moment later.
	 */
	int64_t hit;

	/* The progress of slot_collect. */
	bool ended;	/* reaped; run.result is filled */
	bool kept[2];	/* by enum output_stream: this output is kept */
	int64_t again;	/* when to try slot_collect again */
	bool collected; /* all done: wait for slot_clear */
};

/* Move run into a free slot, which then holds it. */
void slot_take(struct slot *slot, struct queue_run *run);
/*
 * Start the command that the slot holds. If this fails, slot_due is now and slot_collect gives the
 * reason: ENDING_CANNOT with 127 or 126 as in a shell, or with 1 for its directory, stdin, stdout
 * or placeholders; or an ending as after an exit with 75, if the command is not the cause and the
 * failure may pass. It runs in the directory of its item, else in ours. Its environment: ours,
 * PREEMPT_QUEUE, PREEMPT_ITEM_ID, PREEMPT_ITEM_ATTEMPT (the number of this start), PREEMPT_ITEM_DIR
 * (a directory in queue->files, which lasts from start to start, and is removed after success if it
 * is empty), PREEMPT_WORKER, PREEMPT_WORKER_INDEX, PREEMPT_SLOT, CUDA_VISIBLE_DEVICES (devices.h),
 * extra (NAME=VALUE of the resources, NULL-terminated; NULL: none), and its own --env. Placeholders
 * in argv are filled (template.h).
 */
void slot_start(struct slot *slot, const struct slot_context *place, char *const *extra);
/*
 * End the command that the slot holds, because it cannot be started. STATUS_NO, STATUS_USAGE: with
 * code 1; STATUS_NOT_FOUND, STATUS_CANNOT_RUN: with that code. Any other status can pass: the
 * ending is as after an exit with 75.
 */
void slot_fail(struct slot *slot, enum status why, const char *text);
/* Our environment, and the variables that both commands and builds of resources get. */
void slot_environment(const struct slot_context *place, struct variables *all);
/*
 * Tell its process group to end: send `signal` now (and CONT, for stopped processes), and KILL at
 * kill_at. In a repeated call, the first `why` and the earlier kill_at count, and the same `why`
 * sends no second signal. If the command has ended, nothing is sent, but ENDING_PREEMPTED is noted
 * if it died of a signal that may be a notice.
 */
void slot_tell(struct slot *slot, enum queue_ending_kind why, int signal, int64_t kill_at);
/* When to call slot_tick at the latest; call it earlier when child.end becomes readable. */
int64_t slot_due(const struct slot *slot);
/* Apply the timeout and KILL. True: the command has ended; call slot_collect now. */
bool slot_tick(struct slot *slot, const struct slot_context *place, int64_t now);

/*
 * Finish a command that has ended: reap it; kill the rest of its group, unless it exited with 0;
 * decide its next state (rules.h); and if that is final, file long output (output.h). Exit code 0
 * is success, also after a notice; 93 after a notice also counts as the command's own decision.
 * STATUS_OK: run is ready to be handed in; leave the slot as it is until slot_clear. Otherwise
 * (full disk): call again at slot_due; the call continues where this one failed. If the command was
 * cancelled, output that cannot be kept is dropped.
 */
enum status slot_collect(struct slot *slot, const struct slot_context *place, struct error *err);
/*
 * Free the slot, after the exchange or when the result is no longer wanted. Removes the output
 * unless the result was, or may have been, accepted; removes the command's directory if it
 * succeeded and the directory is empty; sends KILL if the command still runs.
 */
void slot_clear(struct slot *slot, const struct slot_context *place);

#endif
