/* SPDX-License-Identifier: MIT */
/* The JSON in the rows of a queue, and what list and show print of a command. */
#ifndef QUEUE_SPEC_H
#define QUEUE_SPEC_H

#include "base/json_fields.h"
#include "queue/queue.h"

/* An object for the column spec, without what has a column of its own. */
struct json_object *spec_write_item(const struct queue_item *item);
/* False: text is not such an object; argv is then "(damaged)", and item->damaged is set. */
bool spec_read_item(const char *text, struct queue_item *item);

struct json_object *spec_write_result(const struct queue_result *result);
/* False: text is not one; result is zeroed. */
bool spec_read_result(const char *text, struct queue_result *result);

struct json_object *spec_write_worker(const struct queue_worker *worker);
/* False: text is not one. */
bool spec_read_worker(const char *text, struct queue_worker *worker);

/* What users see of a command or a worker: a new object. */
struct json_object *spec_show_view(const struct queue_view *view);
struct json_object *spec_show_worker(const struct queue_worker *worker);

/* About how many bytes the item takes in the store. */
size_t spec_bytes(const struct queue_item *item);

#endif
