/* SPDX-License-Identifier: MIT */
/*
 * Changing the lock mode of a store that is not in use.
 *
 * The lock file records the mode and a nonce, and the database has the same nonce. The change has
 * three steps: write a new lock file with a new nonce beside the old one (DATABASE.lock-fix); put
 * the new nonce into the database; rename the new lock file over the old one. If this process is
 * killed before the second step, the store is unchanged; if after the third, the change is done. In
 * between, the nonces differ: opening the store is STATUS_DAMAGED, and the next convert_mode
 * finishes the change.
 *
 * A process that has the store open, and that we did not see, knows the old nonce only: its next
 * transaction is STATUS_DAMAGED, so it cannot go on in the old mode.
 */
#ifndef STORE_CONVERT_H
#define STORE_CONVERT_H

#include "store/lock/lockfile.h"
#include "store/sqlite/options.h"

/*
 * parameters: of the store's URL, with the takeover time to record. mode: the new mode; LOCK_AUTO:
 * only finish a change that was interrupted. Takes the locks of both modes, and watches the store
 * for patience (milliseconds): nothing may change in that time. STATUS_OK: done, and *recorded is
 * the mode. STATUS_NO: the store has the mode already, or LOCK_AUTO found nothing to finish; or
 * there is no lock file. STATUS_TEMPORARY: the store is in use, or a call failed, or the last
 * holder of its lock did not release it: then another process has to use the store first.
 */
enum status convert_mode(const char *database, const struct parameters *parameters,
	enum lock_mode mode, int64_t patience, enum lock_mode *recorded, struct error *err);

/* Find a process of this machine that has a file of the store open. Sets opener to "process 7
 * (NAME)", or to "" if none is found. */
void convert_find_opener(const char *database, char *opener, size_t size);

#endif
