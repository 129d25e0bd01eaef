/* SPDX-License-Identifier: MIT */
/*
 * Deleting many directories, several at a time: most of deleting is waiting for a disk.
 */
#ifndef CKPT_DELETE_H
#define CKPT_DELETE_H

#include <stddef.h>

#include "base/error.h"

/*
 * Delete each of names below an open directory, with all that is in it; one that is not there is
 * fine. statuses says how each went. Answers the first failure, after all were tried.
 */
enum status delete_all(int directory, const char *const *names, size_t count, enum status *statuses,
	struct error *err);

#endif
