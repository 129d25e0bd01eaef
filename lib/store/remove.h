/* SPDX-License-Identifier: MIT */
/* Removing a store. */
#ifndef STORE_REMOVE_H
#define STORE_REMOVE_H

#include "base/error.h"

/*
 * Remove the store at path: the database, and beside it the lock file, the journal and the beats.
 * Only for a store of which no other process knows, and which this process has closed: a process
 * that has it open would work on files without names. It may be missing.
 */
enum status store_remove(const char *path, struct error *err);

#endif
