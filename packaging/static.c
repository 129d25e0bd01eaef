/* SPDX-License-Identifier: MIT */
/*
 * Linked into programs that are wholly static (make static). To load a library such a program would
 * need the very C library of the machine that it was built on, so it loads none: there is no
 * libcurl, and so no etcd and no metadata of a cloud, and SQLite has no extensions.
 */
#include <dlfcn.h>
#include <stddef.h>

void *dlopen(const char *file, int mode)
{
	(void)file;
	(void)mode;
	return NULL;
}

void *dlsym(void *handle, const char *name)
{
	(void)handle;
	(void)name;
	return NULL;
}

int dlclose(void *handle)
{
	(void)handle;
	return -1;
}

char *dlerror(void)
{
	static char text[] =
		"this build has no etcd and asks no cloud: static programs load no library; use those of a "
		"package, or for a notice --source 'command:curl ...' as in docs/cloud.md";
	return text;
}
