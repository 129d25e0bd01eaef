/* SPDX-License-Identifier: MIT */
/* Copying all keys of one store to another, of any two backends, while no job runs on either. */
#ifndef STORE_COPY_H
#define STORE_COPY_H

#include "store/store.h"

struct store_copied {
	uint64_t keys;	 /* in the first store */
	uint64_t copied; /* those that were not in the second store before */
};

/*
 * Copy each key of `from` to `to`. The keys of one run ("run/RUN/") or queue ("queue/QUEUE/"), and
 * each other key, are a unit. If `to` has in a unit of `from` a key or value that `from` does not
 * have, the answer is STATUS_NO, and nothing was changed. An interrupted copy can be repeated, and
 * copies the rest. At the end both stores are compared again. Revisions, beats and news are not
 * copied. STATUS_TEMPORARY: a store did not answer, or was changed during the copy. progress (NULL:
 * none) is called at most 5 times a second, with the numbers of keys written and to be written.
 */
enum status store_copy(struct store *from, struct store *to,
	void (*progress)(uint64_t written, uint64_t all), struct store_copied *copied,
	struct error *err);

#endif
