/* SPDX-License-Identifier: MIT */
/*
 * The holder of a lock of mode link, as the name of an empty file:
 * NONCE-BOOT-PIDNS-TIMENS-PID-START-HOST, all but HOST in hexadecimal. Unlike content, a name is
 * read with the directory, in one request, and no process sees half of it.
 */
#ifndef STORE_LOCK_LINK_NAME_H
#define STORE_LOCK_LINK_NAME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/process/process.h"

#define LINK_NONCE    16  /* characters */
#define LINK_NAME_MAX 144 /* with the NUL: filesystems that encrypt names allow 143 bytes */

/* The beginning of the name that is left when a takeover was given up. */
#define LINK_ABANDONED "abandoned-"

/* Make a new name for this process. False: no random numbers, or no /proc. */
bool link_name_make(char name[LINK_NAME_MAX]);

/* False: not such a name, but one of a newer version, or one that a filesystem made. */
bool link_name_parse(const char *name, struct process_identity *who);

/* A hash of the name, never 0. */
uint64_t link_name_hash(const char *name);

enum link_holder {
	HOLDER_GONE,	  /* surely: a process of this machine that has ended, or LINK_ABANDONED */
	HOLDER_HERE,	  /* alive on this machine */
	HOLDER_OURSELVES, /* this very process */
	HOLDER_ELSEWHERE, /* on another machine, in another container, or not a name of ours */
};
enum link_holder link_name_classify(const char *name);

#endif
