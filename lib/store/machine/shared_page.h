/* SPDX-License-Identifier: MIT */
/*
 * A little memory that the processes of this user on this machine share about one file: the file
 * /dev/shm/preempt-UID/DEVICE-INODE-KIND. Its directory is 0700 and ours, else it is not used. KIND
 * names what is in it and its version, so that tools which were replaced have theirs at once.
 */
#ifndef STORE_MACHINE_SHARED_PAGE_H
#define STORE_MACHINE_SHARED_PAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What each begins with. */
struct shared_page {
	char magic[16];
	uint64_t size;	      /* of all of it: programs of another word size have other mutexes */
	_Atomic int64_t used; /* clock_now: one that was not used for an hour is removed */
	char of[33];	      /* the nonce of the file; "": it has none */
};

struct shared_page_kind {
	const char *name; /* at most 7 bytes */
	size_t size;
	size_t sparse_from;	  /* what is behind it has no memory yet; 0: all has */
	void (*init)(void *page); /* once, before any other process sees it; NULL: zeros */
};

/* The file that the page is about. */
struct shared_page_file {
	dev_t device;
	ino_t inode;
	const char
		*nonce; /* at most 32 bytes: an inode number is used again once a file is deleted */
};

/*
 * Mapped, and made if need be: in place of that of another nonce, too, whose file is gone. NULL: it
 * is not available. The caller unmaps it (size bytes) and closes the descriptor. path: its name.
 */
void *shared_page_open(const struct shared_page_kind *kind, const struct shared_page_file *file,
	int *descriptor, char path[128]);

#endif
