/* SPDX-License-Identifier: MIT */
/*
 * The transactions of acts.h, each in a child of this process, with faults at their calls.
 *
 * First the calls are counted; then, for each point, the store is put back into its state, the
 * transaction is made with that fault, and judged: what it answers, whether the store holds exactly
 * what was acknowledged, what is left behind, and whether the next one goes on.
 */
#ifndef CRASH_LIBRARY_H
#define CRASH_LIBRARY_H

#include "acts.h"
#include "faults.h"

struct result {
	size_t possible, made; /* points */
	unsigned long wrong;
};

/* parameters: as of fixture_make. */
void library_begin(const char *parameters);
/* At most so many points, or, with 0, all. Explains what is wrong in lines that begin with "#". */
struct result library_run(const struct act *act, unsigned faults, size_t most, uint64_t *seed);
void library_end(void);

#endif
