/* SPDX-License-Identifier: MIT */
/*
 * The manifest: what a checkpoint holds. A JSON document, one file per line, written last and
 * whole; a directory without it is no checkpoint. A shard's record is the same with "shard".
 *
 *   {"format": 1, "step": 120, "attempt": 3, "tasks": 4, "sharded": true,
 *    "life": "0123456789ab0123456789ab",
 *    "utc": "2026-01-31T12:00:00.123Z", "utc_ms": 1769860800123, "host": "node7", "uid": 1000,
 *    "metrics": {"loss": 0.25}, "bytes": 4096,
 *    "files": [
 *     {"name": "task-0/model", "bytes": 4096, "xxh3_128": "0123456789abcdef0123456789abcdef"}
 *   ]}
 *
 * Names are relative to the checkpoint. A name that is not UTF-8 stands as "name_hex".
 *
 * Owns its names: manifest_release, legal on a zeroed struct. Files are in the order of their names
 * (bytes compared), each once. Readers ignore members they do not know; a format greater than
 * theirs they refuse.
 */
#ifndef CKPT_MANIFEST_H
#define CKPT_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/error.h"
#include "base/process/life.h"
#include "base/text.h"
#include "ckpt/content/metrics.h"

#define MANIFEST_FORMAT	    1
#define MANIFEST_SIZE_LIMIT ((size_t)512 << 20)
#define MANIFEST_NO_SHARD   UINT64_MAX

struct manifest_file {
	char *name; /* no leading '/', no "." or ".." in it */
	uint64_t bytes;
	char checksum[33]; /* XXH3-128, canonical, lower-case hexadecimal */
	/* Which file it was, as ckpt/content/tree.h found it; not written. */
	uint64_t inode;
	struct timespec modified;
};

struct manifest {
	uint64_t step;
	uint64_t attempt;
	uint64_t tasks; /* how many shards, or as the one writer was told */
	bool sharded;
	char life[LIFE_SIZE]; /* that wrote all of it (base/process/life.h); "": not known */
	uint64_t shard; /* the task whose shard this records; MANIFEST_NO_SHARD: all there is */
	int64_t utc;	/* when committed, milliseconds since 1970 */
	char host[65];	/* where; of a merged one: task 0's */
	uint64_t uid;	/* by whom; of a merged one: task 0's */
	struct metrics metrics;
	struct manifest_file *files;
	size_t count;
	size_t capacity;
};

void manifest_release(struct manifest *manifest);

/* The sum of its files. */
uint64_t manifest_bytes(const struct manifest *manifest);

/* Add a file; name is copied. Valid until the next one is added. */
struct manifest_file *manifest_add(struct manifest *manifest, const char *name, uint64_t bytes);
void manifest_sort(struct manifest *manifest);

/* Whether both list the same files with the same sizes and checksums. Both sorted. */
bool manifest_same_files(const struct manifest *a, const struct manifest *b);
/* The same, but only of those files in whole whose name begins with prefix. */
bool manifest_same_below(
	const struct manifest *whole, const struct manifest *part, const char *prefix);

/*
 * Append the document. Depends on nothing but the manifest, so that all tasks that merge the same
 * shards write the same bytes.
 */
void manifest_write(const struct manifest *manifest, struct text *text);

/*
 * STATUS_NO: this is no manifest (err says why). STATUS_DAMAGED: of a newer format, refused.
 */
enum status manifest_read(
	const char *text, size_t length, struct manifest *manifest, struct error *err);

/* Of a file; also STATUS_NO when it is missing or too large. Else what reading a file answers. */
enum status manifest_load(const char *path, struct manifest *manifest, struct error *err);
/* Whole and durable, with the rights that the umask gives a new file. */
enum status manifest_save(const char *path, const struct manifest *manifest, struct error *err);

#endif
