/* SPDX-License-Identifier: MIT */
/*
 * A durable queue of commands: tables in the database of a store on a filesystem (schema.sql). What
 * was answered with STATUS_OK survives the death of all processes and machines.
 *
 *	blocked --> waiting --> running --> succeeded, failed, cancelled
 *	                ^----------+          (cancel: from the first three; retry: back again)
 *
 * A process that schedules: queue_open, queue_schedule, queue_wait while the queue is full.
 * One that waits: queue_raise, queue_outcome, queue_wait with QUEUE_OVER, and again.
 * A worker: queue_register, queue_beater_start; then queue_exchange whenever a command has ended, a
 * slot is free or queue_wait with QUEUE_WORK has returned; queue_ring_look each period;
 * queue_leave.
 *
 * Each call is one transaction. A call that failed may have been carried out: call it again with
 * the same struct. Its nonce, which it draws if it is "" and clears when it has an answer, keeps
 * anything from being done twice. STATUS_USAGE: the store is in etcd. STATUS_DAMAGED: the queue is
 * of version 0.1.0, or of a newer one. A command whose row cannot be read is named in its view, and
 * nobody waits for it. Times are in ms, instants since 1970 (UTC) unless they are deadlines.
 *
 * schema.sql and sql.c have the tables, and a transaction; moves.c and rules.c how commands go from
 * state to state; queue.c, lease.c, change.c and look.c the calls; workers.c who is alive.
 */
#ifndef QUEUE_QUEUE_H
#define QUEUE_QUEUE_H

#include "base/parse.h"
#include "base/process/process.h"
#include "live/heartbeat.h"
#include "store/store.h"

#define QUEUE_LIMIT	   262144 /* the most waiting commands, as with ClusterCoordinator */
#define QUEUE_ID_MAX	   9999999999ull
#define QUEUE_PRIORITY_MAX 4999
#define QUEUE_ITEM_MAX	   (60 * 1024) /* bytes of a command in the store */
#define QUEUE_BATCH	   2000	       /* the most commands to schedule or to change in one call */
#define QUEUE_AFTER_MAX	   100000      /* commands of one call, times those that each is after */
#define QUEUE_TOKEN	   17	       /* 16 hexadecimal digits and NUL */

struct queue {
	struct store *store;
	char name[129];
	char *files;		 /* directory for outputs and for directories of commands */
	store_revision revision; /* of the store, at the last call: what queue_wait waits beyond */
};
/* files: NULL: NAME in store_files. The store must outlive the queue. */
enum status queue_open(struct queue *queue, struct store *store, const char *name,
	const char *files, struct error *err);
void queue_release(struct queue *queue);
void queue_draw_token(char token[QUEUE_TOKEN]);

/*
 * Wait until another call has changed something after revision *since (begin with queue->revision);
 * deadline, wake and the answers as with store_wait.
 */
enum queue_topic {
	QUEUE_WORK, /* there is something to take, a command is to end, or a worker came or left */
	QUEUE_OVER, /* a command is over, or has left the waiting ones; the queue was cleared */
	QUEUE_ANY,
};
enum status queue_wait(struct queue *queue, enum queue_topic topic, store_revision *since,
	int64_t deadline, int wake, struct error *err);

/* ---- Commands ---- */

enum queue_state {
	QUEUE_BLOCKED,
	QUEUE_WAITING,
	QUEUE_RUNNING, /* the first three are open */
	QUEUE_SUCCEEDED,
	QUEUE_FAILED,
	QUEUE_CANCELLED,
	QUEUE_DAMAGED, /* its row cannot be read; never stored */
	QUEUE_STATES,
};
const char *queue_state_word(enum queue_state state);
bool queue_state_parse(const char *word, enum queue_state *state);

/* What the failure of a command does to the others: HALT_NEVER nothing. HALT_SOON: none is started,
 * those that wait are cancelled. HALT_NOW: those that run are also told to end. */
enum queue_halt { HALT_NEVER, HALT_SOON, HALT_NOW };
const char *queue_halt_word(enum queue_halt halt);
bool queue_halt_parse(const char *word, enum queue_halt *halt);

