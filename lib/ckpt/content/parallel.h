/* SPDX-License-Identifier: MIT */
/* A loop whose rounds run at the same time. */
#ifndef CKPT_PARALLEL_H
#define CKPT_PARALLEL_H

#include <stddef.h>

/*
 * Call work(context, i) once for each i below count, in up to threads threads, the calling one
 * included; in fewer where no more can be started. All have ended on return.
 */
void parallel(size_t count, size_t threads, void (*work)(void *context, size_t i), void *context);

#endif
