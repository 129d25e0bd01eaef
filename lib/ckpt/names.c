/* SPDX-License-Identifier: MIT */
#include "ckpt/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"

#define STEP_PREFIX    "step-"
#define STAGING_PREFIX ".tmp-"
#define ATTEMPT_INFIX  "-attempt-"
#define SCRATCH_INFIX  "-workertemp_"
#define REMOVED_PREFIX ".gone-"
#define WRITER	       ".ckpt-writer"
#define SHARD	       ".ckpt-shard-"
#define SUFFIX	       ".json"

#define REMOVED_DIGITS	16
#define ONGOING_LETTERS 7 /* ".XXXXXX" of a file that is on its way to its name */

void ckpt_name_step(char name[CKPT_NAME_SIZE], uint64_t step)
{
	snprintf(name, CKPT_NAME_SIZE, STEP_PREFIX "%08" PRIu64, step);
}

void ckpt_name_staging(char name[CKPT_NAME_SIZE], uint64_t step, uint64_t attempt)
{
	snprintf(name, CKPT_NAME_SIZE,
		STAGING_PREFIX STEP_PREFIX "%08" PRIu64 ATTEMPT_INFIX "%" PRIu64, step, attempt);
}

void ckpt_name_scratch(char name[CKPT_NAME_SIZE], uint64_t step, uint64_t attempt, uint64_t task)
{
	snprintf(name, CKPT_NAME_SIZE,
		STAGING_PREFIX STEP_PREFIX "%08" PRIu64 ATTEMPT_INFIX "%" PRIu64 SCRATCH_INFIX
					   "%" PRIu64,
		step, attempt, task);
}

void ckpt_name_removed(char name[CKPT_NAME_SIZE], const char *kept, uint64_t inode)
{
	snprintf(name, CKPT_NAME_SIZE, REMOVED_PREFIX "%016" PRIx64 "-%s", inode, kept);
}

const char *ckpt_name_of_removed(const char *name)
{
	return name + strlen(REMOVED_PREFIX) + REMOVED_DIGITS + 1;
}

uint64_t ckpt_name_inode_of_removed(const char *name)
{
	return strtoull(name + strlen(REMOVED_PREFIX), NULL, 16);
}

void ckpt_name_task(char name[CKPT_NAME_SIZE], uint64_t task)
{
	snprintf(name, CKPT_NAME_SIZE, "task-%" PRIu64, task);
}

void ckpt_name_writer(char name[CKPT_NAME_SIZE], bool sharded, uint64_t task)
{
	if (sharded)
		snprintf(name, CKPT_NAME_SIZE, WRITER "-%" PRIu64 SUFFIX, task);
	else
		snprintf(name, CKPT_NAME_SIZE, WRITER SUFFIX);
}

void ckpt_name_shard(char name[CKPT_NAME_SIZE], uint64_t task)
{
	snprintf(name, CKPT_NAME_SIZE, SHARD "%" PRIu64 SUFFIX, task);
}

/* What follows prefix, or NULL. */
static const char *after(const char *text, const char *prefix)
{
	size_t length = strlen(prefix);
	return strncmp(text, prefix, length) == 0 ? text + length : NULL;
}

/* The first length bytes as a canonical number; reading what was written is then exact. */
static bool number(const char *text, size_t length, uint64_t *value)
{
	char digits[20];
	if (length >= sizeof(digits))
		return false;
	memcpy(digits, text, length);
	digits[length] = '\0';
	return parse_decimal(digits, value);
}

static struct ckpt_name read_step(const char *name)
{
	struct ckpt_name read = {CKPT_NAME_FOREIGN, 0, 0, 0};
	char again[CKPT_NAME_SIZE];
	const char *digits = after(name, STEP_PREFIX);
	if (!digits || strspn(digits, "0123456789") != strlen(digits) || strlen(digits) > 18)
		return read;
	uint64_t step = 0;
	for (; *digits; digits++)
		step = step * 10 + (uint64_t)(*digits - '0');
	ckpt_name_step(again, step);
	if (strcmp(again, name) == 0)
		read = (struct ckpt_name){CKPT_NAME_STEP, step, 0, 0};
	return read;
}

