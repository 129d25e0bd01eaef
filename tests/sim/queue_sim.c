/* SPDX-License-Identifier: MIT */
/* queue_sim: runs the queue through random schedules and through named scenarios. */
#include <inttypes.h>
#include <stdlib.h>

#include "queue/sim.h"

static void print(const struct statistics *t)
{
	printf("%" PRIu64 " events, %" PRIu64 " commits; answers lost %" PRIu64
	       ", commits late %" PRIu64 "\n",
		t->events, t->commits, t->lost_answers, t->late_commits);
	printf("commands %" PRIu64 ", leases %" PRIu64 ", starts %" PRIu64 ", back %" PRIu64
	       " of which lost %" PRIu64 ", succeeded %" PRIu64 ", failed %" PRIu64
	       ", cancelled %" PRIu64 "\n",
		t->items, t->leases, t->started, t->returned, t->lost, t->succeeded, t->failed,
		t->cancelled);
	printf("workers treated as dead %" PRIu64 ", failures pending %" PRIu64 " and told %" PRIu64
	       "; joined with 0: %" PRIu64 ", 1: %" PRIu64 ", 44: %" PRIu64 "\n",
		t->fenced, t->errors, t->raised, t->joined[0], t->joined[1], t->joined[2]);
	printf("after others: blocked %" PRIu64 ", released %" PRIu64 ", cancelled %" PRIu64 "\n",
		t->blocked, t->released, t->cancelled_after);
	printf("deeds:");
	for (int i = KILL_WORKER; i < DEEDS; i++)
		printf(" %s %" PRIu64 "%s", deed_name((enum deed)i), t->deeds[i],
			i + 1 < DEEDS ? "," : "\n");
}

#define ENOUGH 2500 /* a run of that many schedules must show everything */

static const char *unseen(const struct statistics *t, uint64_t schedules)
{
	if (schedules < ENOUGH)
		return NULL;
	for (int i = KILL_WORKER; i < DEEDS; i++)
		if (!t->deeds[i])
			return deed_name((enum deed)i);
	bool moved = t->succeeded && t->failed && t->cancelled && t->returned && t->lost;
	bool told = t->fenced && t->raised && t->joined[0] && t->joined[1] && t->joined[2];
	bool after = t->blocked && t->released && t->cancelled_after;
	return !moved	? "an end of a command"
	       : !after ? "a command that comes after others"
	       : !told	? "a death, a failure, or a code of join"
			: NULL;
}

int main(int argc, char **argv)
{
	static struct world one;
	static struct schedule schedule;
	static struct statistics statistics;
	static const struct simulator simulator = {.name = "queue_sim",
		.world = &one,
		.schedule = &schedule,
		.schedule_size = sizeof(schedule),
		.statistics = &statistics,
		.statistics_size = sizeof(statistics),
		.scenarios = scenarios,
		.draw = schedule_draw,
		.print = schedule_print,
		.run = world_run,
		.report = print,
		.unseen = unseen};
	/* Commands inherit no variable of ours, and no resource is found on this machine. */
	clearenv();
	setenv("TMPDIR", "/simulated", 1);
	return runner_main(&simulator, argc, argv);
}
