/* SPDX-License-Identifier: MIT */
/*
 * Which filesystem this is, and whether other machines see it and its byte-range locks. Looking
 * asks the kernel; judging is a pure function of what was seen, with a table of cases in
 * tests/unit/filesystem.c.
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
	FILESYSTEM_UNKNOWN, /* cannot be told */
};

#define FILESYSTEM_FOR_EVER (-1)

struct filesystem_traits {
	enum filesystem_reach reach;
	bool client;	  /* a process of this machine serves it, which may cache, too */
	const char *name; /* for messages: "NFS" */
	const char *why;  /* why they do not reach, or that it is not known; else NULL */
	/*
	 * For how many seconds a machine that died keeps its byte-range locks, as its server does
	 * by default; FILESYSTEM_FOR_EVER; 0: not known.
	 */
	int outlived;
	bool lends;   /* its server lends a file to the machine that opens it: cache.h */
	bool by_name; /* that does not hold for names in a directory: mode link waits for no server
		       */
	const char *warning; /* something about its options that should be changed; NULL: nothing */
};

/* directory must exist. */
enum status filesystem_inspect(
	const char *directory, struct filesystem *filesystem, struct error *err);

struct filesystem_traits filesystem_classify(const struct filesystem *filesystem);

#endif
