/* SPDX-License-Identifier: MIT */
/*
 * A store in memory, for tests and for the simulator: "memory:NAME". No program knows it: a test
 * calls store_register(&store_memory) first.
 *
 * It belongs to one process: a child has a copy. A waiting handle is woken by a bell.
 *
 * Deleted keys are remembered until they are purged, and a store never goes back.
 */
#ifndef BACKENDS_MEMORY_H
#define BACKENDS_MEMORY_H

#include "store/backend.h"

extern const struct store_backend store_memory;

/* Called after each transaction that changed something, within the call that made it. */
struct memory_observer {
	void *context;
	void (*changed)(
		void *context, const struct store_op *ops, size_t count, store_revision revision);
};
/* Of all stores of this process; NULL: no process is told. The observer must stay valid. */
void memory_observe(const struct memory_observer *observer);

/* Forget all stores. No handle may be open, or its owner must never use it again. */
void memory_forget(void);

#endif
