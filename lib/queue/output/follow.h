/* SPDX-License-Identifier: MIT */
/* The output of a command while it runs. */
#ifndef QUEUE_OUTPUT_FOLLOW_H
#define QUEUE_OUTPUT_FOLLOW_H

#include "queue/output/output.h"

struct follow {
	enum output_stream stream;
	int to;		  /* a descriptor */
	int64_t deadline; /* STATUS_TIMEOUT if the command is not over by then */
	int wake;	  /* readable: stop waiting (STATUS_NO); -1: none */
	/* Called from time to time while the command does not run; an error ends all. */
	enum status (*while_waiting)(struct queue *queue, struct error *err);
};

/*
 * Write the output of a command as it grows, until the command is over; *view (to be released) is
 * its state then. If the command is put back, the output of its next start follows, from
 * the beginning. Output that cannot be found while the command runs (for instance because the
 * command redirected it) is written at the end. STATUS_NO: there is no such command.
 * STATUS_TEMPORARY: it runs on another machine, or in another container. Otherwise as output_print.
 */
enum status output_follow(struct queue *queue, uint64_t id, const struct follow *how,
	struct queue_view *view, struct error *err);

#endif