/* A command as it was scheduled. Release with queue_item_release. */
struct queue_item {
	uint64_t id;
	char **argv;		/* NULL-terminated; never empty */
	char **environment;	/* "NAME=VALUE", NULL-terminated; NULL: none */
	char **resources;	/* names, NULL-terminated; NULL: none */
	char *directory;	/* absolute; NULL: that of the worker */
	char *tag;		/* NULL: none */
	char *input;		/* file for stdin, absolute; NULL: /dev/null */
	char *output;		/* file for stdout (template_fill_name); NULL: FILES/ID.TOKEN.out */
	int priority;		/* higher ones are started first */
	uint64_t max_attempts;	/* failures that are final; 0: 1 (rules.h) */
	uint64_t max_transient; /* how many ends with 75 in a row are no failure */
	int64_t timeout;	/* of each start; 0: none */
	int64_t needs;		/* only a worker that has this long starts it; 0: not given */
	bool shell;		/* argv[0] is text for sh -c, the others are its $1... */
	enum queue_halt halt;
	int64_t scheduled;
	bool damaged; /* its row cannot be read; argv is "(damaged)" */
};
void queue_item_release(struct queue_item *item);

struct queue_history {
	uint64_t starts;     /* all */
	uint64_t attempts;   /* failures, which use up max_attempts */
	uint64_t transients; /* the last ones in a row that ended with 75 */
	uint64_t preempted;  /* ended by a notice to the worker, or with 42 or 43 */
	uint64_t lost;	     /* its worker vanished */
	uint64_t lost_early; /* the last ones in a row, each in the first minute of the start */
	uint64_t refused;    /* starts that failed by the machine (ENDING_CANNOT, ENDING_MACHINE) */
};

/* How a start ended. */
struct queue_ending {
	enum queue_ending_kind {
		ENDING_EXITED,	  /* code */
		ENDING_SIGNALLED, /* number */
		ENDING_TIMED_OUT, /* after its timeout; code or number say how */
		ENDING_PREEMPTED, /* its worker had a notice, and it did not exit with 0 or 93 */
		ENDING_LOST,	  /* its worker vanished (set by queue_fence) */
		ENDING_CANCELLED, /* it was told to end (struct queue_told) */
		ENDING_CANNOT,	/* directory, stdin, stdout or program is not there, or 126, 127 */
		ENDING_MACHINE, /* no space, no process, no TMPDIR, output cannot be kept */
	} kind;
	int code, number; /* exit code; signal */
	char text[256];	  /* human-readable; may be empty */
};
/* The exit code as in a shell; timed out: 124, preempted: 43, lost: 44, cancelled: 1. */
int queue_ending_code(const struct queue_ending *ending);
/* "ended with exit code 3" */
void queue_ending_describe(const struct queue_ending *ending, char text[64]);

struct queue_result {
	struct queue_ending ending;
	char worker[129], host[65]; /* names */
	int64_t started, ended;
	int64_t user, system;	   /* CPU time */
	uint64_t memory, out, err; /* bytes: largest resident set, stdout, stderr */
};

/* A command as its row says. Release with queue_view_release. */
struct queue_view {
	struct queue_item item;
	enum queue_state state;
	struct queue_history history;
	char token[QUEUE_TOKEN]; /* of the start that runs, or whose result it is; "": none. With
				    the id it names the output files */
	int64_t since;		 /* QUEUE_RUNNING */
	bool told;		 /* QUEUE_RUNNING: it is to end */
	uint64_t because; /* told, or QUEUE_CANCELLED: the command that failed; 0: none, a user */
	/* Over; and of the last start, if it waits again. QUEUE_RUNNING: only worker and host, if
	 * queue_visit or queue_inspect has read it. */
	struct queue_result result;
	char *after;   /* QUEUE_BLOCKED: "3-7,9", those that have not succeeded */
	uint64_t over; /* over: the how many-th to be so; 0: not */
	/* Waiting again: where the machine may have been the cause; the worker where it failed. */
	char refused_on[65], blamed[QUEUE_TOKEN];
};
void queue_view_release(struct queue_view *view);

/* ---- Schedule ---- */

struct queue_schedule {
	const uint64_t *after; /* commands that must have succeeded first */
	size_t after_count;
	uint64_t limit;	  /* STATUS_NO: more commands than this would wait; 0: no limit */
	const char *once; /* a name under which items are scheduled only once; NULL: none */
	uint64_t number;  /* with once: of the first item (0, 1, ...); one number, one command */
	char nonce[QUEUE_TOKEN];
};
/*
 * Schedule items, at most QUEUE_BATCH and about 4 MiB (spec_bytes), and set their ids. STATUS_NO:
 * the queue is full. STATUS_BROKEN: a failure is pending: queue_raise. STATUS_USAGE: after has no
 * such command.
 */
