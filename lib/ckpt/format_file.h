/* SPDX-License-Identifier: MIT */
/*
 * A file that is looked at here and there, and what is wrong with it. Only the first thing that is
 * wrong is kept: a function that finds more does no harm, so that few answers have to be asked for.
 */
#ifndef CKPT_FORMAT_FILE_H
#define CKPT_FORMAT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct file {
	int root;
	const char *name;
	char ending[24]; /* " .pt ", or " /.metadata " for a name that is only an ending */
	uint64_t bytes;
	int descriptor;
	unsigned char *part;	/* what is in memory */
	uint64_t start, filled; /* where the part begins, and its bytes */
	enum status status;
	struct error *why;
};

/* Open root/name; a link is followed. STATUS_NO: it is missing, or not a file. */
enum status file_open(int root, const char *name, struct file *file, struct error *why);
/* Close the file, and return its status. */
enum status file_close(struct file *file);

/* The file is damaged: "NAME FORMAT". */
void file_wrong(struct file *file, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The bytes at an offset, until the next call. NULL: the file is cut short, or wrong already. */
const unsigned char *file_bytes(struct file *file, uint64_t offset, uint64_t length);
/* The number at an offset, of up to eight bytes, the lowest first. 0: as above. */
uint64_t file_number(struct file *file, uint64_t offset, size_t width);
/* Whether the file has these bytes there. That it is shorter is not wrong. */
bool file_has(struct file *file, uint64_t offset, const void *bytes, size_t length);

/* Check an index of TensorFlow and its data files (format_tensorflow.c). */
void format_check_tensorflow(struct file *index);

#endif
