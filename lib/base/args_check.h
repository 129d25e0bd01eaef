/* SPDX-License-Identifier: MIT */
/*
 * Checks a command line; pure. Refuses unknown options, missing or superfluous values, a wrong
 * number of words and a missing command. The values themselves are checked by base/parse.h.
 */
#ifndef BASE_ARGS_CHECK_H
#define BASE_ARGS_CHECK_H

#include "base/args.h"
#include "base/error.h"

/* Whether the option takes no value. */
bool args_is_flag(const struct args_option *option);

/*
 * Check one option of the command line, "--NAME", "--NAME=VALUE" or "-xyz". next: the following
 * word; NULL: none. *takes_next: true if next is its value. Abbreviated names are refused: their
 * meaning would change when another option with the same beginning is added.
 */
enum status args_check_option(const struct args_option *const *options, size_t count,
	const char *word, const char *next, bool *takes_next, struct error *err);

struct args_line {
	int argc; /* argv[1] to argv[argc - 1] are checked; `rest` comes after them */
	char **argv;
	char **rest; /* the command after "--"; NULL: none */
};
/* Returns STATUS_OK, or STATUS_USAGE with an error that says how to correct the command line. */
enum status args_check(const struct args_option *const *options, size_t count,
	const struct args_command *command, const struct args_line *line, struct error *err);

#endif
