/* SPDX-License-Identifier: MIT */
/* Which GPUs this process has: the part of devices.h that is not pure. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/process/subprocess.h"
#include "queue/worker/devices.h"

enum { LIST_PATIENCE = 30000 /* ms: the first call after a boot loads the driver */ };

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
	if (status == STATUS_OK)
		devices_of_listing(devices, text_string(&child.output));
	else
		error_prefix(err, "--gpus-per-slot: cannot count the GPUs here; set "
				  "CUDA_VISIBLE_DEVICES to those to use");
	subprocess_release(&child);
	return status;
}

static const char *named_twice(const struct devices *devices)
{
	for (size_t i = 0; i < devices->count; i++)
		for (size_t k = 0; k < i; k++)
			if (!strcmp(devices->names[i], devices->names[k]))
				return devices->names[i];
	return NULL;
}

enum status devices_find(
	struct devices *devices, uint64_t slots, uint64_t per_slot, struct error *err)
{
	const char *value = getenv("CUDA_VISIBLE_DEVICES");
	enum status status = STATUS_OK;
	devices->per_slot = per_slot;
	if (value)
		devices_of_value(devices, value);
	else
		status = list_all(devices, err);
	if (status != STATUS_OK)
		return status;
	const char *twice = named_twice(devices);
	if (twice)
		return error_set(err, STATUS_USAGE,
			"--gpus-per-slot: CUDA_VISIBLE_DEVICES names %s twice: name each GPU once",
			twice);
	if (devices->count / per_slot < slots)
		return error_set(err, STATUS_USAGE,
			"--gpus-per-slot: %" PRIu64 " slots with %" PRIu64 " each need %" PRIu64
			" GPUs, and %zu are %s: give fewer --slots",
			slots, per_slot, slots * per_slot, devices->count,
			value ? "in CUDA_VISIBLE_DEVICES" : "here");
	return STATUS_OK;
}
