/* SPDX-License-Identifier: MIT */
/* A loop whose rounds run at the same time. */
#ifndef CKPT_PARALLEL_H
#define CKPT_PARALLEL_H

#include <stddef.h>

#include "base/error.h"

/*
 * Call work(context, i, err) once for each i below count, in up to threads threads, the calling one
 * included; in fewer where no more can be started. All have ended on return. The answer is
 * that of the least i that was not STATUS_OK, with its err; but an error ("could not ask")
 * outweighs a STATUS_NO, after which nothing more may be concluded.
 */
enum status parallel(size_t count, size_t threads,
	enum status (*work)(void *context, size_t i, struct error *err), void *context,
	struct error *err);

#endif
