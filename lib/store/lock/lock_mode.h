/* SPDX-License-Identifier: MIT */
/*
 * How machines exclude each other: the mode. The process that makes the store chooses it and
 * records it in the lock file; every opener follows it, because two modes at once would be no lock
 * at all. All of it is pure; tests/unit/filesystem.c has the table of cases.
 */
#ifndef STORE_LOCK_LOCK_MODE_H
#define STORE_LOCK_LOCK_MODE_H

#include <stdbool.h>

#include "base/error.h"
#include "store/filesystem.h"

enum lock_mode {
	LOCK_AUTO,  /* only ever asked for: as recorded, else what the filesystem allows */
	LOCK_FCNTL, /* an open-file-description lock on the lock file */
	LOCK_LINK,  /* a name in the directory: lock_link.h */
};

/* Seconds: a machine that dies with the lock may not block the others for longer. */
#define OUTLIVED_MOST 10
/*
 * Whether byte-range locks outlive their machine for longer than that, and names in a directory do
 * not.
 */
bool lock_mode_outlives(const struct filesystem_traits *traits);

bool lock_mode_parse(const char *name, enum lock_mode *mode);
const char *lock_mode_name(enum lock_mode mode);

/*
 * The mode of a store to be made there; STATUS_USAGE with the reason where there is none. Where
 * nothing is asked for: fcntl where byte-range locks reach all machines and are free soon after the
 * death of one, else link.
 */
enum status lock_mode_choose(enum lock_mode asked, const struct filesystem_traits *traits,
	enum lock_mode *mode, struct error *err);
/* Whether a store made in this mode may be opened from here. */
enum status lock_mode_follow(enum lock_mode recorded, enum lock_mode asked,
	const struct filesystem_traits *traits, struct error *err);

#endif
