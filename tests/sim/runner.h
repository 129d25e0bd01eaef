/* SPDX-License-Identifier: MIT */
/*
 * The command line that all simulators have:
 *
 *	[--schedules N] [--first SEED] [-j JOBS] [--show N]	random schedules, of which at most N
 *								failures per job are shown
 *	--seed SEED						one of them, with a trace
 *	--shrink SEED						a smaller one that fails in the
 *								same way
 *	--scenario NAME|all [--trace]				the named ones
 *
 * Exit code 0: all invariants held; 1: one did not; 2: usage.
 */
#ifndef SIM_RUNNER_H
#define SIM_RUNNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Each simulator has its own. */
struct world;
struct schedule;
struct statistics; /* uint64_t throughout: what all schedules have come to is added up */

struct scenario {
	const char *name; /* NULL: the end of the list */
	const char *shows;
	void (*build)(struct schedule *s); /* s is zeroed */
	/* What must have come out, beyond the invariants; NULL or what is wrong. May be NULL. */
	const char *(*expect)(struct world *w);
};

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
	/* Run one to its end; whether all invariants held, else kernel.violated. */
	bool (*run)(struct world *w, const struct schedule *s, struct statistics *statistics,
		FILE *trace);
	void (*shrink)(struct world *w, struct schedule *s); /* NULL: it cannot */
	void (*report)(const struct statistics *statistics);
	/* What must have happened in so many schedules, and has not; NULL: all has. */
	const char *(*unseen)(const struct statistics *statistics, uint64_t schedules);
};

int runner_main(const struct simulator *simulator, int argc, char **argv);

#endif
