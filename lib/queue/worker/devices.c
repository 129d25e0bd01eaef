/* SPDX-License-Identifier: MIT */
#include "queue/worker/devices.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

static void add(struct devices *devices, char *name)
{
	devices->names = xrealloc(devices->names, devices->count + 1, sizeof(*devices->names));
	devices->names[devices->count++] = name;
}

void devices_of_value(struct devices *devices, const char *value)
{
	char *copy = xstrdup(value), *rest = copy;
	for (char *word; (word = strsep(&rest, ","));) {
		word += strspn(word, " ");
		word[strcspn(word, " ")] = '\0';
		if (!*word || !strcmp(word, "-1"))
			break;
		add(devices, xstrdup(word));
	}
	free(copy);
}

void devices_of_listing(struct devices *devices, const char *listing)
{
	for (const char *line = listing; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, "GPU ", 4))
			add(devices, xprintf("%zu", devices->count));
	}
}

void devices_of_slot(const struct devices *devices, size_t slot, struct text *value)
{
	for (size_t i = 0; i < devices->per_slot; i++)
		text_addf(
			value, "%s%s", i ? "," : "", devices->names[slot * devices->per_slot + i]);
}

void devices_release(struct devices *devices)
{
	for (size_t i = 0; i < devices->count; i++)
		free(devices->names[i]);
	free(devices->names);
	*devices = (struct devices){0};
}
