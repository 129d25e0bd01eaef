/* SPDX-License-Identifier: MIT */
/* Tables of mounts: fstab, mountinfo, lists, units and the automounter's maps. */
#include <stdlib.h>
#include <string.h>

#include "base/mounts/mount_tables.h"
#include "support/fuzz.h"

static void see_point(void *context, const char *point)
{
	size_t *longest = context;
	FUZZ_HOLDS(point[0] == '/' && point[1]);
	FUZZ_HOLDS(point[strlen(point) - 1] != '/');
	FUZZ_HOLDS(strlen(point) <= *longest);
	FUZZ_HOLDS(mount_tables_is_below(point, "/") && mount_tables_is_below(point, point));
}

static void see_map(void *context, enum autofs_kind kind, const char *name)
{
	const size_t *longest = context;
	FUZZ_HOLDS(kind <= AUTOFS_DIRECTORY && strlen(name) <= *longest);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct mount_entry entry;
	static char point[PATH_MAX];
	char *text = fuzz_text(data, size);
	mount_tables_fstab(text, see_point, &size);
	mount_tables_list(text, see_point, &size);
	mount_tables_autofs_direct(text, see_point, &size);
	mount_tables_autofs_master(text, see_map, &size);
	if (mount_tables_unit(text, point))
		FUZZ_HOLDS(*point == '/' && memchr(point, '\0', sizeof(point)));
	if (mount_tables_find(text, 36, &entry)) {
		FUZZ_HOLDS(entry.number == 36);
		FUZZ_HOLDS(strlen(entry.point) >= sizeof(entry.point) - 1 ||
			   mount_tables_has(text, entry.point));
	}
	(void)mount_tables_has(text, "/mnt");
	free(text);
	return 0;
}
