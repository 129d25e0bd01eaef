/* SPDX-License-Identifier: MIT */
/* Parses options of schedule for the specification of an item. Results are malloc'd. */
#ifndef PREEMPT_QUEUE_SPEC_H
#define PREEMPT_QUEUE_SPEC_H

#include "base/args.h"
#include "base/error.h"
#include "queue/records.h"

enum status spec_priority(const char *text, int *priority, struct error *err);
/* Make path absolute. what: the option, for errors. */
enum status spec_path(const char *path, const char *what, char **absolute, struct error *err);
/* "NAME=VALUE" as it is; "NAME" with its value in our environment. */
enum status spec_variable(const char *entry, char **made, struct error *err);
enum status spec_resource(const char *name, char **made, struct error *err);
/* Call add for each item of list; *made: the results, NULL-terminated; NULL for an empty list. */
enum status spec_list(const struct args_list *list,
	enum status (*add)(const char *, char **, struct error *), char ***made, struct error *err);

/* About how many bytes of a transaction this item takes. */
size_t spec_bytes(const struct queue_item *item);

#endif
