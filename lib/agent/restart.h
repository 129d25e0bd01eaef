/* SPDX-License-Identifier: MIT */
/*
 * preempt-run --restarts: after an attempt that broke, the same agent runs the command again in the
 * next one, together with the others, within the budgets.
 *
 * All agents wait until the attempt is closed, and the first of them to ask decides for all (the
 * key NEXT, history.h). An agent whose tasks have finished stays until all have finished: it may
 * have to run again.
 *
 * After a preemption no agent runs again by itself: the noticed machine goes away, and the others
 * could only wait for it. The caller must start them again (exit codes 42 and 43), and also if
 * the attempt does not close, or if not all agents join the next one (exit code 44).
 */
#ifndef AGENT_RESTART_H
#define AGENT_RESTART_H

#include "agent/agent.h"
#include "run/budget.h"

/* Run attempts as long as limits allow; NULL: only one. If an attempt was superseded before the
 * command was started, join the next one, also with NULL. Returns the exit code. */
int restart_run(const struct agent_options *options, const struct budget_limits *limits);

#endif
