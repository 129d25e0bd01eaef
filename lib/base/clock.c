/* SPDX-License-Identifier: MIT */
#include "base/clock.h"

#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/random.h>
#include <time.h>

static int64_t read_clock(clockid_t id)
{
	struct timespec t;
	clock_gettime(id, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int64_t clock_now(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

int64_t clock_boot(void)
{
	return read_clock(CLOCK_BOOTTIME);
}

int64_t clock_utc(void)
{
	return read_clock(CLOCK_REALTIME);
}

int64_t clock_after(int64_t duration)
{
	int64_t now = clock_now();
	return duration < 0 || duration > CLOCK_NEVER - now ? CLOCK_NEVER : now + duration;
}

int clock_poll_timeout(int64_t deadline)
{
	if (deadline == CLOCK_NEVER)
		return -1;
	int64_t left = deadline - clock_now();
	if (left <= 0)
		return 0;
	return left > INT_MAX ? INT_MAX : (int)left;
}

void clock_sleep_until(int64_t deadline)
{
	poll(NULL, 0, clock_poll_timeout(deadline));
}

int64_t clock_jitter(int64_t ceiling)
{
	uint64_t random = 0;
	if (ceiling <= 1)
		return 1;
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
		random = (uint64_t)clock_now() * 2654435761u; /* Knuth's multiplicative hash */
	return 1 + (int64_t)(random % (uint64_t)ceiling);
}

void clock_format_utc(int64_t utc, char text[32])
{
	time_t seconds = (time_t)(utc / 1000);
	struct tm broken;
	char date[24] = "";
	gmtime_r(&seconds, &broken);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &broken);
	snprintf(text, 32, "%s.%03dZ", date, (int)(utc % 1000));
}
