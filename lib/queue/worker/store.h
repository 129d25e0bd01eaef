/* SPDX-License-Identifier: MIT */
/* What the worker asks of the store. */
#ifndef QUEUE_WORKER_STORE_H
#define QUEUE_WORKER_STORE_H

#include "queue/worker/loop.h"

/* All that is due with the store. */
void work_ask_store(struct work *work);
/* It answered, or not; a status that does not pass makes us leave. */
void work_note_answer(struct work *work, enum status status, const struct error *err);

/*
 * Whether it looks at the others, too, as it does until it leaves: also while what runs has a long
 * grace. It beats on, and who sees that may leave the dead to it.
 */
bool work_looks_at_others(const struct work *work, int64_t now);
/* Whether it is to be found out if all is done. */
bool work_asks_whether_drained(const struct work *work, int64_t now);

#endif
