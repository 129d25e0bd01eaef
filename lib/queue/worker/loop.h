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
	struct exchange_pauses pauses;
	struct reaper reaper;
	struct slot_context place;
	int wake;    /* an epoll descriptor for everything the loop waits for */
	int signals; /* a signalfd for the signals that end us */
	int joblog;  /* -1: none */

	struct slot *slots;
	size_t slot_count;
	struct resources resources;
	/* The slots whose commands have ended and are not handed in yet, in order of ending. */
	struct slot **ended;
	size_t ended_count;

	bool worth_trying;    /* there may be a command to take */
	int64_t not_before;   /* take nothing until then: staggered start, or a pause */
	unsigned not_started; /* pauses in a row because no command can start here */
	int64_t period_at;    /* when to look at the other workers again */

	/* If the store does not answer. */
	unsigned failures; /* in a row */
	int64_t failing_since;
	int64_t again;	  /* ask nothing until then */
	int64_t asked_at; /* when we last looked whether to ask */
	bool stuck;	  /* it did not answer in this turn of the loop */
	bool refused;	  /* the last exchange failed */
	bool said_trouble, said_damage, said_full, said_pending;

	/* --idle-exit */
	int64_t drained_at, drained_since; /* when to look again; since when; 0: not drained */
	uint64_t drained_sum;

	/* --watchdog: since when no command has ended, and when we reported it. */
	int64_t quiet_since, said_quiet;

	bool leaving, signalled; /* signalled: a signal that ends us has come */
	int code;		 /* exit code */
	int ended_by;		 /* the signal that ends us; 0: exit with code */
	int64_t kill_at;	 /* when running commands get KILL */
	int64_t until;		 /* when we stop trying to hand in results */
};

#define WORK_NOT_STARTED "its worker had to leave before it started"

/* ---- The loop; starting and ending commands: work.c ---- */

bool work_is_idle(const struct work *work); /* no command runs, or waits to be handed in */
bool work_runs_something(const struct work *work);
size_t work_free_slots(const struct work *work);
bool work_may_take(const struct work *work, int64_t now);
/* Start it in a free slot once its resources are built. If we are leaving, it goes back at once. */
void work_start(struct work *work, struct queue_run *run);
/* End the command that this slot holds and has not started yet. */
void work_end_held(struct slot *slot, enum queue_ending_kind why, const char *text);

/* ---- Requests to the store: store.c ---- */

/* Make all requests that are due. */
void work_ask_store(struct work *work);
/* Note the outcome of a request; a permanent error makes us leave. */
void work_note_answer(struct work *work, enum status status, const struct error *err);

/*
 * Whether this worker still looks for dead workers: others may rely on it while it beats. So it
 * goes on while it leaves, until no command runs here, or KILL is less than 10 s away.
 */
bool work_looks_at_others(const struct work *work, int64_t now);
/* Whether to ask the store if the queue is drained. */
bool work_asks_whether_drained(const struct work *work, int64_t now);

/* ---- Notices, signals, and leaving: leave.c ---- */

void work_take_notices(struct work *work);
/* Take also notices that a source has caught but keeps until it knows more. */
void work_take_held(struct work *work);
void work_take_signals(struct work *work);
/*
 * Take no more commands; tell the running ones to end, and send KILL at kill_at. In a repeated
 * call, the earlier times count.
 */
void work_leave(struct work *work, int code, int64_t kill_at, int64_t until);
/* After work_leave: unregister once everything is handed in. True: done, or no time is left. */
bool work_has_left(struct work *work);
/*
 * How much of the time until a deadline the running commands may use; the rest is for handing in
 * their results. Pure; ms.
 */
int64_t work_share(int64_t left);

/* ---- Name, joblog and watchdog: say.c ---- */

/* Choose name and index, from the options and the environment. */
void work_name(const struct work_options *options, struct queue_worker *worker);
enum status work_open_joblog(const char *path, int *descriptor, struct error *err);
void work_write_joblog(struct work *work, const struct queue_run *run);
/* When to call work_watchdog; CLOCK_NEVER: it is not used. */
int64_t work_watchdog_due(const struct work *work);
void work_watchdog(struct work *work, int64_t now);

#endif
