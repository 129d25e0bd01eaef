/* SPDX-License-Identifier: MIT */
/*
 * The command line that all simulators have:
 *
 *	[--schedules N] [--first SEED] [-j JOBS] [--show N]	random schedules; each chunk of
 *								250 shows N failures at most
 *	--seed SEED						the random schedule of SEED, traced
 *	--shrink SEED						print a smaller schedule that fails
 *								in the same way
 *	--scenario NAME|all [--trace]				the named schedules
 *	--broken RULE|all					whether the breach of a rule
 *								(broken.h) is noticed
 *
 * Exit code 0: all invariants held; 1: an invariant did not, or something never happened; 2: usage.
 */
#ifndef SIM_RUNNER_H
#define SIM_RUNNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Each simulator defines these. */
struct world;
struct schedule;
struct statistics; /* uint64_t members only: they are added up over all schedules */

struct scenario {
	const char *name; /* NULL: the end of the list */
	const char *shows;
	void (*build)(struct schedule *s); /* s is zeroed */
	/* Check more than the invariants. Returns what is wrong, or NULL. May be NULL. */
	const char *(*expect)(struct world *w);
};

extern const struct scenario *runner_scenario; /* the one that runs, or has run last */

struct simulator {
	const char *name;
	struct world *world;
	struct schedule *schedule;
	size_t schedule_size;
	struct statistics *statistics;
	size_t statistics_size;
	const struct scenario *scenarios;
	void (*draw)(struct schedule *s, uint64_t seed);
	void (*print)(const struct schedule *s, FILE *out);
	/* Run a schedule to its end. False: kernel.violated does not hold. */
	bool (*run)(struct world *w, const struct schedule *s, struct statistics *statistics,
		FILE *trace);
	void (*shrink)(struct world *w, struct schedule *s); /* NULL: it cannot shrink */
	void (*report)(const struct statistics *statistics);
	/* Returns what should have happened in that many schedules, but has not; NULL: nothing. */
	const char *(*unseen)(const struct statistics *statistics, uint64_t schedules);
};

int runner_main(const struct simulator *simulator, int argc, char **argv);

#endif
