/* SPDX-License-Identifier: MIT */
/* preempt-run --rehearse: the agent sends a notice to itself. */
#ifndef AGENT_LOOP_REHEARSE_H
#define AGENT_LOOP_REHEARSE_H

#include "agent/loop/loop.h"

void agent_rehearse(struct agent *agent, int64_t now, int64_t *wake);
/* Report how the rehearsal went. Returns whether it passed. */
bool agent_check_rehearsal(const struct agent *agent, int code);

#endif
