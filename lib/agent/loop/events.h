/* SPDX-License-Identifier: MIT */
/* What the agent takes in: notices, signals, ends of commands, answers of the store. */
#ifndef AGENT_LOOP_EVENTS_H
#define AGENT_LOOP_EVENTS_H

#include "agent/loop/loop.h"

/* Take the notices that came during the last wait. */
void agent_check_sources(struct agent *agent);
void agent_take_notice(struct agent *agent, const struct notice *notice);
/* Take the notices that a source has caught, and holds back until more is known of them. */
void agent_take_held(struct agent *agent);
/* Whether this signal is a notice of one of the sources. */
bool agent_watches_signal(const struct agent *agent, int number);
void agent_take_signals(struct agent *agent, int64_t now);
/* Start the reaper again if it was killed. */
void agent_keep_reaper(struct agent *agent);
/* Tell tasks that their commands have ended, once it is clear whether another task died first. */
void agent_tell_ends(struct agent *agent, int64_t now, int64_t *wake);
void agent_take_result(struct agent *agent, struct result *result);

#endif
