/* SPDX-License-Identifier: MIT */
/* Stores in the scratch directory. */
#ifndef UNIT_SCRATCH_STORE_H
#define UNIT_SCRATCH_STORE_H

#include "base/clock.h"
#include "scratch.h"
#include "store/store.h"

/* Milliseconds: so long may a call take, with sanitizers, on a machine that is busy. */
#define STORE_PATIENCE 120000

static struct error err;

/* Valid until the next call. */
static inline const char *scratch_path(const char *name)
{
	static char path[128];
	snprintf(path, sizeof(path), "%s/%s", scratch, name);
	return path;
}

static inline struct store *scratch_store(const char *name)
{
	struct store *store = NULL;
	if (store_open(&store, scratch_path(name), STORE_CREATE, clock_after(STORE_PATIENCE),
		    &err) != STATUS_OK) {
		printf("# cannot open %s: %s\n", name, err.text);
		_exit(98);
	}
	store_set_patience(store, STORE_PATIENCE);
	return store;
}

#endif
