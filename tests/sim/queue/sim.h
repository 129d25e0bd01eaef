/* SPDX-License-Identifier: MIT */
/*
 * A world in which schedulers, workers and people call the queue (lib/queue/queue.h) in any order,
 * with its tables in memory. Requests and answers of the store are lost, workers vanish, are
 * declared dead while they live, come again, and go on with what they no longer hold. After each
 * transaction the observer compares the tables with those before it, and says whether that may be.
 * A world is a function of its struct schedule, and that one of its seed.
 */
#ifndef SIM_QUEUE_SIM_H
#define SIM_QUEUE_SIM_H

#include <sqlite3.h>

#include "../broken.h"
#include "../kernel.h"
#include "../runner.h"
#include "queue/queue.h"
#include "queue/rules.h"
#include "store/backend.h"

#define MOST_COMMANDS	48
#define MOST_WORKERS	24
#define MOST_LISTED	96 /* registrations that were not fenced yet */
#define MOST_SLOTS	3
#define MOST_BATCH	4
#define MOST_AFTER	2
#define MOST_STARTS	1024
#define MOST_STATEMENTS 4
#define SCHEDULERS	2 /* the last one schedules under a name, again and again */

enum act {
	SCHEDULE,
	COME,	/* a worker */
	WORK,	/* an exchange */
	VANISH, /* a worker: nobody hears of it again */
	FENCE,	/* one declares another one dead, which may live */
	LEAVE,
	CANCEL,
	RETRY,
	FORGET,
	RAISE,
	LOOK, /* do counts and lists say what is there? */
	PASS, /* time does */
	ACTS,
};

struct schedule {
	uint64_t seed;
	int acts, machines;
	int lost_before, lost_after; /* of each call; all chances in thousandths */
	int halting, after, fails, refuses, needs;
	uint64_t limit;
	int weight[ACTS];
};

struct statistics {
	uint64_t acts[ACTS];
	uint64_t commits, lost_requests, lost_answers;
	uint64_t scheduled, starts, succeeded, failed, cancelled, back, lost, refused, told;
	uint64_t released, dependents, failures, raised, full, zombies, retried, forgotten, faults;
};

/* ---- What is in the tables ---- */

struct row {
	bool there;
	int spec; /* of argv[0]: "c17" is 17 */
	enum queue_state state;
	int priority;
	int64_t needs, asked; /* asked: -1: not */
	struct queue_history history;
	char token[QUEUE_TOKEN], worker[QUEUE_TOKEN], refused_on[16], rested[QUEUE_TOKEN];
	int64_t rest; /* rested leaves it alone until then */
	uint64_t over, because;
};

struct tables {
	struct row row[MOST_COMMANDS + 1]; /* by id */
	char worker[MOST_LISTED][QUEUE_TOKEN], host[MOST_LISTED][16];
	int workers;
	uint64_t next, over, failure;
	uint64_t after[MOST_COMMANDS + 1]; /* bit N: it comes after the command N */
};

/* ---- Who calls ---- */

struct spec { /* of a command, by number */
	bool acknowledged;
	uint64_t id;
	enum queue_halt halt;
	uint64_t max_attempts, max_transient;
	uint64_t after; /* bits, as it was asked for */
};

struct scheduler {
	bool calling; /* its answer was lost, or it had none yet */
	struct queue_schedule how;
	struct queue_item items[MOST_BATCH];
	uint64_t after[MOST_AFTER];
	int first, count, next;				/* specs: of the call, and the next one */
	uint64_t once_ids[MOST_COMMANDS], number, most; /* the last scheduler */
};

struct hold { /* a command that a worker believes to run */
	uint64_t id;
	char token[QUEUE_TOKEN];
	bool ended;
	struct queue_result result;
};

struct worker {
	bool here; /* false: never came, or is gone */
	struct process process;
	struct thread thread;
	struct queue queue;
	struct queue_worker self;
	bool coming;	/* it has no answer to its registration yet */
	bool calling;	/* it has no answer to its exchange yet */
	bool dead_told; /* it has heard that it is dead */
	struct hold hold[MOST_SLOTS];
	int holds;
	struct queue_exchange exchange;
	struct queue_ended ended[MOST_SLOTS];
};

struct start {
	uint64_t id;
	char token[QUEUE_TOKEN];
	bool ended_by_worker;
};

struct world {
	const struct schedule *schedule;
	struct statistics *statistics;
	sqlite3 *database;
	sqlite3_stmt *statements[MOST_STATEMENTS]; /* of the observer */
	struct store store;
	struct queue queue; /* of people */
	store_revision revision;
	bool quiet; /* nothing is lost any more */
	struct tables tables;
	/* The call that is made now. */
	enum act act;
	struct worker *caller;
	bool has_by_ids;

	struct spec spec[MOST_COMMANDS];
	int specs;
	struct scheduler scheduler[SCHEDULERS];
	struct worker worker[MOST_WORKERS];
	int workers;
	struct start start[MOST_STARTS];
	int starts;
	struct queue_failure failure; /* of the one who raises */
	bool forgotten[MOST_COMMANDS + 1];
	/* By id, as bits: what it comes after, and has succeeded since it waits for that. */
	uint64_t satisfied[MOST_COMMANDS + 1];
	uint64_t raised;  /* answers "told" */
	uint64_t cleared; /* failures that left the table */
};

extern struct world *world;

#define VIOLATE(...) kernel_violate(__VA_ARGS__)
#define TRACE(...)                                                                                 \
	do {                                                                                       \
		if (kernel.trace)                                                                  \
			kernel_trace("", __VA_ARGS__);                                             \
	} while (0)

/* observer.c */
void observer_begin(void);
void observer_end(void);
/* A transaction was committed; changed: the keys whose waiters it wakes. */
void observer_commit(const char *const *changed);
bool observer_has_worker(const char *token);

/* actors.c */
void actors_begin(void);
void actors_do(enum act act);
void actors_drain(void);
void actors_release(void);
void actors_check_end(void);

/* world.c */
/* The process of this worker runs until world_leave; NULL: the world itself. */
void world_enter(struct worker *worker, enum act act);
void world_leave(void);
bool world_run(struct world *w, const struct schedule *s, struct statistics *stats, FILE *trace);
void schedule_draw(struct schedule *s, uint64_t seed);
void schedule_print(const struct schedule *s, FILE *out);
const char *act_name(enum act act);
extern const struct scenario scenarios[];

#endif
