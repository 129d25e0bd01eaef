/* SPDX-License-Identifier: MIT */
/*
 * A deterministic world in which the queue runs as it is: workers (lib/queue/worker/work.c and all
 * that it calls), schedulers (schedule.c), people who wait (src/preempt-queue/join.c) and people
 * who cancel, retry and forget (change.c), over the store in memory. What the world stands in for:
 * the machines (../kernel.h), the commands, their output and the queue's files (commands.c), and
 * what they do not need here (standins.c). A world is a function of its struct schedule, and a
 * random schedule is a function of its seed.
 *
 * Times in a schedule are milliseconds; inside the world they are microseconds.
 */
#ifndef SIM_QUEUE_SIM_H
#define SIM_QUEUE_SIM_H

#include "../kernel.h"
#include "../runner.h"
#include "queue/worker/loop.h"

#define MOST_SPECS	64
#define MOST_WORKERS	8
#define MOST_SCHEDULERS 3
#define MOST_ACTS	16
#define MOST_AFTER	2
#define MOST_NODES	96
#define MOST_STARTS	2048
#define MOST_COMMANDS	2048
#define MOST_FILES	1024
#define MOST_TALLIES	128
#define NOBODY		(-1)
#define STORE		"shim:memory:q"
#define QUEUE		"q"
#define RESOURCE	"R"

/* ---- What happens in a world: drawn beforehand ---- */

enum trigger {
	AT_START,    /* of the world */
	AT_HERE,     /* a worker is registered */
	AT_SCHEDULE, /* commands are committed */
	AT_TAKE,     /* a lease is committed */
	AT_RUN,	     /* a command starts */
	AT_ENDED,    /* it has ended, and no worker knows */
	AT_BACK,     /* it goes back, and that is committed */
	AT_OVER,     /* a result is committed */
	AT_ERROR,    /* a failure is pending */
	AT_FENCE,    /* a worker is marked */
	TRIGGERS,
};

enum deed {
	NOTHING,
	KILL_WORKER,
	RESTART_WORKER, /* it is killed, and comes again `amount` ms later */
	PAUSE_WORKER,	/* for `amount` ms */
	CUT_OFF,	/* from the store, for `amount` ms */
	OUTAGE,		/* no worker reaches the store for `amount` ms */
	FULL_STORE,	/* no worker can write to it, for `amount` ms */
	GIVE_NOTICE,	/* the worker has `amount` ms left (negative: not known) */
	SIGNAL_WORKER,	/* TERM */
	KILL_COMMAND,	/* it dies of a signal */
	NEW_WORKER,
	CANCEL,
	RETRY,
	RETRY_ANY,
	FORGET,
	JOIN,
	KILL_CLIENTS, /* all joiners and schedulers; schedulers come again `amount` ms later */
	DEEDS,
};

struct act {
	enum trigger trigger;
	int nth; /* the how manyeth time, from 0 */
	int64_t delay;
	enum deed deed;
	int64_t amount;
};

/* What is scheduled, and how its starts go, one after another (the last one again). */
enum { MOST_CODES = 4 };
struct spec {
	int priority;
	uint64_t max_attempts, max_transient;
	int64_t timeout;
	enum queue_halt halt;
	bool uses_resource, ignores_term, has_long_output;
	int64_t duration; /* ms, at most */
	int codes[MOST_CODES];
	int after[MOST_AFTER]; /* specs that come before it, where they are there; NOBODY: none */
	int term_code; /* 0, 42, 143 (of the signal), ...: what it ends with when it is asked to */
};

struct schedule {
	uint64_t seed; /* of everything that is not drawn beforehand */
	int specs;
	struct spec spec[MOST_SPECS];
	int schedulers, batch; /* each schedules its share of the specs, so many at a time */
	bool once;
	uint64_t limit; /* of what waits; 0: none */
	int workers, per_machine;
	bool sees_others; /* workers of one machine see each other's processes */
	uint64_t slots;
	int64_t period, kill_after, grace, idle_exit;
	uint64_t silent_limit;
	struct way way;
	int64_t clock[MOST_WORKERS + 1]; /* of each machine, ms */
	int full_disk;			 /* output cannot be kept: chance in thousandths */
	int resource_codes[MOST_CODES];	 /* of its builds, one after another in the world */
	int acts;
	struct act act[MOST_ACTS];
};

void schedule_draw(struct schedule *s, uint64_t seed);
void schedule_print(const struct schedule *s, FILE *out);
const char *deed_name(enum deed deed);

/* ---- What stands in the store, by what was committed ---- */

enum place { NOWHERE, BLOCKED, WAITING, RUNNING, OVER };

struct item { /* of the id that is one more than its index */
	enum place place;
	int spec;
	uint64_t after, blocked_by;   /* bit N: of the id N + 1; as it was scheduled, and now */
	bool has_succeeded;	      /* once, at least */
	struct queue_history history; /* as it stands at its place */
	char lease[17];		      /* RUNNING */
	int start;		      /* RUNNING: of starts */
	struct queue_result result;   /* OVER */
	bool told;		      /* RUNNING: it shall end */
	bool reopened;	 /* a worker has asked for it again, also while a failure is pending */
	uint64_t leases; /* so many so far */
	bool forgotten;
};

