/* SPDX-License-Identifier: MIT */
/* Beats, progress, and deaths that this agent declares. */
#ifndef AGENT_LOOP_HEART_H
#define AGENT_LOOP_HEART_H

#include "agent/loop/loop.h"

/* Start the heartbeat of all tasks of this agent. With a period of 0 *pulse is unchanged. */
enum status agent_start_pulse(
	const struct agent_options *options, struct pulse **pulse, struct error *err);
/* About once a second, after the boards were sampled: set the steps that the beats carry, and end
 * tasks that hang or are cut off from the store. */
void agent_check_progress(struct agent *agent, int64_t now);
/* Declare tasks dead (write_build_deaths), by the store thread. */
void agent_declare(struct group *group, uint64_t by, const struct death *deaths, size_t count);
/* In a round, from time to time: declare dead the awaited tasks whose agents on this machine are
 * gone. */
void agent_check_gone(struct agent *agent, int64_t now);
/*
 * Declare dead the peers whose agents ran on this machine and are gone; awaited_only: only those
 * that the round waits for, after reading everything if records are unread. Returns whether there
 * are any; false also if deaths must not be written now.
 */
bool agent_declare_gone(struct agent *agent, bool awaited_only);

#endif
