/* SPDX-License-Identifier: MIT */
/*
 * Marks that are set on a published checkpoint: bad, pinned. Each mark is a small file inside the
 * checkpoint, written whole and durable, so it moves and disappears with the checkpoint. The
 * checkpoint's own files are never changed. Setting one mark never removes the other.
 *
 * A mark is there when its file is, whatever is in it: half a word that a checkpoint is bad is
 * enough.
 */
#ifndef CKPT_MARKS_H
#define CKPT_MARKS_H

#include <stdbool.h>

#include "base/error.h"

#define MARK_REASON_SIZE 200

struct marks {
	bool pinned;
	bool bad;
	char reason[MARK_REASON_SIZE]; /* why it is bad; empty: no reason was given */
};

/* Of the checkpoint that is open as directory. Fails where it could not be asked. */
enum status marks_read(int directory, struct marks *marks, struct error *err);
/* Only whether DIRECTORY/NAME is pinned. */
enum status marks_read_pinned(int directory, const char *name, bool *pinned, struct error *err);

/* Neither comes along when a save was made from a copy of another. */
enum status marks_clear(int directory, struct error *err);

#endif
