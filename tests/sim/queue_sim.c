/* SPDX-License-Identifier: MIT */
/* queue_sim: the queue in tables through random schedules, and through named ones. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/json.h"
#include "queue/sim.h"

static void print(const struct statistics *t)
{
	printf("%" PRIu64 " commits; requests lost %" PRIu64 ", answers lost %" PRIu64 "\n",
		t->commits, t->lost_requests, t->lost_answers);
	printf("commands %" PRIu64 ", starts %" PRIu64 ", back %" PRIu64 " of which lost %" PRIu64
	       " and refused %" PRIu64 "; succeeded %" PRIu64 ", failed %" PRIu64
	       ", cancelled %" PRIu64 "; retried %" PRIu64 ", forgotten %" PRIu64 "\n",
		t->scheduled, t->starts, t->back, t->lost, t->refused, t->succeeded, t->failed,
		t->cancelled, t->retried, t->forgotten);
	printf("released %" PRIu64 ", cancelled with others %" PRIu64 ", told to end %" PRIu64
	       ", refused ends %" PRIu64 ", full %" PRIu64 ", failures %" PRIu64
	       " and told %" PRIu64 ", faults seen %" PRIu64 "\nacts:",
		t->released, t->dependents, t->told, t->zombies, t->full, t->failures, t->raised,
		t->faults);
	for (int i = 0; i < ACTS; i++)
		printf(" %s %" PRIu64 "%s", act_name((enum act)i), t->acts[i],
			i + 1 < ACTS ? "," : "\n");
}

static const char *unseen(const struct statistics *t, uint64_t schedules)
{
	if (schedules < 1000)
		return NULL;
	for (int i = 0; i < ACTS; i++)
		if (!t->acts[i])
			return act_name((enum act)i);
	return !(t->succeeded && t->failed && t->cancelled && t->back && t->lost && t->refused)
		       ? "an end of a command"
	       : !(t->released && t->dependents)	? "a command that comes after others"
	       : !(t->told && t->failures && t->raised) ? "a failure, or a cancel"
	       : !(t->full && t->zombies && t->faults)	? "a full queue, a zombie, a fault"
	       : !(t->retried && t->forgotten)		? "a retry"
	       : !(t->lost_requests && t->lost_answers) ? "a loss"
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
	sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
	/* json-c draws a random number at its first use: not in one of the worlds. */
	struct json_object *object = json_object_new_object();
	json_put_bool(object, "first", true);
	json_object_put(object);
	return runner_main(&simulator, argc, argv);
}
