/* SPDX-License-Identifier: MIT */
/* How a pulse reads the beats of the others. */
#ifndef AGENT_PULSE_WATCH_H
#define AGENT_PULSE_WATCH_H

#include "agent/pulse/state.h"

/* Read the beats of the tasks that are ours to read, and declare the dead. */
void pulse_look_around(struct pulse *pulse, const struct heartbeat_exchange *exchange);
/* Read what has changed in the store; a task that has left or is dead is watched no longer. */
enum status pulse_refresh(struct pulse *pulse, struct error *err);

#endif