static struct ckpt_name read_staging(const char *name)
{
	struct ckpt_name read = {CKPT_NAME_FOREIGN, 0, 0, 0};
	char step[CKPT_NAME_SIZE];
	const char *inner = after(name, STAGING_PREFIX);
	const char *infix = inner ? strstr(inner, ATTEMPT_INFIX) : NULL;
	uint64_t attempt, task;
	if (!infix || (size_t)(infix - inner) >= sizeof(step))
		return read;
	memcpy(step, inner, (size_t)(infix - inner));
	step[infix - inner] = '\0';
	const char *digits = infix + strlen(ATTEMPT_INFIX);
	const char *scratch = strstr(digits, SCRATCH_INFIX);
	size_t length = scratch ? (size_t)(scratch - digits) : strlen(digits);
	read = read_step(step);
	if (read.kind != CKPT_NAME_STEP || !number(digits, length, &attempt))
		return (struct ckpt_name){CKPT_NAME_FOREIGN, 0, 0, 0};
	if (!scratch)
		return (struct ckpt_name){CKPT_NAME_STAGING, read.step, attempt, 0};
	scratch += strlen(SCRATCH_INFIX);
	if (number(scratch, strlen(scratch), &task))
		return (struct ckpt_name){CKPT_NAME_SCRATCH, read.step, attempt, task};
	return (struct ckpt_name){CKPT_NAME_FOREIGN, 0, 0, 0};
}

struct ckpt_name ckpt_name_read(const char *name)
{
	struct ckpt_name read = read_step(name);
	if (read.kind == CKPT_NAME_FOREIGN)
		read = read_staging(name);
	const char *unique = after(name, REMOVED_PREFIX);
	if (!unique)
		return read;
	read = (struct ckpt_name){CKPT_NAME_FOREIGN, 0, 0, 0};
	if (strspn(unique, "0123456789abcdef") != REMOVED_DIGITS || unique[REMOVED_DIGITS] != '-')
		return read;
	const char *kept = unique + REMOVED_DIGITS + 1;
	if (read_step(kept).kind == CKPT_NAME_STEP || read_staging(kept).kind != CKPT_NAME_FOREIGN)
		read.kind = CKPT_NAME_REMOVED;
	return read;
}

/* Whether name is "PREFIX NUMBER SUFFIX" (NULL: without a number) in its first length bytes. */
static bool is_record(const char *name, size_t length, const char *prefix, uint64_t *value)
{
	const char *rest = after(name, prefix);
	size_t end = strlen(SUFFIX);
	if (!rest || length < strlen(prefix) + end || memcmp(name + length - end, SUFFIX, end) != 0)
		return false;
	size_t digits = length - strlen(prefix) - end;
	return value ? number(rest, digits, value) : digits == 0;
}

static bool is_shard(const char *name, size_t length, uint64_t *task)
{
	return is_record(name, length, SHARD, task);
}

static bool is_writer(const char *name, size_t length, bool *sharded, uint64_t *task)
{
	*sharded = is_record(name, length, WRITER "-", task);
	return *sharded || is_record(name, length, WRITER, NULL);
}

bool ckpt_name_is_shard(const char *name, uint64_t *task)
{
	return is_shard(name, strlen(name), task);
}

bool ckpt_name_is_writer(const char *name, bool *sharded, uint64_t *task)
{
	return is_writer(name, strlen(name), sharded, task);
}

/* The length of name without the ".XXXXXX" of a file on its way to its name; 0: has none. */
static size_t ongoing_length(const char *name)
{
	size_t length = strlen(name);
	if (length <= ONGOING_LETTERS || name[length - ONGOING_LETTERS] != '.' ||
		strchr(name + length - ONGOING_LETTERS + 1, '.'))
		return 0;
	return length - ONGOING_LETTERS;
}

static bool is_whole(const char *name, size_t length, const char *whole)
{
	return length == strlen(whole) && memcmp(name, whole, length) == 0;
}

bool ckpt_name_is_transient(const char *name)
{
	uint64_t task;
	bool sharded;
	size_t whole = strlen(name);
	if (is_shard(name, whole, &task) || is_writer(name, whole, &sharded, &task) ||
		is_whole(name, whole, CKPT_COPY))
		return true;
	size_t length = ongoing_length(name);
	return length &&
	       (is_shard(name, length, &task) || is_writer(name, length, &sharded, &task) ||
		       is_whole(name, length, CKPT_MANIFEST) || is_whole(name, length, CKPT_COPY) ||
		       is_whole(name, length, CKPT_PART) || is_whole(name, length, CKPT_BAD) ||
		       is_whole(name, length, CKPT_PIN));
}

bool ckpt_name_is_reserved(const char *name)
{
	return strcmp(name, CKPT_MANIFEST) == 0 || strcmp(name, CKPT_BAD) == 0 ||
	       strcmp(name, CKPT_PIN) == 0 || ckpt_name_is_transient(name);
}
