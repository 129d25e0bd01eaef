/* SPDX-License-Identifier: MIT */
/*
 * Recording another lock mode in a store that is not in use.
 *
 * The lock file records the mode, and its nonce is in the database, too. So the change is three
 * steps: write the new lock file beside the old one (DATABASE.lock-fix) with a new nonce; put that
 * nonce into the database; rename the new file over the old one. Killed before the second step, the
 * store is as it was; after the third, it is the new one. In between, lock file and database do not
 * belong together, which every opener refuses (65), and the next convert_mode finishes it.
 *
 * A process that has the store open unseen holds the old nonce: its next transaction is refused
 * (65), so it does not go on in the old mode.
 */
#ifndef STORE_CONVERT_H
#define STORE_CONVERT_H

#include "store/lock/lockfile.h"
#include "store/sqlite/options.h"

/*
 * parameters: of the store's URL, with the takeover time to record. mode: the new one; LOCK_AUTO:
 * only finish what was interrupted. Takes the locks of both modes and watches the store for
 * patience (milliseconds), in which nothing may change. STATUS_OK: done, *recorded is the mode.
 * STATUS_NO: there was nothing to finish. STATUS_TEMPORARY: in use, or it failed.
 */
enum status convert_mode(const char *database, const struct parameters *parameters,
	enum lock_mode mode, int64_t patience, enum lock_mode *recorded, struct error *err);

/* "process 7 (NAME)" of this machine that has a file of the store open; else empty. */
void convert_find_opener(const char *database, char *opener, size_t size);

#endif
