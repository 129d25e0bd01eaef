/* SPDX-License-Identifier: MIT */
/* Removing a store. */
#ifndef STORE_REMOVE_H
#define STORE_REMOVE_H

#include "base/error.h"

/*
 * Remove the store at path: the database, and the lock, journal and beats that lie beside it under
 * its name and an ending. Only for a store that this process alone knows and has closed: a
 * process that had it open, or opened it now, would see another one or none. Missing is fine.
 */
enum status store_remove(const char *path, struct error *err);

#endif
