/* SPDX-License-Identifier: MIT */
/*
 * The files below a directory: find and sync them, compute and compare their checksums.
 *
 * root is an open directory (not O_PATH, because that cannot be synced); names are relative to it.
 * Only files and directories are accepted; symbolic links are never followed. A hard link is a file
 * like any other. A file that was removed, but that an NFS client still shows, is not one of them.
 * Several threads compute checksums, and for a large file one more reads ahead, so that neither the
 * disk nor the processor waits for the other; they have ended on return.
 */
#ifndef CKPT_TREE_H
#define CKPT_TREE_H

#include <stdbool.h>
#include <time.h>

#include "base/error.h"
#include "ckpt/manifest.h"

#define TREE_DEPTH_MAX 64

/* What tree_find notes about directories, also empty ones. The caller zeroes all except part. */
struct tree_notes {
	const char *part;	 /* look for directories with this in their names; NULL: do not */
	char found[4096];	 /* the path of such a directory; empty: there is none */
	struct timespec changed; /* when a directory changed last; without a manifest, or a file */
};
/*
 * Add all files below root/below ("": root itself, without its reserved names) to manifest, sorted,
 * without checksums. With sync, also sync each directory. notes may be NULL. manifest NULL: only
 * note, and accept links and devices, too. STATUS_NO: something is gone, or cannot be in a
 * checkpoint; err says what. With notes, STATUS_TEMPORARY: a file vanished while the directory was
 * read.
 */
enum status tree_find(int root, const char *below, bool sync, struct manifest *manifest,
	struct tree_notes *notes, struct error *err);

/*
 * Sync each file that tree_find found, and compute its checksum. STATUS_NO: a file has changed
 * since; err names it.
 */
enum status tree_record(int root, struct manifest *manifest, struct error *err);

/* Whether a later tree_find found the same files, unchanged. False: err (STATUS_NO) names one. */
bool tree_is_unchanged(
	const struct manifest *before, const struct manifest *after, struct error *err);

/*
 * Compare the files below root with manifest: kind and size of each file, and with contents also
 * its checksum. Each directory on the way to a file must be a directory, not a symbolic link to
 * one. STATUS_NO: there is a difference; err says which. Others: it could not be asked, which does
 * not mean a difference.
 */
enum status tree_compare(
	int root, const struct manifest *manifest, bool contents, struct error *err);

#endif
