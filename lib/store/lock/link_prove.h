/* SPDX-License-Identifier: MIT */
/*
 * Whether names on a filesystem do what mode link relies on. Asked once, before a store is made
 * there: filesystems over object stores have no hard links, and move a directory piece by piece.
 */
#ifndef STORE_LOCK_LINK_PROVE_H
#define STORE_LOCK_LINK_PROVE_H

#include "base/error.h"

/*
 * Tries it beside the path of a lock file that is to be made, and leaves nothing behind.
 * STATUS_USAGE where the filesystem does not do it.
 */
enum status link_prove(const char *lock, struct error *err);

#endif
