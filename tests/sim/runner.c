/* SPDX-License-Identifier: MIT */
#include "runner.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "broken.h"
#include "kernel.h"

#define MOST_NUMBERS 512 /* of uint64_t in a simulator's statistics */

const struct scenario *runner_scenario;
static const struct simulator *sim;
static const char *program;
static uint64_t most_shown = 5; /* failures of a chunk */

static bool run(FILE *trace)
{
	return sim->run(sim->world, sim->schedule, sim->statistics, trace);
}

static void clear(void)
{
	memset(sim->schedule, 0, sim->schedule_size);
	memset(sim->statistics, 0, sim->statistics_size);
}

/* ---- Many schedules ---- */

static void print_failure(uint64_t seed)
{
	printf("FAILED seed %" PRIu64 ": %s: %s\n  replay: %s --seed %" PRIu64 "\n", seed,
		kernel.violated, kernel.detail, program, seed);
	if (sim->shrink)
		printf("  shrink: %s --shrink %" PRIu64 "\n", program, seed);
	fflush(stdout);
}

/* The process of a chunk has ended in the middle of a schedule, for instance by a signal. */
static void print_death(uint64_t seed, int status)
{
	if (WIFSIGNALED(status))
		printf("FAILED seed %" PRIu64 ": signal %d\n", seed, WTERMSIG(status));
	else
		printf("FAILED seed %" PRIu64 ": exit code %d\n", seed, WEXITSTATUS(status));
	printf("  replay: %s --seed %" PRIu64 "\n", program, seed);
	fflush(stdout);
}

#define CHUNK 250 /* schedules that one process runs */

/* What a process has done; it is in memory that is shared with it. */
struct chunk {
	uint64_t seed, passed, failed;
	uint64_t statistics[MOST_NUMBERS];
	pid_t pid;
};

/* Those from `first` on, up to `end`. */
static void run_chunk(uint64_t first, uint64_t end, struct chunk *chunk)
{
	for (uint64_t seed = first; seed < end; seed++) {
		chunk->seed = seed;
		sim->draw(sim->schedule, seed);
		if (run(NULL))
			chunk->passed++;
		else if (++chunk->failed <= most_shown)
			print_failure(seed);
	}
	memcpy(chunk->statistics, sim->statistics, sim->statistics_size);
}

/* Wait for one of the processes and add up what it has done. False: it has died, or there is none.
 */
static bool add_chunk(struct chunk *chunks, int jobs, struct chunk *sum)
{
	int status, j = 0;
	pid_t pid = wait(&status);
	while (j < jobs && chunks[j].pid != pid)
		j++;
	if (pid < 0 || j == jobs)
		return false;
	sum->passed += chunks[j].passed;
	sum->failed += chunks[j].failed;
	for (size_t i = 0; i < MOST_NUMBERS; i++)
		sum->statistics[i] += chunks[j].statistics[i];
	if (status)
		print_death(chunks[j].seed, status);
	chunks[j] = (struct chunk){0};
	return status == 0;
}

/*
 * In chunks, each in a process of its own, so many at a time: memory that killed processes of a
 * world had allocated is freed only when the real process ends.
 */
