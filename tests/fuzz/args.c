/* SPDX-License-Identifier: MIT */
/*
 * A command line: an input has its words, each ended by a newline, without the program's name. A
 * program with one command and one with several, with options of every kind, read it.
 */
#include "base/args.h"

#include <fcntl.h>
#include <sanitizer/common_interface_defs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/parse.h"
#include "support/fuzz.h"

static bool flag, given;
static int times;
static const char *text, *any, *name;
static struct args_list list;
static uint64_t number, optional;
static int64_t duration;

static const struct args_option options[] = {
	{"flag", NULL, "a flag", ARGS_FLAG, .target = &flag, .letter = 'f'},
	{"count", NULL, "how often", ARGS_COUNT, .target = &times, .letter = 'c'},
	{"text", "TEXT", "not empty", ARGS_TEXT, .target = &text, .letter = 't'},
	{"any", "TEXT", "any text", ARGS_ANY_TEXT, .target = &any},
	{"name", "NAME", "a name", ARGS_NAME, .target = &name},
	{"list", "ITEM", "several", ARGS_LIST, .target = &list, .letter = 'l'},
	{"number", "N", "5 to 500", ARGS_UNSIGNED, .target = &number, .min = 5, .max = 500,
		.letter = 'n'},
	{"optional", "[N]", "may go without", ARGS_OPTIONAL, .target = &optional, .min = 1,
		.max = 9, .given = &given},
	{"duration", "D", "a time", ARGS_DURATION, .target = &duration, .letter = 'd'},
	{.name = NULL},
};

static int run(const struct args_rest *rest)
{
	FUZZ_HOLDS(rest->count <= 3);
	for (size_t i = 0; i < rest->count; i++)
		FUZZ_HOLDS(rest->words[i]);
	for (char **word = rest->command; word && *word; word++)
		FUZZ_HOLDS(strlen(*word) < 1 << 20);
	FUZZ_HOLDS(!text || *text);
	FUZZ_HOLDS(!name || parse_name(name, "name", NULL) == STATUS_OK);
	FUZZ_HOLDS(number == 0 || (number >= 5 && number <= 500));
	FUZZ_HOLDS(optional <= 9 && duration >= 0 && list.count <= 64);
	for (size_t i = 0; i < list.count; i++)
		FUZZ_HOLDS(list.items[i]);
	return 7;
}

static const struct args_command one[] = {
	{NULL, "[OPTION...] [WORD...] -- COMMAND", "one", options, NULL, 0, 3, true, false, run},
	{0},
};
static const struct args_command several[] = {
	{"first", "WORD", "the first", options, NULL, 1, 3, false, false, run},
	{"second", "-- COMMAND", "the second", NULL, options, 0, 0, true, true, run},
	{0},
};
static const struct args_program programs[] = {
	{"one", "a program", one, NULL},
	{"several", "a program with commands", several, "an example"},
};

static bool is_open; /* stdout, which a program that answers closes */

static ssize_t drop(void *cookie, const char *bytes, size_t size)
{
	(void)cookie;
	(void)bytes;
	return (ssize_t)size;
}

static int note_close(void *cookie)
{
	(void)cookie;
	is_open = false;
	return 0;
}

static void make_stdout(void)
{
	if (!is_open)
		stdout = fopencookie(
			NULL, "w", (cookie_io_functions_t){.write = drop, .close = note_close});
	FUZZ_HOLDS(stdout);
	is_open = true;
}

static void try(const struct args_program *program, char *const *words, int count)
{
	char **argv = calloc((size_t)count + 2, sizeof(*argv));
	FUZZ_HOLDS(argv);
	argv[0] = (char *)program->name;
	for (int i = 0; i < count; i++)
		argv[i + 1] = words[i];
	flag = given = false;
	times = 0;
	text = any = name = NULL;
	list.count = 0;
	number = optional = 0;
	duration = 0;
	make_stdout();
	int code = args_main(program, count + 1, argv);
	FUZZ_HOLDS(code == 0 || code == 2 || code == 7);
	free(argv);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *words[64];
	int count = 0;
	while (count < 64 && (words[count] = fuzz_next(&data, &size, '\n')))
		count++;
	int standard_error = dup(STDERR_FILENO), nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
	FUZZ_HOLDS(dup2(nothing, STDERR_FILENO) == STDERR_FILENO);
	/* What a sanitizer finds is still to be seen. */
	__sanitizer_set_report_fd((void *)(intptr_t)standard_error);
	for (size_t i = 0; i < 2; i++)
		try(&programs[i], words, count);
	FUZZ_HOLDS(dup2(standard_error, STDERR_FILENO) == STDERR_FILENO);
	__sanitizer_set_report_fd((void *)(intptr_t)STDERR_FILENO);
	close(standard_error);
	close(nothing);
	while (count > 0)
		free(words[--count]);
	return 0;
}
