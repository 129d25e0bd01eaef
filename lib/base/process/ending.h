/* SPDX-License-Identifier: MIT */
/*
 * The signals that end a program (INT, TERM, HUP, QUIT; PIPE of a reader that went away), for one
 * that has to clean up first: they are blocked except while it waits, so that none is missed. Call
 * it from one thread.
 */
#ifndef BASE_PROCESS_ENDING_H
#define BASE_PROCESS_ENDING_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>

/* From now on. What is ignored or handled already (a source of notices) is left as it is. */
void ending_catch(void);

/* The signal that has come; 0: none. And another one, or none, in its place. */
int ending_signal(void);
void ending_set(int number);

/*
 * A signalfd, which does not block, of the signals that ending_catch has blocked, for a program
 * that reads them itself; -1 with errno.
 */
int ending_descriptor(void);

/* Wait until one is ready, deadline, or a signal. revents are those of poll(2), or 0. */
void ending_wait(struct pollfd *polls, size_t count, int64_t deadline);

/* End as this signal ends a program, so that a shell sees it; its exit code where it cannot. */
int ending_die(int number);

#endif
