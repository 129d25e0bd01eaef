/* SPDX-License-Identifier: MIT */
/*
 * The manifest: the list of a checkpoint's files. It is a JSON document with one file per line, and
 * is written last, with one rename; a directory without it is not a checkpoint. The record of a
 * shard is a manifest with the member "shard".
 *
 *   {"format": 1, "step": 120, "attempt": 3, "tasks": 4, "sharded": true,
 *    "life": "0123456789ab0123456789ab",
 *    "utc": "2026-01-31T12:00:00.123Z", "utc_ms": 1769860800123, "host": "node7", "uid": 1000,
 *    "metrics": {"loss": 0.25}, "bytes": 4096,
 *    "files": [
 *     {"name": "task-0/model", "bytes": 4096, "xxh3_128": "0123456789abcdef0123456789abcdef"}
 *   ]}
 *
 * A name that is not UTF-8 is written as "name_hex". Files are sorted by the bytes of their names,
 * without duplicates. A reader ignores members that it does not know, and refuses a newer format.
 *
 * Free the names with manifest_release, which accepts a zeroed struct, too.
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
#include "ckpt/metrics.h"

#define MANIFEST_FORMAT	    1
#define MANIFEST_SIZE_LIMIT ((size_t)512 << 20)
#define MANIFEST_NO_SHARD   UINT64_MAX

struct manifest_file {
	char *name; /* a relative path; no part of it is empty, "." or ".." */
	uint64_t bytes;
	char checksum[33]; /* XXH3-128, canonical, lower-case hexadecimal */
	uint64_t inode;	   /* this and the next one by tree_find (tree.h); not in the document */
	struct timespec modified;
};

struct manifest {
	uint64_t step;
	uint64_t attempt;
	uint64_t tasks; /* of the job, as given to commit; if sharded, the number of shards */
	bool sharded;
	char life[LIFE_SIZE]; /* of its attempt (base/process/life.h); "": not known */
	uint64_t shard; /* the task of this shard; MANIFEST_NO_SHARD: this is a whole checkpoint */
	int64_t utc;	/* when it was committed, milliseconds since 1970 */
	char host[65];	/* the machine of the commit; if sharded, of task 0's commit */
	uint64_t uid;	/* the user of that commit */
	struct metrics metrics;
	struct manifest_file *files;
	size_t count;
	size_t capacity;
};

void manifest_release(struct manifest *manifest);

/* The sum of the sizes of its files. */
uint64_t manifest_bytes(const struct manifest *manifest);

/* Add a file, and copy name. The pointer is valid until the next one is added. */
struct manifest_file *manifest_add(struct manifest *manifest, const char *name, uint64_t bytes);
void manifest_sort(struct manifest *manifest);
/* In a sorted one: the index of the first file whose name is not less than this; count: none. */
size_t manifest_place(const struct manifest *manifest, const char *name);

/*
 * Compare two sorted ones: names, sizes, and, where both have them, checksums, and inodes with
 * times of change. NULL: they have the same files; else the name of the first that differs.
 */
const char *manifest_difference(const struct manifest *a, const struct manifest *b);

/* Append the document. The same manifest always gives the same bytes. */
void manifest_write(const struct manifest *manifest, struct text *text);
/* STATUS_NO: this is not a manifest (err says why). STATUS_DAMAGED: it is of a newer format. */
enum status manifest_read(
	const char *text, size_t length, struct manifest *manifest, struct error *err);

/* manifest_read of a file. STATUS_NO: also if it is missing or too large. */
enum status manifest_load(const char *path, struct manifest *manifest, struct error *err);
/* Write it durably, by a rename, with the mode that the umask gives a new file. */
enum status manifest_save(const char *path, const struct manifest *manifest, struct error *err);

#endif
