/* SPDX-License-Identifier: MIT */
#include "group/environment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/guard.h"
#include "base/parse.h"
#include "notice/source.h"

struct list {
	char **items; /* ended by NULL */
	size_t count;
	bool failed;
};

static void append(struct list *list, char *item)
{
	char **grown = item ? realloc(list->items, (list->count + 2) * sizeof(*grown)) : NULL;
	if (!grown) {
		free(item);
		list->failed = true;
		return;
	}
	list->items = grown;
	list->items[list->count++] = item;
	list->items[list->count] = NULL;
}

/* Replace or add NAME=value. */
static void set(struct list *list, const char *name, const char *value)
{
	char *item = NULL;
	size_t length = strlen(name);
	if (asprintf(&item, "%s=%s", name, value) < 0)
		item = NULL;
	for (size_t i = 0; i < list->count && item; i++)
		if (!strncmp(list->items[i], name, length) && list->items[i][length] == '=') {
			free(list->items[i]);
			list->items[i] = item;
			return;
		}
	append(list, item);
}

static void set_number(struct list *list, const char *name, uint64_t value)
{
	char text[24];
	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	set(list, name, text);
}

/* The signals of all signal sources, "TERM,USR1". */
static void set_signals(struct list *list, const struct command_environment *what)
{
	char names[256] = "";
	for (size_t i = 0; i < what->source_count; i++) {
		const char *caught = source_signals(what->sources[i]);
		if (!caught)
			continue;
		size_t used = strlen(names);
		snprintf(names + used, sizeof(names) - used, "%s%s", used ? "," : "", caught);
	}
	set(list, "PREEMPT_SIGNALS", names);
}

char **environment_build(const struct command_environment *what)
{
	struct list list = {0};
	for (char **item = environ; *item; item++)
		append(&list, strdup(*item));
	set(&list, "PREEMPT_DIR", what->board);
	set(&list, "PREEMPT_STORE", what->store);
	set(&list, GUARD_MARK, what->mark);
	set(&list, "PREEMPT_RUN", what->attempt->run);
	set_number(&list, "PREEMPT_ATTEMPT", what->attempt->number);
	set_number(&list, "PREEMPT_TASKS", what->attempt->tasks);
	set_number(&list, "PREEMPT_TASK", what->task);
	set(&list, "PREEMPT_LAUNCH", what->identity->launch);
	set_signals(&list, what);
	if (what->resume)
		set(&list, "PREEMPT_RESUME", what->resume);
	if (what->ranks) {
		set_number(&list, "PREEMPT_RANKS", what->identity->count);
	} else if (what->spread) {
		set_number(&list, "RANK", what->task);
		set_number(&list, "LOCAL_RANK", what->local);
		set_number(&list, "WORLD_SIZE", what->attempt->tasks);
		set_number(&list, "LOCAL_WORLD_SIZE", what->identity->count);
	}
	if (!list.failed)
		return list.items;
	environment_free(list.items);
	return NULL;
}

void environment_free(char **environment)
{
	for (char **item = environment; item && *item; item++)
		free(*item);
	free(environment);
}

enum status environment_shield(const char *names, sigset_t *set_of, struct error *err)
{
	char *copy = strdup(names ? names : "");
	enum status status = copy ? STATUS_OK : error_set(err, STATUS_TEMPORARY, "out of memory");
	char *rest = copy;
	for (char *name; status == STATUS_OK && (name = strsep(&rest, ","));) {
		int number;
		if (!*name)
			continue;
		status = parse_signal(name, &number, "--shield", err);
		if (status == STATUS_OK)
			sigaddset(set_of, number);
	}
	free(copy);
	return status;
}