/* One lease, and the command that was started with it. */
struct start {
	char token[17], worker[17];
	int item;
	uint64_t number; /* PREEMPT_ITEM_ATTEMPT */
	int command;	 /* NOBODY: none was started */
	bool postponed;	 /* its resource could not be built */
};

struct registration {
	char token[17];
	bool here, fenced;
	int node;
	uint64_t beat;
};

struct tally {
	char who[65];
	struct queue_tally counts;
};

struct keys {
	struct item item[MOST_SPECS];
	int items;
	struct start start[MOST_STARTS];
	int starts;
	struct registration worker[MOST_NODES * 2];
	int workers;
	struct tally tally[MOST_TALLIES];
	int tallies;
	uint64_t error;	       /* the command whose failure is pending; 0: none */
	int64_t drained_until; /* the last instant at which nothing waited or ran; -1: never */
	bool drained;	       /* that is now */
};

/* ---- The world ---- */

enum role { WORKER, SCHEDULER, JOINER, PERSON };

struct node {
	struct process process;
	enum role role;
	int number;	   /* of the worker, or the scheduler */
	struct work *self; /* a worker, from reaper_start to reaper_stop */
	struct work_options options;
	struct source_set watch;
	enum deed deed; /* of a person */
	uint64_t id;	/* whom it is done to */
	int64_t began, ended;
	int code;
	bool has_resource; /* it was built here */
	char token[17];	   /* under which it knows itself registered; "": it never was */
	int64_t silent_since, silent_until; /* when it could not be heard last; us; 0: never */
};

/* A command that runs, or a build of the resource. */
struct command {
	int node;
	int start; /* NOBODY: a build */
	int bell;
	uint32_t epoch;
	bool ended, told, reaped;
	int code; /* as a shell says it: 128 and more are signals */
	int outputs[2];
};

struct file {
	uint64_t id;
	char token[17];
	enum output_stream stream;
	bool there;
};

struct statistics {
	uint64_t events, commits;
	uint64_t items, leases, started, succeeded, failed, cancelled, returned, lost, fenced;
	uint64_t blocked, released, cancelled_after; /* of --after */
	uint64_t errors, raised, joined[4];	     /* with 0, 1, 44, others */
	uint64_t lost_answers, late_commits;
	uint64_t deeds[DEEDS];
};

struct world {
	const struct schedule *schedule;
	struct statistics *statistics;
	struct keys keys;
	struct node node[MOST_NODES];
	int nodes;
	struct command command[MOST_COMMANDS];
	int commands, builds;
	int output_of[MOST_COMMANDS * 2]; /* the command that writes there; NOBODY */
	int outputs;
	struct file file[MOST_FILES];
	int files;
	int seen[TRIGGERS];	/* how often each has happened */
	int subject[MOST_ACTS]; /* the node that pulled the trigger */
	bool acknowledged[MOST_SPECS];
	int schedulers_done;
	bool closing; /* what was to come has come: what is left is to be done now */
	int closer;   /* the node that joins at the end */
};

enum event_kind {
	EVENT_ACT = KERNEL_EVENTS, /* who: the act */
	EVENT_COMMAND,		   /* who: the command; it ends */
	EVENT_WORKER,		   /* who: a worker's number; it comes */
	EVENT_SCHEDULER,	   /* who: a scheduler's number; it comes again */
	EVENT_CLOSE,
};

extern struct world *world; /* the one that runs */

#define VIOLATE(...) kernel_violate(__VA_ARGS__)
#define TRACE(...)                                                                                 \
	do {                                                                                       \
		if (kernel.trace)                                                                  \
			kernel_trace("", __VA_ARGS__);                                             \
	} while (0)

bool world_run(struct world *w, const struct schedule *s, struct statistics *stats, FILE *trace);
/* It has happened; node: where. */
void world_trigger(enum trigger trigger, const struct node *node);

/* processes.c */
struct node *node_current(void); /* NULL: the world itself */
struct node *node_new(enum role role, int number, int machine);
void node_guarded(struct process *process, struct reaper *reaper);
void worker_begin(int number);
void scheduler_begin(int number);
void joiner_begin(void);
void person_begin(enum deed deed, uint64_t id);
void node_kill(struct node *node);
/* It could not be heard for so long. */
void node_silence(struct node *node, int64_t from, int64_t until);

/* commands.c */
void command_end(int command, int code);
void commands_of_node_end(const struct node *node);
bool file_is_there(uint64_t id, const char *token, enum output_stream stream);

/* observer.c: what is committed, and whether it may be */
void observer_begin(void);
struct start *start_of(const char *token);

/* invariants.c */
void check_end(void);
void check_joined(const struct node *node);
/* A worker is marked: it must have been silent, or be gone. */
void check_fence(const struct registration *worker);
/* A node that registers again has ended what it ran before. */
void check_anew(const struct node *node);

extern const struct scenario scenarios[];

#endif
