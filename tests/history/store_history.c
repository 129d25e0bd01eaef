/* SPDX-License-Identifier: MIT */
/* clang-format off */
/*
 * store_history record [OPTION]... DIRECTORY URL...
 *       Many processes use one store, each through one of the URLs (the same store through several
 *       mounts), and log into DIRECTORY what they asked and what they were answered.
 * store_history clock
 *       Print the instant that a log would have now, in microseconds: for measuring "clock" lines.
 *
 * Options of record:
 *   -p N        processes (8), on the URLs in turn
 *   -n N        operations of each process (500)
 *   -s N        seed (1)
 *   -t MS       patience of each operation (120000: a busy machine is no error)
 *   --kill N    kill a process with SIGKILL N times, and start it again each time: at any moment,
 *               and every second time between a transaction and its line in the log
 *   --stop N    stop a process for 1.5 s N times, of a store with a token the one that has it
 *   --look      read the files of the store through each URL all the time, without its lock
 *   --first N   the number of the first process (0). Recordings on several machines need other
 *               numbers each: more than processes + 2 * URLs apart
 *   --join      another recording is under way in this store
 *
 * No other program may write to the store. history/check says whether a key store may answer what is in the logs.
 */
/* clang-format on */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "record.h"

static int usage(void)
{
	fprintf(stderr,
		"usage: store_history record [-p N] [-n N] [-s N] [-t MS] [--kill N] [--stop N] "
		"[--look] [--first N] [--join] DIRECTORY URL...\n"
		"       store_history clock\n");
	return 2;
}

static int take_number(const char *text, int least, int most)
{
	uint64_t value;
	struct error err;
	if (parse_unsigned(text, (uint64_t)least, (uint64_t)most, &value, "store_history", &err) !=
		STATUS_OK) {
		fprintf(stderr, "%s\n", err.text);
		exit(2);
	}
	return (int)value;
}

static int run_record(int argc, char **argv)
{
	static const struct option options[] = {{"kill", required_argument, NULL, 'K'},
		{"first", required_argument, NULL, 'F'}, {"join", no_argument, NULL, 'J'},
		{"stop", required_argument, NULL, 'S'}, {"look", no_argument, NULL, 'L'}, {0}};
	struct recording recording = {
		.processes = 8, .operations = 500, .patience = 120000, .seed = 1};
	int option;
	while ((option = getopt_long(argc, argv, "p:n:s:t:", options, NULL)) != -1) {
		switch (option) {
		case 'p': recording.processes = take_number(optarg, 1, 1000); break;
		case 'n': recording.operations = take_number(optarg, 1, 10000000); break;
		case 's': recording.seed = (uint64_t)take_number(optarg, 0, 1000000000); break;
		case 't': recording.patience = take_number(optarg, 1, 1000000); break;
		case 'K': recording.kills = take_number(optarg, 0, 10000); break;
		case 'F': recording.first = take_number(optarg, 0, 60000); break;
		case 'J': recording.joins = true; break;
		case 'S': recording.stops = take_number(optarg, 0, 10000); break;
		case 'L': recording.looks = true; break;
		default: return usage();
		}
	}
	if (argc - optind < 2)
		return usage();
	recording.directory = argv[optind];
	recording.urls = argv + optind + 1;
	recording.url_count = argc - optind - 1;
	return record(&recording);
}

int main(int argc, char **argv)
{
	const char *command = argc > 1 ? argv[1] : "";
	if (!strcmp(command, "record"))
		return run_record(argc - 1, argv + 1);
	if (strcmp(command, "clock") != 0 || argc != 2)
		return usage();
	printf("%" PRId64 "\n", record_instant() / 1000);
	return 0;
}
