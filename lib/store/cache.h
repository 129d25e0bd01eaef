/* SPDX-License-Identifier: MIT */
/*
 * What this machine keeps of a file that other machines write, and letting go of it: to be done
 * under the lock, before the file is read. Without it a shared filesystem answers with what was
 * there some time ago, and what is committed on top of that is lost or loses others.
 *
 * The kernel's pages go with posix_fadvise. A filesystem in user space has a client process with
 * caches of its own that no advice reaches: GlusterFS keeps whole files of up to 64 KiB for a
 * second (quick-read), from any look at them without the lock, such as opening the store or
 * watching it. What goes through to the servers and changes the file empties them, and allocating a
 * byte that is allocated already is such a call, but changes nothing. It needs a descriptor that
 * can write: where we may only read, what is read there may be a second old.
 *
 * An NFS 4 server lends a file to the machine that opens it (a delegation). When that machine dies,
 * any other that writes or replaces the file waits until the lease of the server has run out, 90 s
 * on most. A client of version 4.1 and later asks for no such loan where a file is opened with
 * O_DIRECT: so the files of a store are opened with that, and then used without.
 *
 * A file counts as missing only after the client was made to ask for names (base/file.h).
 */
#ifndef STORE_CACHE_H
#define STORE_CACHE_H

#include <sys/stat.h>

#include "store/filesystem.h"

enum cache {
	CACHE_OURS,   /* no other machine writes: nothing to let go of */
	CACHE_KERNEL, /* in the kernel */
	CACHE_LENT,   /* the same, and the server lends files */
	CACHE_CLIENT, /* in the filesystem's client process, too */
};

/* Pure. */
enum cache cache_kind(const struct filesystem_traits *traits);

/* As lstat. -1 and errno. */
int cache_stat(enum cache cache, const char *path, struct stat *st);
/* Errors do not matter: the client lets go when it is asked, whatever the server says. */
void cache_drop(enum cache cache, int descriptor);
/* openat without O_CREAT, of a file that the server shall not lend to us. -1 and errno. */
int cache_open_at(enum cache cache, int directory, const char *path, int flags);
/* Open it to read its present content; close-on-exec. -1 and errno. */
int cache_open(enum cache cache, const char *path);
/* Only let go; a missing file is fine. Not while this process holds POSIX locks on it. */
void cache_drop_path(enum cache cache, const char *path);

#endif
