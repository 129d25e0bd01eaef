/* SPDX-License-Identifier: MIT */
/*
 * The output of a command: up to QUEUE_OUTPUT_SHORT bytes of each stream stand in the store
 * (out/ID, err/ID), more is a file in the queue's directory, FILES/out/ID.TOKEN.out or .err, that
 * appears whole, synced, under its name before the result that names it is committed. The token is
 * that of the lease, so that a worker that lost its lease overwrites nothing.
 */
#ifndef QUEUE_OUTPUT_OUTPUT_H
#define QUEUE_OUTPUT_OUTPUT_H

#include "queue/queue.h"

#define QUEUE_OUTPUT_SHORT (32 * 1024) /* bytes */

enum output_stream { OUTPUT_OUT, OUTPUT_ERR };

/*
 * A file without a name in $TMPDIR (/tmp) for what a command writes; a descriptor above 2, or -1
 * and err. All processes that have it open write at its end.
 */
int output_open(struct error *err);
/* One stream of one start of a command. */
struct output {
	const struct queue *queue;
	uint64_t id;
	const char *token; /* of the lease */
	enum output_stream stream;
	int descriptor; /* of output_open */
	/* By output_keep. */
	uint64_t length;
	bool filed;
	char *bytes; /* malloc'd; NULL: filed */
};
/*
 * Keep what was written by now: short, in bytes; else filed under its name, and synced.
 * STATUS_TEMPORARY: no space, quota, I/O: nothing is left behind, and it may be called again.
 * STATUS_PERMISSION, STATUS_DAMAGED: the queue's directory cannot be used.
 */
enum status output_keep(struct output *output, struct error *err);
/*
 * Remove the file of a result that was refused, or is forgotten, or of a lease whose worker died
 * (it may have died while it filed). Missing is fine.
 */
void output_remove(
	const struct queue *queue, uint64_t id, const char *token, enum output_stream stream);
void output_remove_both(const struct queue *queue, uint64_t id, const char *token);
/*
 * The bytes from offset at to until, from one descriptor to the other. 0, or an errno (ENODATA: it
 * is shorter); *read_failed: it is of the side that is read.
 */
int output_copy(int from, int to, uint64_t at, uint64_t until, bool *read_failed);
/* The last line that is not blank, escaped (text_escape); "" where there is none. */
void output_last_line(int descriptor, char *line, size_t size);
/*
 * Write one stream of a finished command to descriptor `to`, wherever it is. STATUS_NO: it was
 * forgotten or put back since. STATUS_DAMAGED: its file is not there or not whole.
 * STATUS_TEMPORARY: it cannot be read, or not be written to `to`.
 */
enum status output_print(struct queue *queue, uint64_t id, const struct queue_result *result,
	enum output_stream stream, int to, struct error *err);

#endif
