/* SPDX-License-Identifier: MIT */
#include "queue/devices.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/process/subprocess.h"
#include "base/xalloc.h"

enum { LIST_PATIENCE = 30000 /* ms: the first call after a boot loads the driver */ };

static void add(struct devices *devices, char *name)
{
	devices->names = xrealloc(devices->names, devices->count + 1, sizeof(*devices->names));
	devices->names[devices->count++] = name;
}

static void read_value(struct devices *devices, const char *value)
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

static enum status list_all(struct devices *devices, struct error *err)
{
	char program[] = "nvidia-smi", option[] = "-L", *argv[] = {program, option, NULL};
	struct subprocess child = {0};
	struct subprocess_options how = {.argv = argv,
		.standard = {SUBPROCESS_NOTHING, SUBPROCESS_KEEP, SUBPROCESS_KEEP},
		.limit = clock_after(LIST_PATIENCE)};
	enum status status = subprocess_run(&child, &how, err);
	if (status == STATUS_OK && child.code)
		status = error_set(
			err, STATUS_USAGE, "nvidia-smi -L ended with exit code %d", child.code);
	const char *line = status == STATUS_OK ? text_string(&child.output) : NULL;
	for (; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, "GPU ", 4))
			add(devices, xprintf("%zu", devices->count));
	}
	if (status != STATUS_OK)
		error_prefix(err, "--gpus-per-slot: cannot count the GPUs here; set "
				  "CUDA_VISIBLE_DEVICES to those to use");
	subprocess_release(&child);
	return status;
}

enum status devices_find(
	struct devices *devices, uint64_t slots, uint64_t per_slot, struct error *err)
{
	const char *value = getenv("CUDA_VISIBLE_DEVICES");
	devices->per_slot = per_slot;
	if (value)
		read_value(devices, value);
	enum status status = value ? STATUS_OK : list_all(devices, err);
	if (status != STATUS_OK)
		return status;
	for (size_t i = 0; i < devices->count; i++)
		for (size_t k = 0; k < i; k++)
			if (!strcmp(devices->names[i], devices->names[k]))
				return error_set(err, STATUS_USAGE,
					"--gpus-per-slot: CUDA_VISIBLE_DEVICES names %s twice: "
					"name each GPU once",
					devices->names[i]);
	if (devices->count / per_slot < slots)
		return error_set(err, STATUS_USAGE,
			"--gpus-per-slot: %" PRIu64 " slots with %" PRIu64 " each need %" PRIu64
			" GPUs, and %zu are %s: give fewer --slots",
			slots, per_slot, slots * per_slot, devices->count,
			value ? "in CUDA_VISIBLE_DEVICES" : "here");
	return STATUS_OK;
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