static int run_many(uint64_t first, uint64_t count, int jobs)
{
	struct chunk sum = {0}, *chunks = mmap(NULL, (size_t)jobs * sizeof(*chunks),
					PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	bool good = chunks != MAP_FAILED && sim->statistics_size <= sizeof(sum.statistics);
	int running = 0;
	fflush(stdout);
	for (uint64_t at = 0; (good && at < count) || running; running--) {
		for (int j = 0; good && j < jobs && at < count; j++) {
			if (chunks[j].pid)
				continue;
			uint64_t end = at + CHUNK < count ? at + CHUNK : count;
			pid_t pid = fork();
			if (pid == 0) {
				run_chunk(first + at, first + end, &chunks[j]);
				_exit(0);
			}
			chunks[j].pid = pid;
			running++;
			at = end;
		}
		good &= add_chunk(chunks, jobs, &sum);
	}
	memcpy(sim->statistics, sum.statistics, sim->statistics_size);
	sim->report(sim->statistics);
	printf("%" PRIu64 " passed, %" PRIu64 " failed\n", sum.passed, sum.failed);
	if (!good || sum.passed + sum.failed != count) {
		printf("a job ended early\n");
		return 1;
	}
	const char *unseen = sim->unseen(sim->statistics, count);
	if (unseen)
		printf("never happened: %s\n", unseen);
	return sum.failed || unseen ? 1 : 0;
}

/* ---- One schedule ---- */

static int run_one(uint64_t seed)
{
	sim->draw(sim->schedule, seed);
	sim->print(sim->schedule, stdout);
	bool held = run(stdout);
	printf("%d passed, %d failed\n", held, !held);
	return held ? 0 : 1;
}

static int run_shrink(uint64_t seed)
{
	sim->draw(sim->schedule, seed);
	if (run(NULL)) {
		printf("seed %" PRIu64 " does not fail\n", seed);
		return 0;
	}
	sim->shrink(sim->world, sim->schedule);
	sim->print(sim->schedule, stdout);
	run(stdout);
	return 1;
}

/* ---- Named scenarios ---- */

/* What is wrong; NULL: nothing. */
static const char *try_scenario(const struct scenario *scenario, FILE *trace)
{
	clear();
	runner_scenario = scenario;
	scenario->build(sim->schedule);
	if (trace)
		sim->print(sim->schedule, trace);
	if (!run(trace))
		return kernel.detail;
	return scenario->expect ? scenario->expect(sim->world) : NULL;
}

static bool run_scenario(const struct scenario *scenario, FILE *trace)
{
	const char *wrong = try_scenario(scenario, trace);
	printf("%s %s: %s%s%s\n", wrong ? "FAILED" : "ok", scenario->name, scenario->shows,
		wrong ? ": " : "", wrong ? wrong : "");
	return !wrong;
}

static int run_scenarios(const char *name, FILE *trace)
{
	int passed = 0, failed = 0;
	for (const struct scenario *s = sim->scenarios; s->name; s++)
		if (!strcmp(name, "all") || !strcmp(name, s->name))
			run_scenario(s, trace) ? passed++ : failed++;
	if (passed + failed == 0) {
		fprintf(stderr, "%s: no scenario %s; they are:", sim->name, name);
		for (const struct scenario *s = sim->scenarios; s->name; s++)
			fprintf(stderr, " %s", s->name);
		fputc('\n', stderr);
		return 2;
	}
	printf("%d passed, %d failed\n", passed, failed);
	return failed ? 1 : 0;
}

/* ---- Broken rules ---- */

#define ENOUGH 20000 /* random schedules, of which one must notice the breach */

/* Print what notices it. */
static bool is_noticed(void)
{
	for (const struct scenario *s = sim->scenarios; s->name; s++) {
		const char *wrong = try_scenario(s, NULL);
		if (wrong)
			printf("# scenario %s: %s\n", s->name, wrong);
		if (wrong)
			return true;
	}
	for (uint64_t seed = 1; seed <= ENOUGH; seed++) {
		sim->draw(sim->schedule, seed);
		if (run(NULL))
			continue;
		printf("# seed %" PRIu64 ": %s: %s\n", seed, kernel.violated, kernel.detail);
		return true;
	}
	return false;
}

static bool try_without(enum rule rule)
{
	int status = 0;
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		broken = rule;
		bool noticed = is_noticed();
		fflush(stdout);
		_exit(noticed ? 0 : 1);
	}
	bool noticed = pid > 0 && wait(&status) == pid && status == 0;
	printf("%s %s: %s\n", noticed ? "ok" : "FAILED", rule_name(rule), rule_meaning(rule));
	return noticed;
}

static int run_broken(const char *name)
{
	int noticed = 0, unnoticed = 0;
	for (enum rule rule = NO_RULE + 1; rule < RULES; rule++)
		if (rule_is_for(rule, sim->name) &&
			(!strcmp(name, "all") || !strcmp(name, rule_name(rule))))
			try_without(rule) ? noticed++ : unnoticed++;
	printf("%d noticed, %d not\n", noticed, unnoticed);
	return unnoticed || !noticed ? 1 : 0;
}

/* ---- Command line ---- */

static uint64_t number(const char *text)
{
	char *end;
	uint64_t value = strtoull(text, &end, 10);
	if (!*text || *end || *text == '-') {
		fprintf(stderr, "%s: %s is not a number\n", sim->name, text);
		exit(2);
	}
	return value;
}

static int usage(void)
{
	fprintf(stderr,
		"usage: %s [--schedules N] [--first SEED] [-j JOBS] [--show N] | --seed SEED | "
		"%s--scenario NAME|all [--trace] | --broken RULE|all\n",
		sim->name, sim->shrink ? "--shrink SEED | " : "");
	return 2;
}

int runner_main(const struct simulator *simulator, int argc, char **argv)
{
	static const struct option options[] = {{"schedules", required_argument, NULL, 'n'},
		{"first", required_argument, NULL, 'f'}, {"seed", required_argument, NULL, 's'},
		{"shrink", required_argument, NULL, 'k'},
		{"scenario", required_argument, NULL, 'c'}, {"trace", no_argument, NULL, 't'},
		{"show", required_argument, NULL, 'w'}, {"broken", required_argument, NULL, 'b'},
		{0}};
	uint64_t schedules = 1000, first = 1, seed = 0, shrinks = 0;
	const char *scenario = NULL, *rule = NULL;
	FILE *trace = NULL;
	int option, jobs = 1;
	sim = simulator;
	program = argv[0];
	while ((option = getopt_long(argc, argv, "j:", options, NULL)) != -1) {
		switch (option) {
		case 'n': schedules = number(optarg); break;
		case 'f': first = number(optarg); break;
		case 's': seed = number(optarg); break;
		case 'k': shrinks = number(optarg); break;
		case 'c': scenario = optarg; break;
		case 'b': rule = optarg; break;
		case 'w': most_shown = number(optarg); break;
		case 't': trace = stdout; break;
		case 'j': jobs = (int)number(optarg); break;
		default: return usage();
		}
	}
	if (optind < argc || jobs < 1 || jobs > 64 || (shrinks && !sim->shrink))
		return usage();
	if (rule)
		return run_broken(rule);
	if (scenario)
		return run_scenarios(scenario, trace);
	if (shrinks)
		return run_shrink(shrinks);
	if (seed)
		return run_one(seed);
	return run_many(first, schedules, jobs);
}
