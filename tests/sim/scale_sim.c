/* SPDX-License-Identifier: MIT */
/*
 * scale_sim: the load of one preemption, and of one normal end, of a large job on the store, and
 * how long they take, given that transactions run one after the other.
 *
 *   scale_sim [--agents N] [--per-agent L] [--lock MS] [--look MS] [--step MS] [--save MS]
 *             [--notice one|all|none] [--deadline MS] [--dead N | --cut N] [--report-timeout MS]
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "scale/scale.h"

struct figure {
	double mean;
	uint64_t most, all;
};

static struct figure figure_of(const struct cost *cost, int agents, size_t offset)
{
	struct figure figure = {0};
	for (int i = 0; i < agents; i++) {
		uint64_t count;
		memcpy(&count, (const char *)&cost[i] + offset, sizeof(count));
		figure.all += count;
		figure.most = count > figure.most ? count : figure.most;
	}
	figure.mean = (double)figure.all / agents;
	return figure;
}

static void print_phase(const struct scale *what, const char *name, const struct cost *cost)
{
	static const struct {
		const char *name;
		size_t offset;
	} columns[] = {{"writes", offsetof(struct cost, writes)},
		{"reads", offsetof(struct cost, reads)},
		{"entries", offsetof(struct cost, entries)},
		{"bytes", offsetof(struct cost, bytes)}};
	printf("  %-11s", name);
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
		struct figure figure = figure_of(cost, what->agents, columns[i].offset);
		printf(" %s %.2f %" PRIu64 " %" PRIu64, columns[i].name, figure.mean, figure.most,
			figure.all);
	}
	putchar('\n');
}

static double seconds(int64_t from, int64_t to)
{
	return to > from ? (double)(to - from) / (1000 * MS) : 0;
}

/* Print each figure as mean and maximum over the agents, and their sum. False: the run failed. */
static bool run(const struct scale *what)
{
	struct report report;
	scale_run(what, &report);
	const struct moments *at = &report.at;
	printf("%d agents x %d, lock %g ms, %s\n", what->agents, what->per_agent,
		(double)what->lock / MS,
		what->ends	    ? "normal end"
		: what->all_noticed ? "all noticed"
				    : "one noticed");
	print_phase(what, "join", report.cost[PHASE_JOIN]);
	print_phase(what, "training", report.cost[PHASE_TRAIN]);
	print_phase(what, what->ends ? "end" : "preemption", report.cost[PHASE_END]);
	printf("  seconds     joined %.2f", seconds(at->began, at->joined));
	if (!what->ends)
		printf(" decided %.2f saved %.2f reported %.2f all-saved %.2f",
			seconds(at->end_began, at->decided), seconds(at->end_began, at->last_save),
			seconds(at->end_began, at->last_saved_key),
			seconds(at->end_began, at->all_saved));
	printf(" gone %.2f closed %.2f; lock held %.2f, longest wait %.2f, not in time %" PRIu64
	       "\n",
		seconds(at->end_began, at->gone), seconds(at->end_began, at->closed),
		(double)at->lock_held / (1000 * MS), seconds(0, at->longest_wait), at->refused);
	if (*report.wrong)
		printf("  WRONG: %s\n", report.wrong);
	fflush(stdout);
	return !*report.wrong;
}

static bool read_notice(struct scale *what, const char *value)
{
	what->all_noticed = !strcmp(value, "all");
	what->ends = !strcmp(value, "none");
	return what->all_noticed || what->ends || !strcmp(value, "one");
}

static bool read_option(struct scale *what, const char *name, const char *value)
{
	const struct {
		const char *name;
		int *whole;
		int64_t *time;
	} known[] = {{"--agents", &what->agents, NULL}, {"--per-agent", &what->per_agent, NULL},
		{"--lock", NULL, &what->lock}, {"--look", NULL, &what->look},
		{"--step", NULL, &what->step}, {"--save", NULL, &what->save},
		{"--dead", &what->lost, NULL}, {"--cut", &what->lost, NULL},
		{"--deadline", NULL, &what->deadline},
		{"--report-timeout", NULL, &what->report_timeout}};
	char *end;
	if (!strcmp(name, "--notice"))
		return read_notice(what, value);
	double number = strtod(value, &end);
	if (end == value || *end || !(number >= 0 && number <= 1000000))
		return false;
	what->cut |= !strcmp(name, "--cut");
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strcmp(name, known[i].name) != 0)
			continue;
		if (known[i].whole)
			*known[i].whole = (int)number;
		else /* the lock's in microseconds, the others in milliseconds */
			*known[i].time =
				(int64_t)(known[i].time == &what->lock ? number * MS : number);
		return true;
	}
	return false;
}

int main(int argc, char **argv)
{
	struct scale what = {.agents = 64,
		.per_agent = 1,
		.lock = 1000,
		.look = 200,
		.step = 200,
		.save = 1000,
		.deadline = -1,
		.report_timeout = 10000};
	for (int i = 1; i < argc; i += 2) {
		if (i + 1 < argc && read_option(&what, argv[i], argv[i + 1]))
			continue;
		fprintf(stderr, "scale_sim: %s: see the head of tests/sim/scale_sim.c\n", argv[i]);
		return 2;
	}
	if (what.agents < 1 || what.agents > MOST_PROCESSES || what.per_agent < 1 ||
		what.agents > INT16_MAX / what.per_agent) {
		fprintf(stderr, "scale_sim: at most %d agents and %d tasks\n", MOST_PROCESSES,
			INT16_MAX);
		return 2;
	}
	bool right = run(&what);
	kernel_release();
	return right ? 0 : 1;
}
