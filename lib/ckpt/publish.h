/* SPDX-License-Identifier: MIT */
/*
 * Publishing a finished checkpoint: one rename, the link "latest", and a sync of the directory.
 */
#ifndef CKPT_PUBLISH_H
#define CKPT_PUBLISH_H

#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

/*
 * Rename DIR/.tmp-..., whose path is staging and which has this inode, to the name of step.
 * damaged (0: none): the inode of a damaged or bad checkpoint of that name, which is renamed away
 * first. STATUS_NO: another process has renamed one of the two, or published the step, before us;
 * look again.
 */
enum status publish_rename(const char *directory, const char *staging, uint64_t inode,
	uint64_t step, uint64_t damaged, struct error *err);

/*
 * Called after the rename; any process may call it, also again. Remove the records that were needed
 * for writing, let "latest" point to the highest step, sync DIR and its entry in its parent, delete
 * a checkpoint that was replaced. warning: what a user should know although the checkpoint is
 * complete.
 */
enum status publish_settle(
	const char *directory, uint64_t step, struct text *warning, struct error *err);

/*
 * Let "latest" in the open DIR point to the highest step; if there is none, remove the link if it
 * points nowhere. A link that is not ours stays.
 */
void publish_latest(const char *directory, int descriptor, struct text *warning);

#endif
