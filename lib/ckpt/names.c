/* SPDX-License-Identifier: MIT */
#include "ckpt/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/parse.h"

#define STEP_PREFIX    "step-"
#define STAGING_PREFIX ".tmp-"
#define ATTEMPT_INFIX  "-attempt-"
#define LIFE_INFIX     "-life-"
#define SCRATCH_INFIX  "-workertemp_"
#define REMOVED_PREFIX ".gone-"
#define REMOVED_DIGITS 16
#define DELETING       'x' /* in the place of the first digit */
#define WRITER_PREFIX  ".ckpt-writer"
#define SHARD_PREFIX   ".ckpt-shard-"
#define SUFFIX	       ".json"

#define ONGOING_LETTERS 7 /* of ".XXXXXX" after the name of an unfinished file */

void ckpt_name_step(char name[CKPT_NAME_SIZE], uint64_t step)
{
	snprintf(name, CKPT_NAME_SIZE, STEP_PREFIX "%08" PRIu64, step);
}

void ckpt_name_staging(char name[CKPT_NAME_SIZE], uint64_t step, uint64_t attempt, const char *life)
{
	snprintf(name, CKPT_NAME_SIZE,
		STAGING_PREFIX STEP_PREFIX "%08" PRIu64 ATTEMPT_INFIX "%" PRIu64 "%s%s", step,
		attempt, *life ? LIFE_INFIX : "", life);
}

void ckpt_name_scratch(
	char name[CKPT_NAME_SIZE], uint64_t step, uint64_t attempt, const char *life, uint64_t task)
{
	ckpt_name_staging(name, step, attempt, life);
	size_t length = strlen(name);
	snprintf(name + length, CKPT_NAME_SIZE - length, SCRATCH_INFIX "%" PRIu64, task);
}

bool ckpt_name_removed(char name[CKPT_REMOVED_SIZE], const char *entry, uint64_t inode)
{
	return snprintf(name, CKPT_REMOVED_SIZE, REMOVED_PREFIX "%016" PRIx64 "-%s", inode, entry) <
	       CKPT_REMOVED_SIZE;
}

void ckpt_name_deleting(char name[CKPT_REMOVED_SIZE], const char *removed)
{
	snprintf(name, CKPT_REMOVED_SIZE, "%s", removed);
	name[strlen(REMOVED_PREFIX)] = DELETING;
}

bool ckpt_name_gone(char name[CKPT_GONE_SIZE], const char *entry)
{
	uint64_t random = 0;
	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		random = (uint64_t)clock_utc() ^ ((uint64_t)getpid() << 44);
	return snprintf(name, CKPT_GONE_SIZE, REMOVED_PREFIX "%016" PRIx64 "-%s", random, entry) <
	       CKPT_GONE_SIZE;
}

const char *ckpt_name_read_gone(const char *name)
{
	const char *digits = name + strlen(REMOVED_PREFIX);
	if (strncmp(name, REMOVED_PREFIX, strlen(REMOVED_PREFIX)) != 0 ||
		strspn(digits, "0123456789abcdef") < REMOVED_DIGITS ||
		digits[REMOVED_DIGITS] != '-')
		return NULL;
	return digits + REMOVED_DIGITS + 1;
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
		size_t length = strlen(beside[i]);
		char made[CKPT_NAME_SIZE];
		if (strncmp(name, beside[i], length) != 0)
			continue;
		*kind = (enum ckpt_beside)i;
		*step = strtoull(name + length, NULL, 10);
		ckpt_name_beside(made, *kind, *step);
		return strcmp(made, name) == 0;
	}
	return false;
}

const char *ckpt_name_read_removed(const char *name, uint64_t *inode)
{
	const char *digits = name + strlen(REMOVED_PREFIX);
	if (strncmp(name, REMOVED_PREFIX, strlen(REMOVED_PREFIX)) != 0)
		return NULL;
	const size_t skipped = *digits == DELETING;
	if (strspn(digits + skipped, "0123456789abcdef") != REMOVED_DIGITS - skipped ||
		digits[REMOVED_DIGITS] != '-')
		return NULL;
	*inode = skipped ? 0 : strtoull(digits, NULL, 16);
	return digits + REMOVED_DIGITS + 1;
}

void ckpt_name_task(char name[CKPT_NAME_SIZE], uint64_t task)
{
	snprintf(name, CKPT_NAME_SIZE, "task-%" PRIu64, task);
}

void ckpt_name_writer(char name[CKPT_NAME_SIZE], bool sharded, uint64_t task)
{
	if (sharded)
		snprintf(name, CKPT_NAME_SIZE, WRITER_PREFIX "-%" PRIu64 SUFFIX, task);
	else
		snprintf(name, CKPT_NAME_SIZE, WRITER_PREFIX SUFFIX);
}

void ckpt_name_shard(char name[CKPT_NAME_SIZE], uint64_t task)
{
	snprintf(name, CKPT_NAME_SIZE, SHARD_PREFIX "%" PRIu64 SUFFIX, task);
}

/* The part of text after prefix; NULL: text does not begin with it. */
static const char *after(const char *text, const char *prefix)
{
	size_t length = strlen(prefix);
	return strncmp(text, prefix, length) == 0 ? text + length : NULL;
}

