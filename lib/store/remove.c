/* SPDX-License-Identifier: MIT */
#include "store/remove.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

enum status store_remove(const char *path, struct error *err)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	size_t length = strlen(name);
	char *directory = file_directory_of(path);
	enum status status = STATUS_OK;
	struct dirent *entry;
	DIR *entries = opendir(directory);
	if (!entries && errno != ENOENT)
		status = error_set(err, error_status_of_errno(errno), "cannot read %s: %s",
			directory, strerror(errno));
	while (entries && status == STATUS_OK && (entry = readdir(entries))) {
		const char *ending = entry->d_name + length;
		if (!strncmp(entry->d_name, name, length) && (!*ending || strchr(".-", *ending)))
			status = file_remove_tree_at(dirfd(entries), entry->d_name, err);
	}
	if (entries)
		closedir(entries);
	free(directory);
	return status;
}
