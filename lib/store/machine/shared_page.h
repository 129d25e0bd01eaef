/* SPDX-License-Identifier: MIT */
/*
 * A page is memory that the processes of this user on this machine share, about one file of a
 * store. It is mapped from /dev/shm/preempt-UID/DEVICE-INODE-KIND, and used only if this directory
 * is ours and closed to others. KIND names the content and the version of its format: programs of
 * another version use another page.
 */
#ifndef STORE_MACHINE_SHARED_PAGE_H
#define STORE_MACHINE_SHARED_PAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Each page begins with this. */
struct shared_page {
	char magic[16];
	uint64_t size;	      /* of the page: differs in programs with another word size */
	_Atomic int64_t used; /* last use, by clock_now; pages unused for an hour are removed */
	char of[33];	      /* the nonce of the store's file; "": none was given */
};

struct shared_page_kind {
	const char *name; /* at most 7 bytes */
	size_t size;
	size_t sparse_from; /* from this offset on, memory is allocated on use; 0: all at once */
	void (*init)(void *page); /* called before another process sees it; NULL: it stays zeroed */
};

/* The file that the page is about. */
struct shared_page_file {
	dev_t device;
	ino_t inode;
	const char *nonce; /* at most 32 bytes; a deleted file may have had the same inode number */
};

/*
 * Map the page of a file. Make the page if it is missing; replace it if it has another nonce,
 * because the file with that nonce is gone. NULL: not available. The caller unmaps it (size bytes)
 * and closes the descriptor. path: the name of the mapped file.
 */
void *shared_page_open(const struct shared_page_kind *kind, const struct shared_page_file *file,
	int *descriptor, char path[128]);

#endif
