/* SPDX-License-Identifier: MIT */
/*
 * Recording another lock mode in a store that nobody uses.
 *
 * The lock file stands for the mode, and its nonce is in the database, too. So the change is three
 * steps: write the new lock file beside the old one (DATABASE.lock-fix), with a new nonce; put that
 * nonce into the database; rename the new one over the old one. Killed before the second step the
 * store is as it was; after the third it is the new one; in between, lock file and database do not
 * belong together, which everybody refuses (65), and the next convert_mode finishes it.
 *
 * Whoever has the store open without our having seen it holds the old nonce, and is refused with 65
 * at his next transaction: so nobody goes on in the old mode.
 */
#ifndef STORE_CONVERT_H
#define STORE_CONVERT_H

#include <json-c/json_object.h>

#include "base/error.h"
#include "store/doctor_worker.h"
#include "store/lock/lockfile.h"
#include "store/sqlite/options.h"

/*
 * parameters: of the store's URL, with the takeover time to record. mode: the new one; LOCK_AUTO:
 * only finish what was interrupted. Takes the locks of both modes and watches the store for
 * patience (milliseconds), in which nothing may change. STATUS_OK: done, *recorded is the mode.
 * STATUS_NO: there was nothing to finish. STATUS_TEMPORARY: in use, or it failed; the error says
 * so, and whether the store is as before.
 */
enum status convert_mode(const char *database, const struct parameters *parameters,
	enum lock_mode mode, int64_t patience, enum lock_mode *recorded, struct error *err);

/* For a worker: "pid" and "program" of a process of this machine that has "name" open; else none.
 */
enum status doctor_find_opener(struct doctor_worker *worker, const struct json_object *request,
	struct json_object *answer, struct error *err);

#endif
