/* SPDX-License-Identifier: MIT */
/* A directory of our own for stores, removed with all that the machine remembers of them. */
#ifndef UNIT_SCRATCH_H
#define UNIT_SCRATCH_H

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

static char scratch[64] = "/tmp/unit-XXXXXX";

/* For thousands of transactions: in memory, where that can be. Before scratch_make. */
static inline void scratch_in_memory(void)
{
	if (access("/dev/shm", W_OK) == 0)
		snprintf(scratch, sizeof(scratch), "/dev/shm/unit-XXXXXX");
}

static inline void scratch_make(void)
{
	if (!mkdtemp(scratch))
		exit(99);
}

/* What the machine remembers of the stores in a directory; to be called before they are removed. */
static inline void scratch_forget(const char *directory)
{
	char pattern[80], page[128];
	glob_t found = {0};
	struct stat st;
	snprintf(pattern, sizeof(pattern), "%s/*.lock", directory);
	if (glob(pattern, 0, NULL, &found) == 0)
		for (size_t i = 0; i < found.gl_pathc; i++) {
			if (stat(found.gl_pathv[i], &st) < 0)
				continue;
			snprintf(page, sizeof(page), "/dev/shm/preempt-%u/%llx-%llx-lock1",
				(unsigned)geteuid(), (unsigned long long)st.st_dev,
				(unsigned long long)st.st_ino);
			unlink(page);
		}
	globfree(&found);
}

static inline void scratch_remove(void)
{
	scratch_forget(scratch);
	(void)file_remove_tree(scratch, NULL);
}

#endif
