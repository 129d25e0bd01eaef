/* SPDX-License-Identifier: MIT */
/*
 * The small records of a checkpoint. The first byte of an input says what the rest is: 'b' a mark
 * that it is bad, 'f' a manifest or a shard's record, 'n' a name in its directory, 'p' a pattern
 * and a name, 'm' a metric or a list of rules or steps.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ckpt/keep.h"
#include "ckpt/layouts.h"
#include "ckpt/manifest.h"
#include "ckpt/metrics.h"
#include "ckpt/names.h"
#include "ckpt/native.h"
#include "support/fuzz.h"

static void check_mark(const uint8_t *data, size_t size)
{
	struct marks marks;
	FUZZ_HOLDS(fuzz_write(CKPT_BAD, data, size));
	FUZZ_HOLDS(marks_read(fuzz_directory(), &marks, NULL) == STATUS_OK);
	FUZZ_HOLDS(marks.bad && !marks.pinned);
	FUZZ_HOLDS(memchr(marks.reason, '\0', sizeof(marks.reason)));
}

static void check_files(const struct manifest *manifest)
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
	FUZZ_HOLDS(!manifest_difference(manifest, &again));
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

static void check_manifest(const char *data, size_t size)
{
	struct manifest manifest;
	struct error err = {0};
	if (manifest_read(data, size, &manifest, &err) != STATUS_OK) {
		FUZZ_HOLDS(*err.text);
		return;
	}
	check_files(&manifest);
	check_again(&manifest);
	manifest_release(&manifest);
}

/* Only the one spelling that we make is ours. */
static void check_name(const char *name)
{
	char again[CKPT_NAME_SIZE] = "", gone[CKPT_GONE_SIZE];
	uint64_t task, tasks;
	struct ckpt_name read = ckpt_name_read(name);
	if (read.kind != CKPT_NAME_FOREIGN)
		ckpt_name_make(again, &read);
	FUZZ_HOLDS(read.kind == CKPT_NAME_FOREIGN || strcmp(again, name) == 0);
	if (ckpt_name_read_record(name, CKPT_SHARD, &task, &tasks)) {
		ckpt_name_record(again, CKPT_SHARD, task, tasks);
		FUZZ_HOLDS(
			strcmp(again, name) == 0 && ckpt_name_is_transient(name) && task < tasks);
	}
	if (ckpt_name_read_record(name, CKPT_WRITER, &task, &tasks)) {
		ckpt_name_record(again, CKPT_WRITER, task, tasks);
		FUZZ_HOLDS(strcmp(again, name) == 0 && ckpt_name_is_transient(name));
	}
	const char *entry = ckpt_name_read_gone(name);
	if (entry && ckpt_name_gone(gone, entry))
		FUZZ_HOLDS(strlen(gone) == strlen(name) && *entry);
	FUZZ_HOLDS(!ckpt_name_is_transient(name) || ckpt_name_is_reserved(name));
}

/* The first line as the pattern, the second as a name: "model-*-{step}.pt". */
static void check_pattern(const uint8_t *data, size_t size)
{
	struct layout layout;
	struct error err;
	uint64_t step;
	bool inside;
	char *pattern = fuzz_next(&data, &size, '\n'), *entry = fuzz_next(&data, &size, '\n');
	const struct layout_words words = {.pattern = pattern};
	if (pattern && entry && layout_choose(".", &words, &layout, &err) == STATUS_OK &&
		layout_reads(&layout, entry, &step, &inside))
		FUZZ_HOLDS(step <= CKPT_NUMBER_MAX && !inside);
	free(pattern);
	free(entry);
}

static void check_metric(const char *text)
{
	static struct metrics metrics;
	struct error err;
	uint64_t steps[16];
	size_t count = 0;
	metrics.count = 0;
	if (keep_read_steps(text, steps, 16, &count, &err) == STATUS_OK)
		FUZZ_HOLDS(count >= 1 && count <= 16);
	if (metrics_read(text, &metrics, &err) != STATUS_OK)
		return;
	double value;
	FUZZ_HOLDS(metrics.count == 1 && *metrics.items[0].name);
	FUZZ_HOLDS(!metrics_get(&metrics, metrics.items[0].name, &value) || value == value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	char *text = fuzz_text(data + 1, size - 1);
	switch (*data) {
	case 'b': check_mark(data + 1, size - 1); break;
	case 'f': check_manifest((const char *)data + 1, size - 1); break;
	case 'n': check_name(text); break;
	case 'p': check_pattern(data + 1, size - 1); break;
	case 'm': check_metric(text); break;
	}
	free(text);
	fuzz_clear();
	return 0;
}
