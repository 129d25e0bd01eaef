/* SPDX-License-Identifier: MIT */
#include "ckpt/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define GONE ".gone-"

/* A number of at most 18 digits for sscanf. What it reads too freely ("+1", "01") is made again and
 * compared: only one spelling is ours. */
#define NUMBER "%18" SCNu64

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
	struct ckpt_name read = {0};
	char again[CKPT_NAME_SIZE] = "";
	const char *life = strstr(name, "-life-"), *task = strstr(name, "-workertemp_");
	int numbers =
		sscanf(name, ".tmp-step-" NUMBER "-attempt-" NUMBER, &read.step, &read.attempt);
	if (sscanf(name, "step-" NUMBER, &read.step) == 1)
		read.kind = CKPT_NAME_STEP;
	else if (numbers == 2)
		read.kind = task ? CKPT_NAME_SCRATCH : CKPT_NAME_STAGING;
	else if (numbers == 1)
		read.kind = CKPT_NAME_COPY;
	if (life)
		(void)sscanf(life, "-life-%24[0-9a-f]", read.life);
	if (task)
		(void)sscanf(task, "-workertemp_" NUMBER, &read.task);
	if (read.kind != CKPT_NAME_FOREIGN && (!life || life_is_valid(read.life)))
		ckpt_name_make(again, &read);
	return *again && strcmp(name, again) == 0 ? read : (struct ckpt_name){0};
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
	size_t end = 0;
	(void)sscanf(name, GONE "%*16[0-9a-f]-%zn", &end);
	return end == strlen(GONE "0123456789abcdef-") && name[end] ? name + end : NULL;
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
	char again[CKPT_NAME_SIZE];
	for (*kind = CKPT_BESIDE_PIN; *kind <= CKPT_BESIDE_GOOD; ++*kind) {
		size_t length = strlen(beside[*kind]);
		if (strncmp(name, beside[*kind], length) != 0 ||
			sscanf(name + length, NUMBER, step) != 1)
			continue;
		ckpt_name_beside(again, *kind, *step);
		return strcmp(name, again) == 0;
	}
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
	char again[CKPT_NAME_SIZE];
	*task = *tasks = 0;
	if (strncmp(name, prefix, strlen(prefix)) == 0)
		(void)sscanf(name + strlen(prefix), "-" NUMBER "-of-" NUMBER, task, tasks);
	ckpt_name_record(again, prefix, *task, *tasks);
	bool valid = *tasks ? *task < *tasks && *tasks <= CKPT_TASKS_MAX
			    : strcmp(prefix, CKPT_WRITER) == 0;
	return valid && strcmp(name, again) == 0;
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
