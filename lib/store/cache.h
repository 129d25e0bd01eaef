/* SPDX-License-Identifier: MIT */
/*
 * Dropping what this machine has cached of a file that other machines write to: under the lock,
 * before the file is read. A shared filesystem may otherwise answer with old content, and a commit
 * on top of old content overwrites what other machines have committed.
 *
 * The kernel's pages: posix_fadvise drops them. A filesystem in user space has a client process
 * with caches of its own, which posix_fadvise does not reach: GlusterFS keeps whole files of up to
 * 64 KiB for a second (quick-read), also after a look without the lock, such as opening the store
 * or watching it. Its client drops them at each call that may change the file. fallocate of a byte
 * that is already allocated is such a call, and changes nothing. It needs a descriptor for writing:
 * if we may only read the file, its content may be a second old.
 *
 * An NFS 4 server lends a file to the machine that opens it (a delegation). When that machine dies,
 * each other machine that writes or replaces the file waits until the server's lease has run out
 * (on most servers 90 s). A client of version 4.1 or later does not ask for a delegation if a file
 * is opened with O_DIRECT: so we open the files of a store with O_DIRECT, and then clear the flag.
 *
 * Of a filesystem in user space the kernel keeps sizes, too, for a second and more, also after an
 * open; a client that has no fallocate (bindfs) does not drop them. statx with AT_STATX_FORCE_SYNC
 * asks for them anew. Without it a store that both sides made at once had 0 bytes for one of them.
 *
 * A file counts as missing only after the client had to ask the server for names (base/file.h).
 */
#ifndef STORE_CACHE_H
#define STORE_CACHE_H

#include <sys/stat.h>

#include "store/filesystem.h"

enum cache {
	CACHE_OURS,   /* no other machine writes to the file: there is nothing to drop */
	CACHE_KERNEL, /* the kernel caches */
	CACHE_LENT,   /* the kernel caches, and the server lends files */
	CACHE_CLIENT, /* the kernel and the filesystem's client process cache */
};

enum cache cache_kind(const struct filesystem_traits *traits);

/* As lstat: returns 0, or -1 with errno. */
int cache_stat(enum cache cache, const char *path, struct stat *st);
/* Drop what is cached. Errors are ignored: the client drops before it asks the server. */
void cache_drop(enum cache cache, int descriptor);
/* openat without O_CREAT, and without a delegation. Returns -1 with errno. */
int cache_open_at(enum cache cache, int directory, const char *path, int flags);
/* Open a file to read its present content; close-on-exec. Returns -1 with errno. */
int cache_open(enum cache cache, const char *path);
/*
 * Open the file, drop what is cached of it, and close it; it may be missing. Do not call this while
 * this process holds POSIX locks on the file: closing it would release them.
 */
void cache_drop_path(enum cache cache, const char *path);

#endif
