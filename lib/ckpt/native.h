/* SPDX-License-Identifier: MIT */
/* Inspecting a checkpoint of our own layout, and reading its marks. */
#ifndef CKPT_NATIVE_H
#define CKPT_NATIVE_H

#include "base/error.h"
#include "ckpt/ckpt.h"
#include "ckpt/manifest.h"

/*
 * The marks of a published checkpoint. Each is a file in its directory, so it moves and disappears
 * with the checkpoint. A mark is set if its file exists, whatever the content is.
 */
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

/*
 * Inspect a step. STATUS_NO: there is no such name. STATUS_OK: see found, also if it could not be
 * read. manifest (NULL: none): set if found is complete or bad; the caller releases it.
 */
enum status inspect_step(const char *directory, uint64_t step, bool contents,
	struct checkpoint *found, struct manifest *manifest, struct error *err);
/* Inspect an entry with one of our names: a step, or one that is not published. */
enum status native_inspect(const char *directory, const char *entry, bool contents,
	struct checkpoint *found, struct error *err);
/* Set the state; why: the error of one that is not complete. */
void checkpoint_conclude(
	struct checkpoint *found, enum checkpoint_state state, const struct error *why);
/* The error for a step that could not be read, or is not ours. */
enum status inspect_refuse(
	const char *directory, const struct checkpoint *found, struct error *err);

#endif
