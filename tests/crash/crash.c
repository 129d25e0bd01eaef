/* SPDX-License-Identifier: MIT */
/*
 * crash FAULT... [--most N] [--seed S] [--url PARAMETERS] [ROW...] [FILE.rows...]
 *
 * A fault at every call: kill, error, once, space, late, gone, int, stop (faults.h). Without a
 * file: of the store's own transactions (acts.h) in this process, PARAMETERS added to the URL of
 * the store. With files: of the programs in their rows (commands.h). ROW: only these.
 *
 * At most N faults of each row are tried (default: all), drawn under the seed, which is printed.
 * Prints a line of TAP for each row.
 *
 * crash --inject ...: one command with one fault (inject.h).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "commands.h"
#include "inject.h"

static struct {
	unsigned faults;
	size_t most;
	uint64_t seed;
	const char *parameters;
	const char **names;
	size_t name_count;
	struct rows rows;
} asked;

static unsigned count;
static bool all_right = true;

static void parse(int argc, char **argv)
{
	asked.parameters = "";
	asked.seed = (uint64_t)clock_utc();
	asked.names = calloc((size_t)argc, sizeof(*asked.names));
	for (int i = 1; i < argc; i++) {
		const char *word = argv[i];
		size_t length = strlen(word);
		if (fault_named(word))
			asked.faults |= fault_named(word);
		else if (!strcmp(word, "--most") && i + 1 < argc)
			asked.most = strtoul(argv[++i], NULL, 10);
		else if (!strcmp(word, "--seed") && i + 1 < argc)
			asked.seed = strtoull(argv[++i], NULL, 10);
		else if (!strcmp(word, "--url") && i + 1 < argc)
			asked.parameters = argv[++i];
		else if (length > 5 && !strcmp(word + length - 5, ".rows"))
			rows_read(&asked.rows, word);
		else
			asked.names[asked.name_count++] = word;
	}
	asked.seed += !asked.seed;
}

/* Whether a row of this name is asked for; its name is crossed out. */
static bool is_wanted(const char *name, bool *used)
{
	for (size_t i = 0; i < asked.name_count; i++)
		if (!strcmp(asked.names[i], name))
			return used[i] = true;
	return asked.name_count == 0;
}

static void tell(const char *name, struct result result, int64_t began)
{
	printf("%sok %u - %s: %zu of %zu faults (%.1f s)\n", result.wrong ? "not " : "", ++count,
		name, result.made, result.possible, (double)(clock_now() - began) / 1000);
	fflush(stdout);
	all_right = all_right && !result.wrong;
}

static void run_commands(bool *used)
{
	commands_begin();
	for (size_t i = 0; i < asked.rows.count; i++) {
		const struct row *row = &asked.rows.list[i];
		int64_t began = clock_now();
		if ((row->faults & asked.faults) && is_wanted(row->name, used))
			tell(row->name, commands_run(row, asked.faults, asked.most, &asked.seed),
				began);
	}
	commands_end();
	rows_release(&asked.rows);
}

static void run_library(bool *used)
{
	library_begin(asked.parameters);
	for (size_t i = 0; i < act_count; i++) {
		int64_t began = clock_now();
		if (is_wanted(acts[i].name, used))
			tell(acts[i].name,
				library_run(&acts[i], asked.faults, asked.most, &asked.seed),
				began);
	}
	library_end();
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "--inject"))
		return inject_main(argc - 2, argv + 2);
	parse(argc, argv);
	if (!asked.faults) {
		fprintf(stderr, "usage: crash FAULT... [--most N] [--seed S] [--url PARAMETERS] "
				"[ROW...] [FILE.rows...]\n");
		return 2;
	}
	printf("# --seed %llu\n", (unsigned long long)asked.seed);
	bool *used = calloc(asked.name_count + 1, sizeof(*used));
	if (asked.rows.count)
		run_commands(used);
	else
		run_library(used);
	for (size_t i = 0; i < asked.name_count; i++)
		if (!used[i]) {
			printf("not ok %u - there is no row \"%s\"\n", ++count, asked.names[i]);
			all_right = false;
		}
	printf("1..%u\n", count);
	free(used);
	free(asked.names);
	return all_right ? 0 : 1;
}
