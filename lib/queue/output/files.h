/* SPDX-License-Identifier: MIT */
/*
 * The queue's directory, for what is too long for the store:
 *
 *   FILES/out/ID.TOKEN.out, .err   the output of one start of a command (output.h)
 *   FILES/item/THOUSANDS/ID        the directory of a command, $PREEMPT_ITEM_DIR
 *
 * FILES and the one above it are made when needed; what is further up must be there. All are 0700,
 * and refused (STATUS_PERMISSION) where others could write them. Private to lib/queue.
 */
#ifndef QUEUE_OUTPUT_FILES_H
#define QUEUE_OUTPUT_FILES_H

#include "queue/queue.h"

/*
 * Make FILES/below ("out", "item/1"), and check all that was there. durable:
 * the names of those that were made are synced. *path (malloc'd) is where it is.
 */
enum status files_make(
	const struct queue *queue, const char *below, bool durable, char **path, struct error *err);

/* FILES/item/THOUSANDS/ID: made; removed, if it is empty, or with all that is in it (whole). */
enum status files_make_item(const struct queue *queue, uint64_t id, char **path, struct error *err);
void files_remove_item(const struct queue *queue, uint64_t id, bool whole);

#endif
