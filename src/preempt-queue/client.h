/* SPDX-License-Identifier: MIT */
/* What the commands of preempt-queue share: which queue, in which store, and how they end. */
#ifndef PREEMPT_QUEUE_CLIENT_H
#define PREEMPT_QUEUE_CLIENT_H

#include "base/args.h"
#include "base/text.h"
#include "queue/queue.h"

struct client_options {
	const char *store, *queue, *files; /* store, files: NULL where not given */
	int64_t timeout;
	bool timeout_given;
	bool json;
};
extern struct client_options client_options;

/* For args_command.common: --store, --queue, --files; and with --timeout, with --json, with both.
 */
extern const struct args_option client_place[], client_wait[], client_json[], client_common[];

struct client {
	struct text url; /* of the store */
	struct store *store;
	struct queue queue;
};

/*
 * The queue that the options name. flags: of store_open. STATUS_NO: there is no such store. A
 * client that could not be opened is to be ended, too.
 */
enum status client_open(struct client *client, unsigned flags, struct error *err);

/*
 * The last line of a command: releases all, prints err if status is not STATUS_OK (STATUS_NO: not
 * with -q), and returns the exit code. Dies of the signal that has come, if any.
 */
int client_end(struct client *client, enum status status, const struct error *err);
/* The same for a command that has printed its answer. */
int client_end_with(struct client *client, int code);

/* The deadline of --timeout, CLOCK_NEVER without. */
int64_t client_deadline(void);

/*
 * From now on signals that end a program are seen by base/ending.h, and this descriptor is readable
 * when one has come: what waits for the store is woken by it. -1: there is none.
 */
int client_catch(void);
/* Whether one has come. */
bool client_interrupted(void);

/* The word as the id of a command. */
enum status client_parse_id(const char *word, uint64_t *id, struct error *err);

/* Whether stdout can no longer be written to: what more there is to print is lost. */
bool client_stdout_lost(void);

/* client_end with STATUS_NO: there is no such store. schedule and work make one, so its name may be
 * mistyped: this is printed also with -q. */
int client_end_missing(struct client *client, const struct error *err);

#endif
