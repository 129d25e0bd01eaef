/* SPDX-License-Identifier: MIT */
/*
 * Passes on what the commands write to stderr, and remembers the line of each that says best why it
 * failed (error_line.h), for the error that the other tasks print. The relay has a thread of its
 * own: a slow reader of our stderr blocks the commands that write, but not the agent.
 */
#ifndef AGENT_CHILDREN_STDERR_RELAY_H
#define AGENT_CHILDREN_STDERR_RELAY_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define STDERR_RELAY_LINE 400

struct stderr_relay;

/* For count commands. */
enum status stderr_relay_start(struct stderr_relay **relay, size_t count, struct error *err);
/* The descriptor that becomes stderr of command index; closed by stderr_relay_started. */
int stderr_relay_input(const struct stderr_relay *relay, size_t index);
void stderr_relay_started(struct stderr_relay *relay, size_t index);
/*
 * The line that says best why the command failed; "": none. Waits at most patience ms until all
 * that the command wrote has been passed on.
 */
void stderr_relay_line(
	struct stderr_relay *relay, size_t index, int64_t patience, char line[STDERR_RELAY_LINE]);
/*
 * Pass on what is left, and end. Waits 10 s at most for a reader of our stderr that takes nothing:
 * then the rest is lost. NULL is legal.
 */
void stderr_relay_stop(struct stderr_relay *relay);

#endif
