/* SPDX-License-Identifier: MIT */
/*
 * From one directory of checkpoints to another, say from a disk of this machine to the shared
 * filesystem, and off the first when it is safe on the second.
 *
 * A copy of ours is made in DEST as a save is: in a temporary directory, with a record of who
 * writes; its files are read back, compared with the manifest's checksums, and synced; then it
 * appears by one rename, with the manifest it had. A copy that is killed leaves files that the next
 * copy uses. Marks (bad, pinned) and empty directories do not come along.
 *
 * A copy of a framework's keeps its name and the times of its files. Its files are read back and
 * compared with checksums of the original, which must not change before that; then a directory
 * appears by one rename, and several files one after the other, the index last. Where the
 * framework's tracker names the checkpoint, the tracker follows it, unless that of DEST names a
 * later step.
 *
 * Answers as in ckpt/ckpt.h.
 */
#ifndef CKPT_COPY_H
#define CKPT_COPY_H

#include "ckpt/ckpt.h"
#include "ckpt/layout/layout.h"
#include "ckpt/prune.h"

struct copy_options {
	const struct layout_choice *choice; /* how DIR is read, and then DEST */
	uint64_t bytes_per_second;	    /* 0: as fast as it goes */
	void (*progress)(uint64_t bytes);   /* bytes copied since the last call; NULL: do not */
};

struct copy_answer {
	bool copied;	   /* else it was there already */
	uint64_t files;	   /* of the checkpoint */
	uint64_t bytes;	   /* of the checkpoint */
	uint64_t found;	   /* files that an earlier copy had brought */
	char warning[256]; /* a message that does not change the answer; or empty */
};

/*
 * item: by its step (ours) or its name. STATUS_NO: there is no such complete checkpoint, or DEST
 * has it with other content. STATUS_DAMAGED: the checksum of a file in DIR is not what the manifest
 * says; nothing appears. STATUS_USAGE: DEST holds checkpoints of another layout.
 */
enum status checkpoint_copy(const char *directory, const char *destination,
	const struct checkpoint *item, const struct copy_options *options,
	struct copy_answer *answer, struct error *err);

/*
 * Remove from DIR every complete checkpoint whose copy in DEST was read and is the same, except the
 * newest complete one of DIR, unless newest_too. By renaming away: if the copy is not found when it
 * is renamed (DEST is DIR by another way), it is given back. Damaged and incomplete ones stay.
 */
enum status checkpoint_drain(const char *directory, const char *destination, bool newest_too,
	const struct prune_request *request, struct prune_report *report, struct error *err);

/* STATUS_USAGE: both are the same directory. */
enum status copy_check_places(const char *directory, const char *destination, struct error *err);

#endif
