/* SPDX-License-Identifier: MIT */
/* A process and its descendants, as /proc shows them now, and what a signal would do to each. */
#ifndef BASE_PROCESS_TREE_H
#define BASE_PROCESS_TREE_H

#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

enum tree_disposition {
	TREE_DIES,    /* the default action applies */
	TREE_CATCHES, /* it has a handler, or has blocked the signal */
	TREE_IGNORES,
};

struct tree_process {
	pid_t pid, parent;
	char name[32];
	enum tree_disposition disposition;
};

/*
 * root, then all its descendants, each after its parent; none if root has ended. A process that
 * starts or ends during the call may be missing. The caller frees *processes.
 */
enum status tree_list(
	pid_t root, int signal, struct tree_process **processes, size_t *count, struct error *err);

#endif
