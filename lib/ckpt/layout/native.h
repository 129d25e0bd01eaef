/* SPDX-License-Identifier: MIT */
/*
 * Judge what bears a name of ours: complete, damaged and why, incomplete and who is missing.
 */
#ifndef CKPT_NATIVE_H
#define CKPT_NATIVE_H

#include "base/error.h"
#include "ckpt/ckpt.h"
#include "ckpt/content/manifest.h"
#include "ckpt/directory.h"

/*
 * STATUS_NO: it is not there (any more). STATUS_OK: found says what it is, which may be "could not
 * be asked". manifest, where not NULL and found is complete or bad, is given to the caller.
 */
enum status inspect_step(const char *directory, uint64_t step, bool contents,
	struct checkpoint *found, struct manifest *manifest, struct error *err);
/* The error where what was found has the name of a step, but cannot be asked, or is not ours. */
enum status inspect_refuse(
	const char *directory, const struct checkpoint *found, struct error *err);

#endif
