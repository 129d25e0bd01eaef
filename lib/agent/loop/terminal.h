/* SPDX-License-Identifier: MIT */
/* The agent as a job of a shell, and the terminal that a command gets. */
#ifndef AGENT_LOOP_TERMINAL_H
#define AGENT_LOOP_TERMINAL_H

#include "agent/loop/loop.h"

/* The descriptor of the terminal that a command is to have from its start; 0: none. */
int agent_terminal_for(struct agent *agent);
/* If a command was stopped, stop the agent, too, or lend the command the terminal it asked for. */
void agent_check_stopped(struct agent *agent);
/* Ctrl-Z came to the agent's own group: stop the commands, which have groups of their own, and the
 * agent. */
void agent_stop(struct agent *agent);
/* The agent was stopped and is continued: continue the commands. */
void agent_continued(struct agent *agent);
/* A command has ended: take the terminal back. */
void agent_terminal_ended(struct agent *agent, const struct command *command);

#endif
