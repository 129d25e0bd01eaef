/* SPDX-License-Identifier: MIT */
/* What the agent reports on stderr, each thing once. */
#ifndef AGENT_LOOP_SAY_H
#define AGENT_LOOP_SAY_H

#include "agent/loop/loop.h"

/*
 * How this agent reports what concerns all tasks: at least as ANNOUNCE_OWN while the store does not
 * answer, or if the agent serves a script (served.h).
 */
enum announce_by agent_speaks(const struct agent *agent);

void agent_say_joined(const struct agent *agent);
/* To be called about once a second: say which tasks a round has waited for, once. */
void agent_say_waiting(struct agent *agent, int64_t now);
/* The same: say that a request to the store has waited for its answer, once until it comes. */
void agent_say_silence(struct agent *agent, int64_t now);
/* Report this agent's notice, unless it was reported before. */
void agent_say_notice(struct agent *agent, enum announce_by by);
void agent_say_news(struct agent *agent);
void agent_say_saves(struct agent *agent);
/*
 * The tasks of this agent have ended, and code is its exit code: report what was not reported yet,
 * and describe the end in *end.
 */
void agent_say_end(struct agent *agent, int code, struct agent_end *end);

#endif
