/* SPDX-License-Identifier: MIT */
/*
 * Passes on what the commands write to stderr, and remembers the line of each that says best why it
 * failed (error_line.h): it goes into the error that the other tasks print. In a thread of its own,
 * so that a slow reader of our stderr stops nobody but the writers.
 */
#ifndef GROUP_PUMP_H
#define GROUP_PUMP_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define PUMP_LINE 400

struct pump;

/* For count commands. */
enum status pump_start(struct pump **pump, size_t count, struct error *err);
/* The descriptor that becomes stderr of command index; closed by pump_started. */
int pump_input(const struct pump *pump, size_t index);
void pump_started(struct pump *pump, size_t index);
/*
 * The line that says best why it failed, "" where none does, once all that was written has been
 * passed on; waits for that at most patience ms.
 */
void pump_error_line(struct pump *pump, size_t index, int64_t patience, char line[PUMP_LINE]);
/*
 * Pass on what is left, and end. Waits 10 s at most for a reader of our stderr that takes nothing:
 * then the rest is lost. NULL is legal.
 */
void pump_stop(struct pump *pump);

#endif