/* Read the first length bytes as a decimal number without leading zeros. */
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
	struct ckpt_name read = {.kind = CKPT_NAME_FOREIGN};
	char again[CKPT_NAME_SIZE];
	const char *digits = after(name, STEP_PREFIX);
	uint64_t step;
	if (!digits || parse_unsigned(digits, 0, CKPT_NUMBER_MAX, &step, "step", NULL) != STATUS_OK)
		return read;
	ckpt_name_step(again, step);
	if (strcmp(again, name) == 0)
		read = (struct ckpt_name){.kind = CKPT_NAME_STEP, .step = step};
	return read;
}

/*
 * Copy the part of *at before infix to head, and move *at behind infix. False: there is no infix.
 */
static bool split(const char **at, const char *infix, char head[CKPT_NAME_SIZE])
{
	const char *found = strstr(*at, infix);
	size_t length = found ? (size_t)(found - *at) : 0;
	if (!found || length >= CKPT_NAME_SIZE)
		return false;
	memcpy(head, *at, length);
	head[length] = '\0';
	*at = found + strlen(infix);
	return true;
}

/*
 * Read a name that ckpt_name_staging or ckpt_name_scratch makes. To check the spelling, make the
 * name from the parts again, and compare.
 */
static struct ckpt_name read_staging(const char *name)
{
	static const struct ckpt_name foreign = {.kind = CKPT_NAME_FOREIGN};
	char head[CKPT_NAME_SIZE], again[CKPT_NAME_SIZE];
	const char *at = after(name, STAGING_PREFIX);
	if (!at || !split(&at, ATTEMPT_INFIX, head))
		return foreign;
	struct ckpt_name read = read_step(head);
	size_t digits = strspn(at, "0123456789");
	if (read.kind != CKPT_NAME_STEP || !number(at, digits, &read.attempt))
		return foreign;
	at += digits;
	const char *life = after(at, LIFE_INFIX);
	if (life && strnlen(life, LIFE_SIZE) >= LIFE_SIZE - 1) {
		memcpy(read.life, life, LIFE_SIZE - 1);
		if (!life_is_valid(read.life))
			return foreign;
		at = life + LIFE_SIZE - 1;
	}
	const char *task = after(at, SCRATCH_INFIX);
	read.kind = task ? CKPT_NAME_SCRATCH : CKPT_NAME_STAGING;
	if (task && !number(task, strlen(task), &read.task))
		return foreign;
	if (task)
		ckpt_name_scratch(again, read.step, read.attempt, read.life, read.task);
	else
		ckpt_name_staging(again, read.step, read.attempt, read.life);
	return strcmp(again, name) == 0 ? read : foreign;
}

struct ckpt_name ckpt_name_read(const char *name)
{
	struct ckpt_name read = read_step(name);
	return read.kind == CKPT_NAME_FOREIGN ? read_staging(name) : read;
}

/* The reserved names; those from COPY on are transient. */
enum record { NONE, PART, MANIFEST, BAD, PIN, COPY, WRITER, TASK_WRITER, TASK_SHARD };

/* Which reserved name the first length bytes are, and the task's number in it. */
static enum record read_record(const char *name, size_t length, uint64_t *task)
{
	static const struct {
		const char *begin;
		const char *end; /* the part after a number; NULL: the name has no number */
	} names[] = {
		[NONE] = {"", NULL},
		[PART] = {CKPT_PART, NULL},
		[MANIFEST] = {CKPT_MANIFEST, NULL},
		[BAD] = {CKPT_BAD, NULL},
		[PIN] = {CKPT_PIN, NULL},
		[COPY] = {CKPT_COPY, NULL},
		[WRITER] = {WRITER_PREFIX SUFFIX, NULL},
		[TASK_WRITER] = {WRITER_PREFIX "-", SUFFIX},
		[TASK_SHARD] = {SHARD_PREFIX, SUFFIX},
	};
	for (enum record record = PART; record <= TASK_SHARD; record++) {
		size_t begin = strlen(names[record].begin);
		size_t end = names[record].end ? strlen(names[record].end) : 0;
		if (length < begin + end || memcmp(name, names[record].begin, begin) != 0)
			continue;
		if (!end ? length == begin
			 : memcmp(name + length - end, names[record].end, end) == 0 &&
					number(name + begin, length - begin - end, task))
			return record;
	}
	return NONE;
}

bool ckpt_name_is_shard(const char *name, uint64_t *task)
{
	return read_record(name, strlen(name), task) == TASK_SHARD;
}

bool ckpt_name_is_writer(const char *name, bool *sharded, uint64_t *task)
{
	enum record record = read_record(name, strlen(name), task);
	*sharded = record == TASK_WRITER;
	return *sharded || record == WRITER;
}

bool ckpt_name_is_ongoing(const char *name)
{
	uint64_t task;
	size_t length = strlen(name);
	return length > ONGOING_LETTERS && name[length - ONGOING_LETTERS] == '.' &&
	       !strchr(name + length - ONGOING_LETTERS + 1, '.') &&
	       read_record(name, length - ONGOING_LETTERS, &task) != NONE;
}

bool ckpt_name_is_transient(const char *name)
{
	uint64_t task;
	return read_record(name, strlen(name), &task) >= COPY || ckpt_name_is_ongoing(name);
}

bool ckpt_name_is_reserved(const char *name)
{
	uint64_t task;
	return read_record(name, strlen(name), &task) >= MANIFEST || ckpt_name_is_ongoing(name);
}