enum status queue_schedule(struct queue *queue, struct queue_item *items, size_t count,
	struct queue_schedule *how, struct error *err);

/* ---- Work ---- */

struct queue_worker {
	char token[QUEUE_TOKEN];
	char name[129];
	uint64_t number; /* the lowest free one; the place in the ring, and of its beats */
	uint64_t index;	 /* for {per-worker:...}; UINT64_MAX before: the number */
	uint64_t slots, limit;
	int64_t period, started; /* silent for limit periods: dead */
	int64_t life;		 /* how long it could run when it began; 0: no end is known */
	struct process_identity process;
	uint64_t faults;  /* commands that failed there and succeeded on another machine */
	uint64_t running; /* queue_workers: commands that it runs */
};
/* Fills token (if ""), number, index, started and process. */
enum status queue_register(struct queue *queue, struct queue_worker *worker, struct error *err);
/* What it still holds waits again, as if it was preempted. */
enum status queue_leave(struct queue *queue, const char *worker, struct error *err);
/* By number; *workers is to be freed. */
enum status queue_workers(
	struct queue *queue, struct queue_worker **workers, size_t *count, struct error *err);

struct queue_ended {
	uint64_t id;
	const char *token;
	struct queue_result result;
	bool accepted; /* false: the command was given to another worker: drop its output */
	enum queue_state state; /* accepted: where it is now */
};
struct queue_told { /* a command that this worker runs, and is to end */
	uint64_t id;
	char token[QUEUE_TOKEN];
};
struct queue_exchange {
	const char *worker; /* its token */
	struct queue_ended *ended;
	size_t ended_count, want;
	int64_t left; /* how long a command may run here; CLOCK_NEVER: no end is known */
	char nonce[QUEUE_TOKEN];
	/* The answer, released by queue_exchange_release; taken[i] may be moved out and zeroed. */
	struct queue_view *taken;
	struct queue_told *told;
	size_t taken_count, told_count;
	uint64_t failure; /* a pending failure, because of which nothing was taken; 0: none */
	uint64_t unfit;	  /* the first command passed over because it needs more time; 0: none */
	uint64_t faults;  /* of struct queue_worker */
	int64_t rest;	  /* after this many ms there may be more to take; CLOCK_NEVER: no */
	bool drained;	  /* no command is open in the whole queue */
};
/* Hand in what has ended, take what waits, hear what is to end. STATUS_NO: the worker is not (any
 * more) registered: end its commands and register anew, with another token. */
enum status queue_exchange(struct queue *queue, struct queue_exchange *exchange, struct error *err);
void queue_exchange_release(struct queue_exchange *exchange);

/* ---- Who is alive (workers.c) ---- */

/* As worker self: dead is dead. Its commands go back. STATUS_NO: self is not registered. *back: how
 * many commands. */
enum status queue_fence(
	struct queue *queue, const char *self, const char *dead, uint64_t *back, struct error *err);

/* Where they beat, and the token of a worker's beats. A run cannot have such a group: those of
 * its groups end with a number. */
#define QUEUE_BEATS 160
void queue_beats(const struct queue *queue, char group[QUEUE_BEATS]);
uint64_t queue_beat_token(const struct queue_worker *worker);

struct queue_beater; /* a thread that beats, with a store handle of its own */
enum status queue_beater_start(struct queue_beater **beater, const char *url,
	const struct queue *queue, const struct queue_worker *worker, struct error *err);
/* How many beats were written. *trouble: the last one could not be, and err says why. */
uint64_t queue_beater_written(struct queue_beater *beater, bool *trouble, struct error *err);
void queue_beater_stop(struct queue_beater *beater);

/* What one process has seen of the workers. Zeroed: nothing. */
struct queue_ring {
	struct queue_worker *workers;
	struct queue_peer *peers; /* of the same order */
	size_t count;
	store_revision listed;
	int64_t looked;
	uint64_t written;
};
/*
 * Call it each period, with our own beats. Looks at the workers that come after self by number, up
 * to the first one that lives, and fences those that do not; *back: commands that went back.
 * STATUS_NO: self is not registered.
 */
enum status queue_ring_look(struct queue_ring *ring, struct queue *queue,
	const struct queue_worker *self, uint64_t written, uint64_t *back, struct error *err);
