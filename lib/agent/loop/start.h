/* SPDX-License-Identifier: MIT */
/* How the agent joins an attempt and starts its commands. */
#ifndef AGENT_LOOP_START_H
#define AGENT_LOOP_START_H

#include "agent/loop/loop.h"

enum status agent_open_signals(struct agent *agent, struct error *err);
/* Wait until all have joined; a notice or INT ends that early. */
enum status agent_join(struct agent *agent, struct error *err);
/* The exit code of an agent that could not join; says why. */
int agent_not_joined(struct agent *agent, enum status status, const struct error *err);
/* Make the boards, start the commands. */
enum status agent_start(struct agent *agent, struct error *err);
/* Leave an attempt whose commands were never started; the others are told why, if it is an error.
 */
void agent_leave_unstarted(
	struct agent *agent, enum agreement_reason reason, int code, const char *why);

#endif
