/* SPDX-License-Identifier: MIT */
/*
 * Waiting for several things at once: descriptors, signals, processes (by pidfd) and instants.
 *
 *	struct loop loop;
 *	struct loop_watch input = {.descriptor = 0, .due = CLOCK_NEVER};
 *	loop_open(&loop, &err);
 *	loop_add(&loop, &input);
 *	for (;;) {
 *		loop_wait(&loop, deadline);
 *		if (input.ready)
 *			...
 *	}
 *
 * There are no callbacks: loop_wait marks what is ready, and the caller looks at its watches in the
 * order that is right for it (notices before the ends of commands, say). A watch that is ready and
 * was not served is ready again at the next loop_wait.
 *
 * A loop owns one epoll descriptor and one signalfd; the watches, and the descriptors in them, stay
 * the caller's. A zeroed struct loop may be closed. One loop belongs to one thread.
 */
#ifndef BASE_LOOP_H
#define BASE_LOOP_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/signalfd.h>

#include "base/clock.h"
#include "base/error.h"

/* One thing that is waited for. The caller sets the first four members before loop_add. */
struct loop_watch {
	int descriptor;	  /* to be read from; -1: none, only due counts */
	int64_t due;	  /* ready from this instant on, too; may be changed at any time */
	bool errors_only; /* the descriptor counts only when it has failed or hung up */
	/*
	 * Marked whenever this one is, whether it is in the loop or not: what waits on several
	 * watches, as a source of notices does, looks at one. NULL: none.
	 */
	struct loop_watch *parent;

	bool ready; /* by loop_wait: the descriptor can be read, or due has come */

	bool always;		 /* a regular file: epoll refuses it, it can always be read */
	struct loop_watch *next; /* in the loop */
};

struct loop {
	int epoll;
	bool opened;
	struct loop_watch *first;
	struct loop_watch signals; /* the signalfd of loop_catch */
	sigset_t caught;
};

/* STATUS_TEMPORARY: no descriptor is left. */
enum status loop_open(struct loop *loop, struct error *err);
/* Signals that were caught stay blocked: what comes late must not end us. */
void loop_close(struct loop *loop);

/* Never fails for a descriptor that is open; a watch is in at most one loop. */
void loop_add(struct loop *loop, struct loop_watch *watch);
/* Takes it out, before its descriptor is closed. Legal for one that was never added. */
void loop_remove(struct loop *loop, struct loop_watch *watch);
/* The same watch with another descriptor; the old one is to be closed by the caller afterwards. */
void loop_change(struct loop *loop, struct loop_watch *watch, int descriptor);

/*
 * Wait until a watch is ready, its due has come, or `until` (CLOCK_NEVER: no limit; in the past:
 * only look). Marks all watches anew. Returns whether any is ready.
 */
bool loop_wait(struct loop *loop, int64_t until);
/*
 * For a wait that takes one descriptor and one deadline (store_wait): readable when loop_wait would
 * find a descriptor ready; and the earliest due of all watches.
 */
int loop_descriptor(const struct loop *loop);
int64_t loop_due(const struct loop *loop);

/*
 * Read these signals by loop_signal from now on, and block them; may be called again for more. Left
 * alone are those that are ignored (nohup) or have a handler (a source of notices).
 */
enum status loop_catch(struct loop *loop, const int *numbers, size_t count, struct error *err);
/*
 * The same of INT, TERM, HUP and QUIT, which end a program. A reader of our stdout that goes away
 * is then an error of the write (EPIPE), not our death.
 */
enum status loop_catch_endings(struct loop *loop, struct error *err);
/* The next signal that has come, 0: none. info, which may be NULL, says who sent it. */
int loop_signal(struct loop *loop, struct signalfd_siginfo *info);

/* Whether a read would not block now, or the process of a pidfd has ended. -1: never. */
bool loop_is_ready(int descriptor);

#endif
