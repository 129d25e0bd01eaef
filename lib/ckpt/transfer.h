/* SPDX-License-Identifier: MIT */
/*
 * Copying a file: with copy_file_range (which may share blocks) if the kernel can, otherwise by
 * reading and writing. Holes stay holes.
 */
#ifndef CKPT_TRANSFER_H
#define CKPT_TRANSFER_H

#include <stdint.h>

#include "base/error.h"

/* The speed limit of all files of a copy. Zeroed: no limit. */
struct transfer_pace {
	uint64_t bytes_per_second;
	int64_t began; /* clock_now at the first byte */
	uint64_t bytes;
	void (*progress)(uint64_t bytes); /* NULL: do not report */
};

/* A copy between two open directories. */
struct transfer {
	int from, to;
	const char *part; /* the name in `to` of a file that is being written */
	struct transfer_pace pace;
};

/*
 * Copy FROM/name, which has this number of bytes, to a new file TO/name, with its mode as far as
 * the umask allows. Make missing directories on the way. Nothing is synced, and no file with the
 * name `part` is left. An existing TO/name stays as it is. STATUS_NO: the source is missing, is not
 * a file, or has another size; err says which.
 */
enum status transfer_file(
	struct transfer *transfer, const char *name, uint64_t bytes, struct error *err);

/* Move FROM/part to TO/name on the same filesystem, unless that exists. Make missing directories on
 * the way. Returns 0, or an errno. */
int transfer_move(int from, const char *part, int to, const char *name);

#endif
