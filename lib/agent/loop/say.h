/* SPDX-License-Identifier: MIT */
/* What the agent reports on stderr, each thing once. */
#ifndef AGENT_LOOP_SAY_H
#define AGENT_LOOP_SAY_H

#include "agent/loop/loop.h"

void agent_say_news(struct agent *agent);
void agent_say_saves(struct agent *agent);
void agent_say_end(const struct agent *agent, int code);

#endif
