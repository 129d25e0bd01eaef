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

static bool quiet_launcher(struct schedule *s, int at)
{
	s->launcher_kills = false;
	s->watches_peers = at > 0 ? false : s->watches_peers;
	return at < 2;
}

static bool quick_store(struct schedule *s, int at)
{
	switch (at) {
	case 0: s->lost_before = s->lost_after = s->late_commit = 0; return true;
	case 1: s->late_commit = 0; return true;
	case 2: s->latency = 5; return true;
	case 3: s->notify = 5; return true;
	case 4: s->remembered_save = 0; return true;
	default: return false;
	}
}

static bool same_agents(struct schedule *s, int at)
{
	s->per_agent = at == 0 ? 1 : s->per_agent;
	s->agents_per_machine = 1;
	return at < 2;
}

static bool right_clocks(struct schedule *s, int at)
{
	memset(s->clock, 0, sizeof s->clock);
	return at < 1;
}

static bool plain_options(struct schedule *s, int at)
{
	switch (at) {
	case 0: s->savers_chief = s->complete_chief = s->per_task = false; return true;
	case 1: s->store_loss_ends = false; return true;
	case 2: s->startup = 600000; return true;
	case 3: s->report_timeout = 10000; return true;
	case 4: s->beat_period = 0; return true;
	case 5: s->early = false; return true;
	default: return false;
	}
}

static bool plain_trainee(struct schedule *s, int at)
{
	int task = at / 9;
	if (task >= s->tasks)
		return false;
	struct trainee *t = &s->trainee[task];
	switch (at % 9) {
	case 0: t->failing = FAIL_NEVER; break;
	case 1: t->periodic = 0; break;
	case 2: t->startup = 50; break;
	case 3:
		t->stride = s->trainee[0].stride;
		t->offset = t->uneven = 0;
		break;
	case 4: t->look_us = 50; break;
	case 5: t->uneven_us = 0; break;
	case 6: t->total = NEVER_STEP; break;
	case 7: t->ignores_term = t->ignores_leave = false; break;
	default: t->react = 1; break;
	}
	return true;
}

static bool plain_steps(struct schedule *s, int at)
{
	for (int i = 0; i < s->tasks; i++) {
		struct trainee *t = &s->trainee[i];
		switch (at) {
		case 0: t->step_us = 100 * MS; break;
		case 1:
			t->stride = 1;
			t->offset = t->uneven = 0;
			break;
		case 2: t->save = 100; break;
		case 3: t->start = 0; break;
		default: return false;
		}
	}
	return true;
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
	static bool (*const changes[])(struct schedule *, int) = {drop_act, drop_tasks,
		quiet_launcher, quick_store, same_agents, right_clocks, plain_options,
		plain_trainee, plain_steps, sooner_acts};
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
