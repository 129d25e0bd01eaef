/* SPDX-License-Identifier: MIT */
/* Makes a failing schedule smaller, one thing at a time, as long as the same invariant fails. */
#include <string.h>

#include "sim.h"

#define ATTEMPTS 12 /* with other unevenness, per change */

static bool still_fails(struct world *w, struct schedule *s, const char *violated)
{
	struct statistics stats;
	uint64_t seed = s->seed;
	for (uint64_t i = 0; i < ATTEMPTS; i++) {
		memset(&stats, 0, sizeof stats);
		s->seed = seed + i;
		if (!world_run(w, s, &stats, NULL) && !strcmp(kernel.violated, violated))
			return true;
	}
	return false;
}

/* The changes. Each returns whether there was anything to change; `at` counts its places. */

static bool drop_act(struct schedule *s, int at)
{
	if (at >= s->acts)
		return false;
	memmove(&s->act[at], &s->act[at + 1], (size_t)(s->acts - at - 1) * sizeof *s->act);
	s->acts--;
	return true;
}

static bool drop_tasks(struct schedule *s, int at)
{
	static const int fewer[] = {1, 2, 3, 4, 6, 8, 16, 32};
	if (at >= 9)
		return false;
	int tasks = at < 8 ? fewer[at] : s->tasks - 1;
	if (tasks < 1 || tasks >= s->tasks)
		return at < 8;
	s->tasks = tasks;
	if (s->per_agent > tasks)
		s->per_agent = tasks;
	return true;
}

static bool right_clocks(struct schedule *s, int at)
{
	memset(s->clock, 0, sizeof s->clock);
	return at < 1;
}

static bool sooner_acts(struct schedule *s, int at)
{
	if (at >= s->acts)
		return false;
	s->act[at].delay = s->act[at].delay / 1000 * 1000 / 2;
	return true;
}

void shrink(struct world *w, struct schedule *s)
{
	static bool (*const changes[])(struct schedule *, int) = {
		drop_act, drop_tasks, right_clocks, schedule_simplify, sooner_acts};
	static struct schedule smaller;
	const char *violated = kernel.violated;
	for (int pass = 0; pass < 3; pass++)
		for (size_t c = 0; c < sizeof changes / sizeof *changes; c++)
			for (int at = 0; at < 1000; at++) {
				smaller = *s;
				if (!changes[c](&smaller, at))
					break;
				if (memcmp(&smaller, s, sizeof smaller) == 0)
					continue;
				if (still_fails(w, &smaller, violated))
					*s = smaller;
			}
}
