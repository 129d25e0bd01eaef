/* SPDX-License-Identifier: MIT */
/*
 * Copying the files of a checkpoint into a temporary directory in DEST, reading them back, and
 * syncing them. The next steps depend on the layout. Private to ckpt/tiers/.
 */
#ifndef CKPT_COPYING_H
#define CKPT_COPYING_H

#include "ckpt/copy.h"
#include "ckpt/layout/layout.h"
#include "ckpt/manifest.h"
#include "ckpt/transfer.h"

/* We give up when other processes have published or removed something this number of times. */
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
	uint64_t inode;	  /* of DEST/STAGING */
	uint64_t damaged; /* inode of a damaged checkpoint of ours with the final name; 0: none */
	bool again;	  /* another process changed something: look again */
};

/* Open the temporary directory and lock it. root is -1: there is none. */
enum status copying_open(struct copying *copying, struct error *err);
void copying_close(struct copying *copying);

/* Move the files that an earlier copy has finished in the open directory `old`. A file that cannot
 * be moved is copied again. */
void copying_take_over(struct copying *copying, int old);

/* STATUS_TEMPORARY: another copy, for which locks have no effect, has taken the directory away. */
enum status copying_confirm(const struct copying *copying, struct error *err);

/*
 * Copy all files of the manifest into the temporary directory, read them back and sync them. Files
 * that are there already are used. STATUS_DAMAGED: the original differs from the manifest.
 */
enum status copying_bring(struct copying *copying, struct error *err);

/*
 * Copy item, of a framework's layout. There is no manifest: the checksums are computed from the
 * original, which must not change until it is copied. The caller has set directory, destination,
 * answer and the pace of transfer in copying.
 */
enum status copying_framework(struct copying *copying, const struct layout_choice *choice,
	const struct checkpoint *item, struct error *err);

#endif
