/* SPDX-License-Identifier: MIT */
/* The state of a worker, and its parts. Private to lib/queue/worker. */
#ifndef QUEUE_WORKER_LOOP_H
#define QUEUE_WORKER_LOOP_H

#include "queue/worker/resource.h"
#include "queue/worker/slot.h"
#include "queue/worker/work.h"

struct work {
	struct queue *queue;
	const struct work_options *options;
	struct queue_worker worker;
	bool registered, was_registered;
	struct beater *beater;
	struct judge judge;
	struct exchange exchange;
	struct reaper reaper;
	struct slot_context place;
	int wake;    /* an epoll descriptor of all that can happen here */
	int signals; /* a signalfd of those that end us */
	int joblog;  /* -1: none */

	struct slot *slots;
	size_t slot_count;
	struct resources resources;
	/* The slots of commands that have ended and are not handed in yet, in that order. */
	struct slot **ended;
	size_t ended_count;

	bool worth_trying;    /* something may be there to be taken */
	int64_t paused_until; /* then something may be there again that we left alone */
	int64_t not_before;   /* nothing is taken until then: the staggered start, or a pause */
	unsigned not_started; /* pauses in a row because nothing can be started here */
	int64_t period_at;    /* when the others are looked at again */

	/* The store does not answer. */
	unsigned failures; /* in a row */
	int64_t failing_since;
	int64_t again;	  /* nothing is asked until then */
	int64_t asked_at; /* when it was last looked whether to ask */
	bool stuck;	  /* in this turn already */
	bool refused;	  /* it did not take what we hand in, or give us anything */
	bool said_trouble, said_damage, said_full, said_pending;

	/* --idle-exit */
	int64_t drained_at, drained_since; /* next look; 0: not drained */
	uint64_t drained_sum;

	/* --watchdog: since when nothing has ended, and when that was said. */
	int64_t quiet_since, said_quiet;

	bool leaving;
	int code;	 /* with which we leave */
	int ended_by;	 /* or the signal that ends us */
	int64_t kill_at; /* when what runs gets KILL */
	int64_t until;	 /* when we stop trying to hand in */
};

#define WORK_NOT_STARTED "its worker had to leave before it started"

/* ---- Its loop, starting and ending of commands: work.c ---- */

bool work_is_idle(const struct work *work); /* nothing runs, nothing is to be handed in */
bool work_runs_something(const struct work *work);
size_t work_free_slots(const struct work *work);
bool work_may_take(const struct work *work, int64_t now);
/* Start it in a free slot, once what it needs is built; where we leave, it goes back at once. */
void work_start(struct work *work, struct queue_run *run);
/* What this slot holds and did not start yet is over for this reason. */
void work_end_held(struct slot *slot, enum queue_ending_kind why, const char *text);

/* ---- What it asks of the store: store.c ---- */

/* All that is due with the store. */
void work_ask_store(struct work *work);
/* It answered, or not; a status that does not pass makes us leave. */
void work_note_answer(struct work *work, enum status status, const struct error *err);

/*
 * Whether it looks at the others, too, as it does until it leaves: also while what runs has a long
 * grace. It beats on, and who sees that may leave the dead to it.
 */
bool work_looks_at_others(const struct work *work, int64_t now);
/* Whether it is to be found out if all is done. */
bool work_asks_whether_drained(const struct work *work, int64_t now);

/* ---- Notices, signals, and how it leaves: leave.c ---- */

void work_take_notices(struct work *work);
/* Also those that a source has caught and keeps until it knows more. */
void work_take_held(struct work *work);
void work_take_signals(struct work *work);
/*
 * Take nothing any more; what runs is told to end, and gets KILL at kill_at. Called again, only the
 * earlier times count.
 */
void work_leave(struct work *work, int code, int64_t kill_at, int64_t until);
/* Since leaving: whether it is done, or no time is left for it. */
bool work_has_left(struct work *work);
/*
 * How long what runs may go on, of what is left until a deadline: some is kept for handing in.
 * Pure; ms.
 */
int64_t work_share(int64_t left);

/* ---- Its name, its joblog, its watchdog: say.c ---- */

/* Its name and index, by the options and the environment. */
void work_name(const struct work_options *options, struct queue_worker *worker);
enum status work_open_joblog(const char *path, int *descriptor, struct error *err);
void work_write_joblog(struct work *work, const struct queue_run *run);
/* When the watchdog wants to be called; CLOCK_NEVER. */
int64_t work_watchdog_due(const struct work *work);
void work_watchdog(struct work *work, int64_t now);

#endif
