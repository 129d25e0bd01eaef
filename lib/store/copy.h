/* SPDX-License-Identifier: MIT */
/* Copying what is in one store to another, of whatever backends, while nothing runs on either. */
#ifndef STORE_COPY_H
#define STORE_COPY_H

#include "store/store.h"

struct store_copied {
	uint64_t keys;	 /* of the first store */
	uint64_t copied; /* of these were not in the second store */
};

/*
 * Copy each key of from. What belongs together, "run/RUN/" or "queue/QUEUE/" or a key of another
 * name, is in the other store afterwards as it is in this one, or not copied at all: STATUS_NO
 * where the other one has keys of it that are not the same, and nothing was changed then. A copy
 * that ended early can be made again, and goes on. At the end both are read again. Revisions, beats
 * and news are not copied. STATUS_TEMPORARY, also where from was changed while it was copied.
 * progress: the keys that are written, of how many, 5 times a second; NULL.
 */
enum status store_copy(struct store *from, struct store *to,
	void (*progress)(uint64_t written, uint64_t all), struct store_copied *copied,
	struct error *err);

#endif
