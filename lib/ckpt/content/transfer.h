/* SPDX-License-Identifier: MIT */
/*
 * One file's bytes to another filesystem: shared with the original where the filesystem can
 * (reflink), by the kernel where it can (copy_file_range), else read and written. Holes stay holes.
 */
#ifndef CKPT_TRANSFER_H
#define CKPT_TRANSFER_H

#include <stdint.h>

#include "base/error.h"

/* How fast, over all files of a copy. A zeroed one has no limit. */
struct transfer_pace {
	uint64_t bytes_per_second;
	int64_t began; /* of clock_now, at the first byte */
	uint64_t bytes;
	void (*progress)(uint64_t bytes); /* NULL: nobody watches */
};

/*
 * Make DIRECTORY/name, a new file, with the contents of from/name, bytes long, and its rights as
 * far as the umask allows. It has that name only when all of it is written: before, it is called
 * part, in directory, which is removed on failure. A file of that name that is there stays.
 * Missing directories on the way are made. Nothing is synced.
 * STATUS_NO: the source is missing, is no file, or has another size; err says which.
 */
enum status transfer_file(int from, int directory, const char *name, uint64_t bytes,
	const char *part, struct transfer_pace *pace, struct error *err);

/* Move directory/name to another directory of the same filesystem, parents made. 0, or errno. */
int transfer_move(int from, int directory, const char *name);

#endif
