/* SPDX-License-Identifier: MIT */
/*
 * One copy of one checkpoint: its files are brought into a temporary directory in DEST, read back
 * and synced there. What is done with them then depends on the layout. Private to ckpt/tiers/.
 */
#ifndef CKPT_COPYING_H
#define CKPT_COPYING_H

#include "ckpt/content/manifest.h"
#include "ckpt/content/transfer.h"
#include "ckpt/layout/layout.h"
#include "ckpt/tiers/copy.h"

/* How often others may publish or take away under our hands before we give up. */
#define COPYING_TRIES 8

struct copying {
	const char *directory;
	const char *destination;
	const struct manifest *manifest; /* of the original */
	struct transfer transfer;	 /* from: the original, open */
	struct copy_answer *answer;
	char staging[LAYOUT_NAME_SIZE];
	char *path;	  /* DEST/STAGING */
	int root;	  /* DEST/STAGING, open and locked */
	uint64_t inode;	  /* which directory that is */
	uint64_t damaged; /* of ours: inode of a damaged checkpoint that has the final name; 0: none
			   */
	bool again;	  /* another process changed something: look again */
};

/* Open the temporary directory, if it is there, and lock it. -1 in root: it is not. */
enum status copying_open(struct copying *copying, struct error *err);
void copying_close(struct copying *copying);

/*
 * All files of the manifest in the temporary directory, as the manifest says, read back and synced;
 * what it holds already is used. STATUS_DAMAGED: the original is not what the manifest says.
 */
enum status copying_bring(struct copying *copying, struct error *err);

/*
 * Copy item, of a framework's layout (options->choice). There is no manifest: the checksums are
 * taken from the original, which must not change before that. copying has directory, destination,
 * transfer's pace and answer.
 */
enum status copying_framework(struct copying *copying, const struct layout_choice *choice,
	const struct checkpoint *item, struct error *err);

#endif
