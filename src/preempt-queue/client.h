/* SPDX-License-Identifier: MIT */
/* The commands of preempt-queue, and what they share: opening the queue, options, exit codes. */
#ifndef PREEMPT_QUEUE_CLIENT_H
#define PREEMPT_QUEUE_CLIENT_H

#include "base/args.h"
#include "base/parse.h"
#include "base/text.h"
#include "queue/queue.h"

struct client_options {
	const char *store, *queue, *files; /* store, files: NULL if not given */
	int64_t timeout;
	bool timeout_given;
	bool json;
};
extern struct client_options client_options;

/* For args_command.common: --store, --queue and --files; with --timeout; with --json; with both. */
extern const struct args_option client_place[], client_wait[], client_json[], client_common[];

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
 */
int client_end(struct client *client, enum status status, const struct error *err);
/*
 * The same for a command that asks about a queue. A missing store is a "no", which is printed even
 * with -q: schedule and work make stores, so the name may be mistyped.
 */
int client_end_asked(struct client *client, enum status status, const struct error *err);

/* A whole command: client_open, command, client_end. */
int client_run(unsigned flags,
	enum status (*command)(struct queue *queue, void *context, struct error *err),
	void *context);
/* Print text, and return the exit code of wrong usage. */
int client_refuse(const char *text);

/* The deadline of --timeout; CLOCK_NEVER without it. */
int64_t client_deadline(void);
/* How long, in ms, a call of the store may take: until deadline, but at least 5 s, and at most 30
 * s. */
int64_t client_patience(int64_t deadline);

/*
 * Catch the signals that end a program (base/process/ending.h). The descriptor is readable when one
 * has come, so that it ends a wait for the store. -1: there is no descriptor.
 */
int client_catch(void);
/* Whether such a signal has come. */
bool client_interrupted(void);

/* Raise a pending failure as queue_raise does, and print it. STATUS_OK: it was raised here. */
enum status client_report_failure(
	struct queue *queue, int64_t deadline, int wake, struct error *err);

/* Parse all words as ids and ranges of ids. Release ids also after an error. */
enum status client_parse_ids(
	const struct args_rest *rest, struct parse_numbers *ids, struct error *err);
/* Select the commands with these ids; or with this tag (NULL: not given); or all. */
enum status client_select(const struct args_rest *rest, const char *tag, struct parse_numbers *ids,
	struct queue_selection *set, struct error *err);

/* Whether stdout can no longer be written to, so that further output would be lost. */
bool client_stdout_lost(void);

/* ---- The commands, for their table ---- */

extern const struct args_option schedule_options[], work_options[], join_options[], done_options[],
	list_options[], fetch_options[], set_options[], cancel_options[], retry_options[],
	forget_options[];
int run_schedule(const struct args_rest *rest);
int run_set(const struct args_rest *rest);
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
