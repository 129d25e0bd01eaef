/* SPDX-License-Identifier: MIT */
/*
 * "shim:memory:NAME" behaves as "memory:NAME" (memory.h) does, but a test decides how long each
 * call takes and whether its request or its answer is lost, and calls are counted. No program knows
 * it: a test calls shim_install first.
 */
#ifndef BACKENDS_SHIM_H
#define BACKENDS_SHIM_H

#include "store/backend.h"

enum shim_call {
	SHIM_OPEN,
	SHIM_TXN,  /* may write */
	SHIM_READ, /* a transaction without a write, or a list */
	SHIM_WAIT, /* once for each slice; `after` passes where it ends with a change */
	SHIM_BEAT,
	SHIM_BEAT_READ,
	SHIM_OTHER, /* beats prepared or removed, a purge */
	SHIM_CALLS
};

enum shim_loss {
	SHIM_NOTHING_LOST,
	SHIM_REQUEST_LOST, /* nothing is done; STATUS_TEMPORARY */
	SHIM_ANSWER_LOST,  /* it is done; STATUS_TEMPORARY, and the outcome is unknown */
	SHIM_LATE,	   /* STATUS_TEMPORARY; a SHIM_TXN is done afterwards, after `late` */
	SHIM_UNSEEN,	   /* a SHIM_WAIT sees no change in this slice, and goes on */
	SHIM_PRETENDED,	   /* nothing is done, but the answer is STATUS_OK */
};

struct shim_fate {
	int64_t before, after; /* microseconds before it is done, and from then to the answer */
	enum shim_loss loss;
	int64_t late; /* microseconds after the answer */
};

struct shim {
	void *context;
	/* Decides how a call ends that may take until deadline (base/clock.h). fate is zeroed. */
	void (*decide)(
		void *context, enum shim_call call, int64_t deadline, struct shim_fate *fate);
	void (*sleep)(void *context, int64_t microseconds);
	/* Call run(what) once, so much later. */
	void (*later)(void *context, int64_t microseconds, void (*run)(void *what), void *what);
	/* Change a transaction, whose request is a copy. May be NULL. */
	void (*alter)(void *context, struct store_request *request);
	/* So many bytes of keys and values were answered. May be NULL. */
	void (*answered)(void *context, size_t bytes);
	int64_t slice;		    /* ms, at least 1: so often decide is asked during a wait */
	uint64_t calls[SHIM_CALLS]; /* counted by the shim */
};

/* shim must stay valid. A second call replaces the first one's. */
void shim_install(struct shim *shim);

#endif
