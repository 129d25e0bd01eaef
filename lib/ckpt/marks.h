/* SPDX-License-Identifier: MIT */
/*
 * The marks of a published checkpoint of ours, bad and pinned. Each is a file in its directory, so
 * it moves and disappears with the checkpoint. A mark is set if its file exists, whatever the
 * content is.
 */
#ifndef CKPT_MARKS_H
#define CKPT_MARKS_H

#include <stdbool.h>

#include "base/error.h"

struct marks {
	bool pinned, bad;
	char reason[200]; /* why it is bad; "": none was given */
};

/* Read the marks of the checkpoint that is open as directory. */
enum status marks_read(int directory, struct marks *marks, struct error *err);
/* Read whether DIRECTORY/NAME is pinned. */
enum status marks_read_pinned(int directory, const char *name, bool *pinned, struct error *err);
/* Remove both marks: a new checkpoint may have been made from a copy of one that was marked. */
enum status marks_clear(int directory, struct error *err);

#endif
