/* SPDX-License-Identifier: MIT */
#include "base/args.h"

#include <argtable2.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/args_check.h"
#include "base/message.h"
#include "base/parse.h"
#include "base/xalloc.h"

static bool show_help, show_version, quiet;
static int verbose;

static const struct args_option everywhere[] = {
	{"quiet", NULL, "print errors and warnings only", ARGS_FLAG, .target = &quiet,
		.letter = 'q'},
	{"verbose", NULL, "also print reasons and details", ARGS_COUNT, .target = &verbose,
		.letter = 'v'},
	{"help", NULL, "show this and exit", ARGS_FLAG, .target = &show_help, .letter = 'h'},
	{"version", NULL, "show the version and exit", ARGS_FLAG, .target = &show_version,
		.letter = 'V'},
	{0},
};

/* All options of a command, in the order of --help, and argtable2's entries for them. */
struct table {
	const struct args_option *options[96];
	void *entries[96 + 2]; /* the options, then words, then end */
	char letters[96][2];
	size_t count;
	struct arg_str *words;
	struct arg_end *end;
};

static const struct table *running; /* of the running command; NULL: none runs */

static void table_add(struct table *table, const struct args_option *options)
{
	for (; options && options->name; options++)
		table->options[table->count++] = options;
}

static void table_init(struct table *table, const struct args_command *command)
{
	table_add(table, command->options);
	table_add(table, command->common);
	table_add(table, everywhere);
	for (size_t i = 0; i < table->count; i++) {
		const struct args_option *option = table->options[i];
		table->letters[i][0] = option->letter;
		const char *letter = option->letter ? table->letters[i] : NULL;
		table->entries[i] =
			args_is_flag(option)
				? (void *)arg_litn(letter, option->name, 0, 64, option->help)
				: (void *)arg_strn(
					  letter, option->name, option->value, 0, 64, option->help);
		if (option->kind == ARGS_OPTIONAL)
			((struct arg_str *)table->entries[i])->hdr.flag |= ARG_HASOPTVALUE;
	}
	int most = command->max_words > 4096 ? 4096 : (int)command->max_words;
	table->words = arg_strn(NULL, NULL, "WORD", 0, most + 1, NULL);
	table->end = arg_end(8);
	table->entries[table->count] = table->words;
	table->entries[table->count + 1] = table->end;
	if (arg_nullcheck(table->entries))
		xalloc_failed();
}

static void table_release(struct table *table)
{
	arg_freetable(table->entries, table->count + 2);
}

static void print_options(const char *title, const struct args_option *options)
{
	if (!options || !options->name)
		return;
	printf("%s:\n", title);
	for (; options->name; options++) {
		char left[64];
		char letter[5] = "    ";
		if (options->letter)
			snprintf(letter, sizeof(letter), "-%c, ", options->letter);
		snprintf(left, sizeof(left), "%s--%s%s%s", letter, options->name,
			options->value ? " " : "", options->value ? options->value : "");
		printf("  %-26s %s", left, options->help);
		if (options->environment)
			printf(" [$%s]", options->environment);
		printf("\n");
	}
}

static void print_help(const struct args_program *program, const struct args_command *command)
{
	bool several = program->commands[0].name != NULL;
	if (several && !command) {
		printf("usage: %s COMMAND ...\n%s\n\ncommands:\n", program->name, program->summary);
		for (command = program->commands; command->name; command++)
			printf("  %-8s %s\n", command->name, command->summary);
		printf("\n%s COMMAND --help shows the options of a command.\n", program->name);
	} else {
		printf("usage: %s%s%s %s\n%s\n", program->name, several ? " " : "",
			several ? command->name : "", command->synopsis,
			command->summary ? command->summary : program->summary);
		print_options("options", command->options);
		print_options("common", command->common);
		print_options("always", everywhere);
	}
	if (program->epilogue)
		printf("\n%s", program->epilogue);
}

/* Stands for an empty value, which argtable2 would treat as missing. */
static char empty_word[] = "''";

static enum status set_target(
	const struct args_option *option, const char *text, const char *what, struct error *err)
{
	enum status status = STATUS_OK;
	switch (option->kind) {
	case ARGS_FLAG: *(bool *)option->target = strcmp(text, "0") != 0; break;
	case ARGS_COUNT: ++*(int *)option->target; break;
	case ARGS_NAME:
		status = parse_name(text, what, err);
		if (status != STATUS_OK)
			return status;
		/* fall through */
	case ARGS_TEXT: *(const char **)option->target = text; break;
	case ARGS_ANY_TEXT: *(const char **)option->target = text == empty_word ? "" : text; break;
	case ARGS_LIST: {
		struct args_list *list = option->target;
		if (list->count == sizeof(list->items) / sizeof(list->items[0]))
			return error_set(err, STATUS_USAGE, "%s: given too many times", what);
		list->items[list->count++] = text;
		break;
	}
	case ARGS_OPTIONAL:
		if (!*text)
			break;
		/* fall through */
	case ARGS_UNSIGNED:
		status = parse_unsigned(text, option->min, option->max, option->target, what, err);
		break;
	case ARGS_DURATION: status = parse_duration(text, option->target, what, err); break;
	}
	if (status == STATUS_OK && option->given)
		*option->given = true;
	return status;
}

