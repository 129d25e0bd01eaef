/* SPDX-License-Identifier: MIT */
/*
 * Files that appear whole or not at all, and small files read whole. Errors carry the path and the
 * reason; their status follows error_status_of_errno, except that a missing file is STATUS_NO.
 */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/text.h"

/*
 * Replace path by these bytes: temporary file beside it, rename. With durable, the file and its
 * directory are synced before success is answered. Nothing is left behind when it fails.
 */
enum status file_write_whole(const char *path, const void *bytes, size_t length, mode_t mode,
	bool durable, struct error *err);

/*
 * Append what path holds to text. STATUS_DAMAGED: it holds more than limit bytes, or is no regular
 * file (a pipe is never waited for).
 */
enum status file_read_whole(const char *path, size_t limit, struct text *text, struct error *err);

/* The same from a descriptor, which stays open; name is for errors. */
enum status file_read_descriptor(
	int descriptor, const char *name, size_t limit, struct text *text, struct error *err);

/* The names in a directory but "." and "..", in no order. A zeroed one has none. */
struct file_names {
	char **names;
	size_t count;
};
/*
 * Read those of an open directory, which is opened a second time, so that a network filesystem
 * asks its server; path is for errors. names is zeroed before, and to be released whatever is
 * answered.
 */
enum status file_read_names(
	int directory, const char *path, struct file_names *names, struct error *err);
void file_names_release(struct file_names *names);

/* All bytes or an errno (EINTR retried, short writes continued). 0 on success, else -1. */
int file_write_all(int descriptor, const void *bytes, size_t length);

/*
 * Make a new file, mode 0600, in an open directory and open it for reading and writing; the last
 * six characters of name, "XXXXXX", become its own. -1 and errno where that fails.
 */
int file_make_temporary(int directory, char *name);

/* fsync of the directory itself, so that a rename or a new name in it is durable. */
enum status file_sync_directory(const char *path, struct error *err);

/*
 * fstatat: 0, or -1 and errno. GlusterFS may ask through a descriptor of another process that is
 * just being closed, and answers EBADFD: then it is asked again, for a tenth of a second.
 */
int file_stat(int directory, const char *path, int flags, struct stat *st);
/* fstat, in the same way. */
int file_fstat(int descriptor, struct stat *st);

/*
 * An NFS client keeps for up to a minute that there was no file of a name. Opening the directory
 * makes it ask the server whether there are new names. directory: relative to outer, as in openat.
 * 0, or the errno of opening it.
 */
int file_ask_for_names(int outer, const char *directory);

/* "DIRECTORY" of "DIRECTORY/NAME", "." or "/" where there is none; malloc'd. */
char *file_directory_of(const char *path);

/*
 * Rename, unless something has the new name: 0, or errno (EEXIST or ENOTEMPTY then). Where the
 * filesystem (NFS) knows no such rename, a file gets the new name as a link first, and a directory
 * may replace an empty one.
 */
int file_rename_new(int from, const char *name, int to, const char *new_name);

/* Remove a directory and everything below it; symbolic links are not followed. Missing is fine. */
enum status file_remove_tree(const char *path, struct error *err);
/* The same of a name in an open directory, wherever that has been renamed to. */
enum status file_remove_tree_at(int directory, const char *name, struct error *err);

#endif
