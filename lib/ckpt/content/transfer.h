/* SPDX-License-Identifier: MIT */
/*
 * One file's bytes to another filesystem: by the kernel where it can (copy_file_range, which also
 * shares the blocks where the filesystem can), else read and written. Holes stay holes.
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
	void (*progress)(uint64_t bytes); /* NULL: do not report */
};

/* One copy: open directories, and what a file is called until all of it is written. */
struct transfer {
	int from, to;
	const char *part; /* in to; no file has this name */
	struct transfer_pace pace;
};

/*
 * Make a new file TO/name with the contents of FROM/name, bytes long, and its mode as far as the
 * umask allows; missing directories on the way are made. Nothing is synced, and nothing is left
 * under the name of part. A file that has the name already stays.
 * STATUS_NO: the source is missing, is no file, or has another size; err says which.
 */
enum status transfer_file(
	struct transfer *transfer, const char *name, uint64_t bytes, struct error *err);

/* Move FROM/part to TO/name, of the same filesystem, unless TO has that name. Missing directories
 * on the way are made. 0, or errno. */
int transfer_move(int from, const char *part, int to, const char *name);

#endif
