/* SPDX-License-Identifier: MIT */
/*
 * A slot of a worker runs one command at a time:
 *
 *	       slot_start          its end
 *	FREE -------------> RUNS -----------> ENDED --- slot_clear ---> FREE
 *	  |          slot_tell |  `--> HIT --'  ^ ^
 *	  |      or its timeout`---> TOLD ------' |
 *	  `----------- it cannot start -----------'
 *
 *	TOLD: it has got a signal, and gets KILL later. HIT: it has died of a signal that may be a
 *	notice; schedulers signal all processes at once, and the worker's own notice may come a
 *	moment later: until slot->at, slot_tell(ENDING_PREEMPTED) still counts.
 *
 * The command has a process group of its own, dies with its worker, and writes its output to
 * FILES/ID.TOKEN.out and .err itself (output.h).
 */
#ifndef QUEUE_SLOT_H
#define QUEUE_SLOT_H

#include "base/loop.h"
#include "base/process/reaper.h"
#include "base/process/subprocess.h"
#include "queue/devices.h"
#include "queue/queue.h"

enum slot_state { SLOT_FREE, SLOT_RUNS, SLOT_TOLD, SLOT_HIT, SLOT_ENDED };

/* What all slots of a worker share. */
struct slot_context {
	struct queue *queue;
	const struct queue_worker *worker;
	const struct reaper *reaper;
	const struct devices *devices; /* NULL: none are divided */
	char **resources;	       /* the directory of all resources (resource.h) */
	struct loop *loop;	       /* it sees the end */
	int64_t kill_after;	       /* ms between TERM and KILL at the command's timeout */
};

/* One that is zeroed but for place and number is free. */
struct slot {
	const struct slot_context *place;
	size_t number; /* 0 .. slots - 1: $PREEMPT_SLOT */
	enum slot_state state;
	struct queue_view run;
	struct subprocess child;
	int out, err;		    /* its files; 0: none */
	int64_t at;		    /* RUNS: its timeout; HIT: see above */
	enum queue_ending_kind why; /* TOLD */
	struct queue_result result; /* ENDED; but out and err: after slot_keep */
	bool doubted;		    /* at some time while it ran, there was no room for output */
};

/*
 * Move run into a free slot and start it. If that fails, the slot is ENDED: ENDING_CANNOT with 127
 * or 126 as in a shell, or with 1 for its directory, stdin or stdout; ENDING_MACHINE; or, if it
 * names a resource that does not exist, as after an exit with 1.
 *
 * It runs in the directory of its item, else in ours. Its environment: ours, PREEMPT_QUEUE,
 * PREEMPT_ITEM_ID, PREEMPT_ITEM_ATTEMPT (the number of this start), PREEMPT_ITEM_DIR (it lasts from
 * start to start, and is removed after success if it is empty), PREEMPT_WORKER,
 * PREEMPT_WORKER_INDEX, PREEMPT_SLOT, CUDA_VISIBLE_DEVICES (devices.h), PREEMPT_RESOURCE_NAME, and
 * its own --env. Placeholders in its words are filled (template.h).
 */
void slot_start(struct slot *slot, struct queue_view *run);
/* Move run into a free slot, which is ENDED at once: it was not started. */
void slot_refuse(
	struct slot *slot, struct queue_view *run, enum queue_ending_kind why, const char *text);
/*
 * Tell its process group to end: send number now (and CONT, for stopped processes), and KILL at
 * kill_at. In a repeated call the first why and the earliest kill_at count, and the same why sends
 * no second signal.
 */
void slot_tell(struct slot *slot, enum queue_ending_kind why, int number, int64_t kill_at);
/* When to call slot_tick at the latest; earlier when child.end becomes readable. */
int64_t slot_due(const struct slot *slot);
/* Look whether it has ended; apply its timeout and KILL. */
void slot_tick(struct slot *slot, int64_t now);

/* ENDED: whether it ended by itself. Else it runs again, or nobody asks for its output. */
bool slot_has_output(const struct slot *slot);
/*
 * ENDED: make its output durable, and fill the sizes in the result. If that fails, or there is no
 * room for more output (why, else NULL), it may not be whole: ENDING_MACHINE. If there was none
 * while it ran (doubted), it may have lost output, or have failed for it: ENDING_PREEMPTED.
 */
void slot_keep(struct slot *slot, const struct error *why);
/*
 * Free the slot. accepted and state: of struct queue_ended; not accepted: its output is removed.
 * If it still runs, it gets KILL.
 */
void slot_clear(struct slot *slot, bool accepted, enum queue_state state);

#endif
