/* SPDX-License-Identifier: MIT */
/*
 * Which filesystem a directory is on, and whether other machines see it and its byte-range locks.
 * filesystem_inspect asks the kernel; filesystem_classify is a pure function of the answer, whose
 * cases are in tests/unit/filesystem.c.
 */
#ifndef STORE_FILESYSTEM_H
#define STORE_FILESYSTEM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct filesystem {
	uint64_t magic;	    /* statfs f_type */
	char type[64];	    /* as in /proc/self/mountinfo: "nfs4", "fuse.sshfs"; empty: not read */
	char options[2048]; /* of the mount and of the superblock, joined by commas */
};

enum filesystem_reach {
	FILESYSTEM_LOCAL,  /* this machine only */
	FILESYSTEM_SHARED, /* other machines see it, and byte-range locks reach them */
	FILESYSTEM_NODE, /* other machines may see it, and byte-range locks stay on each of them */
	FILESYSTEM_UNKNOWN, /* not known whether other machines see it or its locks */
};

#define FILESYSTEM_FOR_EVER (-1)

struct filesystem_traits {
	enum filesystem_reach reach;
	bool client;	  /* a process of this machine serves it, and may cache (cache.h) */
	const char *name; /* for messages: "NFS" */
	/* Why its locks do not, or may not, reach other machines; NULL: they do, or it is local. */
	const char *why;
	/*
	 * For how many seconds the server keeps the byte-range locks of a machine that died, by
	 * default; FILESYSTEM_FOR_EVER; 0: not known.
	 */
	int outlived;
	bool lends; /* its server lends a file to the machine that opens it (cache.h) */
	/* Changing names does not wait for a dead machine's locks, so neither does a token. */
	bool by_name;
	const char *warning; /* which mount option should be changed, and why; NULL: none */
};

/* The directory must exist. */
enum status filesystem_inspect(
	const char *directory, struct filesystem *filesystem, struct error *err);

struct filesystem_traits filesystem_classify(const struct filesystem *filesystem);

#endif
