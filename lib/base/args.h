/* SPDX-License-Identifier: MIT */
/*
 * Options: one table per program, from which argtable2 parses, --help is written, and the man page
 * and completions are checked. Values go through base/parse.h, never through argtable2's own
 * numbers (they accept suffixes and hexadecimal).
 *
 * A program with commands (preempt-store get ...) has one struct args_command for each. A command
 * line that is refused gets one message that names the cure, and exit code 2.
 */
#ifndef BASE_ARGS_H
#define BASE_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum args_kind {
	ARGS_FLAG,     /* bool */
	ARGS_COUNT,    /* int: how often given */
	ARGS_TEXT,     /* const char *, not empty */
	ARGS_ANY_TEXT, /* const char *; '' is a value, too */
	ARGS_NAME,     /* const char *, by parse_name */
	ARGS_LIST,     /* struct args_list: may be given several times */
	ARGS_UNSIGNED, /* uint64_t, min to max */
	ARGS_OPTIONAL, /* the same, and the number may be left out: then only given is set */
	ARGS_DURATION, /* int64_t, milliseconds */
};

struct args_list {
	const char *items[64];
	size_t count;
};

/* Write the members from target on by name, and leave out those that are zero. */
struct args_option {
	const char *name;  /* long name; NULL ends a table */
	const char *value; /* what --help calls the value; NULL for flags */
	const char *help;  /* one line, for --help and the man page */
	enum args_kind kind;
	void *target;		 /* keeps its value, the default, when the option is not given */
	const char *environment; /* a variable that gives the default; NULL: none. Empty is unset */
	uint64_t min, max;	 /* of ARGS_UNSIGNED, ARGS_OPTIONAL */
	bool *given;		 /* set when the option or its variable was given; may be NULL */
	char letter;		 /* 0: none */
};

/* What stands on the command line beside the options. All point into argv. */
struct args_rest {
	char **words; /* positional arguments */
	size_t count;
	char **command; /* what follows "--", NULL-terminated; NULL where there is none */
};

struct args_command {
	const char *name;		   /* NULL for a program without commands */
	const char *synopsis;		   /* what follows the name: "KEY VALUE [--if-absent]" */
	const char *summary;		   /* one line */
	const struct args_option *options; /* its own; NULL: none */
	const struct args_option *common;  /* those that several share; NULL: none */
	size_t min_words, max_words;
	bool takes_command; /* "-- COMMAND [ARG...]" may follow; required when command_required */
	bool command_required;
	int (*run)(const struct args_rest *rest); /* returns the exit code */
};

struct args_program {
	const char *name;
	const char *summary;
	const struct args_command *commands; /* ended by a zeroed one */
	const char *epilogue;		     /* a few lines of examples under --help; may be NULL */
};

/*
 * The whole main: parse, set the targets, run, close stdout, return the exit code. Handles --help,
 * --version, -q and -v (base/message.h) for every program.
 */
int args_main(const struct args_program *program, int argc, char **argv);

/*
 * While the command runs: whether this long option stands on the command line, and not only in its
 * variable.
 */
bool args_is_typed(const char *name);

#endif
