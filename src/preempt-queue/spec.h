/* SPDX-License-Identifier: MIT */
/* Options of schedule as the specification of an item. The result is malloc'd. */
#ifndef PREEMPT_QUEUE_SPEC_H
#define PREEMPT_QUEUE_SPEC_H

#include "base/args.h"
#include "base/error.h"

enum status spec_priority(const char *text, int *priority, struct error *err);
/* The absolute path; what: the option. */
enum status spec_path(const char *path, const char *what, char **absolute, struct error *err);
/* NAME=VALUE of "NAME=VALUE", or of "NAME" with the value that it has here. */
enum status spec_variable(const char *entry, char **made, struct error *err);
enum status spec_resource(const char *name, char **made, struct error *err);
/* Each item of list by add, NULL-terminated; NULL for an empty list. */
enum status spec_list(const struct args_list *list,
	enum status (*add)(const char *, char **, struct error *), char ***made, struct error *err);

#endif
