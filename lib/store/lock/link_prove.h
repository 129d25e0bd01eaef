/* SPDX-License-Identifier: MIT */
/*
 * Whether a filesystem can do what mode link needs. This is tried once, before a store is made
 * there: filesystems over object stores have no hard links, and move the files of a directory one
 * after the other.
 */
#ifndef STORE_LOCK_LINK_PROVE_H
#define STORE_LOCK_LINK_PROVE_H

#include "base/error.h"

/*
 * Try it beside the path of a lock file that will be made; leaves nothing behind. STATUS_USAGE: the
 * filesystem cannot do it.
 */
enum status link_prove(const char *lock, struct error *err);

#endif