static int times_typed(const struct table *table, size_t i)
{
	return args_is_flag(table->options[i]) ? ((struct arg_lit *)table->entries[i])->count
					       : ((struct arg_str *)table->entries[i])->count;
}

bool args_is_typed(const char *name)
{
	for (size_t i = 0; running && i < running->count; i++)
		if (!strcmp(running->options[i]->name, name))
			return times_typed(running, i) > 0;
	return false;
}

static enum status set_targets(struct table *table, struct error *err)
{
	enum status status = STATUS_OK;
	for (size_t i = 0; i < table->count && status == STATUS_OK; i++) {
		const struct args_option *option = table->options[i];
		bool flag = args_is_flag(option);
		int count = times_typed(table, i);
		char what[80];
		snprintf(what, sizeof(what), "--%s", option->name);
		const char *variable = option->environment ? getenv(option->environment) : NULL;
		if (count == 0 && variable && *variable) {
			snprintf(what, sizeof(what), "$%s", option->environment);
			status = set_target(option, variable, what, err);
		}
		for (int k = 0; k < count && status == STATUS_OK; k++)
			status = set_target(option,
				flag ? "1" : ((struct arg_str *)table->entries[i])->sval[k], what,
				err);
	}
	return status;
}

static int refuse(
	const struct args_program *program, const struct args_command *command, const char *why)
{
	bool several = command && command->name;
	message_error("%s; see %s%s%s --help", why, program->name, several ? " " : "",
		several ? command->name : "");
	return STATUS_USAGE;
}

/*
 * Copy argv to joined, with each value in the form that argtable2 accepts: an optional number only
 * after "=", an empty value as empty_word. joined has room for twice as many words as argv.
 */
static void join_values(const struct table *table, int *argc, char **argv, char *joined[])
{
	int count = 0, words = *argc;
	bool first_part = true;
	for (int i = 0; i < words; i++) {
		char *word = argv[i], *next = i + 1 < words ? argv[i + 1] : NULL;
		bool takes_next = false;
		joined[count++] = word;
		first_part &= strcmp(word, "--") != 0;
		if (i == 0 || !first_part || word[0] != '-' || !word[1] ||
			args_check_option(table->options, table->count, word, next, &takes_next,
				NULL) != STATUS_OK)
			continue;
		i += takes_next;
		char **last = &joined[count - 1], *value = strchr(word, '=');
		if (takes_next && *next) {
			*last = xprintf("%s%s%s", word, word[1] == '-' ? "=" : "", next);
		} else if (takes_next) {
			joined[count++] = empty_word;
		} else if (word[1] == '-' && value && !value[1]) {
			*last = xstrndup(word, (size_t)(value - word));
			joined[count++] = empty_word;
		}
	}
	*argc = count;
}

/* Free joined, and those of its words that join_values allocated. */
static void free_joined(char **joined, int count, int argc, char **argv)
{
	for (int i = 0; i < count; i++) {
		bool own = joined[i] != empty_word;
		for (int k = 0; k < argc; k++)
			own &= joined[i] != argv[k];
		if (own)
			free(joined[i]);
	}
	free(joined);
}

static int run_command(const struct args_program *program, const struct args_command *command,
	int argc, char **argv)
{
	struct table table = {0};
	struct args_rest rest = {0};
	struct error err = {0};
	int code;

	/* argtable2 reorders its arguments: do not pass it the words after "--". */
	int own = 1;
	while (own < argc && strcmp(argv[own], "--"))
		own++;
	if (own < argc && command->takes_command)
		rest.command = argv + own + 1;
	int seen = command->takes_command ? own : argc;

	char **joined = xcalloc(2 * (size_t)seen + 1, sizeof(*joined));
	table_init(&table, command);
	const struct args_line line = {.argc = seen, .argv = argv, .rest = rest.command};
	enum status wrong = args_check(table.options, table.count, command, &line, &err);
	join_values(&table, &seen, argv, joined);
	bool parsed = arg_parse(seen, joined, table.entries) == 0;
	/* --help and --version work even if the rest of the command line is wrong. */
	for (size_t i = 0; i < table.count; i++) {
		const struct args_option *option = table.options[i];
		if (option->target == &show_help || option->target == &show_version)
			*(bool *)option->target = ((struct arg_lit *)table.entries[i])->count > 0;
	}
	if (show_help || (argc == 2 && !strcmp(argv[1], "help") && !command->name)) {
		print_help(program, command);
		code = message_close(STATUS_OK);
		goto out;
	}
	if (show_version) {
		printf("%s %s\n", program->name, PREEMPT_VERSION);
		code = message_close(STATUS_OK);
		goto out;
	}
	if (wrong != STATUS_OK) {
		code = refuse(program, command, err.text);
		goto out;
	}
	if (!parsed) {
		code = refuse(program, command, "an option was given too many times");
		goto out;
	}
	if (set_targets(&table, &err) != STATUS_OK) {
		code = refuse(program, command, err.text);
		goto out;
	}
	message_level(quiet ? MESSAGE_QUIET : verbose ? MESSAGE_VERBOSE : MESSAGE_NORMAL);
	rest.words = (char **)table.words->sval;
	rest.count = (size_t)table.words->count;
	running = &table;
	code = message_close(command->run(&rest));
	running = NULL;
out:
	table_release(&table);
	free_joined(joined, seen, argc, argv);
	return code;
}

