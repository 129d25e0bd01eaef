/* SPDX-License-Identifier: MIT */
/*
 * Whether a journal belongs to the database beside it. SQLite plays back any journal with the right
 * name, and a journal does not name its database: the journal of another database would overwrite
 * ours. But each of our transactions changes the page of the table meta, so its journal contains
 * that page as it was before, with the nonce of the store.
 */
#ifndef STORE_SQLITE_JOURNAL_H
#define STORE_SQLITE_JOURNAL_H

#include "base/error.h"
#include "store/cache.h"

/*
 * To be called under the lock, before SQLite opens the database. STATUS_DAMAGED: SQLite would play
 * the journal back, and it is of another store. STATUS_OK: SQLite would not play it back, it is
 * ours, or we cannot find out whose it is.
 */
enum status journal_check(enum cache cache, const char *database, struct error *err);

#endif
