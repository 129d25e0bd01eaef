/* SPDX-License-Identifier: MIT */
/*
 * Copying checkpoints of our layout from one directory to another, for example from a disk of this
 * machine to the shared filesystem, and removing the originals when the copies are safe.
 *
 * A copy is made in a temporary directory in DEST, which the next copy of the step removes if this
 * one is killed. All of it is read back, compared with the checksums in the manifest, and synced;
 * then the copy appears by one rename, with the same manifest. Marks (bad, pinned) and empty
 * directories are not copied.
 *
 * Answers as in ckpt/ckpt.h.
 */
#ifndef CKPT_COPY_H
#define CKPT_COPY_H

#include "ckpt/ckpt.h"

/*
 * Copy the checkpoint of a step. *copied: false if it was there already. *vanished: another process
 * has removed the original; then it is not STATUS_OK. STATUS_NO: there is no such complete
 * checkpoint, or DEST has it with other content. STATUS_DAMAGED: a file in DIR has another checksum
 * than in the manifest; nothing appears in DEST.
 */
enum status checkpoint_copy(const char *directory, const char *destination, uint64_t step,
	bool *copied, bool *vanished, struct error *err);

/*
 * Remove the original of a step whose copy in DEST is the same. copied: checkpoint_copy has just
 * copied it; otherwise the copy is read and synced. First the original is renamed; if the copy is
 * then gone (another process prunes DEST, or DEST is DIR under another path), it gets its name
 * back: STATUS_TEMPORARY. STATUS_NO: it stays, because it is pinned, or not complete, or because
 * there is no such copy.
 */
enum status checkpoint_move(const char *directory, const char *destination, uint64_t step,
	bool copied, struct error *err);

/* Give back, or delete, what a killed process has renamed away in DIR. */
enum status copy_settle(const char *directory, struct error *err);

/* STATUS_USAGE: both are the same directory. */
enum status copy_check_places(const char *directory, const char *destination, struct error *err);

#endif
