/* SPDX-License-Identifier: MIT */
/* A loop in several threads. */
#ifndef CKPT_PARALLEL_H
#define CKPT_PARALLEL_H

#include <stddef.h>

#include "base/error.h"

/*
 * Call work(context, i, err) once for each i below count, in at most this number of threads,
 * including the calling one. All have ended on return. If all returned STATUS_OK, so does this.
 * Otherwise it returns the first error, in the order of i, or STATUS_NO if there was no error.
 */
enum status parallel(size_t count, size_t threads,
	enum status (*work)(void *context, size_t i, struct error *err), void *context,
	struct error *err);

#endif
