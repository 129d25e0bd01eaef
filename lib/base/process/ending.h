/* SPDX-License-Identifier: MIT */
/*
 * Catches the signals that end a program (INT, TERM, HUP, QUIT, and PIPE when the reader of its
 * output is gone), so that the program can clean up first. The first four are blocked except in
 * ending_wait, so that none is missed. Call all functions from one thread.
 */
#ifndef BASE_PROCESS_ENDING_H
#define BASE_PROCESS_ENDING_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>

/* Begin to catch them, except those that are already ignored, or handled by a notice source. */
void ending_catch(void);

/* The last of these signals that came, or the number that ending_set put in its place; 0: none. */
int ending_signal(void);
void ending_set(int number);

/*
 * A non-blocking signalfd for the signals that ending_catch has blocked: it is readable when one
 * has come. Read it, or only poll it and then call ending_wait. -1 and errno on failure.
 */
int ending_descriptor(void);

/* Wait for one of polls, the deadline or one of the signals. Sets all revents, like poll(2). */
void ending_wait(struct pollfd *polls, size_t count, int64_t deadline);

/* End this process by the signal, so that a shell sees why. Returns 128 + number if that fails. */
int ending_die(int number);

#endif
