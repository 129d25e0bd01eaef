/* SPDX-License-Identifier: MIT */
/*
 * The files below a directory: found, synced, their checksums taken or compared.
 *
 * root is an open directory (O_PATH will not do for syncing); names are relative to it. What is
 * neither a file nor a directory is refused; symbolic links are never followed. A hard link is a
 * file like any other. Checksums are taken by several threads, which have ended on return.
 */
#ifndef CKPT_TREE_H
#define CKPT_TREE_H

#include <stdbool.h>
#include <time.h>

#include "base/error.h"
#include "ckpt/content/manifest.h"

#define TREE_DEPTH_MAX 64

/* What tree_find notes of directories, empty ones, too. All but part is zeroed before. */
struct tree_notes {
	const char *part;	 /* what the name of a directory may hold; NULL: nothing */
	char found[4096];	 /* the path of one whose name holds it; empty: there is none */
	struct timespec changed; /* when one of them changed last */
};
/*
 * Add to manifest all files below root/below ("": root itself, whose reserved names are left out),
 * sorted, without checksums. With sync, each directory is synced on the way. notes may be NULL.
 * STATUS_NO: something there cannot be in a checkpoint, err says what.
 */
enum status tree_find(int root, const char *below, bool sync, struct manifest *manifest,
	struct tree_notes *notes, struct error *err);

/*
 * Take the checksum of each file that tree_find found, and sync it. STATUS_NO: one is not, or no
 * longer, what was found: err names it.
 */
enum status tree_record(int root, struct manifest *manifest, struct error *err);

/* STATUS_NO: something on the way to a file of manifest is missing, or no directory. */
enum status tree_check_directories(int root, const struct manifest *manifest, struct error *err);

/* Whether a later tree_find found exactly the same, unchanged. If not, err (STATUS_NO) names one.
 */
bool tree_is_unchanged(
	const struct manifest *before, const struct manifest *after, struct error *err);

/*
 * Compare the files below root with manifest: kind and size of every file, and with contents its
 * checksum; each part of the way to a file must be a directory, not a symbolic link to one.
 * STATUS_NO: it differs, err says how. Others: could not be asked, which is no difference.
 */
enum status tree_compare(
	int root, const struct manifest *manifest, bool contents, struct error *err);

#endif
