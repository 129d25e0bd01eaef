/* SPDX-License-Identifier: MIT */
/*
 * What is wrong with a command line, as a pure function: options that do not exist, values that are
 * missing or not wanted, too many words, no command. The values themselves are base/parse.h's.
 */
#ifndef BASE_ARGS_CHECK_H
#define BASE_ARGS_CHECK_H

#include "base/args.h"
#include "base/error.h"

/* Whether the option takes no value. */
bool args_is_flag(const struct args_option *option);

/*
 * Checks one option of the command line, "--NAME", "--NAME=VALUE" or "-xyz". next: the word behind
 * it, NULL: none. *takes_next: that is its value. Names are not abbreviated: a script that did so
 * would mean something else as soon as another option began with the same letters.
 */
enum status args_check_option(const struct args_option *const *options, size_t count,
	const char *word, const char *next, bool *takes_next, struct error *err);

struct args_line {
	int argc; /* argv[1] to argv[argc - 1], which end before a "--" that begins a command */
	char **argv;
	char **rest; /* the command behind "--"; NULL: none */
};
/* Returns STATUS_OK, or STATUS_USAGE with a sentence that names the cure. */
enum status args_check(const struct args_option *const *options, size_t count,
	const struct args_command *command, const struct args_line *line, struct error *err);

#endif
