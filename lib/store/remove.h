/* SPDX-License-Identifier: MIT */
/* Removing a store. */
#ifndef STORE_REMOVE_H
#define STORE_REMOVE_H

#include "base/error.h"

/*
 * Remove the store at path: the database, and all files beside it whose names continue its name
 * with '.' or '-' (lock file, journal, beats, outputs). It may be missing. No process may have it
 * open, or know of it and open it now: such a process would work on files without names.
 */
enum status store_remove(const char *path, struct error *err);

#endif
