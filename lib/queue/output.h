/* SPDX-License-Identifier: MIT */
/*
 * The output of a command: up to QUEUE_OUTPUT_SHORT bytes of each stream stand in the store
 * (out/ID, err/ID), more is a file in the queue's directory, FILES/out/ID.TOKEN.out or .err, that
 * appears whole, synced, under its name before the result that names it is committed. The token is
 * that of the lease, so that one who was overtaken overwrites nothing.
 */
#ifndef QUEUE_OUTPUT_H
#define QUEUE_OUTPUT_H

#include "queue/queue.h"

#define QUEUE_OUTPUT_SHORT (32 * 1024) /* bytes */

enum output_stream { OUTPUT_OUT, OUTPUT_ERR };

/* A file without a name for what a command writes; a descriptor, or -1 and err. */
int output_open(struct error *err);
/* Its length. Short (*filed false): *bytes (malloc'd) has it; else it was filed. */
enum status output_keep(const struct queue *queue, uint64_t id, const char *token,
	enum output_stream stream, int descriptor, char **bytes, uint64_t *length, bool *filed,
	struct error *err);
/* Remove the file of a result that was refused, or is forgotten. Missing is fine. */
void output_remove(
	const struct queue *queue, uint64_t id, const char *token, enum output_stream stream);
/* Write one stream of a finished command to descriptor `to`, wherever it is. */
enum status output_print(struct queue *queue, uint64_t id, const struct queue_result *result,
	enum output_stream stream, int to, struct error *err);

#endif
