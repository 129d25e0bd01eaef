/* SPDX-License-Identifier: MIT */
/*
 * Programs that know nothing of the board, but save on a signal: they are told when anybody was
 * noticed, have the time that is left, and are judged by the checkpoints that they leave behind.
 * Private to lib/group.
 */
#ifndef GROUP_UNAWARE_H
#define GROUP_UNAWARE_H

#include "group/agent.h"
#include "group/seat.h"
#include "group/view.h"

/*
 * The resume point of the attempt: found by whoever comes first and kept in the key RESUME, so that
 * all tasks of the attempt resume from the same. Fails where it could not be looked for.
 */
enum status unaware_resolve(struct store *store, struct view *view,
	const struct agent_options *options, struct error *err);

/* Whether the options name a way to tell the command. */
bool unaware_is(const struct agent_options *options);

/* Tell a running command, once; it has until the deadline, or for the save timeout. */
void unaware_tell(struct command *command, const struct agent_options *options, int64_t deadline,
	int64_t now);

/* Everybody else is through: nobody's save can be hit by our exit. */
bool unaware_others_through(const struct view *view, uint64_t task);

/*
 * The exit code of a task that was told (or preempted before), given the one of the agreement and
 * the one of the command: 0 finished, 42 a newer complete checkpoint is there, else 43.
 */
int unaware_code(
	const struct agent_options *options, const struct view *view, int agreed, int command_code);

#endif
