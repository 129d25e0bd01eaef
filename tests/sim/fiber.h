/* SPDX-License-Identifier: MIT */
/*
 * Fibers: functions with stacks of their own, of which one runs at a time, until it lets the
 * scheduler go on. The threads of the simulated processes are fibers.
 */
#ifndef SIM_FIBER_H
#define SIM_FIBER_H

#include <stdbool.h>

struct fiber;

/* A fiber that will run work(context); it does not run yet. */
struct fiber *fiber_new(void (*work)(void *context), void *context);
/* Let it run until it pauses or returns; true: it has returned. Called by the scheduler. */
bool fiber_run(struct fiber *fiber);
/* Back to the scheduler; called by the fiber that runs. */
void fiber_pause(void);
/* Its stack is used again by another one; what it has allocated is lost. */
void fiber_free(struct fiber *fiber);

#endif
