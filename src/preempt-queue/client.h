/* SPDX-License-Identifier: MIT */
/* The options of preempt-queue, and what its commands share. */
#ifndef PREEMPT_QUEUE_CLIENT_H
#define PREEMPT_QUEUE_CLIENT_H

#include "base/args.h"
#include "base/parse.h"
#include "base/text.h"
#include "queue/queue.h"

/* What was asked; see the tables in preempt-queue.c. Texts are NULL if they were not given. */
struct options {
	const char *store, *queue, *files, *tag;
	int64_t timeout; /* schedule: --wait */
	bool timeout_given, json, follow, exit_status;
	struct queue_selection set; /* by client_run */
	/* schedule: what all commands of this call have in common, and the rest */
	struct queue_item item;
	const char *once, *halt, *priority, *input, *output, *directory;
	struct args_list after, environment, resources;
	uint64_t limit;
	bool lines, null;
	/* join */
	int64_t recovery;
	/* fetch */
	bool wait, from_stderr;
	/* list */
	const char *states;
	uint64_t most;
	bool joblog;
	/* cancel, retry, forget */
	bool all, failed, cancelled, finished;
	int64_t older_than;
};
extern struct options options;

struct client {
	struct text url; /* of the store */
	struct store *store;
	struct queue queue;
};

/*
 * Open the queue that the options name. flags: of store_open. STATUS_NO: there is no such store.
 * Call client_end also after an error.
 */
enum status client_open(struct client *client, unsigned flags, struct error *err);
/*
 * The last call of a command: releases all, prints err if status is not STATUS_OK (STATUS_NO: not
 * with -q), and returns the exit code. If a signal has come, it ends this process by that signal.
 * A missing store is printed also with -q: schedule and work make stores, so that its name may be
 * mistyped.
 */
int client_end(struct client *client, enum status status, const struct error *err);
/* A whole command: select the commands with the ids in rest, in this order, else with --tag, else
 * all (rest NULL: none are named); client_open, command, client_end. */
typedef enum status client_command(struct queue *queue, void *context, struct error *err);
int client_run(
	const struct args_rest *rest, unsigned flags, client_command *command, void *context);
/* Print text, and return the exit code of wrong usage. */
int client_refuse(const char *text);
/* Make path absolute; to be freed. what: the option, for errors. */
enum status client_path(const char *path, const char *what, char **absolute, struct error *err);

/* The deadline of --timeout; CLOCK_NEVER without it. */
int64_t client_deadline(void);
/* Catch the signals that end a program (base/process/ending.h). They also end client_wait. */
void client_catch(void);
/* Whether such a signal has come. */
bool client_interrupted(void);
/* queue_wait, but STATUS_OK also at the deadline and after a signal. */
enum status client_wait(struct queue *queue, enum queue_topic topic, store_revision *since,
	int64_t deadline, struct error *err);

/*
 * Raise a failure that nobody was told of yet (HALT_SOON, HALT_NOW). STATUS_NO: there is none.
 * STATUS_BROKEN: raised here; err tells it; *id (or NULL): the command. STATUS_TIMEOUT: at the
 * deadline (0: at once) others still run that are to end first.
 */
enum status client_raise(struct queue *queue, int64_t deadline, uint64_t *id, struct error *err);
/*
 * Whether the commands in options.set are over: STATUS_OK: yes; STATUS_BROKEN: yes, but
 * outcome->failed or outcome->because; STATUS_DAMAGED: but for rows that cannot be read; STATUS_NO:
 * there is no such command; STATUS_TIMEOUT: some are open. err tells all but the last and
 * STATUS_OK. Raises and prints a pending failure; *told: its command, of which err then says no
 * more.
 */
enum status client_outcome(
	struct queue *queue, uint64_t *told, struct queue_outcome *outcome, struct error *err);

/* Whether stdout can no longer be written to, so that further output would be lost. */
bool client_stdout_lost(void);

/* Rows of commands in options.set that are printed. Zeroed at first. */
struct lister {
	bool begun;
	uint64_t over, until;		 /* those that are over as number over+1 to until */
	uint64_t rows, in[QUEUE_STATES]; /* what was printed */
	struct error *err;
};
/* Print what came to be over since the last call; nothing at the first one. over: of struct
 * queue_outcome. STATUS_NO: as many as --limit says are printed, or a signal has come. */
enum status list_ended(
	struct queue *queue, struct lister *lister, uint64_t over, struct error *err);

/* Add "200 commands: 197 succeeded, 3 failed". */
void list_totals(struct text *text, const uint64_t in[QUEUE_STATES]);

/* ---- The commands ---- */

extern const struct args_option work_options[];
int run_schedule(const struct args_rest *rest);
int run_work(const struct args_rest *rest);
int run_join(const struct args_rest *rest);
int run_done(const struct args_rest *rest);
int run_fetch(const struct args_rest *rest);
int run_list(const struct args_rest *rest);
int run_show(const struct args_rest *rest);
int run_workers(const struct args_rest *rest);
int run_cancel(const struct args_rest *rest);
int run_retry(const struct args_rest *rest);
int run_forget(const struct args_rest *rest);
int run_resource(const struct args_rest *rest);

#endif
