/* SPDX-License-Identifier: MIT */
/*
 * The holder of a lock of mode link, as the name of a file: NONCE-BOOT-PIDNS-TIMENS-PID-START-HOST,
 * all but the host in hexadecimal. The file is empty: a name is read without a second request, and
 * no process sees half of one.
 */
#ifndef STORE_LOCK_LINK_NAME_H
#define STORE_LOCK_LINK_NAME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/process/process.h"

#define LINK_NONCE    16  /* characters */
#define LINK_NAME_MAX 144 /* with the NUL: filesystems that encrypt names allow 143 bytes */

/* What begins the name of a takeover that was given up. */
#define LINK_ABANDONED "abandoned-"

/* A new name of this process; false without random numbers or /proc. */
bool link_name_make(char name[LINK_NAME_MAX]);

/* False where it is no such name: of a newer version, or something that a filesystem left. */
bool link_name_parse(const char *name, struct process_identity *who);

/* A hash of it, never 0. */
uint64_t link_name_hash(const char *name);

enum link_holder {
	HOLDER_GONE,	  /* for sure: a process of this machine that has ended, or abandoned */
	HOLDER_HERE,	  /* alive on this machine */
	HOLDER_OURSELVES, /* this very process */
	HOLDER_ELSEWHERE, /* on another machine, in another container, or not a name of ours */
};
enum link_holder link_name_classify(const char *name);

#endif
