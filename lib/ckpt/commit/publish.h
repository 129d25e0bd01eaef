/* SPDX-License-Identifier: MIT */
/*
 * From finished to published: the one rename, the link "latest", the directory synced.
 */
#ifndef CKPT_PUBLISH_H
#define CKPT_PUBLISH_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/*
 * Rename DIR/staging to the name of step. inode: the directory that was examined. damaged: the
 * inode of a damaged checkpoint in its place, which is taken away first; 0: there is none.
 * STATUS_NO: another process was quicker, with either name: look again.
 */
enum status publish_rename(const char *directory, const char *staging, uint64_t inode,
	uint64_t step, uint64_t damaged, struct error *err);

/*
 * After the rename, by any process: remove the records inside that only served writing, point
 * "latest" at the highest step, sync DIR and its entry in its parent. Idempotent.
 * warning: what people should know although the checkpoint stands.
 */
enum status publish_settle(
	const char *directory, uint64_t step, char *warning, size_t size, struct error *err);

#endif
