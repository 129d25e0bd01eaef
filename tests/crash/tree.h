/* SPDX-License-Identifier: MIT */
/* A directory and all that is in it, kept in memory and put back as it was. */
#ifndef CRASH_TREE_H
#define CRASH_TREE_H

#include <stddef.h>

struct tree_entry;
struct tree {
	const char *root;
	struct tree_entry *entries; /* parents first */
	size_t count;
};

/* Exits where these fail: nothing can be tested. */
void tree_keep(struct tree *tree, const char *root);
/*
 * Contents, modes and times; a file that is still there keeps its inode, so that what the machine
 * remembers of it (a store's page) is met by the next.
 */
void tree_restore(const struct tree *tree);
void tree_release(struct tree *tree);

#endif
