/* SPDX-License-Identifier: MIT */
/*
 * The marks of a published checkpoint: bad, pinned. Each mark is a small file in the checkpoint's
 * directory, so it moves and disappears with the checkpoint. It is durable, and never half written.
 * The checkpoint's own files never change. Setting one mark does not remove the other.
 *
 * A mark is set if its file exists, whatever the content is.
 */
#ifndef CKPT_MARKS_H
#define CKPT_MARKS_H

#include <stdbool.h>

#include "base/error.h"

#define MARK_REASON_SIZE 200

struct marks {
	bool pinned;
	bool bad;
	char reason[MARK_REASON_SIZE]; /* why it is bad; empty: none was given */
};

/* Read the marks of the checkpoint that is open as directory. */
enum status marks_read(int directory, struct marks *marks, struct error *err);
/* Read whether DIRECTORY/NAME is pinned. */
enum status marks_read_pinned(int directory, const char *name, bool *pinned, struct error *err);

/* Remove both marks: a new checkpoint may have been made from a copy of one that was marked. */
enum status marks_clear(int directory, struct error *err);

#endif
