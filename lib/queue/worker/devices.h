/* SPDX-License-Identifier: MIT */
/* The GPUs of a worker, dealt out to its slots. */
#ifndef QUEUE_WORKER_DEVICES_H
#define QUEUE_WORKER_DEVICES_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

struct devices {
	char **names; /* as CUDA_VISIBLE_DEVICES has them: numbers or UUIDs */
	size_t count;
	size_t per_slot; /* 0: slots get none of their own */
};

/* The devices in a value of CUDA_VISIBLE_DEVICES. As CUDA does, it ends before the first "-1". */
void devices_of_value(struct devices *devices, const char *value);
/* Those in what `nvidia-smi -L` prints, by their numbers. */
void devices_of_listing(struct devices *devices, const char *listing);
/*
 * Those of this process: of CUDA_VISIBLE_DEVICES, where it is set, else those that nvidia-smi
 * lists. STATUS_USAGE: there are fewer than slots x per_slot, or one is named twice.
 */
enum status devices_find(
	struct devices *devices, uint64_t slots, uint64_t per_slot, struct error *err);
/* The value of CUDA_VISIBLE_DEVICES for this slot, 0 ...: no two slots share a device. */
void devices_of_slot(const struct devices *devices, size_t slot, struct text *value);
void devices_release(struct devices *devices);

#endif
