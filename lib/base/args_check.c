/* SPDX-License-Identifier: MIT */
#include "base/args_check.h"

#include <stdio.h>
#include <string.h>

#include "base/parse.h"

bool args_is_flag(const struct args_option *option)
{
	return option->kind == ARGS_FLAG || option->kind == ARGS_COUNT;
}

/* The option that word names, "--NAME" or "--NAME=VALUE"; NULL: there is none. */
static const struct args_option *find_option(
	const struct args_option *const *options, size_t count, const char *word)
{
	size_t length = strcspn(word + 2, "=");
	for (size_t i = 0; i < count; i++)
		if (strlen(options[i]->name) == length &&
			!strncmp(options[i]->name, word + 2, length))
			return options[i];
	return NULL;
}

static const struct args_option *find_letter(
	const struct args_option *const *options, size_t count, char letter)
{
	for (size_t i = 0; i < count; i++)
		if (options[i]->letter == letter)
			return options[i];
	return NULL;
}

static enum status no_such_option(
	const struct args_option *const *options, size_t count, const char *word, struct error *err)
{
	const char *names[96];
	char name[64];
	for (size_t i = 0; i < count; i++)
		names[i] = options[i]->name;
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(word + 2, "="), word + 2);
	const char *meant = parse_nearest(names, count, name);
	return error_set(err, STATUS_USAGE, "there is no option --%s%s%s%s", name,
		meant ? "; did you mean --" : "", meant ? meant : "", meant ? "?" : "");
}

enum status args_check_option(const struct args_option *const *options, size_t count,
	const char *word, const char *next, bool *takes_next, struct error *err)
{
	const struct args_option *option;
	const char *value = NULL; /* in the same word */
	if (word[1] == '-') {
		option = find_option(options, count, word);
		value = strchr(word, '=');
		if (!option)
			return no_such_option(options, count, word, err);
		if (value && args_is_flag(option))
			return error_set(err, STATUS_USAGE, "--%s takes no value", option->name);
		value = value ? value + 1 : NULL;
	} else {
		do {
			option = find_letter(options, count, *++word);
			if (!option)
				return error_set(
					err, STATUS_USAGE, "there is no option -%c", *word);
		} while (args_is_flag(option) && word[1]);
		value = !args_is_flag(option) && word[1] ? word + 1 : NULL;
	}
	if (option->kind == ARGS_OPTIONAL) /* only a number is its value */
		*takes_next = !value && next && *next && !next[strspn(next, "0123456789")];
	else
		*takes_next = !args_is_flag(option) && !value;
	if (*takes_next)
		value = next;
	if (!args_is_flag(option) && option->kind != ARGS_OPTIONAL && !value)
		return error_set(err, STATUS_USAGE, "--%s needs a value: --%s %s", option->name,
			option->name, option->value);
	if (value && !*value && option->kind != ARGS_ANY_TEXT)
		return error_set(err, STATUS_USAGE, "--%s: the value is empty", option->name);
	return STATUS_OK;
}

enum status args_check(const struct args_option *const *options, size_t count,
	const struct args_command *command, const struct args_line *line, struct error *err)
{
	char **argv = line->argv;
	size_t words = 0;
	bool first_part = true;
	for (int i = 1; i < line->argc; i++) {
		if (first_part && !strcmp(argv[i], "--")) {
			first_part = false;
		} else if (first_part && argv[i][0] == '-' && argv[i][1]) {
			const char *next = i + 1 < line->argc ? argv[i + 1] : NULL;
			bool takes_next = false;
			if (args_check_option(options, count, argv[i], next, &takes_next, err) !=
				STATUS_OK)
				return STATUS_USAGE;
			i += takes_next;
		} else if (++words > command->max_words) {
			return command->takes_command && !line->rest
				       ? error_set(err, STATUS_USAGE,
						 "\"%s\" is not an option; if the command begins "
						 "here, write -- before it: -- %s",
						 argv[i], argv[i])
				       : error_set(err, STATUS_USAGE, "unexpected argument \"%s\"",
						 argv[i]);
		}
	}
	if (words < command->min_words)
		return error_set(err, STATUS_USAGE, "missing argument: %s", command->synopsis);
	if (command->command_required && (!line->rest || !line->rest[0]))
		return error_set(
			err, STATUS_USAGE, "a command is missing: write -- COMMAND [ARG...]");
	return STATUS_OK;
}
