/* SPDX-License-Identifier: MIT */
#include "ckpt/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define GONE ".gone-"

/* Move *at behind this text; false: there is something else. */
static bool take(const char **at, const char *text)
{
	size_t length = strlen(text);
	if (strncmp(*at, text, length) != 0)
		return false;
	*at += length;
	return true;
}

/* Take a number in the one spelling that is ours: of at least `width` digits, and no more zeros. */
static bool take_number(const char **at, size_t width, uint64_t *number)
{
	size_t length = strspn(*at, "0123456789");
	if (length < width || length > 18 || (length > width && **at == '0'))
		return false;
	*number = strtoull(*at, NULL, 10);
	*at += length;
	return true;
}

void ckpt_name_make(char name[CKPT_NAME_SIZE], const struct ckpt_name *of)
{
	const size_t size = CKPT_NAME_SIZE;
	int length = snprintf(name, size, "%sstep-%08" PRIu64,
		of->kind == CKPT_NAME_STEP ? "" : ".tmp-", of->step);
	if (of->kind == CKPT_NAME_COPY)
		snprintf(name + length, size - (size_t)length, "-copy");
	if (of->kind != CKPT_NAME_STAGING && of->kind != CKPT_NAME_SCRATCH)
		return;
	length += snprintf(name + length, size - (size_t)length, "-attempt-%" PRIu64 "%s%s",
		of->attempt, *of->life ? "-life-" : "", of->life);
	if (of->kind == CKPT_NAME_SCRATCH)
		snprintf(name + length, size - (size_t)length, "-workertemp_%" PRIu64, of->task);
}

void ckpt_name_step(char name[CKPT_NAME_SIZE], uint64_t step)
{
	ckpt_name_make(name, &(struct ckpt_name){.kind = CKPT_NAME_STEP, .step = step});
}

struct ckpt_name ckpt_name_read(const char *name)
{
	struct ckpt_name read = {.kind = CKPT_NAME_STEP};
	bool hidden = take(&name, ".tmp-");
	bool valid = take(&name, "step-") && take_number(&name, 8, &read.step);
	if (valid && hidden && take(&name, "-copy")) {
		read.kind = CKPT_NAME_COPY;
	} else if (valid && hidden) {
		read.kind = CKPT_NAME_STAGING;
		valid = take(&name, "-attempt-") && take_number(&name, 1, &read.attempt);
		if (take(&name, "-life-")) {
			size_t length = strspn(name, "0123456789abcdef");
			snprintf(read.life, sizeof(read.life), "%.*s", (int)length, name);
			valid = valid && length == LIFE_SIZE - 1;
			name += length;
		}
		if (take(&name, "-workertemp_")) {
			read.kind = CKPT_NAME_SCRATCH;
			valid = valid && take_number(&name, 1, &read.task);
		}
	}
	return valid && !*name ? read : (struct ckpt_name){0};
}

bool ckpt_name_gone(char name[CKPT_GONE_SIZE], const char *entry)
{
	uint64_t number;
	return getrandom(&number, sizeof(number), 0) == sizeof(number) &&
	       snprintf(name, CKPT_GONE_SIZE, GONE "%016" PRIx64 "-%s", number >> 1, entry) <
		       CKPT_GONE_SIZE;
}

const char *ckpt_name_read_gone(const char *name)
{
	return take(&name, GONE) && strspn(name, "0123456789abcdef") == 16 && name[16] == '-' &&
			       name[17]
		       ? name + 17
		       : NULL;
}

void ckpt_name_condemn(char gone[CKPT_GONE_SIZE])
{
	if (!ckpt_name_is_condemned(gone))
		gone[strlen(GONE)] = "89abcdef"[gone[strlen(GONE)] - '0'];
}

bool ckpt_name_is_condemned(const char *gone)
{
	return gone[strlen(GONE)] > '7';
}

static const char *const beside[] = {
	[CKPT_BESIDE_PIN] = ".ckpt-pin-",
	[CKPT_BESIDE_BAD] = ".ckpt-bad-",
	[CKPT_BESIDE_GOOD] = ".ckpt-good-",
};

void ckpt_name_beside(char name[CKPT_NAME_SIZE], enum ckpt_beside kind, uint64_t step)
{
	snprintf(name, CKPT_NAME_SIZE, "%s%" PRIu64, beside[kind], step);
}

bool ckpt_name_read_beside(const char *name, enum ckpt_beside *kind, uint64_t *step)
{
	for (*kind = CKPT_BESIDE_PIN; *kind <= CKPT_BESIDE_GOOD; ++*kind)
		if (take(&name, beside[*kind]))
			return take_number(&name, 1, step) && !*name;
	return false;
}

void ckpt_name_task(char name[CKPT_NAME_SIZE], uint64_t task)
{
	snprintf(name, CKPT_NAME_SIZE, "task-%" PRIu64, task);
}

void ckpt_name_record(char name[CKPT_NAME_SIZE], const char *prefix, uint64_t task, uint64_t tasks)
{
	char of[48] = "";
	if (tasks)
		snprintf(of, sizeof(of), "-%" PRIu64 "-of-%" PRIu64, task, tasks);
	snprintf(name, CKPT_NAME_SIZE, "%s%s.json", prefix, of);
}

bool ckpt_name_read_record(const char *name, const char *prefix, uint64_t *task, uint64_t *tasks)
{
	*task = *tasks = 0;
	bool valid = take(&name, prefix);
	if (valid && take(&name, "-"))
		valid = take_number(&name, 1, task) && take(&name, "-of-") &&
			take_number(&name, 1, tasks) && *task < *tasks && *tasks <= CKPT_TASKS_MAX;
	else
		valid = valid && strcmp(prefix, CKPT_WRITER) == 0;
	return valid && strcmp(name, ".json") == 0;
}

bool ckpt_name_is_reserved(const char *name)
{
	/* The last two are of version 0.1.0. */
	static const char *const prefixes[] = {CKPT_MANIFEST, CKPT_BAD, CKPT_PIN, CKPT_WRITER,
		CKPT_SHARD, ".ckpt-copy.json", ".ckpt-part"};
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

bool ckpt_name_is_transient(const char *name)
{
	return ckpt_name_is_reserved(name) && strcmp(name, CKPT_MANIFEST) != 0 &&
	       strcmp(name, CKPT_BAD) != 0 && strcmp(name, CKPT_PIN) != 0;
}
