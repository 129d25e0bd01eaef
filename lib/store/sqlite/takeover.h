/* SPDX-License-Identifier: MIT */
#ifndef STORE_SQLITE_TAKEOVER_H
#define STORE_SQLITE_TAKEOVER_H

#include "store/sqlite/session.h"

/*
 * Under a lock that overtook another (lock_overtook), before anything else: give database and
 * journal new inodes, with all that was committed, so that the overtaken process cannot reach
 * them (takeover_step.h). STATUS_OK also where there is no database. After an error nothing may be
 * read or written, and the lock is released unsettled.
 */
enum status takeover_run(struct sqlite_store *store, struct error *err);

#endif
