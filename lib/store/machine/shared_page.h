/* SPDX-License-Identifier: MIT */
/*
 * Memory that the processes of this user on this machine share about one file of a store: the file
 * /dev/shm/preempt-UID/DEVICE-INODE-KIND. It is used only if its directory is ours and has mode
 * 0700. KIND names the content and the version of its format: programs of another version use
 * another file.
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
	_Atomic int64_t used; /* clock_now; a page that was not used for an hour is removed */
	char of[33];	      /* the nonce of the file; "": it has none */
};

struct shared_page_kind {
	const char *name; /* at most 7 bytes */
	size_t size;
	size_t sparse_from;	  /* from here, no memory is allocated yet; 0: all is allocated */
	void (*init)(void *page); /* called before another process sees it; NULL: it stays zeroed */
};

/* The file that the page is about. */
struct shared_page_file {
	dev_t device;
	ino_t inode;
	const char
		*nonce; /* at most 32 bytes: an inode number is used again once a file is deleted */
};

/*
 * Map the page of a file. Make it if it is missing, or if it has another nonce, whose file is gone.
 * NULL: not available. The caller unmaps it (size bytes) and closes the descriptor. path: the name
 * of the page's file.
 */
void *shared_page_open(const struct shared_page_kind *kind, const struct shared_page_file *file,
	int *descriptor, char path[128]);

#endif
