/* SPDX-License-Identifier: MIT */
/* Beats, progress, and deaths that this agent declares. */
#ifndef AGENT_LOOP_HEART_H
#define AGENT_LOOP_HEART_H

#include "agent/loop/loop.h"

enum status agent_open_pulse(struct agent *agent, struct error *err);
/* The heartbeat of all tasks of this agent; *pulse stays as it is where there is none to be. */
enum status agent_start_pulse(
	const struct agent_options *options, struct pulse **pulse, struct error *err);
/* About once a second, after the boards were sampled: tell how far we are; does it hang, or is it
 * cut off from the store? */
void agent_check_progress(struct agent *agent, int64_t now);
/* In a round, now and then: is one that it waits for gone? */
void agent_check_gone(struct agent *agent, int64_t now);
/*
 * Declare the peers whose processes ran on this machine and exist no more, of all or of those that
 * the round waits for; whether there are any.
 */
bool agent_declare_gone(struct agent *agent, bool awaited_only);

#endif
