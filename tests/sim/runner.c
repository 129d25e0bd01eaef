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
static uint64_t most_shown = 5; /* failures per job */

/* What a job writes into its pipe at its end, followed by the statistics. */
struct share {
	uint64_t passed, failed;
};

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

#define CHUNK 1000 /* schedules that one process runs */

/* The chunk's process shares *seed with its job: the seed that ran when the process died. */
static void run_chunk(uint64_t first, uint64_t count, uint64_t every, struct share *share,
	volatile uint64_t *seed)
{
	for (uint64_t i = 0; i < count; i += every) {
		*seed = first + i;
		sim->draw(sim->schedule, first + i);
		if (run(NULL))
			share->passed++;
		else if (++share->failed <= most_shown)
			print_failure(first + i);
	}
}

static bool say_share(int descriptor, const struct share *share)
{
	ssize_t length = (ssize_t)sim->statistics_size;
	return write(descriptor, share, sizeof(*share)) == (ssize_t)sizeof(*share) &&
	       write(descriptor, sim->statistics, sim->statistics_size) == length;
}

static bool hear_share(int descriptor, struct share *sum)
{
	struct share share;
	uint64_t *to = (uint64_t *)sim->statistics, part[MOST_NUMBERS];
	size_t length = sim->statistics_size;
	if (read(descriptor, &share, sizeof(share)) != (ssize_t)sizeof(share) ||
		length > sizeof(part) || read(descriptor, part, length) != (ssize_t)length)
		return false;
	sum->passed += share.passed;
	sum->failed += share.failed;
	for (size_t i = 0; i < length / sizeof(*part); i++)
		to[i] += part[i];
	return true;
}

/*
 * Run a job's schedules, in chunks, each in a process of its own: memory that killed processes of a
 * world had allocated is freed only when the real process ends.
 */
static void run_share(uint64_t first, uint64_t count, uint64_t every, struct share *share)
{
	volatile uint64_t *seed = mmap(
		NULL, sizeof(*seed), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (seed == MAP_FAILED)
		return;
	for (uint64_t i = 0; i < count; i += CHUNK * every) {
		uint64_t left = count - i, length = left < CHUNK * every ? left : CHUNK * every;
		int pipes[2], status;
		if (pipe(pipes))
			return;
		pid_t pid = fork();
		if (pid == 0) {
			struct share part = {.failed = share->failed};
			memset(sim->statistics, 0, sim->statistics_size);
			run_chunk(first + i, length, every, &part, seed);
			part.failed -= share->failed;
			_exit(say_share(pipes[1], &part) ? 0 : 2);
		}
		close(pipes[1]);
		bool heard = pid > 0 && hear_share(pipes[0], share);
		close(pipes[0]);
		if (pid < 0 || wait(&status) != pid)
			return; /* run_many sees that the sum is too small */
		if (status || !heard) {
			print_death(*seed, status);
			return;
		}
	}
}

/* Start a job as a process. Returns the pipe with its result; -1: it cannot be started. */
static int start_job(uint64_t first, uint64_t count, uint64_t every)
{
	int pipes[2];
	if (pipe(pipes))
		return -1;
	pid_t pid = fork();
	if (pid == 0) {
		struct share share = {0};
		run_share(first, count, every, &share);
		_exit(say_share(pipes[1], &share) ? 0 : 2);
	}
	close(pipes[1]);
	return pid < 0 ? -1 : pipes[0];
}

static int run_many(uint64_t first, uint64_t count, int jobs)
{
	struct share sum = {0};
	int descriptors[64];
	bool early = false;
	fflush(stdout);
	for (int j = 0; j < jobs; j++) {
		uint64_t from = (uint64_t)j < count ? (uint64_t)j : count;
		descriptors[j] = start_job(first + from, count - from, (uint64_t)jobs);
	}
	for (int j = 0; j < jobs; j++)
		early |= descriptors[j] < 0 || !hear_share(descriptors[j], &sum);
	for (int j = 0; j < jobs; j++) {
		int status;
		early |= wait(&status) < 0 || status != 0;
	}
	sim->report(sim->statistics);
	printf("%" PRIu64 " passed, %" PRIu64 " failed\n", sum.passed, sum.failed);
	if (early || sum.passed + sum.failed != count) {
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