/*
 * If stdin, stdout or stderr is closed, the next file opened would get its number, and messages
 * would be written into that file. Open /dev/null in its place, read-only, so that writing an
 * answer there still fails.
 */
static void occupy_standard_descriptors(void)
{
	int descriptor;
	do
		descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC);
	while (descriptor >= 0 && descriptor <= STDERR_FILENO);
	if (descriptor >= 0)
		close(descriptor);
}

static void do_nothing(int number)
{
	(void)number;
}

/*
 * Catch SIGXFSZ, so that exceeding ulimit -f makes the write fail instead of killing us with a core
 * dump. Do not ignore it: the commands we start would inherit that.
 */
static void survive_file_size(void)
{
	struct sigaction action = {.sa_handler = do_nothing, .sa_flags = SA_RESTART}, old;
	if (sigaction(SIGXFSZ, NULL, &old) == 0 && old.sa_handler == SIG_DFL)
		(void)sigaction(SIGXFSZ, &action, NULL);
}

static bool is_one_of(const char *word, const char *name, const char *letter)
{
	return !strcmp(word, name) || !strcmp(word, letter);
}

/*
 * Return the index of the command in argv; argc if there is none. Only options that several
 * commands share may come before it: if another option does, return the index of that option.
 */
static int find_command(const struct args_program *program, int argc, char **argv)
{
	struct table table = {0};
	table_add(&table, everywhere);
	for (const struct args_command *c = program->commands; c->name; c++) {
		bool added = false;
		for (const struct args_command *before = program->commands; before < c; before++)
			added |= before->common == c->common;
		if (!added)
			table_add(&table, c->common);
	}
	int at = 1;
	while (at < argc && argv[at][0] == '-' && argv[at][1]) {
		bool takes_next = false;
		const char *next = at + 1 < argc ? argv[at + 1] : NULL;
		if (args_check_option(table.options, table.count, argv[at], next, &takes_next,
			    NULL) != STATUS_OK)
			return at;
		at += 1 + takes_next;
	}
	return at;
}

/* Answer a command line without a command: --version or --help; refuse all others. */
static int answer_without_command(const struct args_program *program, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		bool version = is_one_of(argv[i], "--version", "-V");
		if (version)
			printf("%s %s\n", program->name, PREEMPT_VERSION);
		else if (is_one_of(argv[i], "--help", "-h"))
			print_help(program, NULL);
		else
			continue;
		return message_close(STATUS_OK);
	}
	return refuse(program, NULL, "a command is missing");
}

int args_main(const struct args_program *program, int argc, char **argv)
{
	occupy_standard_descriptors();
	/* If SIGCHLD is ignored, the kernel reaps our children, and their exit codes are lost. */
	(void)signal(SIGCHLD, SIG_DFL);
	survive_file_size();
	message_program(program->name);
	const struct args_command *command = program->commands;
	if (!command->name)
		return run_command(program, command, argc, argv);
	int at = find_command(program, argc, argv);
	if (at == argc)
		return answer_without_command(program, argc, argv);
	char *word = argv[at], *about = at + 1 < argc ? argv[at + 1] : NULL;
	/* Move the command before the options: run_command expects it in its argv[0]. */
	memmove(argv + 2, argv + 1, (size_t)(at - 1) * sizeof(*argv));
	argv[1] = word;
	bool is_help = !strcmp(word, "help");
	if (is_help && !about) {
		print_help(program, NULL);
		return message_close(STATUS_OK);
	}
	word = is_help ? about : word;
	const char *names[64];
	size_t count = 0;
	for (; command->name; command++) {
		if (!strcmp(word, command->name) && is_help) {
			print_help(program, command);
			return message_close(STATUS_OK);
		}
		if (!strcmp(word, command->name))
			return run_command(program, command, argc - 1, argv + 1);
		names[count++] = command->name;
	}
	char why[128];
	const char *meant = parse_nearest(names, count, word);
	if (*word == '-')
		snprintf(why, sizeof(why), "the command comes first, then %.40s", word);
	else
		snprintf(why, sizeof(why), "there is no command \"%.40s\"%s%s%s", word,
			meant ? "; did you mean " : "", meant ? meant : "", meant ? "?" : "");
	return refuse(program, NULL, why);
}
