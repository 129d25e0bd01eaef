/* SPDX-License-Identifier: MIT */
/*
 * The queue's directory (FILES = queue->files):
 *
 *   FILES/ID.TOKEN.out, .err   what one start of a command writes, while it writes
 *   FILES/item/THOUSANDS/ID    $PREEMPT_ITEM_DIR of a command
 *
 * FILES and its parent directory are made when needed (0700); those above must exist. FILES is
 * refused (STATUS_PERMISSION) if others could write to it. Only the outputs of starts that run, or
 * whose result was accepted and is final, are kept; empty ones are not. What else is there, of
 * workers that were killed, goes with its command (output_forget).
 */
#ifndef QUEUE_OUTPUT_H
#define QUEUE_OUTPUT_H

#include "queue/queue.h"

enum output_stream { OUTPUT_OUT, OUTPUT_ERR };

/* ---- For a worker ---- */

/* Make FILES and the directory of a command. *item: its absolute path, to be freed. */
enum status output_prepare(const struct queue *queue, uint64_t id, char **item, struct error *err);
/* Make the file for one stream. *descriptor: above 2. */
enum status output_open(const struct queue *queue, uint64_t id, const char *token,
	enum output_stream stream, int *descriptor, struct error *err);
/* Make what was written durable (but not the name in FILES); *length: how many bytes. An error:
 * it may not be whole. */
enum status output_keep(int descriptor, uint64_t *length, struct error *err);
/* Whether one more block can be written in FILES. STATUS_NO, with an error: no, so what a command
 * wrote may not be whole. */
enum status output_room(const struct queue *queue, struct error *err);
void output_remove(
	const struct queue *queue, uint64_t id, const char *token, enum output_stream stream);
/* Remove the directory of a command if it is empty. */
void output_remove_item(const struct queue *queue, uint64_t id);
/* The last line that is not blank, escaped (text_escape); "" if there is none. */
void output_last_line(int descriptor, char *line, size_t size);

/* ---- For those who read ---- */

/*
 * Write one stream of a command to descriptor to, from byte *at on: what its result says, or what
 * is there while it runs. STATUS_DAMAGED: it is missing or shorter than the result says.
 */
enum status output_print(const struct queue *queue, const struct queue_view *view,
	enum output_stream stream, uint64_t *at, int to, struct error *err);

/* Remove all files of these commands, which were forgotten; ids must be in ascending order. */
void output_forget(const struct queue *queue, const uint64_t *ids, size_t count);

#endif
