/* SPDX-License-Identifier: MIT */
#include "base/args.h"

#include <argtable2.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static bool is_flag(const struct args_option *option)
{
	return option->kind == ARGS_FLAG || option->kind == ARGS_COUNT;
}

/* ---- The table of a command ---- */

#define OPTIONS 96

/* An option for argtable2, which calls take_option for each that it finds. */
struct entry {
	struct arg_hdr hdr;
	const struct args_option *option;
	struct table *table;
	char letter[2];
	char twin[64];
	int count; /* how many times it was given */
};

struct table {
	const struct args_option *options[OPTIONS]; /* in the order of --help */
	size_t count;
	struct entry entries[OPTIONS], twins[OPTIONS];
	struct arg_hdr words_entry;
	char **words; /* the words that are no options */
	size_t word_count;
	struct error wrong;		 /* the first value that is wrong */
	void *argtable[2 * OPTIONS + 2]; /* the words, flags, other options, twins, the end */
};

static const struct table *running; /* of the running command; NULL: none runs */

static void table_add(struct table *table, const struct args_option *options)
{
	for (; options && options->name; options++)
		table->options[table->count++] = options;
}

/* Ends a word that argtable2 would take for an option without a value. */
#define MASK "\1"

static char *unmasked(char *word)
{
	size_t length = strlen(word);
	if (length && word[length - 1] == *MASK)
		word[length - 1] = '\0';
	return word;
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

/* ---- Values ---- */

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
	case ARGS_TEXT:
	case ARGS_ANY_TEXT: *(const char **)option->target = text; break;
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

/* argtable2 has found an option, with this value or NULL. */
static int take_option(void *parent, const char *value)
{
	struct entry *entry = parent;
	struct error *wrong = &entry->table->wrong;
	char what[80];
	entry->count++;
	if (wrong->status != STATUS_OK)
		return 0;
	snprintf(what, sizeof(what), "--%s", entry->option->name);
	value = is_flag(entry->option) ? "1" : value ? unmasked((char *)value) : NULL;
	if (value && !*value && entry->option->kind != ARGS_ANY_TEXT)
		error_set(wrong, STATUS_USAGE, "%s: the value is empty", what);
	else
		set_target(entry->option, value ? value : "", what, wrong);
	return 0;
}

static int take_word(void *parent, const char *word)
{
	struct table *table = parent;
	table->words[table->word_count++] = unmasked((char *)word);
	return 0;
}

static int refuse_twin(void *parent, const char *value)
{
	(void)parent;
	(void)value;
	return 1;
}

static void set_entry(struct table *table, size_t i)
{
	const struct args_option *option = table->options[i];
	struct entry *entry = &table->entries[i], *twin = &table->twins[i];
	*entry = (struct entry){.option = option, .table = table, .letter = {option->letter}};
	entry->hdr = (struct arg_hdr){.flag = is_flag(option) ? 0
					      : option->kind == ARGS_OPTIONAL
						      ? ARG_HASVALUE | ARG_HASOPTVALUE
						      : ARG_HASVALUE,
		.shortopts = option->letter ? entry->letter : NULL,
		.longopts = option->name,
		.parent = entry,
		.scanfn = take_option};
	snprintf(twin->twin, sizeof(twin->twin), "%s" MASK, option->name);
	twin->hdr = (struct arg_hdr){.longopts = twin->twin, .parent = twin, .scanfn = refuse_twin};
}

/*
 * Abbreviated names are refused, because their meaning would change when another option with the
 * same beginning is added: each option has a twin with a longer name, so that getopt_long, which
 * argtable2 calls, takes an abbreviation for ambiguous. The flags come first, so that their indices
 * are no letters (what_is_wrong).
 */
static void table_init(struct table *table, const struct args_command *command)
{
	size_t at = 0;
	table_add(table, command->options);
	table_add(table, command->common);
	table_add(table, everywhere);
	table->words_entry = (struct arg_hdr){.parent = table, .scanfn = take_word};
	table->argtable[at++] = &table->words_entry;
	for (int flags = 1; flags >= 0; flags--)
		for (size_t i = 0; i < table->count; i++)
			if (is_flag(table->options[i]) == flags) {
				set_entry(table, i);
				table->argtable[at++] = &table->entries[i];
			}
	for (size_t i = 0; i < table->count; i++)
		table->argtable[at++] = &table->twins[i];
	table->argtable[at] = xneeded(arg_end(8));
}

/* The option that word names: "--NAME", "--NAME=VALUE" or "-xyZ"; NULL: there is none. */
static const struct args_option *find_option(const struct table *table, const char *word)
{
	bool is_long = word[1] == '-';
	size_t length = strcspn(word + 2, "=");
	for (size_t i = 0; i < table->count; i++) {
		const struct args_option *option = table->options[i];
		if (is_long ? strlen(option->name) == length &&
					!strncmp(option->name, word + 2, length)
			    : option->letter == word[strlen(word) - 1])
			return option;
	}
	return NULL;
}

bool args_is_typed(const char *name)
{
	for (size_t i = 0; running && i < running->count; i++)
		if (!strcmp(running->options[i]->name, name))
			return running->entries[i].count > 0;
	return false;
}

/* Set the options that were not given, and have a variable that is set. */
static enum status use_environment(const struct table *table, struct error *err)
{
	enum status status = STATUS_OK;
	for (size_t i = 0; i < table->count && status == STATUS_OK; i++) {
		const struct args_option *option = table->options[i];
		const char *value = option->environment ? getenv(option->environment) : NULL;
		char what[80];
		snprintf(what, sizeof(what), "$%s", option->environment ? option->environment : "");
		if (!table->entries[i].count && value && *value)
			status = set_target(option, value, what, err);
	}
	return status;
}

/* ---- What is wrong ---- */

static enum status no_such_option(const struct table *table, const char *word, struct error *err)
{
	const char *names[OPTIONS];
	char name[64];
	for (size_t i = 0; i < table->count; i++)
		names[i] = table->options[i]->name;
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(word + 2, "="), word + 2);
	const char *meant = parse_nearest(names, table->count, name);
	return error_set(err, STATUS_USAGE, "there is no option --%s%s%s%s", name,
		meant ? "; did you mean --" : "", meant ? meant : "", meant ? "?" : "");
}

