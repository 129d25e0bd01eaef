/* SPDX-License-Identifier: MIT */
/*
 * Write files that appear whole or not at all, and read small files whole. Errors name the path and
 * the reason. The status is that of error_status_of_errno; STATUS_NO if a file to read is missing.
 */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/text.h"

/* The mode that the umask gives a new file. Not while other threads make files. */
mode_t file_new_mode(void);

/*
 * Replace the contents of path: write a temporary file beside it, then rename it. durable: sync the
 * file and its directory before returning. On failure the temporary file is removed.
 */
enum status file_write_whole(const char *path, const void *bytes, size_t length, mode_t mode,
	bool durable, struct error *err);

/*
 * Append the contents of path to text. STATUS_DAMAGED: it has more than limit bytes, or is not a
 * regular file (so this never waits for a pipe).
 */
enum status file_read_whole(const char *path, size_t limit, struct text *text, struct error *err);

/* The same from a descriptor of any kind, which stays open; name is for errors. */
enum status file_read_descriptor(
	int descriptor, const char *name, size_t limit, struct text *text, struct error *err);

/* The names in a directory without "." and "..", unsorted. A zeroed struct has none. */
struct file_names {
	char **names;
	size_t count;
};
/*
 * Read the names in an open directory. It is opened again for this, so that a network filesystem
 * asks its server. path: for errors. Zero *names before, and release it, also after an error.
 */
enum status file_read_names(
	int directory, const char *path, struct file_names *names, struct error *err);
void file_names_release(struct file_names *names);

/*
 * Write all bytes: retry after EINTR, continue short writes. 0, or -1 and errno. Waits for the
 * reader of a full pipe also if another process that shares the pipe has made it non-blocking.
 */
int file_write_all(int descriptor, const void *bytes, size_t length);

/*
 * Make a new file, mode 0600, in an open directory and open it for reading and writing; the last
 * six characters of name, "XXXXXX", are replaced by random ones. -1 and errno on failure.
 */
int file_make_temporary(int directory, char *name);

/* Make one directory in a parent that exists. *made: it did not exist. STATUS_DAMAGED: path exists,
 * but is no directory. */
enum status file_make_directory(const char *path, mode_t mode, bool *made, struct error *err);

/* fsync a directory, so that a rename or a new name in it is durable. */
enum status file_sync_directory(const char *path, struct error *err);

/*
 * fstatat: 0, or -1 and errno. On GlusterFS it may fail with EBADFD when another process has just
 * closed its descriptor of that file: file_stat then tries again for 0.1 s.
 */
int file_stat(int directory, const char *path, int flags, struct stat *st);
/* When it changed last, in milliseconds since 1970. */
int64_t file_changed(const struct stat *st);

/* fstat, with the same retries. */
int file_fstat(int descriptor, struct stat *st);

/*
 * An NFS client may remember for up to a minute that a name did not exist. Opening the directory
 * makes the client ask the server for new names. directory: relative to outer, as in openat.
 * Returns 0, or the errno of opening it.
 */
int file_ask_for_names(int outer, const char *directory);

/* The directory part of a path: "." for a bare name, "/" for "/NAME"; malloc'd. */
char *file_directory_of(const char *path);

/*
 * Rename without replacing: 0, or an errno (EEXIST or ENOTEMPTY: new_name exists). On a filesystem
 * that cannot do this (NFS), a file first gets new_name as a hard link; a directory may replace an
 * empty one, and, where there are no hard links, a file may replace another.
 */
int file_rename_new(int from, const char *name, int to, const char *new_name);

/* Remove a directory and everything below it; symbolic links are not followed. */
enum status file_remove_tree(const char *path, struct error *err);
/* The same for a name in an open directory, which may have been renamed in the meantime. */
enum status file_remove_tree_at(int directory, const char *name, struct error *err);

#endif
