/* SPDX-License-Identifier: MIT */
/* What the agent takes in: notices, signals, ends of commands, answers of the store. */
#ifndef AGENT_LOOP_EVENTS_H
#define AGENT_LOOP_EVENTS_H

#include "agent/loop/loop.h"

/* The notices that have come by the last wait. */
void agent_check_sources(struct agent *agent);
void agent_take_notice(struct agent *agent, const struct notice *notice);
/* Notices that a source has caught, and holds back until more is known of them. */
void agent_take_held(struct agent *agent);
/* Whether one of the sources has this signal for a notice. */
bool agent_watches_signal(const struct agent *agent, int number);
void agent_take_signals(struct agent *agent, int64_t now);
/* A guard that was killed is replaced. */
void agent_keep_reaper(struct agent *agent);
/* Tell the tasks of commands that have ended, as soon as it is clear what they have died of. */
void agent_tell_ends(struct agent *agent, int64_t now, int64_t *wake);
void agent_take_result(struct agent *agent, struct result *result);

#endif
