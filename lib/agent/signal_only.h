/* SPDX-License-Identifier: MIT */
/*
 * Programs that do not use the board but save on a signal. They are signalled when any task
 * receives a notice, may use the remaining time, and their exit code depends on the checkpoints
 * that they wrote. Also: which checkpoint an attempt resumes from. Private to lib/agent.
 */
#ifndef AGENT_SIGNAL_ONLY_H
#define AGENT_SIGNAL_ONLY_H

#include "agent/agent.h"
#include "agent/task/agent_task.h"
#include "proto/view.h"

/*
 * Decide from which checkpoint the attempt resumes, and refresh view, which then has it. The first
 * task that writes the key RESUME decides for all tasks of the attempt. Returns an error if the
 * checkpoints or the store cannot be read.
 */
enum status signal_only_resolve(struct store *store, struct view *view,
	const struct agent_options *options, struct error *err);

/*
 * Signal a running command or run --on-notice, once, if the attempt was preempted and the options
 * ask for it. The command then has until the deadline, or for the save timeout if there is none.
 */
void signal_only_tell(struct command *command, const struct group *group, int64_t now);

/* How many other tasks have neither left nor ended: if none, exiting interrupts no save. */
uint64_t signal_only_others(const struct view *view, uint64_t task);

/*
 * A complete checkpoint that is newer than the one the attempt began from. STATUS_NO: there is
 * none; found->note is "", or says which one does not count, and why.
 */
enum status signal_only_find_newer(const struct agent_options *options, const struct view *view,
	struct agent_checkpoint *found, struct error *err);

/*
 * A task has finished: set task->code. It is `agreed`, the agreement's code, or, for a command that
 * was told or is judged by its checkpoints, 0 if it has finished, 42 if there is a newer complete
 * checkpoint, else 43. False as long as a command of --on-notice or --done-if runs within its time:
 * call it again at *wake.
 */
bool signal_only_conclude(
	struct agent_task *task, const struct group *group, int agreed, int64_t now, int64_t *wake);

#endif