/*
 * The first error that argtable2 has found. It gives a word for an option that does not exist, or
 * whose value is missing; else only the letter of an option that does not exist, or the index of a
 * flag that has a value.
 */
static enum status what_is_wrong(
	const struct table *table, const struct arg_end *end, struct error *err)
{
	const char *word = end->argval[0];
	int code = end->error[0];
	if (word && code == ARG_ELONGOPT)
		return no_such_option(table, word, err);
	if (word) {
		const struct args_option *option = find_option(table, word);
		return error_set(err, STATUS_USAGE, "--%s needs a value: --%s %s", option->name,
			option->name, option->value);
	}
	if (code > ' ')
		return error_set(err, STATUS_USAGE, "there is no option -%c", code);
	return error_set(err, STATUS_USAGE, "--%s takes no value",
		((const struct entry *)table->argtable[code])->option->name);
}

static enum status check(const struct table *table, const struct args_command *command,
	const struct arg_end *end, char *const *rest, struct error *err)
{
	if (end->count)
		return what_is_wrong(table, end, err);
	if (table->word_count > command->max_words) {
		const char *word = table->words[command->max_words];
		return command->takes_command && !rest
			       ? error_set(err, STATUS_USAGE,
					 "\"%s\" is not an option; if the command begins here, write "
					 "-- before it: -- %s",
					 word, word)
			       : error_set(err, STATUS_USAGE, "unexpected argument \"%s\"", word);
	}
	if (table->word_count < command->min_words)
		return error_set(err, STATUS_USAGE, "missing argument: %s", command->synopsis);
	if (command->command_required && (!rest || !rest[0]))
		return error_set(
			err, STATUS_USAGE, "a command is missing: write -- COMMAND [ARG...]");
	if (table->wrong.status != STATUS_OK)
		*err = table->wrong;
	return table->wrong.status != STATUS_OK ? table->wrong.status : use_environment(table, err);
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
 * Copy a word of the command line in the form that argtable2 takes: an empty value with MASK, and
 * an optional number, which is the next word, in the same word. Returns how many words it took.
 */
static int mask(const struct table *table, char **argv, char **masked)
{
	const char *word = argv[0], *next = argv[1];
	size_t length = strlen(word);
	const struct args_option *option = *word == '-' ? find_option(table, word) : NULL;
	bool takes_next = option && option->kind == ARGS_OPTIONAL && !strchr(word, '=') && next &&
			  *next && !next[strspn(next, "0123456789")];
	if (takes_next)
		*masked = xprintf("%s%s%s", word, word[1] == '-' ? "=" : "", next);
	else if (!length || (!strncmp(word, "--", 2) && word[length - 1] == '='))
		*masked = xprintf("%s" MASK, word);
	else
		*masked = xstrdup(word);
	return takes_next ? 2 : 1;
}

static int run_parsed(const struct args_program *program, const struct args_command *command,
	struct table *table, struct args_rest *rest, bool help)
{
	struct error err = {0};
	const struct arg_end *end = table->argtable[1 + 2 * table->count];
	/* --help and --version work even if the rest of the command line is wrong. */
	if (show_help || help) {
		print_help(program, command);
		return message_close(STATUS_OK);
	}
	if (show_version) {
		printf("%s %s\n", program->name, PREEMPT_VERSION);
		return message_close(STATUS_OK);
	}
	if (check(table, command, end, rest->command, &err) != STATUS_OK)
		return refuse(program, command, err.text);
	message_level(quiet ? MESSAGE_QUIET : verbose ? MESSAGE_VERBOSE : MESSAGE_NORMAL);
	rest->words = table->words;
	rest->count = table->word_count;
	running = table;
	int code = message_close(command->run(rest));
	running = NULL;
	return code;
}

static int run_command(const struct args_program *program, const struct args_command *command,
	int argc, char **argv)
{
	struct table table = {0};
	struct args_rest rest = {0};
	int own = 1, count = 0;
	bool options = true;
	table_init(&table, command);
	/* argtable2 reorders its arguments: do not pass it the words after "--". */
	while (own < argc && strcmp(argv[own], "--"))
		own++;
	if (own < argc && command->takes_command)
		rest.command = argv + own + 1;
	int seen = command->takes_command ? own : argc;
	char **masked = xcalloc((size_t)argc + 1, sizeof(*masked));
	table.words = xcalloc((size_t)argc + 1, sizeof(*table.words));
	for (int i = 0; i < seen; count++) {
		options &= i == 0 || strcmp(argv[i], "--") != 0;
		if (options || !*argv[i])
			i += mask(&table, argv + i, &masked[count]);
		else
			masked[count] = xstrdup(argv[i++]);
	}
	(void)arg_parse(count, masked, table.argtable);
	bool help = argc == 2 && !strcmp(argv[1], "help") && !command->name;
	int code = run_parsed(program, command, &table, &rest, help);
	for (int i = 0; i < count; i++)
		free(masked[i]);
	free(masked);
	free(table.words);
	free(table.argtable[1 + 2 * table.count]);
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
		const struct args_option *option = find_option(&table, argv[at]);
		if (!option)
			return at;
		at += is_flag(option) || strchr(argv[at], '=') ? 1 : 2;
	}
	return at < argc ? at : argc;
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
	if (!strcmp(word, "help") && !about) {
		print_help(program, NULL);
		return message_close(STATUS_OK);
	}
	if (!strcmp(word, "help")) {
		argc = 3;
		argv[1] = word = about;
		argv[2] = (char *)"--help";
	}
	const char *names[64];
	size_t count = 0;
	for (; command->name; command++) {
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
