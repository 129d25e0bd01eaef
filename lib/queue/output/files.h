/* SPDX-License-Identifier: MIT */
/*
 * The queue's directory (FILES), for data that is too long for the store:
 *
 *   FILES/out/ID.TOKEN.out, .err   the output of one start of a command (output.h)
 *   FILES/item/THOUSANDS/ID        the directory of a command, $PREEMPT_ITEM_DIR
 *
 * FILES and its parent directory are made when needed (0700); those above must exist. FILES and its
 * directories are refused (STATUS_PERMISSION) if others could write them. Private to lib/queue.
 */
#ifndef QUEUE_OUTPUT_FILES_H
#define QUEUE_OUTPUT_FILES_H

#include "queue/queue.h"

/*
 * Make FILES/below ("out", "item/1"), and check the directories that existed. durable: sync the
 * names of the new ones. *path is malloc'd.
 */
enum status files_make(
	const struct queue *queue, const char *below, bool durable, char **path, struct error *err);

/* Make FILES/item/THOUSANDS/ID; and remove it: if it is empty, or (whole) with its contents. */
enum status files_make_item(const struct queue *queue, uint64_t id, char **path, struct error *err);
void files_remove_item(const struct queue *queue, uint64_t id, bool whole);

#endif
