/* SPDX-License-Identifier: MIT */
/* clang-format off */
/*
 * store_history record [OPTION]... DIRECTORY URL...
 *       Many processes use one store, each through one of the URLs (the same store through several
 *       mounts), and log into DIRECTORY what they asked and what they were answered.
 * store_history check [--answered N] [--shared] LOG|DIRECTORY...
 *       Is that what a key store may answer? With --answered, a history in which fewer operations
 *       were answered (neither refused nor of unknown outcome) is not accepted either: one in which
 *       all were refused shows nothing.
 * store_history clock
 *       Print the instant that a log would have now, in microseconds: for measuring "clock" lines.
 *
 * Options of record:
 *   -p N        processes (8), on the URLs in turn
 *   -n N        operations of each process (500)
 *   -k N        keys (8), 2 to 64: few, so that the processes meet
 *   -s N        seed (1)
 *   -t MS       patience of each operation (120000: a busy machine is no error)
 *   --kill N    kill a process with SIGKILL N times, and start it again each time: at any moment,
 *               and every second time between a transaction and its line in the log
 *   --stop N    stop a process for a while N times, of a store with a token the one that has it;
 *               --for MS (1500)
 *   --takeover MS  with a token: after how long a silent process is taken over (5000)
 *   --look      read the files of the store through each URL all the time, without its lock
 *   --first N   the number of the first process (0). Recordings on several machines need other
 *               numbers each: more than processes + 2 * URLs apart
 *   --join      another recording is under way in this store
 *
 * No other program may write to the store. The store in memory is "memory:NAME?shared", without
 * kills.
 *
 * Options of check:
 *   --answered N  at least so many operations must have been answered
 *   --shared      the store's server has other users, or makes revisions itself
 *
 * Exit codes of check: 0: yes; 1: no, and the operations concerned are printed; 2: these are no
 * logs; 3: it cannot be decided; 4: yes, and fewer operations than --answered were answered.
 */
/* clang-format on */
#include <dirent.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/parse.h"
#include "check.h"
#include "record.h"
#include "store/lock/token.h"
#include "support/backends/memory.h"

#define STEPS 5000000 /* of the search: about half a minute */

static int usage(void)
{
	fprintf(stderr,
		"usage: store_history record [-p N] [-n N] [-k N] [-s N] [-t MS] [--kill N] [--stop N] "
		"[--for MS] [--takeover MS] [--look] [--first N] [--join] DIRECTORY URL...\n"
		"       store_history check [--answered N] [--shared] LOG|DIRECTORY...\n"
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
		{"takeover", required_argument, NULL, 'T'}, {"stop", required_argument, NULL, 'S'},
		{"for", required_argument, NULL, 'R'}, {"look", no_argument, NULL, 'L'}, {0}};
	struct recording recording = {.processes = 8,
		.operations = 500,
		.keys = 8,
		.patience = 120000,
		.seed = 1,
		.stop_for = 1500};
	int option;
	while ((option = getopt_long(argc, argv, "p:n:k:s:t:", options, NULL)) != -1) {
		switch (option) {
		case 'p': recording.processes = take_number(optarg, 1, 1000); break;
		case 'n': recording.operations = take_number(optarg, 1, 10000000); break;
		case 'k': recording.keys = take_number(optarg, 2, HISTORY_KEYS); break;
		case 's': recording.seed = (uint64_t)take_number(optarg, 0, 1000000000); break;
		case 't': recording.patience = take_number(optarg, 1, 1000000); break;
		case 'K': recording.kills = take_number(optarg, 0, 10000); break;
		case 'F': recording.first = take_number(optarg, 0, 60000); break;
		case 'J': recording.joins = true; break;
		case 'S': recording.stops = take_number(optarg, 0, 10000); break;
		case 'R': recording.stop_for = take_number(optarg, 1, 1000000); break;
		case 'T': token_patience = take_number(optarg, 1, 1000000); break;
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

static enum status read_directory(struct history *history, const char *path, struct error *err)
{
	struct dirent **found = NULL;
	enum status status = STATUS_OK;
	int count = scandir(path, &found, NULL, alphasort);
	for (int i = 0; i < count; i++) {
		char log[4096];
		const char *dot = strrchr(found[i]->d_name, '.');
		snprintf(log, sizeof(log), "%s/%s", path, found[i]->d_name);
		if (status == STATUS_OK && dot && !strcmp(dot, ".log"))
			status = history_read(history, log, err);
		free(found[i]);
	}
	free(found);
	return status;
}

static enum status read_all(struct history *history, char **paths, struct error *err)
{
	enum status status = STATUS_OK;
	for (; *paths && status == STATUS_OK; paths++) {
		struct stat st;
		bool is_directory = stat(*paths, &st) == 0 && S_ISDIR(st.st_mode);
		status = is_directory ? read_directory(history, *paths, err)
				      : history_read(history, *paths, err);
	}
	if (status == STATUS_OK && history->count == 0)
		status = error_set(err, STATUS_USAGE, "there is no operation in these logs");
	return status == STATUS_OK ? history_finish(history, err) : status;
}

static size_t count_answered(const struct history *history)
{
	size_t count = 0;
	for (size_t i = 0; i < history->count; i++)
		count += history->operations[i].outcome == ANSWERED ||
			 history->operations[i].outcome == QUIET;
	return count;
}

/* least: so many operations must have been answered. */
static int check(char **paths, size_t least, bool shared)
{
	static const char *const words[] = {"linearizable", "VIOLATED", "undecided"};
	static const int codes[] = {0, 1, 3};
	struct history history = {0};
	struct verdict verdict;
	struct error err = {0};
	int64_t began = record_instant();
	if (read_all(&history, paths, &err) != STATUS_OK) {
		fprintf(stderr, "store_history: %s\n", err.text);
		history_release(&history);
		return 2;
	}
	history.shared = shared;
	check_history(&history, STEPS, &verdict);
	size_t answered = count_answered(&history);
	printf("%soperations %zu answered %zu revisions %zu unknown %zu took_effect %zu "
	       "steps %" PRId64 " seconds %.2f: %s\n",
		text_string(&verdict.words), history.count, answered, verdict.revisions,
		verdict.unknown, verdict.took_effect, verdict.steps,
		(double)(record_instant() - began) / 1e9, words[verdict.kind]);
	int code = codes[verdict.kind];
	if (code == 0 && answered < least) {
		printf("Fewer than %zu operations were answered.\n", least);
		code = 4;
	}
	verdict_release(&verdict);
	history_release(&history);
	return code;
}

static int run_check(int argc, char **argv)
{
	static const struct option options[] = {{"answered", required_argument, NULL, 'A'},
		{"shared", no_argument, NULL, 'S'}, {0}};
	size_t least = 0;
	bool shared = false;
	int option;
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'A': least = (size_t)take_number(optarg, 0, 1000000000); break;
		case 'S': shared = true; break;
		default: return usage();
		}
	}
	return optind < argc ? check(argv + optind, least, shared) : usage();
}

int main(int argc, char **argv)
{
	const char *command = argc > 1 ? argv[1] : "";
	store_register(&store_memory);
	if (!strcmp(command, "record"))
		return run_record(argc - 1, argv + 1);
	if (!strcmp(command, "check"))
		return run_check(argc - 1, argv + 1);
	if (strcmp(command, "clock") != 0 || argc != 2)
		return usage();
	printf("%" PRId64 "\n", record_instant() / 1000);
	return 0;
}
