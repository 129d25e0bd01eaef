/* SPDX-License-Identifier: MIT */
/* agreement_sim: runs the agreement through random schedules and through named scenarios. */
#include <inttypes.h>
#include <string.h>

#include "group/sim.h"

static void print(const struct statistics *t)
{
	printf("%" PRIu64 " events; synchronous %" PRIu64 ", 64 tasks %" PRIu64
	       ", several tasks per agent %" PRIu64 "\n",
		t->events, t->synchronous, t->tasks_64, t->several_per_agent);
	printf("claimed %" PRIu64 ", on demand only %" PRIu64 ", broken %" PRIu64
	       ", untouched %" PRIu64 "\n",
		t->claimed, t->on_demand, t->broken, t->untouched);
	printf("schedules by rounds:");
	for (int i = 0; i < 8; i++)
		printf(" %d%s: %" PRIu64, i, i == 7 ? "+" : "", t->rounds[i]);
	printf("\ndecisions: save %" PRIu64 ", exit %" PRIu64 ", each %" PRIu64 ", none %" PRIu64
	       "\n",
		t->kinds[0], t->kinds[1], t->kinds[2], t->kinds[3]);
	printf("deeds:");
	for (int i = NOTICE; i < DEEDS; i++)
		printf(" %s %" PRIu64 "%s", deed_name((enum deed)i), t->deeds[i],
			i + 1 < DEEDS ? "," : "\n");
	printf("answers lost %" PRIu64 ", commits late %" PRIu64 ", saves alone %" PRIu64 "\n",
		t->lost_answers, t->late_commits, t->solo);
	printf("complete checkpoints %" PRIu64 ", undisturbed with time enough %" PRIu64 "\n",
		t->complete, t->comfortable);
	printf("tasks: 0: %" PRIu64 ", 42: %" PRIu64 ", 43: %" PRIu64 ", 44: %" PRIu64
	       ", 93: %" PRIu64 ", own code %" PRIu64 ", killed %" PRIu64 ", still running %" PRIu64
	       "\n",
		t->codes[0], t->codes[1], t->codes[2], t->codes[3], t->codes[4], t->codes[5],
		t->codes[6], t->codes[7]);
}

#define ENOUGH 10000 /* a run of that many schedules must show everything */

static const char *unseen(const struct statistics *t, uint64_t schedules)
{
	static const char *const codes[] = {"a task that leaves with 0", "one with 42",
		"one with 43", "one with 44", "one with 93", "one with its own code",
		"a killed one", "one that still runs"};
	static const char *const kinds[] = {
		"a decision to save", "one to exit", "one for each", "one that is none"};
	if (schedules < ENOUGH)
		return NULL;
	/* Garbage is written in scenarios only. */
	for (int i = NOTICE; i < DEEDS; i++)
		if (!t->deeds[i] && (i < GARBAGE_CLAIM || i > GARBAGE_NAMES))
			return deed_name((enum deed)i);
	for (int i = 0; i < 8; i++)
		if (!t->codes[i])
			return codes[i];
	for (int i = 0; i < 4; i++)
		if (!t->kinds[i])
			return kinds[i];
	if (t->comfortable < schedules / 25)
		return "enough schedules that nothing disturbs";
	return t->lost_answers && t->late_commits && t->solo ? NULL
							     : "a lost answer, or a late one";
}

/* --transcripts FILE...: whether what they say happens. --write FILE...: let them say it. */
static int run_transcripts(int argc, char **argv)
{
	bool writes = !strcmp(argv[1], "--write");
	int failed = 0;
	for (int i = 2; i < argc; i++) {
		bool good = transcript(argv[i], writes);
		printf("%s %s\n", good ? "ok" : "FAILED", argv[i]);
		failed += !good;
	}
	return failed || argc == 2 ? 1 : 0;
}

int main(int argc, char **argv)
{
	static struct world world;
	static struct schedule schedule;
	static struct statistics statistics;
	static const struct simulator simulator = {.name = "agreement_sim",
		.world = &world,
		.schedule = &schedule,
		.schedule_size = sizeof(schedule),
		.statistics = &statistics,
		.statistics_size = sizeof(statistics),
		.scenarios = scenarios,
		.draw = schedule_draw,
		.print = schedule_print,
		.run = world_run,
		.shrink = shrink,
		.report = print,
		.unseen = unseen};
	if (argc > 1 && (!strcmp(argv[1], "--transcripts") || !strcmp(argv[1], "--write")))
		return run_transcripts(argc, argv);
	scenarios_read();
	return runner_main(&simulator, argc, argv);
}
