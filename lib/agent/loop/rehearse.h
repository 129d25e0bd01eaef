/* SPDX-License-Identifier: MIT */
/* A notice to oneself (preempt-run --rehearse). */
#ifndef AGENT_LOOP_REHEARSE_H
#define AGENT_LOOP_REHEARSE_H

#include "agent/loop/loop.h"

void agent_rehearse(struct agent *agent, int64_t now, int64_t *wake);
/* Say how it went; whether it passed. */
bool agent_check_rehearsal(const struct agent *agent, int code);

#endif
