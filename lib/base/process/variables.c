/* SPDX-License-Identifier: MIT */
#include "base/process/variables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/xalloc.h"

static void append(struct variables *variables, char *item)
{
	variables->items =
		xrealloc(variables->items, variables->count + 2, sizeof(*variables->items));
	variables->items[variables->count++] = item;
	variables->items[variables->count] = NULL;
}

/* Replace the variable of the same name, or add item. Takes ownership of item. */
static void put(struct variables *variables, char *item)
{
	size_t length = strcspn(item, "=");
	for (size_t i = 0; i < variables->count; i++)
		if (!strncmp(variables->items[i], item, length) &&
			variables->items[i][length] == '=') {
			free(variables->items[i]);
			variables->items[i] = item;
			return;
		}
	append(variables, item);
}

void variables_inherit(struct variables *variables)
{
	for (char **item = environ; item && *item; item++)
		append(variables, xstrdup(*item));
}

void variables_set(struct variables *variables, const char *name, const char *value)
{
	put(variables, xprintf("%s=%s", name, value));
}

void variables_set_number(struct variables *variables, const char *name, uint64_t value)
{
	char text[24];
	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	variables_set(variables, name, text);
}

void variables_set_all(struct variables *variables, char *const *items)
{
	for (; items && *items; items++)
		put(variables, xstrdup(*items));
}

void variables_release(struct variables *variables)
{
	for (char **item = variables->items; item && *item; item++)
		free(*item);
	free(variables->items);
	*variables = (struct variables){0};
}
