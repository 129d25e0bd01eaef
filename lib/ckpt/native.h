/* SPDX-License-Identifier: MIT */
/*
 * Inspecting a checkpoint of our own layout.
 */
#ifndef CKPT_NATIVE_H
#define CKPT_NATIVE_H

#include "base/error.h"
#include "ckpt/ckpt.h"
#include "ckpt/directory.h"
#include "ckpt/manifest.h"

/*
 * Inspect a step. STATUS_NO: there is no such name. STATUS_OK: see found, also if it could not be
 * read. manifest (NULL: none): set if found is complete or bad; the caller releases it.
 */
enum status inspect_step(const char *directory, uint64_t step, bool contents,
	struct checkpoint *found, struct manifest *manifest, struct error *err);
/* Inspect an entry with one of our names: a step, or one that is not published. */
enum status native_inspect(const char *directory, const char *entry, bool contents,
	struct checkpoint *found, struct error *err);
/* The error for a step that could not be read, or is not ours. */
enum status inspect_refuse(
	const char *directory, const struct checkpoint *found, struct error *err);

#endif
