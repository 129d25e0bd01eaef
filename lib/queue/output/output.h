/* SPDX-License-Identifier: MIT */
/*
 * The output of a command. A stream of up to QUEUE_OUTPUT_SHORT bytes is kept in the store (out/ID,
 * err/ID), a longer one in a file, FILES/out/ID.TOKEN.out or .err. The file is complete and synced
 * before it gets this name, and has it before the result that names it is committed. TOKEN is the
 * token of the lease, so that a worker that lost its lease overwrites nothing.
 */
#ifndef QUEUE_OUTPUT_OUTPUT_H
#define QUEUE_OUTPUT_OUTPUT_H

#include "queue/queue.h"

#define QUEUE_OUTPUT_SHORT (32 * 1024) /* bytes */

enum output_stream { OUTPUT_OUT, OUTPUT_ERR };

/*
 * Open a file without a name in $TMPDIR (/tmp), for a command to append to. Returns a descriptor
 * above 2, or -1 and err.
 */
int output_open(struct error *err);
/* One stream of one start of a command. */
struct output {
	const struct queue *queue;
	uint64_t id;
	const char *token; /* of the lease */
	enum output_stream stream;
	int descriptor; /* from output_open */
	/* Filled by output_keep. */
	uint64_t length;
	bool filed;
	char *bytes; /* malloc'd; NULL: in a file */
};
/*
 * Keep what was written until now: a short stream in `bytes`, a longer one in its file, synced.
 * STATUS_TEMPORARY: no space, quota, I/O error; nothing is left behind, and a call may be repeated.
 * STATUS_PERMISSION, STATUS_DAMAGED: the queue's directory cannot be used.
 */
enum status output_keep(struct output *output, struct error *err);
/*
 * Remove the file of a result that was refused or is forgotten, or of a lease whose worker died
 * (perhaps while it wrote the file). A missing file is fine.
 */
void output_remove(
	const struct queue *queue, uint64_t id, const char *token, enum output_stream stream);
void output_remove_both(const struct queue *queue, uint64_t id, const char *token);
/*
 * Copy the bytes from offset `at` up to `until` between two descriptors. Returns 0 or an errno
 * (ENODATA: `from` is shorter); *read_failed: the error came from reading.
 */
int output_copy(int from, int to, uint64_t at, uint64_t until, bool *read_failed);
/* The last line that is not blank, escaped (text_escape); "" if there is none. */
void output_last_line(int descriptor, char *line, size_t size);
/*
 * Write one stream of a finished command, from the store or its file, to descriptor `to`.
 * STATUS_NO: the command was forgotten, or put back into the queue, since then. STATUS_DAMAGED: the
 * file is missing or incomplete. STATUS_TEMPORARY: reading it, or writing to `to`, failed.
 */
enum status output_print(struct queue *queue, uint64_t id, const struct queue_result *result,
	enum output_stream stream, int to, struct error *err);

#endif
