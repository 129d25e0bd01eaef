/* SPDX-License-Identifier: MIT */
/* The GPUs of a worker, divided among its slots. */
#ifndef QUEUE_DEVICES_H
#define QUEUE_DEVICES_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

struct devices {
	char **names; /* as in CUDA_VISIBLE_DEVICES: numbers or UUIDs */
	size_t count;
	size_t per_slot; /* 0: not divided, every slot sees all */
};

/*
 * The devices of this process: those in CUDA_VISIBLE_DEVICES, up to the first "-1" as in CUDA; if
 * it is not set, those that `nvidia-smi -L` lists. STATUS_USAGE: there are fewer than slots x
 * per_slot, or one is named twice.
 */
enum status devices_find(
	struct devices *devices, uint64_t slots, uint64_t per_slot, struct error *err);
/* The value of CUDA_VISIBLE_DEVICES for a slot (from 0): no two slots share a device. */
void devices_of_slot(const struct devices *devices, size_t slot, struct text *value);
void devices_release(struct devices *devices);

#endif
