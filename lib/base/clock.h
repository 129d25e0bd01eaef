/* SPDX-License-Identifier: MIT */
/*
 * Clocks. Instants and durations are int64_t milliseconds. Deadlines are instants of the monotonic
 * clock; CLOCK_NEVER is later than all.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

#define CLOCK_NEVER INT64_MAX

/* Monotonic, from an arbitrary start; jumps of the wall clock do not affect it. */
int64_t clock_now(void);

/* Monotonic, and goes on while the machine is suspended, as the clocks of other machines do. */
int64_t clock_boot(void);

/* Milliseconds since 1970 UTC: for messages and for other machines, never for waiting. */
int64_t clock_utc(void);

/* Now + duration; CLOCK_NEVER if the sum overflows or duration is negative (no limit). */
int64_t clock_after(int64_t duration);

static inline int64_t clock_earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static inline int64_t clock_later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* The timeout for poll(2): 0 when the deadline has passed, -1 for CLOCK_NEVER. */
int clock_poll_timeout(int64_t deadline);

/* Sleep at most until deadline; signals end it early. */
void clock_sleep_until(int64_t deadline);

/* A random duration from 1 to ceiling, for retries with full jitter. */
int64_t clock_jitter(int64_t ceiling);

/* Write utc as "2026-01-31T12:00:00.123Z". */
void clock_format_utc(int64_t utc, char text[32]);

#endif
