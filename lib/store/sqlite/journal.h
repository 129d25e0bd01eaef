/* SPDX-License-Identifier: MIT */
/*
 * Whose the journal is. SQLite plays back any that lies beside a database, and a journal does not
 * say of which it is: one of another database would overwrite ours, and only then it would show.
 * But each transaction of ours changes the page of meta, so that the page as it was, with the nonce
 * of the store, is in the journal.
 */
#ifndef STORE_SQLITE_JOURNAL_H
#define STORE_SQLITE_JOURNAL_H

#include "base/error.h"
#include "store/cache.h"

/*
 * Under the lock, before SQLite opens the database. STATUS_DAMAGED: it would be played back, and it
 * is of another store. STATUS_OK where it would not be, or where that cannot be told.
 */
enum status journal_check(enum cache cache, const char *path, const char *nonce, struct error *err);

#endif
