/* SPDX-License-Identifier: MIT */
/* A loop in several threads. */
#ifndef CKPT_PARALLEL_H
#define CKPT_PARALLEL_H

#include <stddef.h>

#include "base/error.h"

/*
 * Call work(context, i, err) for each i below count, in at most this number of threads (up to 16),
 * including the calling one, until one is not STATUS_OK. All have ended on return, which is of the
 * first i, in their order, that failed.
 */
enum status parallel(size_t count, size_t threads,
	enum status (*work)(void *context, size_t i, struct error *err), void *context,
	struct error *err);

#endif
