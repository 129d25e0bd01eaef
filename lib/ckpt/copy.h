/* SPDX-License-Identifier: MIT */
/*
 * Copying checkpoints from one directory to another, for example from a disk of this machine to the
 * shared filesystem, and removing them from the first when the copy is safe.
 *
 * A checkpoint of our layout is copied into a temporary directory in DEST, with a record of the
 * writer, as in a save. The copied files are read back, compared with the checksums in the
 * manifest, and synced; then the copy appears by one rename, with the same manifest. If a copy is
 * killed, the next one uses the files that it has copied. Marks (bad, pinned) and empty directories
 * are not copied.
 *
 * The copy of a framework's checkpoint keeps its name and the times of its files. The copied files
 * are read back and compared with checksums of the original, which must not change before that.
 * Then a directory appears by one rename; several files appear one after the other, the index last,
 * and have new times until all are there.
 * If the framework's tracker names the checkpoint when the copy begins or ends, that tracker is
 * copied, too, unless that in DEST names this or a later step.
 *
 * Answers as in ckpt/ckpt.h.
 */
#ifndef CKPT_COPY_H
#define CKPT_COPY_H

#include "ckpt/ckpt.h"
#include "ckpt/layout/layout.h"
#include "ckpt/prune.h"

struct copy_options {
	const struct layout_choice *choice; /* how to read DIR and DEST */
	uint64_t bytes_per_second;	    /* 0: no limit */
	void (*progress)(
		uint64_t bytes); /* called with the bytes since the last call; NULL: none */
};

struct copy_answer {
	bool copied;	   /* false: it was there already */
	uint64_t files;	   /* number of files in the checkpoint */
	uint64_t bytes;	   /* size of the checkpoint */
	uint64_t found;	   /* number of files that an interrupted copy had copied */
	char warning[256]; /* a message that does not change the answer; or empty */
};

/*
 * Copy item, which is found by its step (our layout) or its name. STATUS_NO: there is no such
 * complete checkpoint, or DEST has it with other content. STATUS_DAMAGED: a file in DIR has another
 * checksum than in the manifest; nothing appears in DEST. STATUS_USAGE: DEST has checkpoints of
 * another layout.
 */
enum status checkpoint_copy(const char *directory, const char *destination,
	const struct checkpoint *item, const struct copy_options *options,
	struct copy_answer *answer, struct error *err);

/*
 * Remove each complete checkpoint from DIR whose copy in DEST was read and is equal; the newest
 * complete one only with newest_too. First it is renamed; if the copy is then gone (DEST is DIR
 * under another path), it gets its name back. Pinned, damaged and incomplete checkpoints stay.
 */
enum status checkpoint_drain(const char *directory, const char *destination, bool newest_too,
	const struct prune_request *request, struct prune_report *report, struct error *err);

/* STATUS_USAGE: both are the same directory. */
enum status copy_check_places(const char *directory, const char *destination, struct error *err);

#endif
