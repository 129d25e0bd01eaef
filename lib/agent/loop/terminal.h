/* SPDX-License-Identifier: MIT */
/* The agent as a job of a shell, and the terminal that a command gets. */
#ifndef AGENT_LOOP_TERMINAL_H
#define AGENT_LOOP_TERMINAL_H

#include "agent/loop/loop.h"

/* The descriptor of the terminal that a command is to have from its start; 0: none. */
int agent_terminal_for(struct agent *agent);
/* A command that was stopped stops us with it, or gets the terminal that it asked for. */
void agent_check_stopped(struct agent *agent);
/* We were stopped, and are continued. */
void agent_continued(struct agent *agent);
/* A command has ended: the terminal is ours again. */
void agent_terminal_ended(struct agent *agent, const struct command *command);

#endif