/* For one that only waits: how many are registered, and how many have beaten of late. */
enum status queue_ring_alive(struct queue_ring *ring, struct queue *queue, size_t *registered,
	size_t *alive, struct error *err);
void queue_ring_release(struct queue_ring *ring);

/* ---- Look ---- */

/* Commands with these ids, or with this tag, or all; of these in the states of the bit mask. */
struct queue_selection {
	const uint64_t *ids; /* NULL: not by id */
	size_t count;
	const char *tag; /* NULL: not by tag */
	unsigned states; /* 1 << state, ...; 0: any */
	const uint64_t
		*beyond; /* NULL, or only those with a greater `over`, of any tag and state */
};
/* The view is valid during the call. Another answer than STATUS_OK ends the visit. */
typedef enum status queue_visitor(void *context, const struct queue_view *view);
/* In the order of ids; long lists are read in several transactions. */
enum status queue_visit(struct queue *queue, const struct queue_selection *set,
	queue_visitor *visit, void *context, struct error *err);
/* STATUS_NO: there is no such command. */
enum status queue_inspect(
	struct queue *queue, uint64_t id, struct queue_view *view, struct error *err);

struct queue_outcome {
	uint64_t in[QUEUE_STATES]; /* of the selected commands */
	uint64_t open;		   /* how many of them are open */
	uint64_t failed;	   /* the one that failed first; 0: none */
	uint64_t because;	   /* the one that cancelled the first of them; 0: none */
	uint64_t absent;	   /* an id without a command; 0: none */
	uint64_t unfit; /* waits, and needs longer than any registered worker has; 0: none */
	uint64_t scheduled, over; /* of the whole queue: ever; how often one came to be over */
	uint64_t failure;	  /* ... the pending one; 0: none */
};
enum status queue_outcome(struct queue *queue, const struct queue_selection *set,
	struct queue_outcome *outcome, struct error *err);

/* ---- Change ---- */

struct queue_changed {
	uint64_t changed;		      /* cancel: did wait; retry; forget */
	uint64_t told;			      /* cancel: they run, and their workers are told */
	uint64_t refused;		      /* they exist, and their state does not allow it */
	uint64_t absent;		      /* selected by id, and not there */
	uint64_t first_refused, first_absent; /* ids */
};
/*
 * set->states narrows the selection further. Several transactions, if there are many; after a
 * failure call again: what was changed stays so, and *changed counts the rest. What comes after a
 * cancelled command is cancelled with it; one that is already cancelled counts as changed.
 */
enum status queue_cancel(struct queue *queue, const struct queue_selection *set,
	struct queue_changed *changed, struct error *err);
/*
 * Failed and cancelled ones, and succeeded ones that were selected by id, wait again, with a new
 * history but for starts. What was released by a success stays so. One that waits already counts as
 * changed. Refused: it runs, or what it comes after has failed, and is not selected.
 * STATUS_BROKEN: a failure is pending: queue_raise.
 */
enum status queue_retry(struct queue *queue, const struct queue_selection *set,
	struct queue_changed *changed, struct error *err);
/* Those that were over before this instant. gone: their ids, also after an error, to remove their
 * files (output_forget); release it. */
enum status queue_forget(struct queue *queue, const struct queue_selection *set, int64_t before,
	struct parse_numbers *gone, struct queue_changed *changed, struct error *err);

/* ---- The first failure, with HALT_SOON and HALT_NOW ---- */

struct queue_failure {
	uint64_t id;
	uint64_t cancelled; /* how many it has cancelled */
	char nonce[QUEUE_TOKEN];
};
/*
 * STATUS_NO: none is pending. STATUS_TIMEOUT: commands still run, and with HALT_NOW are told to
 * end: queue_wait with QUEUE_OVER, and again. STATUS_BROKEN: told here, and only here: the waiting
 * ones are cancelled, and the queue goes on.
 */
enum status queue_raise(struct queue *queue, struct queue_failure *failure, struct error *err);

/* ---- Resources: how to build them ---- */

/* item: argv and directory count. STATUS_NO: there is none of that name. */
enum status queue_resource_put(
	struct queue *queue, const char *name, const struct queue_item *item, struct error *err);
enum status queue_resource_get(
	struct queue *queue, const char *name, struct queue_item *item, struct error *err);

#endif
