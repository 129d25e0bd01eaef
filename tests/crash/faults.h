/* SPDX-License-Identifier: MIT */
/* Which faults the calls of a transaction, or of a program, can have. */
#ifndef CRASH_FAULTS_H
#define CRASH_FAULTS_H

#include "calls.h"

enum fault {
	FAULT_KILL = 1 << 0,
	FAULT_ERROR =
		1 << 1, /* this call fails, or (of a program: only) all like it from then on */
	FAULT_SPACE = 1 << 2, /* no space, a quota, a limit; a write that is cut short by it */
	FAULT_LATE = 1 << 3,  /* it is done, but the answer is lost */
	FAULT_INT = 1 << 4,   /* SIGINT */
	FAULT_STOP = 1 << 5,  /* for longer than every timeout */
	FAULT_ONCE = 1 << 6,  /* of a program: this call fails with EIO */
	FAULT_GONE = 1 << 7,  /* of a program: the answer is lost, and then the whole store */
};

/* "kill" ...; 0: there is none of this name. */
unsigned fault_named(const char *name);

struct point {
	unsigned at; /* 1: the first call */
	enum call_act act;
	int number; /* errno, or signal */
};

struct points {
	struct point *list;
	size_t count;
};

/* All errors and signals at each call; or, with few, those that differ for a program. */
void points_of(
	unsigned faults, bool few, const struct call *calls, unsigned count, struct points *points);
/* Leave so many of them, spread over all, by chance under the seed; 0: all. */
void points_thin(struct points *points, size_t most, uint64_t *seed);
void points_release(struct points *points);

/* "call 3, pwrite of \"s.db\" fails with EIO", into a static buffer. */
const char *fault_told(const struct plan *plan);

#endif
