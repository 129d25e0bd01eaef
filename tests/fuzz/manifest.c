/* SPDX-License-Identifier: MIT */
/* The manifest of a checkpoint, and a shard's record. */
#include "ckpt/content/manifest.h"

#include <stdlib.h>
#include <string.h>

#include "ckpt/commit/names.h"
#include "support/fuzz.h"

static void check(const struct manifest *manifest)
{
	FUZZ_HOLDS(manifest->count > 0);
	for (size_t i = 0; i < manifest->count; i++) {
		const char *name = manifest->files[i].name;
		FUZZ_HOLDS(*name && *name != '/' && strlen(manifest->files[i].checksum) == 32);
		FUZZ_HOLDS(strcmp(name, "..") != 0 && strncmp(name, "../", 3) != 0);
		FUZZ_HOLDS(!strstr(name, "/../") && !strstr(name, "//"));
		FUZZ_HOLDS(i == 0 || strcmp(manifest->files[i - 1].name, name) < 0);
	}
	FUZZ_HOLDS(manifest->step <= CKPT_NUMBER_MAX && manifest->tasks <= CKPT_NUMBER_MAX);
}

/* What was read is written, and read again as the same. */
static void check_again(const struct manifest *manifest)
{
	struct manifest again;
	struct text text = {0};
	manifest_write(manifest, &text);
	FUZZ_HOLDS(!text.too_long);
	FUZZ_HOLDS(manifest_read(text.data, text.length, &again, NULL) == STATUS_OK);
	FUZZ_HOLDS(manifest_same_files(manifest, &again));
	FUZZ_HOLDS(again.step == manifest->step && again.attempt == manifest->attempt);
	FUZZ_HOLDS(again.tasks == manifest->tasks && again.sharded == manifest->sharded);
	FUZZ_HOLDS(again.shard == manifest->shard && again.utc == manifest->utc);
	FUZZ_HOLDS(strcmp(again.life, manifest->life) == 0 && again.uid == manifest->uid);
	FUZZ_HOLDS(again.metrics.count == manifest->metrics.count);
	for (size_t i = 0; i < again.metrics.count; i++) {
		double value, known;
		const char *name = again.metrics.items[i].name;
		bool there = metrics_get(&again.metrics, name, &value);
		FUZZ_HOLDS(there == metrics_get(&manifest->metrics, name, &known));
		FUZZ_HOLDS(!there || memcmp(&value, &known, sizeof(value)) == 0);
	}
	manifest_release(&again);
	text_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct manifest manifest;
	struct error err = {0};
	enum status status = manifest_read((const char *)data, size, &manifest, &err);
	if (status != STATUS_OK) {
		FUZZ_HOLDS(*err.text);
		return 0;
	}
	check(&manifest);
	check_again(&manifest);
	manifest_release(&manifest);
	return 0;
}
