/* SPDX-License-Identifier: MIT */
/*
 * Command line options. Each program has one table: argtable2 parses with it, --help is printed
 * from it, and the tests check man pages and completions against it. Values are parsed by
 * base/parse.h, not by argtable2, whose numbers accept suffixes and hexadecimal. Names of options
 * cannot be abbreviated.
 *
 * A program with commands (preempt-store get ...) has one struct args_command for each. For a wrong
 * command line, args_main prints one message that says how to correct it, and returns 2.
 */
#ifndef BASE_ARGS_H
#define BASE_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The kinds of options, with the types of their targets. */
enum args_kind {
	ARGS_FLAG,     /* bool */
	ARGS_COUNT,    /* int: the number of times it was given */
	ARGS_TEXT,     /* const char *, not empty */
	ARGS_ANY_TEXT, /* const char *, may be empty */
	ARGS_NAME,     /* const char *, a name for parse_name */
	ARGS_LIST,     /* struct args_list: may be given several times */
	ARGS_UNSIGNED, /* uint64_t, min to max */
	ARGS_OPTIONAL, /* like ARGS_UNSIGNED, but without a number only *given is set */
	ARGS_DURATION, /* int64_t, milliseconds */
};

struct args_list {
	const char *items[64];
	size_t count;
};

/* In a table, write name, value, help and kind by position, and other members by name. */
struct args_option {
	const char *name;  /* long name; NULL ends a table */
	const char *value; /* what --help calls the value; NULL for flags */
	const char *help;  /* one line, for --help */
	enum args_kind kind;
	void *target;		 /* holds the default, and keeps it when the option is not given */
	const char *environment; /* variable that sets it if the option is not given; NULL: none */
	uint64_t min, max;	 /* of ARGS_UNSIGNED, ARGS_OPTIONAL */
	bool *given; /* becomes true if the option or its variable is given; may be NULL */
	char letter; /* the short option; 0: none */
};

/* The command line without its options. All pointers point into argv. */
struct args_rest {
	char **words; /* positional arguments */
	size_t count;
	char **command; /* the words after "--", NULL-terminated; NULL: there is no "--" */
};

struct args_command {
	const char *name;		   /* NULL for a program without commands */
	const char *synopsis;		   /* what follows the name: "KEY VALUE [--if-absent]" */
	const char *summary;		   /* one line */
	const struct args_option *options; /* options of this command; NULL: none */
	const struct args_option *common;  /* options that several commands share; NULL: none */
	size_t min_words, max_words;
	bool takes_command; /* "-- COMMAND [ARG...]" may follow; required when command_required */
	bool command_required;
	int (*run)(const struct args_rest *rest); /* returns the exit code */
};

struct args_program {
	const char *name;
	const char *summary;
	const struct args_command *commands; /* ends with a zeroed element */
	const char *epilogue;		     /* a few lines of examples under --help; may be NULL */
};

/*
 * All of main(): parse, set the targets, run, close stdout, return the exit code. Handles --help,
 * --version, -q and -v (base/message.h) for every program.
 */
int args_main(const struct args_program *program, int argc, char **argv);

/*
 * Return true if the option with this long name is on the command line; its variable does not
 * count. Valid while the command runs.
 */
bool args_is_typed(const char *name);

#endif
