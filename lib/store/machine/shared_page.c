/* SPDX-License-Identifier: MIT */
#include "store/machine/shared_page.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

#define KEEP 3600000 /* ms: an agent that waits reads its store every 15 s */

/* The directory, if it is or can be made one that only we can write. */
static bool find_directory(char *path, size_t size)
{
	struct stat st;
	snprintf(path, size, "/dev/shm/preempt-%u", (unsigned)geteuid());
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return false;
	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
	       (st.st_mode & 077) == 0;
}

static void *map(int descriptor, size_t size)
{
	void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
	return page == MAP_FAILED ? NULL : page;
}

/* Remove those of this kind that nobody used for long. Whoever makes one pays for it. */
static void sweep(const char *directory, const char *name)
{
	DIR *entries = opendir(directory);
	if (!entries)
		return;
	for (struct dirent *entry; (entry = readdir(entries));) {
		struct shared_page head;
		const char *ending = strrchr(entry->d_name, '-');
		if (!ending || strcmp(ending + 1, name) != 0)
			continue;
		int descriptor =
			openat(dirfd(entries), entry->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		if (descriptor < 0)
			continue;
		if (pread(descriptor, &head, sizeof(head), 0) == (ssize_t)sizeof(head) &&
			clock_now() - head.used > KEEP)
			unlinkat(dirfd(entries), entry->d_name, 0);
		close(descriptor);
	}
	closedir(entries);
}

static void write_magic(const struct shared_page_kind *kind, char magic[16])
{
	memset(magic, 0, 16);
	snprintf(magic, 16, "preempt %.7s", kind->name);
}

/* Make it whole beside its name, then give it the name, if nobody else has. */
static void make(const struct shared_page_kind *kind, const char *directory, const char *path)
{
	char temporary[160];
	snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path);
	int descriptor = mkostemp(temporary, O_CLOEXEC);
	if (descriptor < 0)
		return;
	/* Allocated now: a full /dev/shm must be an error here, not a SIGBUS later. */
	size_t allocated = kind->sparse_from ? kind->sparse_from : kind->size;
	bool made = posix_fallocate(descriptor, 0, (off_t)allocated) == 0 &&
		    ftruncate(descriptor, (off_t)kind->size) == 0;
	struct shared_page *page = made ? map(descriptor, kind->size) : NULL;
	if (page) {
		if (kind->init)
			kind->init(page);
		page->size = kind->size;
		page->used = clock_now();
		write_magic(kind, page->magic);
		munmap(page, kind->size);
		(void)!link(temporary, path);
		sweep(directory, kind->name);
	}
	unlink(temporary);
	close(descriptor);
}

void *shared_page_open(const struct shared_page_kind *kind, dev_t device, ino_t inode,
	int *descriptor, char path[128])
{
	char directory[64], magic[16];
	struct stat st;
	struct shared_page *page = NULL;
	if (!find_directory(directory, sizeof(directory)))
		return NULL;
	snprintf(path, 128, "%s/%llx-%llx-%s", directory, (unsigned long long)device,
		(unsigned long long)inode, kind->name);
	*descriptor = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (*descriptor < 0 && errno == ENOENT) {
		make(kind, directory, path);
		*descriptor = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	}
	if (*descriptor < 0)
		return NULL;
	if (fstat(*descriptor, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
		st.st_size == (off_t)kind->size)
		page = map(*descriptor, kind->size);
	write_magic(kind, magic);
	if (page && memcmp(page->magic, magic, sizeof(magic)) == 0 && page->size == kind->size)
		return page;
	if (page)
		munmap(page, kind->size);
	close(*descriptor);
	*descriptor = -1;
	return NULL;
}
