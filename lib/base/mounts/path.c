/* SPDX-License-Identifier: MIT */
#include "base/mounts/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LINKS_MAX 40

bool path_resolve(const char *path, char real[PATH_MAX])
{
	char rest[2 * PATH_MAX] = "", link[PATH_MAX], part[NAME_MAX + 1];
	size_t length = 0;
	int links = 0;
	real[0] = '\0';
	if (*path != '/' && !getcwd(rest, PATH_MAX))
		return false;
	size_t used = strlen(rest);
	if (snprintf(rest + used, sizeof(rest) - used, "/%s", path) >= (int)(sizeof(rest) - used))
		return false;
	for (char *at = rest; *(at += strspn(at, "/"));) {
		size_t size = strcspn(at, "/");
		if (size > NAME_MAX || length + size + 2 > PATH_MAX)
			return false;
		memcpy(part, at, size);
		part[size] = '\0';
		at += size;
		if (strcmp(part, ".") == 0)
			continue;
		size_t before = length;
		if (strcmp(part, "..") == 0) {
			char *slash = strrchr(real, '/');
			length = slash ? (size_t)(slash - real) : 0;
			real[length] = '\0';
			continue;
		}
		real[length++] = '/';
		memcpy(real + length, part, size + 1);
		length += size;
		ssize_t target = readlink(real, link, sizeof(link) - 1);
		if (target <= 0)
			continue;
		link[target] = '\0';
		char left[2 * PATH_MAX];
		snprintf(left, sizeof(left), "%s", at);
		if (++links > LINKS_MAX ||
			snprintf(rest, sizeof(rest), "%s/%s", link, left) >= (int)sizeof(rest))
			return false;
		at = rest;
		length = *link == '/' ? 0 : before;
		real[length] = '\0';
	}
	if (!length)
		memcpy(real, "/", 2);
	return true;
}

int path_open_deepest(const char *path, size_t *length)
{
	char at[PATH_MAX];
	snprintf(at, sizeof(at), "%s", path);
	for (;;) {
		/* Opening a directory makes an automounter mount it. */
		int descriptor = open(at, O_PATH | O_DIRECTORY | O_CLOEXEC);
		*length = strlen(at);
		if (descriptor >= 0 || (errno != ENOENT && errno != ENOTDIR) || !at[1])
			return descriptor;
		char *slash = strrchr(at, '/');
		slash[slash == at] = '\0';
	}
}
