/* SPDX-License-Identifier: MIT */
#include "ckpt/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define GONE	    ".gone-"
#define GONE_DIGITS 16
#define WRITER	    ".ckpt-writer"
#define SHARD	    ".ckpt-shard"

void ckpt_name_make(char name[CKPT_NAME_SIZE], const struct ckpt_name *of)
{
	char life[LIFE_SIZE + 8] = "", end[40] = "";
	if (*of->life)
		snprintf(life, sizeof(life), "-life-%s", of->life);
	if (of->kind == CKPT_NAME_SCRATCH)
		snprintf(end, sizeof(end), "-workertemp_%" PRIu64, of->task);
	if (of->kind == CKPT_NAME_STEP || of->kind == CKPT_NAME_COPY)
		snprintf(name, CKPT_NAME_SIZE,
			of->kind == CKPT_NAME_STEP ? "step-%08" PRIu64
						   : ".tmp-step-%08" PRIu64 "-copy",
			of->step);
	else
		snprintf(name, CKPT_NAME_SIZE, ".tmp-step-%08" PRIu64 "-attempt-%" PRIu64 "%s%s",
			of->step, of->attempt, life, end);
}

void ckpt_name_step(char name[CKPT_NAME_SIZE], uint64_t step)
{
	ckpt_name_make(name, &(struct ckpt_name){.kind = CKPT_NAME_STEP, .step = step});
}

/* Move *at behind prefix. False: it does not begin so. */
static bool skip(const char **at, const char *prefix)
{
	size_t length = strlen(prefix);
	bool found = strncmp(*at, prefix, length) == 0;
	*at += found ? length : 0;
	return found;
}

/* Read a number of at most 18 digits and move *at behind it. */
static bool read_number(const char **at, uint64_t *number)
{
	size_t length = strspn(*at, "0123456789");
	*number = strtoull(*at, NULL, 10);
	*at += length;
	return length > 0 && length <= 18;
}

struct ckpt_name ckpt_name_read(const char *name)
{
	struct ckpt_name read = {.kind = CKPT_NAME_STEP};
	char again[CKPT_NAME_SIZE];
	const char *at = name;
	bool staged = skip(&at, ".tmp-"), ours = skip(&at, "step-") && read_number(&at, &read.step);
	if (ours && staged && skip(&at, "-copy")) {
		read.kind = CKPT_NAME_COPY;
	} else if (ours && staged) {
		read.kind = CKPT_NAME_STAGING;
		ours = skip(&at, "-attempt-") && read_number(&at, &read.attempt);
		if (ours && skip(&at, "-life-")) {
			snprintf(read.life, sizeof(read.life), "%.*s", LIFE_SIZE - 1, at);
			ours = life_is_valid(read.life);
			at += strlen(read.life);
		}
		if (ours && skip(&at, "-workertemp_")) {
			read.kind = CKPT_NAME_SCRATCH;
			ours = read_number(&at, &read.task);
		}
	}
	/* Only one spelling is ours. */
	if (ours)
		ckpt_name_make(again, &read);
	return ours && strcmp(name, again) == 0 ? read : (struct ckpt_name){0};
}

bool ckpt_name_gone(char name[CKPT_GONE_SIZE], const char *entry)
{
	uint64_t number;
	return getrandom(&number, sizeof(number), 0) == sizeof(number) &&
	       snprintf(name, CKPT_GONE_SIZE, GONE "%016" PRIx64 "-%s", number >> 1, entry) <
		       CKPT_GONE_SIZE;
}

void ckpt_name_condemn(char gone[CKPT_GONE_SIZE])
{
	char *digit = gone + strlen(GONE);
	if (!ckpt_name_is_condemned(gone))
		*digit = "89abcdef"[*digit - '0'];
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
	for (size_t i = 0; i < sizeof(beside) / sizeof(beside[0]); i++) {
		const char *at = name;
		if (skip(&at, beside[i]) && read_number(&at, step) && !*at) {
			*kind = (enum ckpt_beside)i;
			return true;
		}
	}
	return false;
}

const char *ckpt_name_read_gone(const char *name)
{
	return skip(&name, GONE) && strspn(name, "0123456789abcdef") == GONE_DIGITS &&
			       name[GONE_DIGITS] == '-' && name[GONE_DIGITS + 1]
		       ? name + GONE_DIGITS + 1
		       : NULL;
}

void ckpt_name_task(char name[CKPT_NAME_SIZE], uint64_t task)
{
	snprintf(name, CKPT_NAME_SIZE, "task-%" PRIu64, task);
}

static void make_record(
	char name[CKPT_NAME_SIZE], const char *prefix, uint64_t task, uint64_t tasks)
{
	if (tasks)
		snprintf(name, CKPT_NAME_SIZE, "%s-%" PRIu64 "-of-%" PRIu64 ".json", prefix, task,
			tasks);
	else
		snprintf(name, CKPT_NAME_SIZE, "%s.json", prefix);
}

static bool read_record(const char *name, const char *prefix, uint64_t *task, uint64_t *tasks)
{
	char again[CKPT_NAME_SIZE];
	const char *at = name;
	*task = *tasks = 0;
	if (!skip(&at, prefix))
		return false;
	if (skip(&at, "-") && (!read_number(&at, task) || !skip(&at, "-of-") ||
				      !read_number(&at, tasks) || *task >= *tasks))
		return false;
	make_record(again, prefix, *task, *tasks);
	return *tasks <= CKPT_TASKS_MAX && strcmp(name, again) == 0;
}

void ckpt_name_writer(char name[CKPT_NAME_SIZE], uint64_t task, uint64_t tasks)
{
	make_record(name, WRITER, task, tasks);
}

void ckpt_name_shard(char name[CKPT_NAME_SIZE], uint64_t task, uint64_t tasks)
{
	make_record(name, SHARD, task, tasks);
}

bool ckpt_name_is_writer(const char *name, uint64_t *task, uint64_t *tasks)
{
	return read_record(name, WRITER, task, tasks);
}

bool ckpt_name_is_shard(const char *name, uint64_t *task, uint64_t *tasks)
{
	return read_record(name, SHARD, task, tasks) && *tasks;
}

bool ckpt_name_is_reserved(const char *name)
{
	/* The last two are of version 0.1.0. */
	static const char *const prefixes[] = {
		CKPT_MANIFEST, CKPT_BAD, CKPT_PIN, WRITER, SHARD, ".ckpt-copy.json", ".ckpt-part"};
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
