/* SPDX-License-Identifier: MIT */
/* How a pulse watches the other tasks. */
#ifndef AGENT_PULSE_WATCH_H
#define AGENT_PULSE_WATCH_H

#include "agent/pulse/state.h"

/* Read the beats that this pulse has to read, and declare the dead. */
void pulse_look_around(struct pulse *pulse, const struct heartbeat_exchange *exchange);
/* Read what has changed in the store. A task that has left or is dead is not watched any more. */
enum status pulse_refresh(struct pulse *pulse, struct error *err);

#endif
