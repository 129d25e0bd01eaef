/* SPDX-License-Identifier: MIT */
/*
 * Resources: directories that a command of the user fills once per worker, when the first command
 * that needs it arrives there, and anew when the worker comes back. A failed build is the failure
 * of the commands that use it, and of nobody else.
 */
#ifndef QUEUE_RESOURCE_H
#define QUEUE_RESOURCE_H

#include "queue/queue.h"

/* Define (or replace) how a resource is built. name: A-Z a-z 0-9 and _, at most 64 bytes. */
enum status resource_define(struct queue *queue, const char *name, char *const *argv,
	const char *directory, struct error *err);
/* STATUS_NO: there is none of this name. argv is to be freed with template_free. */
enum status resource_find(
	struct queue *queue, const char *name, char ***argv, char **directory, struct error *err);

#endif
