/* SPDX-License-Identifier: MIT */
/*
 * agreement_sim: runs the agreement through random schedules and through named scenarios.
 *
 *	agreement_sim [--schedules N] [--first SEED] [-j JOBS] [--show N]	random schedules, of
 *						which at most N failures per job are shown
 *	agreement_sim --seed SEED				one of them, with a trace
 *	agreement_sim --shrink SEED				a smaller one that fails in the same
 *way agreement_sim --scenario NAME|all [--trace]		the named ones
 *
 * Exit code 0: all invariants held; 1: one did not; 2: usage.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/parse.h"
#include "sim.h"

static struct world world;
static uint64_t most_shown = 5; /* failures per job */

static void print_failure(uint64_t seed, const char *program)
{
	printf("FAILED seed %" PRIu64 ": %s: %s\n  replay: %s --seed %" PRIu64
	       "\n  shrink: %s --shrink %" PRIu64 "\n",
		seed, world.violated, world.detail, program, seed, program, seed);
	fflush(stdout);
}

/* ---- Many ---- */

static void run_share(uint64_t first, uint64_t count, uint64_t every, const char *program,
	struct statistics *stats)
{
	static struct schedule s;
	for (uint64_t i = 0; i < count; i += every) {
		schedule_draw(&s, first + i);
		if (!world_run(&world, &s, stats, NULL) && stats->failed <= most_shown)
			print_failure(first + i, program);
	}
}

static void add_statistics(struct statistics *sum, const struct statistics *part)
{
	uint64_t *to = (uint64_t *)sum;
	const uint64_t *from = (const uint64_t *)part;
	for (size_t i = 0; i < sizeof *sum / sizeof *to; i++)
		to[i] += from[i];
}

static void print_statistics(const struct statistics *t)
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

/* Each job is a process, so that the worlds share nothing. */
static int run_many(uint64_t first, uint64_t count, int jobs, const char *program)
{
	struct statistics sum = {0};
	int pipes[2];
	bool broken = false;
	fflush(stdout);
	if (pipe(pipes))
		return 2;
	for (int j = 0; j < jobs; j++) {
		pid_t pid = fork();
		if (pid < 0)
			return 2;
		if (pid)
			continue;
		struct statistics stats = {0};
		uint64_t from = (uint64_t)j;
		if (from < count)
			run_share(first + from, count - from, (uint64_t)jobs, program, &stats);
		ssize_t wrote = write(pipes[1], &stats, sizeof stats);
		_exit(wrote == (ssize_t)sizeof stats ? 0 : 2);
	}
	close(pipes[1]);
	for (int j = 0; j < jobs; j++) {
		struct statistics part;
		if (read(pipes[0], &part, sizeof part) == (ssize_t)sizeof part)
			add_statistics(&sum, &part);
	}
	for (int j = 0; j < jobs; j++) {
		int status;
		if (wait(&status) < 0 || status != 0)
			broken = true;
	}
	close(pipes[0]);
	print_statistics(&sum);
	printf("%" PRIu64 " passed, %" PRIu64 " failed\n", sum.passed, sum.failed);
	if (broken || sum.passed + sum.failed != count) {
		printf("a job ended early\n");
		return 1;
	}
	return sum.failed ? 1 : 0;
}

/* ---- One ---- */

static int run_one(uint64_t seed)
{
	static struct schedule s;
	struct statistics stats = {0};
	schedule_draw(&s, seed);
	schedule_print(&s, stdout);
	bool held = world_run(&world, &s, &stats, stdout);
	printf("%d passed, %d failed\n", held, !held);
	return held ? 0 : 1;
}

static int run_shrink(uint64_t seed)
{
	static struct schedule s;
	struct statistics stats = {0};
	schedule_draw(&s, seed);
	if (world_run(&world, &s, &stats, NULL)) {
		printf("seed %" PRIu64 " does not fail\n", seed);
		return 0;
	}
	shrink(&world, &s);
	schedule_print(&s, stdout);
	world_run(&world, &s, &stats, stdout);
	return 1;
}

/* ---- Named ---- */

static bool run_scenario(const struct scenario *scenario, FILE *trace)
{
	static struct schedule s;
	struct statistics stats = {0};
	memset(&s, 0, sizeof s);
	scenario->build(&s);
	if (trace)
		schedule_print(&s, trace);
	bool held = world_run(&world, &s, &stats, trace);
	const char *wrong = held ? NULL : world.detail;
	if (held && scenario->expect)
		wrong = scenario->expect(&world);
	printf("%s %s: %s%s%s\n", wrong ? "FAILED" : "ok", scenario->name, scenario->shows,
		wrong ? ": " : "", wrong ? wrong : "");
	return !wrong;
}

static int run_scenarios(const char *name, FILE *trace)
{
	int passed = 0, failed = 0;
	for (const struct scenario *s = scenarios; s->name; s++)
		if (!strcmp(name, "all") || !strcmp(name, s->name))
			run_scenario(s, trace) ? passed++ : failed++;
	if (passed + failed == 0) {
		fprintf(stderr, "agreement_sim: no scenario %s; they are:", name);
		for (const struct scenario *s = scenarios; s->name; s++)
			fprintf(stderr, " %s", s->name);
		fputc('\n', stderr);
		return 2;
	}
	printf("%d passed, %d failed\n", passed, failed);
	return failed ? 1 : 0;
}

/* ---- Command line ---- */

static uint64_t number(const char *text)
{
	char *end;
	uint64_t value = strtoull(text, &end, 10);
	if (!*text || *end || *text == '-') {
		fprintf(stderr, "agreement_sim: %s is not a number\n", text);
		exit(2);
	}
	return value;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"schedules", required_argument, NULL, 'n'},
		{"first", required_argument, NULL, 'f'}, {"seed", required_argument, NULL, 's'},
		{"shrink", required_argument, NULL, 'k'},
		{"scenario", required_argument, NULL, 'c'}, {"trace", no_argument, NULL, 't'},
		{"show", required_argument, NULL, 'w'}, {0}};
	uint64_t schedules = 1000, first = 1, seed = 0, shrinks = 0;
	const char *scenario = NULL;
	FILE *trace = NULL;
	int option, jobs = 1;
	while ((option = getopt_long(argc, argv, "j:", options, NULL)) != -1) {
		switch (option) {
		case 'n': schedules = number(optarg); break;
		case 'f': first = number(optarg); break;
		case 's': seed = number(optarg); break;
		case 'k': shrinks = number(optarg); break;
		case 'c': scenario = optarg; break;
		case 'w': most_shown = number(optarg); break;
		case 't': trace = stdout; break;
		case 'j': jobs = (int)number(optarg); break;
		default: return 2;
		}
	}
	if (optind < argc || jobs < 1 || jobs > 64) {
		fprintf(stderr,
			"usage: agreement_sim [--schedules N] [--first SEED] [-j JOBS] [--show N] | "
			"--seed SEED | --shrink SEED | --scenario NAME|all [--trace]\n");
		return 2;
	}
	if (scenario)
		return run_scenarios(scenario, trace);
	if (shrinks)
		return run_shrink(shrinks);
	if (seed)
		return run_one(seed);
	return run_many(first, schedules, jobs, argv[0]);
}
