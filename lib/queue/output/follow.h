/* SPDX-License-Identifier: MIT */
/* The output of a command while it runs. */
#ifndef QUEUE_OUTPUT_FOLLOW_H
#define QUEUE_OUTPUT_FOLLOW_H

#include "queue/output/output.h"

struct follow {
	enum output_stream stream;
	int to;		  /* a descriptor */
	int64_t deadline; /* STATUS_TIMEOUT: it was not over then */
	int wake;	  /* a descriptor that ends the waiting (STATUS_NO); -1: none */
};

/*
 * Write the output of a command as it grows, until the command is over; *view is how it is then,
 * and to be released. The output of a start that was given back is followed by that of the next
 * start, from its beginning. What cannot be found while it is written (its worker builds its
 * resources; the command has sent it elsewhere) is written at the end. STATUS_NO: there is no such
 * command. STATUS_TEMPORARY: it runs on another machine, or in another container; or as
 * output_print.
 */
enum status output_follow(struct queue *queue, uint64_t id, const struct follow *how,
	struct queue_view *view, struct error *err);

#endif
