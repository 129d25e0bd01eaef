/* SPDX-License-Identifier: MIT */
/* How the agent joins an attempt and starts its commands. */
#ifndef AGENT_LOOP_START_H
#define AGENT_LOOP_START_H

#include "agent/loop/loop.h"

enum status agent_open_signals(struct agent *agent, struct error *err);
/* Open the sources into watch. After an error, it has those opened before. */
enum status agent_watch_sources(
	const struct agent_options *options, struct source_set *watch, struct error *err);
/* Join, and wait until all tasks have joined; a notice or INT ends the wait early. */
enum status agent_join(struct agent *agent, struct error *err);
/* Report why the agent could not join, and leave. Returns its exit code. */
int agent_not_joined(struct agent *agent, enum status status, const struct error *err);
/* Make the boards, start the commands. */
enum status agent_start(struct agent *agent, struct error *err);
/* Leave the attempt without having started the commands. After an error, tell the others why. */
void agent_leave_unstarted(
	struct agent *agent, enum agreement_reason reason, int code, const char *why);

#endif
