/* SPDX-License-Identifier: MIT */
/*
 * Programs that do not use the board but save on a signal. They are signalled when any task
 * receives a notice, and may use the remaining time. The exit code of their task depends on the
 * checkpoints that they wrote. This file also decides from which checkpoint an attempt resumes.
 * Private to lib/agent.
 */
#ifndef AGENT_SIGNAL_ONLY_H
#define AGENT_SIGNAL_ONLY_H

#include "agent/agent.h"
#include "agent/task/agent_task.h"
#include "live/outage.h"
#include "proto/view.h"

/*
 * Decide from which checkpoint the attempt resumes, and refresh view, which then has it. The first
 * task that writes the key RESUME decides for all tasks of the attempt. Asks a store that does not
 * answer again, as outage says. Returns an error if the checkpoints or the store cannot be read.
 */
enum status signal_only_resolve(struct store *store, struct view *view,
	const struct agent_options *options, struct outage *outage, struct error *err);

/*
 * Before the join: STATUS_TEMPORARY if the run has saved a checkpoint, and what --checkpoints names
 * has none.
 */
enum status signal_only_check(struct store *store, const char *run,
	const struct agent_options *options, struct outage *outage, struct error *err);

/* Whether --on-notice names a signal or a command for the training. */
bool signal_only_is_told(const struct agent_options *options);

/*
 * If the attempt was preempted, do once for a running command what --on-notice says: send a signal
 * (later calls send it to each process that ignored it and handles it now), or run a command. The
 * training then has time until --kill-after before the deadline; if no deadline is known, for
 * --save-timeout. Later calls shorten that time if an earlier deadline has become known.
 */
void signal_only_tell(struct command *command, const struct group *group, int64_t now);

/* How many other tasks have joined and neither left nor died: our exit may end their saves. */
uint64_t signal_only_others(const struct view *view, uint64_t task);

/* At the end of the attempt: look for a newer complete checkpoint (--checkpoints). */
struct outcome_finding;
void signal_only_finding(const struct agent_options *options, const struct view *view,
	struct outcome_finding *finding);

/*
 * A task has finished: set task->code. It is `agreed`, the agreement's code, if that is none of 0,
 * 42, 43 and 93, or without --on-notice, --checkpoints and --done-if. Otherwise it is 0 if the
 * command has finished its work, 93 if the run is to stop, 42 if there is a newer complete
 * checkpoint (with --done-if alone: if 42 was agreed), else 43. Returns false while a command of
 * --on-notice or --done-if runs within its time: call again at *wake.
 */
bool signal_only_conclude(
	struct agent_task *task, struct group *group, int agreed, int64_t now, int64_t *wake);

#endif
