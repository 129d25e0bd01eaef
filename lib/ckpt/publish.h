/* SPDX-License-Identifier: MIT */
/*
 * Publishing a finished checkpoint: one rename, the link "latest", and a sync of the directory.
 */
#ifndef CKPT_PUBLISH_H
#define CKPT_PUBLISH_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/*
 * Rename DIR/staging, which has this inode, to the name of step. damaged (0: none): the inode of a
 * damaged checkpoint of that name, which is removed first. STATUS_NO: another process has renamed
 * one of the two, or published the step, before us; look again.
 */
enum status publish_rename(const char *directory, const char *staging, uint64_t inode,
	uint64_t step, uint64_t damaged, struct error *err);

/*
 * Called after the rename; any process may call it, also again. Remove the records that were needed
 * for writing, let "latest" point to the highest step, sync DIR and its entry in its parent.
 * warning: what a user should know although the checkpoint is complete.
 */
enum status publish_settle(
	const char *directory, uint64_t step, char *warning, size_t size, struct error *err);

/* The part of publish_settle that lets "latest" in the open DIR point to the highest step. */
void publish_latest(const char *directory, int descriptor, char *warning, size_t size);

#endif
