/* SPDX-License-Identifier: MIT */
/*
 * The files below a directory: walk through them, sync them, compute and compare their checksums.
 *
 * root is an open directory (not O_PATH, because that cannot be synced); paths are relative to it.
 * Symbolic links are never followed, and a hard link is a file like any other. A file that was
 * removed, but that an NFS client still shows, is not there.
 */
#ifndef CKPT_TREE_H
#define CKPT_TREE_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/error.h"
#include "ckpt/manifest.h"

/*
 * Gets the path of an entry, or "." for root, and its state as of lstat; NULL: it has vanished
 * meanwhile. directory: the entry, open, if it is one; else -1. The walk ends when this does not
 * return STATUS_OK, and returns the same.
 */
typedef enum status tree_visitor(
	void *context, const char *path, int directory, const struct stat *st, struct error *err);

/*
 * Visit each entry below root/below ("": root), and that directory itself: a directory after its
 * contents, with the state that it then has. STATUS_NO: there is no root/below.
 */
enum status tree_walk(
	int root, const char *below, tree_visitor *visit, void *context, struct error *err);

/*
 * Add all files below root/below (of root without its reserved names) to manifest, sorted, without
 * checksums. sync: also sync each directory. STATUS_NO: something is gone, or cannot be in a
 * checkpoint.
 */
enum status tree_find(
	int root, const char *below, bool sync, struct manifest *manifest, struct error *err);

/*
 * tree_find with sync, and sync each file and compute its checksum. STATUS_NO: also if something
 * changed meanwhile.
 */
enum status tree_record(int root, const char *below, struct manifest *manifest, struct error *err);

/*
 * Open a file of a manifest. STATUS_NO: it is missing, has another kind or size, or the way to it
 * leads through a link.
 */
enum status tree_open_file(
	int root, const struct manifest_file *file, int flags, int *descriptor, struct error *err);

/*
 * Compare the files below root with manifest: kind and size of each file, and with contents also
 * its checksum. STATUS_NO: there is a difference; err says which. Others: it could not be asked,
 * which does not mean a difference.
 */
enum status tree_compare(
	int root, const struct manifest *manifest, bool contents, struct error *err);

/* Call the function of checkpoint_on_progress, if there is one. */
void tree_tell_progress(uint64_t bytes);

#endif
