/* SPDX-License-Identifier: MIT */
/*
 * Reading a file in large pieces. For a large file, a thread reads ahead while the caller works on
 * an earlier piece, so that neither the disk nor the processor waits for the other.
 */
#ifndef CKPT_READ_AHEAD_H
#define CKPT_READ_AHEAD_H

#include <stddef.h>
#include <stdint.h>

/*
 * Call consume with each piece, in the calling thread. size: the approximate size of the file.
 * Returns 0, or the errno of a failed read.
 */
int read_ahead_file(int descriptor, uint64_t size,
	void (*consume)(void *context, const void *bytes, size_t length), void *context);

#endif
