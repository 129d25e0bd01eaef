/* SPDX-License-Identifier: MIT */
/* Write the page of preempt-status --timeline. */
#ifndef PREEMPT_STATUS_PAGE_H
#define PREEMPT_STATUS_PAGE_H

#include "status/run_status.h"

/* True if path ends with .svg or .html. */
bool page_is_known(const char *path);

/*
 * Write the page of these runs. earlier: add up to 20 earlier attempts of each. The file appears
 * whole or not at all.
 */
enum status page_write(const char *path, struct store *store, const struct run_status *runs,
	size_t count, bool earlier, struct error *err);

#endif
