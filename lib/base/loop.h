/* SPDX-License-Identifier: MIT */
/*
 * What a program waits for: descriptors, an instant, and signals. Events have no callbacks: after
 * each wait a program takes in all that has come, and does what is due.
 *
 *	loop_open(&loop, &err);
 *	loop_open_signals(&loop, numbers, count, &err);
 *	loop_watch(&loop, descriptor);
 *	for (;;) {
 *		loop_wake_at(&loop, due);
 *		loop_wait(&loop);
 *		while ((number = loop_take_signal(&loop, NULL)))
 *			...
 *	}
 */
#ifndef BASE_LOOP_H
#define BASE_LOOP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/signalfd.h>

#include "base/clock.h"
#include "base/error.h"

struct loop {
	int descriptor; /* an epoll descriptor: readable when one that is watched is */
	int signals;	/* a signalfd; -1: none */
	int64_t due;	/* when the next wait ends at the latest */
};

/* One that is not open, and which loop_close ignores. */
#define LOOP_CLOSED ((struct loop){.descriptor = -1, .signals = -1, .due = CLOCK_NEVER})

enum status loop_open(struct loop *loop, struct error *err);
/* From now on take these signals: they are blocked (process_open_signals). To be called once. */
enum status loop_open_signals(
	struct loop *loop, const int *numbers, size_t count, struct error *err);
/* The signals stay blocked: one that was not taken is pending, for the next loop or process. */
void loop_close(struct loop *loop);

/*
 * Watch a descriptor (-1: none) from now on, until loop_forget; a second call has no effect.
 * Closing a descriptor ends the watch, too, if no child before its exec has a copy of it. A file,
 * which is always readable, ends the next wait at once: watch it anew before each wait.
 */
void loop_watch(struct loop *loop, int descriptor);
void loop_forget(const struct loop *loop, int descriptor);
/* End the next wait, and only that one, at this instant or earlier. */
void loop_wake_at(struct loop *loop, int64_t instant);
/* The same instant, for a wait elsewhere, which also ends when loop->descriptor is readable. */
int64_t loop_take_due(struct loop *loop);
/* Wait until a watched descriptor is readable or hung up, or a signal or the instant has come. */
void loop_wait(struct loop *loop);
/* The next signal that has come; 0: none. info (may be NULL): what the kernel says of it. */
int loop_take_signal(const struct loop *loop, struct signalfd_siginfo *info);

#endif
