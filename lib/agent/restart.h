/* SPDX-License-Identifier: MIT */
/*
 * preempt-run --restarts: after an attempt that broke, the same agent runs the command again in the
 * next one, together with the others, within the budgets.
 *
 * All agents wait until the attempt is closed, and the first of them to ask decides for all (the
 * key NEXT, history.h). Whoever has finished stays until the others have, too: it may be needed
 * again.
 *
 * Preempted, nobody runs again here: the machine that was noticed goes away, and without it the
 * others could only wait; whoever started them has to (42, 43). The same where the attempt does not
 * close, or not all come to the next one: 44.
 */
#ifndef AGENT_RESTART_H
#define AGENT_RESTART_H

#include "agent/agent.h"
#include "run/budget.h"

/* agent_run, again and again. limits NULL: once. The exit code. */
int restart_run(const struct agent_options *options, const struct budget_limits *limits);

#endif
