/* SPDX-License-Identifier: MIT */
/*
 * The mode in which machines exclude each other. The process that makes the store chooses it and
 * records it in the lock file. All others follow, because two modes do not exclude each other. Pure
 * functions; their cases are in tests/unit/filesystem.c.
 */
#ifndef STORE_LOCK_LOCK_MODE_H
#define STORE_LOCK_LOCK_MODE_H

#include <stdbool.h>

#include "base/error.h"
#include "store/filesystem.h"

enum lock_mode {
	LOCK_AUTO,  /* never recorded: use the recorded one, or choose by the filesystem */
	LOCK_FCNTL, /* an open-file-description lock on the lock file */
	LOCK_LINK,  /* a name in the directory: lock_link.h */
};

bool lock_mode_parse(const char *name, enum lock_mode *mode);
const char *lock_mode_name(enum lock_mode mode);

/*
 * The mode for a new store on this filesystem. For LOCK_AUTO it is link if byte-range locks do not
 * reach all machines, or if they outlive a dead machine for long but names (by_name) can be changed
 * in that time; otherwise fcntl. STATUS_USAGE: `asked` is not safe there; err says why.
 */
enum status lock_mode_choose(enum lock_mode asked, const struct filesystem_traits *traits,
	enum lock_mode *mode, struct error *err);
/* Whether this machine may open a store that was made in this mode. */
enum status lock_mode_follow(enum lock_mode recorded, enum lock_mode asked,
	const struct filesystem_traits *traits, struct error *err);

#endif
