/* SPDX-License-Identifier: MIT */
/*
 * Fibers: functions with stacks of their own. One of them runs at a time, until it returns control
 * to the scheduler. The threads of the simulated processes are fibers.
 */
#ifndef SIM_FIBER_H
#define SIM_FIBER_H

#include <stdbool.h>

struct fiber;

/* A fiber that will run work(context) when fiber_run is called. */
struct fiber *fiber_new(void (*work)(void *context), void *context);
/* Let it run until it pauses or returns; true: it has returned. Called by the scheduler. */
bool fiber_run(struct fiber *fiber);
/* Return to the scheduler. Called by the fiber that runs. */
void fiber_pause(void);
/* Let another fiber use its stack. Memory that it has allocated is not freed. */
void fiber_free(struct fiber *fiber);

#endif
