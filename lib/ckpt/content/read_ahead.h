/* SPDX-License-Identifier: MIT */
/*
 * The bytes of a file, from its beginning to its end, in large pieces. Of a large file a thread
 * reads ahead while the caller works on what it has: the disk does not wait for the processor, nor
 * the other way round.
 */
#ifndef CKPT_READ_AHEAD_H
#define CKPT_READ_AHEAD_H

#include <stddef.h>
#include <stdint.h>

/*
 * Call consume with each piece, in the calling thread. size: about how large the file is. 0 on
 * success, else the errno of a failed read.
 */
int read_ahead_file(int descriptor, uint64_t size,
	void (*consume)(void *context, const void *bytes, size_t length), void *context);

#endif
