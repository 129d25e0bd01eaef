/* SPDX-License-Identifier: MIT */
#include "base/mounts.h"

#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool is_mounted(const char *point)
{
	struct statx st;
	struct stat here, above;
	char *parent = strdupa(point);
	if (statx(AT_FDCWD, point, 0, STATX_TYPE, &st) == 0 &&
		(st.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT))
		return st.stx_attributes & STATX_ATTR_MOUNT_ROOT;
	/* Linux before 5.8 does not say. */
	return stat(point, &here) == 0 && stat(dirname(parent), &above) == 0 &&
	       here.st_dev != above.st_dev;
}

enum status mounts_check(struct error *err)
{
	const char *named = getenv("PREEMPT_MOUNTS");
	char *points = strdupa(named ? named : ""), *point;
	while ((point = strsep(&points, ":"))) {
		if (*point && *point != '/')
			return error_set(err, STATUS_USAGE,
				"PREEMPT_MOUNTS: \"%.200s\" is not an absolute path", point);
		if (*point && !is_mounted(point))
			return error_set(err, STATUS_TEMPORARY,
				"%s is not mounted, and PREEMPT_MOUNTS names it: nothing was read "
				"or made; mount it, then try again",
				point);
	}
	return STATUS_OK;
}
